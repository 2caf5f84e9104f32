"""A replica set's mind: how many pods to make, which to delete, and what to report.

Making and deleting waits until everything asked for before has been seen (the expectations, which the shell holds);
the status never waits.

Source: pkg/controller/replicaset/{replica_set,replica_set_utils}.go, v1.36.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from skysail.api.apps import ReplicaSet, ReplicaSetCondition, ReplicaSetStatus
from skysail.api.core import Pod
from skysail.controllers.pods import is_available, is_ready, seconds_until_next_available
from skysail.controllers.replicaset.ranking import pods_to_delete
from skysail.controllers.templates import template_labels

BURST_REPLICAS = 500
REPLICA_FAILURE = "ReplicaFailure"
_GATHER_FROM, _GATHER_MOST = 200, 1.0


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do about the number of pods: make some, delete some, or nothing."""

    create: int = 0
    delete: tuple[Pod, ...] = ()


def wanted(replica_set: ReplicaSet) -> int:
    """`spec.replicas`; the API server fills in 1 when nobody said."""
    return 1 if replica_set.spec.replicas is None else replica_set.spec.replicas


def gathering_seconds(replica_set: ReplicaSet) -> float:
    """How long news of single pods gathers before the whole set is counted again.

    Nothing for small sets. A pass looks at every pod, so a large set that ran for each pod's every change would take
    time by the square of its size; kube-controller-manager gathers, too, if only because its passes take long.
    """
    size = max(wanted(replica_set), replica_set.status.replicas)
    return 0.0 if size < _GATHER_FROM else min(size / 10_000, _GATHER_MOST)


def plan_replicas(
    replica_set: ReplicaSet, pods: Sequence[Pod], related: Sequence[Pod], now: datetime, burst: int = BURST_REPLICAS
) -> Plan:
    """How to come closer to the wanted number, at most `burst` pods at a time.

    Args:
        replica_set: How many pods are wanted.
        pods: Its active pods.
        related: The pods of all replica sets of the same owner, for ranking by co-location.
        now: For ranking by age.
        burst: The most pods made or deleted in one pass.
    """
    if replica_set.metadata.deletion_timestamp is not None:
        return Plan()
    surplus = len(pods) - wanted(replica_set)
    if surplus < 0:
        return Plan(create=min(-surplus, burst))
    if surplus > 0:
        return Plan(delete=pods_to_delete(pods, related, min(surplus, burst), now))
    return Plan()


def replica_set_status(
    replica_set: ReplicaSet, active: Sequence[Pod], terminating: int, failure: str, now: datetime
) -> ReplicaSetStatus:
    """The status to report; equal to the present one when nothing has changed.

    Args:
        replica_set: As read.
        active: Its active pods as they were before this pass made or deleted any.
        terminating: How many of its pods are on their way out.
        failure: Why making or deleting failed in this pass; empty when it did not.
        now: For availability and the condition's time.
    """
    labels = template_labels(replica_set.spec.template)
    ready = [pod for pod in active if is_ready(pod)]
    min_ready_seconds = replica_set.spec.min_ready_seconds
    return ReplicaSetStatus(
        replicas=len(active),
        fully_labeled_replicas=sum(_carries(pod.metadata.labels, labels) for pod in active),
        ready_replicas=len(ready),
        available_replicas=sum(is_available(pod, min_ready_seconds, now) for pod in ready),
        terminating_replicas=terminating,
        observed_generation=replica_set.metadata.generation,
        conditions=_conditions(replica_set, len(active), failure, now),
    )


def _carries(labels: Mapping[str, str], needed: Mapping[str, str]) -> bool:
    return all(labels.get(key) == value for key, value in needed.items())


def _conditions(replica_set: ReplicaSet, active: int, failure: str, now: datetime) -> tuple[ReplicaSetCondition, ...]:
    """The failure condition appears with the first failure, keeps its first words, and goes with the first success."""
    current = replica_set.status.conditions
    has_failed = any(item.type == REPLICA_FAILURE for item in current)
    if not failure:
        return tuple(item for item in current if item.type != REPLICA_FAILURE) if has_failed else current
    if has_failed:
        return current
    reason = {-1: "FailedCreate", 1: "FailedDelete", 0: ""}[_sign(active - wanted(replica_set))]
    return (
        *current,
        ReplicaSetCondition(
            type=REPLICA_FAILURE, status="True", reason=reason, message=failure, last_transition_time=now
        ),
    )


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)


def seconds_until_next_check(
    replica_set: ReplicaSet, status: ReplicaSetStatus, active: Sequence[Pod], now: datetime
) -> float | None:
    """When a ready pod becomes available by the mere passing of time; None when none is on its way."""
    min_ready_seconds = replica_set.spec.min_ready_seconds
    if min_ready_seconds <= 0 or status.ready_replicas == status.available_replicas:
        return None
    found = seconds_until_next_available(active, min_ready_seconds, now)
    return float(min_ready_seconds) if found is None else found
