"""Where plugins register their callbacks, and how their answers are asked for: one method a point, each way.

A plugin registers with `session.add_<point>(name, callback)` when the session opens. `None` from a callback abstains.
Asking evaluates the point's expression (see `expressions`).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from skysail.batch.expressions import (
    Expression,
    RowMask,
    RowScores,
    Verdict,
    collect,
    compute,
    compute_rows,
    decide,
    decide_rows,
    default_expression,
    evaluated,
    passes,
)
from skysail.batch.model.job import Counts, Job, Task
from skysail.batch.model.queue import Queue
from skysail.batch.model.resources import ResourceVector
from skysail.batch.model.slot import Slot
from skysail.batch.points import POINTS

T = TypeVar("T")
Handler = Callable[[Job, Sequence[Task], str], None]
"""Told of tasks of a job on (or off) a node."""


class Registrar:
    """The tables of callbacks of one session.

    Args:
        plugins: Names in configured order.
        expressions: By point, where configured.
    """

    def __init__(self, plugins: Sequence[str], expressions: Mapping[str, Expression]) -> None:
        self._plugins, self._configured = plugins, expressions
        self._tables: dict[str, dict[str, Any]] = {name: {} for name in POINTS}
        self._expressions: dict[str, Expression | None] = {}
        self._orders: dict[str, tuple[Callable[[Any], Any], ...]] = {}
        self._handlers: dict[str, list[Handler]] = {"allocate": [], "deallocate": [], "evict": [], "bind": []}
        self._depends_on: dict[tuple[str, str], Callable[[Job], object] | None] = {}

    def _add(self, point: str, plugin: str, callback: object) -> None:
        self._tables[point][plugin] = callback
        self._expressions.pop(point, None)
        self._orders.pop(point, None)

    def expression(self, point: str) -> Expression | None:
        """The configured expression, or the default over the plugins that registered."""
        if point not in self._expressions:
            registered = [name for name in self._plugins if name in self._tables[point]]
            self._expressions[point] = self._configured.get(point) or default_expression(POINTS[point], registered)
        return self._expressions[point]

    def _asker(self, point: str, *arguments: object) -> Callable[[str], Any]:
        table = self._tables[point]

        def ask(plugin: str) -> Any:
            callback = table.get(plugin)
            return None if callback is None else callback(*arguments)

        return ask

    def _decide(self, point: str, *arguments: object) -> Verdict:
        expression = self.expression(point)
        answer = None if expression is None else decide(expression, self._asker(point, *arguments))
        return POINTS[point].neutral if answer is None else answer

    def _collect(self, point: str, asker: object, candidates: Sequence[T]) -> list[T]:
        expression = self.expression(point)
        found = None if expression is None else collect(expression, self._asker(point, asker, candidates))
        return [] if found is None else found

    def _key(self, point: str, item: object) -> tuple[Any, ...]:
        callbacks = self._orders.get(point)
        if callbacks is None:
            expression, table = self.expression(point), self._tables[point]
            names = () if expression is None else expression.names
            callbacks = self._orders[point] = tuple(table[name] for name in names if name in table)
        return tuple([_orderable(callback(item)) for callback in callbacks])

    def explain(self, point: str, *arguments: object) -> str:
        """The evaluated expression with each plugin's answer, for people."""
        expression = self.expression(point)
        return "" if expression is None else evaluated(expression, self._asker(point, *arguments))

    # -- yes or no -------------------------------------------------------------------------------------------------

    def add_job_valid(self, plugin: str, callback: Callable[[Job], Verdict | None]) -> None:
        """May the job be looked at at all?"""
        self._add("jobValid", plugin, callback)

    def job_valid(self, job: Job) -> Verdict:
        """Ask."""
        return self._decide("jobValid", job)

    def add_job_ready(self, plugin: str, callback: Callable[[Job, Counts], Verdict | None]) -> None:
        """Has the job enough with these tasks in place?"""
        self._add("jobReady", plugin, callback)

    def job_ready(self, job: Job, counts: Counts) -> bool:
        """Ask."""
        return passes(self._decide("jobReady", job, counts))

    def add_job_enqueueable(self, plugin: str, callback: Callable[[Job], Verdict | None]) -> None:
        """Shall its status say Inqueue? Never hides a job from a decision."""
        self._add("jobEnqueueable", plugin, callback)

    def job_enqueueable(self, job: Job) -> bool:
        """Ask."""
        return passes(self._decide("jobEnqueueable", job))

    def add_allocatable(self, plugin: str, callback: Callable[[Queue, Job, ResourceVector], Verdict | None]) -> None:
        """May the queue take this much more for the job? On top of the ledger, which always has its say."""
        self._add("allocatable", plugin, callback)

    def allocatable(self, queue: Queue, job: Job, vector: ResourceVector) -> Verdict:
        """Ask."""
        return self._decide("allocatable", queue, job, vector)

    def add_predicate(self, plugin: str, callback: Callable[[Task], RowMask | None]) -> None:
        """On which rows may the task run? (size,) bool."""
        self._add("predicate", plugin, callback)

    def predicate(self, task: Task) -> RowMask | None:
        """Ask; None when all abstain."""
        expression = self.expression("predicate")
        return None if expression is None else decide_rows(expression, self._asker("predicate", task))

    def add_quota_predicate(self, plugin: str, callback: Callable[[Task, Slot], Verdict | None]) -> None:
        """May the task sit in the slot?"""
        self._add("quotaPredicate", plugin, callback)

    def quota_predicate(self, task: Task, slot: Slot) -> bool:
        """Ask."""
        return passes(self._decide("quotaPredicate", task, slot))

    def add_overused(self, plugin: str, callback: Callable[[Queue], Verdict | None]) -> None:
        """Has the queue enough, so that its jobs are passed over?"""
        self._add("overused", plugin, callback)

    def overused(self, queue: Queue) -> bool:
        """Ask."""
        return passes(self._decide("overused", queue))

    def add_job_starving(self, plugin: str, callback: Callable[[Job], Verdict | None]) -> None:
        """Is the job below its minimum, so that it may take from others?"""
        self._add("jobStarving", plugin, callback)

    def job_starving(self, job: Job) -> bool:
        """Ask."""
        return passes(self._decide("jobStarving", job))

    # -- numbers ---------------------------------------------------------------------------------------------------

    def add_job_pipelined(self, plugin: str, callback: Callable[[Job, Counts], int | None]) -> None:
        """Is it enough if these tasks wait for victims to leave? Below 0 refuses."""
        self._add("jobPipelined", plugin, callback)

    def job_pipelined(self, job: Job, counts: Counts) -> int:
        """Ask."""
        expression = self.expression("jobPipelined")
        found = None if expression is None else compute(expression, self._asker("jobPipelined", job, counts))
        return 0 if found is None else found

    def add_node_order(self, plugin: str, callback: Callable[[Task], RowScores | None]) -> None:
        """How good is each row for the task? (size,) int64, more is better; any row, fitting or not."""
        self._add("nodeOrder", plugin, callback)

    def add_batch_node_order(self, plugin: str, callback: Callable[[Task], RowScores | None]) -> None:
        """Alike, for scorers that look at all rows together."""
        self._add("batchNodeOrder", plugin, callback)

    def node_order(self, task: Task) -> RowScores | None:
        """Ask both; None when all abstain."""
        found: RowScores | None = None
        for point in ("nodeOrder", "batchNodeOrder"):
            expression = self.expression(point)
            scores = None if expression is None else compute_rows(expression, self._asker(point, task))
            if scores is not None:
                found = scores if found is None else np.add(found, scores)
        return found

    def add_quota_order_score(self, plugin: str, callback: Callable[[Task, Slot], int | None]) -> None:
        """How good is the slot for the task? More is better."""
        self._add("quotaOrderScore", plugin, callback)

    def quota_order_score(self, task: Task, slot: Slot) -> int:
        """Ask."""
        expression = self.expression("quotaOrderScore")
        found = None if expression is None else compute(expression, self._asker("quotaOrderScore", task, slot))
        return 0 if found is None else found

    def add_zone_order(self, plugin: str, callback: Callable[[Job, str], int | None]) -> None:
        """How good is the zone for the job? More is better."""
        self._add("zoneOrder", plugin, callback)

    def zone_order(self, job: Job, zone: str) -> int:
        """Ask."""
        expression = self.expression("zoneOrder")
        found = None if expression is None else compute(expression, self._asker("zoneOrder", job, zone))
        return 0 if found is None else found

    # -- sets ------------------------------------------------------------------------------------------------------

    def add_preemptable(
        self,
        plugin: str,
        callback: Callable[[Job, Sequence[Task]], Sequence[Task] | None],
        depends_on: Callable[[Job], object] | None = None,
    ) -> None:
        """Which tasks of its own queue may the job evict?

        Args:
            plugin: Whose answer.
            callback: The answer.
            depends_on: What of the job the answer depends on, beside its queue; by this it promises to judge each
                candidate for itself, by what that candidate's job is and does. Jobs for which all plugins say the same
                here share their victims; without it each job's are looked for anew.
        """
        self._add("preemptable", plugin, callback)
        self._depends_on["preemptable", plugin] = depends_on

    def preemptable(self, job: Job, candidates: Sequence[Task]) -> list[Task]:
        """Ask."""
        return self._collect("preemptable", job, candidates)

    def add_reclaimable(
        self,
        plugin: str,
        callback: Callable[[Job, Sequence[Task]], Sequence[Task] | None],
        depends_on: Callable[[Job], object] | None = None,
    ) -> None:
        """Which tasks of other queues may the job evict? `depends_on` as in `add_preemptable`."""
        self._add("reclaimable", plugin, callback)
        self._depends_on["reclaimable", plugin] = depends_on

    def reclaimable(self, job: Job, candidates: Sequence[Task]) -> list[Task]:
        """Ask."""
        return self._collect("reclaimable", job, candidates)

    def kind_of_beneficiary(self, job: Job) -> tuple[object, ...] | None:
        """Equal for jobs of one queue that may take from the same tasks; None when some plugin does not promise it."""
        found: list[object] = []
        for depends_on in self._depends_on.values():
            if depends_on is None:
                return None
            found.append(depends_on(job))
        return tuple(found)

    def add_victim(self, plugin: str, callback: Callable[[None, Sequence[Task]], Sequence[Task] | None]) -> None:
        """Which tasks should move for their own or the cluster's sake (rescheduling)?"""
        self._add("victim", plugin, callback)

    def victims(self, candidates: Sequence[Task]) -> list[Task]:
        """Ask."""
        return self._collect("victim", None, candidates)

    def add_candidate_nodes(self, plugin: str, callback: Callable[[Job, Sequence[str]], Sequence[str] | None]) -> None:
        """Among which nodes shall the job be placed?"""
        self._add("candidateNodes", plugin, callback)

    def candidate_nodes(self, job: Job, names: Sequence[str]) -> list[str] | None:
        """Ask; None when nobody narrows the search."""
        expression = self.expression("candidateNodes")
        return None if expression is None else collect(expression, self._asker("candidateNodes", job, names))

    # -- orders ----------------------------------------------------------------------------------------------------

    def add_job_order(self, plugin: str, callback: Callable[[Job], object]) -> None:
        """A key that compares; smaller goes first."""
        self._add("jobOrder", plugin, callback)

    def job_key(self, job: Job) -> tuple[Any, ...]:
        """The job's place: plugins' keys, then age, then uid."""
        return (*self._key("jobOrder", job), job.created, job.uid)

    def add_task_order(self, plugin: str, callback: Callable[[Task], object]) -> None:
        """A key that compares."""
        self._add("taskOrder", plugin, callback)

    def task_key(self, task: Task) -> tuple[Any, ...]:
        """The task's place in its job."""
        return (*self._key("taskOrder", task), task.order)

    def add_queue_order(self, plugin: str, callback: Callable[[Queue], object]) -> None:
        """A key that compares; may change as the session allocates, for the worse only."""
        self._add("queueOrder", plugin, callback)

    def queue_key(self, queue: Queue) -> tuple[Any, ...]:
        """The queue's place among all leaves: of its ancestors first."""
        return tuple((*self._key("queueOrder", each), each.spec.created, each.name) for each in reversed(queue.path))

    def add_quota_order(self, plugin: str, callback: Callable[[Slot], object]) -> None:
        """A key that compares: which pending slot is bound first."""
        self._add("quotaOrder", plugin, callback)

    def quota_key(self, slot: Slot) -> tuple[Any, ...]:
        """The slot's place."""
        return (*self._key("quotaOrder", slot), slot.spec.created, slot.key)

    # -- events ----------------------------------------------------------------------------------------------------

    def add_handler(
        self,
        *,
        allocate: Handler | None = None,
        deallocate: Handler | None = None,
        evict: Handler | None = None,
        bind: Handler | None = None,
    ) -> None:
        """Be told of every change the session makes, and of every undo (`deallocate` undoes allocate and pipeline)."""
        for name, handler in (("allocate", allocate), ("deallocate", deallocate), ("evict", evict), ("bind", bind)):
            if handler is not None:
                self._handlers[name].append(handler)

    def fire(self, event: str, job: Job, tasks: Sequence[Task], node: str) -> None:
        """Tell the handlers."""
        for handler in self._handlers[event]:
            handler(job, tasks, node)


def _orderable(key: object) -> Any:
    """An abstention tells nothing apart from the smallest key."""
    return _LEAST if key is None else key


class _Least:
    """Equal to itself, smaller than nothing and greater than nothing: told apart by the next plugin."""

    def __eq__(self, other: object) -> bool:
        return True

    def __lt__(self, other: object) -> bool:
        return False

    def __gt__(self, other: object) -> bool:
        return False

    __hash__ = None  # type: ignore[assignment]


_LEAST = _Least()
