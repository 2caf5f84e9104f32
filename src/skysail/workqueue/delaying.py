"""A work queue whose items may be added later, and one that decides itself how much later.

`DelayingQueue` keeps a heap of `(ready_at, arrival, item)`; an item waits at most once, and the earliest deadline wins.
It never sleeps: whoever drives it asks `next_ready_at()` and calls `release_due()` then.

Source: k8s.io/client-go/util/workqueue/{delaying_queue,rate_limiting_queue}.go, v1.36.
"""

from collections.abc import Callable, Hashable
from heapq import heappop, heappush
from typing import Generic, TypeVar

from skysail.api.ports import Clock
from skysail.workqueue.limiters import RateLimiter
from skysail.workqueue.metrics import QueueMetrics
from skysail.workqueue.order import Order
from skysail.workqueue.queue import WorkQueue

T = TypeVar("T", bound=Hashable)


class DelayingQueue(WorkQueue[T], Generic[T]):
    """A `WorkQueue` with `add_after`.

    Args:
        clock: Measures the delays.
        order: See `WorkQueue`.
        metrics: See `WorkQueue`.
        on_change: See `WorkQueue`; also called when the earliest deadline has changed.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        order: Order[T] | None = None,
        metrics: QueueMetrics | None = None,
        on_change: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(order=order, metrics=metrics, on_change=on_change)
        self._clock = clock
        self._heap: list[tuple[float, int, T]] = []
        self._deadlines: dict[T, tuple[float, int, int]] = {}
        self._arrivals = 0

    def add_after(self, item: T, seconds: float, priority: int = 0) -> None:
        """Add an item once `seconds` have passed; at once when that is no time at all.

        An item that waits already keeps the earlier of its two deadlines and the higher of its two priorities.
        """
        if self.shutting_down:
            return
        self._metrics.retried()
        if seconds <= 0:
            self.add(item, priority)
            return
        ready_at = self._clock.monotonic() + seconds
        waiting = self._deadlines.get(item)
        if waiting is not None:
            known_at, arrival, known_priority = waiting
            if known_at <= ready_at:
                self._deadlines[item] = (known_at, arrival, max(priority, known_priority))
                return
            priority = max(priority, known_priority)
        self._arrivals += 1
        self._deadlines[item] = (ready_at, self._arrivals, priority)
        heappush(self._heap, (ready_at, self._arrivals, item))
        if self._heap[0][1] == self._arrivals:
            self._on_change()

    def next_ready_at(self) -> float | None:
        """When, on the clock's monotonic scale, the first delayed item is due; None when none is delayed."""
        while self._heap and self._is_dead(self._heap[0]):
            heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def release_due(self) -> int:
        """Add every delayed item whose time has come; how many there were."""
        now = self._clock.monotonic()
        released = 0
        while (ready_at := self.next_ready_at()) is not None and ready_at <= now:
            item = heappop(self._heap)[2]
            priority = self._deadlines.pop(item)[2]
            self.add(item, priority)
            released += 1
        return released

    def delayed(self) -> int:
        """How many items wait for their time."""
        return len(self._deadlines)

    def shut_down(self, *, drain: bool = False) -> None:
        """See `WorkQueue.shut_down`; items whose time has not come are dropped."""
        self._heap.clear()
        self._deadlines.clear()
        super().shut_down(drain=drain)

    def _is_dead(self, entry: tuple[float, int, T]) -> bool:
        known = self._deadlines.get(entry[2])
        return known is None or known[1] != entry[1]


class RateLimitingQueue(DelayingQueue[T], Generic[T]):
    """A `DelayingQueue` that asks a limiter how long a failed item should wait.

    Args:
        limiter: Decides the delay of `add_rate_limited`.
        clock: See `DelayingQueue`.
        order: See `WorkQueue`.
        metrics: See `WorkQueue`.
        on_change: See `DelayingQueue`.
    """

    def __init__(
        self,
        limiter: RateLimiter[T],
        clock: Clock,
        *,
        order: Order[T] | None = None,
        metrics: QueueMetrics | None = None,
        on_change: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(clock, order=order, metrics=metrics, on_change=on_change)
        self._limiter = limiter

    def add_rate_limited(self, item: T, priority: int = 0, *, at_least: float = 0.0) -> float:
        """Add an item after the delay its limiter asks for, or a longer one; that delay in seconds."""
        seconds = max(at_least, self._limiter.when(item))
        self.add_after(item, seconds, priority)
        return seconds

    def forget(self, item: T) -> None:
        """The item has succeeded, or will not be retried: its next failure counts as the first. `done` is separate."""
        self._limiter.forget(item)

    def num_requeues(self, item: T) -> int:
        """How often the item was added rate-limited since it was last forgotten."""
        return self._limiter.num_requeues(item)
