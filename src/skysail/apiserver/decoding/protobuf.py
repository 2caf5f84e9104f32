"""Protobuf bodies to JSON values, driven by the field numbers in the table. Only decoding: answers are always JSON.

A body is `k8s` and a zero byte, then an envelope message: `{1: {1: apiVersion, 2: kind}, 2: raw, 3: contentEncoding,
4: contentType}`, where `raw` is the message of that kind. Go's generated code writes zero values of fields that are no
pointers; they are given back as they stand, and the reader leaves out what the server leaves out.

Source: apimachinery/pkg/runtime/serializer/protobuf, and the generated.proto files of Kubernetes 1.36.
"""

import base64
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import cast

from skysail.apiserver.decoding.json_text import JsonSyntaxError, parse
from skysail.apiserver.schema import FieldInfo, Shape, TypeInfo, made_from

MAGIC = b"k8s\0"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Payload = int | bytes
Value = object


class NotProtobuf(ValueError):
    """The body does not begin as one of Kubernetes' protobuf bodies."""


class Malformed(ValueError):
    """Bytes that are no message of the type."""


@dataclass(frozen=True, slots=True)
class Envelope:
    """A body before its kind is looked at."""

    api_version: str
    kind: str
    raw: bytes


def open_envelope(body: bytes) -> Envelope:
    """Take the envelope off.

    Raises:
        NotProtobuf: The magic is missing.
        Malformed: The envelope is broken.
    """
    if not body.startswith(MAGIC):
        raise NotProtobuf
    outer = dict(fields_of(body[4:]))
    meta = dict(fields_of(_bytes(outer.get(1, b""))))
    return Envelope(_text(meta.get(1, b"")), _text(meta.get(2, b"")), _bytes(outer.get(2, b"")))


def decode_message(data: bytes, info: TypeInfo) -> dict[str, Value]:
    """The JSON value of a message, zero values included.

    Raises:
        Malformed: The bytes are no message of that type.
    """
    value = made_from(info, "messages", _Messages).decode(data, info)
    if not isinstance(value, dict):
        raise Malformed(f"{info.name} is no object")
    return value


def fields_of(data: bytes) -> Iterator[tuple[int, Payload]]:
    """Field numbers and payloads in order: an int for varints and fixed widths (as bits), bytes for the rest.

    Raises:
        Malformed: The bytes end early, or use a wire type that does not occur.
    """
    at, end = 0, len(data)
    while at < end:
        key, at = _varint(data, at)
        wire = key & 7
        if wire == 0:
            value, at = _varint(data, at)
            yield key >> 3, value
        elif wire == 2:
            size, at = _varint(data, at)
            if at + size > end:
                raise Malformed("unexpected EOF")
            yield key >> 3, data[at : at + size]
            at += size
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
            if at + size > end:
                raise Malformed("unexpected EOF")
            yield key >> 3, int.from_bytes(data[at : at + size], "little")
            at += size
        else:
            raise Malformed(f"proto: illegal wireType {wire}")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data):
            raise Malformed("unexpected EOF")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at
        shift += 7
        if shift > 63:
            raise Malformed("proto: integer overflow")


def _bytes(payload: Payload) -> bytes:
    if not isinstance(payload, bytes):
        raise Malformed("proto: wrong wireType")
    return payload


def _text(payload: Payload) -> str:
    return _bytes(payload).decode("utf-8", "replace")


def _signed(payload: Payload) -> int:
    if not isinstance(payload, int):
        raise Malformed("proto: wrong wireType")
    return payload - (1 << 64) if payload >> 63 else payload


def _boolean(payload: Payload) -> bool:
    return _signed(payload) != 0


def _double(payload: Payload) -> float:
    value = struct.unpack("<d", (_signed(payload) & 0xFFFFFFFFFFFFFFFF).to_bytes(8, "little"))
    return cast("float", value[0])


def _base64(payload: Payload) -> str:
    return base64.b64encode(_bytes(payload)).decode()


def _numbers(payload: Payload) -> dict[int, Payload]:
    return dict(fields_of(_bytes(payload)))


def _quantity(payload: Payload) -> str:
    return _text(_numbers(payload).get(1, b"0"))


def _int_or_string(payload: Payload) -> Value:
    parts = _numbers(payload)
    return _text(parts.get(3, b"")) if parts.get(1, 0) else _signed(parts.get(2, 0))


def _moment(payload: Payload) -> datetime | None:
    parts = _numbers(payload)
    if not parts:
        return None
    try:
        return _EPOCH + timedelta(seconds=_signed(parts.get(1, 0)), microseconds=_signed(parts.get(2, 0)) // 1000)
    except OverflowError:
        raise Malformed("time out of range") from None


def _time(payload: Payload) -> str | None:
    moment = _moment(payload)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ").zfill(20) if moment else None


def _micro_time(payload: Payload) -> str | None:
    moment = _moment(payload)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ").zfill(27) if moment else None


def _raw_json(payload: Payload) -> Value:
    text = _bytes(_numbers(payload).get(1, b""))
    try:
        return parse(text) if text else None
    except JsonSyntaxError as error:
        raise Malformed(str(error)) from error


_FORMS: Mapping[str, Callable[[Payload], Value]] = {
    "quantity": _quantity, "intstr": _int_or_string, "time": _time, "microtime": _micro_time, "raw": _raw_json,
}  # fmt: skip
_SCALARS: Mapping[str, Callable[[Payload], Value]] = {
    "string": _text, "integer": _signed, "boolean": _boolean, "number": _double,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Field:
    """How one numbered field is read: `once`, into a `list`, into a `map`, or `inline` into its parent."""

    name: str
    how: str
    read: Callable[[Payload], Value]


class _Messages:
    """The decoding tables of one table of types, made when a type is first met."""

    def __init__(self) -> None:
        self._tables: dict[str, dict[int, _Field]] = {}

    def decode(self, data: bytes, info: TypeInfo) -> Value:
        if info.form in _FORMS:
            return _FORMS[info.form](data)
        if info.form.startswith("schema-or"):
            return self._union(data, info)
        table = self._tables.get(info.name)
        if table is None:
            table = self._tables[info.name] = self._table(info)
        out: dict[str, Value] = {}
        for number, payload in fields_of(data):
            field = table.get(number)
            if field is not None:
                self._store(out, field, payload)
        return out

    def _store(self, out: dict[str, Value], field: _Field, payload: Payload) -> None:
        if field.how == "once":
            out[field.name] = field.read(payload)
        elif field.how == "list":
            value = field.read(payload)
            there = out.setdefault(field.name, [])
            assert isinstance(there, list)
            there.extend(value if isinstance(value, _Packed) else [value])
        elif field.how == "map":
            parts = _numbers(payload)
            there = out.setdefault(field.name, {})
            assert isinstance(there, dict)
            there[_text(parts.get(1, b""))] = field.read(parts.get(2, b""))
        else:
            value = field.read(payload)
            assert isinstance(value, dict)
            out.update(value)

    def _table(self, info: TypeInfo) -> dict[int, _Field]:
        table = {field.number: self._field(name, field, info) for name, field in info.fields.items() if field.number}
        for number, name in info.inline.items():
            table[int(number)] = _Field("", "inline", self._of_type(info.types[name]))
        return table

    def _field(self, name: str, field: FieldInfo, owner: TypeInfo) -> _Field:
        if field.items is not None:
            read = self._of_shape(field.items, owner)
            return _Field(name, "list", _packable(read) if read in (_signed, _boolean, _double) else read)
        if field.map is not None:
            return _Field(name, "map", self._of_map_value(field.map, owner))
        return _Field(name, "once", self._of_shape(field, owner))

    def _of_map_value(self, shape: Shape, owner: TypeInfo) -> Callable[[Payload], Value]:
        if shape.items is None:
            return self._of_shape(shape, owner)
        # A list as a map's value is wrapped into a message of its own with one repeated field.
        read = self._of_shape(shape.items, owner)
        return lambda payload: [read(item) for number, item in fields_of(_bytes(payload)) if number == 1]

    def _of_shape(self, shape: Shape, owner: TypeInfo) -> Callable[[Payload], Value]:
        target = owner.target(shape)
        if target is not None:
            return self._of_type(target)
        if shape.format == "byte":
            return _base64
        return _SCALARS.get(shape.type, _raw_json)

    def _of_type(self, info: TypeInfo) -> Callable[[Payload], Value]:
        return lambda payload: self.decode(_bytes(payload), info)

    def _union(self, data: bytes, info: TypeInfo) -> Value:
        schema = info.types[info.name.rpartition(".")[0] + ".JSONSchemaProps"]
        many: list[Value] = []
        allowed, one = False, None
        for number, payload in fields_of(data):
            if info.form == "schema-or-bool" and number == 1:
                allowed = _boolean(payload)
            elif info.form == "schema-or-strings" and number == 2:
                many.append(_text(payload))
            elif info.form == "schema-or-array" and number == 2:
                many.append(self.decode(_bytes(payload), schema))
            else:
                one = self.decode(_bytes(payload), schema)
        if one is not None:
            return one
        return allowed if info.form == "schema-or-bool" else many


class _Packed(list[Value]):
    """Several numbers out of one payload."""


def _packable(read: Callable[[Payload], Value]) -> Callable[[Payload], Value]:
    def read_packed(payload: Payload) -> Value:
        if isinstance(payload, int):
            return read(payload)
        numbers, at = _Packed(), 0
        while at < len(payload):
            value, at = _varint(payload, at)
            numbers.append(read(value))
        return numbers

    return read_packed
