"""The work queue: an item that is added many times is worked on once, and never by two workers at a time.

Invariants (T is any hashable; a controller's is a `Key`):

- `dirty`       holds every item that needs work, whether or not somebody is working on it.
- `processing`  holds every item handed out by `get_nowait` and not yet given back by `done`.
- the waiting line (`order`) holds exactly `dirty - processing`, each item once.

| call           | item is            | dirty    | processing | line            |
| -------------- | ------------------ | -------- | ---------- | --------------- |
| `add`          | unknown            | + item   |            | + item          |
| `add`          | waiting            |          |            | touched         |
| `add`          | being worked on    | + item   |            |                 |
| `get_nowait`   | next in line       | - item   | + item     | - item          |
| `done`         | clean              |          | - item     |                 |
| `done`         | dirty again        |          | - item     | + item          |

So a change that arrives while its item is being worked on is neither lost nor worked on in parallel: the item runs
again afterwards. Not promised: how often an item runs, only that it runs after the last `add`.

Source: k8s.io/client-go/util/workqueue/queue.go, v1.36. Differs: one loop owns it, so there are no locks, and waiting
is the shell's business (`AsyncWorkQueue`); a priority is remembered for an item that gets dirty while in work.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from skysail.api.errors import InvariantBroken
from skysail.workqueue.metrics import NoMetrics, QueueMetrics
from skysail.workqueue.order import ArrivalOrder, Order

T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True, slots=True)
class QueueStatistics:
    """A look into a queue: how many items wait, are in work, and got dirty while in work."""

    waiting: int
    processing: int
    dirty_in_work: int
    shutting_down: bool


class WorkQueue(Generic[T]):
    """Three sets that keep work from being lost, doubled or run in parallel; see the module's table.

    Args:
        order: The waiting line; first come first served by default.
        metrics: Where depth, adds and durations are counted.
        on_change: Called after an item became available or the queue began to shut down; a shell wakes its workers.
    """

    def __init__(
        self,
        *,
        order: Order[T] | None = None,
        metrics: QueueMetrics | None = None,
        on_change: Callable[[], None] | None = None,
    ) -> None:
        self._order: Order[T] = order if order is not None else ArrivalOrder()
        self._metrics = metrics or NoMetrics()
        self._on_change = on_change or _nothing
        self._dirty: dict[T, int] = {}
        self._processing: dict[T, int] = {}
        self._shutting_down = False
        self._draining = False

    def add(self, item: T, priority: int = 0) -> None:
        """Mark an item as needing work. Ignored while shutting down.

        Args:
            item: What to work on.
            priority: Higher goes first, in a queue with a `PriorityOrder`; for an item added twice the higher counts.
        """
        if self._shutting_down:
            return
        known = self._dirty.get(item)
        if known is not None:
            self._dirty[item] = max(known, priority)
            if item not in self._processing:
                self._order.touch(item, priority)
            return
        self._metrics.added(item)
        self._dirty[item] = priority
        if item in self._processing:
            return
        self._order.push(item, priority)
        self._on_change()

    def get_nowait(self) -> T | None:
        """Take the next item into work; None when nothing waits. Give it back with `done`."""
        if not len(self._order):
            return None
        item, priority = self._order.pop()
        self._metrics.got(item)
        self._processing[item] = priority
        del self._dirty[item]
        return item

    def priority_of(self, item: T) -> int:
        """The priority an item in work was handed out with."""
        return self._processing[item]

    def done(self, item: T) -> None:
        """Give an item back; if it got dirty meanwhile it waits in line again.

        Raises:
            InvariantBroken: The item was not in work.
        """
        if item not in self._processing:
            raise InvariantBroken(f"done called for {item!r}, which nobody is working on")
        self._metrics.finished(item)
        del self._processing[item]
        priority = self._dirty.get(item)
        if priority is not None:
            self._order.push(item, priority)
            self._on_change()
        elif not self._processing:
            self._on_change()

    def shut_down(self, *, drain: bool = False) -> None:
        """Take no more items in; what waits may still be got.

        Args:
            drain: Whether `is_drained` waits for the items that are in work. A later call without it stops waiting.
        """
        self._shutting_down = True
        self._draining = drain
        self._on_change()

    @property
    def shutting_down(self) -> bool:
        """Whether `shut_down` was called."""
        return self._shutting_down

    @property
    def is_finished(self) -> bool:
        """Shutting down, and nothing waits any more: a worker that asks for an item should end."""
        return self._shutting_down and not len(self._order)

    @property
    def is_drained(self) -> bool:
        """Shutting down, and nothing is in work, unless a shut-down without drain was asked for."""
        return self._shutting_down and (not self._draining or (not self._processing and not len(self._order)))

    def __len__(self) -> int:
        return len(self._order)

    def statistics(self) -> QueueStatistics:
        """How full the three sets are."""
        again = sum(1 for item in self._dirty if item in self._processing)
        return QueueStatistics(len(self._order), len(self._processing), again, self._shutting_down)

    def validate(self) -> None:
        """Check the invariants.

        Raises:
            InvariantBroken: The waiting line is not `dirty - processing`.
        """
        waiting = sum(1 for item in self._dirty if item not in self._processing)
        if waiting != len(self._order):
            raise InvariantBroken(f"{len(self._order)} items in line, {waiting} dirty and not in work")


def _nothing() -> None:
    """The wake-up of a queue without a shell."""
