"""A deployment's mind: from what is wanted and what is there to what must be written.

The order of decisions, first that applies:

1. it is being deleted: only the status is kept up to date;
2. it is paused: scaling still works, and old sets are cleaned up, but no template is rolled out;
3. somebody asks to roll back (the deprecated annotation): its template is replaced;
4. its size has changed since the replica sets last saw it: all are scaled in proportion;
5. otherwise the strategy goes one step: RollingUpdate or Recreate.

There are no expectations here. A deployment writes only sizes of replica sets, and a write on a stale view fails by
its resourceVersion (the shell also waits until it sees its own writes); counting creations that are under way is the
replica set's business, one floor down.

Source: pkg/controller/deployment/{deployment_controller,sync,rolling,recreate,rollback}.go, v1.36.

Differs: one pass makes one write per object. kube-controller-manager writes the conditions, then the revision, then
the counts, each by itself; the state they settle in is the same.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

from skysail.api.apps import Deployment, ReplicaSet
from skysail.api.core import Pod
from skysail.api.meta import LabelSelector
from skysail.controllers.deployment.actions import Action, DeleteReplicaSet, Emit, PatchStatus, Plan, RollBack
from skysail.controllers.deployment.draft import Draft
from skysail.controllers.deployment.fences import (
    RECREATE,
    max_unavailable,
    new_replica_set_size,
    sum_of_wanted,
    wanted_replicas,
)
from skysail.controllers.deployment.revisions import (
    NOT_COPIED,
    REVISION_HISTORY,
    ROLLBACK_TO,
    by_revision,
    last_revision,
    revision_of,
    rollback_revision,
)
from skysail.controllers.deployment.scaling import active, by_creation, is_scaling_event, plan_scale
from skysail.controllers.deployment.status import (
    PROGRESSING,
    SET_CREATE_ERROR,
    condition,
    counted_status,
    has_progress_deadline,
    is_complete,
    paused_condition,
    rollout_status,
    seconds_until_progress_check,
    with_condition,
)
from skysail.controllers.pods import is_terminal
from skysail.controllers.templates import template_without_hash, templates_equal

_KEEP_ALL = 2**31 - 1


def plan_deployment(
    deployment: Deployment,
    replica_sets: Sequence[ReplicaSet],
    pods: Mapping[str, Sequence[Pod]],
    now: datetime,
) -> Plan:
    """What to write, in order, and when to look again.

    Args:
        deployment: As last seen.
        replica_sets: Those it controls.
        pods: Their pods, by the set's uid; only Recreate asks.
        now: The time, in whole seconds where it will be written.
    """
    if deployment.spec.selector == LabelSelector():
        return _plan_selecting_all(deployment)
    draft = Draft(deployment, replica_sets, now)
    if deployment.metadata.deletion_timestamp is not None:
        draft.sync_revision(create=False)
        return draft.finish(counted_status)
    changed = paused_condition(deployment, now)
    if changed is not None:
        draft.set_status(with_condition(deployment.status, changed))
    if deployment.spec.paused:
        return _plan_scaling(draft)
    if rollback_revision(deployment) is not None:
        return _plan_rollback(draft)
    if is_scaling_event(deployment, replica_sets):
        return _plan_scaling(draft)
    if deployment.spec.strategy.type == RECREATE:
        return _plan_recreate(draft, pods)
    return _plan_rolling(draft)


def _plan_selecting_all(deployment: Deployment) -> Plan:
    words = "This deployment is selecting all pods. A non-empty selector is required."
    actions = [Emit("Warning", "SelectingAll", words)]
    draft = Draft(deployment, (), None)
    if deployment.status.observed_generation < deployment.metadata.generation:
        draft.set_status(msgspec.structs.replace(deployment.status, observed_generation=deployment.metadata.generation))
    return Plan((*actions, *draft.actions()))


def _plan_scaling(draft: Draft) -> Plan:
    draft.sync_revision(create=False)
    sizes, renew = plan_scale(draft.deployment, draft.new, draft.old)
    by_name = {item.name: item for item in draft.replica_sets}
    for name, size in sizes.items():
        draft.scale(by_name[name], size, renew=renew)
    if draft.deployment.spec.paused and rollback_revision(draft.deployment) is None:
        _clean_up(draft)
    return draft.finish(counted_status)


def _plan_rolling(draft: Draft) -> Plan:
    draft.sync_revision(create=True)
    moved = _resize_new(draft) or _shrink_old(draft)
    if not moved and is_complete(draft.deployment, draft.deployment.status):
        _clean_up(draft)
    return _finish_rollout(draft)


def _finish_rollout(draft: Draft) -> Plan:
    plan = draft.finish(rollout_status)
    wait = seconds_until_progress_check(draft.deployment, draft.deployment.status, draft.time)
    return Plan(plan.actions, wait)


def _resize_new(draft: Draft) -> bool:
    """Take the new set towards the deployment's size, as far as the surge allows."""
    deployment, new = draft.deployment, draft.current_new
    wanted, has = wanted_replicas(deployment), wanted_replicas(new)
    if has == wanted:
        return False
    size = wanted if has > wanted else new_replica_set_size(deployment, sum_of_wanted(draft.replica_sets), has)
    return draft.scale(new, size)


def _shrink_old(draft: Draft) -> bool:
    """Take the old sets down as far as enough pods stay available: unhealthy pods first, then the oldest sets.

    The new set's pods that are not yet available count as missing, so that a bad template cannot eat up the old pods.
    """
    deployment = draft.deployment
    if sum_of_wanted(draft.old) == 0:
        return False
    new = draft.current_new
    floor = wanted_replicas(deployment) - max_unavailable(deployment)
    missing = wanted_replicas(new) - _available(new)
    limit = sum_of_wanted(draft.replica_sets) - floor - missing
    if limit <= 0:
        return False
    unhealthy = _shrink_unhealthy(draft, limit)
    available = sum(map(_available, (*active(draft.old), new)))
    healthy = _shrink_healthy(draft, available - floor)
    return unhealthy + healthy > 0


def _available(replica_set: ReplicaSet) -> int:
    """How many of its pods are available and will stay.

    A set that was just asked for fewer reports for a moment still the pods it is about to delete; they do not count.
    (kube-controller-manager counts them, and may so for a moment leave too few.)
    """
    return min(replica_set.status.available_replicas, wanted_replicas(replica_set))


def _shrink_unhealthy(draft: Draft, limit: int) -> int:
    removed = 0
    for item in by_creation(active(draft.old)):
        surplus = wanted_replicas(item) - _available(item)
        count = min(limit - removed, surplus)
        if count > 0:
            draft.scale(item, wanted_replicas(item) - count)
            removed += count
    return removed


def _shrink_healthy(draft: Draft, limit: int) -> int:
    removed = 0
    for item in by_creation(active(draft.old)):
        count = min(wanted_replicas(item), limit - removed)
        if count > 0:
            draft.scale(item, wanted_replicas(item) - count)
            removed += count
    return removed


def _plan_recreate(draft: Draft, pods: Mapping[str, Sequence[Pod]]) -> Plan:
    draft.sync_revision(create=False)
    shrinking = [draft.scale(item, 0) for item in active(draft.old)]
    if any(shrinking) or _old_pods_running(draft, pods):
        return _finish_rollout(draft)
    if draft.new is None:
        draft.sync_revision(create=True)
    draft.scale(draft.current_new, wanted_replicas(draft.deployment))
    if is_complete(draft.deployment, draft.deployment.status):
        _clean_up(draft)
    return _finish_rollout(draft)


def _old_pods_running(draft: Draft, pods: Mapping[str, Sequence[Pod]]) -> bool:
    if sum(item.status.replicas for item in draft.old) > 0:
        return True
    new_uid = draft.new.uid if draft.new is not None else None
    return any(not is_terminal(pod) for uid, owned in pods.items() if uid != new_uid for pod in owned)


def _clean_up(draft: Draft) -> None:
    """Delete the oldest empty replica sets beyond the history limit."""
    limit = draft.deployment.spec.revision_history_limit
    if limit is None or limit == _KEEP_ALL:
        return
    alive = [item for item in draft.old if item.metadata.deletion_timestamp is None]
    for item in by_revision(alive)[: max(0, len(alive) - limit)]:
        settled = item.metadata.generation <= item.status.observed_generation
        if settled and item.status.replicas == 0 and wanted_replicas(item) == 0:
            draft.add(DeleteReplicaSet(item))


def _plan_rollback(draft: Draft) -> Plan:
    """Put the template of an earlier revision back (asked for by the deprecated annotation)."""
    draft.sync_revision(create=True)
    deployment = draft.deployment
    wanted = rollback_revision(deployment) or last_revision(draft.replica_sets)
    target = next((item for item in draft.replica_sets if wanted and revision_of(item) == wanted), None)
    annotations = {key: value for key, value in deployment.metadata.annotations.items() if key != ROLLBACK_TO}
    if target is None:
        words = "Unable to find the revision to rollback to." if wanted else "Unable to find last revision."
        event, template = Emit("Warning", "DeploymentRollbackRevisionNotFound", words), None
    elif templates_equal(target.spec.template, deployment.spec.template):
        words = f'The rollback revision contains the same template as current deployment "{deployment.name}"'
        event, template = Emit("Warning", "DeploymentRollbackTemplateUnchanged", words), None
    else:
        words = f'Rolled back deployment "{deployment.name}" to revision {wanted}'
        event, template = Emit("Normal", "DeploymentRollback", words), template_without_hash(target.spec.template)
        annotations = _rolled_back_annotations(annotations, target)
    return Plan((*draft.actions(), RollBack(deployment, template, annotations), event))


def _rolled_back_annotations(current: Mapping[str, str], target: ReplicaSet) -> dict[str, str]:
    kept = {key: value for key, value in current.items() if key in NOT_COPIED and key != REVISION_HISTORY}
    return kept | {key: value for key, value in target.metadata.annotations.items() if key not in NOT_COPIED}


def plan_collision(deployment: Deployment) -> PatchStatus:
    """The new set's name is taken by something else: try another suffix next time."""
    count = (deployment.status.collision_count or 0) + 1
    metadata = {"resourceVersion": deployment.metadata.resource_version}
    return PatchStatus({"metadata": metadata, "status": {"collisionCount": count}})


def plan_failed_creation(deployment: Deployment, name: str, error: str, now: datetime) -> tuple[Action, ...]:
    """The new set could not be made: say so, in an Event and in the Progressing condition."""
    words = f'Failed to create new replica set "{name}": {error}'
    event = Emit("Warning", SET_CREATE_ERROR, words)
    if not has_progress_deadline(deployment):
        return (event,)
    draft = Draft(deployment, (), now)
    failed = condition(PROGRESSING, "False", SET_CREATE_ERROR, words, now)
    draft.set_status(with_condition(deployment.status, failed))
    return (*draft.actions(), event)
