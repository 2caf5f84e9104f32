"""Exact quantities: `500m` of CPU, `1.5Gi` of memory, `12e6` of anything.

A quantity is a whole number of nano-units, the smallest step the grammar can express, together with the family of
suffix it was written in. No float is ever involved. Printing gives the canonical form: no precision lost, no
fraction, the largest suffix that fits.

>>> str(Quantity.parse("1.5Gi")), Quantity.parse("1.5Gi").value()
('1536Mi', 1610612736)
>>> str(Quantity.parse("250m") + Quantity.parse("0.75"))
'1'

Source: k8s.io/apimachinery/pkg/api/resource, v1.36.
Differs: integers do not overflow. Where the original wraps round at 2^63, `value` and `milli_value` stop at the
    bounds of int64, and a decimal exponent beyond 1,000 in magnitude is refused instead of being computed for minutes.
"""

import re
from enum import Enum
from functools import lru_cache, total_ordering
from typing import Final

_PATTERN: Final = re.compile(r"([+-]?)0*([0-9]*)(\.[0-9]*)?((?:[eEinumkKMGTP]*)(?:[-+]?)(?:[0-9]*))")
_MAX_INT64: Final = (1 << 63) - 1
_NANO_DIGITS: Final = 9
_NANO: Final = 10**_NANO_DIGITS
_MAX_EXPONENT: Final = 1_000

_DECIMAL_SUFFIXES: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_SUFFIXES: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_BY_EXPONENT: Final = {exponent: suffix for suffix, exponent in _DECIMAL_SUFFIXES.items()}
_BINARY_BY_EXPONENT: Final = {0: ""} | {exponent: suffix for suffix, exponent in _BINARY_SUFFIXES.items()}

_WRONG_FORMAT: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"  # upstream's words
)
_WRONG_NUMBER: Final = "unable to parse numeric part of quantity"
_WRONG_SUFFIX: Final = "unable to parse quantity's suffix"


class Format(Enum):
    """The family of suffixes a quantity was written with, and is printed with."""

    DECIMAL_SI = "DecimalSI"
    BINARY_SI = "BinarySI"
    DECIMAL_EXPONENT = "DecimalExponent"


@total_ordering
class Quantity:
    """An immutable amount, exact to the nano-unit.

    Equality, order and hash follow the amount alone: `1Gi == 1024Mi`.

    Args:
        nano: The amount in billionths of the unit.
        format: How it is printed.
    """

    __slots__ = ("_decimal", "_text", "format", "nano")

    def __init__(self, nano: int, format: Format = Format.DECIMAL_SI) -> None:
        self.nano: Final = nano
        self.format: Final = format
        self._text = ""
        self._decimal = False  # kept by the original as an arbitrary-precision decimal, which rounds in its own way

    @classmethod
    def parse(cls, text: str) -> "Quantity":
        """Read a quantity as the API server does.

        Raises:
            ValueError: Not a quantity; the message is upstream's.
        """
        return parse_quantity(text)

    @classmethod
    def of(cls, amount: int, format: Format = Format.DECIMAL_SI) -> "Quantity":
        """The quantity of `amount` whole units."""
        return cls(amount * _NANO, format)

    @classmethod
    def of_milli(cls, milli: int) -> "Quantity":
        """The quantity of `milli` thousandths."""
        return cls(milli * 1_000_000)

    def value(self) -> int:
        """Whole units, rounded up (a negative fraction away from zero), within int64."""
        return self._rounded(_NANO)

    def milli_value(self) -> int:
        """Thousandths, rounded up (a negative fraction away from zero), within int64."""
        return self._rounded(1_000_000)

    def _rounded(self, unit: int) -> int:
        whole, rest = divmod(abs(self.nano), unit)
        if self.nano >= 0:
            return min(whole + (rest > 0), _MAX_INT64)
        if rest:
            whole += -1 if self._decimal else 1  # the original's two representations disagree below zero
        return max(-whole, -_MAX_INT64 - 1)

    @property
    def sign(self) -> int:
        """-1, 0 or 1."""
        return (self.nano > 0) - (self.nano < 0)

    def __str__(self) -> str:
        if not self._text:
            self._text = _canonical(self.nano, self.format)
        return self._text

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"

    def __bool__(self) -> bool:
        return self.nano != 0

    def __eq__(self, other: object) -> bool:
        return self.nano == other.nano if isinstance(other, Quantity) else NotImplemented

    def __lt__(self, other: "Quantity") -> bool:
        return self.nano < other.nano

    def __hash__(self) -> int:
        return hash(self.nano)

    def __add__(self, other: "Quantity") -> "Quantity":
        return self._combine(self.nano + other.nano, other)

    def __sub__(self, other: "Quantity") -> "Quantity":
        return self._combine(self.nano - other.nano, other)

    def __neg__(self) -> "Quantity":
        result = Quantity(-self.nano, self.format)
        result._decimal = self._decimal
        return result

    def _combine(self, nano: int, other: "Quantity") -> "Quantity":
        """The result of arithmetic: zero takes on the other's format."""
        result = Quantity(nano, self.format if self.nano else other.format)
        result._decimal = self._decimal or other._decimal
        return result


@lru_cache(maxsize=16_384)
def parse_quantity(text: str) -> Quantity:
    """`Quantity.parse`, remembered: the same few texts recur in every pod.

    Raises:
        ValueError: Not a quantity; the message is upstream's.
    """
    match = _PATTERN.fullmatch(text)
    if not text or match is None:
        raise ValueError(_WRONG_FORMAT)
    sign, whole, point, suffix = match.groups(default="")
    fraction = point[1:]
    exponent, format = _read_suffix(suffix)
    small = _read_small(sign, whole or "0", fraction, exponent, format, text)
    if small is not None:
        return small
    if not any(char.isdigit() for char in text[: match.start(4)]):
        raise ValueError(_WRONG_NUMBER)
    return _read_large(sign, whole or "0", fraction, exponent, format)


def _read_suffix(suffix: str) -> tuple[int, Format]:
    if suffix in _DECIMAL_SUFFIXES:
        return _DECIMAL_SUFFIXES[suffix], Format.DECIMAL_SI
    if suffix in _BINARY_SUFFIXES:
        return _BINARY_SUFFIXES[suffix], Format.BINARY_SI
    if suffix[0] in "eE" and re.fullmatch("[-+]?[0-9]+", suffix[1:]) and abs(int(suffix[1:])) <= _MAX_EXPONENT:
        return int(suffix[1:]), Format.DECIMAL_EXPONENT
    raise ValueError(_WRONG_SUFFIX)


def _read_small(sign: str, whole: str, fraction: str, exponent: int, format: Format, text: str) -> Quantity | None:
    """The common case, which the original keeps in an int64 and whose spelling it keeps when nearly canonical."""
    digits = whole + fraction
    scale = exponent - len(fraction)
    factor = 1
    room = 18 - len(digits)
    if format is Format.BINARY_SI:
        scale, factor = 0, 1 << exponent
        room = -1 if fraction else 15 - len(whole) - exponent * 3 // 10 - 1
    amount = int(digits)
    if room < 0 or scale < -_NANO_DIGITS or amount * factor > _MAX_INT64:
        return None
    result = Quantity((-1 if sign == "-" else 1) * amount * factor * 10 ** (scale + _NANO_DIGITS), format)
    if format is Format.BINARY_SI:
        keeps_spelling = amount & 7 != 0
    else:
        keeps_spelling = scale % 3 == 0 and not digits.endswith("000") and digits[0] != "0"
    if keeps_spelling:
        result._text = text
    return result


def _read_large(sign: str, whole: str, fraction: str, exponent: int, format: Format) -> Quantity:
    """Long numbers and fractions of binary units: rounded up to the nano-unit, binary ones capped at 2^63-1."""
    amount = int(whole + fraction)
    if format is Format.BINARY_SI:
        amount <<= exponent
        shift = _NANO_DIGITS - len(fraction)
    else:
        shift = _NANO_DIGITS - len(fraction) + exponent
    nano = amount * 10**shift if shift >= 0 else -(-amount // 10**-shift)
    if format is Format.BINARY_SI:
        nano = min(nano, _MAX_INT64 * _NANO)
        if 0 < nano < _NANO:
            format = Format.DECIMAL_SI
    result = Quantity(-nano if sign == "-" else nano, format)
    result._decimal = True
    return result


def _canonical(nano: int, format: Format) -> str:
    if nano == 0:
        return "0"
    if format is Format.BINARY_SI and abs(nano) >= 1024 * _NANO and nano % _NANO == 0:
        number, exponent = nano // _NANO, 0
        while number % 1024 == 0 and exponent < 60:
            number, exponent = number // 1024, exponent + 10
        return f"{number}{_BINARY_BY_EXPONENT[exponent]}"
    number, exponent = nano, -_NANO_DIGITS
    largest = _MAX_EXPONENT * 2 if format is Format.DECIMAL_EXPONENT else 18
    while number % 1000 == 0 and exponent < largest:
        number, exponent = number // 1000, exponent + 3
    if format is Format.DECIMAL_EXPONENT:
        return f"{number}e{exponent}" if exponent else f"{number}"
    return f"{number}{_DECIMAL_BY_EXPONENT[exponent]}"
