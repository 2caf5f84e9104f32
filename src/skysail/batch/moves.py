"""When may a set of units leave for a beneficiary? Judged in the final state, all of it together.

For units of other queues (tier OVER), at the queues just below where the two paths meet:
- the beneficiary's side, with the whole minimum placed, is within what it may claim, in every dimension that is short;
- the victim's side, with the unit put back, is above its entitlement in some such dimension: so each unit by itself was
  use above entitlement, and its owner could not take the room back, for the reverse move would break the first rule;
- the victim's side keeps its guarantee;
- the potential (unserved entitlement, then use above entitlement) falls strictly; what a gang asks for that runs by
  borrowing alone counts as nobody's unserved entitlement (`borrowing`).
Only jobs below their minimum start a move. Thus from a fixed demand moves are finite, and none is undone by the next.

Units of Spot queues have no entitlement to defend. Units of the own queue are of lower priority, strictly.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

import numpy as np

from skysail.batch.model.job import Job, Task
from skysail.batch.model.queue import Queue
from skysail.batch.model.resources import ANY, PODS, FlavorResource
from skysail.batch.reasons import minimum_request
from skysail.batch.session import Session
from skysail.batch.shares import Amounts, used_by
from skysail.batch.victims import Tier, Unit


def short_keys(session: Session, job: Job) -> list[FlavorResource]:
    """Dimensions of the job's request of which too little is free in the cluster; when there are none, all."""
    amounts, size = session.nodes.table.amounts, session.nodes.table.size
    live = session.nodes.table.live[:size]
    need = minimum_request(job)
    free = {name: int(np.maximum(amounts.free[amounts.line(name)][:size][live], 0).sum()) for name in need}
    short = [name for name in need if name != PODS and free[name] < need[name]]
    if not short and free.get(PODS, 0) < need.get(PODS, 0):
        short = [PODS]
    chosen = short or [name for name in need if name != PODS] or [PODS]
    flavors = session.world.flavors.names
    return [(flavor, name) for name in chosen for flavor in (ANY, *flavors)]


@dataclass(frozen=True, slots=True)
class Move:
    """Units that leave for a job, which then fits.

    Attributes:
        units: Which.
        released: The session's count of releases before.
        demand: What queues could be served within their entitlement, where the move must lower the potential.
        potential: What that was before.
    """

    units: Sequence[Unit]
    released: int
    demand: Amounts | None = None
    potential: tuple[object, object] = (0, 0)

    def lowers_potential(self, session: Session) -> bool:
        """Whether the potential is strictly below what it was, if it must be."""
        return self.demand is None or potential(session, self.demand) < self.potential


@dataclass(frozen=True, slots=True)
class Guarded:
    """A unit that stays for nothing but its queue's guarantee.

    Attributes:
        unit: Which.
        queue: Whose guarantee: its queue, or one above.
        key: Of what.
        left: What that queue would hold without it and those chosen before.
    """

    unit: Unit
    queue: Queue
    key: FlavorResource
    left: int


@dataclass(slots=True)
class Balance:
    """Who would use what after a move, as units are chosen one by one.

    Attributes:
        session: Whose shares and ledger.
        job: The beneficiary.
        keys: Dimensions that matter.
        within: Whether the job's queue may claim the minimum (`may_claim`).
        spares: Whether a queue is left its share to the last unit; else one unit may be part above and part below.
        chosen: Units taken so far.
        guarded: Units that a guarantee kept from being taken.
        taken: What they free, by queue just below the common ancestor, and key.
    """

    session: Session
    job: Job
    keys: Sequence[FlavorResource]
    within: bool
    spares: bool = False
    chosen: list[Unit] = field(default_factory=list)
    guarded: list[Guarded] = field(default_factory=list)
    taken: dict[str, dict[FlavorResource, int]] = field(default_factory=dict)
    _may_claim: dict[str, bool] = field(default_factory=dict)
    _sides: dict[str, tuple[Queue, Queue]] = field(default_factory=dict)
    _least: dict[str, list[Mapping[FlavorResource, int]]] = field(default_factory=dict)
    """By side, what single units free; of equal ones one, for what holds for it holds for the others."""
    _refused: dict[tuple[str, object], tuple[FlavorResource, int] | None] = field(default_factory=dict)
    """Sides with what a unit would have freed: the more is taken, the less may be; with the guarantee that kept it."""

    def take(self, unit: Unit) -> bool:
        """Choose a unit, if it and all chosen before stay legal with it."""
        if unit.tier is not Tier.OVER:
            self.chosen.append(unit)
            return True
        if not self._is_claimable(unit):
            return False
        side = self._victim_side(unit)
        freed = _charges(unit.tasks)
        seen = side.name, id(freed) if len(unit.tasks) == 1 else frozenset(freed.items())
        if seen in self._refused:
            self._note_guard(unit, side, self._refused[seen])
            return False
        known = self._least.get(side.name, [])
        total = dict(self.taken.get(side.name, {}))
        for key, amount in freed.items():
            total[key] = total.get(key, 0) + amount
        units = known if freed in known else [*known, freed]
        policy = self.session.queue_of(self.job).spec.preemption.within_quota
        lower = policy == "LowerQueuePriority" and side.spec.priority < self._own_side(unit).spec.priority
        if not lower and not self._all_above(side, total, units):
            self._refused[seen] = None
            return False
        guard = None if lower else self._guard(side, total)
        if guard is not None:
            self._refused[seen] = guard
            self._note_guard(unit, side, guard)
            return False
        self.taken[side.name], self._least[side.name] = total, units
        self.chosen.append(unit)
        return True

    def _is_claimable(self, unit: Unit) -> bool:
        """Whether the beneficiary's side may claim so much; above where the paths meet nothing changes by the move."""
        return borrows_by_threshold(self.session, self.job, unit) or self._may_take_from(unit.job.queue)

    def _may_take_from(self, victims: str) -> bool:
        if not self.within:
            return False
        side = self._sides_of(victims)[0]
        if side.name not in self._may_claim:
            self._may_claim[side.name] = may_claim(self.session, self.job, self.keys, side)
        return self._may_claim[side.name]

    def terms(self, victims: Iterable[Queue]) -> tuple[object, ...]:
        """Equal for beneficiaries of one queue and priority that may take the same of these queues together."""
        from_whom = tuple(queue.name for queue in victims if self._may_take_from(queue.name))
        return tuple(self.keys), self.spares, from_whom

    def _guard(self, side: Queue, total: Mapping[FlavorResource, int]) -> tuple[FlavorResource, int] | None:
        """Of what a side would fall below its guarantee, and to what; None when it keeps all of that."""
        for key, amount in total.items():
            guarantee, used = side.figures(key).guarantee or 0, self.session.world.ledger.used(side.name, key)
            if used - amount < guarantee <= used:
                return key, used - amount
        return None

    def _note_guard(self, unit: Unit, side: Queue, guard: tuple[FlavorResource, int] | None) -> None:
        if guard is not None:
            self.guarded.append(Guarded(unit, side, *guard))

    def _all_above(
        self, side: Queue, total: Mapping[FlavorResource, int], units: Sequence[Mapping[FlavorResource, int]]
    ) -> bool:
        """Whether each unit by itself is use above the side's share."""
        ledger = self.session.world.ledger
        for unit in units:
            above = False
            for key in self.keys:
                share = stated_share(self.session, side, key) if unit.get(key) else None
                if share is None:
                    continue
                left = ledger.used(side.name, key) - total.get(key, 0)
                if (left >= share) if self.spares else (left + unit[key] > share):
                    above = True
            if not above:
                return False
        return True

    def _victim_side(self, unit: Unit) -> Queue:
        return self._sides_of(unit.job.queue)[1]

    def _own_side(self, unit: Unit) -> Queue:
        return self._sides_of(unit.job.queue)[0]

    def _sides_of(self, victims: str) -> tuple[Queue, Queue]:
        """The queues just below where the two paths meet: the beneficiary's, and the victims'."""
        found = self._sides.get(victims)
        if found is None:
            tree = self.session.world.tree
            found = self._sides[victims] = tree.below_common_ancestor(self.session.queue_of(self.job), tree[victims])
        return found


def stated_share(session: Session, side: Queue, key: FlavorResource) -> int | None:
    """Down to where a side may be taken from: its share, or its guarantee where it states no claim."""
    share = session.entitlements.of(side.name, key)
    if share is None:
        return None
    states = any(figures.deserved is not None for figures in side.spec.figures.values())
    if states and side.figures(key).deserved is None:
        return side.figures(key).guarantee or 0
    return share


def may_claim(session: Session, job: Job, keys: Iterable[FlavorResource], highest: Queue | None = None) -> bool:
    """Whether the job's minimum stays within what its queue, and those above it, may take back.

    Args:
        session: Whose shares and ledger.
        job: The beneficiary.
        keys: Dimensions that matter.
        highest: The last of its path that is asked; when None its own queue only, which may leave it to those above.
    """
    need = minimum_lack(job)
    queue = session.queue_of(job)
    last = highest or queue
    measured = highest is None
    for each in queue.path:
        for key in keys:
            share = session.entitlements.of(each.name, key)
            if share is None or not need.get(key[1]):
                continue
            measured = True
            limit = session.entitlements.claim(each, key)
            if limit is not None and session.world.ledger.used(each.name, key) + need[key[1]] > limit:
                return False
        if each is last:
            break
    return measured


def minimum_lack(job: Job) -> Mapping[str, int]:
    """What the tasks still missing from its minimum ask for."""
    ready = job.counts().total
    tasks = sorted(job.pending(), key=lambda task: sum(task.request.values()))
    need: dict[str, int] = {}
    for task in tasks[: max(1, job.min_member - ready)]:
        for resource, amount in task.request.items():
            need[resource] = need.get(resource, 0) + amount
    return need


def potential(session: Session, demand: Amounts) -> tuple[object, object]:
    """The potential of the ledger as it stands in the session.

    Args:
        session: Whose ledger and shares.
        demand: What queues could be served within their entitlement (`borrowing.demand_within`).
    """
    return session.entitlements.potential(used_by(session.world, session.world.tree), demand)


def borrows_by_threshold(session: Session, job: Job, unit: Unit) -> bool:
    """Whether a borrowing job may take this unit by its queue's priority threshold."""
    threshold = session.queue_of(job).spec.preemption.priority_threshold
    return threshold is not None and unit.job.priority < job.priority and unit.job.priority <= threshold


_NOTHING: Final[Mapping[FlavorResource, int]] = MappingProxyType({})


def _charges(tasks: Sequence[Task]) -> Mapping[FlavorResource, int]:
    if len(tasks) == 1:
        return tasks[0].charged or _NOTHING
    found: dict[FlavorResource, int] = {}
    for task in tasks:
        for key, amount in (task.charged or {}).items():
            found[key] = found.get(key, 0) + amount
    return found
