"""The most a selector may cost, before it ever ran: what the API server refuses claims by.

A walk over the checked expression. Sizes come from constants, from what is known of devices (`_SIZES`), or are unknown;
loops multiply.

Source: github.com/google/cel-go/checker/cost.go, v0.26; k8s.io/dynamic-resource-allocation/cel/compile.go, v1.36.
"""

from collections.abc import Callable, Sequence
from typing import Final

from skysail.scheduler.devices.cel.call_costs import CallCost, Operand, call_cost
from skysail.scheduler.devices.cel.functions import OPAQUE
from skysail.scheduler.devices.cel.ranges import (
    EMPTY,
    NOTHING,
    ONE,
    REGEX_FACTOR,
    UNKNOWN,
    Range,
    exactly,
)
from skysail.scheduler.devices.cel.tree import CelType, CheckedTree, Node

MOST_ALLOWED: Final = 1_000_000
"""What the API server lets a selector cost."""
_LIST_COST, _MAP_COST, _MESSAGE_COST = exactly(10), exactly(30), exactly(40)
_SCALARS: Final = frozenset({"bool", "double", "duration", "int", "timestamp", "uint"})
_SELECTABLE: Final = OPAQUE | {"map"}
_ANY = "*"

Path = tuple[str, ...]
_SIZES: Final[dict[Path, int]] = {
    ("device", "driver"): 63,
    ("device", "allowMultipleAllocations"): 1,
    ("device", "attributes"): 32,
    ("device", "attributes", "@keys"): 63,
    ("device", "attributes", "@values"): 32,
    ("device", "attributes", "@values", "@keys"): 32,
    ("device", "attributes", "@values", "@values"): 64,
    ("device", "attributes", "@values", _ANY): 64,
    ("device", "capacity"): 32,
    ("device", "capacity", "@keys"): 63,
    ("device", "capacity", "@values"): 32,
    ("device", "capacity", "@values", "@keys"): 32,
    ("device", "capacity", "@values", "@values"): 0,
}
"""How large the parts of a device may be, by path."""

Entry = tuple[Range, Range]
"""Sizes of a container's keys and values."""


def estimated_cost(tree: CheckedTree) -> int:
    """The most an expression may cost."""
    return _Estimate(tree).cost(tree.root).high


class _Local:
    """A variable of a loop or of `cel.bind`."""

    __slots__ = ("entry", "path", "size")

    def __init__(self, path: Path, size: Range | None, entry: Entry | None) -> None:
        self.path, self.size, self.entry = path, size, entry


class _Estimate:
    """One walk."""

    def __init__(self, tree: CheckedTree) -> None:
        self._tree = tree
        self._paths: dict[int, Path] = {}
        self._sizes: dict[int, Range] = {}
        self._entries: dict[int, Entry] = {}
        self._locals: dict[str, list[_Local]] = {}

    def cost(self, node: Node) -> Range:
        """What evaluating a node costs; notes sizes and paths on the way."""
        costing: Callable[[Node], Range] = {
            "const": lambda each: NOTHING, "ident": self._ident, "select": self._select, "call": self._call,
            "list": self._list, "struct": self._struct, "comprehension": self._comprehension,
        }[node.kind]  # fmt: skip
        return costing(node)

    # -- kinds of nodes ---------------------------------------------------------------------------------------------

    def _ident(self, node: Node) -> Range:
        local = self._local(node.name)
        self._paths[node.id] = local.path if local is not None else tuple(node.name.split("."))
        # `device.driver` is one name to the type checker here, and a selection in the original.
        return exactly(1 + node.name.count(".") if local is None else 1)

    def _select(self, node: Node) -> Range:
        assert node.target is not None
        cost = self.cost(node.target)
        if node.test_only:
            return cost
        if self._tree.type_of(node.target).name in _SELECTABLE:
            cost = cost + ONE
        self._paths[node.id] = (*self._path(node.target), node.name)
        return cost

    def _call(self, node: Node) -> Range:
        if node.name == "dyn":
            cost = self.cost(node.children[0])
            self._copy(node, node.children[0])
            return ONE + cost
        costs = [self.cost(child) for child in node.children]
        arguments = [self._operand(child) for child in node.children]
        overloads = self._tree.overloads.get(node.id, ())
        if not overloads:
            return NOTHING
        total, target = NOTHING, None
        if node.target is not None:
            total, target = self.cost(node.target), self._operand(node.target)
        most, size = EMPTY, None
        for overload in overloads:
            call = self._function(node, overload, target, arguments, costs)
            most = most | call.cost
            if call.size is not None:
                size = call.size if size is None else size | call.size
            size = self._indexed(node, overload, size)
            if size is None:
                size = self._size(node)
        if size is not None:
            self._sizes[node.id] = size
        return total + most

    def _indexed(self, node: Node, overload: str, size: Range | None) -> Range | None:
        part = {"index_list": "@items", "index_map": "@values"}.get(overload)
        if part is None:
            return size
        self._paths[node.id] = (*self._path(node.children[0]), part)
        entry = self._entry(node.children[0])
        return entry[1] if entry is not None else None

    def _list(self, node: Node) -> Range:
        cost, items = _LIST_COST, EMPTY if node.children else NOTHING
        for child in node.children:
            cost = cost + self.cost(child)
            items = items | self._known(child)
        self._entries[node.id] = (ONE, items)
        return cost

    def _struct(self, node: Node) -> Range:
        costs = [self.cost(child) for child in (node.children[1::2] if node.name else node.children)]
        if node.name:
            return sum(costs, _MESSAGE_COST)
        keys = values = EMPTY if node.children else NOTHING
        for place, child in enumerate(node.children):
            if place % 2:
                values = values | self._known(child)
            else:
                keys = keys | self._known(child)
        self._entries[node.id] = (keys, values)
        return sum(costs, _MAP_COST)

    def _comprehension(self, node: Node) -> Range:
        over, initial, condition, step, result = node.children
        accumulator = str(node.rest["accu"])
        cost = self.cost(over) + self.cost(initial)
        self._push(accumulator, _Local(self._path(initial), self._size(initial), self._entry(initial)))
        if over.kind == "list" and not over.children and condition.kind == "const" and condition.constant is False:
            cost = cost + self.cost(result)  # cel.bind
            self._pop(accumulator)
            self._copy(node, result)
            return cost
        variable = str(node.rest["iter"])
        self._push(variable, self._iterated(over))
        once = self.cost(condition) + self.cost(step)
        self._pop(variable)
        cost = cost + self.cost(result)
        self._pop(accumulator)
        count = self._known(over)
        self._note_result(node, initial, step, count)
        return cost + count * once

    def _note_result(self, node: Node, initial: Node, step: Node, count: Range) -> None:
        if initial.kind == "const":
            size = self._size(initial)
            if size is not None:
                self._sizes[node.id] = size
        elif initial.kind in ("list", "struct"):
            self._sizes[node.id] = count
            entry = self._entry(step)
            if entry is not None:
                self._entries[node.id] = entry

    def _iterated(self, over: Node) -> _Local:
        entry = self._entry(over)
        is_list = self._tree.type_of(over).name == "list"
        size = None if entry is None else entry[1 if is_list else 0]
        return _Local((*self._path(over), "@items" if is_list else "@keys"), size, None)

    # -- functions --------------------------------------------------------------------------------------------------

    def _function(
        self, node: Node, overload: str, target: Operand | None, arguments: Sequence[Operand], costs: Sequence[Range]
    ) -> CallCost:
        total = sum(costs, NOTHING)
        ours = call_cost(node.name, overload, target, arguments)
        if ours is not None:
            return CallCost(ours.cost + total, ours.size)
        if overload in ("logical_or", "logical_and"):
            return CallCost(Range(costs[0].low, (costs[0] + costs[1]).high))
        if overload == "conditional":
            self._join_entries(node, node.children[1], node.children[2])
            return CallCost(costs[0] + (costs[1] | costs[2]), arguments[1].size | arguments[2].size)
        if overload in ("add_string", "add_bytes", "add_list"):
            self._join_entries(node, node.children[0], node.children[1])
            size = arguments[0].size + arguments[1].size
            return CallCost((ONE if overload == "add_list" else size.traversal) + total, size)
        return CallCost(_standard(overload, target, arguments) + total)

    def _join_entries(self, node: Node, one: Node, other: Node) -> None:
        first, second = self._entry(one), self._entry(other)
        if first is not None and second is not None:
            self._entries[node.id] = (first[0] | second[0], first[1] | second[1])

    def _operand(self, node: Node) -> Operand:
        size, kind = self._size(node), self._tree.type_of(node)
        path = (*self._path(node), "@items") if self._path(node) else ()
        items = _size_at(path)
        constant = node.constant if node.kind == "const" and type(node.constant) is int else None
        known = size is not None
        return Operand(
            kind, size if size is not None else UNKNOWN, items if items is not None else UNKNOWN, constant, known
        )

    # -- what is known of a node ------------------------------------------------------------------------------------

    def _known(self, node: Node) -> Range:
        size = self._size(node)
        return UNKNOWN if size is None else size

    def _size(self, node: Node) -> Range | None:
        size = self._sizes.get(node.id)
        if size is None:
            size = _literal_size(node)
        if size is None:
            size = _size_at(self._path(node))
        if size is None and _is_scalar(self._tree.type_of(node)):
            size = ONE
        if size is None and node.kind == "ident":
            local = self._local(node.name)
            size = local.size if local is not None else None
        return size

    def _entry(self, node: Node) -> Entry | None:
        entry = self._entries.get(node.id)
        if entry is None and node.kind == "ident":
            local = self._local(node.name)
            entry = local.entry if local is not None else None
        return entry

    def _path(self, node: Node) -> Path:
        local = self._local(node.name) if node.kind == "ident" else None
        return local.path if local is not None else self._paths.get(node.id, ())

    def _copy(self, node: Node, source: Node) -> None:
        size, entry = self._size(source), self._entry(source)
        if size is not None:
            self._sizes[node.id] = size
        if entry is not None:
            self._entries[node.id] = entry

    def _local(self, name: str) -> _Local | None:
        stack = self._locals.get(name)
        return stack[-1] if stack else None

    def _push(self, name: str, local: _Local) -> None:
        self._locals.setdefault(name, []).append(local)

    def _pop(self, name: str) -> None:
        self._locals[name].pop()


def _standard(overload: str, target: Operand | None, arguments: Sequence[Operand]) -> Range:
    """CEL's own functions."""
    if overload in ("starts_with_string", "ends_with_string", "string_to_bytes", "bytes_to_string"):
        return arguments[0].size.traversal
    if overload == "in_list":
        return arguments[1].size
    if overload == "matches_string" and target is not None:
        return (target.size + ONE).traversal * arguments[0].size.times(REGEX_FACTOR)
    if overload == "contains_string" and target is not None:
        return target.size.traversal * arguments[0].size.traversal
    if overload in _COMPARISONS:
        most = min(arguments[0].size.high, arguments[1].size.high)
        return Range(1 if most else 0, most).traversal
    return ONE


_COMPARISONS: Final = frozenset(
    f"{name}_{kind}" for name in ("less", "greater", "less_equals", "greater_equals") for kind in ("string", "bytes")
) | {"equals", "not_equals"}


def _literal_size(node: Node) -> Range | None:
    if node.kind == "const":
        return exactly(len(node.constant) if isinstance(node.constant, str | bytes) else 1)
    if node.kind == "list":
        return exactly(len(node.children))
    if node.kind == "struct" and not node.name:
        return exactly(len(node.children) // 2)
    return None


def _size_at(path: Path) -> Range | None:
    size = _SIZES.get(path)
    if size is None and path and not path[-1].startswith("@"):
        size = _SIZES.get((*path[:-1], _ANY))
    return None if size is None else Range(0, size)


def _is_scalar(kind: CelType) -> bool:
    if kind.name == "optional_type" and kind.parameters:
        return _is_scalar(kind.parameters[0])
    return kind.name in _SCALARS
