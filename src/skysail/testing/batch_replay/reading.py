"""How a step says what happens. Everything unknown is refused by its path.

Every act takes one thing or a list of them. Where a thing is an object of the cluster, its manifest names it as well as
`{kind, name, namespace}` or `Kind/namespace/name` does.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import msgspec

from skysail.api.errors import ConfigError
from skysail.api.quantity import parse_quantity
from skysail.api.raw import Raw
from skysail.testing.batch_replay.acts import (
    Act,
    AddNode,
    Apply,
    Crash,
    DelayWatch,
    Delete,
    FailBind,
    FailNode,
    Part,
    Patch,
    RecoverNode,
    SetDevice,
)
from skysail.testing.batch_replay.kinds import KnownKinds

TPart = TypeVar("TPart", bound=Part)


@dataclass(frozen=True, slots=True)
class Place:
    """Where in which file something stands.

    Attributes:
        file: The scenario's.
        path: The field.
        kinds: What its objects may be.
    """

    file: str
    path: str
    kinds: KnownKinds

    def below(self, name: str | int) -> "Place":
        """A field or an element of it."""
        step = f"[{name}]" if isinstance(name, int) else f".{name}" if self.path else name
        return Place(self.file, f"{self.path}{step}", self.kinds)

    def fault(self, message: str) -> ConfigError:
        """What is wrong there."""
        return ConfigError(message, file=self.file, path=self.path)


def read_acts(name: str, value: object, place: Place) -> list[Act]:
    """The acts that one word of a step stands for.

    Raises:
        ConfigError: It is none of the words, or does not say what that act needs; with the path of the field.
    """
    read = _READERS[name]
    if not isinstance(value, list):
        return read(value, place)
    return [act for number, each in enumerate(value) for act in read(each, place.below(number))]


def check_object(obj: object, place: Place) -> Raw:
    """An object as manifests write them, of a known kind and with a name."""
    if not isinstance(obj, dict):
        raise place.fault(f"an object is wanted, not {_shown(obj)}")
    for field in ("apiVersion", "kind"):
        if not isinstance(obj.get(field), str):
            raise place.below(field).fault(f"a string is wanted, not {_shown(obj.get(field))}")
    if place.kinds.named(obj["kind"], obj["apiVersion"]) is None:
        others = sorted({each.api_version for each in place.kinds.find(obj["kind"])})
        known = f"; known are {', '.join(others)}" if others else ""
        raise place.below("kind").fault(f"unknown kind {obj['kind']!r} of {obj['apiVersion']!r}{known}")
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str) or not metadata["name"]:
        raise place.below("metadata.name").fault("a name is wanted")
    return obj


def unfolded(obj: object, place: Place) -> list[Raw]:
    """An object, or those of a `List`."""
    if isinstance(obj, dict) and obj.get("kind") == "List" and isinstance(obj.get("items"), list):
        return [
            each
            for number, item in enumerate(obj["items"])
            for each in unfolded(item, place.below("items").below(number))
        ]
    return [check_object(obj, place)]


# -- each act ------------------------------------------------------------------------------------------------------


def _apply(value: object, place: Place) -> list[Act]:
    return [Apply(object=each) for each in unfolded(value, place)]


def _delete(value: object, place: Place) -> list[Act]:
    found = _convert(_named(value, place), Delete, place)
    _check_kind(found.kind, found.api_version, place)
    return [found]


def _patch(value: object, place: Place) -> list[Act]:
    if isinstance(value, dict) and "patch" not in value and "metadata" in value:
        value = _as_patch(value, place)
    found = _convert(value, Patch, place)
    _check_kind(found.kind, found.api_version, place)
    return [found]


def _as_patch(manifest: Raw, place: Place) -> Raw:
    """A manifest as the change to what it says, of the object it names."""
    named = _named(manifest, place)
    assert isinstance(named, dict)
    change = {field: each for field, each in manifest.items() if field not in ("apiVersion", "kind", "metadata")}
    metadata = {field: each for field, each in manifest["metadata"].items() if field not in ("name", "namespace")}
    return named | {"patch": change | ({"metadata": metadata} if metadata else {})}


def _named(value: object, place: Place) -> object:
    """`Kind/name`, `Kind/namespace/name` or a manifest as the fields that name an object."""
    if isinstance(value, str):
        parts = value.replace(" ", "/").split("/")
        if len(parts) not in (2, 3) or not all(parts):
            raise place.fault(f"Kind/name or Kind/namespace/name is wanted, not {value!r}")
        return {"kind": parts[0], "name": parts[-1], **({"namespace": parts[1]} if len(parts) == 3 else {})}
    if isinstance(value, dict) and isinstance(value.get("metadata"), dict):
        found = {field: value[field] for field in ("apiVersion", "kind") if field in value}
        found |= {field: value["metadata"][field] for field in ("name", "namespace") if field in value["metadata"]}
        return found
    return value


def _check_kind(kind: str, api_version: str, place: Place) -> None:
    if not place.kinds.find(kind, api_version):
        of = f" of {api_version!r}" if api_version else ""
        raise place.below("kind").fault(f"unknown kind {kind!r}{of}")


def _delay_watch(value: object, place: Place) -> list[Act]:
    found = _convert(value, DelayWatch, place)
    if found.kind != "*":
        _check_kind(found.kind, "", place)
    if not 0 <= found.seconds < math.inf:
        raise place.below("seconds").fault(f"no less than 0 is wanted, not {found.seconds:g}")
    return [found]


def _fail_bind(value: object, place: Place) -> list[Act]:
    return [_convert({"match": value} if isinstance(value, str) else value, FailBind, place)]


def _fail_node(value: object, place: Place) -> list[Act]:
    return [_convert(_with_name(value), FailNode, place)]


def _recover_node(value: object, place: Place) -> list[Act]:
    return [_convert(_with_name(value), RecoverNode, place)]


def _add_node(value: object, place: Place) -> list[Act]:
    if isinstance(value, dict) and "metadata" in value:
        return [node_of(check_object({"apiVersion": "v1", "kind": "Node", **value}, place), place)]
    if isinstance(value, dict) and "allocatable" in value and "capacity" not in value:
        value = {("capacity" if field == "allocatable" else field): each for field, each in value.items()}
    return [_checked_node(_convert(_with_name(value), AddNode, place), place.below("capacity"))]


def node_of(obj: Raw, place: Place) -> AddNode:
    """A Node object as a hollow node; what is allocatable is what it has."""
    status, spec, metadata = dict(obj.get("status") or {}), obj.get("spec") or {}, obj["metadata"]
    capacity, allocatable = status.pop("capacity", None), status.pop("allocatable", None)
    found = {
        "name": metadata["name"],
        "capacity": allocatable or capacity or {},
        "labels": metadata.get("labels") or {},
        "annotations": metadata.get("annotations") or {},
        "taints": spec.get("taints") or [],
        "unschedulable": spec.get("unschedulable", False),
        "status": status,
    }
    return _checked_node(_convert(found, AddNode, place), place.below("status.capacity"))


def _checked_node(node: AddNode, place: Place) -> AddNode:
    """Whether it could ever be registered: what a node has are quantities, none below 0."""
    for resource, amount in node.capacity.items():
        try:
            is_one = parse_quantity(str(amount)).nano >= 0
        except ValueError:
            is_one = False
        if not is_one:
            raise place.below(resource).fault(f"a quantity from 0 on is wanted, not {amount!r}")
    return node


def _set_device(value: object, place: Place) -> list[Act]:
    if isinstance(value, dict) and "device" in value and "resource" not in value:
        value = {("resource" if field == "device" else field): each for field, each in value.items()}
    found = _convert(value, SetDevice, place)
    if found.count is None and found.healthy is None:
        raise place.below("count").fault("count or healthy is wanted: how many devices there are, or can be used")
    return [found]


def _crash(value: object, place: Place) -> list[Act]:
    if isinstance(value, str) and value != "scheduler":
        raise place.fault(f"{value!r}: only the scheduler can crash")
    return [_convert({"component": value} if isinstance(value, str) else value, Crash, place)]


def _with_name(value: object) -> object:
    return {"name": value} if isinstance(value, str) else value


def _convert(value: object, wanted: type[TPart], place: Place) -> TPart:
    """As msgspec does it, with the fields that are known in the words about one that is not."""
    if not isinstance(value, dict):
        raise place.fault(f"{_fields(wanted)} are wanted, not {_shown(value)}")
    known = {field.encode_name for field in msgspec.structs.fields(wanted)}
    for field in value:
        if field not in known:
            raise place.below(str(field)).fault(f"unknown; known are {_fields(wanted)}")
    try:
        return msgspec.convert(value, wanted)
    except msgspec.ValidationError as error:
        words, _, where = str(error).partition(" - at ")
        path = where.strip("`").removeprefix("$").removeprefix(".")
        raise (place.below(path) if path else place).fault(words.replace("`", "")) from error


def _fields(wanted: type[msgspec.Struct]) -> str:
    return ", ".join(field.encode_name for field in msgspec.structs.fields(wanted))


def _shown(value: Any) -> str:
    return "nothing" if value is None else f"{type(value).__name__} {str(value)[:60]!r}"


_READERS: Final[Mapping[str, Callable[[object, Place], list[Act]]]] = {
    "apply": _apply,
    "delete": _delete,
    "patch": _patch,
    "delayWatch": _delay_watch,
    "failBind": _fail_bind,
    "failNode": _fail_node,
    "recoverNode": _recover_node,
    "addNode": _add_node,
    "setDevice": _set_device,
    "crash": _crash,
}
ACTS: Final = tuple(_READERS)
"""The words a step may use beside `at` and `applyFiles`."""
