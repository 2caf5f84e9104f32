"""The node table: one row per node, one array per thing that scheduling reads.

Invariants:
- a row belongs to one node name until that node is gone; then it is dead (`live` is False) and may be given away;
- `size` is the first index never used: every full-length view is `column[:size]`, dead rows included;
- every write of a row appends it to the log, so that a reader who remembers a position of the log knows which rows
  to read again; the log of Node changes is a subset, kept apart because most changes are pods coming and going;
- the rows behind `size` up to the capacity may serve as scratch rows for what-ifs: they are never live, never logged.

Units: `cpu` milli, everything else whole units (bytes, counts). All arrays int64, but codes and derived columns.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from skysail.api.labels import Selector
from skysail.api.node import Taint
from skysail.scheduler.cache.columns import (
    CarrierColumn,
    ImageColumn,
    LabelColumn,
    MatchColumn,
    NodeColumn,
    PodColumn,
    TermKind,
    TermRegistry,
    pods_moved,
)
from skysail.scheduler.cache.history import RowHistory
from skysail.scheduler.cache.matrices import Amounts, IntColumn, RowIndex
from skysail.scheduler.cache.node_info import NodeInfo
from skysail.scheduler.cache.pod_columns import PodColumns
from skysail.scheduler.cache.pod_info import AffinityTerm, PodInfo

C = TypeVar("C")
T = TypeVar("T")
NodeC = TypeVar("NodeC", bound=NodeColumn)
PodC = TypeVar("PodC", bound=PodColumn)

NO_ROWS: RowIndex = np.empty(0, dtype=np.intp)

FIRST_CAPACITY = 64
MAX_DERIVED = 512
"""Derived columns kept of each kind; the one least recently asked for goes first."""


class ChangeLog:
    """Rows in the order they changed, with positions that stay valid while the log is trimmed at its front.

    Attributes:
        start: The position of the oldest entry kept.
        end: The position after the newest entry: what a reader who is up to date remembers.
    """

    __slots__ = ("_limit", "_rows", "end", "start")

    def __init__(self, limit: int = 1 << 16) -> None:
        self._rows: RowIndex = np.empty(limit, dtype=np.intp)
        self._limit = limit
        self.start = self.end = 0

    def append(self, row: int) -> None:
        """Note a change."""
        place = self.end - self.start
        if place == self._limit:
            kept = self._limit // 2
            rows: RowIndex = np.empty(self._limit, dtype=np.intp)  # what readers hold of the old one stays as it is
            rows[:kept] = self._rows[-kept:]
            self._rows, place = rows, kept
            self.start = self.end - kept
        self._rows[place] = row
        self.end += 1

    def since(self, position: int) -> RowIndex | None:
        """Rows changed since a position, repeats included; None when the log no longer reaches back that far."""
        if position < self.start:
            return None
        return self._rows[position - self.start : self.end - self.start]


class NodeTable:
    """The table.

    Attributes:
        size: Rows in use, dead ones included.
        names: Node names by row; empty for dead rows.
        infos: Accounts by row; None for dead rows.
        history: What rows held before; None keeps nothing.
        live: (capacity,) bool.
        generation: (capacity,) int64, of the account last written.
        amounts: What nodes offer and what their pods ask for, by resource.
        taint_sets: Distinct taint tuples; `taint_ids` (capacity,) int32 says which a row has.
        unschedulable: (capacity,) bool, `spec.unschedulable`.
        log: Every change; `node_log`: changes of Node objects.
        memo: What plugins derive from this table and want to keep, under keys that name them.
    """

    def __init__(self) -> None:
        self.size = 0
        self.capacity = FIRST_CAPACITY
        self.names: list[str] = []
        self.infos: list[NodeInfo | None] = []
        self.history: RowHistory | None = None
        self.rows: dict[str, int] = {}
        self._free: list[int] = []
        self.live: npt.NDArray[np.bool_] = np.zeros(self.capacity, dtype=np.bool_)
        self.unschedulable: npt.NDArray[np.bool_] = np.zeros(self.capacity, dtype=np.bool_)
        self.generation: IntColumn = np.zeros(self.capacity, dtype=np.int64)
        self.amounts = Amounts(self.capacity)
        self.taint_ids: npt.NDArray[np.int32] = np.zeros(self.capacity, dtype=np.int32)
        self.taint_sets: list[tuple[Taint, ...]] = [()]
        self._taint_index: dict[tuple[Taint, ...], int] = {(): 0}
        self.rows_with_ports: set[int] = set()
        self.rows_with_anti_affinity: set[int] = set()
        self.rows_with_affinity: set[int] = set()
        self._node_columns: dict[Hashable, NodeColumn] = {}
        self._pod_columns = PodColumns()
        self.log = ChangeLog()
        self.node_log = ChangeLog()
        self.memo: dict[Hashable, object] = {}
        self._remembered: dict[Hashable, object] = {}
        self._all_names: tuple[int, tuple[str, ...]] = (-1, ())
        self._changed_rows: tuple[int, int, RowIndex] = (0, 0, NO_ROWS)

    # -- reading ---------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def all_rows(self) -> slice:
        """Every row, dead ones included: what a full evaluation passes to plugins."""
        return slice(0, self.size)

    def changed_since(self, position: int) -> RowIndex | None:
        """Rows that `log` names since a position, repeats included; None when it no longer reaches back that far."""
        start, end, rows = self._changed_rows
        if start == position and end == self.log.end:
            return rows
        found = self.log.since(position)
        if found is not None:
            self._changed_rows = (position, self.log.end, found)
        return found

    def all_names(self) -> tuple[str, ...]:
        """(size,) names by row, empty for dead rows: the same tuple until a node comes, goes or changes."""
        if self._all_names[0] != self.node_log.end:
            self._all_names = (self.node_log.end, tuple(self.names[: self.size]))
        return self._all_names[1]

    def info(self, row: int) -> NodeInfo:
        """The account of a live row, or of a scratch row."""
        found = self.infos[row]
        assert found is not None, f"row {row} is dead"
        return found

    def label(self, key: str) -> LabelColumn:
        """The interned values of a label key."""
        return self.node_column(("label", key), lambda capacity: LabelColumn(key, capacity))

    def image(self, name: str) -> ImageColumn:
        """Which nodes hold an image."""
        return self.node_column(("image", name), lambda capacity: ImageColumn(name, capacity))

    def node_column(self, key: Hashable, make: Callable[[int], NodeC]) -> NodeC:
        """A derived column of Node objects, made and filled when first asked for.

        Cost: A walk over all rows when it is new.
        """
        column = self._node_columns.pop(key, None)
        if column is None:
            _make_room(self._node_columns)
            column = make(self.capacity)
            for row, info in enumerate(self.infos[: self.size]):
                if info is not None:
                    column.write(row, info)
            for row in range(self.size, len(self.infos)):
                self._write_scratch_cell(column, row, self.info(row))
        self._node_columns[key] = column
        return column  # type: ignore[return-value]

    def pod_column(self, key: Hashable, make: Callable[[int], PodC]) -> PodC:
        """A derived column that counts pods, made and filled when first asked for.

        Cost: A walk over all pods when it is new.
        """
        return self._pod_columns.get(key, lambda: make(self.capacity), self.infos)

    def matches(self, *tests: tuple[frozenset[str] | None, Selector]) -> MatchColumn:
        """How many pods of each row pass every test: namespaces (None is all) and selector."""
        return self.pod_column(("matches", tests), lambda capacity: MatchColumn(tests, capacity))

    def carriers(self, kind: TermKind, term: AffinityTerm) -> CarrierColumn:
        """How many pods of each row carry a term."""
        return self.pod_column(("carriers", kind, term), lambda capacity: CarrierColumn(kind, term, capacity))

    def registry(self, kind: TermKind) -> TermRegistry:
        """Which terms of a kind any pod carries."""
        return self.pod_column(("registry", kind), lambda capacity: TermRegistry(kind, capacity))

    def remember(self, key: Hashable, make: Callable[[], T]) -> T:
        """Something a plugin derives from this table, kept under a key that names it; the oldest go first."""
        found = self._remembered.pop(key, None)
        if found is None:
            _make_room(self._remembered)
            found = make()
        self._remembered[key] = found
        return found  # type: ignore[return-value]

    # -- writing (the snapshot does) -------------------------------------------------------------------------------

    def write(self, info: NodeInfo) -> int:
        """Take over a node's account; returns its row.

        Cost: A few numbers, unless the Node object itself changed.
        """
        row = self.rows.get(info.name)
        if row is None:
            row = self._take_row(info.name)
        before = self.infos[row]
        if before is None or before.node_generation != info.node_generation:
            self._write_node(row, info)
            self.node_log.append(row)
        self._write_use(row, info)
        if self._pod_columns:
            added, removed = pods_moved(before.pods if before is not None else _NO_PODS, info.pods)
            self._pod_columns.move(row, added, removed)
        if self.history is not None:
            self.history.note(row, before)
        self.infos[row] = info
        self.log.append(row)
        return row

    def remove(self, name: str) -> None:
        """The node is gone; its row is dead."""
        row = self.rows.pop(name)
        before = self.info(row)
        self.live[row] = False
        self.amounts.clear(row)
        for node_column in self._node_columns.values():
            node_column.write(row, None)
        self._pod_columns.move(row, (), before.pods.values())
        for rows in (self.rows_with_ports, self.rows_with_affinity, self.rows_with_anti_affinity):
            rows.discard(row)
        if self.history is not None:
            self.history.note(row, before)
        self.infos[row] = None
        self.names[row] = ""
        self._free.append(row)
        self.node_log.append(row)
        self.log.append(row)

    @contextmanager
    def scratch(self, infos: Sequence[NodeInfo]) -> Iterator[RowIndex]:
        """Rows for accounts that are not: clones of live nodes with pods added or removed, or another Node object.

        The rows stand behind the live ones, in no log, and are gone when the context ends. Every plugin that answers
        for rows answers for these too.
        """
        first = self.size
        self._reserve(first + len(infos))
        for offset, info in enumerate(infos):
            self._write_scratch(first + offset, info)
        try:
            yield np.arange(first, first + len(infos), dtype=np.intp)
        finally:
            for row in range(first, first + len(infos)):
                for rows in (self.rows_with_ports, self.rows_with_affinity, self.rows_with_anti_affinity):
                    rows.discard(row)
            del self.names[first:], self.infos[first:]

    def _write_scratch(self, row: int, info: NodeInfo) -> None:
        source = self.rows[info.name]
        original = self.info(source)
        self.names.append(info.name)
        self.infos.append(info)
        if info.node is original.node:
            self.amounts.copy_node(source, row)
            self.taint_ids[row] = self.taint_ids[source]
            self.unschedulable[row] = self.unschedulable[source]
        else:
            self.amounts.write_node(row, info)
            self.taint_ids[row] = self._intern_taints(info.node.spec.taints)
            self.unschedulable[row] = info.node.spec.unschedulable
        for node_column in self._node_columns.values():
            self._write_scratch_cell(node_column, row, info)
        self._write_use(row, info)
        added, removed = pods_moved(original.pods, info.pods)
        self._pod_columns.write_scratch(source, row, added, removed)

    def _write_scratch_cell(self, column: NodeColumn, row: int, info: NodeInfo) -> None:
        source = self.rows[info.name]
        if info.node is self.info(source).node:
            column.copy_cell(source, row)
        else:
            column.write_scratch(row, info)

    def _take_row(self, name: str) -> int:
        if self._free:
            row = self._free.pop()
            self.names[row] = name
        else:
            row = self.size
            self._reserve(row + 1)
            self.names.append(name)
            self.infos.append(None)
            self._pod_columns.clear_cell(row)
            self.size += 1
        self.rows[name] = row
        self.live[row] = True
        return row

    def _write_node(self, row: int, info: NodeInfo) -> None:
        self.amounts.write_node(row, info)
        spec = info.node.spec
        self.unschedulable[row] = spec.unschedulable
        self.taint_ids[row] = self._intern_taints(spec.taints) if spec.taints else 0
        for column in self._node_columns.values():
            column.write(row, info)

    def _write_use(self, row: int, info: NodeInfo) -> None:
        self.amounts.write_use(row, info)
        self.generation[row] = info.generation
        if info.used_ports or self.rows_with_ports:
            _mark(self.rows_with_ports, row, bool(info.used_ports))
        if info.pods_with_affinity or self.rows_with_affinity:
            _mark(self.rows_with_affinity, row, bool(info.pods_with_affinity))
            _mark(self.rows_with_anti_affinity, row, bool(info.pods_with_required_anti_affinity))

    def _intern_taints(self, taints: tuple[Taint, ...]) -> int:
        bare = tuple(Taint(key=taint.key, value=taint.value, effect=taint.effect) for taint in taints)
        number = self._taint_index.get(bare)
        if number is None:
            number = self._taint_index[bare] = len(self.taint_sets)
            self.taint_sets.append(bare)
        return number

    # -- room ------------------------------------------------------------------------------------------------------

    def _reserve(self, rows: int) -> None:
        if rows <= self.capacity:
            return
        while self.capacity < rows:
            self.capacity *= 2
        self.live = _longer(self.live, self.capacity)
        self.unschedulable = _longer(self.unschedulable, self.capacity)
        self.generation = _longer(self.generation, self.capacity)
        self.amounts.resize(self.capacity)
        self.taint_ids = _longer(self.taint_ids, self.capacity)
        for node_column in self._node_columns.values():
            node_column.resize(self.capacity)
        self._pod_columns.resize(self.capacity)


_NO_PODS: Mapping[str, PodInfo] = {}
_Scalar = TypeVar("_Scalar", bound=np.generic)


def _longer(array: npt.NDArray[_Scalar], capacity: int) -> npt.NDArray[_Scalar]:
    longer = np.zeros(capacity, dtype=array.dtype)
    longer[: len(array)] = array
    return longer


def _mark(rows: set[int], row: int, present: bool) -> None:
    if present:
        rows.add(row)
    else:
        rows.discard(row)


def _make_room(columns: dict[Hashable, C]) -> None:
    if len(columns) >= MAX_DERIVED:
        del columns[next(iter(columns))]
