"""The points at which plugins answer, and how several answers may be combined.

    kind of point   answers                        operators                     neutral
    yes/no          True, False, an Outcome (no)   and or not firstNotPass       by point
    number          int, or an int array of rows   sum min max                   0
    set             a list                         intersect union joint         nothing
    order           a key that compares            firstNotPass                  creation, then uid

`None` abstains, at every point. One row here makes a point; the session has a method `add_<point>` for each.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final


class PointKind(Enum):
    """What the answers at a point are. The value is its name for people."""

    YES_NO = "yes/no"
    NUMBER = "number"
    SET = "set"
    ORDER = "order"


OPERATORS: Final[Mapping[PointKind, tuple[str, ...]]] = MappingProxyType(
    {
        PointKind.YES_NO: ("and", "or", "not", "firstNotPass"),
        PointKind.NUMBER: ("sum", "min", "max"),
        PointKind.SET: ("intersect", "union", "joint"),
        PointKind.ORDER: ("firstNotPass",),
    }
)


@dataclass(frozen=True, slots=True)
class Point:
    """One point.

    Attributes:
        name: As configuration writes it.
        kind: See there.
        default: The operator over the configured plugins when no expression is given.
        neutral: For yes/no points: the answer when all abstain.
    """

    name: str
    kind: PointKind
    default: str
    neutral: bool = True


def _rows(kind: PointKind, default: str, *names: str, neutral: bool = True) -> list[Point]:
    return [Point(name, kind, default, neutral) for name in names]


POINTS: Final[Mapping[str, Point]] = MappingProxyType(
    {
        point.name: point
        for point in (
            *_rows(
                PointKind.YES_NO, "and",
                "jobValid", "jobReady", "jobEnqueueable", "allocatable", "predicate", "quotaPredicate",
            ),
            *_rows(PointKind.YES_NO, "or", "overused", "jobStarving", neutral=False),
            *_rows(PointKind.NUMBER, "min", "jobPipelined"),
            *_rows(PointKind.NUMBER, "sum", "nodeOrder", "batchNodeOrder", "quotaOrderScore", "zoneOrder"),
            *_rows(PointKind.SET, "intersect", "preemptable", "reclaimable", "victim", "candidateNodes"),
            *_rows(PointKind.ORDER, "firstNotPass", "jobOrder", "taskOrder", "queueOrder", "quotaOrder"),
        )
    }
)  # fmt: skip
