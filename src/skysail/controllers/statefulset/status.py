"""What a stateful set reports.

Source: pkg/controller/statefulset/stateful_set_control.go, v1.36.
"""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from skysail.api.apps import StatefulSet, StatefulSetStatus
from skysail.api.core import Pod
from skysail.controllers.pods import is_available, is_ready
from skysail.controllers.statefulset.identity import revision_of, wanted_replicas
from skysail.controllers.statefulset.plan import Revisions

_COMPARED = (
    "replicas",
    "current_replicas",
    "ready_replicas",
    "updated_replicas",
    "available_replicas",
    "current_revision",
    "update_revision",
)


def stateful_set_status(
    stateful_set: StatefulSet,
    pods: Sequence[Pod],
    revisions: Revisions,
    collisions: int,
    outdated_deleted: int,
    now: datetime,
) -> StatefulSetStatus:
    """The status to report.

    Args:
        stateful_set: As read.
        pods: Its pods, as they were before this pass.
        revisions: Current and update.
        collisions: The collision count.
        outdated_deleted: How many pods of the current revision this pass deleted.
        now: For availability.
    """
    ready = [pod for pod in pods if pod.status.phase == "Running" and is_ready(pod)]
    staying = [revision_of(pod) for pod in pods if pod.status.phase and pod.metadata.deletion_timestamp is None]
    status = StatefulSetStatus(
        observed_generation=stateful_set.metadata.generation,
        replicas=sum(bool(pod.status.phase) for pod in pods),
        ready_replicas=len(ready),
        available_replicas=sum(is_available(pod, stateful_set.spec.min_ready_seconds, now) for pod in ready),
        current_replicas=staying.count(revisions.current) - outdated_deleted,
        updated_replicas=staying.count(revisions.update),
        current_revision=revisions.current,
        update_revision=revisions.update,
        collision_count=collisions,
        conditions=stateful_set.status.conditions,
    )
    return _completed(stateful_set, status)


def _completed(stateful_set: StatefulSet, status: StatefulSetStatus) -> StatefulSetStatus:
    """When a roll-out has come to its end, the update revision becomes the current one."""
    wanted = wanted_replicas(stateful_set)
    rolling = stateful_set.spec.update_strategy.type == "RollingUpdate"
    if rolling and status.updated_replicas == status.ready_replicas == status.replicas == wanted:
        return msgspec.structs.replace(
            status, current_replicas=status.updated_replicas, current_revision=status.update_revision
        )
    return status


def is_worth_writing(old: StatefulSetStatus, new: StatefulSetStatus) -> bool:
    """Whether anything but the collision count and conditions has changed."""
    if new.observed_generation > old.observed_generation:
        return True
    return any(getattr(old, field) != getattr(new, field) for field in _COMPARED)
