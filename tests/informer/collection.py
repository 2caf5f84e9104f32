"""A collection of pods on a server that does as told: versions, a window of history, watches, and faults on demand."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator

from skysail.api.core import Pod, PodSpec
from skysail.api.errors import Expired, RequestTimeout, Status, StatusCause, StatusDetails, Unreachable
from skysail.api.meta import ObjectMeta
from skysail.api.ports import ObjectList, WatchEvent
from skysail.informer import Key, key_of, version_of
from skysail.informer.reflector import INITIAL_EVENTS_END

Event = WatchEvent[Pod]
_TOO_LARGE = StatusDetails(causes=(StatusCause(reason="ResourceVersionTooLarge"),))


def pod(name, version="1", *, namespace="default", node="", labels=None, uid=""):
    meta = ObjectMeta(
        namespace=namespace, name=name, resource_version=str(version), uid=uid or f"uid-{name}", labels=labels or {}
    )
    return Pod(metadata=meta, spec=PodSpec(node_name=node))


class Collection:
    """What the server holds, and how it answers. Every request is noted in `requests`."""

    def __init__(self, window=1000):
        self.objects: dict[Key, Pod] = {}
        self.version = 1
        self.history: deque[tuple[int, Event]] = deque(maxlen=window)
        self.watchers: list[asyncio.Queue[Event | Exception | None]] = []
        self.requests: list[str] = []
        self.list_faults: deque[Exception] = deque()
        self.watch_faults: deque[Exception] = deque()
        self.knows_watch_list = True
        self.ignores_initial_events = False
        self.forgotten = 0

    # what happens on the server

    def put(self, name, **fields):
        self.version += 1
        obj = pod(name, self.version, **fields)
        kind = "MODIFIED" if key_of(obj) in self.objects else "ADDED"
        self.objects[key_of(obj)] = obj
        self._tell(WatchEvent(kind, obj))
        return obj

    def delete(self, name, namespace="default"):
        self.version += 1
        last = self.objects.pop(Key(namespace, name))
        gone = pod(name, self.version, namespace=namespace, uid=last.uid)
        self._tell(WatchEvent("DELETED", gone))

    def bookmark(self):
        self._send(self._bookmark_event())

    def compact(self):
        """Forget all history: older versions are 410 from now on."""
        self.history.clear()
        self.forgotten = self.version

    def break_watches(self, error: Exception | None = None):
        """End every open watch, with an error or in peace."""
        for watcher in self.watchers:
            watcher.put_nowait(error)
        self.watchers.clear()

    def lose_watches(self):
        """Open watches stay open and never say anything again."""
        self.watchers.clear()

    def restore(self):
        """The server goes away and comes back with an empty store, whose versions begin anew."""
        self.objects.clear()
        self.history.clear()
        self.version = 1
        self.break_watches(Unreachable("connection reset"))

    def _tell(self, event: Event):
        self.history.append((self.version, event))
        self._send(event)

    def _send(self, event: Event):
        for watcher in self.watchers:
            watcher.put_nowait(event)

    def _bookmark_event(self, initial_end=False):
        annotations = {INITIAL_EVENTS_END: "true"} if initial_end else {}
        meta = ObjectMeta(resource_version=str(self.version), annotations=annotations)
        return WatchEvent("BOOKMARK", Pod(metadata=meta))

    # what the reflector asks

    async def list(self, *, resource_version, limit, continue_token):
        self.requests.append(f"list rv={resource_version!r} limit={limit} continue={continue_token!r}")
        if self.list_faults:
            raise self.list_faults.popleft()
        self._refuse_the_future(resource_version)
        items = [self.objects[key] for key in sorted(self.objects)]
        start = int(continue_token or 0)
        end = start + limit if limit else len(items)
        token = str(end) if end < len(items) else ""
        return ObjectList(tuple(items[start:end]), str(self.version), token)

    async def watch(self, *, resource_version, timeout_seconds, send_initial_events) -> AsyncIterator[Event]:
        self.requests.append(f"watch rv={resource_version!r} initial={send_initial_events}")
        if self.watch_faults:
            raise self.watch_faults.popleft()
        if send_initial_events and not self.knows_watch_list:
            from skysail.api.errors import Invalid

            raise Invalid("sendInitialEvents is forbidden")
        queue: asyncio.Queue[Event | Exception | None] = asyncio.Queue()
        since = int(resource_version or 0)
        if send_initial_events and not self.ignores_initial_events:
            self._refuse_the_future(resource_version)
            for key in sorted(self.objects):
                queue.put_nowait(WatchEvent("ADDED", self.objects[key]))
            queue.put_nowait(self._bookmark_event(initial_end=True))
        else:
            if since < self.forgotten or (self.history and since < self.history[0][0] - 1):
                raise Expired("too old resource version")
            for version, event in self.history:
                if version > since:
                    queue.put_nowait(event)
        if since <= self.version:
            self.watchers.append(queue)
        try:
            async with asyncio.timeout(timeout_seconds):
                while (event := await queue.get()) is not None:
                    if isinstance(event, Exception):
                        raise event
                    yield event
        except TimeoutError:
            return
        finally:
            if queue in self.watchers:
                self.watchers.remove(queue)

    def _refuse_the_future(self, version: str) -> None:
        """A list must be as new as asked for; a watch just waits until the server has come so far."""
        if int(version or 0) > self.version:
            raise RequestTimeout(Status(details=_TOO_LARGE))

    def count(self, start: str) -> int:
        return sum(request.startswith(start) for request in self.requests)


class Story:
    """A handler that writes down what it is told, and in `faults` where its history makes no sense."""

    def __init__(self):
        self.lines: list[str] = []
        self.faults: list[str] = []
        self.known: dict[Key, str] = {}

    def on_add(self, obj, in_initial_list):
        if key_of(obj) in self.known:
            self.faults.append(f"added twice: {key_of(obj)}")
        self.known[key_of(obj)] = version_of(obj)
        self.lines.append(f"add {obj.name}{' initial' if in_initial_list else ''}")

    def on_update(self, old, new):
        if self.known.get(key_of(new)) != version_of(old):
            self.faults.append(f"update of what it was not told of: {key_of(new)} at {version_of(old)}")
        self.known[key_of(new)] = version_of(new)
        self.lines.append(f"update {new.name}")

    def on_delete(self, obj):
        key = key_of(obj)
        if self.known.pop(key, None) is None:
            self.faults.append(f"delete of an unknown object: {key}")
        self.lines.append(f"delete {key.name}{' missed' if not isinstance(obj, Pod) else ''}")
