"""A cron job's mind: which run is due, what becomes of runs still going, and which old jobs go.

Source: pkg/controller/cronjob/{cronjob_controllerv2,utils}.go, v1.36.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from skysail.api.batch import CronJob, CronJobStatus, Job
from skysail.api.cluster import ObjectReference
from skysail.api.kinds import CRONJOBS, JOBS
from skysail.api.raw import Raw
from skysail.controllers.cronjob.schedule import Schedule
from skysail.controllers.templates import controller_reference, parse_template

SCHEDULED_TIMESTAMP = "batch.kubernetes.io/cronjob-scheduled-timestamp"
_DELTA_SECONDS = 0.1
_MANY_MISSED = 100


@dataclass(frozen=True, slots=True)
class Note:
    """Something to tell people."""

    type: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What one pass does.

    Attributes:
        status: To report; without the run that is about to start.
        notes: To tell.
        replace: Running jobs to delete before the new one starts.
        create: The job to make, if one is due.
        scheduled: The time it was due.
        requeue_seconds: When to look again; None when only a change can bring anything.
    """

    status: CronJobStatus
    notes: tuple[Note, ...] = ()
    replace: tuple[ObjectReference, ...] = ()
    create: Raw | None = None
    scheduled: datetime | None = None
    requeue_seconds: float | None = None


def finished_as(job: Job) -> str:
    """`Complete`, `Failed`, or empty while the job goes on."""
    for condition in job.status.conditions:
        if condition.type in ("Complete", "Failed") and condition.status == "True":
            return condition.type
    return ""


def jobs_to_clean_up(cron_job: CronJob, jobs: Iterable[Job]) -> list[Job]:
    """The oldest finished jobs beyond the two history limits."""
    by_end: dict[str, list[Job]] = {"Complete": [], "Failed": []}
    for job in jobs:
        if end := finished_as(job):
            by_end[end].append(job)
    limits = {
        "Complete": cron_job.spec.successful_jobs_history_limit,
        "Failed": cron_job.spec.failed_jobs_history_limit,
    }
    return [
        job
        for end, finished in by_end.items()
        if (limit := limits[end]) is not None
        for job in sorted(finished, key=_by_start)[: max(0, len(finished) - limit)]
    ]


def _by_start(job: Job) -> tuple[bool, float, str]:
    start = job.status.start_time
    return start is None, start.timestamp() if start is not None else 0.0, job.name


def track_active(cron_job: CronJob, jobs: Sequence[Job], missing: Collection[str]) -> tuple[CronJobStatus, list[Note]]:
    """The status with finished and missing jobs taken off its list.

    Args:
        cron_job: As read.
        jobs: Those it controls.
        missing: Uids on the list of which there is no job any more.
    """
    status, notes = cron_job.status, []
    active = list(status.active)
    last_success = status.last_successful_time
    for job in jobs:
        listed = any(item.uid == job.uid for item in active)
        end = finished_as(job)
        if not end and not listed:
            words = f"Saw a job that the controller did not create or forgot: {job.name}"
            notes.append(Note("Warning", "UnexpectedJob", words))
        elif end and listed:
            active = [item for item in active if item.uid != job.uid]
            notes.append(Note("Normal", "SawCompletedJob", f"Saw completed job: {job.name}, condition: {end}"))
        done = job.status.completion_time
        if end == "Complete" and done is not None and (last_success is None or done > last_success):
            last_success = done
    for item in active:
        if item.uid in missing:
            notes.append(Note("Normal", "MissingJob", f"Active job went missing: {item.name}"))
    active = [item for item in active if item.uid not in missing]
    return msgspec.structs.replace(status, active=tuple(active), last_successful_time=last_success), notes


def zone_for(cron_job: CronJob) -> tzinfo:
    """The time zone of the schedule.

    Raises:
        ValueError: There is no such zone.
    """
    name = cron_job.spec.time_zone
    if not name:
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, OSError) as error:
        raise ValueError(f"unknown time zone {name}") from error


def plan_cron_job(cron_job: CronJob, status: CronJobStatus, notes: Sequence[Note], now: datetime) -> Plan:
    """Whether a run is due, and what starting it calls for.

    Args:
        cron_job: As read.
        status: As `track_active` left it.
        notes: To tell before anything else.
        now: The time.
    """
    if cron_job.metadata.deletion_timestamp is not None:
        return Plan(status, tuple(notes))
    try:
        zone = zone_for(cron_job)
    except ValueError as error:
        bad_zone = Note("Warning", "UnknownTimeZone", f'invalid timeZone: "{cron_job.spec.time_zone}": {error}')
        return Plan(status, (*notes, bad_zone))
    if cron_job.spec.suspend:
        return Plan(status, tuple(notes))
    try:
        schedule = Schedule.parse(cron_job.spec.schedule)
    except ValueError as error:
        words = f'unparseable schedule: "{cron_job.spec.schedule}" : {error}'
        return Plan(status, (*notes, Note("Warning", "UnparseableSchedule", words)))
    cron_job = msgspec.structs.replace(cron_job, status=status)
    return _plan_run(cron_job, schedule, zone, list(notes), now)


def _plan_run(cron_job: CronJob, schedule: Schedule, zone: tzinfo, notes: list[Note], now: datetime) -> Plan:
    status = cron_job.status
    wait = seconds_until_next(cron_job, schedule, zone, now)
    recent = most_recent(cron_job, schedule, zone, now, with_deadline=True)
    if recent.missed > _MANY_MISSED and recent.time is not None:
        words = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
        notes.append(Note("Warning", "TooManyMissedTimes", words))
    due = recent.time
    if due is None:
        return Plan(status, tuple(notes), requeue_seconds=wait)
    deadline = cron_job.spec.starting_deadline_seconds
    if deadline is not None and (now - due).total_seconds() > deadline:
        words = f"Missed scheduled time to start a job: {due.astimezone(UTC):%a, %d %b %Y %H:%M:%S +0000}"
        notes.append(Note("Warning", "MissSchedule", words))
        return Plan(status, tuple(notes), requeue_seconds=wait)
    if any(item.name == job_name(cron_job, due) for item in status.active) or status.last_schedule_time == due:
        return Plan(status, tuple(notes), requeue_seconds=wait)
    policy = cron_job.spec.concurrency_policy
    if policy == "Forbid" and status.active:
        words = "Not starting job because prior execution is running and concurrency policy is Forbid"
        notes.append(Note("Normal", "JobAlreadyActive", words))
        return Plan(status, tuple(notes), requeue_seconds=wait)
    replaced = status.active if policy == "Replace" else ()
    return Plan(status, tuple(notes), replaced, new_job(cron_job, due, zone), due, wait)


@dataclass(frozen=True, slots=True)
class Recent:
    """The last time the schedule came round.

    Attributes:
        earliest: From when on was looked.
        time: That time; None when it has not come round since.
        missed: How often it has come round since.
    """

    earliest: datetime
    time: datetime | None
    missed: int = 0


def most_recent(cron_job: CronJob, schedule: Schedule, zone: tzinfo, now: datetime, *, with_deadline: bool) -> Recent:
    """The last time the schedule came round since the last run (or the cron job's creation).

    Args:
        cron_job: As read.
        schedule: Its schedule.
        zone: Its time zone.
        now: The time.
        with_deadline: Do not look further back than the starting deadline.
    """
    earliest = cron_job.status.last_schedule_time or cron_job.metadata.creation_timestamp or now
    deadline = cron_job.spec.starting_deadline_seconds
    if with_deadline and deadline is not None and (now - earliest).total_seconds() > deadline:
        earliest = now - timedelta(seconds=deadline)
    first = schedule.next_after(earliest, zone)
    if first is None or now < first:
        return Recent(earliest, None)
    second = schedule.next_after(first, zone)
    if second is None or now < second:
        return Recent(earliest, first)
    distance = max(1, round((second - first).total_seconds()))
    missed = int((now - first).total_seconds()) // distance + 1
    # Skip most of the way at the distance of the first two times, then go on from time to time.
    latest, found = None, schedule.next_after(first + timedelta(seconds=(missed - 2) * distance), zone)
    while found is not None and found <= now:
        latest, found = found, schedule.next_after(found, zone)
    return Recent(earliest, latest, missed)


def seconds_until_next(cron_job: CronJob, schedule: Schedule, zone: tzinfo, now: datetime) -> float | None:
    """How long until the schedule comes round next, and a moment more."""
    recent = most_recent(cron_job, schedule, zone, now, with_deadline=False)
    since = recent.time or (now if recent.missed else recent.earliest)
    following = schedule.next_after(since, zone)
    return None if following is None else (following - now).total_seconds() + _DELTA_SECONDS


def job_name(cron_job: CronJob, scheduled: datetime) -> str:
    """The name of the job of a run: the same for the same time, so that it is made once."""
    return f"{cron_job.name}-{int(scheduled.timestamp()) // 60}"


def new_job(cron_job: CronJob, scheduled: datetime, zone: tzinfo) -> Raw:
    """The job to create for a run."""
    template = parse_template(cron_job.spec.job_template)
    given = template.get("metadata") or {}
    stamp = scheduled.astimezone(zone).isoformat(timespec="seconds")
    stamp = stamp.removesuffix("+00:00") + "Z" if stamp.endswith("+00:00") else stamp
    owner = controller_reference(cron_job, CRONJOBS.api_version, CRONJOBS.name)
    metadata: Raw = {
        "name": job_name(cron_job, scheduled),
        "annotations": {**(given.get("annotations") or {}), SCHEDULED_TIMESTAMP: stamp},
        "ownerReferences": [msgspec.to_builtins(owner)],
    }
    if given.get("labels"):
        metadata["labels"] = dict(given["labels"])
    return {"apiVersion": JOBS.api_version, "kind": JOBS.name, "metadata": metadata, "spec": template.get("spec", {})}


def with_started(status: CronJobStatus, job: Job, scheduled: datetime) -> CronJobStatus:
    """The status after a run has started."""
    reference = ObjectReference(
        api_version=JOBS.api_version,
        kind=JOBS.name,
        name=job.name,
        namespace=job.namespace,
        uid=job.uid,
        resource_version=job.metadata.resource_version,
    )
    return msgspec.structs.replace(status, active=(*status.active, reference), last_schedule_time=scheduled)
