"""JSON text to values: fast when nothing is odd, careful when a message must say what is.

`parse` is msgspec. `parse_careful` keeps what it loses: which keys came twice (`Members.pairs`) and how a number was
written (`FloatText.text`). `syntax_error` says of text that is no JSON what Go's decoder says.

Differs: values nested deeper than `MAX_DEPTH` are refused (upstream's limit is 10,000): no API object needs more, and
everything behind recurses.
"""

import json
import math
import re

import msgspec

MAX_DEPTH = 150

_decode = msgspec.json.Decoder().decode
_LONG_NUMBER = re.compile(rb"[0-9]{19}")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*"?|[\[\]{}]', re.S)


class JsonSyntaxError(ValueError):
    """Text that is no JSON; the message is Go's."""


class Members(dict[str, object]):
    """An object some of whose keys came twice.

    Attributes:
        pairs: All members as they stood, the repeated ones included.
    """

    __slots__ = ("pairs",)
    pairs: list[tuple[str, object]]


class FloatText(float):
    """A number with a fraction or an exponent, and its spelling."""

    __slots__ = ("text",)
    text: str


def parse(text: bytes) -> object:
    """The value of a JSON text.

    Raises:
        JsonSyntaxError: It is none; in Go's words.
    """
    if _LONG_NUMBER.search(text):
        return plain(parse_careful(text))
    try:
        value = _decode(text)
    except (msgspec.DecodeError, RecursionError):
        return plain(parse_careful(text))
    if text.count(b"{") + text.count(b"[") > MAX_DEPTH:
        check_depth(text)
    return value


def parse_careful(text: bytes) -> object:
    """The value with repeated keys and spellings of numbers kept; bad UTF-8 becomes U+FFFD, as in Go.

    Raises:
        JsonSyntaxError: It is no JSON.
    """
    check_depth(text)
    try:
        return _DECODER.decode(text.decode("utf-8", "replace"))
    except ValueError as failure:
        raise JsonSyntaxError(syntax_error(text) or str(failure)) from None


def _members(pairs: list[tuple[str, object]]) -> dict[str, object]:
    pairs = [(_sound(key), _sound(value) if isinstance(value, str) else value) for key, value in pairs]
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    members = Members(found)
    members.pairs = pairs
    return members


def _sound(text: str) -> str:
    return _LONE_SURROGATE.sub("\ufffd", text) if _LONE_SURROGATE.search(text) else text


def _float(text: str) -> FloatText:
    value = FloatText(text)
    if math.isinf(value):
        raise JsonSyntaxError(f"json: cannot unmarshal number {text} into Go value of type float64")
    value.text = text
    return value


def _constant(text: str) -> float:
    raise JsonSyntaxError(f"invalid character {text[0]!r} looking for beginning of value")


def _integer(text: str) -> int | FloatText:
    """An int64; what is beyond is a float, as in Go."""
    if len(text) < 19 or (len(text) < 21 and _LOWEST <= int(text) <= _HIGHEST):
        return int(text)
    return _float(text)


_LOWEST, _HIGHEST = -(1 << 63), (1 << 63) - 1
_DECODER = json.JSONDecoder(
    object_pairs_hook=_members, parse_float=_float, parse_int=_integer, parse_constant=_constant, strict=True
)


def plain(value: object) -> object:
    """A carefully parsed value without its extra knowledge."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, str):
        return _sound(value)
    return float(value) if isinstance(value, FloatText) else value


def depth_of(value: object) -> int:
    """How deep a value nests; counts no further than one beyond `MAX_DEPTH`."""
    level, here = 0, [value]
    while level <= MAX_DEPTH:
        here = [
            item
            for outer in here
            if isinstance(outer, dict | list)
            for item in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not here:
            return level
        level += 1
    return level


def check_depth(text: bytes) -> None:
    """Refuse text that nests too deep.

    Raises:
        JsonSyntaxError: It does.
    """
    depth = 0
    for match in _BRACKETS.finditer(text):
        token = match[0]
        if token in (b"{", b"["):
            depth += 1
            if depth > MAX_DEPTH:
                raise JsonSyntaxError("exceeded max depth")
        elif token in (b"}", b"]"):
            depth -= 1


_SPACE = re.compile(rb"[ \t\r\n]*")
_STRING_RUN = re.compile(rb'[^"\\\x00-\x1f]*')
_ESCAPES = b'"\\/bfnrt'
_HEX = b"0123456789abcdefABCDEF"
END = "unexpected end of JSON input"


def syntax_error(text: bytes) -> str:
    """What Go's `encoding/json` says of a text, or "" when it is valid."""
    try:
        at = _Scanner(text).value(0)
        at = _Scanner(text).space(at)
        if at < len(text):
            return f"{_character(text, at)} after top-level value"
    except JsonSyntaxError as error:
        return str(error)
    return ""


def _character(text: bytes, at: int) -> str:
    code = text[at]
    named = {0x27: "'\\''", 0x22: "'\"'", 0x5C: "'\\\\'", 10: "'\\n'", 13: "'\\r'", 9: "'\\t'", 8: "'\\b'", 12: "'\\f'"}
    if code in named:
        shown = named[code]
    elif 0x20 <= code < 0x7F:
        shown = f"'{chr(code)}'"
    elif code < 0x20 or code == 0x7F:
        shown = f"'\\x{code:02x}'"
    else:
        shown = f"'{chr(code)}'" if chr(code).isprintable() else f"'\\u{code:04x}'"
    return f"invalid character {shown}"


class _Scanner:
    """Finds the first byte that cannot stand where it stands. Positions in, positions out."""

    def __init__(self, text: bytes) -> None:
        self.text = text

    def space(self, at: int) -> int:
        match = _SPACE.match(self.text, at)
        return match.end() if match else at

    def fail(self, at: int, where: str) -> JsonSyntaxError:
        return JsonSyntaxError(END if at >= len(self.text) else f"{_character(self.text, at)} {where}")

    def value(self, at: int) -> int:
        at = self.space(at)
        head = self.text[at : at + 1]
        if head == b"{":
            return self.object(at + 1)
        if head == b"[":
            return self.array(at + 1)
        if head == b'"':
            return self.string(at + 1)
        if head in (b"t", b"f", b"n"):
            return self.literal(at, {b"t": b"true", b"f": b"false", b"n": b"null"}[head])
        if head and head in b"-0123456789":
            return self.number(at)
        raise self.fail(at, "looking for beginning of value")

    def object(self, at: int) -> int:
        at = self.space(at)
        if self.text[at : at + 1] == b"}":
            return at + 1
        while True:
            at = self.space(at)
            if self.text[at : at + 1] != b'"':
                raise self.fail(at, "looking for beginning of object key string")
            at = self.space(self.string(at + 1))
            if self.text[at : at + 1] != b":":
                raise self.fail(at, "after object key")
            at = self.space(self.value(at + 1))
            if self.text[at : at + 1] == b"}":
                return at + 1
            if self.text[at : at + 1] != b",":
                raise self.fail(at, "after object key:value pair")
            at += 1

    def array(self, at: int) -> int:
        at = self.space(at)
        if self.text[at : at + 1] == b"]":
            return at + 1
        while True:
            at = self.space(self.value(at))
            if self.text[at : at + 1] == b"]":
                return at + 1
            if self.text[at : at + 1] != b",":
                raise self.fail(at, "after array element")
            at += 1

    def string(self, at: int) -> int:
        while True:
            match = _STRING_RUN.match(self.text, at)
            at = match.end() if match else at
            head = self.text[at : at + 1]
            if head == b'"':
                return at + 1
            if head != b"\\":
                raise self.fail(at, "in string literal")
            escape = self.text[at + 1 : at + 2]
            if escape == b"u":
                for digit in range(at + 2, at + 6):
                    if digit >= len(self.text) or self.text[digit] not in _HEX:
                        raise self.fail(digit, "in \\u hexadecimal character escape")
                at += 6
            elif escape and escape in _ESCAPES:
                at += 2
            else:
                raise self.fail(at + 1, "in string escape code")

    def literal(self, at: int, word: bytes) -> int:
        for offset, expected in enumerate(word):
            if at + offset >= len(self.text) or self.text[at + offset] != expected:
                raise self.fail(at + offset, f"in literal {word.decode()} (expecting '{chr(expected)}')")
        return at + len(word)

    def number(self, at: int) -> int:
        if self.text[at : at + 1] == b"-":
            at += 1
        if self.text[at : at + 1] == b"0":
            at += 1
        else:
            at = self.digits(at, "in numeric literal")
        if self.text[at : at + 1] == b".":
            at = self.digits(at + 1, "after decimal point in numeric literal")
        if self.text[at : at + 1] in (b"e", b"E"):
            at += 1
            if self.text[at : at + 1] in (b"+", b"-"):
                at += 1
            at = self.digits(at, "in exponent of numeric literal")
        return at

    def digits(self, at: int, where: str) -> int:
        start = at
        while at < len(self.text) and 0x30 <= self.text[at] <= 0x39:
            at += 1
        if at == start:
            raise self.fail(at, where)
        return at
