"""What names an object in a cache, and how metadata is read of any object, be it a Struct or a dictionary."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from skysail.api.meta import ApiObject, OwnerReference
from skysail.api.raw import Raw

T = TypeVar("T")

_make = tuple.__new__  # what `Key(...)` does, without the detour through Python: keys are made for every event


class Key(NamedTuple):
    """The name of an object within its kind; `namespace` is empty for cluster-scoped kinds.

    >>> str(Key("default", "web")), str(Key("", "node-1"))
    ('default/web', 'node-1')
    """

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @staticmethod
    def parse(text: str) -> "Key":
        """Read `namespace/name` or `name`.

        Raises:
            ValueError: More than one slash, or no name.
        """
        namespace, slash, name = text.rpartition("/")
        if not name or "/" in namespace or (slash and not namespace):
            raise ValueError(f"not a key: {text!r} (want namespace/name or name)")
        return Key(namespace, name)


@dataclass(frozen=True, slots=True)
class DeletedFinalStateUnknown(Generic[T]):
    """A tombstone: the object is gone, but the event that said so was missed.

    Attributes:
        key: Which object is gone.
        object: The last state that was seen of it, maybe stale; None when none was.
    """

    key: Key
    object: T | None


def key_of(obj: object) -> Key:
    """The key of an object, a dictionary or a tombstone."""
    if isinstance(obj, ApiObject):
        meta = obj.metadata
        return _make(Key, (meta.namespace, meta.name))
    if isinstance(obj, dict):
        raw = _raw_metadata(obj)
        return Key(raw.get("namespace", ""), raw["name"])
    if isinstance(obj, DeletedFinalStateUnknown):
        return obj.key
    raise TypeError(f"not an API object: {type(obj).__name__}")


def version_of(obj: object) -> str:
    """The object's resourceVersion; empty when it has none."""
    if isinstance(obj, ApiObject):
        return obj.metadata.resource_version
    return str(_raw_metadata(obj).get("resourceVersion", ""))


def uid_of(obj: object) -> str:
    """The object's uid; empty when it has none."""
    if isinstance(obj, ApiObject):
        return obj.metadata.uid
    return str(_raw_metadata(obj).get("uid", ""))


def labels_of(obj: object) -> Mapping[str, str]:
    """The object's labels."""
    if isinstance(obj, ApiObject):
        return obj.metadata.labels
    labels: Mapping[str, str] = _raw_metadata(obj).get("labels") or {}
    return labels


def annotations_of(obj: object) -> Mapping[str, str]:
    """The object's annotations."""
    if isinstance(obj, ApiObject):
        return obj.metadata.annotations
    annotations: Mapping[str, str] = _raw_metadata(obj).get("annotations") or {}
    return annotations


def generation_of(obj: object) -> int:
    """The object's generation; 0 when its kind counts none."""
    if isinstance(obj, ApiObject):
        return obj.metadata.generation
    return int(_raw_metadata(obj).get("generation", 0))


def owners_of(obj: object) -> tuple[OwnerReference, ...]:
    """The object's owner references."""
    if isinstance(obj, ApiObject):
        return obj.metadata.owner_references
    return tuple(
        OwnerReference(
            api_version=ref.get("apiVersion", ""),
            kind=ref.get("kind", ""),
            name=ref.get("name", ""),
            uid=ref.get("uid", ""),
            controller=ref.get("controller"),
            block_owner_deletion=ref.get("blockOwnerDeletion"),
        )
        for ref in _raw_metadata(obj).get("ownerReferences") or ()
    )


def controller_of(obj: object) -> OwnerReference | None:
    """The owner reference whose `controller` is true; None when nobody controls the object."""
    for reference in owners_of(obj):
        if reference.controller:
            return reference
    return None


def live_object(obj: T | DeletedFinalStateUnknown[T]) -> T | None:
    """The object itself, or what a tombstone knows of it."""
    return obj.object if isinstance(obj, DeletedFinalStateUnknown) else obj


def _raw_metadata(obj: object) -> Raw:
    if isinstance(obj, dict):
        metadata: Raw = obj["metadata"]
        return metadata
    raise TypeError(f"not an API object: {type(obj).__name__}")
