"""The operations of a Statement: each changes the session's memory, can undo that exactly, and can be committed.

    operation            memory                                                commit
    Allocate             tasks on a node, charged as held                      assumed in the cluster cache, bound
    Pipeline             tasks on a node, charged as claimed                   assumed (the shell writes the claim)
    Evict                tasks leave: row freed, charge moved to releasing     evicted by the shell, after the claim
    AllocateQuota        a slot on a node, charged as held                     its room assumed, its status written
    AllocateTaskToQuota  a task in a slot, not charged again                   assumed, bound

`uncommit` takes a committed operation back (a later one of the same job failed); `undo` must follow it.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from skysail.batch.effects import BindBatch, Effects, Eviction
from skysail.batch.freshness import lost_room
from skysail.batch.ledger import Column, Refusal
from skysail.batch.model.claim import Claim
from skysail.batch.model.job import Job, Task, TaskState
from skysail.batch.model.resources import PODS
from skysail.batch.model.slot import Slot
from skysail.batch.nodes import SessionNodes
from skysail.batch.registrar import Registrar
from skysail.batch.slot_room import room_of
from skysail.batch.world import World
from skysail.scheduler.cache.node_info import NodeInfo


@dataclass(slots=True)
class Scope:
    """What operations work on.

    Attributes:
        world: Tasks, ledger, cluster cache.
        nodes: The rows.
        registrar: Whose handlers are told.
        effects: Where commits leave what the shell shall do.
        reservers: Who takes more than room for a task.
    """

    world: World
    nodes: SessionNodes
    registrar: Registrar
    effects: Effects
    reservers: "list[Reserver]" = field(default_factory=list)


class Reserver(Protocol):
    """Takes something else for a task on a node, in memory, within the same transaction: volumes."""

    def reserve(self, task: Task, node: str) -> str:
        """Take it; why not, or empty."""
        ...

    def unreserve(self, task: Task, node: str) -> None:
        """Give it back; nothing happens when it was not taken."""
        ...


class Operation(ABC):
    """One step."""

    @abstractmethod
    def apply(self, scope: Scope) -> Refusal | None:
        """Change memory, or refuse and change nothing."""

    @abstractmethod
    def undo(self, scope: Scope) -> None:
        """Change it back."""

    @abstractmethod
    def commit(self, scope: Scope, claim: Claim | None) -> None:
        """Make it last.

        Raises:
            ValueError: It cannot be: the pod is accounted for already, or its room was taken meanwhile.
        """

    @abstractmethod
    def uncommit(self, scope: Scope) -> None:
        """Take a commit back."""

    def mend(self, scope: Scope) -> None:  # noqa: B027 - most keep nothing for others
        """Others of the same commit failed, and all that had to be was undone: set right what it keeps for them."""


@dataclass(slots=True)
class Allocate(Operation):
    """Tasks of one job, equal in what they ask for, on a node."""

    job: Job
    tasks: Sequence[Task]
    node: str
    column: Column = Column.HELD
    before: NodeInfo | None = field(default=None, init=False)
    batch: BindBatch | None = field(default=None, init=False)

    @property
    def _state(self) -> TaskState:
        return TaskState.BINDING if self.column is Column.HELD else TaskState.CLAIMED

    def apply(self, scope: Scope) -> Refusal | None:
        """Charge the ledger, which may refuse; then put the tasks on the node."""
        world, tasks = scope.world, self.tasks
        vector = world.vector_of(tasks[0].request, world.flavors.of(self.node))
        total = vector if len(tasks) == 1 else vector * len(tasks)
        refusal = world.ledger.charge(
            world.path_of_job(self.job), total, self.column, releasing_counts=self.column is Column.HELD
        )
        if refusal is None:
            refusal = _reserve(scope, tasks, self.node)
            if refusal is not None:
                world.ledger.release(world.path_of_job(self.job), total, self.column)
        if refusal is not None:
            return refusal
        self.before = scope.nodes.add(self.node, [task.info for task in tasks])
        state = self._state
        for task in tasks:
            task.state, task.node, task.charged = state, self.node, vector
        world.count_wanted(self.job, tasks[0].request, -len(tasks))
        scope.registrar.fire("allocate", self.job, tasks, self.node)
        return None

    def undo(self, scope: Scope) -> None:
        """The reverse."""
        world, tasks = scope.world, self.tasks
        scope.registrar.fire("deallocate", self.job, tasks, self.node)
        _unreserve(scope, tasks, self.node)
        world.count_wanted(self.job, tasks[0].request, len(tasks))
        vector = tasks[0].charged
        assert vector is not None
        world.ledger.release(world.path_of_job(self.job), vector * len(tasks), self.column)
        for task in tasks:
            task.state, task.node, task.charged = TaskState.PENDING, "", None
        if self.before is not None:
            scope.nodes.restore(self.before)

    def commit(self, scope: Scope, claim: Claim | None) -> None:
        """Assume the tasks; held ones shall be bound."""
        first = self.tasks[0]
        ports, promised = frozenset(first.info.host_ports), self.column is Column.CLAIMED
        lost = lost_room(scope.world, self.node, first.request, len(self.tasks), ports, promised=promised)
        if lost:
            raise ValueError(lost)
        done: list[Task] = []
        try:
            for task in self.tasks:
                scope.world.assume(task, self.node)
                done.append(task)
        except BaseException:
            for task in done:
                scope.world.unassume(task)
            raise
        if self.column is Column.HELD:
            self.batch = _batch_of(scope.effects, self.job)
            self.batch.tasks.extend(self.tasks)
            scope.registrar.fire("bind", self.job, self.tasks, self.node)

    def uncommit(self, scope: Scope) -> None:
        """Forget them."""
        for task in self.tasks:
            scope.world.unassume(task)
        _take_from(scope.effects, self.batch, self.tasks)


class Pipeline(Allocate):
    """Tasks on a node whose room is still to be freed: charged as claimed, bound once the victims are gone."""

    def __init__(self, job: Job, tasks: Sequence[Task], node: str) -> None:
        super().__init__(job, tasks, node, Column.CLAIMED)


@dataclass(slots=True)
class Evict(Operation):
    """Running tasks of one job leave."""

    job: Job
    tasks: Sequence[Task]
    reason: str = "reclaim"
    states: list[TaskState] = field(default_factory=list, init=False)
    before: list[NodeInfo] = field(default_factory=list, init=False)
    released: int = field(default=0, init=False)
    evictions: list[Eviction] = field(default_factory=list, init=False)

    def apply(self, scope: Scope) -> Refusal | None:
        """Free their rows; in the ledger they are leaving."""
        world = scope.world
        self.released = scope.nodes.released
        self.states = [task.state for task in self.tasks]
        by_node: dict[str, list[Task]] = {}
        for task in self.tasks:
            by_node.setdefault(task.node, []).append(task)
            if task.charged is not None:
                world.ledger.move(world.path_of_job(self.job), task.charged, Column.HELD, Column.RELEASING)
            task.state = TaskState.RELEASING
        for node, tasks in by_node.items():
            before = scope.nodes.remove(node, [task.info for task in tasks])
            if before is not None:
                self.before.append(before)
            scope.registrar.fire("evict", self.job, tasks, node)
        return None

    def undo(self, scope: Scope) -> None:
        """The reverse."""
        world = scope.world
        for before in reversed(self.before):
            scope.nodes.restore(before)
        self.before.clear()
        scope.nodes.released = self.released
        for task, state in zip(self.tasks, self.states, strict=True):
            task.state = state
            if task.charged is not None:
                world.ledger.move(world.path_of_job(self.job), task.charged, Column.RELEASING, Column.HELD)
            scope.registrar.fire("allocate", self.job, (task,), task.node)

    def commit(self, scope: Scope, claim: Claim | None) -> None:
        """Leave the evictions to the shell.

        Raises:
            CacheError: There is no claim: nothing is evicted without a beneficiary.
        """
        if claim is None:
            raise ValueError("an eviction needs a claim")
        self.evictions = [Eviction(task, claim) for task in self.tasks]
        scope.effects.evictions += self.evictions
        scope.world.evicting.update(task.uid for task in self.tasks)

    def uncommit(self, scope: Scope) -> None:
        """Evict nobody."""
        scope.world.evicting.difference_update(task.uid for task in self.tasks)
        scope.effects.evictions = [each for each in scope.effects.evictions if each not in self.evictions]


@dataclass(slots=True)
class AllocateQuota(Operation):
    """A slot on a node."""

    slot: Slot
    node: str
    before: NodeInfo | None = field(default=None, init=False)

    def apply(self, scope: Scope) -> Refusal | None:
        """Charge its queue, which may refuse; then let it stand on the node."""
        world, slot = scope.world, self.slot
        vector = world.vector_of(slot.spec.resources, world.flavors.of(self.node))
        refusal = world.ledger.charge(world.path_of(slot.spec.queue), vector)
        if refusal is not None:
            return refusal
        world.stand(slot, self.node)
        self.before = scope.nodes.add(self.node, [room_of(slot)])
        return None

    def undo(self, scope: Scope) -> None:
        """The reverse."""
        world, slot = scope.world, self.slot
        vector = world.vector_of(slot.spec.resources, world.flavors.of(self.node))
        world.ledger.release(world.path_of(slot.spec.queue), vector)
        world.lift(slot)
        if self.before is not None:
            scope.nodes.restore(self.before)

    def commit(self, scope: Scope, claim: Claim | None) -> None:
        """Its room stands in the cache; its status shall say where.

        Raises:
            ValueError: The room was taken meanwhile.
        """
        lost = lost_room(scope.world, self.node, {**self.slot.spec.resources, PODS: 1})
        if lost:
            raise ValueError(lost)
        scope.world.refill_slot(self.slot, self.node)
        scope.effects.slots.append(self.slot)

    def uncommit(self, scope: Scope) -> None:
        """Not."""
        scope.effects.slots.remove(self.slot)

    def mend(self, scope: Scope) -> None:
        """Its node keeps room for it, or no longer."""
        scope.world.refill_slot(self.slot, self.node)


@dataclass(slots=True)
class AllocateTaskToQuota(Operation):
    """A task in a slot that has a node."""

    task: Task
    slot: Slot
    before: NodeInfo | None = field(default=None, init=False)
    idle_since: float | None = field(default=None, init=False)
    batch: BindBatch | None = field(default=None, init=False)

    def apply(self, scope: Scope) -> Refusal | None:
        """The slot's room shrinks by the task; the queue is not charged again."""
        task, slot = self.task, self.slot
        refusal = _reserve(scope, (task,), slot.node)
        if refusal is not None:
            return refusal
        self.idle_since = slot.idle_since
        self.before = scope.nodes.remove(slot.node, scope.world.room_with(slot))
        slot.put(task)
        scope.nodes.add(slot.node, [task.info, *scope.world.room_with(slot)])
        task.slot, task.state, task.node = slot, TaskState.BINDING, slot.node
        scope.world.count_wanted(task.job, task.request, -1)
        scope.registrar.fire("allocate", task.job, (task,), slot.node)
        return None

    def undo(self, scope: Scope) -> None:
        """The reverse."""
        task, slot = self.task, self.slot
        scope.registrar.fire("deallocate", task.job, (task,), slot.node)
        _unreserve(scope, (task,), slot.node)
        scope.world.count_wanted(task.job, task.request, 1)
        slot.take(task, 0.0)
        slot.idle_since = self.idle_since
        task.slot, task.state, task.node = None, TaskState.PENDING, ""
        if self.before is not None:
            scope.nodes.restore(self.before)

    def commit(self, scope: Scope, claim: Claim | None) -> None:
        """Assume the task, and the smaller room.

        Raises:
            ValueError: The slot lost its node meanwhile.
        """
        if self.slot.node != self.task.node:
            raise ValueError(f"slot {self.slot.key} is no longer on node {self.task.node}")
        scope.world.assume(self.task, self.slot.node)
        scope.world.refill_slot(self.slot, self.slot.node)
        self.batch = _batch_of(scope.effects, self.task.job)
        self.batch.tasks.append(self.task)
        if self.slot.spec.ends_with_use and not self.slot.was_used:
            scope.effects.slots.append(self.slot)
        scope.registrar.fire("bind", self.task.job, (self.task,), self.slot.node)

    def uncommit(self, scope: Scope) -> None:
        """Forget it."""
        scope.world.unassume(self.task)
        _take_from(scope.effects, self.batch, (self.task,))

    def mend(self, scope: Scope) -> None:
        """The slot's room is what its holders leave."""
        if self.slot.node:
            scope.world.refill_slot(self.slot, self.slot.node)


def _reserve(scope: Scope, tasks: Sequence[Task], node: str) -> Refusal | None:
    """Let reservers take what they take for each task, all or nothing."""
    done: list[Task] = []
    for task in tasks if scope.reservers else ():
        done.append(task)
        words = next((said for each in scope.reservers if (said := each.reserve(task, node))), "")
        if words:
            _unreserve(scope, done, node)
            return Refusal("", ("", ""), 0, 0, 0, words)
    return None


def _unreserve(scope: Scope, tasks: Sequence[Task], node: str) -> None:
    for reserver in scope.reservers:
        for task in tasks:
            reserver.unreserve(task, node)


def _batch_of(effects: Effects, job: Job) -> BindBatch:
    if not effects.binds or effects.binds[-1].job is not job:
        effects.binds.append(BindBatch(job, []))
    return effects.binds[-1]


def _take_from(effects: Effects, batch: BindBatch | None, tasks: Sequence[Task]) -> None:
    if batch is None:
        return
    gone = {task.uid for task in tasks}
    batch.tasks[:] = [task for task in batch.tasks if task.uid not in gone]
    if not batch.tasks and batch in effects.binds:
        effects.binds.remove(batch)
