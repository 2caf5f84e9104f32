"""What calls of Kubernetes' functions cost at most, and how large their results are.

Source: k8s.io/apiserver/pkg/cel/library/cost.go, v1.36; github.com/google/cel-go/ext/{lists,sets}.go, v0.26.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from skysail.scheduler.devices.cel.functions import CIDR, FORMAT, IP, QUANTITY, SEMVER, URL
from skysail.scheduler.devices.cel.ranges import ONE, REGEX_FACTOR, STRING_FACTOR, TOP, Range, exactly
from skysail.scheduler.devices.cel.tree import CelType

_LONGEST_REGEX, _LONGEST_FORMAT, _LIST_COST = 128, 64, 10


@dataclass(frozen=True, slots=True)
class Operand:
    """A target or an argument.

    Attributes:
        type: Its static type.
        size: How large its value may be.
        items: How large its elements may be, if it is a list.
        constant: Its value, if it is a whole number known beforehand.
        is_sized: Whether the size is more than a guess.
    """

    type: CelType
    size: Range
    items: Range
    constant: int | None = None
    is_sized: bool = True


@dataclass(frozen=True, slots=True)
class CallCost:
    """A call.

    Attributes:
        cost: Of the call alone.
        size: Of its result; None when it has none.
    """

    cost: Range
    size: Range | None = None


Costing = Callable[[str, Operand | None, Sequence[Operand]], CallCost | None]


def call_cost(function: str, overload: str, target: Operand | None, arguments: Sequence[Operand]) -> CallCost | None:
    """The cost of a call; None when Kubernetes has nothing to say about the function."""
    costing = _COSTS.get(function)
    return costing(overload, target, arguments) if costing is not None else None


def _one(overload: str, target: Operand | None, arguments: Sequence[Operand]) -> CallCost | None:
    return CallCost(ONE)


def _reads_list(overload: str, target: Operand | None, arguments: Sequence[Operand]) -> CallCost | None:
    if target is None:
        return None
    if not target.type.parameters:
        return CallCost(target.size.traversal)
    each = ONE
    if target.type.parameters[0].name in ("string", "bytes"):
        each = each + target.items.traversal
    return CallCost(target.size * each)


def _reads_argument(overload: str, target: Operand | None, arguments: Sequence[Operand]) -> CallCost | None:
    return CallCost(arguments[0].size.traversal) if arguments else None


def _keeps_argument(overload: str, target: Operand | None, arguments: Sequence[Operand]) -> CallCost | None:
    return CallCost(arguments[0].size.traversal, arguments[0].size) if len(arguments) == 1 else None


def _keeps_target(overload: str, target: Operand | None, arguments: Sequence[Operand]) -> CallCost | None:
    return CallCost(target.size.traversal, target.size) if target is not None else None


def _replace(overload: str, target: Operand | None, arguments: Sequence[Operand]) -> CallCost | None:
    if target is None or len(arguments) < 2:
        return None
    size, old, new = target.size, arguments[0].size, arguments[1].size
    high = _most_replaced(size, old, new)
    low = _least_replaced(size, old, new)
    count, kept = Range(low[0], high[0]), Range(low[1], high[1])
    return CallCost(size.times(2 * STRING_FACTOR), count * new + kept)


def _most_replaced(size: Range, old: Range, new: Range) -> tuple[int, int]:
    """How often at most, and how much is kept then."""
    if old.low == 0:
        return (size.high + 1 if size.high < TOP else size.high), size.high
    if new.high <= old.low:
        return 0, size.high
    return math.ceil(size.high / old.low), 0


def _least_replaced(size: Range, old: Range, new: Range) -> tuple[int, int]:
    if old.high == 0:
        return (size.low + 1 if size.low < TOP else size.low), size.low
    if old.high <= new.low:
        return 0, size.low
    return math.ceil(size.low / old.high), 0


def _split(overload: str, target: Operand | None, arguments: Sequence[Operand]) -> CallCost | None:
    if target is None:
        return None
    most = target.size.high
    if len(arguments) > 1 and arguments[1].constant is not None:
        most = arguments[1].constant & TOP
    return CallCost(target.size.times(2 * STRING_FACTOR), Range(0, most))


def _join(overload: str, target: Operand | None, arguments: Sequence[Operand]) -> CallCost | None:
    if target is None:
        return None
    size = target.size * target.items if target.type.parameters else Range()
    if arguments:
        size = size + arguments[0].size * Range(max(target.size.low - 1, 0), max(target.size.high - 1, 0))
    return CallCost(size.traversal, size)


def _find(overload: str, target: Operand | None, arguments: Sequence[Operand]) -> CallCost | None:
    if target is None or not arguments:
        return None
    cost = (target.size + ONE).traversal * arguments[0].size.times(REGEX_FACTOR)
    return CallCost(cost, Range(0, target.size.high))


def _ip(overload: str, target: Operand | None, arguments: Sequence[Operand]) -> CallCost | None:
    return CallCost(ONE) if overload == "cidr_ip" else _reads_argument(overload, target, arguments)


def _canonical(overload: str, target: Operand | None, arguments: Sequence[Operand]) -> CallCost | None:
    return CallCost(arguments[0].size.times(2 * STRING_FACTOR)) if arguments else None


def _contains(overload: str, target: Operand | None, arguments: Sequence[Operand]) -> CallCost | None:
    if not arguments:
        return None
    address = Range(4, 16)
    cost = (address + address).traversal
    if overload.startswith("cidr_contains_cidr"):
        cost = cost + address.traversal + ONE
    if overload.endswith("_string"):
        cost = cost + arguments[0].size.traversal
    return CallCost(cost)


def _validate(overload: str, target: Operand | None, arguments: Sequence[Operand]) -> CallCost | None:
    if not arguments:
        return None
    return CallCost(arguments[0].size.traversal.times(_LONGEST_REGEX * REGEX_FACTOR))


def _equal(overload: str, target: Operand | None, arguments: Sequence[Operand]) -> CallCost | None:
    if len(arguments) != 2 or arguments[0].type != arguments[1].type:
        return None
    name = arguments[0].type.name
    if name in (QUANTITY, SEMVER, IP, CIDR):
        return CallCost(ONE)
    if name == FORMAT:
        return CallCost(Range(1, _LONGEST_FORMAT).traversal)
    if name == URL:
        size = arguments[1].size.high if arguments[1].is_sized else 1
        return CallCost(Range(1, size).traversal)
    return None


def _sets(overload: str, target: Operand | None, arguments: Sequence[Operand]) -> CallCost | None:
    factor = 2 if overload == "list_sets_equivalent_list" else 1
    return CallCost((arguments[0].size * arguments[1].size).times(factor) + ONE) if len(arguments) == 2 else None


def _new_list(size: Range, factor: float = 1.0) -> CallCost:
    """A list of this size is made."""
    return CallCost(size.times(factor) + ONE + exactly(_LIST_COST), size)


def _slice(overload: str, target: Operand | None, arguments: Sequence[Operand]) -> CallCost | None:
    if target is None or len(arguments) != 2:
        return None
    start, end = arguments[0].constant, arguments[1].constant
    return _new_list(exactly((target.size.high if end is None else end) - (start or 0) & TOP))


def _range(overload: str, target: Operand | None, arguments: Sequence[Operand]) -> CallCost | None:
    return _new_list(exactly(TOP if arguments[0].constant is None else arguments[0].constant & TOP))


def _reverse(overload: str, target: Operand | None, arguments: Sequence[Operand]) -> CallCost | None:
    return _new_list(target.size) if target is not None else None


def _flatten(overload: str, target: Operand | None, arguments: Sequence[Operand]) -> CallCost | None:
    depth = (TOP if arguments[0].constant is None else arguments[0].constant & TOP) if arguments else 1
    return _new_list(target.size, float(depth)) if target is not None else None


def _compares_all(overload: str, target: Operand | None, arguments: Sequence[Operand]) -> CallCost | None:
    if target is None:
        return None
    of_texts = bool(target.type.parameters) and target.type.parameters[0].name in ("string", "bytes")
    factor = 2 + STRING_FACTOR if overload == "list_sort" and of_texts else 2.0
    return _new_list(target.size * target.size, factor)


_CONSTANT: Final = (
    "format.named", "sign", "asInteger", "isInteger", "asApproximateFloat", "isGreaterThan", "isLessThan", "compareTo",
    "add", "sub", "major", "minor", "patch", "getScheme", "getHostname", "getHost", "getPort", "getEscapedPath",
    "getQuery", "masked", "prefixLength", "family", "isUnspecified", "isLoopback", "isLinkLocalMulticast",
    "isLinkLocalUnicast", "isGlobalUnicast",
)  # fmt: skip
_COSTS: Final[dict[str, Costing]] = {
    **dict.fromkeys(_CONSTANT, _one),
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _reads_list),
    **dict.fromkeys(("quantity", "isQuantity", "semver", "isSemver", "cidr", "isIP", "isCIDR"), _reads_argument),
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim"), _keeps_target),
    **dict.fromkeys(("find", "findAll"), _find),
    **dict.fromkeys(("containsIP", "containsCIDR"), _contains),
    **dict.fromkeys(("sets.contains", "sets.intersects", "sets.equivalent"), _sets),
    **dict.fromkeys(("distinct", "sort"), _compares_all),
    "slice": _slice, "lists.range": _range, "reverse": _reverse, "flatten": _flatten,
    "url": _keeps_argument, "replace": _replace, "split": _split, "join": _join, "ip": _ip,
    "ip.isCanonical": _canonical, "validate": _validate, "_==_": _equal,
}  # fmt: skip
