"""Whom jobs of one kind may take from: looked for once a session, and mended when somebody was taken.

A cluster that is full has a long line of starving jobs, and most of them may take from the same tasks. Invariant: a
pool's units are those `candidate_units` would find anew; what was derived of them is lost when one of them changes.
"""

from bisect import insort
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from skysail.batch.model.job import Job, TaskState
from skysail.batch.model.queue import Queue
from skysail.batch.model.resources import FlavorResource
from skysail.batch.pausing import StepsTo
from skysail.batch.rows import signature
from skysail.batch.session import Session
from skysail.batch.victims import RankedUnit, Tier, Unit, find_running_jobs, preemption_rank, rank_of, ranked_units

_POOLS = "victim pools"
_UNITS_AT_ONCE = 1024
"""How many units are sorted by their source between two pauses."""


@dataclass(slots=True)
class Source:
    """All units of one tier and queue.

    Attributes:
        tier: Why they may be taken.
        queue: Whose they are.
        requests: What their tasks ask for, equal requests once, with the nodes of those tasks.
        charged: What the ledger holds for them, by key.
        largest: What the largest unit is charged, by key.
    """

    tier: Tier
    queue: Queue
    requests: dict[int, tuple[Mapping[str, int], list[str]]] = field(default_factory=dict)
    charged: dict[FlavorResource, int] = field(default_factory=dict)
    largest: dict[FlavorResource, int] = field(default_factory=dict)

    def add(self, unit: Unit) -> None:
        """One more."""
        freed: dict[FlavorResource, int] = {}
        for task in unit.tasks:
            known = self.requests.get(id(task.request))
            if known is None:
                known = self.requests[id(task.request)] = (task.request, [])
            known[1].append(task.node)
            for key, amount in (task.charged or {}).items():
                freed[key] = freed.get(key, 0) + amount
        for key, amount in freed.items():
            self.charged[key] = self.charged.get(key, 0) + amount
            if amount > self.largest.get(key, 0):
                self.largest[key] = amount

    def asked(self, name: str) -> int:
        """What their tasks ask for of a resource."""
        return sum(request.get(name, 0) * len(nodes) for request, nodes in self.requests.values())


@dataclass(slots=True, eq=False)
class Pool:
    """The units that jobs of one kind may take.

    Attributes:
        ranked: With their ranks, in order.
        look_again: When somebody who may not be taken now may be.
        released: The session's count of releases up to which the units are known to be right.
        changed: Jobs some of whose tasks were taken since, by key.
        memo: What was derived of the units.
    """

    ranked: list[RankedUnit]
    look_again: float | None
    released: int
    changed: dict[str, Job] = field(default_factory=dict)
    memo: dict[object, object] = field(default_factory=dict)

    @property
    def units(self) -> list[Unit]:
        """In order."""
        known = self.memo.get("units")
        if not isinstance(known, list):
            known = self.memo["units"] = [unit for _, unit in self.ranked]
        return known

    def sources(self) -> list[Source]:
        """The units by tier and queue, as `pool_for` sorted them."""
        known = self.memo["sources"]
        assert isinstance(known, list)
        return known


def pool_for(session: Session, job: Job) -> StepsTo[Pool]:
    """The units the job may take, `session.look_again` set as if they were looked for now.

    Cost: Grows with running pods for the first job of a kind, then with the jobs that were taken from since.
    """
    kind = _kind(session, job)
    pools = _pools(session)
    pool = pools.get(kind) if kind is not None else None
    if pool is None or pool.released != session.nodes.released:
        session.look_again = None
        ranked = yield from ranked_units(session, job, (yield from find_running_jobs(session)))
        pool = Pool(ranked, session.look_again, session.nodes.released)
        if kind is not None:
            _pools(session)[kind] = pool
    elif pool.changed:
        yield from _mend(session, job, pool)
    session.look_again = pool.look_again
    if "sources" not in pool.memo:
        pool.memo["sources"] = yield from _sources(session, pool.units)
    return pool


def _sources(session: Session, units: Sequence[Unit]) -> StepsTo[list[Source]]:
    found: dict[tuple[Tier, str], Source] = {}
    for number, unit in enumerate(units, 1):
        source = found.get((unit.tier, unit.job.queue))
        if source is None:
            source = found[unit.tier, unit.job.queue] = Source(unit.tier, session.queue_of(unit.job))
        source.add(unit)
        if number % _UNITS_AT_ONCE == 0:
            yield from session.pause_within()
    return list(found.values())


def _mend(session: Session, job: Job, pool: Pool) -> StepsTo[None]:
    changed, pool.changed = pool.changed, {}
    session.look_again = pool.look_again
    anew = yield from ranked_units(session, job, list(changed.values()))
    pool.ranked = [each for each in pool.ranked if each[1].job.key not in changed]
    for each in anew:
        insort(pool.ranked, each, key=rank_of)
    pool.look_again = session.look_again
    pool.memo.clear()


def note_taken(session: Session, before: int, jobs: Iterable[Job]) -> None:
    """Some tasks of these jobs were taken, and nothing else happened.

    Args:
        session: Which.
        before: Its count of releases until then.
        jobs: Whose tasks.
    """
    taken_from = {job.key: job for job in jobs}
    for pool in _pools(session).values():
        if pool.released == before:
            pool.released = session.nodes.released
            pool.changed |= taken_from


def forget_pools(session: Session) -> None:
    """Others may have changed the world since: units are to be looked for anew."""
    session.memo.pop(_POOLS, None)


def _pools(session: Session) -> dict[object, Pool]:
    known = session.memo.setdefault(_POOLS, {})
    assert isinstance(known, dict)
    return known


def _kind(session: Session, job: Job) -> object:
    """Equal for jobs that may take from the same tasks; None when that cannot be said."""
    asked = session.kind_of_beneficiary(job)
    if asked is None or job.is_running() or (job.spec is not None and job.spec.bundle):
        return None
    return job.queue, *preemption_rank(session.queue_of(job), job), *asked


def alike(session: Session, job: Job) -> object:
    """Equal for jobs of which one finds a move when the other does; None for a job like no other."""
    spec, taken_from = job.spec, session.kind_of_beneficiary(job)
    if taken_from is None or spec is None or spec.bundle or spec.sub_groups or job.is_running() or job.counts().total:
        return None
    if any(key == job.key for key, _ in session.world.distrust):
        return None
    kinds = Counter((task.role, signature(session, task)) for task in job.in_state(TaskState.PENDING))
    minimum = spec.min_member, frozenset(spec.min_task_member.items()), spec.match_policy, job.was_ready, spec.zone
    rank = preemption_rank(session.queue_of(job), job)
    return "no move", job.queue, job.user, job.namespace, rank, taken_from, minimum, frozenset(kinds.items())
