"""How much of each zone is down, and how fast its nodes may therefore be emptied.

| zone                                              | rate of eviction                                   |
| ------------------------------------------------- | -------------------------------------------------- |
| Normal                                            | the primary rate                                   |
| PartialDisruption: over two nodes and 55 % down   | the secondary rate in a large zone, else none      |
| FullDisruption: no node ready                     | the primary rate, while another zone is in order   |
| all zones FullDisruption                          | none: it is the master that is cut off             |

Source: pkg/controller/nodelifecycle/node_lifecycle_controller.go `handleDisruption`, v1.36.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from skysail.api.node import NodeCondition
from skysail.controllers.nodelifecycle.health import count_ready


class ZoneState(Enum):
    """How a zone is."""

    INITIAL = "Initial"
    NORMAL = "Normal"
    PARTIAL = "PartialDisruption"
    FULL = "FullDisruption"


@dataclass(frozen=True, slots=True)
class EvictionSettings:
    """How fast to empty nodes.

    Attributes:
        rate: Nodes a second in a zone that is in order.
        secondary_rate: Nodes a second in a large zone that is partly down.
        unhealthy_threshold: From which share of nodes down a zone counts as partly down.
        large_cluster: A zone with more nodes than this is large.
    """

    rate: float = 0.1
    secondary_rate: float = 0.01
    unhealthy_threshold: float = 0.55
    large_cluster: int = 50


class Response(Enum):
    """What a change of zones' states calls for, beside new rates."""

    NONE = "none"
    STOP_ALL = "take the marks off all nodes and stop"
    START_ANEW = "give all nodes a new lease of patience"


@dataclass(frozen=True, slots=True)
class Disruption:
    """What to do.

    Attributes:
        response: Beside the rates.
        states: All zones' new states.
        rates: New rates by zone, where they change.
    """

    response: Response
    states: Mapping[str, ZoneState]
    rates: Mapping[str, float]


def zone_state(conditions: Sequence[NodeCondition | None], settings: EvictionSettings) -> ZoneState:
    """How a zone with these Ready conditions is."""
    ready = count_ready(conditions)
    down = len(conditions) - ready
    if ready == 0 and down > 0:
        return ZoneState.FULL
    if down > 2 and down / (down + ready) >= settings.unhealthy_threshold:
        return ZoneState.PARTIAL
    return ZoneState.NORMAL


def rate_for(state: ZoneState, size: int, settings: EvictionSettings) -> float:
    """The rate of eviction of a zone in that state."""
    if state is ZoneState.PARTIAL:
        return settings.secondary_rate if size > settings.large_cluster else 0.0
    return settings.rate


def decide_disruption(
    before: Mapping[str, ZoneState], zones: Mapping[str, Sequence[NodeCondition | None]], settings: EvictionSettings
) -> Disruption:
    """What the zones' present health means.

    Args:
        before: The zones' states so far.
        zones: The Ready conditions of each zone's nodes.
        settings: The rates.
    """
    now = {zone: zone_state(conditions, settings) for zone, conditions in zones.items()}
    known = {zone: before.get(zone, ZoneState.INITIAL) for zone in zones}
    all_down = all(state is ZoneState.FULL for state in now.values())
    all_were_down = all(state is ZoneState.FULL for state in known.values())
    if all_down and all_were_down:
        return Disruption(Response.NONE, known, {})
    if all_down:
        stopped = dict.fromkeys(known, ZoneState.FULL)
        return Disruption(Response.STOP_ALL, stopped, dict.fromkeys(known, 0.0))
    rates = {
        zone: rate_for(state, len(zones[zone]), settings)
        for zone, state in now.items()
        if all_were_down or known[zone] is not state
    }
    return Disruption(Response.START_ANEW if all_were_down else Response.NONE, now, rates)
