"""The reflector: keeps a store equal to a collection on the server, whatever happens to the connection.

`run` is nothing but a backoff round `list_and_watch`, which reads:

1. get the whole collection: by a watch that sends it (WatchList), else by lists, page by page;
2. put it in the store; the version it stands at is where the watch goes on;
3. follow the watch; when it ends, open the next one at the last version seen.

Only a version the server does not have (410, or silence), or an error nobody understands, leads back to 1.

| what happens                             | what the reflector does                                              |
| ---------------------------------------- | -------------------------------------------------------------------- |
| the watch ends after its time-out        | the next watch at the last version, at once                          |
| the connection breaks or is refused, 429 | the next watch at the last version, after the backoff or Retry-After |
| nothing is heard for too long            | the stream is abandoned; as above                                    |
| likewise on a watch just reopened        | backoff, new round: our version may lie ahead of a restored server's |
| 410, as status or as ERROR event         | version marked unavailable, backoff, new round                       |
| the watch ends at once and empty         | backoff, new round                                                   |
| WatchList refused, or without an end     | lists from then on                                                   |
| any other error, or a bug                | reported, backoff, new round                                         |

Source: k8s.io/client-go/tools/cache/reflector.go, v1.36. Differs: silent streams are noticed before their time-out; a
WatchList that meets 410 twice in a row backs off; a server without WatchList is asked for it only once.
"""

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Callable
from typing import Generic, Protocol, TypeVar

from skysail.api.errors import (
    ApiError,
    BadRequest,
    Expired,
    InternalError,
    Invalid,
    MethodNotAllowed,
    NotAcceptable,
    ServerTimeout,
    ServiceUnavailable,
    SkysailError,
    TooManyRequests,
    Unreachable,
)
from skysail.api.ports import Clock, WatchEvent
from skysail.informer.backoff import Backoff, Rng
from skysail.informer.keys import Key, annotations_of, key_of, version_of
from skysail.informer.metrics import ScopeMetrics
from skysail.informer.patience import ReflectorSettings
from skysail.informer.source import Source
from skysail.informer.supervisor import Failure, attempt
from skysail.informer.versions import VersionTracker, is_too_large
from skysail.informer.watchdog import Silent, Watchdog

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
"""The annotation of the bookmark that ends the initial list of a watch."""

_log = logging.getLogger(__name__)


class ReflectorStore(Protocol[T_contra]):
    """Where a reflector puts what it hears; a `DeltaFIFO` is one."""

    def add(self, obj: T_contra) -> None:
        """The watch says ADDED."""
        ...

    def update(self, obj: T_contra) -> None:
        """The watch says MODIFIED."""
        ...

    def delete(self, obj: T_contra) -> None:
        """The watch says DELETED."""
        ...

    def replace(self, objects: tuple[T_contra, ...]) -> None:
        """A full list."""
        ...

    def bookmark(self, version: str) -> None:
        """Nothing happened up to this version."""
        ...


class Reflector(Generic[T]):
    """Keeps a store equal to a collection on the server.

    Args:
        source: The collection.
        store: Takes what is heard.
        clock: Measures silence and staleness.
        rng: Spreads time-outs and waits.
        name: For logs.
        settings: Patience.
        prepare: Applied to each object as it comes in, before the store sees it.
        on_error: Told of every error that ended a round; must return quickly.
        metrics: Counters; none by default.
    """

    def __init__(
        self,
        source: Source[T],
        store: ReflectorStore[T],
        *,
        clock: Clock,
        rng: Rng,
        name: str = "",
        settings: ReflectorSettings | None = None,
        prepare: Callable[[T], T] | None = None,
        on_error: Callable[[Exception], None] | None = None,
        metrics: ScopeMetrics | None = None,
    ) -> None:
        self.name = name
        self.settings = settings or ReflectorSettings()
        self.versions = VersionTracker()
        self._source, self._store, self._clock, self._rng = source, store, clock, rng
        self._prepare = prepare
        self._on_error = on_error
        self._metrics = metrics
        self._backoff = Backoff(self.settings.backoff, rng)
        self._watch_list = self.settings.use_watch_list
        self._always_page = False
        self._healthy_from: float | None = None
        self._heard_at = clock.monotonic()
        self._failed_at = self._complained_at = -math.inf

    @property
    def is_healthy(self) -> bool:
        """Whether the store is following the server: a list was taken over and a watch is open.

        A watch reopened after a failure counts once something is heard, or nothing bad for some seconds.
        """
        return self._healthy_from is not None and self._clock.monotonic() >= self._healthy_from

    @property
    def staleness_seconds(self) -> float:
        """Seconds since the server was last heard of, be it only by a bookmark."""
        return self._clock.monotonic() - self._heard_at

    async def run(self) -> None:
        """List and watch, for ever; ends only by cancellation."""
        while True:
            outcome = await attempt(self.list_and_watch)
            self._healthy_from = None
            error = outcome.error if isinstance(outcome, Failure) else None
            if error is not None:
                self._report(error)
            await self._back_off(error)

    async def list_and_watch(self) -> None:
        """One round: take over the whole collection, then follow its changes until that is no longer possible.

        Raises:
            ApiError: The server refused the list, or ended the watch with an error.
            Unreachable: The server could not be asked for the list.
        """
        stream = await self._initial_stream()
        if stream is None:
            await self._list()
        await self._watch(stream)

    # The initial list, streamed

    async def _initial_stream(self) -> AsyncIterator[WatchEvent[T]] | None:
        """A watch whose initial list has been taken over; None when lists must be used."""
        if not self._watch_list:
            return None
        for _ in range(2):
            try:
                return await self._stream_initial_list()
            except (BadRequest, Invalid, MethodNotAllowed, NotAcceptable, Silent) as error:
                _log.debug("watch list refused, using lists", extra={"reflector": self.name, "error": str(error)})
                self._watch_list = False
                return None
            except (ApiError, Unreachable) as error:
                if not _is_unavailable(error):
                    _log.debug("watch list failed, using lists", extra={"reflector": self.name, "error": str(error)})
                    await self._wait_if_refused(error)
                    return None
                self.versions.mark_unavailable()
        return None

    async def _stream_initial_list(self) -> AsyncIterator[WatchEvent[T]]:
        settings = self.settings
        timeout = self._watch_timeout()
        stream = self._source.watch(
            resource_version=self.versions.watch_list_version(), timeout_seconds=timeout, send_initial_events=True
        )
        self._count_watch()
        objects: dict[Key, T] = {}
        ended = False
        try:
            async with Watchdog(settings.initial_silence_seconds, timeout + settings.grace_seconds) as watchdog:
                async for event in stream:
                    watchdog.heard()
                    if self._collect(event, objects):
                        ended = True
                        break
        finally:
            if not ended:
                await _close(stream)
        if not ended:
            raise Unreachable("the watch ended before its initial list did")
        self._take_over(tuple(objects.values()), version_of(event.object))
        return stream

    def _collect(self, event: WatchEvent[T], objects: dict[Key, T]) -> bool:
        """Put one event of the initial list into `objects`; True when the list is complete."""
        self._heard_at = self._clock.monotonic()
        obj = event.object
        if event.type == "BOOKMARK":
            return annotations_of(obj).get(INITIAL_EVENTS_END) == "true"
        if event.type == "DELETED":
            objects.pop(key_of(obj), None)
        else:
            objects[key_of(obj)] = self._prepared(obj)
        return False

    # The initial list, listed

    async def _list(self) -> None:
        version = self.versions.list_version()
        try:
            objects, version = await self._list_at(version)
        except (ApiError, Unreachable) as error:
            if not _is_unavailable(error):
                raise
            self.versions.mark_unavailable()
            objects, version = await self._list_at(self.versions.list_version())
        self._take_over(objects, version)

    async def _list_at(self, version: str) -> tuple[tuple[T, ...], str]:
        limit = self.settings.page_size if version in ("", "0") or self._always_page else 0
        objects: list[T] = []
        token = ""
        while True:
            try:
                page = await self._source.list(
                    resource_version="" if token else version, limit=limit, continue_token=token
                )
            except Expired:
                if not token:
                    raise
                objects, token, limit = [], "", 0
                continue
            self._heard_at = self._clock.monotonic()
            objects.extend(self._prepared(obj) for obj in page.items)
            if not page.continue_token:
                return tuple(objects), page.resource_version
            self._always_page = self._always_page or version == "0"
            token = page.continue_token
            await asyncio.sleep(0)

    def _take_over(self, objects: tuple[T, ...], version: str) -> None:
        if self._metrics is not None:
            self._metrics.lists.inc()
            self._metrics.list_items.observe(len(objects))
        self._heard_at = self._clock.monotonic()
        self.versions.synced(version)
        self._store.replace(objects)

    # The watch

    async def _watch(self, stream: AsyncIterator[WatchEvent[T]] | None) -> None:
        trusted_after = 0.0
        while True:
            started = self._clock.monotonic()
            timeout = self._watch_timeout()
            if stream is None:
                stream = self._source.watch(
                    resource_version=self.versions.last, timeout_seconds=timeout, send_initial_events=False
                )
                self._count_watch()
            self._healthy_from = started + trusted_after
            try:
                count = await self._follow(stream, timeout + self.settings.grace_seconds)
            except (TooManyRequests, Unreachable) as error:
                self._healthy_from = None
                if isinstance(error, Silent) and trusted_after and self._heard_at <= started:
                    raise
                self._report(error)
                await self._back_off(error)
                trusted_after = self.settings.trust_seconds
            except ApiError as error:
                if _is_unavailable(error):
                    self.versions.mark_unavailable()
                raise
            else:
                if not count and self._clock.monotonic() - started < 1.0:
                    if self._metrics is not None:
                        self._metrics.short_watches.inc()
                    raise Unreachable("very short watch: it ended within a second and without an event")
                trusted_after = 0.0
            stream = None

    async def _follow(self, stream: AsyncIterator[WatchEvent[T]], total_seconds: float) -> int:
        """Take over the events of one watch until it ends; how many there were."""
        count = 0
        propagate = self.versions.last not in ("", "0")
        try:
            async with Watchdog(self.settings.silence_seconds, total_seconds) as watchdog:
                async for event in stream:
                    watchdog.heard()
                    count += 1
                    propagate = propagate or event.type != "ADDED"
                    self._apply(event, propagate)
        finally:
            await _close(stream)
            if self._metrics is not None and count:
                self._metrics.events.inc(count)
        return count

    def _apply(self, event: WatchEvent[T], propagate: bool) -> None:
        self._heard_at = self._healthy_from = self._clock.monotonic()
        obj = event.object
        if event.type == "ADDED":
            self._store.add(self._prepared(obj))
        elif event.type == "MODIFIED":
            self._store.update(self._prepared(obj))
        elif event.type == "DELETED":
            self._store.delete(self._prepared(obj))
        if propagate:
            self.versions.advance(version_of(obj))
            if event.type == "BOOKMARK":
                self._store.bookmark(self.versions.last)

    # Small things

    def _prepared(self, obj: T) -> T:
        return obj if self._prepare is None else self._prepare(obj)

    def _watch_timeout(self) -> int:
        low, high = self.settings.min_watch_seconds, self.settings.max_watch_seconds
        return int(low + self._rng.random() * (high - low))

    def _count_watch(self) -> None:
        if self._metrics is not None:
            self._metrics.watches.inc()

    async def _wait_if_refused(self, error: SkysailError) -> None:
        if isinstance(error, (TooManyRequests, Unreachable)):
            await self._back_off(error)

    async def _back_off(self, error: Exception | None) -> None:
        seconds = self._backoff.next_seconds(self._clock.monotonic())
        if isinstance(error, ApiError):
            seconds = max(seconds, float(error.retry_after_seconds))
        await asyncio.sleep(seconds)

    def _report(self, error: Exception) -> None:
        if self._metrics is not None:
            self._metrics.failures.inc()
        fields = {"reflector": self.name, "error": str(error)}
        if isinstance(error, Unreachable) and self._note_unreachable():
            _log.warning("server cannot be reached, will try again", extra=fields)
        elif isinstance(error, (Expired, Unreachable, TooManyRequests)):
            _log.debug("watch interrupted, will go on", extra=fields)
        elif isinstance(error, (InternalError, ServiceUnavailable, ServerTimeout)):
            _log.info("server failed, will list again", extra=fields)
        elif isinstance(error, SkysailError):
            _log.warning("server refuses to list or watch, will try again", extra=fields)
        else:
            _log.error("reflector failed, will try again", extra=fields, exc_info=error)
        if self._on_error is not None:
            self._on_error(error)

    def _note_unreachable(self) -> bool:
        """Note a failure; whether to complain of it: nothing was heard yet, or nothing since the last one.

        Once, until something is heard.
        """
        lasting = not self.versions.last or self._failed_at >= self._heard_at
        self._failed_at = self._clock.monotonic()
        if not lasting or self._complained_at >= self._heard_at:
            return False
        self._complained_at = self._failed_at
        return True


def _is_unavailable(error: SkysailError) -> bool:
    """Whether the server said that it has the asked-for version no longer, or not yet."""
    if isinstance(error, Expired):
        return True
    if not isinstance(error, ApiError):
        return False
    details = error.status.details
    return is_too_large(error.status.message, tuple(cause.reason for cause in details.causes) if details else ())


async def _close(stream: AsyncIterator[WatchEvent[T]]) -> None:
    close = getattr(stream, "aclose", None)
    if close is not None:
        await close()
