"""Jobs and cron jobs."""

from datetime import datetime

import msgspec

from skysail.api.cluster import ObjectReference
from skysail.api.meta import ApiObject, LabelSelector, Struct, own_raw


class PodFailurePolicyOnExitCodesRequirement(Struct, frozen=True, gc=False):
    """A rule on exit codes."""

    container_name: str | None = None
    operator: str = ""
    values: tuple[int, ...] = ()


class PodFailurePolicyOnPodConditionsPattern(Struct, frozen=True, gc=False):
    """A rule on a pod condition."""

    status: str = ""
    type: str = ""


class PodFailurePolicyRule(Struct, frozen=True, gc=False):
    """What a failure of a certain form means."""

    action: str = ""
    on_exit_codes: PodFailurePolicyOnExitCodesRequirement | None = None
    on_pod_conditions: tuple[PodFailurePolicyOnPodConditionsPattern, ...] = ()


class PodFailurePolicy(Struct, frozen=True, gc=False):
    """Rules for pod failures, first match wins."""

    rules: tuple[PodFailurePolicyRule, ...] = ()


class SuccessPolicyRule(Struct, frozen=True, gc=False):
    """A set of indexes that suffices."""

    succeeded_count: int | None = None
    succeeded_indexes: str | None = None


class SuccessPolicy(Struct, frozen=True, gc=False):
    """When a job counts as done early."""

    rules: tuple[SuccessPolicyRule, ...] = ()


class JobSpec(Struct, frozen=True, gc=False):
    """The wanted state of a job."""

    active_deadline_seconds: int | None = None
    backoff_limit: int | None = None
    backoff_limit_per_index: int | None = None
    completion_mode: str | None = None
    completions: int | None = None
    managed_by: str | None = None
    manual_selector: bool | None = None
    max_failed_indexes: int | None = None
    parallelism: int | None = None
    pod_failure_policy: PodFailurePolicy | None = None
    pod_replacement_policy: str | None = None
    selector: LabelSelector | None = None
    success_policy: SuccessPolicy | None = None
    suspend: bool | None = None
    template: msgspec.Raw = msgspec.Raw()
    ttl_seconds_after_finished: int | None = None

    def __post_init__(self) -> None:
        """Own the template's bytes: a decoded `msgspec.Raw` is a view of the whole message."""
        own_raw(self, "template")


class JobCondition(Struct, frozen=True, gc=False):
    """One condition of a job."""

    last_probe_time: datetime | None = None
    last_transition_time: datetime | None = None
    message: str = ""
    reason: str = ""
    status: str = ""
    type: str = ""


class UncountedTerminatedPods(Struct, frozen=True, gc=False):
    """Finished pods not yet in the counts."""

    failed: tuple[str, ...] = ()
    succeeded: tuple[str, ...] = ()


class JobStatus(Struct, frozen=True, gc=False):
    """What has happened."""

    active: int = 0
    completed_indexes: str = ""
    completion_time: datetime | None = None
    conditions: tuple[JobCondition, ...] = ()
    failed: int = 0
    failed_indexes: str | None = None
    ready: int | None = None
    start_time: datetime | None = None
    succeeded: int = 0
    terminating: int | None = None
    uncounted_terminated_pods: UncountedTerminatedPods | None = None


class Job(ApiObject, frozen=True, gc=False):
    """Runs pods to completion."""

    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


class CronJobSpec(Struct, frozen=True, gc=False):
    """When to make which job."""

    concurrency_policy: str = ""
    failed_jobs_history_limit: int | None = None
    job_template: msgspec.Raw = msgspec.Raw()
    schedule: str = ""
    starting_deadline_seconds: int | None = None
    successful_jobs_history_limit: int | None = None
    suspend: bool | None = None
    time_zone: str | None = None

    def __post_init__(self) -> None:
        """Own the template's bytes: a decoded `msgspec.Raw` is a view of the whole message."""
        own_raw(self, "job_template")


class CronJobStatus(Struct, frozen=True, gc=False):
    """What is running, and when it last ran."""

    active: tuple[ObjectReference, ...] = ()
    last_schedule_time: datetime | None = None
    last_successful_time: datetime | None = None


class CronJob(ApiObject, frozen=True, gc=False):
    """Makes jobs on a schedule."""

    spec: CronJobSpec = CronJobSpec()
    status: CronJobStatus = CronJobStatus()
