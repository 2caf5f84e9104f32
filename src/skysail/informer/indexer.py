"""The local copy of a collection, with indexes: what listers read.

Invariants:

- every index holds, for each cached object and each value its function gives, that object under that value;
- no index holds an empty bucket.

Only the informer writes; everybody may read, as the objects are frozen. A read never waits.

Source: k8s.io/client-go/tools/cache/thread_safe_store.go, v1.36. Differs: one loop owns it, so there are no locks;
a bucket maps keys to objects, so that `by_index` is one dictionary look-up and needs no second one per key; values keep
the order in which they were inserted, so that runs repeat.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Generic, TypeVar

from skysail.api.errors import InvariantBroken
from skysail.informer.keys import Key, key_of

T = TypeVar("T")

IndexFunction = Callable[[T], Iterable[str]]
"""Gives the values under which an object is found; none leaves it out of the index."""

NAMESPACE_INDEX = "namespace"
"""The index every indexer has: objects by namespace."""

_EMPTY: Mapping[Key, object] = {}


class Indexer(Generic[T]):
    """Objects by key, and by any number of indexes.

    Args:
        indexes: Index functions by name, beside the namespace index.
    """

    def __init__(self, indexes: Mapping[str, IndexFunction[T]] | None = None) -> None:
        self._objects: dict[Key, T] = {}
        self._functions: dict[str, IndexFunction[T]] = {}
        self._namespaces: dict[str, dict[Key, T]] = {}
        self._buckets: dict[str, dict[str, dict[Key, T]]] = {NAMESPACE_INDEX: self._namespaces}
        self.resource_version = ""
        """The newest version this copy is known to reflect; bookmarks move it too."""
        if indexes:
            self.add_indexes(indexes)

    def add_indexes(self, indexes: Mapping[str, IndexFunction[T]]) -> None:
        """Add indexes, also over objects that are there already.

        Adding the same function under the same name again is allowed and does nothing, so that two users of one cache
        may ask for the same index.

        Raises:
            ValueError: Another function has that name.

        Cost: one call of each function per cached object.
        """
        for name, function in indexes.items():
            if name == NAMESPACE_INDEX or self._functions.get(name, function) is not function:
                raise ValueError(f"another index is named {name!r} already")
        for name, function in indexes.items():
            if name in self._functions:
                continue
            buckets: dict[str, dict[Key, T]] = {}
            for key, obj in self._objects.items():
                _insert(buckets, function(obj), key, obj)
            self._functions[name] = function
            self._buckets[name] = buckets

    @property
    def index_names(self) -> tuple[str, ...]:
        """The names of all indexes."""
        return tuple(self._buckets)

    def put(self, obj: T) -> T | None:
        """Add or replace an object; the one that was there before."""
        return self.put_under(key_of(obj), obj)

    def put_under(self, key: Key, obj: T) -> T | None:
        """`put`, for a caller that knows the object's key already."""
        old = self._objects.get(key)
        self._objects[key] = obj
        _insert(self._namespaces, (key.namespace,), key, obj)
        for name, function in self._functions.items():
            buckets = self._buckets[name]
            values = tuple(function(obj))
            if old is not None:
                for value in function(old):
                    if value not in values:
                        _remove(buckets, value, key)
            _insert(buckets, values, key, obj)
        return old

    def remove(self, key: Key) -> T | None:
        """Remove an object; None when it was not there."""
        old = self._objects.pop(key, None)
        if old is not None:
            _remove(self._namespaces, key.namespace, key)
            for name, function in self._functions.items():
                buckets = self._buckets[name]
                for value in function(old):
                    _remove(buckets, value, key)
        return old

    def replace(self, objects: Iterable[T]) -> None:
        """Forget everything, then hold exactly these objects."""
        self._objects.clear()
        for buckets in self._buckets.values():
            buckets.clear()
        for obj in objects:
            self.put(obj)

    def get(self, key: Key) -> T | None:
        """One object; None when it is not there."""
        return self._objects.get(key)

    def __contains__(self, key: Key) -> bool:
        return key in self._objects

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[T]:
        return iter(tuple(self._objects.values()))

    def list_keys(self) -> tuple[Key, ...]:
        """All keys, oldest insertion first."""
        return tuple(self._objects)

    def list(self) -> tuple[T, ...]:
        """All objects, oldest insertion first."""
        return tuple(self._objects.values())

    def by_index(self, name: str, value: str) -> tuple[T, ...]:
        """The objects an index holds under a value.

        Raises:
            KeyError: No index has that name.
        """
        bucket = self._buckets[name].get(value)
        return tuple(bucket.values()) if bucket else ()

    def keys_by_index(self, name: str, value: str) -> tuple[Key, ...]:
        """The keys an index holds under a value.

        Raises:
            KeyError: No index has that name.
        """
        bucket = self._buckets[name].get(value)
        return tuple(bucket) if bucket else ()

    def count_by_index(self, name: str, value: str) -> int:
        """How many objects an index holds under a value.

        Raises:
            KeyError: No index has that name.
        """
        return len(self._buckets[name].get(value, _EMPTY))

    def index_values(self, name: str) -> tuple[str, ...]:
        """All values under which an index holds anything.

        Raises:
            KeyError: No index has that name.
        """
        return tuple(self._buckets[name])

    def validate(self) -> None:
        """Check the invariants.

        Raises:
            InvariantBroken: An index and the objects disagree.
        """
        functions: dict[str, IndexFunction[T]] = {NAMESPACE_INDEX: lambda obj: (key_of(obj).namespace,)}
        for name, function in (functions | self._functions).items():
            wanted: dict[str, dict[Key, T]] = {}
            for key, obj in self._objects.items():
                _insert(wanted, function(obj), key, obj)
            if wanted != self._buckets[name]:
                raise InvariantBroken(f"index {name!r} disagrees with the objects it indexes")


def _insert(buckets: dict[str, dict[Key, T]], values: Iterable[str], key: Key, obj: T) -> None:
    for value in values:
        bucket = buckets.get(value)
        if bucket is None:
            buckets[value] = {key: obj}
        else:
            bucket[key] = obj


def _remove(buckets: dict[str, dict[Key, T]], value: str, key: Key) -> None:
    bucket = buckets.get(value)
    if bucket is not None:
        bucket.pop(key, None)
        if not bucket:
            del buckets[value]
