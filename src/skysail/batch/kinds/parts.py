"""What the kinds share: group and version, quantities, conditions' shape, what is wanted of topology."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Final, TypeAlias

import msgspec

from skysail.api.meta import Condition, Struct
from skysail.controller.customresources import list_map

GROUP: Final = "scheduling.skysail.io"
VERSION: Final = "v1alpha1"
SCHEDULER_NAME: Final = "sky-scheduler"
"""The `spec.schedulerName` of pods that the batch engine places, where nobody says otherwise."""

QUANTITY_PATTERN: Final = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
DURATION_PATTERN: Final = r"^([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+$"

AmountText: TypeAlias = Annotated[int | str, msgspec.Meta(extra_json_schema={"pattern": QUANTITY_PATTERN})]
"""A quantity as people write it: `8`, `"500m"`, `"64Gi"`. The server refuses anything else."""
ResourceAmounts: TypeAlias = Mapping[str, AmountText]
"""Quantities by resource. What is not named is not zero: see the field."""
DurationText: TypeAlias = Annotated[str, msgspec.Meta(extra_json_schema={"pattern": DURATION_PATTERN})]
"""A duration as Go writes it: `90s`, `1h30m`."""
Conditions: TypeAlias = Annotated[tuple[Condition, ...], list_map("type")]


class TopologyWish(Struct, frozen=True, gc=False):
    """What is wanted of topology.

    Attributes:
        topology: The name of the topology its levels are of; empty is the cluster's only one.
        required_topology_level: A node label; all must share one of its values, or none starts.
        preferred_topology_level: A node label whose values are shared if that can be.
    """

    topology: str = ""
    required_topology_level: str = ""
    preferred_topology_level: str = ""


class OutcomeRecord(Struct, frozen=True, gc=False):
    """Why a unit waits, as the engine's last cycle found.

    Attributes:
        code: What stands in the way; one of a closed set, see docs/batch.md.
        message: For people.
        details: The key figures: queue, resource, ask, limit, have, need, ...
        since: Since when code and figures are these.
        next_events: What may change it.
    """

    code: str = ""
    message: str = ""
    details: Mapping[str, int | str] = {}
    since: datetime | None = None
    next_events: tuple[str, ...] = ()
