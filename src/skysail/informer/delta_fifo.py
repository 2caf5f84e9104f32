"""The queue between the reflector and the cache: for each key, what happened to it and has not been processed yet.

Invariants:

- a key is in the queue exactly if it has deltas, and it has at least one;
- deltas of a key stand in the order in which they came; keys are popped in the order of their first delta;
- two deletions never follow each other: the one that knows more is kept.

What the consumer is told about an object is therefore a history without contradictions, but not a complete one.

| call      | puts                                                                                              |
| --------- | ------------------------------------------------------------------------------------------------- |
| `add`     | Added                                                                                             |
| `update`  | Updated                                                                                           |
| `delete`  | Deleted, unless neither the queue nor the known objects have the key                              |
| `replace` | Replaced (or Sync) for each given object; Deleted with a tombstone for each other key, of the     |
|           | queue first and of the known objects then                                                         |
| `resync`  | Sync for each known object that has no delta waiting                                              |

Source: k8s.io/client-go/tools/cache/delta_fifo.go, v1.36. Differs: `pop` never waits (the shell does); objects are
transformed before they come here, by the reflector.
"""

from collections import deque
from collections.abc import Callable, Iterable
from enum import Enum
from itertools import pairwise
from typing import Generic, NamedTuple, Protocol, TypeVar

from skysail.api.errors import InvariantBroken
from skysail.informer.keys import DeletedFinalStateUnknown, Key, key_of

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class DeltaType(Enum):
    """What happened to an object."""

    ADDED = "Added"
    UPDATED = "Updated"
    DELETED = "Deleted"
    REPLACED = "Replaced"
    SYNC = "Sync"


class Delta(NamedTuple, Generic[T]):
    """One thing that happened. The object of a DELETED may be a tombstone."""

    type: DeltaType
    object: T | DeletedFinalStateUnknown[T]


class KnownObjects(Protocol[T_co]):
    """The consumer's cache, as far as the FIFO must know it."""

    def list_keys(self) -> tuple[Key, ...]:
        """The keys the consumer knows."""
        ...

    def get(self, key: Key) -> T_co | None:
        """What the consumer holds under a key."""
        ...

    def __contains__(self, key: Key) -> bool: ...


Process = Callable[[Key, tuple[Delta[T], ...], bool], None]
"""Consumes one key's deltas; the flag says whether they belong to the initial list. May raise `Requeue`."""


class Requeue(Exception):
    """Raised by a consumer that could not process the deltas now: they go back to the end of the queue."""


class DeltaFIFO(Generic[T]):
    """Deltas by key, in order of arrival.

    Args:
        known: The consumer's cache; without it missed deletions of objects no longer queued go unnoticed.
        emit_replaced: Whether `replace` says Replaced, as informers want, or Sync, as it once did.
        on_ready: Called when a key was queued, a list taken over or a version reached; a shell wakes its consumer.
    """

    def __init__(
        self,
        known: KnownObjects[T] | None = None,
        *,
        emit_replaced: bool = True,
        on_ready: Callable[[], None] | None = None,
    ) -> None:
        self._known = known
        self._emit_replaced = emit_replaced
        self._on_ready = on_ready
        self._items: dict[Key, list[Delta[T]]] = {}
        self._queue: deque[Key] = deque()
        self._populated = False
        self._initial_count = 0

    def add(self, obj: T) -> None:
        """The watch says ADDED."""
        self._populated = True
        self._enqueue(key_of(obj), DeltaType.ADDED, obj)

    def update(self, obj: T) -> None:
        """The watch says MODIFIED."""
        self._populated = True
        self._enqueue(key_of(obj), DeltaType.UPDATED, obj)

    def delete(self, obj: T) -> None:
        """The watch says DELETED; ignored when nobody knows the object, as after a relist that missed it already."""
        self._populated = True
        key = key_of(obj)
        if key not in self._items and (self._known is None or key not in self._known):
            return
        self._enqueue(key, DeltaType.DELETED, obj)

    def replace(self, objects: Iterable[T]) -> None:
        """A full list: the objects that exist now; every other one is gone."""
        kind = DeltaType.REPLACED if self._emit_replaced else DeltaType.SYNC
        keys: dict[Key, None] = {}
        for obj in objects:
            key = key_of(obj)
            keys[key] = None
            self._enqueue(key, kind, obj)
        gone = [(key, _last_state(deltas)) for key, deltas in self._items.items() if key not in keys]
        if self._known is not None:
            gone += [
                (key, self._known.get(key))
                for key in self._known.list_keys()
                if key not in keys and key not in self._items
            ]
        for key, last in gone:
            self._enqueue(key, DeltaType.DELETED, DeletedFinalStateUnknown(key, last))
        if not self._populated:
            self._populated = True
            self._initial_count = len(keys) + len(gone)
        self._wake()

    def bookmark(self, version: str) -> None:
        """The watch says that nothing happened up to a version: the consumer may look how far it has come."""
        self._wake()

    def resync(self) -> None:
        """Tell the consumer again about every object it knows and for which nothing is waiting."""
        if self._known is None:
            return
        for key in self._known.list_keys():
            obj = self._known.get(key)
            if obj is not None and key not in self._items:
                self._enqueue(key, DeltaType.SYNC, obj)

    def pop(self, process: Process[T]) -> bool:
        """Let the consumer process the deltas of the oldest key.

        The key counts as popped, and the FIFO as that much nearer to being synced, only once `process` returns: a
        consumer whose cache is the known objects has stored them by then.

        Returns:
            False when nothing is queued.
        """
        if not self._queue:
            return False
        key = self._queue.popleft()
        deltas = self._items.pop(key)
        initial = not self.has_synced
        try:
            process(key, tuple(deltas), initial)
        except Requeue:
            self._put_back(key, deltas)
            return True
        if self._initial_count:
            self._initial_count -= 1
        return True

    @property
    def has_synced(self) -> bool:
        """Whether everything the first list held, or a first change before any list, has been popped."""
        return self._populated and self._initial_count == 0

    def get(self, key: Key) -> tuple[Delta[T], ...]:
        """The deltas waiting for a key."""
        return tuple(self._items.get(key, ()))

    def __len__(self) -> int:
        return len(self._queue)

    def validate(self) -> None:
        """Check the invariants.

        Raises:
            InvariantBroken: The queue and the deltas disagree.
        """
        if sorted(self._queue) != sorted(self._items):
            raise InvariantBroken("queued keys and keys with deltas differ")
        for key, deltas in self._items.items():
            if not deltas:
                raise InvariantBroken(f"{key} is queued without deltas")
            kinds = [delta.type for delta in deltas]
            if (DeltaType.DELETED, DeltaType.DELETED) in pairwise(kinds):
                raise InvariantBroken(f"{key} has two deletions in a row")

    def _enqueue(self, key: Key, kind: DeltaType, obj: T | DeletedFinalStateUnknown[T]) -> None:
        deltas = self._items.get(key)
        delta = Delta(kind, obj)
        if deltas is None:
            self._items[key] = [delta]
            self._queue.append(key)
            self._wake()
        elif kind is DeltaType.DELETED and deltas[-1].type is DeltaType.DELETED:
            if isinstance(deltas[-1].object, DeletedFinalStateUnknown):
                deltas[-1] = delta
        else:
            deltas.append(delta)

    def _wake(self) -> None:
        if self._on_ready is not None:
            self._on_ready()

    def _put_back(self, key: Key, deltas: list[Delta[T]]) -> None:
        newer = self._items.get(key)
        if newer is None:
            self._items[key] = deltas
            self._queue.append(key)
            self._wake()
        else:
            newer[:0] = deltas


def _last_state(deltas: list[Delta[T]]) -> T | None:
    last = deltas[-1].object
    return last.object if isinstance(last, DeletedFinalStateUnknown) else last
