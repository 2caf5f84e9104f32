"""The processor: hands each notification of an informer to every handler, each at its own speed.

One task per listener takes notifications from its own unbounded buffer, in order, one at a time. A handler that raises
loses that one notification, which is logged and counted; after a second its task goes on with the next.

Source: k8s.io/client-go/tools/cache/shared_informer.go (`sharedProcessor`, `processorListener`), v1.36. Differs: the
buffer is a deque, which grows by blocks, where Go doubles a ring of 1,024.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable
from typing import Generic, NamedTuple, TypeVar

from skysail.informer.handlers import EventHandler
from skysail.informer.keys import DeletedFinalStateUnknown
from skysail.informer.metrics import ScopeMetrics
from skysail.informer.resync import ResyncSchedule
from skysail.informer.supervisor import attempt_call

T = TypeVar("T")

_log = logging.getLogger(__name__)

_SLICE = 64
"""Notifications a listener handles before it lets others run."""

_PAUSE_AFTER_FAILURE_SECONDS = 1.0


class AddNotification(NamedTuple, Generic[T]):
    """An object appeared."""

    object: T
    in_initial_list: bool


class UpdateNotification(NamedTuple, Generic[T]):
    """An object was replaced."""

    old: T
    new: T


class DeleteNotification(NamedTuple, Generic[T]):
    """An object is gone."""

    object: T | DeletedFinalStateUnknown[T]


Notification = AddNotification[T] | UpdateNotification[T] | DeleteNotification[T]


class Listener(Generic[T]):
    """One registered handler: what `SharedInformer.add_handler` gives back.

    Attributes:
        name: For logs and metrics.
        schedule: Its resyncs.
    """

    def __init__(
        self,
        handler: EventHandler[T],
        name: str,
        schedule: ResyncSchedule,
        informer_synced: asyncio.Event,
        metrics: ScopeMetrics | None = None,
    ) -> None:
        self.name = name
        self.schedule = schedule
        self._handler = handler
        self._informer_synced = informer_synced
        self._metrics = metrics
        self._pending: deque[Notification[T]] = deque()
        self._initial_left = 0
        self._initial_delivered = asyncio.Event()
        self._initial_delivered.set()
        self._wake = asyncio.Event()
        self._removed = False
        if metrics is not None:
            metrics.observe_handler(name, self.__len__)

    def __len__(self) -> int:
        """How many notifications wait."""
        return len(self._pending)

    @property
    def has_synced(self) -> bool:
        """Whether the cache has the first list and this handler was told of every object of it."""
        return self._informer_synced.is_set() and self._initial_left == 0

    async def wait_synced(self) -> None:
        """Wait until `has_synced`."""
        await self._informer_synced.wait()
        await self._initial_delivered.wait()

    def add(self, notification: Notification[T]) -> None:
        """Queue a notification; never waits."""
        if isinstance(notification, AddNotification) and notification.in_initial_list:
            self._initial_left += 1
            self._initial_delivered.clear()
        self._pending.append(notification)
        self._wake.set()

    def remove(self) -> None:
        """Deliver nothing more; the task ends."""
        self._removed = True
        self._pending.clear()
        self._wake.set()

    async def run(self) -> None:
        """Deliver notifications until the listener is removed."""
        handled = 0
        while not self._removed:
            if not self._pending:
                self._wake.clear()
                await self._wake.wait()
                continue
            notification = self._pending.popleft()
            failure = await attempt_call(self._deliver, notification)
            if isinstance(notification, AddNotification) and notification.in_initial_list:
                self._initial_left -= 1
                if self._initial_left == 0:
                    self._initial_delivered.set()
            if failure is not None:
                await self._after_failure(failure.error)
            handled += 1
            if handled % _SLICE == 0:
                await asyncio.sleep(0)

    def _deliver(self, notification: Notification[T]) -> Awaitable[None] | None:
        if isinstance(notification, UpdateNotification):
            return self._handler.on_update(notification.old, notification.new)
        if isinstance(notification, AddNotification):
            return self._handler.on_add(notification.object, notification.in_initial_list)
        return self._handler.on_delete(notification.object)

    async def _after_failure(self, error: Exception) -> None:
        _log.error("event handler failed, notification skipped", extra={"handler": self.name}, exc_info=error)
        if self._metrics is not None:
            self._metrics.handler_failed(self.name)
        await asyncio.sleep(_PAUSE_AFTER_FAILURE_SECONDS)
