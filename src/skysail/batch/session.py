"""One cycle's world: a snapshot, the callbacks plugins registered when it opened, and what was decided.

How it is opened, run and closed stands in `cycle`. A session decides only about jobs that are awake; nobody else is
looked at.
"""

import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Protocol

import msgspec

from skysail.batch.effects import Effects
from skysail.batch.expressions import Expression, RowMask, passes
from skysail.batch.model.job import Job, Task
from skysail.batch.model.outcome import Event, Outcome, OutcomeCode, told
from skysail.batch.model.queue import Queue
from skysail.batch.nodes import SessionNodes
from skysail.batch.operations import Scope
from skysail.batch.pausing import Pause, Steps
from skysail.batch.registrar import Registrar
from skysail.batch.shares import Entitlements, entitlements_of
from skysail.batch.statement import Statement
from skysail.batch.validity import structural_fault
from skysail.batch.world import World


class Arguments(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The base of every plugin's and action's arguments; itself it has none."""


class BatchPlugin(Protocol):
    """What every plugin of the batch engine has.

    A plugin is made for a configuration, registers its callbacks each time a session opens, and keeps nothing between
    sessions that a fresh process would not come to as well.
    """

    @property
    def name(self) -> str:
        """As configuration writes it."""
        ...

    def on_session_open(self, session: "Session") -> None:
        """Register callbacks."""
        ...

    def on_session_close(self, session: "Session") -> None:
        """The cycle is over."""
        ...


class Action(Protocol):
    """One step of a cycle."""

    @property
    def name(self) -> str:
        """As configuration writes it."""
        ...

    def initialize(self) -> None:
        """Before the first cycle with it."""
        ...

    def execute(self, session: "Session") -> Steps | None:
        """Do it: at once, or in steps that let others have their turn (`Session.pause`)."""
        ...

    def uninitialize(self) -> None:
        """After the last cycle with it."""
        ...


@dataclass(frozen=True)
class Configuration:
    """What a cycle runs.

    Attributes:
        actions: In order.
        plugins: In order, which is the order of answers where none is configured.
        expressions: By point, where configured.
        zone_label: The node label whose values are zones.
        claim_seconds: How long a claim waits for its victims, beyond their grace period.
        backoff_seconds: How long a job rests whose bindings failed.
    """

    actions: tuple[Action, ...]
    plugins: tuple[BatchPlugin, ...]
    expressions: Mapping[str, Expression] = field(default_factory=dict)
    zone_label: str = "zone"
    claim_seconds: float = 300.0
    backoff_seconds: float = 1.0


class Session(Registrar):
    """One cycle.

    Attributes:
        world: What is decided about.
        configuration: What runs.
        now: Seconds since 1970.
        nodes: The rows, with what was decided so far.
        effects: What the shell shall do.
        jobs: Valid awake jobs, by key.
        outcomes: Jobs whose code or key numbers changed in this session.
        tried: Keys of jobs that were tried.
        faults: Tracebacks of what went wrong inside, each the fault of one job's turn.
        moves: How often the world, or the shared cache, was found changed after a pause.
    """

    def __init__(self, world: World, configuration: Configuration) -> None:
        super().__init__([plugin.name for plugin in configuration.plugins], configuration.expressions)
        self.world, self.configuration, self.now = world, configuration, world.now
        world.cache.update_snapshot(world.snapshot)
        self.nodes = SessionNodes(world.snapshot, world.cache)
        self.effects = Effects()
        self.scope = Scope(world, self.nodes, self, self.effects)
        self.jobs: dict[str, Job] = {}
        self.outcomes: dict[str, Job] = {}
        self._known: dict[str, tuple[Job, Outcome | None]] = {}
        """What was known of jobs before their first try here: what one try finds out is put right by the next."""
        self.tried: dict[str, None] = {}
        self.faults: list[str] = []
        self.signer: Callable[[Task], object] = lambda task: id(task.request)
        """Equal for tasks that fit the same rows and score alike; the predicates plugin sets a better one."""
        self.explainers: list[Callable[[Task], Mapping[str, int]]] = []
        """Who says how many nodes gave which reason."""
        self.turns: list[Callable[[Task], bool]] = []
        """Who says that placing one such task changes where the next may go."""
        self.volume_fault: Callable[[Task], str] = lambda task: ""
        """What keeps a task's volumes from being ready anywhere; the storage plugin sets it."""
        self.max_moves = 0
        """How many pods may be moved to defragment for one job; the rescheduling plugin says so."""
        self.could_ever: Callable[[Task], RowMask] | None = None
        """On which rows may a task run once enough pods have left? The predicates plugin says so."""
        self.memo: dict[object, object] = {}
        """What actions and plugins derive in this session, under keys that name them; lost when the world moves."""
        self.moves = 0
        self.look_again: float | None = None
        """When somebody who may not be taken now may be: for who looks for victims meanwhile, see `wait_for`."""
        self._digest = blake2b(digest_size=16)
        self._entitlements: Entitlements | None = None
        self._tree = world.tree

    # -- transactions ----------------------------------------------------------------------------------------------

    def statement(self) -> Statement:
        """A transaction; see there."""
        return Statement(self.scope, self.is_enough)

    def is_enough(self, job: Job) -> bool:
        """Whether a job's minimum is met by what it has now."""
        return job.spec is None or self.job_ready(job, job.counts())

    def note(self, *words: str) -> None:
        """Make a decision part of the cycle's digest."""
        self._digest.update("\x00".join(words).encode() + b"\n")

    @property
    def digest(self) -> str:
        """A hash of all decisions in order: equal input gives equal digests."""
        return self._digest.hexdigest()

    # -- pauses ----------------------------------------------------------------------------------------------------

    def pause(self) -> Steps:
        """Let others have their turn. Nothing may be open: the world may be another one after it."""
        before = self.world.changes, self.world.cache.generation
        yield Pause.BETWEEN
        if (self.world.changes, self.world.cache.generation) != before:
            self.catch_up()

    def pause_within(self) -> Steps:
        """Let others have their turn within a search; no statement may be open. The world waits, the cache may not."""
        before = self.world.cache.generation
        yield Pause.WITHIN
        if self.world.cache.generation != before:
            self.catch_up()

    def catch_up(self) -> None:
        """Rows show the truth again, and what was derived from others is forgotten."""
        self.moves += 1
        self.world.cache.update_snapshot(self.world.snapshot)
        self.nodes.release()
        self.memo.clear()

    def is_current(self, job: Job) -> bool:
        """Whether a job is still there, waits, and has a queue: to be asked after a pause."""
        world = self.world
        return world.jobs.get(job.key) is job and job.queue in world.tree and world.is_waiting(job)

    # -- what plugins and actions ask ------------------------------------------------------------------------------

    @property
    def entitlements(self) -> Entitlements:
        """What each queue may hold, as of the opening; anew only when the queues themselves changed meanwhile."""
        if self._entitlements is None or self._tree is not self.world.tree:
            self._entitlements, self._tree = entitlements_of(self.world), self.world.tree
        return self._entitlements

    def queue_of(self, job: Job) -> Queue:
        """The queue of a valid job."""
        return self.world.tree[job.queue]

    def histogram(self, task: Task) -> dict[str, int]:
        """How many nodes gave which reason against a task."""
        found: dict[str, int] = {}
        for explain in self.explainers:
            for reason, number in explain(task).items():
                found[reason] = found.get(reason, 0) + number
        return found

    def waiting_jobs(self) -> Iterator[Job]:
        """Valid awake jobs that were not settled yet in this session, in the order they woke."""
        found = (job for job in list(self.jobs.values()) if job.key in self.world.sleepers.awake)
        if not self.moves:
            return found
        return (job for job in found if self.is_current(job) and self.validate(job) is None)

    def wait_for(self, moment: float) -> None:
        """A plugin refused something only for now: at this moment it may say otherwise."""
        self.look_again = moment if self.look_again is None else min(self.look_again, moment)

    # -- outcomes --------------------------------------------------------------------------------------------------

    def settle(self, job: Job, outcome: Outcome | None, until: float | None = None) -> None:
        """A job was tried: it goes on (None), or sleeps until what its outcome names."""
        known = self._known.get(job.key)
        if known is None or known[0] is not job:
            known = self._known[job.key] = job, job.outcome
        if self.world.settle(job, outcome, known[1]):
            self.outcomes[job.key] = job
        else:
            self.outcomes.pop(job.key, None)
        if outcome is not None:
            if until is None:
                until = self.world.sleepers.moment_of(job.key)
            trusted = self.world.next_trusted(job) if self.world.distrust else None
            until = trusted if until is None else until if trusted is None else min(until, trusted)
            self.world.sleepers.sleep(job.key, outcome.next_events or (told(Event.GROUP_CHANGED, job.key),), until)
            self.note(
                "wait", job.key, outcome.code.value, *(f"{key}={value}" for key, value in outcome.numbers.items())
            )

    @contextmanager
    def turn_of(self, job: Job) -> Iterator[None]:
        """Whatever goes wrong inside costs this job its turn, and nobody else theirs.

        The one supervisor of the pure core: a bug here, or in a plugin, must not stop the other jobs. Statements have
        discarded by the time it is caught.
        """
        try:
            yield
        except Exception as error:  # noqa: BLE001 - see above
            words = "".join(traceback.format_exception(error))
            self.faults.append(words)
            self.tried[job.key] = None
            fault = blake2b(words.encode(), digest_size=4).hexdigest()
            outcome = Outcome(
                OutcomeCode.INTERNAL_ERROR,
                f"{type(error).__name__}: {error} (fault {fault})",
                {"fault": fault},
                next_events=(told(Event.GROUP_CHANGED, job.key), told(Event.TIME)),
            )
            self.settle(job, outcome, self.now + self.configuration.backoff_seconds)

    def validate(self, job: Job) -> Outcome | None:
        """Why a job cannot be looked at, or None: what every job needs, then what plugins say."""
        return structural_fault(self.world, job) or self.refused_by_plugins(job)

    def refused_by_plugins(self, job: Job) -> Outcome | None:
        """Why plugins refuse to look at a job, or None."""
        verdict = self.job_valid(job)
        if isinstance(verdict, Outcome):
            return verdict
        if not passes(verdict):
            words = self.explain("jobValid", job)
            return Outcome(OutcomeCode.BACKOFF, f"refused: {words}", next_events=(told(Event.GROUP_CHANGED, job.key),))
        return None
