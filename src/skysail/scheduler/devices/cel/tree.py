"""A compiled CEL expression as a tree that can be read and rebuilt.

The CEL library hands out what it compiled as a serialised `cel.expr.CheckedExpr`, and takes a `cel.expr.ParsedExpr`
back. Both are protocol buffers of a few message types; this module reads and writes just these, so that nothing needs
the protobuf runtime.

Source: cel-spec proto/cel/expr/{syntax,checked}.proto.
"""

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
_PARSED: Final = b"type.googleapis.com/cel.expr.ParsedExpr"
_MASK: Final = (1 << 64) - 1

Fields = dict[int, list["int | bytes"]]


@dataclass(frozen=True, slots=True)
class Node:
    """One expression; what is not of its kind is empty.

    Attributes:
        kind: `const`, `ident`, `select`, `call`, `list`, `struct` or `comprehension`.
        id: Names it in the type map; 0 for one made by us.
        name: The identifier, the function, the selected field, or the message of a struct.
        target: What is selected from, or called as a member.
        children: Arguments, elements, keys and values in turn, or the five parts of a comprehension (range, initial
            value, condition, step, result).
        constant: The value of a constant.
        test_only: Whether a select is a `has()`.
        rest: Fields kept as they came: optional indices, variable names of a comprehension, optional entries.
    """

    kind: str
    id: int = 0
    name: str = ""
    target: "Node | None" = None
    children: "tuple[Node, ...]" = ()
    constant: "bool | int | float | str | bytes | None" = None
    test_only: bool = False
    rest: "Mapping[str, tuple[int, ...] | str]" = field(default_factory=dict)
    raw: bytes = b""


@dataclass(frozen=True, slots=True)
class CelType:
    """A static type: `dyn`, `bool`, `int`, `string`, `list`, `map` and so on, or the name of a foreign one.

    Attributes:
        name: Which.
        parameters: Of the element, or of key and value.
    """

    name: str
    parameters: "tuple[CelType, ...]" = ()


DYN: Final = CelType("dyn")
_PRIMITIVES: Final = {1: "bool", 2: "int", 3: "uint", 4: "double", 5: "string", 6: "bytes"}
_WELL_KNOWN: Final = {1: "dyn", 2: "timestamp", 3: "duration"}


@dataclass(frozen=True, slots=True)
class CheckedTree:
    """What the type checker made of an expression.

    Attributes:
        root: The expression.
        types: By node id; a node without an entry is `dyn`.
        overloads: By node id: which overloads a call may reach.
    """

    root: Node
    types: Mapping[int, CelType]
    overloads: Mapping[int, tuple[str, ...]]

    def type_of(self, node: Node) -> CelType:
        """The static type of a node."""
        return self.types.get(node.id, DYN)


def read_checked(serialized: bytes) -> CheckedTree:
    """Read a serialised `CheckedExpr` (within an `Any`)."""
    fields = _fields(_one(_fields(serialized), 2))
    types, overloads = {}, {}
    for entry in fields.get(3, ()):
        pair = _fields(entry)
        types[_number(pair, 1)] = _type(_fields(_one(pair, 2)))
    for entry in fields.get(2, ()):
        pair = _fields(entry)
        reference = _fields(_one(pair, 2))
        overloads[_number(pair, 1)] = tuple(_text(each) for each in reference.get(3, ()))
    return CheckedTree(_node(_one(fields, 4)), types, overloads)


def write_parsed(root: Node) -> bytes:
    """Write an expression as a `ParsedExpr` (within an `Any`); every node gets a new id."""
    writer = _Writer()
    parsed = _bytes_field(2, writer.node(root)) + _bytes_field(3, b"")
    return _bytes_field(1, _PARSED) + _bytes_field(2, parsed)


def _fields(data: "int | bytes") -> Fields:
    assert isinstance(data, bytes)
    found: Fields = {}
    place = 0
    while place < len(data):
        key, place = _varint(data, place)
        value: int | bytes
        kind = key & 7
        if kind == _VARINT:
            value, place = _varint(data, place)
        elif kind == _LENGTH:
            length, place = _varint(data, place)
            value, place = data[place : place + length], place + length
        else:
            width = 8 if kind == _FIXED64 else 4
            value, place = data[place : place + width], place + width
        found.setdefault(key >> 3, []).append(value)
    return found


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
        shift += 7


def _one(fields: Fields, number: int) -> bytes:
    value = fields.get(number, [b""])[-1]
    assert isinstance(value, bytes)
    return value


def _number(fields: Fields, number: int) -> int:
    value = fields.get(number, [0])[-1]
    assert isinstance(value, int)
    return value


def _text(value: "int | bytes") -> str:
    assert isinstance(value, bytes)
    return value.decode()


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def _type(fields: Fields) -> CelType:
    number, values = next(iter(fields.items()), (1, [b""]))
    value = values[-1]
    if isinstance(value, int):
        names = {2: {0: "null"}, 3: _PRIMITIVES, 4: _PRIMITIVES, 5: _WELL_KNOWN}.get(number, {})
        return CelType(names.get(value, "dyn"))
    if number in (6, 7):
        inner = _fields(value)
        return CelType(
            "list" if number == 6 else "map", tuple(_type(_fields(_one(inner, part))) for part in range(1, number - 4))
        )
    if number == 9:
        return CelType(value.decode())
    if number == 11:
        return CelType("type")
    if number == 14:
        inner = _fields(value)
        return CelType(_one(inner, 1).decode(), tuple(_type(_fields(each)) for each in inner.get(2, ())))
    return DYN


def _node(data: bytes) -> Node:
    fields = _fields(data)
    identity = _signed(_number(fields, 2))
    number = next((each for each in fields if each != 2), 0)
    body = _one(fields, number) if number else b""
    made = _READERS[number](_fields(body), body)
    return replace(made, id=identity)


def _constant(fields: Fields, body: bytes) -> Node:
    number, values = next(iter(fields.items()))
    value: bool | int | float | str | bytes | None = values[-1]
    if number == 1:
        value = None
    elif number == 2:
        value = bool(value)
    elif number == 3:
        assert isinstance(value, int)
        value = _signed(value)
    elif number == 5:
        assert isinstance(value, bytes)
        value = float(struct.unpack("<d", value)[0])
    elif number == 6:
        assert isinstance(value, bytes)
        value = value.decode()
    return Node("const", constant=value, raw=body)


def _ident(fields: Fields, body: bytes) -> Node:
    return Node("ident", name=_one(fields, 1).decode())


def _select(fields: Fields, body: bytes) -> Node:
    name = _one(fields, 2).decode()
    return Node("select", name=name, target=_node(_one(fields, 1)), test_only=bool(_number(fields, 3)))


def _call(fields: Fields, body: bytes) -> Node:
    target = _node(_one(fields, 1)) if 1 in fields else None
    arguments = tuple(_node(each) for each in fields.get(3, ()) if isinstance(each, bytes))
    return Node("call", name=_one(fields, 2).decode(), target=target, children=arguments)


def _list(fields: Fields, body: bytes) -> Node:
    optional: list[int] = []
    for each in fields.get(2, ()):
        if isinstance(each, int):
            optional.append(each)
            continue
        place = 0
        while place < len(each):
            index, place = _varint(each, place)
            optional.append(index)
    elements = tuple(_node(each) for each in fields.get(1, ()) if isinstance(each, bytes))
    return Node("list", children=elements, rest={"optional": tuple(optional)})


def _struct(fields: Fields, body: bytes) -> Node:
    children: list[Node] = []
    optional: list[int] = []
    for place, entry in enumerate(fields.get(2, ())):
        parts = _fields(entry)
        key = _node(_one(parts, 3)) if 3 in parts else Node("const", constant=_one(parts, 2).decode())
        children += [key, _node(_one(parts, 4))]
        if _number(parts, 5):
            optional.append(place)
    return Node("struct", name=_one(fields, 1).decode(), children=tuple(children), rest={"optional": tuple(optional)})


def _comprehension(fields: Fields, body: bytes) -> Node:
    parts = tuple(_node(_one(fields, number)) for number in (2, 4, 5, 6, 7))
    names = {"iter": 1, "accu": 3, "iter2": 8}
    rest = {key: _one(fields, number).decode() for key, number in names.items()}
    return Node("comprehension", children=parts, rest=rest)


_READERS: Final = {3: _constant, 4: _ident, 5: _select, 6: _call, 7: _list, 8: _struct, 9: _comprehension}


def _encode(value: int) -> bytes:
    value &= _MASK
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _bytes_field(number: int, data: bytes) -> bytes:
    return _encode(number << 3 | _LENGTH) + _encode(len(data)) + data


def _number_field(number: int, value: int) -> bytes:
    return _encode(number << 3) + _encode(value) if value else b""


class _Writer:
    """Writes nodes, numbering them."""

    def __init__(self) -> None:
        self._ids: Iterator[int] = iter(range(1, 1 << 62))

    def node(self, node: Node) -> bytes:
        identity = _number_field(2, next(self._ids))
        number, body = {
            "const": self._constant, "ident": self._ident, "select": self._select, "call": self._call,
            "list": self._list, "struct": self._struct, "comprehension": self._comprehension,
        }[node.kind](node)  # fmt: skip
        return identity + _bytes_field(number, body)

    def _constant(self, node: Node) -> tuple[int, bytes]:
        if not node.raw and isinstance(node.constant, str):
            return 3, _bytes_field(6, node.constant.encode())
        return 3, node.raw

    def _ident(self, node: Node) -> tuple[int, bytes]:
        return 4, _bytes_field(1, node.name.encode())

    def _select(self, node: Node) -> tuple[int, bytes]:
        assert node.target is not None
        body = _bytes_field(1, self.node(node.target)) + _bytes_field(2, node.name.encode())
        return 5, body + _number_field(3, int(node.test_only))

    def _call(self, node: Node) -> tuple[int, bytes]:
        body = b"" if node.target is None else _bytes_field(1, self.node(node.target))
        body += _bytes_field(2, node.name.encode())
        return 6, body + b"".join(_bytes_field(3, self.node(child)) for child in node.children)

    def _list(self, node: Node) -> tuple[int, bytes]:
        body = b"".join(_bytes_field(1, self.node(child)) for child in node.children)
        optional = node.rest.get("optional") or ()
        return 7, body + b"".join(_encode(2 << 3) + _encode(int(index)) for index in optional)

    def _struct(self, node: Node) -> tuple[int, bytes]:
        optional = node.rest.get("optional") or ()
        body = _bytes_field(1, node.name.encode()) if node.name else b""
        for place in range(len(node.children) // 2):
            key, value = node.children[2 * place : 2 * place + 2]
            entry = _number_field(1, next(self._ids))
            entry += _bytes_field(2, str(key.constant).encode()) if node.name else _bytes_field(3, self.node(key))
            entry += _bytes_field(4, self.node(value)) + _number_field(5, int(place in optional))
            body += _bytes_field(2, entry)
        return 8, body

    def _comprehension(self, node: Node) -> tuple[int, bytes]:
        body = b""
        for key, number in (("iter", 1), ("accu", 3), ("iter2", 8)):
            text = node.rest.get(key)
            body += _bytes_field(number, str(text).encode()) if text else b""
        for number, child in zip((2, 4, 5, 6, 7), node.children, strict=True):
            body += _bytes_field(number, self.node(child))
        return 9, body
