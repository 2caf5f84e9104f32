"""Gangs that run by borrowing alone: their minimum is more than their queue is entitled to, so none is ever within it.

What such a gang waits for, its queue is not owed: it may have it while it is idle, and others take it back. Counted as
unserved it would weigh against every owner that takes back less than the whole gang at once, and keep it for ever.
Demand without these gangs does not depend on who runs, so that the potential still falls by every move.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from skysail.batch.model.job import Job, TaskState
from skysail.batch.model.outcome import NAMES_SAID, Number, few
from skysail.batch.model.queue import Queue
from skysail.batch.model.resources import ANY, PODS, amount_text
from skysail.batch.moves import Guarded
from skysail.batch.pausing import StepsTo
from skysail.batch.reasons import minimum_request
from skysail.batch.session import Session
from skysail.batch.shares import Amounts, Beyond, demand_without
from skysail.batch.victims import Tier, Unit

_JOBS_AT_ONCE = 64
"""How many jobs are looked at between two pauses."""
_KEY = "demand within entitlement"


def demand_within(session: Session) -> StepsTo[Amounts]:
    """What each queue holds and waits for, without gangs it could serve by borrowing only; found once a session.

    Cost: Grows with jobs and their tasks; pauses every so many jobs.
    """
    known = session.memo.get(_KEY)
    if isinstance(known, tuple) and known[0] is session.entitlements:
        return known[1]  # type: ignore[no-any-return]
    beyond: dict[str, Beyond] = {}
    for number, job in enumerate(list(session.world.jobs.values()), 1):
        if borrows_by_nature(session, job):
            _add(beyond.setdefault(job.queue, Beyond()), job)
        if number % _JOBS_AT_ONCE == 0:
            yield from session.pause_within()
    entitlements = session.entitlements
    found = demand_without(session.world, entitlements, beyond) if beyond else entitlements.demand
    session.memo[_KEY] = (entitlements, found)
    return found


def borrows_by_nature(session: Session, job: Job) -> bool:
    """Whether the job's minimum exceeds what its queue, or one above it, is entitled to.

    Asked where the queue states a deserved share; a queue that states none anywhere is asked by its weight.
    """
    queue = session.world.queue_of(job)
    if queue is None or queue.is_spot or not job.tasks:
        return False
    need = minimum_request(job)
    return any(_exceeds(session, each, need.get(name, 0), name) for each in queue.path for name in need if name != PODS)


@dataclass(frozen=True, slots=True)
class Kept:
    """Who stays though a job would have room without them.

    Attributes:
        refused: Units whose leaving would not have lowered the potential.
        guarded: Units that nothing but a guarantee keeps.
    """

    refused: Sequence[Unit] = ()
    guarded: Sequence[Guarded] = ()

    def words(self, session: Session, job: Job) -> list[str]:
        """Which queues keep whom, and why, to the job that waits: of the first few, and how many more there are."""
        said = [*_why_refused(session, job, self.refused), *_why_guarded(self.guarded)]
        more = [f"and {len(said) - NAMES_SAID} more queues do so"] if len(said) > NAMES_SAID else []
        return said[:NAMES_SAID] + more

    def numbers(self) -> dict[str, Number]:
        """Whose guarantee, and how much; empty where none is a reason."""
        if not self.guarded:
            return {}
        queue, key = self.guarded[0].queue, self.guarded[0].key
        return {"keptBy": queue.name, "guarantee": queue.figures(key).guarantee or 0}


def _why_refused(session: Session, job: Job, units: Sequence[Unit]) -> list[str]:
    """Who holds borrowed room that a job was not given, and why.

    Args:
        session: Whose shares and ledger, as they are while nobody left.
        job: The beneficiary of a move that would not have lowered the potential.
        units: Who would have left.
    """
    said = []
    for queue in dict.fromkeys(session.queue_of(unit.job) for unit in units if unit.tier is Tier.OVER):
        above = _above(session, queue)
        if above:
            leaving = dict.fromkeys(unit.job.name for unit in units if unit.job.queue == queue.name)
            said.append(
                f"queue {queue.name} holds {above} above its entitlement and keeps it, "
                f"for without {few(list(leaving))} it would lack more of its entitlement than queue {job.queue} gets"
            )
    return said


def _why_guarded(guarded: Sequence[Guarded]) -> list[str]:
    """Whose guarantee keeps units that a job would need, and of how much."""
    by_queue: dict[str, list[Guarded]] = {}
    for each in guarded:
        by_queue.setdefault(each.queue.name, []).append(each)
    said = []
    for name, found in by_queue.items():
        (flavor, resource), figures = found[0].key, found[0].queue.figures(found[0].key)
        least, left = (amount_text(resource, amount) for amount in (figures.guarantee or 0, found[0].left))
        jobs = list(dict.fromkeys(each.unit.job.name for each in found))
        said.append(
            f"queue {name} is guaranteed {least} {resource}{f' of {flavor}' if flavor != ANY else ''} and would be "
            f"left {left}, so it keeps {few(jobs)}"
        )
    return said


def _above(session: Session, queue: Queue) -> str:
    shares, used = session.entitlements.shares.get(queue.name, {}), session.world.ledger.used
    above = {key: used(queue.name, key) - share for key, share in sorted(shares.items()) if key[1] != PODS}
    return ", ".join(
        f"{amount_text(name, amount)} {name}" + (f" of {flavor}" if flavor != ANY else "")
        for (flavor, name), amount in above.items()
        if amount > 0
    )


def _exceeds(session: Session, queue: Queue, need: int, name: str) -> bool:
    figures, shares = queue.spec.figures, session.entitlements.shares.get(queue.name, {})
    stated = {key for key, each in figures.items() if each.deserved is not None}
    keys = [key for key in shares if key[1] == name and (not stated or key in stated)]
    if any(key[0] == ANY for key in keys):
        keys = [(ANY, name)]
    return bool(keys) and need > sum(shares[key] for key in keys)


def _add(beyond: Beyond, job: Job) -> None:
    """Add what the job holds and waits for, as the ledger and the book of wishes count it."""
    for task in job.tasks.values():
        if task.state is TaskState.PENDING:
            for name, amount in task.request.items():
                beyond.wanted[name] = beyond.wanted.get(name, 0) + amount
        elif task.state is not TaskState.RELEASING and task.charged:
            for key, amount in task.charged.items():
                beyond.used[key] = beyond.used.get(key, 0) + amount
