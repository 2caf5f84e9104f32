"""A job's mind: which pods to make, which to delete, and whether it has come to its end.

Source: pkg/controller/job/job_controller.go `syncJob`, `manageJob`, v1.36.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from skysail.api.batch import Job, JobCondition
from skysail.api.core import Pod
from skysail.controllers.job.backoff import finished_at, remaining_seconds
from skysail.controllers.job.indexes import Indexes
from skysail.controllers.job.policies import judge_failure, met_success_rule
from skysail.controllers.job.view import (
    FAILED,
    FAILURE_TARGET,
    SUCCESS_CRITERIA_MET,
    JobView,
    completion_index,
    find_condition,
    has_failed,
    index_failures,
    is_indexed,
    is_suspended,
    replaces_only_failed,
)
from skysail.controllers.pods import is_terminating
from skysail.controllers.replicaset.ranking import rank_active
from skysail.controllers.templates import parse_template

MAX_PODS_PER_PASS = 500
BATCH_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class NewPod:
    """A pod to make.

    Attributes:
        index: Its completion index; None for a job without.
        failures: How often the index has failed before; None when failures are not counted by index.
        ignored_failures: Of those, how many did not count.
    """

    index: int | None = None
    failures: int | None = None
    ignored_failures: int = 0


@dataclass(frozen=True, slots=True)
class JobPlan:
    """What one pass does about the pods.

    Attributes:
        finished: The condition that ends the job, if it is to end.
        end: Active pods to delete because the job ends.
        remove: Pods too many: their finalizer goes first, then they do.
        create: Pods to make.
        managed: Whether the number of pods was looked at at all.
        wait_seconds: How long to wait before more pods may be made; None when nothing waits.
        deadline_seconds: How long until the job's deadline; None without one.
    """

    finished: JobCondition | None = None
    end: tuple[Pod, ...] = ()
    remove: tuple[Pod, ...] = ()
    create: tuple[NewPod, ...] = ()
    managed: bool = False
    wait_seconds: float | None = None
    deadline_seconds: float | None = None


def job_condition(condition_type: str, reason: str, message: str, now: datetime, status: str = "True") -> JobCondition:
    """A condition that came about now."""
    moment = now.replace(microsecond=0)
    return JobCondition(
        type=condition_type,
        status=status,
        reason=reason,
        message=message,
        last_probe_time=moment,
        last_transition_time=moment,
    )


def plan_job(view: JobView, *, expectations_met: bool) -> JobPlan:
    """What to do about the job's pods.

    Args:
        view: The facts.
        expectations_met: Whether everything made or deleted before has been seen.
    """
    finished, deadline = _end_condition(view)
    if finished is not None:
        return JobPlan(finished, end=view.active, deadline_seconds=deadline)
    if not expectations_met or view.job.metadata.deletion_timestamp is not None:
        return JobPlan(deadline_seconds=deadline)
    plan = _plan_pods(view)
    return JobPlan(
        remove=plan.remove,
        create=plan.create,
        managed=True,
        wait_seconds=plan.wait_seconds,
        deadline_seconds=deadline,
    )


def _end_condition(view: JobView) -> tuple[JobCondition | None, float | None]:
    """The condition that ends the job, or how long until its deadline."""
    finished = _decided_before(view) or _failed_by_policy(view)
    if finished is not None:
        return finished, None
    if view.failed > (view.spec.backoff_limit or 0) or _too_many_restarts(view):
        words = "Job has reached the specified backoff limit"
        return job_condition(FAILURE_TARGET, "BackoffLimitExceeded", words, view.now), None
    left = _seconds_to_deadline(view.job, view.now)
    if left is not None and left <= 0:
        words = "Job was active longer than specified deadline"
        return job_condition(FAILURE_TARGET, "DeadlineExceeded", words, view.now), None
    return _end_by_indexes(view), left


def _decided_before(view: JobView) -> JobCondition | None:
    for condition_type in (SUCCESS_CRITERIA_MET, FAILURE_TARGET):
        found = find_condition(view.job, condition_type)
        if found is not None and found.status == "True":
            if condition_type == SUCCESS_CRITERIA_MET:
                return found
            return job_condition(FAILED, found.reason, found.message, view.now)
    return None


def _failed_by_policy(view: JobView) -> JobCondition | None:
    if view.spec.pod_failure_policy is None:
        return None
    for pod in view.pods:
        if has_failed(pod, view.spec) and (words := judge_failure(view.spec.pod_failure_policy, pod).message):
            return job_condition(FAILURE_TARGET, "PodFailurePolicy", words, view.now)
    return None


def _too_many_restarts(view: JobView) -> bool:
    """Pods restarted in place by the kubelet count by their restarts."""
    if parse_template(view.spec.template).get("spec", {}).get("restartPolicy") != "OnFailure":
        return False
    restarts = sum(
        status.restart_count
        for pod in view.pods
        if pod.status.phase in ("Running", "Pending")
        for status in (*pod.status.init_container_statuses, *pod.status.container_statuses)
    )
    limit = view.spec.backoff_limit or 0
    return restarts >= limit if limit else restarts > 0


def _seconds_to_deadline(job: Job, now: datetime) -> float | None:
    limit, start = job.spec.active_deadline_seconds, job.status.start_time
    if limit is None or start is None or is_suspended(job):
        return None
    return limit - (now - start).total_seconds()


def _end_by_indexes(view: JobView) -> JobCondition | None:
    if not is_indexed(view.job):
        return None
    if view.given_up is not None:
        most = view.spec.max_failed_indexes
        if most is not None and len(view.given_up) > most:
            words = "Job has exceeded the specified maximal number of failed indexes"
            return job_condition(FAILURE_TARGET, "MaxFailedIndexesExceeded", words, view.now)
        if view.given_up and len(view.given_up) + len(view.done) >= view.completions:
            return job_condition(FAILURE_TARGET, "FailedIndexes", "Job has failed indexes", view.now)
    words = met_success_rule(view.spec, view.done)
    return job_condition(SUCCESS_CRITERIA_MET, "SuccessPolicy", words, view.now) if words else None


def _plan_pods(view: JobView) -> JobPlan:
    if is_suspended(view.job):
        return JobPlan(remove=tuple(pods_for_removal(view, len(view.active))))
    wanted = _wanted_active(view)
    surplus = pods_for_removal(view, max(0, len(view.active) - wanted))[:MAX_PODS_PER_PASS]
    if surplus:
        return JobPlan(remove=tuple(surplus))
    held = view.terminating if replaces_only_failed(view.spec) else 0
    missing = wanted - held - len(view.active)
    return _plan_creation(view, min(missing, MAX_PODS_PER_PASS)) if missing > 0 else JobPlan()


def _wanted_active(view: JobView) -> int:
    parallelism = 1 if view.spec.parallelism is None else view.spec.parallelism
    if view.spec.completions is None:
        return len(view.active) if view.succeeded > 0 else parallelism
    return max(0, min(view.spec.completions - view.succeeded, parallelism))


def _plan_creation(view: JobView, missing: int) -> JobPlan:
    per_index = view.spec.backoff_limit_per_index is not None
    wait = 0.0 if per_index else view.backoff.remaining_seconds(view.now)
    if wait > 0:
        return JobPlan(wait_seconds=max(wait, BATCH_SECONDS))
    if not is_indexed(view.job):
        return JobPlan(create=(NewPod(),) * missing)
    indexes = _pending_indexes(view, missing)
    if not per_index:
        return JobPlan(create=tuple(NewPod(index) for index in indexes))
    waits = {index: _index_wait(view, index) for index in indexes}
    ready = [index for index in indexes if waits[index] == 0]
    if not ready and waits:
        return JobPlan(wait_seconds=max(min(waits.values()), BATCH_SECONDS))
    return JobPlan(create=tuple(_replacement(view, index) for index in ready))


def _pending_indexes(view: JobView, count: int) -> list[int]:
    busy = set(map(completion_index, view.active))
    if replaces_only_failed(view.spec):
        busy |= set(map(completion_index, filter(is_terminating, view.pods)))
    taken = view.done | Indexes.of(index for index in busy if index is not None)
    if view.given_up is not None:
        taken |= view.given_up
    return taken.first_missing(count, view.completions)


def _index_wait(view: JobView, index: int) -> float:
    failed = view.delayed.get(index)
    if failed is None:
        return 0.0
    return remaining_seconds(sum(index_failures(failed)) + 1, finished_at(failed), view.now)


def _replacement(view: JobView, index: int) -> NewPod:
    """The next pod of an index, with the failures it inherits."""
    failed = view.delayed.get(index)
    if failed is None:
        return NewPod(index, 0)
    counted, ignored = index_failures(failed)
    if judge_failure(view.spec.pod_failure_policy, failed).counts:
        return NewPod(index, counted + 1, ignored)
    return NewPod(index, counted, ignored + 1)


def pods_for_removal(view: JobView, at_least: int) -> list[Pod]:
    """Active pods to remove: of an indexed job first those without, beyond, or beside another of the same index."""
    removed, left = _split_duplicates(view) if is_indexed(view.job) else ([], list(view.active))
    if len(removed) < at_least:
        removed += rank_active(left)[: at_least - len(removed)]
    return removed


def _split_duplicates(view: JobView) -> tuple[list[Pod], list[Pod]]:
    removed: list[Pod] = []
    left: list[Pod] = []
    for index, pods in _by_index(view.active):
        if index is None or index >= view.completions:
            removed += pods
        else:
            ranked = rank_active(pods) if len(pods) > 1 else list(pods)
            removed += ranked[:-1]
            left.append(ranked[-1])
    return removed, left


def _by_index(pods: Iterable[Pod]) -> Iterable[tuple[int | None, Sequence[Pod]]]:
    groups: dict[int | None, list[Pod]] = {}
    for pod in pods:
        groups.setdefault(completion_index(pod), []).append(pod)
    return groups.items()
