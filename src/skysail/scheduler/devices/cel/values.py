"""Kubernetes' values inside CEL: quantities, semantic versions, addresses, URLs and formats.

The CEL library knows no foreign values, so they travel as bytes: a tag and what the value is made of. The type checker
knows better (it sees `kubernetes.Quantity`), so nobody can tell, but for `type()`.
"""

import re
from dataclasses import dataclass
from functools import total_ordering
from typing import Final

from skysail.api.errors import SkysailError
from skysail.api.quantity import parse_quantity

NO_OVERLOAD: Final = "no such overload"
_TAG: Final = b"\x01k8s:"  # no NUL: the library cuts bytes there
_SEPARATOR: Final = "\x02"
_NANO: Final = 10**9
_MAX_INT64: Final = (1 << 63) - 1
_SCALES: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_ANY_SCALE: Final = re.compile(r"[+-]?[0-9]*(?:\.([0-9]*))?(.*)")


class CelError(SkysailError):
    """An expression that does not compile, or failed."""


def carried(kind: str, *parts: str) -> bytes:
    """A value as bytes."""
    return _TAG + _SEPARATOR.join((kind, *parts)).encode()


def kind_of_value(value: object) -> str:
    """What kind of value these bytes carry; empty for anything else."""
    if not isinstance(value, bytes | bytearray) or not value.startswith(_TAG):
        return ""
    return value[len(_TAG) :].decode().partition(_SEPARATOR)[0]


def parts_of(value: object, kind: str) -> list[str]:
    """What a value of this kind is made of.

    Raises:
        ValueError: It is another one.
    """
    if kind_of_value(value) != kind:
        raise ValueError(NO_OVERLOAD)
    assert isinstance(value, bytes | bytearray)
    return value[len(_TAG) :].decode().split(_SEPARATOR)[1:]


@dataclass(frozen=True, slots=True)
class CelQuantity:
    """A quantity as the original computes with it.

    Attributes:
        nano: Billionths.
        scale: The power of ten of the smallest digit while it fits 64 bits; None when kept as a decimal, which is never
            taken for an integer.
    """

    nano: int
    scale: int | None

    @classmethod
    def parse(cls, text: str) -> "CelQuantity":
        """Read text.

        Raises:
            ValueError: Not a quantity.
        """
        quantity = parse_quantity(text)
        if quantity._decimal:  # the original's form decides what counts as an integer
            return cls(quantity.nano, None)
        match = _ANY_SCALE.fullmatch(text)
        assert match is not None
        fraction, suffix = match[1] or "", match[2]
        exponent = (
            int(suffix[1:]) if len(suffix) > 1 and suffix[0] in "eE" and suffix != "Ei" else _SCALES.get(suffix, 0)
        )
        return cls(quantity.nano, exponent - len(fraction))

    @classmethod
    def of(cls, value: object) -> "CelQuantity":
        """What the bytes carry.

        Raises:
            ValueError: No quantity.
        """
        nano, scale = parts_of(value, "quantity")
        return cls(int(nano), int(scale) if scale else None)

    def carry(self) -> bytes:
        """As bytes."""
        return carried("quantity", str(self.nano), "" if self.scale is None else str(self.scale))

    def plus(self, nano: int, scale: int | None) -> "CelQuantity":
        """The sum; it is as fine as the finer of both."""
        total = self.nano + nano
        if scale is None or self.scale is None:
            return CelQuantity(total, None)
        if not nano or not self.nano:
            return CelQuantity(total, scale if nano else self.scale)
        return CelQuantity(total, min(scale, self.scale))

    @property
    def integer(self) -> int | None:
        """Whole units, if the original can say."""
        if self.scale is None or self.scale < 0 or abs(self.nano) > _MAX_INT64 * _NANO:
            return None
        return self.nano // _NANO


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Semver:
    """A semantic version; build metadata counts for nothing."""

    major: int
    minor: int
    patch: int
    prerelease: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str, normalize: bool = False) -> "Semver":
        """Read text, strictly, or after upstream's normalisation (`v1.2` is `1.2.0`).

        Raises:
            ValueError: Not a version; the message is upstream's.
        """
        if normalize:
            text = _normalized(text)
        if not text:
            raise ValueError("Version string empty")
        parts = text.split(".", 2)
        if len(parts) != 3:
            raise ValueError("No Major.Minor.Patch elements found")
        patch, _, build = parts[2].partition("+")
        has_build = "+" in parts[2]
        patch, dash, prerelease = patch.partition("-")
        numbers = [_part(text, name) for text, name in ((parts[0], "major"), (parts[1], "minor"), (patch, "patch"))]
        identifiers = tuple(_identifier(each) for each in prerelease.split(".")) if dash else ()
        for each in build.split(".") if has_build else ():
            if not each:
                raise ValueError("Build meta data is empty")
            if not _ALPHANUMERIC.fullmatch(each):
                raise ValueError(f'Invalid character(s) found in build meta data "{each}"')
        return cls(numbers[0], numbers[1], numbers[2], identifiers)

    @classmethod
    def of(cls, value: object) -> "Semver":
        """What the bytes carry.

        Raises:
            ValueError: No version.
        """
        return cls.parse(parts_of(value, "semver")[0])

    def carry(self) -> bytes:
        """As bytes."""
        rest = f"-{'.'.join(self.prerelease)}" if self.prerelease else ""
        return carried("semver", f"{self.major}.{self.minor}.{self.patch}{rest}")

    def _key(self) -> tuple[object, ...]:
        identifiers = tuple((0, int(each), "") if each.isdigit() else (1, 0, each) for each in self.prerelease)
        return self.major, self.minor, self.patch, not self.prerelease, identifiers

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Semver) and self._key() == other._key()

    def __lt__(self, other: "Semver") -> bool:
        return self._key() < other._key()

    def __hash__(self) -> int:
        return hash(self._key())


_ALPHANUMERIC: Final = re.compile("[0-9A-Za-z-]+")
_DIGITS: Final = re.compile("[0-9]*")


def _part(text: str, name: str) -> int:
    if not _DIGITS.fullmatch(text):
        raise ValueError(f'Invalid character(s) found in {name} number "{text}"')
    if len(text) > 1 and text[0] == "0":
        raise ValueError(f'{name.capitalize()} number must not contain leading zeroes "{text}"')
    if not text:
        raise ValueError('strconv.ParseUint: parsing "": invalid syntax')
    return int(text)


def _identifier(text: str) -> str:
    if not text:
        raise ValueError("Prerelease is empty")
    if text.isdigit():
        if len(text) > 1 and text[0] == "0":
            raise ValueError(f'Numeric PreRelease version must not contain leading zeroes "{text}"')
    elif not _ALPHANUMERIC.fullmatch(text):
        raise ValueError(f'Invalid character(s) found in prerelease "{text}"')
    return text


def _normalized(text: str) -> str:
    parts = text.removeprefix("v").split(".", 2)
    for place, part in enumerate(parts):
        if len(part) > 1:
            part = part.lstrip("0")
            parts[place] = part if part[:1].isdigit() else f"0{part}"
    if len(parts) < 3:
        if any(char in parts[-1] for char in "+-"):
            raise ValueError("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    return ".".join(parts)


def quantity_of(text: str) -> bytes:
    """A quantity's text as the bytes that carry it."""
    return CelQuantity.parse(text).carry()


def same(left: object, right: object) -> bool:
    """`left == right`, where `left` is one of Kubernetes' values.

    Raises:
        ValueError: They are of different kinds; the original refuses to compare them.
    """
    kind = kind_of_value(left)
    if not kind:
        return left == right
    if kind_of_value(right) != kind:
        raise ValueError(NO_OVERLOAD)
    if kind == "quantity":
        return CelQuantity.of(left).nano == CelQuantity.of(right).nano
    return left == right
