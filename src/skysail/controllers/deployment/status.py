"""What a deployment's status says: counts, availability, and whether the roll-out gets anywhere.

The Progressing condition is the clock of the progress deadline: every sign of progress renews its `lastUpdateTime`, and
when that has become older than the deadline the roll-out has timed out. That is reported, and nothing else is done.

Source: pkg/controller/deployment/{sync.go,progress.go}, util/deployment_util.go, v1.36.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from skysail.api.apps import Deployment, DeploymentCondition, DeploymentStatus, ReplicaSet
from skysail.controllers.deployment.fences import max_unavailable, sum_of_wanted, wanted_replicas

AVAILABLE, PROGRESSING, REPLICA_FAILURE = "Available", "Progressing", "ReplicaFailure"
NEW_SET_AVAILABLE, NEW_SET_CREATED, NEW_SET_FOUND = (
    "NewReplicaSetAvailable",
    "NewReplicaSetCreated",
    "FoundNewReplicaSet",
)
SET_UPDATED, SET_CREATE_ERROR, TIMED_OUT = "ReplicaSetUpdated", "ReplicaSetCreateError", "ProgressDeadlineExceeded"
PAUSED, RESUMED = "DeploymentPaused", "DeploymentResumed"

_FOREVER = 2**31 - 1


def condition_of(status: DeploymentStatus, condition_type: str) -> DeploymentCondition | None:
    """The condition of that type, if there is one."""
    return next((item for item in status.conditions if item.type == condition_type), None)


def condition(condition_type: str, status: str, reason: str, message: str, now: datetime) -> DeploymentCondition:
    """A condition that came about now."""
    return DeploymentCondition(
        type=condition_type, status=status, reason=reason, message=message, last_update_time=now,
        last_transition_time=now,
    )  # fmt: skip


def without(conditions: Iterable[DeploymentCondition], condition_type: str) -> tuple[DeploymentCondition, ...]:
    """The conditions of every other type."""
    return tuple(item for item in conditions if item.type != condition_type)


def with_condition(status: DeploymentStatus, new: DeploymentCondition) -> DeploymentStatus:
    """The status with that condition; unchanged when one of the same status and reason stands already."""
    current = condition_of(status, new.type)
    if current is not None and current.status == new.status:
        if current.reason == new.reason:
            return status
        new = msgspec.structs.replace(new, last_transition_time=current.last_transition_time)
    return msgspec.structs.replace(status, conditions=(*without(status.conditions, new.type), new))


def has_progress_deadline(deployment: Deployment) -> bool:
    """Whether anybody wants to hear of a lack of progress."""
    return deployment.spec.progress_deadline_seconds not in (None, _FOREVER)


def is_complete(deployment: Deployment, status: DeploymentStatus) -> bool:
    """Whether all wanted pods are of the new template and available, and no others are there."""
    replicas = wanted_replicas(deployment)
    return (
        status.updated_replicas == status.replicas == status.available_replicas == replicas
        and status.observed_generation >= deployment.metadata.generation
    )


def has_progressed(old: DeploymentStatus, new: DeploymentStatus) -> bool:
    """Whether more new, ready or available pods, or fewer old ones, are there than before."""
    return (
        new.updated_replicas > old.updated_replicas
        or new.replicas - new.updated_replicas < old.replicas - old.updated_replicas
        or new.ready_replicas > old.ready_replicas
        or new.available_replicas > old.available_replicas
    )


def has_timed_out(deployment: Deployment, status: DeploymentStatus, now: datetime) -> bool:
    """Whether the last sign of progress is older than the deadline."""
    current, deadline = condition_of(status, PROGRESSING), deployment.spec.progress_deadline_seconds
    if current is None or deadline is None or current.reason == NEW_SET_AVAILABLE:
        return False
    if current.reason == TIMED_OUT:
        return True
    return current.last_update_time is None or (now - current.last_update_time).total_seconds() > deadline


def counted_status(
    deployment: Deployment, replica_sets: Sequence[ReplicaSet], new: ReplicaSet | None, now: datetime
) -> DeploymentStatus:
    """The counts of all replica sets, and the Available condition; the other conditions stay."""
    available = sum(item.status.available_replicas for item in replica_sets)
    status = DeploymentStatus(
        observed_generation=deployment.metadata.generation,
        replicas=sum(item.status.replicas for item in replica_sets),
        updated_replicas=new.status.replicas if new is not None else 0,
        ready_replicas=sum(item.status.ready_replicas for item in replica_sets),
        available_replicas=available,
        unavailable_replicas=max(0, sum_of_wanted(replica_sets) - available),
        terminating_replicas=_terminating(replica_sets),
        collision_count=deployment.status.collision_count,
        conditions=deployment.status.conditions,
    )
    if available >= wanted_replicas(deployment) - max_unavailable(deployment):
        reached = condition(AVAILABLE, "True", "MinimumReplicasAvailable", "Deployment has minimum availability.", now)
    else:
        reached = condition(
            AVAILABLE, "False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.", now
        )
    return with_condition(status, reached)


def _terminating(replica_sets: Iterable[ReplicaSet]) -> int | None:
    """The sum, or None while a set that has been looked after does not say."""
    total = 0
    for item in replica_sets:
        if item.status.terminating_replicas is not None:
            total += item.status.terminating_replicas
        elif item.status.observed_generation:
            return None
    return total


def rollout_status(
    deployment: Deployment, replica_sets: Sequence[ReplicaSet], new: ReplicaSet | None, now: datetime
) -> DeploymentStatus:
    """The counted status with the Progressing and ReplicaFailure conditions of a roll-out."""
    status = counted_status(deployment, replica_sets, new, now)
    if not has_progress_deadline(deployment):
        status = msgspec.structs.replace(status, conditions=without(status.conditions, PROGRESSING))
    else:
        status = _with_progress(deployment, status, new, now)
    failure = _replica_failure(replica_sets, new)
    if failure is None:
        return msgspec.structs.replace(status, conditions=without(status.conditions, REPLICA_FAILURE))
    return with_condition(status, failure)


def _with_progress(
    deployment: Deployment, status: DeploymentStatus, new: ReplicaSet | None, now: datetime
) -> DeploymentStatus:
    current = condition_of(deployment.status, PROGRESSING)
    if status.replicas == status.updated_replicas and current is not None and current.reason == NEW_SET_AVAILABLE:
        return status
    subject = f'Deployment "{deployment.name}"' if new is None else f'ReplicaSet "{new.name}"'
    if is_complete(deployment, status):
        done = condition(PROGRESSING, "True", NEW_SET_AVAILABLE, f"{subject} has successfully progressed.", now)
        return with_condition(status, done)
    if has_progressed(deployment.status, status):
        moving = condition(PROGRESSING, "True", SET_UPDATED, f"{subject} is progressing.", now)
        if current is not None and current.status == "True":
            moving = msgspec.structs.replace(moving, last_transition_time=current.last_transition_time)
        return msgspec.structs.replace(status, conditions=(*without(status.conditions, PROGRESSING), moving))
    if has_timed_out(deployment, status, now):
        late = condition(PROGRESSING, "False", TIMED_OUT, f"{subject} has timed out progressing.", now)
        return with_condition(status, late)
    return status


def _replica_failure(replica_sets: Iterable[ReplicaSet], new: ReplicaSet | None) -> DeploymentCondition | None:
    """The first failure a replica set reports, the new one's before all others."""
    for item in ([new] if new is not None else []) + list(replica_sets):
        for failure in item.status.conditions:
            if failure.type == REPLICA_FAILURE:
                return DeploymentCondition(
                    type=failure.type, status=failure.status, reason=failure.reason, message=failure.message,
                    last_transition_time=failure.last_transition_time, last_update_time=failure.last_transition_time,
                )  # fmt: skip
    return None


def paused_condition(deployment: Deployment, now: datetime) -> DeploymentCondition | None:
    """The condition that pausing or resuming calls for; None when it stands, or nobody set a deadline.

    A roll-out that has timed out keeps saying so.
    """
    current = condition_of(deployment.status, PROGRESSING)
    if not has_progress_deadline(deployment) or (current is not None and current.reason == TIMED_OUT):
        return None
    was_paused = current is not None and current.reason == PAUSED
    if deployment.spec.paused == was_paused:
        return None
    if deployment.spec.paused:
        return condition(PROGRESSING, "Unknown", PAUSED, "Deployment is paused", now)
    return condition(PROGRESSING, "Unknown", RESUMED, "Deployment is resumed", now)


def seconds_until_progress_check(deployment: Deployment, status: DeploymentStatus, now: datetime) -> float | None:
    """When to look again whether the roll-out has timed out; None when there is nothing to wait for."""
    current, deadline = condition_of(status, PROGRESSING), deployment.spec.progress_deadline_seconds
    if current is None or deadline is None or not has_progress_deadline(deployment):
        return None
    if is_complete(deployment, status) or current.reason == TIMED_OUT or current.last_update_time is None:
        return None
    left = deadline - (now - current.last_update_time).total_seconds()
    return max(left, 0.0) + 1.0
