"""Starving jobs take back what is theirs: victims are chosen by placing the whole minimum; nobody is evicted in vain.

    for each job below its minimum that found no place, in order:
        could it fit at all, whoever left?                              no: nothing happens, and is said: `prospects`
        candidates, in order, as long as they are legal together        `victims`, `victim_pool`, `moves`
        would it fit with all of them gone?                             no: once more node by node (`gathering`), then
                                                                        with units that leave their queue below its
                                                                        share; no again: nothing happens, and is said
        the shortest prefix with which it fits                          binary search, all constraints, in a Statement
        put back each unit without which it still fits                  a minimal set
        is the move legal in the final state?                           potential falls, claim within entitlement; if
                                                                        not, with others of its queue that fit as well
        write the claim, then evict

The job's tasks hold their places as claimed until the victims are gone (`skysail.batch.claims`).
"""

from collections.abc import Sequence
from itertools import islice, product
from typing import Any

import numpy as np

from skysail.batch.actions.allocate_zone import place_in_zone
from skysail.batch.borrowing import Kept, demand_within
from skysail.batch.claims import waiting_for_victims
from skysail.batch.consolidation import all_find_places, units_to_move
from skysail.batch.expressions import RowMask
from skysail.batch.gathering import gathered
from skysail.batch.model.claim import Claim
from skysail.batch.model.job import Job, TaskState
from skysail.batch.model.outcome import Event, Outcome, OutcomeCode, told
from skysail.batch.moves import (
    Balance,
    Guarded,
    Move,
    borrows_by_threshold,
    may_claim,
    potential,
    short_keys,
)
from skysail.batch.pausing import Pause, Steps, StepsTo
from skysail.batch.placing import Placer
from skysail.batch.prospects import Relief, is_hopeless
from skysail.batch.scaling import scaled_away
from skysail.batch.session import Arguments, Session
from skysail.batch.statement import Statement
from skysail.batch.victim_pool import Pool, alike, forget_pools, note_taken, pool_for
from skysail.batch.victims import Tier, Unit, may_soon_take

_EVICTED_AT_ONCE = 32
"""How many units are evicted in simulation between two pauses."""
_EVICTIONS_SIMULATED = 20_000
"""How many evictions are simulated for one job to find out who need not leave."""
_JOBS_AT_ONCE = 32
_JOBS_JOINED = 128
"""How many jobs of the queue are tried beside the one a move is for, when that alone would not make it legal."""
_UNITS_AT_ONCE = 256
"""How many units are judged between two pauses."""
HELPED_BY_ROOM = frozenset(
    {OutcomeCode.NOT_ENOUGH, OutcomeCode.NO_NODE, OutcomeCode.QUOTA_EXCEEDED, OutcomeCode.NO_TOPOLOGY,
     OutcomeCode.SCHEDULE_TIMEOUT, OutcomeCode.ENTITLEMENT_SCALED}
)  # fmt: skip


class ReclaimArguments(Arguments, frozen=True):
    """Arguments.

    Attributes:
        max_put_back: How many units are tried to be put back, one placement each.
        grace_seconds: A victim's grace period when its pod does not say.
    """

    max_put_back: int = 256
    grace_seconds: float = 30.0


class Reclaim:
    """The action."""

    name = "reclaim"

    def __init__(self, arguments: ReclaimArguments) -> None:
        self._arguments = arguments
        self._starving: Sequence[Job] = ()
        self._kept = Kept()
        """For the job at hand."""

    def initialize(self) -> None:
        """Nothing to do."""

    def execute(self, session: Session) -> Steps:
        """Look for room for every starving job."""
        forget_pools(session)
        starving: list[tuple[tuple[Any, ...], Job]] = []
        for number, job in enumerate(list(session.jobs.values()), 1):
            if self._is_starving(session, job):
                starving.append(((session.queue_key(session.queue_of(job)), session.job_key(job)), job))
            if number % _JOBS_AT_ONCE == 0:
                yield from session.pause()
        starving.sort(key=lambda pair: pair[0])
        self._starving = [job for _, job in starving]
        yield from session.pause()
        for _, job in starving:
            if self._is_starving(session, job):
                with session.turn_of(job):
                    yield from self._help(session, job)
                yield from session.pause()
        self._starving = ()

    def uninitialize(self) -> None:
        """Nothing to do."""

    @staticmethod
    def _is_starving(session: Session, job: Job) -> bool:
        if job.claim is not None or job.outcome is None or job.outcome.code not in HELPED_BY_ROOM:
            return False
        if session.moves and (not session.is_current(job) or session.validate(job) is not None):
            return False
        if session.queue_of(job).is_spot or not job.in_state(TaskState.PENDING):
            return False
        return session.job_starving(job)

    def _help(self, session: Session, job: Job) -> Steps:
        key = alike(session, job)
        known = session.memo.get(key) if key is not None else None
        if isinstance(known, tuple) and known[0] == session.nodes.released:
            session.look_again = known[2]
            self._explain(session, job, known[1], known[3])
            return
        self._kept = Kept()
        pool = yield from pool_for(session, job)
        units = pool.units
        if units and (yield from self._take_from(session, job, pool)):
            return
        if session.max_moves and (yield from self._consolidate(session, job)):
            return
        if key is not None:
            session.memo[key] = (session.nodes.released, len(units), session.look_again, self._kept)
        self._explain(session, job, len(units), self._kept)

    # -- finding ---------------------------------------------------------------------------------------------------

    def _take_from(self, session: Session, job: Job, pool: Pool) -> StepsTo[bool]:
        keys, units = short_keys(session, job), pool.units
        if is_hopeless(session, job, pool, keys):
            return False
        within = may_claim(session, job, keys)
        legal: list[Unit] = []
        guarded: list[Guarded] = []
        spare_first = (True, False) if any(unit.tier is Tier.OVER for unit in units) else (False,)
        for spares, by_node in product(spare_first, (False, True)):
            order = (yield from gathered(session, job, pool)) if by_node else units
            balance = Balance(session, job, keys, within, spares=spares)
            legal, guarded = yield from _legal_together(session, pool, order, balance)
            found = (yield from self._shortest(session, job, legal)) if legal else 0
            if found:
                leaving = yield from self._put_back(session, job, legal[:found])
                if (yield from self._make(session, job, leaving)):
                    return True
            elif len(legal) == len(units):
                return False  # it does not fit with all of them gone
        if guarded and not self._kept.refused:
            found = yield from self._shortest(session, job, [*legal, *(each.unit for each in guarded)])
            queues = {each.queue.name for each in guarded[: max(0, found - len(legal))]}
            self._kept = Kept(guarded=[each for each in guarded if each.queue.name in queues])
        return False

    def _shortest(self, session: Session, job: Job, legal: Sequence[Unit]) -> StepsTo[int]:
        """The length of the shortest prefix with which the job fits, 0 when it does not fit with all of them gone.

        Begins at what would be enough by the sums alone and doubles, so that few are ever evicted in vain.
        """
        relief, numbers = Relief(session, job, legal), np.arange(len(legal))
        low = high = relief.enough_by_sum()
        if high > len(legal):
            return 0

        def fits(number: int) -> StepsTo[bool]:
            if not relief.could_fit(numbers < number):
                return False
            return (yield from self._fits_without(session, job, legal[:number]))

        while not (yield from fits(high)):
            if high >= len(legal):
                return 0
            low, high = high + 1, min(2 * high, len(legal))
            yield from session.pause_within()
        while low < high:
            middle = (low + high) // 2
            yield from session.pause_within()
            if (yield from fits(middle)):
                high = middle
            else:
                low = middle + 1
        return high

    def _put_back(self, session: Session, job: Job, units: Sequence[Unit]) -> StepsTo[list[Unit]]:
        """A minimal set: without any one of it the job does not fit."""
        needed = np.ones(len(units), dtype=np.bool_)
        relief = Relief(session, job, units)
        tries = min(self._arguments.max_put_back, max(16, _EVICTIONS_SIMULATED // len(units)))
        for number in range(len(units) - 1):
            needed[number] = False
            if tries and relief.is_enough_by_sum(needed):
                tries -= 1
                yield from session.pause_within()
                without = [unit for unit, leaves in zip(units, needed, strict=True) if leaves]
                if relief.could_fit(needed) and (yield from self._fits_without(session, job, without)):
                    continue
            needed[number] = True
        return [unit for unit, leaves in zip(units, needed, strict=True) if leaves]

    def _fits_without(self, session: Session, job: Job, units: Sequence[Unit]) -> StepsTo[bool]:
        before = session.world.cache.generation
        with session.statement() as statement:
            yield from _evict_in_steps(statement, units)
            fits = _place(session, statement, job)
        if session.world.cache.generation != before:
            session.catch_up()
        return fits

    # -- making ----------------------------------------------------------------------------------------------------

    def _make(self, session: Session, job: Job, units: Sequence[Unit]) -> StepsTo[bool]:
        takes = any(unit.tier is Tier.OVER and not borrows_by_threshold(session, job, unit) for unit in units)
        must_lower = takes and not self._is_forced(session, job)
        move = Move(units, session.nodes.released)
        if must_lower:
            demand = yield from demand_within(session)
            move = Move(units, session.nodes.released, demand, potential(session, demand))
        generation = session.world.cache.generation
        with session.statement() as statement:
            yield from _evict_in_steps(statement, units)
            moved = session.world.cache.generation != generation
            made = self._finish(session, statement, job, move)
        if moved:
            session.catch_up()
        return made

    def _finish(self, session: Session, statement: Statement, job: Job, move: Move) -> bool:
        """Place the job where the units left, and commit that if the move is legal in the final state."""
        bundle = _bundle(session, job)
        if not _place(session, statement, job):
            return False
        if not move.lowers_potential(session) and not self._joined(session, statement, job, move, bundle):
            self._kept = Kept(refused=move.units)
            return False
        claims = [self._claim(session, each, move) for each in bundle]
        if not statement.commit(claims[0]):
            session.catch_up()
            return False
        for each, claim in zip(bundle, claims, strict=True):
            session.world.set_claim(each, claim)
            session.effects.claims.append(claim)
            session.settle(each, waiting_for_victims(claim), claim.deadline)
            session.note("claim", each.key, *sorted(claim.victims), *sorted(map("@".join, claim.placement.items())))
        session.nodes.refresh()
        note_taken(session, move.released, (unit.job for unit in move.units))
        return True

    def _joined(self, session: Session, statement: Statement, job: Job, move: Move, bundle: list[Job]) -> bool:
        """Let others of the queue into the room that is left, until the move lowers the potential; adds them."""
        key = "not joined", job.queue, frozenset(task.uid for unit in move.units for task in unit.tasks)
        if session.memo.get(key) == move.released:
            return False
        of, queue = session.queue_of, session.queue_of(job)
        below, over = session.world.tree.below_common_ancestor, (u.job for u in move.units if u.tier is Tier.OVER)
        sides = {below(queue, of(victim))[0] for victim in over}
        others = (each for each in self._starving if each.queue == job.queue and each not in bundle)
        for each in islice((each for each in others if self._is_starving(session, each)), _JOBS_JOINED):
            keys, mark = short_keys(session, each), statement.checkpoint()
            if _bundle(session, each) != [each] or not all(may_claim(session, each, keys, side) for side in sides):
                continue
            if not _place(session, statement, each):
                statement.rollback(mark)
                continue
            bundle.append(each)
            if move.lowers_potential(session):
                return True
        session.memo[key] = move.released
        return False

    @staticmethod
    def _is_forced(session: Session, job: Job) -> bool:
        """Whether queue priority, not the balance of shares, is the reason."""
        return session.queue_of(job).spec.preemption.within_quota == "LowerQueuePriority"

    def _consolidate(self, session: Session, job: Job) -> StepsTo[bool]:
        """Move a few pods elsewhere, when that makes room; all of them must find a place."""
        need = max(job.pending(), key=lambda task: sum(task.request.values()))
        for units in units_to_move(session, job, need):
            with session.statement() as statement:
                _evict(statement, units)
                fits = _place(session, statement, job) and all_find_places(session, units)
            if fits and (yield from self._make(session, job, units)):
                return True
            yield from session.pause_within()
        return False

    def _claim(self, session: Session, job: Job, move: Move) -> Claim:
        victims = [task for unit in move.units for task in unit.tasks]
        graces = [task.pod.spec.termination_grace_period_seconds for task in victims]
        grace = max(self._arguments.grace_seconds if each is None else float(each) for each in graces)
        placed = job.in_state(TaskState.CLAIMED)
        return Claim(
            id=session.world.new_claim_id(),
            job=job.key,
            placement={task.uid: task.node for task in placed},
            victims={task.uid: task.key for task in victims},
            deadline=session.now + session.configuration.claim_seconds + grace,
            reason="preempt" if all(unit.tier is Tier.OWN for unit in move.units) else "reclaim",
        )

    @staticmethod
    def _explain(session: Session, job: Job, candidates: int, kept: Kept) -> None:
        """Say that room was looked for, who keeps what, and whether the job's own share is scaled down."""
        before = job.outcome
        assert before is not None
        queue = session.queue_of(job)
        scaled = ["/".join(key) for key in scaled_away(session, job, before)]
        events = before.next_events
        if may_soon_take(session, job):
            events = (*events, told(Event.BINDING_ENDED))
        if len(session.world.tree) > 1:
            events = (*events, told(Event.SHARES_MOVED, queue.name), told(Event.QUEUE_CHANGED))
        detail = {**before.detail, "candidates": candidates}
        code, message, numbers = before.code, before.message, before.numbers
        if scaled:
            code = OutcomeCode.ENTITLEMENT_SCALED
            message = f"guarantees exceed the cluster, shares of {', '.join(scaled)} are scaled: {before.message}"
            numbers = {**numbers, "queue": queue.name, "code": before.code.value}
        message = "; ".join([message, *kept.words(session, job)])
        numbers = {**numbers, **kept.numbers()}
        outcome = Outcome(code, message, numbers, before.since, events, detail)
        moments = [each for each in (session.world.next_unprotected(), session.look_again) if each is not None]
        session.settle(job, outcome, min(moments, default=None))


def _bundle(session: Session, job: Job) -> list[Job]:
    return [each for each in session.world.bundle_of(job) if not session.is_enough(each)] or [job]


def _legal_together(
    session: Session, pool: Pool, order: Sequence[Unit], balance: Balance
) -> StepsTo[tuple[list[Unit], list[Guarded]]]:
    """Units of the pool, taken in this order as long as they stay legal, and those that guarantees keep.

    Found once for jobs that may claim alike.
    """
    key = "legal", id(order), balance.terms(source.queue for source in pool.sources())
    known = pool.memo.get(key)
    if isinstance(known, tuple) and known[0] == session.moves:
        return known[2]  # type: ignore[no-any-return]
    for number, unit in enumerate(order, 1):
        if number % _UNITS_AT_ONCE == 0:
            yield from session.pause_within()
        balance.take(unit)
    pool.memo[key] = (session.moves, order, (balance.chosen, balance.guarded))
    return balance.chosen, balance.guarded


def _evict(statement: Statement, units: Sequence[Unit]) -> None:
    for unit in units:
        statement.evict(unit.job, unit.tasks)


def _evict_in_steps(statement: Statement, units: Sequence[Unit]) -> Steps:
    for number, unit in enumerate(units, 1):
        statement.evict(unit.job, unit.tasks)
        if number % _EVICTED_AT_ONCE == 0:
            yield Pause.WITHIN


def _place(session: Session, statement: Statement, job: Job) -> bool:
    """Promise places to the whole minimum of a job and its bundle."""
    for each in _bundle(session, job):
        placer = Placer(session, each, statement, statement.pipeline, claiming=True)

        def attempt(rows: RowMask | None, placer: Placer = placer) -> bool:
            placer.rows = rows
            return placer.place_minimum()

        if not place_in_zone(session, each, attempt):
            return False
        counts = each.counts((TaskState.BINDING, TaskState.BOUND, TaskState.SUCCEEDED, TaskState.CLAIMED))
        if session.job_pipelined(each, counts) < 0:
            return False
    return True
