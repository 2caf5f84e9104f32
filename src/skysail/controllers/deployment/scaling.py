"""Proportional scaling: spreading a change of size over all replica sets that hold pods.

Scaling only the newest set up, or only the old ones down, in the middle of a roll-out would hasten it, and a bad
template would reach more users. So each set gets its share of the change, by the size it had against the size the
deployment had, which every set remembers in an annotation; what rounding leaves over goes to the largest.

Source: pkg/controller/deployment/sync.go `scale`, util/deployment_util.go `GetReplicaSetProportion`, v1.36.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from skysail.api.apps import Deployment, ReplicaSet
from skysail.controllers.deployment.fences import is_rolling, max_surge, sum_of_wanted, wanted_replicas

DESIRED_REPLICAS = "deployment.kubernetes.io/desired-replicas"
MAX_REPLICAS = "deployment.kubernetes.io/max-replicas"

_LONG_AGO = datetime(1, 1, 1, tzinfo=UTC)
_MAX_INT32 = 2**31 - 1


def by_creation(replica_sets: Iterable[ReplicaSet]) -> list[ReplicaSet]:
    """Oldest first; equals by name."""
    return sorted(replica_sets, key=lambda item: (item.metadata.creation_timestamp or _LONG_AGO, item.name))


def active(replica_sets: Iterable[ReplicaSet]) -> list[ReplicaSet]:
    """Those that are asked for at least one pod."""
    return [replica_set for replica_set in replica_sets if wanted_replicas(replica_set) > 0]


def replicas_annotation(replica_set: ReplicaSet, name: str) -> int | None:
    """A remembered size; None when absent, no number, or beyond int32."""
    text = replica_set.metadata.annotations.get(name, "")
    if not (text.isascii() and text.isdigit()) or int(text) > _MAX_INT32:
        return None
    return int(text)


def replicas_annotations(deployment: Deployment) -> dict[str, str]:
    """The sizes that every scaled replica set is to remember."""
    replicas = wanted_replicas(deployment)
    return {DESIRED_REPLICAS: str(replicas), MAX_REPLICAS: str(replicas + max_surge(deployment))}


def is_scaling_event(deployment: Deployment, replica_sets: Iterable[ReplicaSet]) -> bool:
    """Whether a set that holds pods remembers another size of the deployment than it has now."""
    remembered = (replicas_annotation(item, DESIRED_REPLICAS) for item in active(replica_sets))
    return any(desired is not None and desired != wanted_replicas(deployment) for desired in remembered)


def only_active_or_latest(new: ReplicaSet | None, old: Sequence[ReplicaSet]) -> ReplicaSet | None:
    """The only set with pods; the newest when none has any; None when several have."""
    everything = [*reversed(by_creation(old)), *([new] if new is not None else [])]
    holders = active(everything)
    if len(holders) == 1:
        return holders[0]
    if holders or not everything:
        return None
    return new if new is not None else everything[0]


def is_saturated(deployment: Deployment, replica_set: ReplicaSet | None) -> bool:
    """Whether the new set holds the whole deployment, both agree on its size, and all pods are available."""
    if replica_set is None:
        return False
    replicas = wanted_replicas(deployment)
    return (
        wanted_replicas(replica_set) == replicas
        and replica_set.metadata.annotations.get(DESIRED_REPLICAS) == str(replicas)
        and replica_set.status.available_replicas == replicas
    )


def plan_scale(
    deployment: Deployment, new: ReplicaSet | None, old: Sequence[ReplicaSet]
) -> tuple[Mapping[str, int], bool]:
    """The sizes the replica sets are to have, by name; those left out stay.

    Returns:
        The sizes in the order in which to write them, and whether the remembered sizes are to be renewed even where
        the size itself does not change.
    """
    only = only_active_or_latest(new, old)
    if only is not None:
        return {only.name: wanted_replicas(deployment)}, False
    if is_saturated(deployment, new):
        return {item.name: 0 for item in active(old)}, False
    if not is_rolling(deployment):
        return {}, False
    return _proportional_sizes(deployment, active([*old, *([new] if new is not None else [])])), True


def _proportional_sizes(deployment: Deployment, holders: list[ReplicaSet]) -> dict[str, int]:
    replicas = wanted_replicas(deployment)
    allowed = replicas + max_surge(deployment) if replicas > 0 else 0
    to_add = allowed - sum_of_wanted(holders)
    if to_add == 0:
        return {item.name: wanted_replicas(item) for item in holders}
    # Largest first; among equals the newest gains first and the oldest loses first.
    ordered = by_creation(holders)
    if to_add > 0:
        ordered.reverse()
    ordered.sort(key=wanted_replicas, reverse=True)
    sizes: dict[str, int] = {}
    added = 0
    for item in ordered:
        share = _share(deployment, item, to_add, added)
        sizes[item.name] = wanted_replicas(item) + share
        added += share
    if ordered:
        first = ordered[0].name
        sizes[first] = max(0, sizes[first] + to_add - added)
    return sizes


def _share(deployment: Deployment, replica_set: ReplicaSet, to_add: int, added: int) -> int:
    """This set's part of the change, never beyond what is left of it."""
    if to_add == added:
        return 0
    fraction, left = _fraction(deployment, replica_set), to_add - added
    return min(fraction, left) if to_add > 0 else max(fraction, left)


def _fraction(deployment: Deployment, replica_set: ReplicaSet) -> int:
    size = wanted_replicas(replica_set)
    if wanted_replicas(deployment) == 0:
        return -size
    before = replicas_annotation(replica_set, MAX_REPLICAS) or deployment.status.replicas
    if before == 0:
        return 0
    return _round_half_away(size * (wanted_replicas(deployment) + max_surge(deployment)), before) - size


def _round_half_away(numerator: int, denominator: int) -> int:
    return (2 * numerator + denominator) // (2 * denominator)
