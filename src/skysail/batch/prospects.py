"""Whether a job could fit at all if others left: tests that are quick, and never say no to what the search would find.

The search for victims simulates evictions and placements; on a full cluster most of it would be in vain. These tests
bound it from above, each leaving out some of what the search obeys:

    by the shares    whom may it take from, and how much of them, with each queue left what is its own
    by the ledger    is its queue, and all above it, within their capability once its victims left
    by the sums      would enough come free, were the cluster one node
    by the rows      would the nodes together hold its tasks, each kind of them for itself

A no is sound: the search would have said no as well. Tests hold both against each other on random clusters.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from skysail.batch.expressions import RowMask
from skysail.batch.model.job import Job, Task
from skysail.batch.model.queue import Queue
from skysail.batch.model.resources import ANY, FlavorResource
from skysail.batch.moves import may_claim, minimum_lack, stated_share
from skysail.batch.placing import Part, needs_of
from skysail.batch.rows import fitting_ever
from skysail.batch.session import Session
from skysail.batch.victim_pool import Pool, Source
from skysail.batch.victims import Tier, Unit

Amounts = npt.NDArray[np.int64]


def is_hopeless(session: Session, job: Job, pool: Pool, keys: Sequence[FlavorResource]) -> bool:
    """Whether no set of these units makes room for the job.

    Args:
        session: Whose shares, ledger and rows.
        job: The beneficiary.
        pool: Whom it may take from.
        keys: Dimensions that matter (`moves.short_keys`).

    Cost: Grows with queues, and with nodes in array operations; not with pods.
    """
    sources = _takeable(session, job, pool, keys)
    lacking = lacking_by_sum(session, job)
    if any(amount > _freed_at_most(session, job, sources, keys, name) for name, amount in lacking.items()):
        return True
    needs = needs_of(session, job)
    if _exceeds_ledger(session, job, sources, needs):
        return True
    return any(
        places(session, part.tasks[0], {name: _freed(session, pool, sources, name) for name in part.tasks[0].request})
        < part.need
        for part in needs
    )


# -- by the shares -----------------------------------------------------------------------------------------------------


def _takeable(session: Session, job: Job, pool: Pool, keys: Sequence[FlavorResource]) -> list[Source]:
    """Sources of which at least one unit might be taken."""
    sources = pool.sources()
    queue = session.queue_of(job)
    if queue.spec.preemption.priority_threshold is not None:
        return sources
    within: bool | None = None
    claimable: dict[str, bool] = {}
    found: list[Source] = []
    for source in sources:
        if source.tier is Tier.OVER:
            if within is None:
                within = may_claim(session, job, keys)
            if not within:
                continue
            own, side = session.world.tree.below_common_ancestor(queue, source.queue)
            if own.name not in claimable:
                claimable[own.name] = may_claim(session, job, keys, own)
            if not claimable[own.name] or not (
                _yields(session, queue, own, side) or _above(session, source, side, keys)
            ):
                continue
        found.append(source)
    return found


def _yields(session: Session, queue: Queue, own: Queue, side: Queue) -> bool:
    """Whether the victim's side must give way whatever its share is."""
    return queue.spec.preemption.within_quota == "LowerQueuePriority" and side.spec.priority < own.spec.priority


def _above(session: Session, source: Source, side: Queue, keys: Iterable[FlavorResource]) -> list[FlavorResource]:
    """Dimensions in which the side uses more than its share: in one of them every unit taken must be above."""
    found = []
    for key in keys:
        share = stated_share(session, side, key)
        if share is not None and source.charged.get(key) and session.world.ledger.used(side.name, key) > share:
            found.append(key)
    return found


# -- by the ledger -----------------------------------------------------------------------------------------------------


def _exceeds_ledger(session: Session, job: Job, sources: Sequence[Source], needs: Sequence[Part]) -> bool:
    asked: dict[str, int] = {}
    for part in needs:
        for name, amount in part.tasks[0].request.items():
            asked[name] = asked.get(name, 0) + part.need * amount
    tree = session.world.tree
    for queue in session.world.path_of_job(job):
        if tree.get(queue.name) is not queue or not queue.spec.figures:
            continue
        for name, amount in asked.items():
            key = (ANY, name)
            limit = queue.limit(key)
            if limit is None:
                continue
            freed = sum(source.charged.get(key, 0) for source in sources if queue in source.queue.path)
            if amount > limit - session.world.ledger.used(queue.name, key) + freed:
                return True
    return False


# -- by the sums -------------------------------------------------------------------------------------------------------


def lacking_by_sum(session: Session, job: Job) -> dict[str, int]:
    """What the job's minimum asks for beyond all that is free anywhere."""
    amounts, live = session.nodes.table.amounts, session.nodes.table.live
    lacking = {
        name: need - int(np.maximum(amounts.free[amounts.line(name)][live], 0).sum())
        for name, need in minimum_lack(job).items()
    }
    return {name: amount for name, amount in lacking.items() if amount > 0}


def _freed_at_most(
    session: Session, job: Job, sources: Sequence[Source], keys: Sequence[FlavorResource], name: str
) -> int:
    """How much of a resource may come free, with every queue left its share."""
    queue, total = session.queue_of(job), 0
    by_side: dict[str, tuple[Queue, list[Source]]] = {}
    bounded = queue.spec.preemption.priority_threshold is None
    for source in sources:
        if source.tier is not Tier.OVER or not bounded:
            total += source.asked(name)
            continue
        own, side = session.world.tree.below_common_ancestor(queue, source.queue)
        if _yields(session, queue, own, side):
            total += source.asked(name)
        else:
            by_side.setdefault(side.name, (side, []))[1].append(source)
    return total + sum(_side_frees(session, side, found, keys, name) for side, found in by_side.values())


def _side_frees(
    session: Session, side: Queue, sources: Sequence[Source], keys: Sequence[FlavorResource], name: str
) -> int:
    asked = sum(source.asked(name) for source in sources)
    measured = [
        key
        for key in keys
        if stated_share(session, side, key) is not None and any(source.charged.get(key) for source in sources)
    ]
    if len(measured) != 1 or measured[0][1] != name:
        return asked
    key = measured[0]
    uncharged = asked - sum(source.charged.get(key, 0) for source in sources)
    largest = max(source.largest.get(key, 0) for source in sources)
    above = session.world.ledger.used(side.name, key) - (stated_share(session, side, key) or 0)
    return min(asked, uncharged + above + largest - 1)


# -- by the rows -------------------------------------------------------------------------------------------------------


def places(session: Session, task: Task, freed: Mapping[str, Amounts]) -> int:
    """How many such tasks all nodes together would hold with so much more free on each."""
    amounts, size = session.nodes.table.amounts, session.nodes.table.size
    found: Amounts | None = None
    for name, need in task.request.items():
        times = (amounts.free[amounts.line(name)][:size] + freed[name]) // need
        found = times if found is None else np.minimum(found, times)
    assert found is not None
    found = np.where(fitting_ever(session, task), np.maximum(found, 0), 0)
    return int((np.minimum(found, 1) if task.info.host_ports else found).sum())


def _freed(session: Session, pool: Pool, sources: Sequence[Source], name: str) -> Amounts:
    """(size,) int64: what the sources free of a resource, by row."""
    total = np.zeros(session.nodes.table.size, dtype=np.int64)
    for source in sources:
        key = "freed", source.tier, source.queue.name, name
        known = pool.memo.get(key)
        if not isinstance(known, tuple) or known[0] != session.moves:
            known = pool.memo[key] = (session.moves, _freed_by(session, source, name))
        total += known[1]
    return total


def _freed_by(session: Session, source: Source, name: str) -> Amounts:
    found = np.zeros(session.nodes.table.size, dtype=np.int64)
    for request, nodes in source.requests.values():
        if request.get(name):
            np.add.at(found, session.nodes.rows_of(nodes), request[name])
    return found


@dataclass(slots=True)
class Relief:
    """What each of some units would free, and whether a job could fit without a part of them.

    Attributes:
        session: Whose rows.
        job: The beneficiary.
        units: Which.
    """

    session: Session
    job: Job
    units: Sequence[Unit]
    _moves: int = -1
    _needs: Sequence[Part] = ()
    _lacking: Mapping[str, int] = field(default_factory=dict)
    _unit: Amounts = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """(tasks,): the unit each task belongs to."""
    _row: Amounts = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """(tasks,): where it runs, -1 for nowhere."""
    _asked: dict[str, Amounts] = field(default_factory=dict)
    """(tasks,) each: what it asks for."""

    def enough_by_sum(self) -> int:
        """How many of the first units free enough, were the cluster one node; one more than all when all do not."""
        self._look()
        number = 1
        for name, amount in self._lacking.items():
            freed = np.zeros(len(self.units), dtype=np.int64)
            np.add.at(freed, self._unit, self._asked[name])
            number = max(number, int(np.searchsorted(np.cumsum(freed), amount)) + 1)
        return number

    def is_enough_by_sum(self, leaving: RowMask) -> bool:
        """Whether so many free enough, were the cluster one node."""
        self._look()
        chosen = leaving[self._unit]
        return all(int(self._asked[name][chosen].sum()) >= amount for name, amount in self._lacking.items())

    def could_fit(self, leaving: RowMask) -> bool:
        """Whether the job could fit, by sums and rows.

        Args:
            leaving: (units,) bool: which of them leave.
        """
        self._look()
        if not self.is_enough_by_sum(leaving):
            return False
        chosen = leaving[self._unit] & (self._row >= 0)
        rows, size, freed = self._row[chosen], self.session.nodes.table.size, {}
        for part in self._needs:
            for name in part.tasks[0].request:
                if name not in freed:
                    freed[name] = np.zeros(size, dtype=np.int64)
                    np.add.at(freed[name], rows, self._asked[name][chosen])
            if places(self.session, part.tasks[0], freed) < part.need:
                return False
        return True

    def _look(self) -> None:
        """Take the figures from the rows as they are, unless they are known."""
        if self._moves == self.session.moves:
            return
        session, self._moves = self.session, self.session.moves
        self._needs, self._lacking = needs_of(session, self.job), lacking_by_sum(session, self.job)
        tasks = [(number, task) for number, unit in enumerate(self.units) for task in unit.tasks]
        rows = session.nodes.table.rows
        self._unit = np.array([number for number, _ in tasks], dtype=np.int64)
        self._row = np.array([rows.get(task.node, -1) for _, task in tasks], dtype=np.int64)
        names = {name for part in self._needs for name in part.tasks[0].request} | set(self._lacking)
        self._asked = {
            name: np.array([task.request.get(name, 0) for _, task in tasks], dtype=np.int64) for name in names
        }
