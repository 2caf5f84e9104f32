"""Writing Events without ever holding anybody up: `event` only queues; tasks write, on their own lane.

Two recorders take the same calls: `CoreEventRecorder` (core/v1, what controllers use) writes one after the other;
`SeriesEventRecorder` (events.k8s.io/v1, what the scheduler uses) a few at a time, because its Events are many. A full
queue drops, and counts what it dropped; an unreachable server is tried twelve times, ten seconds apart; an Event the
server refuses is dropped.

Source: k8s.io/client-go/tools/{record,events}, v1.36.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from random import Random
from typing import Protocol
from uuid import UUID

import msgspec

from skysail.api.errors import AlreadyExists, ApiError, NotFound, SkysailError, Unreachable
from skysail.api.kinds import EVENTS, Kind, kind_of
from skysail.api.labelsyntax import subdomain_errors
from skysail.api.meta import ApiObject
from skysail.api.ports import Clock
from skysail.api.raw import Raw
from skysail.client.api_client import ApiClient
from skysail.client.bodies import STRATEGIC
from skysail.controller.events import NORMAL, WARNING, CoreEvent, EventCorrelator, Reference
from skysail.controller.series import FINISH_SECONDS, REFRESH_SECONDS, SeriesCache, SeriesEvent
from skysail.informer.keys import key_of, uid_of, version_of

_log = logging.getLogger(__name__)

_MAX_TRIES = 12
_RETRY_SECONDS = 10.0
_MAX_QUEUED = 1000
_MAX_SERIES_QUEUED = 10_000
"""Upstream's recorder of series has no bound; two for each pod of a large batch must not be lost."""
_SERIES_WRITERS = 4


class _Written(msgspec.Struct, frozen=True, gc=False):
    """What is read of an answer: that it is an object."""


SERIES_EVENTS: Kind[_Written] = Kind("events.k8s.io", "v1", "Event", "events", True, _Written)


class EventRecorder(Protocol):
    """Takes Events about objects; never waits, never fails."""

    def event(
        self,
        regarding: object,
        type: str,
        reason: str,
        message: str,
        *,
        action: str = "",
        related: object | None = None,
        annotations: Mapping[str, str] | None = None,
    ) -> None:
        """Tell people that something happened.

        Args:
            regarding: The object it happened to; a Struct, a dictionary, or a `Reference`.
            type: `Normal` or `Warning`.
            reason: One word in CamelCase, for machines.
            message: One sentence, for people.
            action: What was being done (events.k8s.io only).
            related: A second object (events.k8s.io only).
            annotations: Put on the Event (core only).
        """
        ...


class NoRecorder:
    """Records nothing, for tests and dry runs."""

    def event(
        self,
        regarding: object,
        type: str,
        reason: str,
        message: str,
        *,
        action: str = "",
        related: object | None = None,
        annotations: Mapping[str, str] | None = None,
    ) -> None:
        """Nothing."""


class _QueueingRecorder:
    """What both recorders share: the queue, the retries, the names.

    Attributes:
        writers: How many Events are written at a time.
        max_queued: How many may wait.
    """

    writers = 1
    max_queued = _MAX_QUEUED

    def __init__(self, client: ApiClient, component: str, *, clock: Clock, rng: Random, host: str = "") -> None:
        self.component, self.host = component, host
        self.dropped = 0
        """Events lost because the queue was full."""
        self._client, self._clock, self._rng = client, clock, rng
        self._queue: deque[Callable[[], Awaitable[None]]] = deque()
        self._wake = asyncio.Event()
        self._writing = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._last_nanos = 0

    @property
    def pending(self) -> int:
        """How many Events wait to be written or are being written."""
        return len(self._queue) + self._writing

    async def wait_written(self) -> None:
        """Wait until everything queued has been written or given up."""
        await self._idle.wait()

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(self.writers):
                group.create_task(self._write_queued())

    async def _write_queued(self) -> None:
        while True:
            while not self._queue:
                if not self._writing:
                    self._idle.set()
                self._wake.clear()
                await self._wake.wait()
            self._writing += 1
            try:
                await self._write(self._queue.popleft())
            finally:
                self._writing -= 1

    async def _write(self, write: Callable[[], Awaitable[None]]) -> None:
        for attempt_number in range(_MAX_TRIES):
            try:
                await write()
            except ApiError as error:
                if not isinstance(error, AlreadyExists):
                    _log.info("server refused event, dropped", extra={"error": str(error)})
                return
            except Unreachable:
                jitter = self._rng.random() if attempt_number == 0 else 1.0 + 0.25 * self._rng.random()
                await asyncio.sleep(_RETRY_SECONDS * jitter)
            else:
                return
        _log.warning("event not written, retry limit exceeded", extra={"component": self.component})

    def _submit(self, write: Callable[[], Awaitable[None]]) -> None:
        if len(self._queue) >= self.max_queued:
            self.dropped += 1
            return
        self._queue.append(write)
        self._idle.clear()
        self._wake.set()

    def _name_for(self, regarding: Reference) -> str:
        nanos = max(self._last_nanos + 1, int(self._clock.now().timestamp() * 1_000_000) * 1000)
        self._last_nanos = nanos
        name = f"{regarding.name}.{nanos:x}"
        return name if not subdomain_errors(name) else str(UUID(int=self._rng.getrandbits(128), version=4))


class CoreEventRecorder(_QueueingRecorder):
    """Writes core/v1 Events, counted, combined and filtered as `events` says.

    Args:
        client: Writes them.
        component: Who reports.
        clock: Stamps and measures.
        rng: Spreads retries.
        host: Where it runs; usually empty for controllers, the node's name for kubelets.
    """

    def __init__(self, client: ApiClient, component: str, *, clock: Clock, rng: Random, host: str = "") -> None:
        super().__init__(client, component, clock=clock, rng=rng, host=host)
        self._correlator = EventCorrelator(clock)

    def event(
        self,
        regarding: object,
        type: str,
        reason: str,
        message: str,
        *,
        action: str = "",
        related: object | None = None,
        annotations: Mapping[str, str] | None = None,
    ) -> None:
        """See `EventRecorder.event`."""
        _check_type(type)
        about = reference_to(regarding)
        now = self._clock.now()
        event = CoreEvent(
            name=self._name_for(about),
            namespace=about.namespace or "default",
            regarding=about,
            type=type,
            reason=reason,
            message=message,
            component=self.component,
            host=self.host,
            first_seen=now,
            last_seen=now,
            annotations=tuple((annotations or {}).items()),
        )
        correlated = self._correlator.correlate(event)
        if correlated is not None:
            self._submit(lambda: self._put(correlated.event, correlated.again))

    async def run(self) -> None:
        """Write what is queued, until cancelled."""
        await self._run()

    async def _put(self, event: CoreEvent, again: bool) -> None:
        if again:
            try:
                await self._client.patch(EVENTS, event.name, event.namespace, event.as_patch(), patch_type=STRATEGIC)
            except NotFound:
                _log.debug("event to be counted is gone, writing it anew", extra={"event": event.name})
            else:
                return
        await self._client.create(EVENTS, event.as_raw(), event.namespace)


class SeriesEventRecorder(_QueueingRecorder):
    """Writes events.k8s.io/v1 Events, the same again as series.

    Args:
        client: Writes them.
        component: The reporting controller, e.g. `default-scheduler`.
        clock: Stamps and measures.
        rng: Spreads retries.
        host: Part of the reporting instance.
    """

    writers = _SERIES_WRITERS
    max_queued = _MAX_SERIES_QUEUED

    def __init__(self, client: ApiClient, component: str, *, clock: Clock, rng: Random, host: str = "") -> None:
        super().__init__(client, component, clock=clock, rng=rng, host=host)
        self._series = SeriesCache()

    def event(
        self,
        regarding: object,
        type: str,
        reason: str,
        message: str,
        *,
        action: str = "",
        related: object | None = None,
        annotations: Mapping[str, str] | None = None,
    ) -> None:
        """See `EventRecorder.event`."""
        _check_type(type)
        about = reference_to(regarding)
        now = self._clock.now()
        event = SeriesEvent(
            name=self._name_for(about),
            namespace=about.namespace or "default",
            regarding=about,
            related=reference_to(related) if related is not None else None,
            type=type,
            reason=reason,
            action=action,
            note=message,
            controller=self.component,
            instance=f"{self.component}-{self.host}" if self.host else self.component,
            seen=now,
        )
        to_write = self._series.observe(event, now)
        if to_write is not None:
            self._submit(lambda: self._put(to_write))

    async def run(self) -> None:
        """Write what is queued, refresh and finish series, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._run())
            group.create_task(self._refresh())
            group.create_task(self._finish())

    async def _put(self, event: SeriesEvent) -> None:
        if event.last_seen is not None:
            try:
                await self._client.patch(
                    SERIES_EVENTS, event.name, event.namespace, event.as_patch(), patch_type=STRATEGIC
                )
            except NotFound:
                _log.debug("event of a series is gone, writing it anew", extra={"event": event.name})
            else:
                return
        await self._client.create(SERIES_EVENTS, event.as_raw(), event.namespace)

    async def _refresh(self) -> None:
        while True:
            await asyncio.sleep(REFRESH_SECONDS)
            for event in self._series.to_refresh():
                self._submit(lambda e=event: self._put(e))  # type: ignore[misc]

    async def _finish(self) -> None:
        while True:
            await asyncio.sleep(FINISH_SECONDS)
            for event in self._series.finish(self._clock.now()):
                self._submit(lambda e=event: self._put(e))  # type: ignore[misc]


def reference_to(obj: object) -> Reference:
    """The reference an Event carries to an object.

    Raises:
        SkysailError: The object's kind is unknown.
    """
    if isinstance(obj, Reference):
        return obj
    api_version, kind = _kind_names(obj)
    key = key_of(obj)
    return Reference(api_version, kind, key.namespace, key.name, uid_of(obj), version_of(obj))


def _kind_names(obj: object) -> tuple[str, str]:
    if isinstance(obj, ApiObject):
        if obj.kind:
            return obj.api_version, obj.kind
        try:
            descriptor = kind_of(type(obj))
        except KeyError as error:
            raise SkysailError(f"cannot tell the kind of a {type(obj).__name__}: give its kind field") from error
        return descriptor.api_version, descriptor.name
    raw: Raw = obj if isinstance(obj, dict) else {}
    if not raw.get("kind"):
        raise SkysailError("cannot report an event about an object without a kind")
    return str(raw.get("apiVersion", "")), str(raw["kind"])


def _check_type(type: str) -> None:
    if type not in (NORMAL, WARNING):
        raise SkysailError(f"unsupported event type {type!r}: use {NORMAL} or {WARNING}")
