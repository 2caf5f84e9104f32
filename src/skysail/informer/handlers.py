"""Who listens to an informer: the handler's interface, a handler made of functions, and one that filters.

A handler is told, for every object, a history that makes sense: first an add, then updates, at last one delete; after
it an object of that key may be added again. Not promised: that every version is seen, or that the add comes from an
object that is new in the cluster. Methods may be plain or `async`; one call ends before the next begins.

Source: k8s.io/client-go/tools/cache/controller.go, v1.36.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from skysail.informer.keys import DeletedFinalStateUnknown, live_object

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)

MaybeAwaitable = Awaitable[None] | None


class EventHandler(Protocol[T_contra]):
    """What an informer calls."""

    def on_add(self, obj: T_contra, in_initial_list: bool) -> MaybeAwaitable:
        """An object appeared in the cache; `in_initial_list` when it was there from the first list on."""
        ...

    def on_update(self, old: T_contra, new: T_contra) -> MaybeAwaitable:
        """A cached object was replaced; at a resync `new` is `old`."""
        ...

    def on_delete(self, obj: "T_contra | DeletedFinalStateUnknown[T_contra]") -> MaybeAwaitable:
        """An object is gone; a tombstone when the event that said so was missed."""
        ...


@dataclass(frozen=True, slots=True)
class Handlers(Generic[T]):
    """A handler made of functions; what is left out is not called.

    Attributes:
        add: Takes the object.
        update: Takes the old and the new object.
        delete: Takes the object; a tombstone is unwrapped first, and left out when it knows nothing.
    """

    add: Callable[[T], MaybeAwaitable] | None = None
    update: Callable[[T, T], MaybeAwaitable] | None = None
    delete: Callable[[T], MaybeAwaitable] | None = None

    def on_add(self, obj: T, in_initial_list: bool) -> MaybeAwaitable:
        """Call `add`."""
        return self.add(obj) if self.add is not None else None

    def on_update(self, old: T, new: T) -> MaybeAwaitable:
        """Call `update`."""
        return self.update(old, new) if self.update is not None else None

    def on_delete(self, obj: T | DeletedFinalStateUnknown[T]) -> MaybeAwaitable:
        """Call `delete` with the object itself."""
        last = live_object(obj)
        return self.delete(last) if self.delete is not None and last is not None else None


@dataclass(frozen=True, slots=True)
class FilteringHandler(Generic[T]):
    """Passes on only the objects a filter lets through.

    An update that makes an object pass is an add, one that makes it fail is a delete of the old object. Tombstones
    are filtered by the object they hold; one that holds none is dropped.

    Attributes:
        accept: The filter.
        handler: Who is told.
    """

    accept: Callable[[T], bool]
    handler: EventHandler[T]

    def on_add(self, obj: T, in_initial_list: bool) -> MaybeAwaitable:
        """Pass on, if accepted."""
        return self.handler.on_add(obj, in_initial_list) if self.accept(obj) else None

    def on_update(self, old: T, new: T) -> MaybeAwaitable:
        """Pass on as an update, an add, a delete, or not at all."""
        before, after = self.accept(old), self.accept(new)
        if before and after:
            return self.handler.on_update(old, new)
        if after:
            return self.handler.on_add(new, False)
        if before:
            return self.handler.on_delete(old)
        return None

    def on_delete(self, obj: T | DeletedFinalStateUnknown[T]) -> MaybeAwaitable:
        """Pass on, if accepted."""
        last = live_object(obj)
        return self.handler.on_delete(obj) if last is not None and self.accept(last) else None
