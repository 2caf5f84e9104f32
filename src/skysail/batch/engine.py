"""The engine: when a cycle is due, what it ran on, what it gave. Pure: the shell (`app`) feeds it and obeys.

A cycle in which nothing changed is no cycle: `is_due` is a comparison of two numbers and a look at the next moment.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from skysail.batch.cycle import cycle_steps
from skysail.batch.effects import Effects
from skysail.batch.model.job import Job
from skysail.batch.model.outcome import Event
from skysail.batch.pausing import Inbox, Pause, StepsTo, finish
from skysail.batch.session import Configuration, Session
from skysail.batch.slot_ending import is_due
from skysail.batch.world import World


@dataclass(frozen=True, slots=True)
class Cycle:
    """What one cycle gave.

    Attributes:
        number: From 1.
        at: Seconds since 1970.
        effects: What the shell shall do.
        outcomes: Jobs whose code or key numbers changed: their statuses are to be written.
        tried: How many jobs were tried.
        digest: Of all decisions of this cycle, in order.
        faults: Tracebacks of what went wrong inside.
        problems: Broken invariants, where they were looked for.
    """

    number: int
    at: float
    effects: Effects
    outcomes: tuple[Job, ...]
    tried: int
    digest: str
    faults: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


@dataclass(slots=True)
class Statistics:
    """Counters since the start."""

    cycles: int = 0
    pauses: int = 0
    binds: int = 0
    evictions: int = 0
    claims: int = 0
    tried: int = 0
    faults: int = 0
    evictions_by_reason: dict[str, int] = field(default_factory=dict)


class Engine:
    """Cycles over a world.

    Args:
        world: What is decided about.
        configuration: What runs, or a function that says it at the start of each cycle.
        check: Look for broken invariants after every cycle; costs a rebuild of the ledger each time.

    Attributes:
        inbox: Whoever changes the world while a cycle may be under way does it through here.
    """

    def __init__(
        self, world: World, configuration: Configuration | Callable[[], Configuration], *, check: bool = False
    ) -> None:
        self.world = world
        self._configuration = configuration if callable(configuration) else lambda: configuration
        self._running: Configuration | None = None
        self._check = check
        self._seen = self._cache_seen = -1
        self.statistics = Statistics()
        self.inbox = Inbox()
        self.last_session: Session | None = None

    def is_due(self, now: float) -> bool:
        """Whether anything changed, or came to its time, since the last cycle."""
        world = self.world
        if world.changes != self._seen or world.sleepers.awake or self._cache_moved:
            return True
        moment = world.sleepers.next_moment()
        if moment is not None and moment <= now:
            return True
        if any(claim.deadline <= now for claim in world.claims.values()) or self._slot_is_due(now):
            return True
        return any(until <= now for until in world.protected.values())

    @property
    def _cache_moved(self) -> bool:
        """Whether the other engine changed the shared cache, perhaps after the world was told of the same event."""
        return not self.world.owns_cache and self.world.cache.generation != self._cache_seen

    def _slot_is_due(self, now: float) -> bool:
        return any(is_due(slot, now) for slot in self.world.slots.values())

    def run_once(self, now: float) -> Cycle | None:
        """One cycle at once, or None when nothing was to be done."""
        return finish(self.steps(now))

    def steps(self, now: float) -> StepsTo[Cycle | None]:
        """One cycle, step by step; at each pause the shell may let others have their turn.

        Changes of the world go through `inbox` meanwhile. A cycle in which the world moved is followed by another.
        """
        if not self.is_due(now):
            return None
        self.world.settle_usage(now)
        self.world.now = now
        self.world.end_protection()
        if self._cache_moved:
            self.world.tell(Event.NODE_CHANGED)
        running = cycle_steps(self.world, self._take_configuration())
        try:
            session = yield from self._stepped(running)
            moved = session.moves or len(self.inbox)
            self._seen, self._cache_seen = (-1, -1) if moved else (self.world.changes, self.world.cache.generation)
        finally:
            running.close()
            self.inbox.open()
        self.last_session = session
        self._count(session)
        return Cycle(
            self.statistics.cycles,
            now,
            session.effects,
            tuple({**session.outcomes, **self.world.take_relieved()}.values()),
            len(session.tried),
            session.digest,
            tuple(session.faults),
            tuple(self.world.problems()) if self._check else (),
        )

    def _stepped(self, running: StepsTo[Session]) -> StepsTo[Session]:
        """Hold the world while a step runs and while a search is open; open it between jobs."""
        while True:
            self.inbox.hold()
            try:
                pause = next(running)
            except StopIteration as end:
                session: Session = end.value
                return session
            if pause is Pause.BETWEEN:
                self.inbox.open()
            self.statistics.pauses += 1
            yield pause

    def _take_configuration(self) -> Configuration:
        configuration = self._configuration()
        if configuration is not self._running:
            for action in self._running.actions if self._running is not None else ():
                action.uninitialize()
            for action in configuration.actions:
                action.initialize()
            self._running = configuration
        return configuration

    def _count(self, session: Session) -> None:
        effects, statistics = session.effects, self.statistics
        statistics.cycles += 1
        statistics.tried += len(session.tried)
        statistics.faults += len(session.faults)
        statistics.binds += sum(len(batch.tasks) for batch in effects.binds)
        statistics.claims += len(effects.claims)
        statistics.evictions += len(effects.evictions)
        for reason, leaving in (("drain", effects.drained), ("repair", effects.let_go)):
            if leaving:
                statistics.evictions += len(leaving)
                statistics.evictions_by_reason[reason] = statistics.evictions_by_reason.get(reason, 0) + len(leaving)
        for eviction in effects.evictions:
            reason = eviction.claim.reason
            statistics.evictions_by_reason[reason] = statistics.evictions_by_reason.get(reason, 0) + 1
