"""The MVCC store: every object of every kind under one revision counter, with a window of history for watches.

Invariants:

1. Revisions only grow: each accepted write takes the next, whatever its kind. A write that fails to commit burns one.
2. A write is first *accepted* (the write path sees it, so two writers of one object cannot both win), then, in order,
   *published* (reads and watches see it). Without a journal both happen in one step.
3. `visible` is the revision up to which everything has been published; lists and bookmarks carry it.
4. A table's log holds every published change above its `forgotten` revision. Whatever asks for older state is expired.

    accepted --publish(revision)--> visible, logged, offered to watchers
    accepted --roll_back()--------> gone, its writer is told

Objects are kept as JSON bytes, `kind`, `apiVersion` and `metadata.resourceVersion` first, so that a list's item or a
new resourceVersion is a slice away; beside them stand the labels and fields that selectors read. Nothing here awaits,
reads a clock, or knows a kind.
"""

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Literal, NamedTuple, Protocol

import msgspec

from skysail.api.errors import InvariantBroken
from skysail.api.raw import Raw
from skysail.apiserver.contract import GroupResource

_NO_TEXT: Mapping[str, str] = {}
_METADATA = b'"metadata":{"resourceVersion":'
_encode = msgspec.json.Encoder().encode


class StoredObject(NamedTuple):
    """One object as it lies on disk.

    Attributes:
        selectors: Its labels and its selectable fields, as JSON, so that loading need not read the body.
    """

    resource: GroupResource
    key: str
    revision: int
    selectors: bytes
    body: bytes


class Record(msgspec.Struct, frozen=True, gc=False):
    """One state of one object.

    Attributes:
        key: `namespace/name`, or the name alone: what lists are sorted by.
        revision: The write that made this state; equals the resourceVersion in `body`.
        item_at: Where `body` goes on after `kind` and `apiVersion` (the item of a list starts there).
        tail_at: Where `body` goes on after the resourceVersion.
        fields: What field selectors may ask, beyond name and namespace.
    """

    key: str
    namespace: str
    name: str
    revision: int
    body: bytes
    item_at: int
    tail_at: int
    labels: Mapping[str, str]
    fields: Mapping[str, str]

    @property
    def item(self) -> bytes:
        """The object as it stands in a list: without kind and apiVersion."""
        return b"{" + self.body[self.item_at :]

    def at_revision(self, revision: int) -> bytes:
        """The body with another resourceVersion."""
        head = self.body[: self.tail_at - len(str(self.revision)) - 2]
        return b'%b"%d"%b' % (head, revision, self.body[self.tail_at :])


def key_of(namespace: str, name: str) -> str:
    """The key of an object within its resource."""
    return f"{namespace}/{name}" if namespace else name


def make_record(document: Raw, revision: int, fields: Mapping[str, str]) -> Record:
    """Encode an object (its resourceVersion is replaced by `revision`)."""
    metadata = document["metadata"]
    ordered_metadata = {"resourceVersion": str(revision)}
    ordered_metadata.update((key, value) for key, value in metadata.items() if key != "resourceVersion")
    ordered = {"kind": document["kind"], "apiVersion": document["apiVersion"], "metadata": ordered_metadata}
    ordered.update((key, value) for key, value in document.items() if key not in ordered)
    key = key_of(metadata.get("namespace", ""), metadata["name"])
    return restored_record(key, revision, _encode(ordered), metadata.get("labels") or _NO_TEXT, fields)


def restored_record(
    key: str, revision: int, body: bytes, labels: Mapping[str, str], fields: Mapping[str, str]
) -> Record:
    """The record of a body that `make_record` once encoded."""
    namespace, _, name = key.rpartition("/")
    item_at = body.index(_METADATA)
    return Record(
        key=key,
        namespace=namespace,
        name=name,
        revision=revision,
        body=body,
        item_at=item_at,
        tail_at=item_at + len('"metadata":{"resourceVersion":""') + len(str(revision)),
        labels=labels,
        fields=fields,
    )


class Change:
    """One write: `old` is None for a creation, `new` is None for a deletion.

    Attributes:
        lines: Encoded watch events, by form; filled by whoever encodes first, shared by all watchers.
    """

    __slots__ = ("lines", "new", "old", "resource", "revision")

    def __init__(self, resource: GroupResource, revision: int, old: Record | None, new: Record | None) -> None:
        self.resource, self.revision, self.old, self.new = resource, revision, old, new
        self.lines: dict[object, bytes] = {}

    @property
    def key(self) -> str:
        """The key of the object concerned."""
        record = self.new or self.old
        if record is None:
            raise InvariantBroken("a change of nothing")
        return record.key


class Listener(Protocol):
    """Somebody to be told of every published change of one resource."""

    def offer(self, change: Change) -> None:
        """Take note; must neither block nor raise."""
        ...


class Journal(Protocol):
    """Where accepted writes go before they are published. It must call `publish` or `roll_back` later, in order."""

    def append(self, change: Change) -> None:
        """Remember an accepted write for the next commit."""
        ...


class _Table:
    """One resource: the published objects, those accepted but not yet published, and the log."""

    __slots__ = ("accepted", "forgotten", "keys", "listeners", "log", "modified", "objects")

    def __init__(self, forgotten: int) -> None:
        self.objects: dict[str, Record] = {}
        self.keys: list[str] = []
        self.accepted: dict[str, Change] = {}
        self.log: deque[Change] = deque()
        self.forgotten = forgotten
        self.modified = forgotten
        self.listeners: list[Listener] = []

    def apply(self, change: Change) -> None:
        key = change.key
        if change.new is None:
            del self.objects[key]
            del self.keys[bisect_left(self.keys, key)]
        else:
            if key not in self.objects:
                insort(self.keys, key)
            self.objects[key] = change.new
        if self.accepted.get(key) is change:
            del self.accepted[key]
        self.log.append(change)
        self.modified = change.revision

    def range(self, namespace: str, after: str) -> Sequence[str]:
        """The sorted keys of a namespace (all for ""), from the key `after` on."""
        first, last = 0, len(self.keys)
        if namespace:
            first, last = bisect_left(self.keys, namespace + "/"), bisect_left(self.keys, namespace + "0")
        if after:
            first = max(first, bisect_left(self.keys, after))
        return self.keys[first:last] if (first, last) != (0, len(self.keys)) else self.keys


Verdict = Literal["visible", "future", "expired"]


class Store:
    """All objects, current and recent.

    Args:
        revision: The last revision ever given out; the first write takes the next.
        history_limit: Changes kept for watches and old lists, over all resources.
    """

    def __init__(self, *, revision: int = 0, history_limit: int = 50_000) -> None:
        self.revision = revision
        self.visible = revision
        self.compacted = revision
        self.journal: Journal | None = None
        self._start = revision
        self._history_limit = history_limit
        self._history: deque[Change] = deque()
        self._unpublished: deque[Change] = deque()
        self._tables: dict[GroupResource, _Table] = {}

    def _table(self, resource: GroupResource) -> _Table:
        table = self._tables.get(resource)
        if table is None:
            table = self._tables[resource] = _Table(self._start)
        return table

    # Writing.

    def latest(self, resource: GroupResource, namespace: str, name: str) -> Record | None:
        """The object as the write path sees it: accepted writes included."""
        table, key = self._table(resource), key_of(namespace, name)
        if key in table.accepted:
            return table.accepted[key].new
        return table.objects.get(key)

    def latest_all(self, resource: GroupResource, namespace: str = "") -> Iterator[Record]:
        """All objects as the write path sees them, in key order."""
        table = self._table(resource)
        if not table.objects and not table.accepted:
            return
        keys: Sequence[str] = table.range(namespace, "")
        if table.accepted:
            prefix = namespace + "/" if namespace else ""
            keys = sorted({*keys, *(key for key in table.accepted if key.startswith(prefix))})
        for key in keys:
            change = table.accepted.get(key)
            record = table.objects.get(key) if change is None else change.new
            if record is not None:
                yield record

    def put(self, resource: GroupResource, document: Raw, fields: Mapping[str, str]) -> Record:
        """Accept a new state of an object, existing or not. Rules and preconditions are the caller's."""
        metadata = document["metadata"]
        old = self.latest(resource, metadata.get("namespace", ""), metadata["name"])
        record = make_record(document, self.revision + 1, fields)
        self._accept(Change(resource, record.revision, old, record))
        return record

    def delete(self, resource: GroupResource, namespace: str, name: str) -> Change:
        """Accept the removal of an object that is there."""
        old = self.latest(resource, namespace, name)
        if old is None:
            raise InvariantBroken(f"delete of absent {resource} {key_of(namespace, name)}")
        change = Change(resource, self.revision + 1, old, None)
        self._accept(change)
        return change

    def _accept(self, change: Change) -> None:
        self.revision = change.revision
        self._table(change.resource).accepted[change.key] = change
        self._unpublished.append(change)
        if self.journal is None:
            self.publish(change.revision)
        else:
            self.journal.append(change)

    def publish(self, revision: int) -> None:
        """Make accepted writes up to a revision visible, and offer them to the listeners, in order."""
        while self._unpublished and self._unpublished[0].revision <= revision:
            change = self._unpublished.popleft()
            table = self._table(change.resource)
            table.apply(change)
            self._history.append(change)
            self.visible = change.revision
            for listener in tuple(table.listeners):
                listener.offer(change)
        while len(self._history) > self._history_limit:
            self._forget_oldest()

    def is_pending(self, revision: int) -> bool:
        """Whether the write of that revision is accepted and neither published nor rolled back."""
        waiting = self._unpublished
        return bool(waiting) and waiting[0].revision <= revision <= waiting[-1].revision

    def roll_back(self) -> None:
        """Drop every accepted write that is not published: its commit failed."""
        for change in self._unpublished:
            self._table(change.resource).accepted.pop(change.key, None)
        self._unpublished.clear()

    def restore(self, resource: GroupResource, records: Sequence[Record]) -> None:
        """Fill a fresh table with what a previous life left, without history."""
        table = self._table(resource)
        table.objects = {record.key: record for record in records}
        table.keys = sorted(table.objects)

    def begin(self) -> None:
        """Forget the history so far: what was written until now belongs to the start of the server."""
        self._start = self.visible
        self.compact(self.visible)
        for table in self._tables.values():
            table.forgotten = self.visible

    # Reading.

    def get(self, resource: GroupResource, namespace: str, name: str) -> Record | None:
        """The published state of an object."""
        return self._table(resource).objects.get(key_of(namespace, name))

    def when(self, resource: GroupResource, revision: int) -> Verdict:
        """Whether the state at a revision can be shown, lies ahead, or is forgotten."""
        if revision > self.visible:
            return "future"
        return "expired" if revision < max(self.compacted, self._table(resource).forgotten) else "visible"

    def list(
        self, resource: GroupResource, namespace: str = "", *, at: int | None = None, after: str = ""
    ) -> Iterator[Record]:
        """The objects in key order, from the key `after` on, now or as they were at a visible revision."""
        table = self._table(resource)
        if at is not None and at < table.modified:
            yield from self._list_at(table, namespace, at, after)
            return
        for key in table.range(namespace, after):
            yield table.objects[key]

    def _list_at(self, table: _Table, namespace: str, at: int, after: str) -> Iterator[Record]:
        then: dict[str, Record | None] = {}
        for change in reversed(table.log):
            if change.revision <= at:
                break
            then[change.key] = change.old
        prefix = namespace + "/" if namespace else ""
        returned = (key for key, record in then.items() if record and key >= after and key.startswith(prefix))
        for key in sorted({*table.range(namespace, after), *returned}):
            record = then[key] if key in then else table.objects[key]
            if record is not None:
                yield record

    def count(self, resource: GroupResource) -> int:
        """How many objects of a resource are published."""
        return len(self._table(resource).objects)

    def last_change(self, resource: GroupResource) -> int:
        """The revision of the last published change of a resource."""
        return self._table(resource).modified

    def resources(self) -> Sequence[GroupResource]:
        """Every resource with an object."""
        return [resource for resource, table in self._tables.items() if table.objects]

    # Watching.

    def is_watchable(self, resource: GroupResource, revision: int) -> bool:
        """Whether every change after a revision is still in the log."""
        return revision >= self._table(resource).forgotten

    def oldest_watchable(self, resource: GroupResource) -> int:
        """The earliest revision from which a watch of a resource may go on."""
        return self._table(resource).forgotten

    def changes_after(self, resource: GroupResource, revision: int) -> Sequence[Change]:
        """The logged changes of a resource above a revision, oldest first."""
        found = list(takewhile(lambda change: change.revision > revision, reversed(self._table(resource).log)))
        found.reverse()
        return found

    def subscribe(self, resource: GroupResource, listener: Listener) -> Callable[[], None]:
        """Offer every change published from now on to a listener; call the result to end that."""
        listeners = self._table(resource).listeners
        listeners.append(listener)

        def cancel() -> None:
            if listener in listeners:
                listeners.remove(listener)

        return cancel

    # Forgetting.

    def compact(self, revision: int) -> None:
        """Forget changes up to a revision: older lists and watches are expired from now on."""
        self.compacted = max(self.compacted, min(revision, self.visible))
        while self._history and self._history[0].revision <= self.compacted:
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        change = self._history.popleft()
        table = self._table(change.resource)
        table.log.popleft()
        table.forgotten = change.revision
        self.compacted = max(self.compacted, change.revision)
