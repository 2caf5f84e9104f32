"""Typed reads of a cache."""

from typing import Generic, TypeVar

from skysail.api.labels import Selector
from skysail.informer.indexer import NAMESPACE_INDEX, Indexer
from skysail.informer.keys import Key, labels_of

T = TypeVar("T")


class Lister(Generic[T]):
    """Reads one kind's cache; never waits, never asks the server, may be a moment behind it.

    Objects are frozen and shared: to change one, write through the client.
    """

    def __init__(self, indexer: Indexer[T]) -> None:
        self.indexer = indexer

    def get(self, key: Key) -> T | None:
        """One object by key; None when the cache does not have it."""
        return self.indexer.get(key)

    def named(self, name: str, namespace: str = "") -> T | None:
        """One object by name; `namespace` stays empty for cluster-scoped kinds."""
        return self.indexer.get(Key(namespace, name))

    def list(self, namespace: str = "", selector: Selector | None = None) -> tuple[T, ...]:
        """Objects of one namespace, or of all, that a selector matches.

        Cost: grows with the objects of the namespace when a selector is given.
        """
        objects = self.indexer.by_index(NAMESPACE_INDEX, namespace) if namespace else self.indexer.list()
        if selector is None or selector.empty:
            return objects
        return tuple(obj for obj in objects if selector.matches(labels_of(obj)))

    def by_index(self, name: str, value: str) -> tuple[T, ...]:
        """The objects an index holds under a value.

        Raises:
            KeyError: No index has that name.
        """
        return self.indexer.by_index(name, value)

    def __len__(self) -> int:
        return len(self.indexer)
