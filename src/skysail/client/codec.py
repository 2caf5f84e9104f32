"""From objects to the bytes of the wire and back; one decoder a Struct, made once.

Source: the JSON forms of k8s.io/apimachinery/pkg/apis/meta/v1 (List, WatchEvent, DeleteOptions), v1.36.
"""

from collections.abc import Mapping
from typing import Any, Generic, TypeVar

import msgspec

from skysail.api.errors import ApiError, InternalError, Status, error_from_status
from skysail.api.kinds import Kind
from skysail.api.meta import ApiObject
from skysail.api.ports import ObjectList, WatchEvent
from skysail.api.raw import Raw

T = TypeVar("T")

_EVENT_TYPES = frozenset({"ADDED", "MODIFIED", "DELETED", "BOOKMARK"})


class _ListMeta(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    resource_version: str = ""
    continue_token: str = msgspec.field(default="", name="continue")
    remaining_item_count: int | None = None


class _List(msgspec.Struct, Generic[T], frozen=True, gc=False):
    metadata: _ListMeta = _ListMeta()
    items: tuple[T, ...] | None = ()


class _Event(msgspec.Struct, Generic[T], frozen=True, gc=False):
    type: str
    object: T


class _ErrorEvent(msgspec.Struct, frozen=True, gc=False):
    type: str
    object: Status | None = None


_list_of: Any = _List  # subscribed at run time, which the type checker takes for a variable in a type
_event_of: Any = _Event

_object_decoders: dict[type, msgspec.json.Decoder[Any]] = {}
_list_decoders: dict[type, msgspec.json.Decoder[Any]] = {}
_event_decoders: dict[type, msgspec.json.Decoder[Any]] = {}
_error_decoder = msgspec.json.Decoder(_ErrorEvent)


_KEPT_WHOLE = frozenset({"template", "jobTemplate", "volumeClaimTemplate", "volumeClaimTemplates", "data"})


def _decode(decoder: msgspec.json.Decoder[Any], body: bytes) -> Any:
    """Decode; a `null` where a Struct has no room for one reads as the field's absence, as Go's decoder has it.

    Kubernetes writes null for some unset times and empty lists. Templates keep theirs: they are compared whole.
    """
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        if "got `null`" not in str(error):
            raise
    return decoder.decode(msgspec.json.encode(_without_nulls(msgspec.json.decode(body))))


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: each if key in _KEPT_WHOLE else _without_nulls(each)
            for key, each in value.items()
            if each is not None or key in _KEPT_WHOLE
        }
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value


def decode_object(struct: type[T], body: bytes, request: str) -> T:
    """Read one object.

    Raises:
        InternalError: The server's answer is no such object.
    """
    try:
        decoder = _object_decoders.get(struct) or _object_decoders.setdefault(struct, msgspec.json.Decoder(struct))
        obj: T = _decode(decoder, body)
    except msgspec.DecodeError as error:
        raise _unreadable(request, error) from error
    return obj


def decode_list(struct: type[T], body: bytes, request: str) -> ObjectList[T]:
    """Read one page of a list.

    Raises:
        InternalError: The server's answer is no list of such objects.
    """
    try:
        decoder = _list_decoders.get(struct)
        if decoder is None:
            decoder = _list_decoders[struct] = msgspec.json.Decoder(_list_of[struct])
        page: _List[T] = _decode(decoder, body)
    except msgspec.DecodeError as error:
        raise _unreadable(request, error) from error
    meta = page.metadata
    return ObjectList(page.items or (), meta.resource_version, meta.continue_token, meta.remaining_item_count)


def decode_event(struct: type[T], line: bytes, request: str) -> WatchEvent[T]:
    """Read one line of a watch.

    Raises:
        ApiError: The line is an ERROR event: the matching subclass.
        InternalError: The line is no watch event of such objects.
    """
    try:
        decoder = _event_decoders.get(struct)
        if decoder is None:
            decoder = _event_decoders[struct] = msgspec.json.Decoder(_event_of[struct])
        event: _Event[T] = _decode(decoder, line)
    except msgspec.DecodeError as error:
        raise _error_event(line, request) or _unreadable(request, error) from error
    if event.type not in _EVENT_TYPES:
        raise _error_event(line, request) or _unreadable(request, f"an event of type {event.type!r}")
    return WatchEvent(event.type, event.object)  # type: ignore[arg-type]  # checked on the line above


def _error_event(line: bytes, request: str) -> ApiError | None:
    try:
        event = _error_decoder.decode(line)
    except msgspec.DecodeError:
        return None
    if event.type != "ERROR":
        return None
    return error_from_status(event.object or Status(message="a watch error without a status"), request)


def _unreadable(request: str, why: object) -> ApiError:
    return InternalError(f"the server's answer cannot be read: {why}", request=request)


def encode_object(kind: Kind[Any], obj: object) -> bytes:
    """Write one object with its `apiVersion` and `kind`."""
    if isinstance(obj, ApiObject) and not (obj.api_version and obj.kind):
        obj = msgspec.structs.replace(obj, api_version=kind.api_version, kind=kind.name)
    elif isinstance(obj, Mapping) and not (obj.get("apiVersion") and obj.get("kind")):
        obj = {**obj, "apiVersion": kind.api_version, "kind": kind.name}
    return msgspec.json.encode(obj)


def to_raw(obj: object) -> Raw:
    """An object as it stands on the wire, as a dictionary of its own."""
    raw = msgspec.json.decode(msgspec.json.encode(obj))
    if not isinstance(raw, dict):
        raise TypeError(f"not an object: {type(obj).__name__}")
    return raw


def merge_difference(old: Raw, new: Raw) -> Raw:
    """The JSON merge patch (RFC 7386) that turns `old` into `new`; empty when they are equal."""
    patch: Raw = {key: None for key in old if key not in new}
    for key, value in new.items():
        if key not in old:
            patch[key] = value
        elif old[key] != value:
            both = isinstance(old[key], dict) and isinstance(value, dict)
            patch[key] = merge_difference(old[key], value) if both else value
    return patch
