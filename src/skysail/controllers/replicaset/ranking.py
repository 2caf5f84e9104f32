"""Which pods go first when a replica set has too many.

The order is a comparison, not a key: two ready times (or creation times) whose ages fall in the same power of two are
told apart by uid, and rules after that one are then not asked. So the sort is stable only in what it prefers, which is
what Kubernetes promises, too.

Source: pkg/controller/controller_utils.go `ActivePodsWithRanks`, pkg/controller/replicaset/replica_set.go
`getPodsToDelete`, v1.36.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cmp_to_key

from skysail.api.core import Pod
from skysail.controllers.pods import is_active, is_ready, max_container_restarts, ready_since

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"

_PHASE_ORDER = {"Pending": 0, "": 0, "Unknown": 1, "Running": 2}
_MAX_COST = 2**31 - 1
_COST = re.compile(r"-[0-9]+|0|[1-9][0-9]*")


@dataclass(frozen=True, slots=True)
class RankedPod:
    """A pod with everything its rank depends on, computed once.

    Attributes:
        pod: The pod.
        colocated: How many active pods of the same owner's replica sets share its node.
        sort_head: The rules that order by plain values, in order; the smaller goes first.
        ready_at: When it became ready, None when it is not or nobody knows.
    """

    pod: Pod
    colocated: int
    sort_head: tuple[int, ...]
    ready: bool
    ready_at: datetime | None
    restarts: tuple[int, int]


def deletion_cost(pod: Pod) -> int:
    """The pod's deletion cost annotation; 0 when absent, out of int32, or with a plus sign or leading zeros."""
    text = pod.metadata.annotations.get(DELETION_COST, "")
    if not _COST.fullmatch(text):
        return 0
    cost = int(text)
    return cost if -_MAX_COST - 1 <= cost <= _MAX_COST else 0


def pods_to_delete(pods: Sequence[Pod], related: Sequence[Pod], count: int, now: datetime) -> tuple[Pod, ...]:
    """The `count` pods to delete, first the one that is missed least.

    Args:
        pods: The replica set's active pods.
        related: The pods of all replica sets of the same owner, for the co-location count; usually contains `pods`.
        count: How many; when it covers all, they come in the order given.
        now: For ages.
    """
    if count >= len(pods):
        return tuple(pods[:count])
    return tuple(rank_for_deletion(pods, related, now)[:count])


def rank_for_deletion(pods: Sequence[Pod], related: Sequence[Pod], now: datetime) -> list[Pod]:
    """All pods in deletion order."""
    on_node = Counter(pod.spec.node_name for pod in related if is_active(pod))
    ranked = [_ranked(pod, on_node[pod.spec.node_name]) for pod in pods]
    ranked.sort(key=cmp_to_key(lambda left, right: compare(left, right, now)))
    return [entry.pod for entry in ranked]


def _ranked(pod: Pod, colocated: int) -> RankedPod:
    ready = is_ready(pod)
    head = (
        1 if pod.spec.node_name else 0,
        _PHASE_ORDER.get(pod.status.phase, 0),
        1 if ready else 0,
        deletion_cost(pod),
        -colocated,
    )
    return RankedPod(pod, colocated, head, ready, ready_since(pod), max_container_restarts(pod))


def compare(left: RankedPod, right: RankedPod, now: datetime) -> int:
    """Negative when `left` goes before `right`."""
    if left.sort_head != right.sort_head:
        return -1 if left.sort_head < right.sort_head else 1
    if left.ready and left.ready_at != right.ready_at:
        return _compare_times(left.ready_at, right.ready_at, left.pod, right.pod, now)
    if left.restarts != right.restarts:
        return -1 if left.restarts > right.restarts else 1
    born_left, born_right = left.pod.metadata.creation_timestamp, right.pod.metadata.creation_timestamp
    if born_left != born_right:
        return _compare_times(born_left, born_right, left.pod, right.pod, now)
    return 0


def _compare_times(left: datetime | None, right: datetime | None, a: Pod, b: Pod, now: datetime) -> int:
    """The younger goes first, in logarithmic steps; an unknown time counts as youngest."""
    if left is None or right is None:
        return -1 if left is None else 1
    difference = age_bucket(left, now) - age_bucket(right, now)
    if difference == 0:
        return (a.metadata.uid > b.metadata.uid) - (a.metadata.uid < b.metadata.uid)
    return -1 if difference < 0 else 1


def age_bucket(moment: datetime, now: datetime) -> int:
    """The power of two, in nanoseconds, that the age falls in; -1 when it is not positive."""
    age = (now - moment) // timedelta(microseconds=1) * 1000
    return int(math.log2(age)) if age > 0 else -1


def rank_active(pods: Sequence[Pod]) -> list[Pod]:
    """Deletion order without costs, co-location or logarithmic ages: what jobs, and other owners, use.

    Source: pkg/controller/controller_utils.go `ActivePods`, v1.36.
    """
    return sorted(pods, key=_plain_rank)


def _plain_rank(pod: Pod) -> tuple[int, int, int, float, int, int, float]:
    regular, sidecar = max_container_restarts(pod)
    ready = is_ready(pod)
    return (
        1 if pod.spec.node_name else 0,
        _PHASE_ORDER.get(pod.status.phase, 0),
        1 if ready else 0,
        _youngest_first(ready_since(pod)) if ready else 0.0,
        -regular,
        -sidecar,
        _youngest_first(pod.metadata.creation_timestamp),
    )


def _youngest_first(moment: datetime | None) -> float:
    return -math.inf if moment is None else -moment.timestamp()
