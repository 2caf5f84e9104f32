"""What the statuses of gangs, queues, lines and slots must say, of the engine's world. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from skysail.api.meta import Condition
from skysail.batch.foreign.kueue_status import quantity
from skysail.batch.kinds.job_queue import JobQueueStatus, QueuedJob
from skysail.batch.kinds.parts import OutcomeRecord
from skysail.batch.kinds.pod_group import ClaimStatus, PodGroupStatus
from skysail.batch.kinds.queue import QueueStatus
from skysail.batch.kinds.quota import QuotaStatus, SlotStatus
from skysail.batch.ledger import Column
from skysail.batch.model.claim import Claim
from skysail.batch.model.job import ENDED, Job, TaskState
from skysail.batch.model.outcome import Outcome, few
from skysail.batch.model.queue import Queue
from skysail.batch.model.quorum import is_met
from skysail.batch.model.resources import ANY, ResourceVector
from skysail.batch.model.slot import Slot, common_phase
from skysail.batch.shares import Entitlements
from skysail.batch.world import World

SHOWN_JOBS: Final = 50
"""How many waiting jobs a line's status names."""


def moment(seconds: float) -> datetime:
    """Seconds since 1970 as written into objects: whole seconds."""
    return datetime.fromtimestamp(int(seconds), UTC)


# -- gangs ---------------------------------------------------------------------------------------------------------


def group_status(job: Job, old: PodGroupStatus, now: float) -> PodGroupStatus:
    """One gang's status.

    Args:
        job: As the engine knows it.
        old: What the status says, for times that stay.
        now: Seconds since 1970.
    """
    waiting = sum(task.state <= TaskState.CLAIMED for task in job.tasks.values())
    running = sum(
        task.state in (TaskState.BINDING, TaskState.BOUND, TaskState.RELEASING) for task in job.tasks.values()
    )
    succeeded, failed = len(job.in_state(TaskState.SUCCEEDED)), len(job.in_state(TaskState.FAILED))
    return PodGroupStatus(
        phase=phase_of(job),
        pending=waiting,
        running=running,
        succeeded=succeeded,
        failed=failed,
        occupied_by=job.spec.owner if job.spec is not None else old.occupied_by,
        conditions=_group_conditions(job, old.conditions, moment(now)),
        scheduling_conditions=(outcome_record(job.outcome),) if job.outcome is not None else (),
        claim=claim_status(job.claim) if job.claim is not None else None,
    )


def phase_of(job: Job) -> str:
    """Volcano's phases."""
    spec = job.spec
    if job.tasks and all(task.state in ENDED for task in job.tasks.values()):
        return "Completed"
    enough = spec is not None and is_met(spec, job.counts())
    if job.is_running():
        return "Running" if enough else "Unknown"
    complete = spec is not None and bool(job.tasks) and len(job.tasks) >= spec.min_member
    return "Inqueue" if complete else "Pending"


def _group_conditions(job: Job, old: Sequence[Condition], now: datetime) -> tuple[Condition, ...]:
    outcome = job.outcome
    enough = job.spec is not None and bool(job.tasks) and is_met(job.spec, job.counts())
    if enough:
        wanted = [
            ("Scheduled", "True", "Scheduled", "the gang's minimum has its place"),
            ("PodGroupScheduled", "True", "Scheduled", "the gang's minimum has its place"),
        ]
    elif outcome is not None:
        wanted = [
            ("Unschedulable", "True", outcome.code.value, outcome.message),
            ("PodGroupScheduled", "False", "Unschedulable", f"{outcome.code.value}: {outcome.message}"),
        ]
    else:
        return tuple(old)
    return tuple(_carried(Condition(type=a, status=b, reason=c, message=d), old, now) for a, b, c, d in wanted)


def _carried(condition: Condition, old: Iterable[Condition], now: datetime) -> Condition:
    """With the time of its last change: of now, or of when it came to say what it says."""
    known = next((each for each in old if each.type == condition.type), None)
    since = known.last_transition_time if known is not None and known.status == condition.status else now
    return Condition(
        type=condition.type,
        status=condition.status,
        reason=condition.reason,
        message=condition.message,
        last_transition_time=since,
    )


def outcome_record(outcome: Outcome) -> OutcomeRecord:
    """An outcome as written."""
    return OutcomeRecord(
        code=outcome.code.value,
        message=outcome.message,
        details=dict(outcome.numbers),
        since=moment(outcome.since),
        next_events=outcome.next_events,
    )


def claim_status(claim: Claim) -> ClaimStatus:
    """A claim as written, so that the next process can honour it."""
    return ClaimStatus(
        id=claim.id,
        reason=claim.reason,
        placement=dict(claim.placement),
        victims=dict(claim.victims),
        capacity=dict(claim.capacity),
        expires=moment(claim.deadline),
    )


# -- queues --------------------------------------------------------------------------------------------------------


def jobs_by_queue(world: World) -> dict[str, list[Job]]:
    """All jobs, under their queue's name."""
    found: dict[str, list[Job]] = {}
    for job in world.jobs.values():
        found.setdefault(job.queue, []).append(job)
    return found


def amounts(vector: ResourceVector) -> dict[str, str]:
    """Sums over all flavors, as quantities."""
    return {name: quantity(name, amount) for (flavor, name), amount in sorted(vector.items()) if flavor == ANY}


def queue_status(
    world: World,
    queue: Queue,
    phases: Sequence[str],
    entitlements: Entitlements,
    old: QueueStatus,
    problems: Sequence[str],
) -> QueueStatus:
    """One queue's status.

    Args:
        world: As it is.
        queue: The queue.
        phases: Of its own jobs, not those of queues below it.
        entitlements: What each queue may hold.
        old: What the status says, for times that stay.
        problems: What is wrong with the object, in words.
    """
    held, claimed, releasing = (world.ledger.vector(queue.name, column) for column in Column)
    wanted = ResourceVector({(ANY, name): amount for name, amount in world.wanted.get(queue.name, {}).items()})
    shares = entitlements.shares.get(queue.name, {})
    entitled: dict[str, int] = {}
    for (flavor, name), amount in shares.items():
        if flavor == ANY or queue.names_flavors:
            entitled[name] = entitled.get(name, 0) + amount
    return QueueStatus(
        state=queue.spec.state,
        pending=phases.count("Pending"),
        inqueue=phases.count("Inqueue"),
        running=phases.count("Running"),
        completed=phases.count("Completed"),
        unknown=phases.count("Unknown"),
        allocated=amounts(held),
        claimed=amounts(claimed),
        releasing=amounts(releasing),
        requested=amounts(held + wanted),
        entitlement={name: quantity(name, amount) for name, amount in sorted(entitled.items())},
        share=int(entitlements.dominant_use(queue.name, dict(held)) * 1000),
        usage=queue.spec.usage,
        child_queues=tuple(child.name for child in queue.children),
        conditions=_queue_conditions(world, queue, entitlements, old.conditions, problems),
    )


def _queue_conditions(
    world: World, queue: Queue, entitlements: Entitlements, old: Sequence[Condition], problems: Sequence[str]
) -> tuple[Condition, ...]:
    wanted = []
    if scaled := entitlements.scaled.get(queue.name):
        names = ", ".join(sorted({name for _, name in scaled}))
        words = f"the cluster offers less than all queues deserve: {names} is scaled down"
        wanted.append(Condition(type="EntitlementScaled", status="True", reason="NotEnoughForAll", message=words))
    refusal = world.ledger.over_limits([queue]).get(queue.name)
    if refusal is not None:
        words = f"uses {refusal.used} of {refusal.limit} {refusal.key[1]}: what runs stays, nothing new starts"
        wanted.append(Condition(type="OverLimit", status="True", reason="OverLimit", message=words))
    faults = [*problems, *([world.tree.problems[queue.name]] if queue.name in world.tree.problems else [])]
    if faults:
        words = "; ".join(faults)
        wanted.append(Condition(type="Misconfigured", status="True", reason="Misconfigured", message=words))
    return tuple(_carried(each, old, moment(world.now)) for each in wanted)


def job_queue_status(world: World, key: str, jobs: Iterable[Job]) -> JobQueueStatus:
    """One line's status.

    Args:
        world: As it is.
        key: `namespace/name` of the line.
        jobs: Its jobs.
    """
    spec = world.job_queues[key]
    by_priority = spec.order == "Priority"
    members = sorted(jobs, key=lambda job: (-job.priority if by_priority else 0, job.created, job.uid))
    waiting = [job for job in members if world.is_waiting(job)]
    held = ResourceVector()
    for job in members:
        for task in job.tasks.values():
            if task.charged is not None and task.state is not TaskState.CLAIMED:
                held = held + task.charged
    return JobQueueStatus(
        pending_jobs=len(waiting),
        admitted_jobs=sum(job.is_running() for job in members),
        pending=tuple(
            QueuedJob(name=job.name, position=position, code=job.outcome.code.value if job.outcome is not None else "")
            for position, job in enumerate(waiting[:SHOWN_JOBS], 1)
        ),
        allocated=amounts(held),
    )


# -- slots ---------------------------------------------------------------------------------------------------------


def quota_status(
    slots: Sequence[Slot], tasks: Mapping[str, str], zones: Mapping[str, str], old: QuotaStatus, now: float
) -> QuotaStatus:
    """One Quota's status.

    Args:
        slots: Its slots, in order.
        tasks: `namespace/name` of pods by uid.
        zones: Zone by node name.
        old: What the status says, for times that stay.
        now: Seconds since 1970.
    """
    bound = bool(slots) and all(slot.node for slot in slots)
    nodes = [slot.node for slot in slots if slot.node]
    shared = {zones.get(node, "") for node in nodes}
    holders = [tasks.get(uid, uid) for slot in slots for uid in slot.holders]
    return QuotaStatus(
        phase=common_phase(slots),
        node_name=nodes[0] if len(slots) == 1 and nodes else "",
        zone=shared.pop() if len(shared) == 1 else "",
        slots=tuple(
            SlotStatus(
                index=slot.index,
                phase=slot.phase,
                node_name=slot.node,
                bound_time=slot.bound_time,
                holders=tuple(tasks.get(uid, uid) for uid in slot.holders),
                used=slot.is_spent,
                reason=slot.reason or "",
            )
            for slot in slots
        ),
        holder=few(holders),
        bound_time=old.bound_time or moment(now) if bound else None,
        conditions=old.conditions,
    )
