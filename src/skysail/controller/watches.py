"""What a controller watches, and how a change becomes the key of the object to reconcile.

    For(ReplicaSet)                                   the object itself
    Owns(Pod)                                         the controller of the object
    Watches(Pod, map=..., on=(Deleted,))              whatever keys a function gives

Of an update both the old and the new object are mapped, so a child that changes owners wakes both.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, TypeVar

from skysail.api.kinds import Kind, kind_of
from skysail.controller.owners import is_of_kind
from skysail.informer.keys import DeletedFinalStateUnknown, Key, key_of, owners_of, version_of

T = TypeVar("T")

LOW_PRIORITY = -100
"""The priority of keys that nothing new is known of: initial lists and resyncs (controller-runtime's value)."""


class Change(Enum):
    """What happened to an object."""

    ADDED = "Added"
    UPDATED = "Updated"
    DELETED = "Deleted"


Added = Change.ADDED
Updated = Change.UPDATED
Deleted = Change.DELETED


@dataclass(frozen=True, slots=True)
class ObjectEvent(Generic[T]):
    """One change, as predicates see it.

    Attributes:
        change: What happened.
        old: The object before; None for an add.
        new: The object after; None for a delete.
        in_initial_list: Whether an add comes from the first list.
    """

    change: Change
    old: T | None
    new: T | None
    in_initial_list: bool = False

    @property
    def object(self) -> T:
        """The object after the change, or for a delete its last state."""
        obj = self.new if self.new is not None else self.old
        if obj is None:
            raise TypeError("an event without an object")
        return obj

    @property
    def is_news(self) -> bool:
        """False for an initial add and for a resync."""
        if self.change is Change.UPDATED:
            return version_of(self.old) != version_of(self.new)
        return not self.in_initial_list


Predicate = Callable[[ObjectEvent[T]], bool]
"""Whether a change is worth a reconcile."""

EVERY_CHANGE = (Added, Updated, Deleted)


@dataclass(frozen=True)
class Watch(Generic[T]):
    """One kind a controller watches; use `For`, `Owns` or `Watches`.

    Attributes:
        kind: A built-in Struct or a kind descriptor.
        on: The changes that count.
        predicates: All must agree.
        namespace: One namespace, or all when empty.
        label_selector: Watch only these, in wire form.
        field_selector: Watch only these, in wire form.
    """

    kind: type[T] | Kind[T]
    on: Sequence[Change] = EVERY_CHANGE
    predicates: Sequence[Predicate[T]] = ()
    namespace: str = ""
    label_selector: str = ""
    field_selector: str = ""

    @property
    def descriptor(self) -> Kind[T]:
        """The kind descriptor."""
        return self.kind if isinstance(self.kind, Kind) else kind_of(self.kind)

    def keys(self, obj: T, root: Kind[Any] | None) -> Iterable[Key]:
        """The keys to reconcile when `obj` changes.

        Args:
            obj: The object.
            root: The kind the controller is `For`.
        """
        raise TypeError(f"{type(self).__name__} maps nothing: use For, Owns or Watches")


@dataclass(frozen=True)
class For(Watch[T]):
    """The kind a controller reconciles."""

    def keys(self, obj: T, root: Kind[Any] | None) -> Iterable[Key]:
        """Its own key."""
        return (key_of(obj),)


@dataclass(frozen=True)
class Owns(Watch[T]):
    """A kind whose objects the controller makes.

    Attributes:
        controller_only: False to wake every owner of the controller's kind, not only the controlling one.
    """

    controller_only: bool = True

    def keys(self, obj: T, root: Kind[Any] | None) -> Iterable[Key]:
        """The owner's key, if it is of the kind that the controller is `For`."""
        if root is None:
            raise TypeError("Owns needs a For beside it")
        references = owners_of(obj)
        if self.controller_only:
            references = tuple(reference for reference in references if reference.controller)
        namespace = key_of(obj).namespace if root.namespaced else ""
        return tuple(Key(namespace, found.name) for found in references if is_of_kind(found, root))


@dataclass(frozen=True)
class Watches(Watch[T]):
    """Any other kind.

    Attributes:
        map: Gives the keys to reconcile when an object of the kind changes.
    """

    map: Callable[[T], Iterable[Key]] = lambda obj: ()

    def keys(self, obj: T, root: Kind[Any] | None) -> Iterable[Key]:
        """What `map` gives."""
        return self.map(obj)


class WatchHandler(Generic[T]):
    """The informer's handler of one watch: decides, maps, and enqueues."""

    def __init__(self, watch: Watch[T], root: Kind[Any] | None, enqueue: Callable[[Key, int], None]) -> None:
        self._watch, self._root, self._enqueue = watch, root, enqueue

    def on_add(self, obj: T, in_initial_list: bool) -> None:
        """An object appeared."""
        self._handle(ObjectEvent(Added, None, obj, in_initial_list))

    def on_update(self, old: T, new: T) -> None:
        """An object was replaced."""
        self._handle(ObjectEvent(Updated, old, new))

    def on_delete(self, obj: T | DeletedFinalStateUnknown[T]) -> None:
        """An object is gone."""
        if not isinstance(obj, DeletedFinalStateUnknown):
            self._handle(ObjectEvent(Deleted, obj, None))
        elif obj.object is not None:
            self._handle(ObjectEvent(Deleted, obj.object, None))
        elif isinstance(self._watch, For) and Deleted in self._watch.on:
            self._enqueue(obj.key, 0)

    def _handle(self, event: ObjectEvent[T]) -> None:
        watch = self._watch
        if event.change not in watch.on or not all(accepts(event) for accepts in watch.predicates):
            return
        priority = 0 if event.is_news else LOW_PRIORITY
        keys: dict[Key, None] = {}
        for obj in (event.old, event.new):
            if obj is not None:
                keys.update(dict.fromkeys(watch.keys(obj, self._root)))
        for key in keys:
            self._enqueue(key, priority)
