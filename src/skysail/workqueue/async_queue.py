"""The shell of a work queue: workers that wait for an item, and timers for the delayed ones.

All decisions are those of `RateLimitingQueue`; this module only sleeps and wakes.
"""

import asyncio
from collections.abc import Hashable
from typing import Generic, TypeVar

from skysail.api.ports import Clock
from skysail.workqueue.delaying import RateLimitingQueue
from skysail.workqueue.limiters import RateLimiter, default_controller_limiter
from skysail.workqueue.metrics import QueueMetrics
from skysail.workqueue.order import Order
from skysail.workqueue.queue import QueueStatistics

T = TypeVar("T", bound=Hashable)


class QueueShutDown(Exception):
    """The queue takes nothing in any more and has nothing left: a worker should end."""


class AsyncWorkQueue(Generic[T]):
    """A rate-limiting work queue to await on.

    Belongs to one event loop; `add` and its kin may be called from any callback on it.

    Args:
        clock: Measures delays; must follow the event loop's time.
        limiter: Delays of failed items; the usual controller limits by default.
        order: First come first served, or `PriorityOrder`.
        metrics: Where depth, adds and durations are counted.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        limiter: RateLimiter[T] | None = None,
        order: Order[T] | None = None,
        metrics: QueueMetrics | None = None,
    ) -> None:
        self._clock = clock
        self._queue: RateLimitingQueue[T] = RateLimitingQueue(
            limiter if limiter is not None else default_controller_limiter(clock),
            clock,
            order=order,
            metrics=metrics,
            on_change=self._changed,
        )
        self._getters: list[asyncio.Future[None]] = []
        self._drainers: list[asyncio.Future[None]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0

    def add(self, item: T, priority: int = 0) -> None:
        """Mark an item as needing work."""
        self._queue.add(item, priority)

    def add_after(self, item: T, seconds: float, priority: int = 0) -> None:
        """Add an item once `seconds` have passed; of two deadlines the earlier counts."""
        self._queue.add_after(item, seconds, priority)

    def add_rate_limited(self, item: T, priority: int = 0, *, at_least: float = 0.0) -> float:
        """Add an item after the delay its limiter asks for, or a longer one; that delay in seconds."""
        return self._queue.add_rate_limited(item, priority, at_least=at_least)

    def forget(self, item: T) -> None:
        """The item's next failure counts as its first."""
        self._queue.forget(item)

    def num_requeues(self, item: T) -> int:
        """Failures remembered for the item."""
        return self._queue.num_requeues(item)

    def priority_of(self, item: T) -> int:
        """The priority an item in work was handed out with."""
        return self._queue.priority_of(item)

    async def get(self) -> T:
        """Wait for the next item; give it back with `done`.

        Raises:
            QueueShutDown: The queue is shutting down and nothing waits.
        """
        while True:
            item = self._queue.get_nowait()
            if item is not None:
                if len(self._queue):
                    self._wake_getter()
                return item
            if self._queue.is_finished:
                raise QueueShutDown
            waiter = asyncio.get_running_loop().create_future()
            self._getters.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                if waiter in self._getters:
                    self._getters.remove(waiter)
                else:
                    self._wake_getter()
                raise

    def done(self, item: T) -> None:
        """Give an item back."""
        self._queue.done(item)

    def shut_down(self) -> None:
        """Take nothing more in; waiting workers end once the line is empty."""
        self._queue.shut_down()

    async def shut_down_with_drain(self) -> None:
        """Take nothing more in and wait until all that waits or is in work is done."""
        self._queue.shut_down(drain=True)
        while not self._queue.is_drained:
            waiter = asyncio.get_running_loop().create_future()
            self._drainers.append(waiter)
            await waiter

    @property
    def shutting_down(self) -> bool:
        """Whether the queue takes nothing in any more."""
        return self._queue.shutting_down

    def delayed(self) -> int:
        """How many items wait for their time."""
        return self._queue.delayed()

    @property
    def next_ready_at(self) -> float | None:
        """When the first delayed item is due, on the clock's monotonic scale."""
        return self._queue.next_ready_at()

    def __len__(self) -> int:
        return len(self._queue)

    def statistics(self) -> QueueStatistics:
        """How full the three sets are."""
        return self._queue.statistics()

    def _changed(self) -> None:
        if len(self._queue):
            self._wake_getter()
        if self._queue.shutting_down:
            for waiter in self._getters + self._drainers:
                if not waiter.done():
                    waiter.set_result(None)
            self._getters.clear()
            self._drainers.clear()
        self._arm_timer()

    def _wake_getter(self) -> None:
        while self._getters:
            waiter = self._getters.pop(0)
            if not waiter.done():
                waiter.set_result(None)
                return

    def _arm_timer(self) -> None:
        ready_at = self._queue.next_ready_at()
        if self._timer is not None:
            if ready_at is not None and self._timer_at == ready_at:
                return
            self._timer.cancel()
            self._timer = None
        if ready_at is not None:
            self._timer_at = ready_at
            delay = max(0.0, ready_at - self._clock.monotonic())
            self._timer = asyncio.get_running_loop().call_later(delay, self._timer_fired)

    def _timer_fired(self) -> None:
        self._timer = None
        self._queue.release_due()
        self._arm_timer()
