"""How finished pods are counted exactly once, and how the job's end is announced.

Three steps, each safe to repeat after a crash: `track` writes the uids of newly finished pods into the status; the
shell takes their finalizers off; `settle` moves the uids into the counters and, when nothing is left open, announces
the end that was decided before (`FailureTarget` becomes `Failed`, `SuccessCriteriaMet` becomes `Complete`).

Source: pkg/controller/job/job_controller.go `trackJobStatusAndRemoveFinalizers`, v1.36.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

import msgspec

from skysail.api.batch import Job, JobCondition, JobStatus, UncountedTerminatedPods
from skysail.api.core import Pod
from skysail.controllers.job.plan import JobPlan, job_condition
from skysail.controllers.job.policies import judge_failure
from skysail.controllers.job.view import (
    COMPLETE,
    FAILED,
    FAILURE_TARGET,
    SUCCESS_CRITERIA_MET,
    SUSPENDED,
    JobView,
    completion_index,
    has_failed,
    is_indexed,
    is_suspended,
)

MAX_UNCOUNTED = 500


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a plan's pods.

    Attributes:
        active: How many pods are active now.
        ready: How many of them are ready.
        terminating: How many are on their way out.
        all_ended: Whether every pod that had to end was deleted.
    """

    active: int
    ready: int
    terminating: int
    all_ended: bool = True


def holds_report(plan: JobPlan, outcome: Outcome) -> bool:
    """Whether nothing is reported in this pass, and no finished pod counted.

    While new pods wait for their back-off, kube-controller-manager up to 1.36.2 reports no pod as active; the API
    server refuses that report when some are ready ("cannot set more ready pods than active"), and all stays as it was
    until the wait is over. (1.36.3 reports the active ones; the recordings that we keep to are older.)
    """
    return plan.wait_seconds is not None and outcome.ready > outcome.active


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The status after the pods were dealt with, and the job's end if it has come.

    Attributes:
        status: With active, ready and terminating counts and the Suspended condition.
        finished: The condition to announce.
        event: `(reason, message)` of a suspension or resumption; None without one.
    """

    status: JobStatus
    finished: JobCondition | None
    event: tuple[str, str] | None = None


def conclude(view: JobView, plan: JobPlan, outcome: Outcome, *, expectations_met: bool) -> Conclusion:
    """Whether the job has come to its end, and the counts of pods."""
    status = msgspec.structs.replace(
        view.job.status, active=outcome.active, ready=outcome.ready, terminating=outcome.terminating
    )
    if plan.finished is not None:
        decided = plan.finished if outcome.all_ended and expectations_met else None
        return Conclusion(status, decided)
    if _is_complete(view, outcome.active):
        words = "Reached expected number of succeeded pods"
        return Conclusion(status, job_condition(SUCCESS_CRITERIA_MET, "CompletionsReached", words, view.now))
    if not plan.managed:
        return Conclusion(status, None)
    if is_suspended(view.job):
        changed, status = ensure_condition(status, SUSPENDED, "True", "JobSuspended", "Job suspended", view.now)
        status = msgspec.structs.replace(status, start_time=None) if changed else status
        return Conclusion(status, None, ("Suspended", "Job suspended") if changed else None)
    changed, status = ensure_condition(status, SUSPENDED, "False", "JobResumed", "Job resumed", view.now)
    status = msgspec.structs.replace(status, start_time=view.now.replace(microsecond=0)) if changed else status
    return Conclusion(status, None, ("Resumed", "Job resumed") if changed else None)


def _is_complete(view: JobView, active: int) -> bool:
    if active > 0:
        return False
    return view.succeeded > 0 if view.spec.completions is None else view.succeeded >= view.spec.completions


def ensure_condition(
    status: JobStatus, condition_type: str, value: str, reason: str, message: str, now: datetime
) -> tuple[bool, JobStatus]:
    """Set a condition; one that is False is only written where it was there before. Returns whether it changed."""
    conditions = list(status.conditions)
    new = job_condition(condition_type, reason, message, now, value)
    for index, old in enumerate(conditions):
        if old.type == condition_type:
            if (old.status, old.reason, old.message) == (value, reason, message):
                return False, status
            conditions[index] = new
            return True, msgspec.structs.replace(status, conditions=tuple(conditions))
    if value == "False":
        return False, status
    return True, msgspec.structs.replace(status, conditions=(*conditions, new))


@dataclass(frozen=True, slots=True)
class Tracking:
    """The first step's result.

    Attributes:
        status: To write before any finalizer goes.
        release: Pods whose finalizer may go once that is written.
        held: Uids of pods that still carry the finalizer.
        finished: What the end will be called.
        complete: False when there were more finished pods than one pass takes.
    """

    status: JobStatus
    release: tuple[Pod, ...]
    held: frozenset[str]
    finished: JobCondition | None
    complete: bool


def track(view: JobView, conclusion: Conclusion) -> Tracking:
    """Note the newly finished pods, and the decision to end the job."""
    held = frozenset(pod.uid for pod in view.pods if view.is_uncounted(pod))
    status = count_released(conclusion.status, held)
    notes = _Notes(view, status, conclusion.finished)
    for pod in view.pods:
        if not view.is_uncounted(pod) or not _may_release(view, pod, conclusion.finished):
            continue
        notes.add(pod)
        if notes.size >= MAX_UNCOUNTED:
            break
    status = notes.status()
    status, finished = _announce_decision(view, status, conclusion.finished)
    return Tracking(status, tuple(notes.release), held, finished, notes.size < MAX_UNCOUNTED)


def _may_release(view: JobView, pod: Pod, finished: JobCondition | None) -> bool:
    """Whether the pod's end may be counted now."""
    if view.job.metadata.deletion_timestamp is not None or finished is not None or pod.status.phase == "Succeeded":
        return True
    if not has_failed(pod, view.spec):
        return False
    index = completion_index(pod)
    kept = view.delayed.get(index) if index is not None else None
    return kept is None or kept.uid != pod.uid


class _Notes:
    """What one pass adds to the lists of uncounted pods."""

    def __init__(self, view: JobView, status: JobStatus, finished: JobCondition | None) -> None:
        uncounted = status.uncounted_terminated_pods or UncountedTerminatedPods()
        self.release: list[Pod] = []
        self._view = view
        self._status = status
        self._ends_badly = finished is not None and finished.type != SUCCESS_CRITERIA_MET
        self._succeeded = list(uncounted.succeeded)
        self._failed = list(uncounted.failed)
        self._new_indexes: list[int] = []

    @property
    def size(self) -> int:
        """How much there is to count."""
        return len(self._new_indexes) + len(self._succeeded) + len(self._failed)

    def add(self, pod: Pod) -> None:
        """Note one finished pod."""
        self.release.append(pod)
        index = completion_index(pod)
        valid = not is_indexed(self._view.job) or (index is not None and index < self._view.completions)
        if pod.status.phase == "Succeeded" and pod.uid not in self._failed:
            if not is_indexed(self._view.job):
                if pod.uid not in self._succeeded:
                    self._succeeded.append(pod.uid)
            elif valid and index is not None and index not in self._view.previous:
                self._new_indexes.append(index)
        elif has_failed(pod, self._view.spec) or self._ends_badly:
            counts = judge_failure(self._view.spec.pod_failure_policy, pod).counts
            if valid and counts and pod.uid not in self._failed:
                self._failed.append(pod.uid)

    def status(self) -> JobStatus:
        """The status with these notes."""
        status = msgspec.structs.replace(
            self._status, uncounted_terminated_pods=_uncounted(self._succeeded, self._failed)
        )
        if not is_indexed(self._view.job):
            return status
        view = self._view
        failed = None if view.given_up is None else str(view.given_up)
        return msgspec.structs.replace(
            status, succeeded=len(view.done), completed_indexes=str(view.done), failed_indexes=failed
        )


def _uncounted(succeeded: Iterable[str], failed: Iterable[str]) -> UncountedTerminatedPods:
    return UncountedTerminatedPods(succeeded=tuple(succeeded), failed=tuple(failed))


def count_released(status: JobStatus, held: frozenset[str]) -> JobStatus:
    """Move the uids of pods that carry no finalizer any more into the counters."""
    uncounted = status.uncounted_terminated_pods or UncountedTerminatedPods()
    succeeded = [uid for uid in uncounted.succeeded if uid in held]
    failed = [uid for uid in uncounted.failed if uid in held]
    return msgspec.structs.replace(
        status,
        succeeded=status.succeeded + len(uncounted.succeeded) - len(succeeded),
        failed=status.failed + len(uncounted.failed) - len(failed),
        uncounted_terminated_pods=_uncounted(succeeded, failed),
    )


def _announce_decision(
    view: JobView, status: JobStatus, finished: JobCondition | None
) -> tuple[JobStatus, JobCondition | None]:
    """Write down that the job is about to end, and what its end will be called."""
    if finished is None:
        return status, None
    if finished.type == FAILURE_TARGET:
        status = msgspec.structs.replace(status, conditions=(*status.conditions, finished))
        return status, job_condition(FAILED, finished.reason, finished.message, view.now)
    if finished.type == SUCCESS_CRITERIA_MET:
        if all(item.type != SUCCESS_CRITERIA_MET for item in status.conditions):
            status = msgspec.structs.replace(status, conditions=(*status.conditions, finished))
        return status, job_condition(COMPLETE, finished.reason, finished.message, view.now)
    return status, finished


@dataclass(frozen=True, slots=True)
class Settlement:
    """The last step's result.

    Attributes:
        status: To write, if it differs.
        finished: Whether the job's end is announced with it.
        events: `(type, reason, message)` to tell then.
    """

    status: JobStatus
    finished: bool = False
    events: tuple[tuple[str, str, str], ...] = ()


def settle(job: Job, tracking: Tracking, released: frozenset[str], now: datetime) -> Settlement:
    """Count the pods whose finalizers have gone, and announce the end when nothing is left open.

    Args:
        job: The job, with the status as last written.
        tracking: The first step's result.
        released: Uids of pods whose finalizer has been taken off.
        now: The time.
    """
    status = count_released(job.status, tracking.held - released)
    uncounted = status.uncounted_terminated_pods or UncountedTerminatedPods()
    end = tracking.finished
    if end is None or not tracking.complete or uncounted.succeeded or uncounted.failed or status.terminating:
        return Settlement(status)
    _, status = ensure_condition(status, end.type, end.status, end.reason, end.message, now)
    if end.type != COMPLETE:
        return Settlement(status, True, (("Warning", end.reason, end.message),))
    status = msgspec.structs.replace(status, completion_time=end.last_transition_time)
    events = [("Normal", "Completed", "Job completed")]
    if job.spec.completions is not None and status.succeeded > job.spec.completions:
        words = "Too many succeeded pods running after completion count reached"
        events.insert(0, ("Warning", "TooManySucceededPods", words))
    return Settlement(status, True, tuple(events))
