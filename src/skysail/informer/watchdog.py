"""A deadline that moves with every sign of life, at the cost of one addition each.

`asyncio.timeout` round every single read would cost more than decoding the event.
"""

import asyncio
from types import TracebackType

from skysail.api.errors import Unreachable


class Silent(Unreachable):
    """A stream that is open, but on which nothing comes."""


class Watchdog:
    """Ends its block with `Silent` when nothing is heard for too long, or when it lasts too long altogether.

    Args:
        silence_seconds: Longest time between two calls of `heard`; noticed at most a quarter of it late.
        total_seconds: Longest time the block may last.
    """

    def __init__(self, silence_seconds: float, total_seconds: float) -> None:
        self._silence = silence_seconds
        self._total = total_seconds
        self._signs = 0
        self._signs_seen = 0
        self._quiet_since = 0.0
        self._reason = ""

    def heard(self) -> None:
        """There was a sign of life."""
        self._signs += 1

    async def __aenter__(self) -> "Watchdog":
        loop = self._loop = asyncio.get_running_loop()
        self._quiet_since = loop.time()
        self._ends_at = loop.time() + self._total
        self._timeout = asyncio.timeout(None)
        await self._timeout.__aenter__()
        self._timer = loop.call_later(self._interval(), self._look)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._timer.cancel()
        try:
            await self._timeout.__aexit__(kind, error, traceback)
        except TimeoutError as timeout:
            raise Silent(self._reason) from timeout

    def _interval(self) -> float:
        return max(0.001, min(self._silence / 4, self._ends_at - self._loop.time()))

    def _look(self) -> None:
        now = self._loop.time()
        if self._signs != self._signs_seen:
            self._signs_seen = self._signs
            self._quiet_since = now
        if now - self._quiet_since >= self._silence:
            self._bark(f"nothing heard for {self._silence:.0f} s", now)
        elif now >= self._ends_at:
            self._bark("the watch outlived its time-out", now)
        else:
            self._timer = self._loop.call_later(self._interval(), self._look)

    def _bark(self, reason: str, now: float) -> None:
        self._reason = reason
        self._timeout.reschedule(now)
