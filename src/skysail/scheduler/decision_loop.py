"""The loop that decides: pop a pod, run its scheduling cycle, let others run, again; bindings go on beside it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from skysail.scheduler.cycle import SchedulingCycle
from skysail.scheduler.extenders.talking import ExtenderTalk
from skysail.scheduler.framework.queued_pod import QueuedPodInfo
from skysail.scheduler.queue.scheduling_queue import SchedulingQueue
from skysail.scheduler.waiting_pods import WaitingPods

_log = logging.getLogger(__name__)

MAX_UNWRITTEN_BINDS: Final = 2_000
"""Decisions pause while so many bindings wait to be written."""
PAUSE_SECONDS: Final = 1.0
"""How long to rest after a bug that has no pod to blame, before the same is tried again."""


class Backlog(Protocol):
    """Bindings that wait to be written (the binder)."""

    pending: int

    async def wait_below(self, limit: int) -> None:
        """Wait until fewer than `limit` are pending."""
        ...


class DecisionLoop:
    """The loop.

    Args:
        queue: Gives pods.
        backlog: The binder.
        waiting: Pods that Permit holds; abandoned at the end.
        talk: Talks to extenders; None when there are none.
        now: Seconds on the queue's clock.
    """

    def __init__(
        self,
        queue: SchedulingQueue,
        backlog: Backlog,
        waiting: WaitingPods,
        talk: ExtenderTalk | None,
        now: Callable[[], float],
    ) -> None:
        self._queue, self._backlog, self._waiting, self._talk, self._now = queue, backlog, waiting, talk, now
        self.ready, self.stopping = asyncio.Event(), asyncio.Event()

    def stop(self) -> None:
        """No more decisions; `run` returns when the bindings under way have ended."""
        self.stopping.set()
        self.ready.set()

    async def run(self, cycle: SchedulingCycle) -> None:
        """Decide until stopped."""
        async with asyncio.TaskGroup() as bindings:
            while not self.stopping.is_set():
                info = await self._next()
                if info is not None:
                    await self._schedule_one(cycle, info, bindings)
                    await asyncio.sleep(0)
                elif self._queue.has_ready:
                    await self._backlog.wait_below(MAX_UNWRITTEN_BINDS)
                else:
                    self.ready.clear()
                    await self.ready.wait()
            for waiting in self._waiting:
                waiting.abandon()

    async def _next(self) -> QueuedPodInfo | None:
        if self._backlog.pending >= MAX_UNWRITTEN_BINDS:
            return None
        try:
            return self._queue.pop(self._now())
        except Exception:  # noqa: BLE001 - a bug must not end the scheduler
            _log.exception("no pod could be popped")
            await asyncio.sleep(PAUSE_SECONDS)
            return None

    async def _schedule_one(self, cycle: SchedulingCycle, info: QueuedPodInfo, bindings: asyncio.TaskGroup) -> None:
        """One attempt; a bug in it costs this attempt, not the scheduler."""
        start = self._now()
        try:
            if self._talk is None:
                cycle.schedule_one(info, bindings)
            else:
                await self._talk.hold(cycle.schedule_one_asking(info, bindings))
        except Exception as error:  # noqa: BLE001 - the one supervisor: a bug must not end the scheduler
            _log.exception("attempt ended in a bug", extra={"pod": info.pod.key})
            cycle.give_back(info, error, start)


async def kept_up(name: str, run: Callable[[], Awaitable[None]]) -> None:
    """Run something that should never end beside the loop; when a bug ends it, say so and begin again."""
    while True:
        try:
            return await run()
        except Exception:  # noqa: BLE001 - a bug must not end the scheduler
            _log.exception("helper ended in a bug, begins again", extra={"helper": name})
            await asyncio.sleep(PAUSE_SECONDS)
