"""Sets of completion indexes, kept and written as intervals: `0-2,5,7,8`.

>>> str(Indexes.parse("0,1,2,5,7,8", 10))
'0-2,5,7,8'
>>> 6 in Indexes.parse("0-5,7", 10)
False

Source: pkg/controller/job/indexed_job_utils.go, v1.36.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Indexes:
    """A set of indexes as ascending intervals `(first, last)` that neither overlap nor touch."""

    intervals: tuple[tuple[int, int], ...] = ()

    @classmethod
    def parse(cls, text: str, completions: int) -> "Indexes":
        """Read a status field; what cannot be read is left out, and indexes from `completions` on do not count."""
        found: list[tuple[int, int]] = []
        for part in text.split(",") if text else ():
            first, dash, last = part.partition("-")
            if not first.isdigit() or (dash and not last.isdigit()):
                continue
            if int(first) >= completions:
                break
            found.append((int(first), min(int(last), completions - 1) if dash else int(first)))
        return cls(tuple(_joined(found)))

    @classmethod
    def of(cls, indexes: Iterable[int]) -> "Indexes":
        """The set of these indexes, in any order."""
        return cls(tuple(_joined((index, index) for index in sorted(set(indexes)))))

    def __or__(self, other: "Indexes") -> "Indexes":
        return Indexes(tuple(_joined(sorted((*self.intervals, *other.intervals)))))

    def __contains__(self, index: int) -> bool:
        position = bisect_left(self.intervals, index, key=lambda interval: interval[1])
        return position < len(self.intervals) and self.intervals[position][0] <= index

    def __len__(self) -> int:
        return sum(last - first + 1 for first, last in self.intervals)

    def __iter__(self) -> Iterator[int]:
        for first, last in self.intervals:
            yield from range(first, last + 1)

    def __str__(self) -> str:
        return ",".join(_written(first, last) for first, last in self.intervals)

    def overlap(self, other: "Indexes") -> int:
        """How many indexes are in both."""
        return len(self) + len(other) - len(self | other)

    def first_missing(self, count: int, completions: int) -> list[int]:
        """The first `count` indexes below `completions` that are not in the set.

        Cost: proportional to the number of intervals and to `count`, not to `completions`.
        """
        found: list[int] = []
        candidate = 0
        for first, last in (*self.intervals, (completions, completions)):
            while candidate < min(first, completions) and len(found) < count:
                found.append(candidate)
                candidate += 1
            if len(found) == count:
                break
            candidate = max(candidate, last + 1)
        return found


def _written(first: int, last: int) -> str:
    if last == first:
        return str(first)
    return f"{first}{',' if last == first + 1 else '-'}{last}"


def _joined(intervals: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join intervals, given in order of their first index, that overlap or touch."""
    result: list[tuple[int, int]] = []
    for first, last in intervals:
        if result and first <= result[-1][1] + 1:
            result[-1] = (result[-1][0], max(result[-1][1], last))
        else:
            result.append((first, last))
    return result
