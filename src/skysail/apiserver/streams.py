"""The async half of a watch: wait for changes, write them out, end in time.

    (expired) ──▶ one ERROR event ──▶ end
    initial events, if asked ──▶ bookmark that closes them ──▶ changes, with a bookmark about every minute ──▶ end

A stream ends at its time-out, when its watcher was too slow, and when the server stops; in every case cleanly between
two events, so the client goes on from the last version it saw.

Source: apiserver/pkg/endpoints/handlers/watch.go, pkg/storage/cacher, v1.36.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

import msgspec

from skysail.api.raw import Raw
from skysail.apiserver.contract import GroupResource
from skysail.apiserver.forms import Form
from skysail.apiserver.reading import parse_revision
from skysail.apiserver.requests import ListOptions
from skysail.apiserver.status import plain_error, status_document, watch_expired
from skysail.apiserver.store import Record, Store
from skysail.apiserver.watching import QUEUE_LIMIT, Matcher, Seen, Watcher

BOOKMARK_SECONDS = 60.0
_LAST_BOOKMARK_SECONDS = 2.0
_DEFAULT_SECONDS = 1800.0
_CHUNK = 128
_INITIAL_EVENTS_END: Raw = {"k8s.io/initial-events-end": "true"}


@dataclass(frozen=True, slots=True)
class WatchPlan:
    """A watch that may be opened.

    Attributes:
        after: The revision it goes on from; None for whatever is current when it opens.
        initial: Whether what exists comes first.
    """

    resource: GroupResource
    matcher: Matcher
    form: Form
    after: int | None
    initial: bool
    bookmarks: bool
    closing_bookmark: bool
    seconds: float


def plan_watch(resource: GroupResource, namespace: str, options: ListOptions, form: Form, rng: Random) -> WatchPlan:
    """Decide how a watch goes.

    Raises:
        ApiError: Its resourceVersion is no number (500, as upstream answers here).
    """
    try:
        asked = parse_revision(options.resource_version)
    except ValueError as error:
        raise plain_error(str(error)) from error
    initial = bool(options.send_initial_events)
    seconds = options.timeout_seconds
    return WatchPlan(
        resource=resource,
        matcher=Matcher(namespace, options.labels, options.fields),
        form=form,
        after=asked if asked and not initial else None,
        initial=initial,
        bookmarks=options.bookmarks,
        closing_bookmark=initial and options.bookmarks,
        seconds=seconds if seconds is not None and seconds > 0 else _DEFAULT_SECONDS * (1 + rng.random()),
    )


class Watches:
    """All open watches of one server."""

    def __init__(self, store: Store, queue_limit: int = QUEUE_LIMIT) -> None:
        self._store, self._queue_limit = store, queue_limit
        self._open: set[Callable[[], None]] = set()
        self._stopping = False

    @property
    def count(self) -> int:
        """How many are open."""
        return len(self._open)

    def stop(self) -> None:
        """End all of them, now and from now on."""
        self._stopping = True
        for wake in tuple(self._open):
            wake()

    async def stream(self, plan: WatchPlan) -> AsyncIterator[bytes]:
        """The lines of one watch, in chunks of whole lines."""
        store, loop = self._store, asyncio.get_running_loop()
        after = store.visible if plan.after is None else plan.after
        if not store.is_watchable(plan.resource, after):
            yield _expired_line(after, store.oldest_watchable(plan.resource))
            return
        ready = asyncio.Event()
        watcher = Watcher(plan.matcher, after, ready.set, self._queue_limit)
        backlog = store.changes_after(plan.resource, after)
        existing = list(store.list(plan.resource)) if plan.initial else ()
        cancel = store.subscribe(plan.resource, watcher)
        self._open.add(ready.set)
        timers = _Timers(loop, plan, ready.set)
        try:
            for chunk in _initial_chunks(plan, existing, after):
                yield chunk
                await asyncio.sleep(0)
            for change in backlog:
                watcher.offer(change)
            while not self._stopping:
                await ready.wait()
                ready.clear()
                for chunk in _change_chunks(plan.form, watcher.take()):
                    yield chunk
                if watcher.overflowed or timers.is_over():
                    return
                if timers.take_bookmark():
                    yield _line("BOOKMARK", plan.form.bookmark(store.visible, None))
        finally:
            cancel()
            timers.cancel()
            self._open.discard(ready.set)


class _Timers:
    """When a watch ends, and when its next bookmark is due; both just wake it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, plan: WatchPlan, wake: Callable[[], None]) -> None:
        self._loop, self._wake = loop, wake
        self._ends = loop.time() + plan.seconds
        self._end = loop.call_at(self._ends, wake)
        self._due = self._next_bookmark() if plan.bookmarks else None
        self._bookmark = loop.call_at(self._due, wake) if self._due is not None else None

    def _next_bookmark(self) -> float | None:
        now = self._loop.time()
        last = self._ends - _LAST_BOOKMARK_SECONDS
        if now + BOOKMARK_SECONDS < last:
            return now + BOOKMARK_SECONDS
        return last if last - now > BOOKMARK_SECONDS / 2 else None

    def is_over(self) -> bool:
        return self._loop.time() >= self._ends

    def take_bookmark(self) -> bool:
        """Whether one is due; the next is planned then."""
        if self._due is None or self._loop.time() < self._due:
            return False
        self._due = self._next_bookmark()
        self._bookmark = self._loop.call_at(self._due, self._wake) if self._due is not None else None
        return True

    def cancel(self) -> None:
        self._end.cancel()
        if self._bookmark is not None:
            self._bookmark.cancel()


def _line(kind: str, body: bytes) -> bytes:
    return b'{"type":"%b","object":%b}\n' % (kind.encode(), body)


def _expired_line(asked: int, oldest: int) -> bytes:
    status = watch_expired(asked, oldest).status
    return _line("ERROR", msgspec.json.encode(status_document(status)))


def _initial_chunks(plan: WatchPlan, existing: Sequence[Record], revision: int) -> Iterator[bytes]:
    matcher, form = plan.matcher, plan.form
    lines: list[bytes] = []
    for record in existing:
        if matcher.everything or matcher.matches(record):
            lines.append(_line("ADDED", form.object(record.body)))
            if len(lines) == _CHUNK:
                yield b"".join(lines)
                lines.clear()
    if plan.closing_bookmark:
        lines.append(_line("BOOKMARK", form.bookmark(revision, _INITIAL_EVENTS_END)))
    if lines:
        yield b"".join(lines)


def _change_chunks(form: Form, seen: Sequence[Seen]) -> Iterator[bytes]:
    for start in range(0, len(seen), _CHUNK):
        yield b"".join([_change_line(form, each) for each in seen[start : start + _CHUNK]])


def _change_line(form: Form, seen: Seen) -> bytes:
    kind, change = seen
    key = (kind, form.key)
    line = change.lines.get(key)
    if line is None:
        if kind == "DELETED":
            body = change.old.at_revision(change.revision) if change.old else b""
        else:
            body = change.new.body if change.new else b""
        line = _line(kind, form.object(body))
        if form.stable:
            change.lines[key] = line
    return line
