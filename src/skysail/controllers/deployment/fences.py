"""How far a roll-out may go beyond and below the wanted number: the fence posts, and what follows from them.

Source: pkg/controller/deployment/util/deployment_util.go, v1.36.
"""

from collections.abc import Iterable

from skysail.api.apps import Deployment, ReplicaSet
from skysail.api.intstr import scaled_value

ROLLING_UPDATE = "RollingUpdate"
RECREATE = "Recreate"


def resolve_fenceposts(max_surge: int | str | None, max_unavailable: int | str | None, desired: int) -> tuple[int, int]:
    """Surge (rounded up) and unavailable (rounded down) as numbers of pods.

    When both come out as zero, one pod may be unavailable: otherwise nothing could ever move.
    """
    surge = scaled_value(0 if max_surge is None else max_surge, desired, round_up=True)
    unavailable = scaled_value(0 if max_unavailable is None else max_unavailable, desired, round_up=False)
    return (surge, unavailable) if surge or unavailable else (0, 1)


def wanted_replicas(workload: Deployment | ReplicaSet) -> int:
    """`spec.replicas`; the API server fills in 1 when nobody said."""
    return 1 if workload.spec.replicas is None else workload.spec.replicas


def is_rolling(deployment: Deployment) -> bool:
    """Whether the strategy is RollingUpdate."""
    return deployment.spec.strategy.type == ROLLING_UPDATE


def fenceposts(deployment: Deployment) -> tuple[int, int]:
    """Surge and unavailable of a rolling deployment; (0, 0) for any other."""
    rolling = deployment.spec.strategy.rolling_update
    if not is_rolling(deployment) or rolling is None:
        return 0, 0
    return resolve_fenceposts(rolling.max_surge, rolling.max_unavailable, wanted_replicas(deployment))


def max_surge(deployment: Deployment) -> int:
    """How many pods there may be beyond the wanted number."""
    return fenceposts(deployment)[0]


def max_unavailable(deployment: Deployment) -> int:
    """How many of the wanted pods may be unavailable; never more than there are."""
    replicas = wanted_replicas(deployment)
    return min(fenceposts(deployment)[1], replicas) if replicas else 0


def min_available(deployment: Deployment) -> int:
    """How many pods a roll-out must leave available; 0 for Recreate."""
    return wanted_replicas(deployment) - max_unavailable(deployment) if is_rolling(deployment) else 0


def sum_of_wanted(replica_sets: Iterable[ReplicaSet]) -> int:
    """How many pods these replica sets are asked for, together."""
    return sum(wanted_replicas(replica_set) for replica_set in replica_sets)


def new_replica_set_size(deployment: Deployment, all_wanted: int, new_wanted: int) -> int:
    """How large the new replica set may be now.

    Args:
        deployment: Its size, strategy and surge.
        all_wanted: The sum of `spec.replicas` over all its replica sets, the new one included.
        new_wanted: `spec.replicas` of the new one.
    """
    replicas = wanted_replicas(deployment)
    if not is_rolling(deployment):
        return replicas
    rolling = deployment.spec.strategy.rolling_update
    surge = scaled_value(rolling.max_surge or 0, replicas, round_up=True) if rolling is not None else 0
    room = replicas + surge - all_wanted
    return new_wanted + min(room, replicas - new_wanted) if room > 0 else new_wanted
