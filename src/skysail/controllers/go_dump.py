"""A pod template written as Go's spew writes the typed value, which is what upstream hashes.

The names of replica sets, and of the revisions of daemon sets, end in a hash of that text, so it must be the same to
the letter: every field of every type in the order of its declaration, present or not, each with its type; pointers
as what they point to. The types come from a table made by reflection from k8s.io/api.

>>> dump("v1.Toleration", {"key": "a", "tolerationSeconds": 3})[:38]
'(v1.Toleration){Key:(string)a Operator'

Source: pkg/util/hash `DeepHashObject`, apimachinery/pkg/util/dump `ForHash`, v1.36: spew's `%#v` with sorted keys,
without methods, pointer addresses and capacities.
"""

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import cast

import msgspec

from skysail.api.raw import Raw

_POINTER, _SLICE, _MAP = "*", "[]", "map["
_FIXED: Mapping[str, str] = {
    "v1.Time": "{Time:(time.Time){wall:(uint64)0 ext:(int64)0 loc:(*time.Location)<nil>}}",
}
"""No template that the server keeps has a time in it."""
_DECIMAL_EXPONENTS = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_EXPONENTS = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_QUANTITY_TEXT = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]+)?")
_NANO, _WORD = -9, (1 << 64) - 1
_LARGEST_EXPONENT = 1_000
"""Servers refuse larger ones."""
_QUANTITY, _INT_OR_STRING = "resource.Quantity", "intstr.IntOrString"


@cache
def _types() -> Mapping[str, str | list[str]]:
    """What a type's name stands for: another type, or `Field json type` for each field; `-` where it is inlined."""
    text = files("skysail.controllers").joinpath("data/pod-template-types-1.36.json").read_bytes()
    return cast("Mapping[str, str | list[str]]", msgspec.json.decode(text))


def dump(type_name: str, value: object) -> str:
    """A value as spew writes it.

    Args:
        type_name: Its type in Go, e.g. `v1.PodTemplateSpec`.
        value: As in JSON, quantities in their canonical form; None where it is absent.
    """
    return f"({type_name}){_body(type_name, value)}"


def _body(type_name: str, value: object) -> str:
    """The value without its type, as elements of lists and maps are written."""
    if type_name.startswith(_POINTER):
        return "<nil>" if value is None else _body(type_name[1:], value)
    if type_name.startswith(_SLICE):
        items = cast("list[object]", value)
        return f"[{' '.join(_body(type_name[2:], item) for item in items)}]" if items else "<nil>"
    if type_name.startswith(_MAP):
        entries, element = cast(Raw, value), type_name.partition("]")[2]
        written = (f"{key}:{_body(element, entries[key])}" for key in sorted(entries or ()))
        return f"map[{' '.join(written)}]" if entries else "<nil>"
    if type_name in _FIXED:
        return _FIXED[type_name]
    if type_name == _QUANTITY:
        return _quantity(str(value))
    if type_name == _INT_OR_STRING:
        return _int_or_string(value)
    return _named(type_name, value)


def _named(type_name: str, value: object) -> str:
    meaning = _types().get(type_name, type_name)
    if isinstance(meaning, list):
        return _struct(meaning, cast(Raw, value or {}))
    if meaning != type_name:
        return _body(meaning, value)
    if type_name == "bool":
        return "true" if value else "false"
    return str(value or "") if type_name == "string" else str(value or 0)


def _struct(fields: list[str], value: Raw) -> str:
    written = []
    for field in fields:
        name, key, type_name = field.split(" ", 2)
        written.append(f"{name}:{dump(type_name, value if key == '-' else value.get(key))}")
    return f"{{{' '.join(written)}}}"


def _int_or_string(value: object) -> str:
    text = value if isinstance(value, str) else ""
    number = 0 if isinstance(value, str) else int(cast("int | None", value) or 0)
    return f"{{Type:(intstr.Type){int(isinstance(value, str))} IntVal:(int32){number} StrVal:(string){text}}}"


def _quantity(text: str) -> str:
    """A quantity as Go parses it: a number and a power of ten, or a whole number that had a binary suffix.

    Go keeps the spelling where it is near enough to the canonical one; and what may not fit into 64 bits, by a rough
    count of digits, is a decimal of any length.
    """
    found = _QUANTITY_TEXT.fullmatch(text)
    if found is None or text == "0":
        return _in_64_bits(0, 0, "0", "DecimalSI")
    sign, whole, fraction, suffix = found.groups(default="")
    whole = whole.lstrip("0") or "0"
    digits = whole + fraction
    if suffix in _BINARY_EXPONENTS:
        power, form, factor = 0, "BinarySI", 1 << _BINARY_EXPONENTS[suffix]
        room = -1 if fraction else 14 - len(whole) - _BINARY_EXPONENTS[suffix] * 3 // 10
        keeps = int(digits) & 7 != 0
    else:
        by_letter = suffix in _DECIMAL_EXPONENTS
        power, factor = _DECIMAL_EXPONENTS[suffix] if by_letter else int(suffix[1:]), 1
        form = "DecimalSI" if by_letter else "DecimalExponent"
        room = 18 - len(digits)
        keeps = (power - len(fraction)) % 3 == 0 and not digits.endswith("000") and not digits.startswith("0")
    scale, value = power - len(fraction), int(digits) * (-factor if sign == "-" else factor)
    if (room >= 0 and scale >= _NANO) or abs(power) > _LARGEST_EXPONENT:
        return _in_64_bits(value, scale, text if keeps else "", form)
    return _decimal(value, scale, form)


def _in_64_bits(value: int, scale: int, text: str, form: str) -> str:
    number = f"i:(resource.int64Amount){{value:(int64){value} scale:(resource.Scale){scale}}}"
    no_decimal = "d:(resource.infDecAmount){Dec:(*inf.Dec)<nil>}"
    return f"{{{number} {no_decimal} s:(string){text} Format:(resource.Format){form}}}"


def _decimal(value: int, scale: int, form: str) -> str:
    """A quantity that Go holds as a decimal: in nano-units, written as words of 64 bits, the lowest first."""
    shift = scale - _NANO
    nano = abs(value) * 10**shift if shift >= 0 else -(-abs(value) // 10**-shift)
    words = " ".join(str(nano >> bits & _WORD) for bits in range(0, nano.bit_length(), 64))
    unscaled = f"unscaled:(big.Int){{neg:(bool){'true' if value < 0 else 'false'} abs:(big.nat)[{words}]}}"
    no_number = "i:(resource.int64Amount){value:(int64)0 scale:(resource.Scale)0}"
    decimal = f"d:(resource.infDecAmount){{Dec:(*inf.Dec){{{unscaled} scale:(inf.Scale){-_NANO}}}}}"
    return f"{{{no_number} {decimal} s:(string) Format:(resource.Format){form}}}"
