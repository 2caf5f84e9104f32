"""Objects as they will be once a write is through: what one pod was promised, the next must not be promised again.

Invariants:
- an assumed object replaces the stored one only while both have the same resource version: whatever the API server says
  later wins, whether the write went through or somebody else wrote;
- an assumption is taken back by `restore`, or falls away by itself once the object moves on or is gone.

Source: pkg/scheduler/framework/plugins/volumebinding/passive_assume_cache.go, v1.36. Differs: stale assumptions are
dropped when somebody looks, not by an informer's handler.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, Protocol, TypeVar

from skysail.api.meta import ApiObject

T = TypeVar("T", bound=ApiObject)
T_co = TypeVar("T_co", bound=ApiObject, covariant=True)

_Key = tuple[str, str]


class Stored(Protocol[T_co]):
    """The objects as last seen (`skysail.scheduler.framework.handle.Lister` is one)."""

    def get(self, namespace: str, name: str) -> T_co | None:
        """One object."""
        ...

    def list(self, namespace: str | None = None) -> Sequence[T_co]:
        """All objects."""
        ...

    def indexed(self, name: str, values: Callable[[T_co], Iterable[str]]) -> Callable[[str], Sequence[T_co]]:
        """How to find objects by the values that a function gives."""
        ...


class AssumeCache(Generic[T]):
    """What is stored, with what is assumed on top.

    Args:
        stored: The objects as last seen.
    """

    def __init__(self, stored: Stored[T]) -> None:
        self._stored = stored
        self._assumed: dict[_Key, T] = {}

    def get(self, namespace: str, name: str) -> T | None:
        """An object, assumed or stored."""
        stored = self._stored.get(namespace, name)
        return stored if stored is None or not self._assumed else self._on_top(stored)

    def stored(self, namespace: str, name: str) -> T | None:
        """An object as last seen, whatever is assumed."""
        return self._stored.get(namespace, name)

    def list(self) -> Sequence[T]:
        """All objects, assumed or stored."""
        return self._all_on_top(self._stored.list())

    def indexed(self, name: str, values: Callable[[T], Iterable[str]]) -> Callable[[str], Sequence[T]]:
        """How to find objects, assumed or stored, by the values that a function gives of the stored ones."""
        find = self._stored.indexed(name, values)
        return lambda value: self._all_on_top(find(value))

    def assume(self, obj: T) -> bool:
        """Take an object for what it will be; False when it has moved on, or is gone, and nothing is assumed."""
        self._drop_stale()
        stored = self._stored.get(obj.metadata.namespace, obj.metadata.name)
        if stored is None or stored.metadata.resource_version != obj.metadata.resource_version:
            return False
        self._assumed[_key(obj)] = obj
        return True

    def restore(self, obj: T) -> None:
        """Take an assumption back; nothing happens when another one, or none, is held."""
        assumed = self._assumed.get(_key(obj))
        if assumed is not None and assumed.metadata.resource_version == obj.metadata.resource_version:
            del self._assumed[_key(obj)]

    def __len__(self) -> int:
        """How many objects are assumed."""
        self._drop_stale()
        return len(self._assumed)

    def _all_on_top(self, stored: Sequence[T]) -> Sequence[T]:
        return stored if not self._assumed else [self._on_top(each) for each in stored]

    def _on_top(self, stored: T) -> T:
        assumed = self._assumed.get(_key(stored))
        if assumed is None or assumed.metadata.resource_version != stored.metadata.resource_version:
            return stored
        return assumed

    def _drop_stale(self) -> None:
        for key, assumed in tuple(self._assumed.items()):
            stored = self._stored.get(*key)
            if stored is None or stored.metadata.resource_version != assumed.metadata.resource_version:
                del self._assumed[key]


def _key(obj: ApiObject) -> _Key:
    return obj.metadata.namespace, obj.metadata.name
