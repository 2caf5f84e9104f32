"""The shared informer: one watch, one cache, any number of handlers.

    server ─watch─▶ Reflector ─▶ DeltaFIFO ─pump─▶ Indexer and Listeners ─▶ handlers

Promised to each handler: what `handlers` says, and that the cache is at least as new as what it is told. Not promised:
that the cache is no newer; that all handlers have heard of a change when one has; anything after the informer stopped.

Source: k8s.io/client-go/tools/cache/shared_informer.go, v1.36. Differs: a deletion of an object that is not cached
reaches nobody.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from skysail.api.errors import SkysailError
from skysail.api.ports import Clock
from skysail.informer.backoff import Rng
from skysail.informer.delta_fifo import Delta, DeltaFIFO, DeltaType
from skysail.informer.handlers import EventHandler
from skysail.informer.indexer import Indexer, IndexFunction
from skysail.informer.keys import Key, key_of, live_object, uid_of, version_of
from skysail.informer.listener import (
    AddNotification,
    DeleteNotification,
    Listener,
    Notification,
    UpdateNotification,
)
from skysail.informer.lister import Lister
from skysail.informer.metrics import ScopeMetrics
from skysail.informer.patience import ReflectorSettings
from skysail.informer.reflector import Reflector
from skysail.informer.resync import MINIMUM_RESYNC_SECONDS, ResyncSchedule
from skysail.informer.sharing import Sharing
from skysail.informer.source import Source
from skysail.informer.versions import version_number

T = TypeVar("T")

_log = logging.getLogger(__name__)

_SLICE = 256
"""Keys the pump processes before it lets others run."""


class InformerStateError(SkysailError):
    """Asked of an informer too late: it has started, or stopped, already."""


@dataclass(frozen=True, slots=True)
class InformerStatistics:
    """A look into an informer."""

    objects: int
    queued: int
    pending: Mapping[str, int]
    synced: bool
    healthy: bool
    staleness_seconds: float
    resource_version: str


class SharedInformer(Generic[T]):
    """Keeps a cache of one collection and tells handlers what changes.

    Args:
        source: The collection.
        clock: Measures resyncs, silence and staleness; must follow the event loop's time.
        rng: Spreads time-outs and waits.
        name: For logs.
        resync_seconds: Resync period of handlers that name none; 0 for no resyncs.
        indexes: Index functions by name.
        settings: The reflector's patience.
        metrics: Counters; none by default.
        share: Whether equal parts of objects are held once.
    """

    def __init__(
        self,
        source: Source[T],
        *,
        clock: Clock,
        rng: Rng,
        name: str = "",
        resync_seconds: float = 0.0,
        indexes: Mapping[str, IndexFunction[T]] | None = None,
        settings: ReflectorSettings | None = None,
        metrics: ScopeMetrics | None = None,
        share: bool = True,
    ) -> None:
        self.name = name
        self.indexer: Indexer[T] = Indexer(indexes)
        self.lister: Lister[T] = Lister(self.indexer)
        self._clock, self._metrics = clock, metrics
        self._default_resync = resync_seconds
        self._check_seconds = resync_seconds
        self._sharing: Sharing[T] | None = Sharing() if share else None
        self._transform: Callable[[T], T] | None = None
        self._on_error: Callable[[Exception], None] | None = None
        self._fifo: DeltaFIFO[T] = DeltaFIFO(self.indexer, on_ready=self._wake_pump)
        self.reflector: Reflector[T] = Reflector(
            source,
            self._fifo,
            clock=clock,
            rng=rng,
            name=name,
            settings=settings,
            prepare=self._prepare,
            on_error=self._reflector_failed,
            metrics=metrics,
        )
        self._listeners: dict[Listener[T], None] = {}
        self._tasks: dict[Listener[T], asyncio.Task[None]] = {}
        self._group: asyncio.TaskGroup | None = None
        self._ready = asyncio.Event()
        self._synced = asyncio.Event()
        self._version_waiters: list[tuple[int, asyncio.Future[None]]] = []
        self._started = self._stopped = False
        if metrics is not None:
            metrics.observe(
                lambda: float(self.reflector.is_healthy),
                lambda: self.reflector.staleness_seconds,
                self.indexer.__len__,
            )

    # Before the start

    def set_transform(self, transform: Callable[[T], T]) -> None:
        """Change every object before it is cached, e.g. drop what nobody reads.

        Raises:
            InformerStateError: The informer has started.
        """
        self._refuse_if_started("a transform")
        self._transform = transform

    def set_error_handler(self, handler: Callable[[Exception], None]) -> None:
        """Be told of every error that interrupts the watch; for seeing, not for deciding, and quick.

        Raises:
            InformerStateError: The informer has started.
        """
        self._refuse_if_started("an error handler")
        self._on_error = handler

    # At any time

    def add_indexes(self, indexes: Mapping[str, IndexFunction[T]]) -> None:
        """Add indexes, also over what is cached already.

        Raises:
            ValueError: Another index has one of the names.
            InformerStateError: The informer has stopped.
        """
        self._refuse_if_stopped("an index")
        self.indexer.add_indexes(indexes)

    def add_handler(
        self, handler: EventHandler[T], *, resync_seconds: float | None = None, name: str = ""
    ) -> Listener[T]:
        """Tell a handler of all changes; one that comes late first gets everything cached as initial adds.

        Args:
            handler: Who is told.
            resync_seconds: How often it wants to hear everything again; 0 for never, None for the informer's default.
            name: For logs and metrics; the handler's type by default.

        Raises:
            InformerStateError: The informer has stopped.
        """
        self._refuse_if_stopped("a handler")
        wanted = self._default_resync if resync_seconds is None else resync_seconds
        wanted = self._agreed_resync(wanted)
        schedule = ResyncSchedule.plan(wanted, self._check_seconds, self._clock.monotonic())
        listener = Listener(handler, name or type(handler).__name__, schedule, self._synced, self._metrics)
        self._listeners[listener] = None
        if self._started:
            for obj in self.indexer.list():
                listener.add(AddNotification(obj, True))
        if self._group is not None:
            self._tasks[listener] = self._group.create_task(listener.run())
        return listener

    def remove_handler(self, listener: Listener[T]) -> None:
        """Tell a handler nothing more; nothing happens when it was removed before."""
        if self._listeners.pop(listener, listener) is None:
            listener.remove()
            self._tasks.pop(listener, None)

    @property
    def has_synced(self) -> bool:
        """Whether the cache holds the first list. A handler may still have to be told: see its own `has_synced`."""
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        """Wait until `has_synced`."""
        await self._synced.wait()

    @property
    def has_started(self) -> bool:
        """Whether `run` was called."""
        return self._started

    @property
    def is_stopped(self) -> bool:
        """Whether `run` has ended; a stopped informer never starts again."""
        return self._stopped

    @property
    def is_healthy(self) -> bool:
        """Whether the cache is following the server."""
        return self._synced.is_set() and self.reflector.is_healthy

    @property
    def last_sync_resource_version(self) -> str:
        """The newest version received; the cache may be a moment behind it."""
        return self.reflector.versions.last

    async def wait_for_version(self, version: str) -> None:
        """Wait until the cache reflects a version, as that of a write whose effect must be read."""
        wanted = version_number(version)
        if version_number(self.indexer.resource_version) >= wanted:
            return
        waiter = asyncio.get_running_loop().create_future()
        self._version_waiters.append((wanted, waiter))
        await waiter

    def statistics(self) -> InformerStatistics:
        """How full and how fresh the informer is."""
        return InformerStatistics(
            objects=len(self.indexer),
            queued=len(self._fifo),
            pending={listener.name: len(listener) for listener in self._listeners},
            synced=self.has_synced,
            healthy=self.is_healthy,
            staleness_seconds=self.reflector.staleness_seconds,
            resource_version=self.indexer.resource_version,
        )

    # Running

    async def run(self) -> None:
        """Follow the collection until cancelled. Handlers start before the watch and end after it.

        Raises:
            InformerStateError: `run` was called before.
        """
        self._refuse_if_started("another run")
        self._started = True
        try:
            async with asyncio.TaskGroup() as listeners:
                self._group = listeners
                for listener in self._listeners:
                    self._tasks[listener] = listeners.create_task(listener.run())
                async with asyncio.TaskGroup() as upstream:
                    upstream.create_task(self._pump())
                    upstream.create_task(self._resync())
                    upstream.create_task(self.reflector.run())
        finally:
            self._group = None
            self._stopped = True

    async def _pump(self) -> None:
        while True:
            if not len(self._fifo):
                self._caught_up()
                self._ready.clear()
                await self._ready.wait()
            for _ in range(_SLICE):
                if not self._fifo.pop(self._process):
                    break
            if not self._synced.is_set() and self._fifo.has_synced:
                self._synced.set()
            if len(self._fifo):
                await asyncio.sleep(0)

    async def _resync(self) -> None:
        while True:
            if self._check_seconds <= 0:
                return
            await asyncio.sleep(self._check_seconds)
            now = self._clock.monotonic()
            due = [listener.schedule.check(now) for listener in self._listeners]
            if any(due):
                self._fifo.resync()

    def _process(self, key: Key, deltas: tuple[Delta[T], ...], initial: bool) -> None:
        for delta in deltas:
            if delta.type is DeltaType.DELETED:
                if self.indexer.remove(key) is not None:
                    self._distribute(DeleteNotification(delta.object))
                continue
            obj = live_object(delta.object)
            if obj is None:
                continue
            old = self.indexer.put_under(key, obj)
            if old is None:
                self._distribute(AddNotification(obj, initial))
            else:
                self._distribute(UpdateNotification(old, obj), resync=version_of(old) == version_of(obj))

    def _distribute(self, notification: Notification[T], resync: bool = False) -> None:
        for listener in self._listeners:
            if not resync or listener.schedule.is_due:
                listener.add(notification)

    def _caught_up(self) -> None:
        if not self._synced.is_set() and self._fifo.has_synced:
            self._synced.set()
        self.indexer.resource_version = self.reflector.versions.last
        if self._version_waiters:
            reached = version_number(self.indexer.resource_version)
            waiting = self._version_waiters
            self._version_waiters = [entry for entry in waiting if entry[0] > reached]
            for wanted, waiter in waiting:
                if wanted <= reached and not waiter.done():
                    waiter.set_result(None)

    def _wake_pump(self) -> None:
        self._ready.set()

    def _prepare(self, obj: T) -> T:
        """What to cache of a fresh object: itself, transformed and slimmed, or what is cached of this version."""
        cached = self.indexer.get(key_of(obj))
        if cached is not None and version_of(cached) == version_of(obj) != "" and uid_of(cached) == uid_of(obj):
            return cached
        if self._transform is not None:
            obj = self._transform(obj)
        return obj if self._sharing is None else self._sharing.share(obj, cached)

    def _reflector_failed(self, error: Exception) -> None:
        if self._on_error is not None:
            self._on_error(error)

    def _agreed_resync(self, wanted: float) -> float:
        if wanted <= 0:
            return 0.0
        wanted = max(wanted, MINIMUM_RESYNC_SECONDS)
        if self._started:
            return max(wanted, self._check_seconds)
        if self._check_seconds == 0 or wanted < self._check_seconds:
            self._check_seconds = wanted
            for listener in self._listeners:
                listener.schedule.check_period_changed(wanted)
        return wanted

    def _refuse_if_started(self, what: str) -> None:
        if self._started:
            raise InformerStateError(f"informer {self.name} has started already: too late for {what}")

    def _refuse_if_stopped(self, what: str) -> None:
        if self._stopped:
            raise InformerStateError(f"informer {self.name} has stopped: too late for {what}")
