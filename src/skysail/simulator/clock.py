"""Virtual time: an asyncio event loop whose clock jumps to the next timer when nothing is runnable.

The rules:

1. Time stands still while anything can run. It moves only when every task waits, and then straight to the earliest
   timer. A computation takes no time at all; only waiting does.
2. Order is total. What became runnable first runs first; timers of one instant fire in the order they were made. So a
   program without other sources of chance repeats exactly.
3. Nothing from outside. Threads, executors, sockets and subprocesses raise `NotInVirtualTime`, because three
   milliseconds of a thread would look like a time-out of thirty seconds.
4. No silent hang. If every task waits and no timer is left, `Deadlock` names the tasks; if an instant never ends,
   `Livelock` does.

Not promised: that a program behaves the same on a real loop, where computations take time and I/O interleaves.
"""

import asyncio
import heapq
import math
import time
from asyncio import base_events
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar, TypeVarTuple, Unpack

from skysail.api.errors import SkysailError
from skysail.simulator.forbidden import FORBIDDEN, NotInVirtualTime

__all__ = [
    "Deadlock",
    "Livelock",
    "LoopClock",
    "NotInVirtualTime",
    "VirtualTimeLoop",
    "WallClock",
    "run_virtual",
    "settle",
]

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

DEFAULT_START: Final = datetime(2026, 1, 1, tzinfo=UTC)
"""The time of day at which a virtual world begins unless told otherwise."""
MAX_TURNS_PER_INSTANT: Final = 2_000_000
"""So many turns of the loop without time moving are taken for a livelock."""
_MIN_CANCELLED_TO_TIDY: Final = 100


class Deadlock(SkysailError):
    """Every task waits and no timer is left: nothing can ever happen again."""


class Livelock(SkysailError):
    """Tasks keep each other runnable without time ever moving."""


class LoopClock:
    """The clock of an event loop, real or virtual.

    Args:
        loop: Its time is the only time there is.
        start: The time of day at this moment, timezone-aware.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, start: datetime = DEFAULT_START) -> None:
        if start.tzinfo is None:
            raise ValueError("the start of a clock needs a time zone")
        self._loop = loop
        self._start = start.astimezone(UTC)
        self._origin = loop.time()

    def monotonic(self) -> float:
        """Seconds for measuring intervals: the loop's own time."""
        return self._loop.time()

    def now(self) -> datetime:
        """The time of day in UTC: the start plus what the loop has lived through since."""
        return self._start + timedelta(seconds=self._loop.time() - self._origin)


class WallClock:
    """The machine's own clock, for real event loops."""

    def monotonic(self) -> float:
        """Seconds for measuring intervals."""
        return time.monotonic()  # noqa: TID251 - this is the implementation everybody else is given

    def now(self) -> datetime:
        """The time of day in UTC."""
        return datetime.now(UTC)  # noqa: TID251 - likewise


class _Timer(asyncio.TimerHandle):
    __slots__ = ()
    _scheduled: bool  # the slot is there; only the type stubs leave it out


class VirtualTimeLoop(base_events.BaseEventLoop):
    """An asyncio event loop in virtual time; see the module for its rules.

    It rests on `asyncio.BaseEventLoop` for tasks and futures, and replaces its turn (`_run_once`) and its timers.
    """

    _ready: deque[asyncio.Handle]
    _stopping: bool
    _thread_id: int | None

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0
        self._timers: list[tuple[float, int, _Timer]] = []  # a heap; the number makes the order total
        self._made = 0
        self._cancelled = 0
        self._turns = 0
        self._settling: list[tuple[float, asyncio.Future[None]]] = []

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._now

    def call_at(
        self, when: float, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Call back at a moment of virtual time; timers of one moment fire in the order they were made."""
        if self.is_closed():
            raise RuntimeError("the event loop is closed")
        if math.isnan(when):
            raise ValueError("a timer at no time (NaN) would never fire")
        handle = _Timer(when, callback, args, self, context)
        self._made += 1
        heapq.heappush(self._timers, (when, self._made, handle))
        handle._scheduled = True
        return handle

    def call_soon_threadsafe(
        self, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        """As `call_soon`: there are no other threads in virtual time."""
        return self.call_soon(callback, *args, context=context)

    def close(self) -> None:
        """End the loop; what it still had to do is forgotten."""
        super().close()
        self._timers.clear()

    def settle(self, within: float = 0.0) -> asyncio.Future[None]:
        """A future that is done when nothing is runnable and no timer is due in the next `within` seconds.

        Timers that become due meanwhile do fire, so time may move by up to `within` seconds, never further.
        """
        future: asyncio.Future[None] = self.create_future()
        self._settling.append((self._now + within, future))
        return future

    def _run_once(self) -> None:
        """One turn: move on in time if nothing is runnable, then run what is runnable now."""
        if not self._ready and not self._stopping:
            self._move_on()
        self._wake_timers()
        self._turns += 1
        if self._turns > MAX_TURNS_PER_INSTANT:
            self._turns = 0
            raise Livelock(f"time stands still at {self._now:g} s while these keep running:\n{self._describe_tasks()}")
        for _ in range(len(self._ready)):
            handle = self._ready.popleft()
            if not handle.cancelled():
                handle._run()

    def _move_on(self) -> None:
        """Wake whoever waits for this quiet; failing that, jump to the next timer; failing that, say so."""
        self._drop_cancelled_timers()
        upcoming = self._timers[0][0] if self._timers else math.inf
        if self._finish_settling(upcoming):
            return
        if not self._timers:
            raise Deadlock(f"nothing is runnable, no timer is left, and these wait for ever:\n{self._describe_tasks()}")
        if upcoming > self._now:
            self._now = upcoming
            self._turns = 0

    def _finish_settling(self, upcoming: float) -> bool:
        done = [future for deadline, future in self._settling if deadline < upcoming and not future.done()]
        self._settling = [each for each in self._settling if each[0] >= upcoming and not each[1].done()]
        for future in done:
            future.set_result(None)
        return bool(done)

    def _wake_timers(self) -> None:
        timers = self._timers
        while timers and timers[0][0] <= self._now:
            handle = heapq.heappop(timers)[2]
            handle._scheduled = False
            if handle.cancelled():
                self._cancelled -= 1
            else:
                self._ready.append(handle)

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        if isinstance(handle, _Timer) and handle._scheduled:
            self._cancelled += 1
            if self._cancelled > _MIN_CANCELLED_TO_TIDY and self._cancelled * 2 > len(self._timers):
                self._timers = [each for each in self._timers if not each[2].cancelled()]
                heapq.heapify(self._timers)
                self._cancelled = 0

    def _drop_cancelled_timers(self) -> None:
        """A cancelled time-out must not pull the clock forward."""
        while self._timers and self._timers[0][2].cancelled():
            heapq.heappop(self._timers)[2]._scheduled = False
            self._cancelled -= 1

    def _describe_tasks(self) -> str:
        return "\n".join(sorted(map(_describe, asyncio.all_tasks(self)))) or "  (no task)"


for _name, _refuse in FORBIDDEN.items():
    setattr(VirtualTimeLoop, _name, _refuse)


def _describe(task: asyncio.Task[Any]) -> str:
    """`  name: coroutine, waiting at file:line`."""
    coroutine = task.get_coro()
    frames = task.get_stack(limit=1)
    where = f", waiting at {frames[0].f_code.co_filename}:{frames[0].f_lineno}" if frames else ""
    return f"  {task.get_name()}: {getattr(coroutine, '__qualname__', coroutine)}{where}"


async def settle(within: float = 0.0) -> None:
    """Wait until nothing is runnable and no timer is due in the next `within` virtual seconds.

    Only on a `VirtualTimeLoop`. `settle()` lets everything that can happen at this very moment happen.

    Raises:
        TypeError: The running loop is a real one, which never knows that nothing more will come.
    """
    loop = asyncio.get_running_loop()
    if not isinstance(loop, VirtualTimeLoop):
        raise TypeError("settle() needs a VirtualTimeLoop: a real loop cannot know that nothing more will happen")
    await loop.settle(within)


def run_virtual(
    main: Callable[[LoopClock], Coroutine[Any, Any, T]] | Coroutine[Any, Any, T],
    *,
    start: datetime = DEFAULT_START,
    debug: bool | None = None,
) -> T:
    """Run a program from begin to end in virtual time, as `asyncio.run` does in real time.

    Args:
        main: A coroutine, or a coroutine function that takes the world's clock.
        start: The time of day when it begins.
        debug: As in `asyncio.run`.

    Raises:
        Deadlock: Every task waits for something that cannot come.
        Livelock: An instant never ends.
    """
    with asyncio.Runner(debug=debug, loop_factory=VirtualTimeLoop) as runner:
        clock = LoopClock(runner.get_loop(), start)
        return runner.run(main(clock) if callable(main) else main)
