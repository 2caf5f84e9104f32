"""Whom a starving job could take from, in the order in which one would: units that leave together.

    tier   whose                                              asked
    SPOT   jobs of Spot queues                                reclaimable
    OVER   jobs of queues above their entitlement             reclaimable
    OWN    jobs of lower priority in the own queue            preemptable, and `may_preempt` whatever plugins say

Inside a tier, members above a gang's minimum go first, one by one; then whole gangs. Lowest priority first, newest
first, uid last.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import chain
from typing import Final

from skysail.batch.model.job import Job, Task, TaskState
from skysail.batch.model.queue import Queue
from skysail.batch.pausing import StepsTo, finish
from skysail.batch.session import Session

JOBS_AT_ONCE: Final = 64
"""How many victims' jobs are looked at between two pauses."""


Part = tuple[tuple[object, ...], tuple[Task, ...], bool]
"""A part's rank within its tier, its tasks, and whether it is the rest of a gang."""


class Tier(IntEnum):
    """Why a unit may be taken."""

    SPOT = 0
    OVER = 1
    OWN = 2


@dataclass(frozen=True, slots=True, eq=False)
class Unit:
    """Tasks that leave together.

    Attributes:
        job: Whose.
        tasks: Which.
        tier: Why.
        whole: Whether it is the rest of a gang, rather than a member above its minimum.
    """

    job: Job
    tasks: tuple[Task, ...]
    tier: Tier
    whole: bool


RankedUnit = tuple[tuple[object, ...], Unit]


def candidate_units(session: Session, job: Job) -> StepsTo[list[Unit]]:
    """All units, in order; legality of taking them together is for `moves` to say.

    Cost: Grows with running pods; pauses every so many jobs.
    """
    return [unit for _, unit in (yield from ranked_units(session, job, (yield from find_running_jobs(session))))]


def ranked_units(session: Session, job: Job, victims: Sequence[Job]) -> StepsTo[list[RankedUnit]]:
    """The units of these jobs with their ranks, in order."""
    runs: list[list[RankedUnit]] = []
    at_once = len(victims) if session.kind_of_beneficiary(job) is None else JOBS_AT_ONCE
    for first in range(0, len(victims), at_once or 1):
        found: list[RankedUnit] = []
        for tier, jobs in _by_tier(session, job, victims[first : first + at_once]).items():
            tasks = [
                task for each in jobs for task in each.in_state(TaskState.BOUND) if not session.world.is_protected(task)
            ]
            if not tasks:
                continue
            ask = session.preemptable if tier is Tier.OWN else session.reclaimable
            allowed = {task.uid for task in ask(job, tasks)}
            for victim in jobs:
                for rank, members, whole in _parts_of(session, victim, allowed):
                    found.append(((tier, *rank), Unit(victim, members, tier, whole)))
        runs.append(sorted(found, key=rank_of))
        yield from session.pause_within()
    return (yield from _merged(session, runs))


def _merged(session: Session, runs: list[list[RankedUnit]]) -> StepsTo[list[RankedUnit]]:
    """Sorted runs as one, pairs of them first, so that no step takes long."""
    while len(runs) > 1:
        pairs, runs = runs, []
        for number in range(0, len(pairs), 2):
            runs.append(sorted(chain(*pairs[number : number + 2]), key=rank_of))
            if len(runs[-1]) > JOBS_AT_ONCE * 4:
                yield from session.pause_within()
    return runs[0] if runs else []


def rank_of(ranked: RankedUnit) -> tuple[object, ...]:
    """A unit's place among all."""
    return ranked[0]


def _by_tier(session: Session, job: Job, victims: Sequence[Job]) -> dict[Tier, list[Job]]:
    found: dict[Tier, list[Job]] = {tier: [] for tier in Tier}
    bundle, queue = {each.key for each in session.world.bundle_of(job)}, session.queue_of(job)
    for victim in victims:
        other = session.world.queue_of(victim)
        if other is None or victim.key in bundle:
            continue
        if other is queue:
            if may_preempt(queue, job, victim):
                found[Tier.OWN].append(victim)
        elif other.is_spot:
            found[Tier.SPOT].append(victim)
        else:
            found[Tier.OVER].append(victim)
    return found


def may_preempt(queue: Queue, job: Job, victim: Job) -> bool:
    """Whether a job may take from another of its queue at all: strictly lower, or by policy equal and newer."""
    policy = queue.spec.preemption.within_queue
    if policy == "Never":
        return False
    newer_equal = victim.priority == job.priority and victim.created > job.created
    return victim.priority < job.priority or (policy == "LowerOrNewerEqualPriority" and newer_equal)


def preemption_rank(queue: Queue, job: Job) -> tuple[object, ...]:
    """Jobs of the queue that are equal here may take from the same jobs of it."""
    newer_equal = queue.spec.preemption.within_queue == "LowerOrNewerEqualPriority"
    return job.priority, job.created if newer_equal else None


def may_soon_take(session: Session, job: Job) -> bool:
    """Whether somebody is on the way to a node whom the job may take once there: lower, spot, or above its share."""
    if not session.world.cache.has_assumed():
        return False
    queue = session.queue_of(job)
    for name, lowest in _on_the_way(session).items():
        other = session.world.tree.get(name)
        if other is queue:
            newer_equal = queue.spec.preemption.within_queue == "LowerOrNewerEqualPriority"
            if queue.spec.preemption.within_queue != "Never" and lowest < job.priority + newer_equal:
                return True
        elif other is not None and (other.is_spot or (other.spec.reclaimable and _is_above(session, other))):
            return True
    return False


def _on_the_way(session: Session) -> dict[str, int]:
    """The lowest priority of the jobs with tasks that are being bound, by queue; found once a session."""
    known = session.memo.get("on the way")
    if isinstance(known, dict):
        return known
    found: dict[str, int] = {}
    for job in running_jobs(session):
        if any(task.state is TaskState.BINDING for task in job.tasks.values()):
            found[job.queue] = min(found.get(job.queue, job.priority), job.priority)
    session.memo["on the way"] = found
    return found


def _is_above(session: Session, queue: Queue) -> bool:
    used = session.world.ledger.used
    return any(used(queue.name, key) > share for key, share in session.entitlements.shares[queue.name].items())


def running_jobs(session: Session) -> list[Job]:
    """Jobs with running tasks, found once a session."""
    return finish(find_running_jobs(session))


def find_running_jobs(session: Session) -> StepsTo[list[Job]]:
    """The same in steps."""
    known = session.memo.get("running jobs")
    if isinstance(known, list):
        return known
    found: list[Job] = []
    for number, job in enumerate(list(session.world.jobs.values()), 1):
        if job.is_running():
            found.append(job)
        if number % (JOBS_AT_ONCE * 16) == 0:
            yield from session.pause_within()
    session.memo["running jobs"] = found
    return found


def _parts_of(session: Session, victim: Job, allowed: set[str]) -> list[Part]:
    """What of a job may leave together; where all of it may, that is worked out once until somebody leaves or comes."""
    running = victim.in_state(TaskState.BOUND)
    if not all(task.uid in allowed for task in running):
        return list(_parted(session, victim, running, allowed))
    key, version = ("parts", victim.key), session.nodes.released
    known = session.memo.get(key)
    if not isinstance(known, tuple) or known[0] != version:
        known = session.memo[key] = (version, list(_parted(session, victim, running, allowed)))
    return known[1]  # type: ignore[no-any-return]


def _parted(session: Session, victim: Job, running: list[Task], allowed: set[str]) -> Iterator[Part]:
    running = sorted(running, key=session.task_key, reverse=True) if len(running) > 1 else running
    rest = running
    if victim.spec is not None and victim.spec.disruption_mode == "Pod":
        extras = list(members_above_minimum(session, victim, [task for task in running if task.uid in allowed]))
        for task in extras:
            yield _rank(victim, (task,), whole=False), (task,), False
        gone = {task.uid for task in extras}
        rest = [task for task in running if task.uid not in gone]
    if rest and all(task.uid in allowed for task in running):
        yield _rank(victim, tuple(rest), whole=True), tuple(rest), True


def members_above_minimum(session: Session, job: Job, tasks: Sequence[Task]) -> Iterator[Task]:
    """Of these tasks, last ones first, those without which the job still has its minimum."""
    counts = job.counts()
    if not session.job_ready(job, counts):
        return
    for task in tasks:
        counts.add(task, -1)
        if session.job_ready(job, counts) and counts.total > 0:
            yield task
        else:
            counts.add(task)


def _rank(victim: Job, tasks: Sequence[Task], *, whole: bool) -> tuple[object, ...]:
    newest = max(task.started for task in tasks)
    created = max(-task.order[1] for task in tasks)
    return whole, victim.priority, -newest, created, victim.uid, tasks[0].uid
