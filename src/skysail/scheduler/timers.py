"""When to flush: each second while pods back off, each half minute while pods sleep, and not at all otherwise.

Source: pkg/scheduler/backend/queue/scheduling_queue.go (Run), v1.36.
Differs: the timers rest while nobody waits, so that an idle scheduler does nothing.
"""

import asyncio
import math
from collections.abc import Callable
from typing import Final, Protocol

BACKOFF_FLUSH_SECONDS: Final = 1.0
SLEEPERS_FLUSH_SECONDS: Final = 30.0


class Flushable(Protocol):
    """The part of the queue that timers drive."""

    @property
    def backoff_count(self) -> int:
        """How many pods back off."""
        ...

    @property
    def sleeping_count(self) -> int:
        """How many pods sleep."""
        ...

    def flush_backoff_completed(self, now: float) -> int:
        """Move pods whose backoff is over."""
        ...

    def flush_unschedulable_leftover(self, now: float) -> int:
        """Wake pods that slept for too long."""
        ...


class FlushTimers:
    """The timers.

    Args:
        now: Seconds on the queue's clock.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._queue: Flushable | None = None
        self._wake = asyncio.Event()
        self._next_sleepers = math.inf

    def attach(self, queue: Flushable) -> None:
        """Name the queue."""
        self._queue = queue

    def wake(self) -> None:
        """A pod began to wait."""
        self._wake.set()

    async def run(self) -> None:
        """Flush when it is time, until cancelled."""
        while True:
            self._wake.clear()
            delay = self.flush(self._now())
            try:
                async with asyncio.timeout(delay):
                    await self._wake.wait()
            except TimeoutError:
                continue

    def flush(self, now: float) -> float | None:
        """Flush what is due.

        Returns:
            Seconds until the next flush; None while nobody waits.
        """
        queue = self._queue
        if queue is None:
            return None
        queue.flush_backoff_completed(now)
        if now >= self._next_sleepers:
            queue.flush_unschedulable_leftover(now)
            self._next_sleepers = math.inf
        if queue.sleeping_count and self._next_sleepers == math.inf:
            self._next_sleepers = now + SLEEPERS_FLUSH_SECONDS
        deadlines = [self._next_sleepers] if queue.sleeping_count else []
        if queue.backoff_count:
            deadlines.append((math.floor(now / BACKOFF_FLUSH_SECONDS) + 1) * BACKOFF_FLUSH_SECONDS)
        return max(min(deadlines) - now, 0.0) if deadlines else None
