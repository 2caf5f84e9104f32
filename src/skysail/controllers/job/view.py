"""The facts of one pass over a job: its pods sorted out, its counts, its indexes.

A finished pod is counted exactly once although the count and the pod live in two objects. Every pod carries a tracking
finalizer; a pass first writes the finished pod's uid into `status.uncountedTerminatedPods`, then takes the finalizer
off, then moves the uid into the counter. So a pod counts when it carries the finalizer, or its uid stands in that list.

Source: pkg/controller/job/job_controller.go, indexed_job_utils.go, v1.36.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from skysail.api.batch import Job, JobCondition, JobSpec
from skysail.api.core import Pod
from skysail.controllers.job.backoff import BackoffRecord, finished_at
from skysail.controllers.job.indexes import Indexes
from skysail.controllers.job.policies import judge_failure
from skysail.controllers.pods import is_active, is_ready, is_terminating

TRACKING_FINALIZER = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"
INDEX_FAILURES = "batch.kubernetes.io/job-index-failure-count"
INDEX_IGNORED_FAILURES = "batch.kubernetes.io/job-index-ignored-failure-count"
CONTROLLER_NAME = "kubernetes.io/job-controller"
COMPLETE, FAILED, SUSPENDED = "Complete", "Failed", "Suspended"
SUCCESS_CRITERIA_MET, FAILURE_TARGET = "SuccessCriteriaMet", "FailureTarget"


def find_condition(job: Job, condition_type: str) -> JobCondition | None:
    """The job's condition of that type, if it has one."""
    return next((item for item in job.status.conditions if item.type == condition_type), None)


def is_finished(job: Job) -> bool:
    """Whether the job is complete or has failed."""
    return any(item.type in (COMPLETE, FAILED) and item.status == "True" for item in job.status.conditions)


def is_suspended(job: Job) -> bool:
    """Whether nobody is to run at the moment."""
    return bool(job.spec.suspend)


def is_indexed(job: Job) -> bool:
    """Whether each pod stands for one completion index."""
    return job.spec.completion_mode == "Indexed"


def is_managed_elsewhere(job: Job) -> bool:
    """Whether another controller than the built-in one looks after the job."""
    return job.spec.managed_by not in (None, CONTROLLER_NAME)


def replaces_only_failed(spec: JobSpec) -> bool:
    """Whether a pod that is still terminating keeps its place."""
    return spec.pod_replacement_policy == "Failed" or spec.pod_failure_policy is not None


def has_tracking_finalizer(pod: Pod) -> bool:
    """Whether the pod has not been counted to the end yet."""
    return TRACKING_FINALIZER in pod.metadata.finalizers


def has_failed(pod: Pod, spec: JobSpec) -> bool:
    """Whether the pod counts as failed: it has, or it is being deleted and will be replaced at once."""
    if pod.status.phase == "Failed":
        return True
    being_deleted = pod.metadata.deletion_timestamp is not None
    return being_deleted and pod.status.phase != "Succeeded" and not replaces_only_failed(spec)


def completion_index(pod: Pod) -> int | None:
    """The pod's completion index; None when it has none, or no sensible one."""
    text = pod.metadata.annotations.get(INDEX, "")
    return int(text) if text.isascii() and text.isdigit() else None


def index_failures(pod: Pod) -> tuple[int, int]:
    """How often its index had failed before this pod: counted and ignored failures."""
    return _count(pod, INDEX_FAILURES), _count(pod, INDEX_IGNORED_FAILURES)


def _count(pod: Pod, annotation: str) -> int:
    text = pod.metadata.annotations.get(annotation, "")
    return int(text) if text.isascii() and text.isdigit() and int(text) < 2**31 else 0


@dataclass(frozen=True, slots=True)
class JobView:
    """One job and its pods at one moment.

    Attributes:
        job: As read, with a start time if it is running.
        pods: All its pods; of an indexed job in the order of their indexes.
        active: Those that run or may yet run.
        released: Uids of pods whose finalizer was taken off although the cache still shows it.
        ready: How many active pods are ready.
        terminating: How many pods are on their way out.
        succeeded: How many have succeeded, uncounted ones included; of an indexed job, how many indexes.
        failed: How many have failed in a way that counts.
        previous: The indexes that were known to be done.
        done: The indexes that are done.
        given_up: The indexes that have failed for good; None when failures are not counted by index.
        delayed: By index, the failed pod that is kept until its replacement may be made.
        backoff: The record of failures after this pass.
        now: The time.
    """

    job: Job
    pods: tuple[Pod, ...]
    active: tuple[Pod, ...]
    released: frozenset[str]
    ready: int
    terminating: int
    succeeded: int
    failed: int
    previous: Indexes
    done: Indexes
    given_up: Indexes | None
    delayed: dict[int, Pod]
    backoff: BackoffRecord
    now: datetime

    @property
    def spec(self) -> JobSpec:
        """The job's spec."""
        return self.job.spec

    @property
    def completions(self) -> int:
        """`spec.completions` where it is known to be set."""
        return self.job.spec.completions or 0

    def is_uncounted(self, pod: Pod) -> bool:
        """Whether the pod still carries the finalizer, as far as we know."""
        return has_tracking_finalizer(pod) and pod.uid not in self.released


def view_job(job: Job, pods: Sequence[Pod], released: frozenset[str], backoff: BackoffRecord, now: datetime) -> JobView:
    """Work the facts out.

    Args:
        job: As read; with the start time this pass gives it.
        pods: All pods it owns.
        released: Uids of pods whose finalizer is known to be gone.
        backoff: The record of failures so far.
        now: The time.
    """
    indexed = is_indexed(job)
    ordered = tuple(sorted(pods, key=lambda pod: _order(completion_index(pod)))) if indexed else tuple(pods)
    active = tuple(pod for pod in ordered if is_active(pod))
    uncounted = job.status.uncounted_terminated_pods
    known_succeeded = frozenset(uncounted.succeeded if uncounted else ())
    known_failed = frozenset(uncounted.failed if uncounted else ())
    succeeded = list(_fresh(job, ordered, released, known_succeeded, lambda pod: pod.status.phase == "Succeeded"))
    failed = list(_fresh(job, ordered, released, known_failed, lambda pod: has_failed(pod, job.spec)))
    counted_failures = [pod for pod in failed if judge_failure(job.spec.pod_failure_policy, pod).counts]
    previous, done, given_up = _indexes(job, ordered) if indexed else (Indexes(), Indexes(), None)
    return JobView(
        job=job,
        pods=ordered,
        active=active,
        released=released,
        ready=sum(map(is_ready, active)),
        terminating=sum(map(is_terminating, ordered)),
        succeeded=len(done) if indexed else job.status.succeeded + len(succeeded) + len(known_succeeded),
        failed=job.status.failed + len(counted_failures) + len(known_failed),
        previous=previous,
        done=done,
        given_up=given_up,
        delayed=_delayed(job, ordered, active, released, done, given_up) if given_up is not None else {},
        backoff=backoff.after(succeeded, failed),
        now=now,
    )


def _order(index: int | None) -> int:
    return -1 if index is None else index


def _is_valid(job: Job, pod: Pod) -> bool:
    """Whether the pod stands for an index that the job still has."""
    if not is_indexed(job):
        return True
    index = completion_index(pod)
    return index is not None and index < (job.spec.completions or 0)


def _fresh(
    job: Job, pods: Iterable[Pod], released: frozenset[str], known: frozenset[str], rule: Callable[[Pod], bool]
) -> Iterable[Pod]:
    """Pods that meet the rule and are in no count yet."""
    for pod in pods:
        tracked = has_tracking_finalizer(pod) and pod.uid not in released and pod.uid not in known
        if tracked and _is_valid(job, pod) and rule(pod):
            yield pod


def _indexes(job: Job, pods: Sequence[Pod]) -> tuple[Indexes, Indexes, Indexes | None]:
    completions = job.spec.completions or 0
    tracked = [
        (index, pod)
        for pod in pods
        if (index := completion_index(pod)) is not None and index < completions and has_tracking_finalizer(pod)
    ]
    previous = Indexes.parse(job.status.completed_indexes, completions)
    done = previous | Indexes.of(index for index, pod in tracked if pod.status.phase == "Succeeded")
    if job.spec.backoff_limit_per_index is None:
        return previous, done, None
    before = Indexes.parse(job.status.failed_indexes or "", completions)
    return previous, done, before | Indexes.of(index for index, pod in tracked if _ends_index(job.spec, pod))


def _ends_index(spec: JobSpec, pod: Pod) -> bool:
    """Whether this failure is the last that its index may have."""
    if not has_failed(pod, spec):
        return False
    verdict = judge_failure(spec.pod_failure_policy, pod)
    if verdict.action == "FailIndex":
        return True
    return verdict.counts and index_failures(pod)[0] >= (spec.backoff_limit_per_index or 0)


def _delayed(
    job: Job,
    pods: Sequence[Pod],
    active: Sequence[Pod],
    released: frozenset[str],
    done: Indexes,
    given_up: Indexes,
) -> dict[int, Pod]:
    """By index, the last failed pod: it keeps its finalizer, and with it the count, until it is replaced."""
    running = {completion_index(pod) for pod in active}
    last: dict[int, Pod] = {}
    for pod in _fresh(job, pods, released, frozenset(), lambda item: has_failed(item, job.spec)):
        index = completion_index(pod)
        if index is None or index in done or index in given_up or index in running:
            continue
        if index not in last or _is_later_failure(pod, last[index]):
            last[index] = pod
    return last


def _is_later_failure(pod: Pod, other: Pod) -> bool:
    ended, other_ended = finished_at(pod), finished_at(other)
    if sum(index_failures(other)) > sum(index_failures(pod)) or ended is None:
        return False
    return other_ended is None or ended >= other_ended
