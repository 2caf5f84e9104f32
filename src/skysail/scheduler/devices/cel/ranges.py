"""Sizes and costs as ranges, in cel-go's arithmetic: whole numbers of 64 bits that stop at the top.

Source: github.com/google/cel-go/checker/cost.go, common/cost.go, v0.26.
"""

import math
from dataclasses import dataclass
from typing import Final

TOP: Final = (1 << 64) - 1
STRING_FACTOR: Final = 0.1
REGEX_FACTOR: Final = 0.25


@dataclass(frozen=True, slots=True)
class Range:
    """From the least to the most.

    Attributes:
        low: At least.
        high: At most.
    """

    low: int = 0
    high: int = 0

    def __add__(self, other: "Range") -> "Range":
        return Range(min(self.low + other.low, TOP), min(self.high + other.high, TOP))

    def __mul__(self, other: "Range") -> "Range":
        return Range(min(self.low * other.low, TOP), min(self.high * other.high, TOP))

    def __or__(self, other: "Range") -> "Range":
        return Range(min(self.low, other.low), max(self.high, other.high))

    def times(self, factor: float) -> "Range":
        """Both ends multiplied and rounded up."""
        return Range(_scaled(self.low, factor), _scaled(self.high, factor))

    @property
    def traversal(self) -> "Range":
        """The cost of reading a text of this size."""
        return self.times(STRING_FACTOR)


def _scaled(value: int, factor: float) -> int:
    if value and float(value) > TOP / factor:
        return TOP
    scaled = math.ceil(float(value) * factor)
    return min(scaled, TOP)


def exactly(value: int) -> Range:
    """A range of one value."""
    return Range(value, value)


NOTHING: Final = Range()
ONE: Final = exactly(1)
UNKNOWN: Final = Range(0, TOP)
EMPTY: Final = Range(TOP, 0)
"""The start of a union."""
