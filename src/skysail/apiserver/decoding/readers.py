"""Readers: a decoded JSON value in, the object as the server would write it out.

A reader is compiled once per type out of the table. In one pass it checks every type, turns quantities, times and bytes
into their canonical spelling, leaves out what the server leaves out (nulls, empty `omitempty` fields, unknown fields)
and fills in what it always writes (`status: {}`, `lastUpdateTime: null`). So an object always looks as if it had gone
through the real server's structs, whatever a client sent, and equal objects are equal dictionaries.

A reader never explains: anything odd is `Surprise`, and `diagnosis` then finds the words. What it does count are keys
(`Notes.keys`), so that the caller notices repeated ones, and whether it met unknown fields.

Differs: the order of fields is the client's, with the filled-in ones behind; `ordering.canonical` gives Go's where it
is shown.
"""

from collections.abc import Callable, Mapping
from typing import cast

from skysail.api.errors import BadRequest
from skysail.api.raw import Raw
from skysail.apiserver.decoding.scalars import (
    ScalarError,
    canonical_bytes,
    canonical_micro_time,
    canonical_quantity,
    canonical_time,
)
from skysail.apiserver.decoding.zeros import always_written, zero_of
from skysail.apiserver.go_values import print_float
from skysail.apiserver.schema import FieldInfo, Shape, TypeInfo, made_from

Value = object
Reader = Callable[[Value, "Notes"], Value]
_FieldReader = tuple[Reader, bool]

_INT32 = (-(1 << 31), (1 << 31) - 1)
_INT64 = (-(1 << 63), (1 << 63) - 1)


class Surprise(Exception):
    """A value that does not fit its type; ask `diagnosis` for the words."""


class Notes:
    """What a reader noticed on its way.

    Attributes:
        keys: How many members all objects together have.
        unknown: Whether any field was unknown.
        spelled: Whether the text is at hand, so that a quantity written as a number can be read from its spelling;
            else the number is taken.
    """

    __slots__ = ("keys", "spelled", "unknown")

    def __init__(self, *, spelled: bool = False) -> None:
        self.keys = 0
        self.unknown = False
        self.spelled = spelled


class _Drop:
    """Stands for a value that the server leaves out."""


DROP = _Drop()


class Readers:
    """The compiled readers of one table of types; made on first use, kept by name."""

    def __init__(self) -> None:
        self._structs: dict[str, Reader] = {}

    def of_type(self, info: TypeInfo) -> Reader:
        """The reader of a type."""
        reader = self._structs.get(info.name)
        if reader is None:
            # A type may contain itself (JSONSchemaProps): hand out a forwarder while compiling.
            self._structs[info.name] = lambda value, notes: self._structs[info.name](value, notes)
            reader = self._structs[info.name] = self._compile(info)
        return reader

    def _compile(self, info: TypeInfo) -> Reader:
        if info.form in ("", "empty"):
            return self._struct(info)
        if info.form.startswith("schema-or"):
            return self._union(info)
        return _SCALARS[info.form]

    def _of_shape(self, shape: Shape, owner: TypeInfo) -> Reader:
        target = owner.target(shape)
        if target is not None:
            return self.of_type(target)
        if shape.items is not None:
            return self._list(shape.items, owner)
        if shape.map is not None:
            return self._map(shape.map, owner)
        if shape.type == "string":
            return _read_bytes if shape.format == "byte" else _read_string
        if shape.type == "integer":
            return _read_int32 if shape.format == "int32" else _read_int64
        return {"boolean": _read_bool, "number": _read_number}.get(shape.type, _read_raw)

    def _list(self, items: Shape, owner: TypeInfo) -> Reader:
        read, zero = self._of_shape(items, owner), zero_of(items, owner)

        def read_list(value: Value, notes: Notes) -> Value:
            if not isinstance(value, list):
                raise Surprise
            return [zero() if item is None else read(item, notes) for item in value]

        return read_list

    def _map(self, values: Shape, owner: TypeInfo) -> Reader:
        read, zero = self._of_shape(values, owner), zero_of(values, owner)

        def read_map(value: Value, notes: Notes) -> Value:
            if not isinstance(value, dict):
                raise Surprise
            notes.keys += len(value)
            return {key: zero() if item is None else read(item, notes) for key, item in value.items()}

        return read_map

    def _custom(self, info: TypeInfo) -> Reader:
        """Custom objects keep what they hold, nulls too: their schema prunes and checks them elsewhere."""
        metadata = info.target(info.fields.get("metadata"))
        read_metadata = self.of_type(metadata) if metadata is not None and not metadata.custom else None

        def read_custom(value: Value, notes: Notes) -> Value:
            if not isinstance(value, dict):
                raise Surprise
            out = dict(value)
            if read_metadata is not None and "metadata" in out:
                out["metadata"] = read_metadata(out["metadata"], notes)
            return out

        return read_custom

    def _struct(self, info: TypeInfo) -> Reader:
        if info.custom:
            return self._custom(info)
        fields: dict[str, _FieldReader] = {}
        strings: dict[str, bool] = {}
        for name, field in info.fields.items():
            drops_empty = field.omit == "empty" and not field.pointer and _can_be_empty(field, info)
            # An empty list here is a request: forget who owns what. `managed_fields` takes it out.
            drops_empty = drops_empty and name != "managedFields"
            lazy = _Lazy(self, field, info, fields, name)
            fields[name] = (lazy, drops_empty)
            if field.type == "string" and field.format != "byte":
                strings[name] = not drops_empty
        always = tuple(
            (name, zero_of(field, info, nil=True)) for name, field in info.fields.items() if always_written(field, info)
        )

        def read_struct(value: Value, notes: Notes) -> Value:
            if not isinstance(value, dict):
                raise Surprise
            notes.keys += len(value)
            out: dict[str, Value] = {}
            for name, item in value.items():
                keep = strings.get(name)
                if keep is not None and type(item) is str:
                    if item or keep:
                        out[name] = item
                    continue
                if item is None:
                    notes.unknown = notes.unknown or name not in fields
                    continue
                found = fields.get(name)
                if found is None:
                    notes.unknown = True
                    continue
                read, drops_empty = found
                item = read(item, notes)
                if item or not drops_empty:
                    out[name] = item
            for name, zero in always:
                if name not in out:
                    out[name] = zero()
            return out

        return read_struct

    def _union(self, info: TypeInfo) -> Reader:
        schema = self.of_type(info.types[info.name.rpartition(".")[0] + ".JSONSchemaProps"])
        form = info.form

        def read_union(value: Value, notes: Notes) -> Value:
            if isinstance(value, dict):
                return schema(value, notes)
            if form == "schema-or-bool" and isinstance(value, bool):
                return value
            if isinstance(value, list):
                if form == "schema-or-array":
                    return [schema(item, notes) for item in value]
                if form == "schema-or-strings" and all(isinstance(item, str) for item in value):
                    return value
            raise Surprise

        return read_union


class _Lazy:
    """A field's reader, compiled when the field is first met: a Pod does not pay for its 30 volume sources."""

    __slots__ = ("field", "name", "owner", "readers", "siblings")

    def __init__(
        self, readers: Readers, field: FieldInfo, owner: TypeInfo, siblings: dict[str, "_FieldReader"], name: str
    ) -> None:
        self.readers, self.field, self.owner, self.siblings, self.name = readers, field, owner, siblings, name

    def __call__(self, value: Value, notes: Notes) -> Value:
        _, drops_empty = self.siblings[self.name]
        read = self.readers._of_shape(self.field, self.owner)
        self.siblings[self.name] = (read, drops_empty)
        return read(value, notes)


def _can_be_empty(field: FieldInfo, owner: TypeInfo) -> bool:
    """Whether Go's `omitempty` ever leaves the field out: it knows no empty structs."""
    target = owner.target(field)
    return target is None


def _read_string(value: Value, _: Notes) -> Value:
    if type(value) is not str:
        raise Surprise
    return value


def _read_bytes(value: Value, _: Notes) -> Value:
    if not isinstance(value, str):
        raise Surprise
    try:
        return canonical_bytes(value)
    except ScalarError:
        raise Surprise from None


def _read_int32(value: Value, _: Notes) -> Value:
    if type(value) is not int or not _INT32[0] <= value <= _INT32[1]:
        raise Surprise
    return value


def _read_int64(value: Value, _: Notes) -> Value:
    if type(value) is not int or not _INT64[0] <= value <= _INT64[1]:
        raise Surprise
    return value


def _read_bool(value: Value, _: Notes) -> Value:
    if not isinstance(value, bool):
        raise Surprise
    return value


def _read_number(value: Value, _: Notes) -> Value:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Surprise
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 1e21 else value


def _read_raw(value: Value, notes: Notes) -> Value:
    stack = [value]
    while stack:
        here = stack.pop()
        if isinstance(here, dict):
            notes.keys += len(here)
            stack.extend(here.values())
        elif isinstance(here, list):
            stack.extend(here)
    return value


def _read_quantity(value: Value, notes: Notes) -> Value:
    if type(value) is int:
        value = str(value)
    elif isinstance(value, float) and not notes.spelled:
        value = print_float(value)
    if type(value) is not str:
        raise Surprise
    try:
        return canonical_quantity(value)
    except ScalarError:
        raise Surprise from None


def _read_time(value: Value, _: Notes) -> Value:
    if type(value) is not str:
        raise Surprise
    try:
        return canonical_time(value)
    except ScalarError:
        raise Surprise from None


def _read_micro_time(value: Value, _: Notes) -> Value:
    if type(value) is not str:
        raise Surprise
    try:
        return canonical_micro_time(value)
    except ScalarError:
        raise Surprise from None


def _read_int_or_string(value: Value, notes: Notes) -> Value:
    return value if type(value) is str else _read_int32(value, notes)


_SCALARS: Mapping[str, Reader] = {
    "quantity": _read_quantity,
    "time": _read_time,
    "microtime": _read_micro_time,
    "intstr": _read_int_or_string,
    "raw": _read_raw,
}


def reader_of(info: TypeInfo) -> Reader:
    """The compiled reader of a type, shared by all who use the same table."""
    return made_from(info, "readers", Readers).of_type(info)


def normalize(obj: Raw, info: TypeInfo) -> Raw:
    """A trusted object in normal form: what the server would give back after storing it.

    Args:
        obj: Not altered; the result may share parts with it.
        info: Its type.

    Raises:
        BadRequest: It does not fit its type after all.
    """
    try:
        return cast("Raw", reader_of(info)(obj, Notes()))
    except Surprise:
        raise BadRequest(f"the object does not fit the type {info.go}") from None
