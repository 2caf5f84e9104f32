"""Why a value does not fit its type, and what in it is unknown or repeated: in Go's words, in Go's order.

Slow and careful, and only asked when a reader met a `Surprise`, an unknown field or perhaps a repeated key. Walks the
document in its own order, as Go's decoder does: a quantity or a time that cannot be read ends the walk at once; of
wrong JSON types the first is kept while the walk goes on.

Two accents, for upstream decodes in two ways:

    json      from text: `json: cannot unmarshal string into Go struct field PodSpec.spec.volumes of type []v1.Volume`
    map       from a merged map (strategic merge patch): `cannot restore slice from string`; unknown fields sorted

Source: sigs.k8s.io/json; apimachinery/pkg/runtime/converter.go, v1.36.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from skysail.apiserver.decoding.json_text import FloatText, Members
from skysail.apiserver.decoding.scalars import (
    ScalarError,
    canonical_bytes,
    canonical_micro_time,
    canonical_quantity,
    canonical_time,
)
from skysail.apiserver.go_values import json_kind, print_float
from skysail.apiserver.schema import FieldInfo, Shape, TypeInfo

MAX_FINDINGS = 100

Accent = Literal["json", "map"]
Value = object


class Unreadable(Exception):
    """The value cannot be of its type; the message is upstream's."""


@dataclass(slots=True)
class _At:
    """Where the walk is.

    Attributes:
        path: As findings name it: `spec.containers[0].name`.
        names: Field names from the root, as `json:` errors join them.
        struct: The innermost Go struct.
    """

    path: str = ""
    names: tuple[str, ...] = ()
    struct: str = ""

    def key(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name

    def member(self, name: str, struct: str) -> "_At":
        return _At(self.key(name), (*self.names, name), struct)

    def entry(self, name: str) -> "_At":
        return _At(self.key(name), self.names, self.struct)

    def item(self, index: int) -> "_At":
        return _At(f"{self.path}[{index}]", self.names, self.struct)


@dataclass(slots=True)
class Findings:
    """What a walk found.

    Attributes:
        strict: `unknown field "x"`, `duplicate field "x"`: each once, the first hundred.
    """

    strict: list[str] = field(default_factory=list)
    _seen: set[str] = field(default_factory=set)

    def add(self, message: str) -> None:
        """Note a finding once."""
        if message not in self._seen and len(self.strict) < MAX_FINDINGS:
            self._seen.add(message)
            self.strict.append(message)


def diagnose(value: Value, info: TypeInfo, accent: Accent = "json") -> Findings:
    """What is unknown or repeated in a value.

    Args:
        value: As `json_text.parse_careful` gives it, or a plain value.
        info: The type it must have.
        accent: How the message speaks.

    Raises:
        Unreadable: It cannot be of that type.
    """
    walk = _JsonWalk() if accent == "json" else _MapWalk()
    walk.of_type(value, info, _At())
    if walk.first_mismatch:
        raise Unreadable(walk.first_mismatch)
    if accent == "map":
        walk.findings.strict.sort()
    return walk.findings


def duplicates(value: Value) -> list[str]:
    """The repeated keys of a value of no type: a patch, a custom resource."""
    findings = Findings()
    _walk_untyped(value, "", findings)
    return findings.strict


def _walk_untyped(value: Value, path: str, findings: Findings) -> None:
    if isinstance(value, dict):
        for key, item in members(value, path, findings):
            _walk_untyped(item, f"{path}.{key}" if path else key, findings)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _walk_untyped(item, f"{path}[{index}]", findings)


def members(value: dict[str, object], path: str, findings: Findings) -> Iterator[tuple[str, object]]:
    """All members in their order; a repeated key is noted when it comes again."""
    if not isinstance(value, Members):
        yield from value.items()
        return
    seen: set[str] = set()
    for key, item in value.pairs:
        if key in seen:
            findings.add(f'duplicate field "{path}.{key}"' if path else f'duplicate field "{key}"')
        seen.add(key)
        yield key, item


class _JsonWalk:
    """The walk of `encoding/json`."""

    def __init__(self) -> None:
        self.findings = Findings()
        self.first_mismatch = ""

    def of_type(self, value: Value, info: TypeInfo, at: _At, go: str = "") -> None:
        if value is None:
            return
        if info.form in ("", "empty"):
            self.struct(value, info, at, go)
        elif info.form in ("quantity", "time", "microtime"):
            self.scalar(value, info.form, at)
        elif info.form == "intstr":
            if type(value) is not str:
                self.integer(value, "int32", _At())
        elif info.form.startswith("schema-or") and isinstance(value, dict | list):
            schema = info.types[info.name.rpartition(".")[0] + ".JSONSchemaProps"]
            for item in value if isinstance(value, list) else [value]:
                if isinstance(item, dict):
                    self.of_type(item, schema, _At())
        elif info.form.startswith("schema-or") and not (info.form == "schema-or-bool" and isinstance(value, bool)):
            if info.form == "schema-or-bool":
                raise Unreadable("boolean or JSON schema expected")
            raise Unreadable(f"json: cannot unmarshal {json_kind(value)} into Go value of type {info.go}")

    def of_shape(self, value: Value, shape: Shape, owner: TypeInfo, at: _At, go: str) -> None:
        target = owner.target(shape)
        if value is None:
            return
        if target is not None:
            self.of_type(value, target, at, go)
        elif shape.items is not None:
            self.items(value, shape, owner, at, go)
        elif shape.map is not None:
            self.map(value, shape, owner, at, go)
        elif shape.type == "integer":
            self.integer(value, go, at)
        elif shape.format == "byte":
            self.bytes(value, go, at)
        elif shape.type and not _fits(shape.type, value):
            self.mismatch(json_kind(value), go, at)

    def struct(self, value: Value, info: TypeInfo, at: _At, go: str) -> None:
        if not isinstance(value, dict):
            self.mismatch(json_kind(value), go or info.go, at)
            return
        short = info.go.rpartition(".")[2]
        for name, item in members(value, at.path, self.findings):
            known = info.fields.get(name)
            if known is None:
                if not info.preserve_unknown:
                    self.findings.add(f'unknown field "{at.key(name)}"')
                continue
            self.of_shape(item, known, info, at.member(name, short), _go_of(known, info))

    def items(self, value: Value, shape: Shape, owner: TypeInfo, at: _At, go: str) -> None:
        if not isinstance(value, list):
            self.mismatch(json_kind(value), go, at)
            return
        assert shape.items is not None
        for index, item in enumerate(value):
            self.of_shape(item, shape.items, owner, at.item(index), go.removeprefix("[]").lstrip("*"))

    def map(self, value: Value, shape: Shape, owner: TypeInfo, at: _At, go: str) -> None:
        if not isinstance(value, dict):
            self.mismatch(json_kind(value), go, at)
            return
        assert shape.map is not None
        below = go.partition("]")[2] if go.startswith("map[") else _default_go(shape.map, owner)
        for name, item in members(value, at.path, self.findings):
            self.of_shape(item, shape.map, owner, at.entry(name), below)

    def integer(self, value: Value, go: str, at: _At) -> None:
        if type(value) is int:
            limit = 1 << (31 if go == "int32" else 63)
            if not -limit <= value < limit:
                self.mismatch(f"number {value}", go, at)
        elif isinstance(value, float):
            self.mismatch(f"number {spelling(value)}", go, at)
        else:
            self.mismatch(json_kind(value), go, at)

    def bytes(self, value: Value, go: str, at: _At) -> None:
        if not isinstance(value, str):
            self.mismatch(json_kind(value), go, at)
            return
        try:
            canonical_bytes(value)
        except ScalarError as error:
            self.first_mismatch = self.first_mismatch or str(error)

    def scalar(self, value: Value, form: str, at: _At) -> None:
        try:
            if form == "quantity":
                canonical_quantity(spelling(value))
            elif not isinstance(value, str):
                raise Unreadable(f"json: cannot unmarshal {json_kind(value)} into Go value of type string")
            else:
                (canonical_time if form == "time" else canonical_micro_time)(value)
        except ScalarError as error:
            raise Unreadable(str(error)) from error

    def mismatch(self, kind: str, go: str, at: _At) -> None:
        where = f"struct field {at.struct}.{'.'.join(at.names)} of" if at.names else "value of"
        self.first_mismatch = self.first_mismatch or f"json: cannot unmarshal {kind} into Go {where} type {go}"


class _MapWalk(_JsonWalk):
    """The walk of the unstructured converter: ends at the first mistake."""

    def struct(self, value: Value, info: TypeInfo, at: _At, go: str) -> None:
        if not isinstance(value, dict):
            raise Unreadable(f"cannot restore struct from: {_reflect_kind(value)}")
        super().struct(value, info, at, go)

    def items(self, value: Value, shape: Shape, owner: TypeInfo, at: _At, go: str) -> None:
        if not isinstance(value, list):
            raise Unreadable(f"cannot restore slice from {_reflect_kind(value)}")
        super().items(value, shape, owner, at, go)

    def map(self, value: Value, shape: Shape, owner: TypeInfo, at: _At, go: str) -> None:
        if not isinstance(value, dict):
            raise Unreadable(f"cannot restore map from {_reflect_kind(value)}")
        super().map(value, shape, owner, at, go)

    def integer(self, value: Value, go: str, at: _At) -> None:
        if isinstance(value, float):
            # Whole floats convert; the reader that follows wants them as integers, so upstream's leniency ends here.
            raise Unreadable(f"cannot convert float64 to {go}")
        if type(value) is not int:
            raise Unreadable(f"unrecognized type: {go}")

    def bytes(self, value: Value, go: str, at: _At) -> None:
        if not isinstance(value, str):
            raise Unreadable(f"cannot restore slice from {_reflect_kind(value)}")
        try:
            canonical_bytes(value)
        except ScalarError as error:
            raise Unreadable(f"error decoding from json: {error}") from error

    def mismatch(self, kind: str, go: str, at: _At) -> None:
        wanted_string = go == "string" or go.rpartition(".")[2][:1].isupper()
        if kind == "number" and wanted_string:
            raise Unreadable(f"cannot convert int64 to {go}")
        raise Unreadable(f"unrecognized type: {'string' if wanted_string else go}")


def _fits(kind: str, value: Value) -> bool:
    if kind == "string":
        return isinstance(value, str)
    if kind == "boolean":
        return isinstance(value, bool)
    if kind == "number":
        return isinstance(value, int | float) and not isinstance(value, bool)
    return True


def _go_of(known: FieldInfo, owner: TypeInfo) -> str:
    return known.go or _default_go(known, owner)


def _default_go(shape: Shape, owner: TypeInfo) -> str:
    target = owner.target(shape)
    if target is not None:
        return target.go
    if shape.items is not None:
        return "[]" + _default_go(shape.items, owner)
    if shape.map is not None:
        return "map[string]" + _default_go(shape.map, owner)
    return {"integer": shape.format or "int64", "boolean": "bool", "number": "float64"}.get(shape.type, shape.type)


def spelling(value: Value) -> str:
    """The JSON text of a value, as a custom unmarshaler is given it; strings without their quotes."""
    if isinstance(value, str):
        return value
    if isinstance(value, FloatText):
        return value.text
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return print_float(value)
    return str(value) if isinstance(value, int) else "{}"


def _reflect_kind(value: Value) -> str:
    if isinstance(value, bool):
        return "bool"
    names = ((dict, "map"), (list, "slice"), (str, "string"), (int, "int64"), (float, "float64"))
    return next((name for kind, name in names if isinstance(value, kind)), "invalid")
