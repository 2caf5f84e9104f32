"""The first refusal of every row, for pods of one signature, kept up to date as rows change.

Holds the answers of the Filter plugins that are not GLOBAL. Invariant after `refresh`: for every row `first` is what
`run_filters` with the same plugins would answer. A simple plugin is asked only about rows that all plugins before it
let pass, so for other rows its answer may be UNKNOWN.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from skysail.api.core import Pod
from skysail.scheduler.cache.matrices import RowIndex, Rows
from skysail.scheduler.cache.table import NodeTable
from skysail.scheduler.framework.codes import Codes, Reads
from skysail.scheduler.framework.cycle_state import CycleState
from skysail.scheduler.framework.evaluation import Filtered, StatusIndex
from skysail.scheduler.framework.status import SUCCESS, Status
from skysail.scheduler.framework.steps import FilterStep, Mask

UNKNOWN = np.uint16(0xFFFF)
_ROW, _NODES = Reads.ROW, Reads.NODES
FULL_SHARE = 4
"""When more than a quarter of all rows changed, all are asked again."""


class Changes:
    """Which rows a reader of the table has to read again.

    Attributes:
        rows: Rows with any change: an index, all of them as a slice, or None.
        node_rows: Rows whose Node object changed, alike.
    """

    __slots__ = ("_capacity", "_node_position", "_position", "node_rows", "rows")

    def __init__(self) -> None:
        self._position = self._node_position = -1
        self._capacity = 0
        self.rows: Rows | None = None
        self.node_rows: Rows | None = None

    def read(self, table: NodeTable) -> bool:
        """Take note of what changed since the last call; whether anything did."""
        if self._position == table.log.end and self._capacity == table.capacity:
            self.rows = self.node_rows = None
            return False
        changed, nodes = table.changed_since(self._position), table.node_log.since(self._node_position)
        too_many = changed is None or len(changed) * FULL_SHARE > table.size
        if too_many or self._capacity != table.capacity or nodes is None:
            self.rows = self.node_rows = table.all_rows
        else:
            self.rows = changed
            self.node_rows = nodes if len(nodes) else None
        self._position, self._node_position = table.log.end, table.node_log.end
        self._capacity = table.capacity
        return True

    def concern(self, reads: Reads, table: NodeTable) -> Rows | None:
        """The rows about which a plugin that reads this must be asked again."""
        if reads is _ROW:
            return self.rows
        if self.node_rows is not None and reads is _NODES:
            return table.all_rows
        return self.node_rows


class FilterColumns:
    """The columns.

    Args:
        steps: Filter plugins that are not GLOBAL and that PreFilter did not skip, in the order of the profile.
        table: The table whose rows are answered for.

    Attributes:
        first: (capacity,) uint16, an index into `statuses`; 0 is no refusal.
        passing: (capacity,) bool: live rows without a refusal.
        statuses: Every distinct refusal so far; `statuses[0]` is success.
        orders: For each of them, the place in the profile of the plugin that gave it.
        last_refuser: The largest of these.
    """

    def __init__(self, steps: Sequence[FilterStep], table: NodeTable) -> None:
        self.steps = tuple(steps)
        self._table = table
        self._changes = Changes()
        self._columns: list[StatusIndex | None] = [None] * len(self.steps)
        self._has_simple = any(step.simple for step in self.steps)
        self._row_places = tuple(place for place, step in enumerate(self.steps) if step.reads is _ROW)
        self._reads_nodes = any(step.reads is Reads.NODES for step in self.steps)
        self.first: StatusIndex = np.zeros(0, dtype=np.uint16)
        self.passing: Mask = np.zeros(0, dtype=np.bool_)
        self.statuses: list[Status] = [SUCCESS]
        self.orders: list[int] = [-1]
        self.last_refuser = -1
        self._passing_rows: RowIndex | None = None
        self._index: dict[Status, int] = {}

    def refresh(self, state: CycleState, pod: Pod) -> None:
        """Ask again about rows that changed.

        Raises:
            PluginFailed: A plugin raised or answered with an error; the columns are then to be thrown away.
        """
        changes, table = self._changes, self._table
        if not changes.read(table):
            return
        if len(self.first) != table.capacity:
            self._resize(table.capacity)
        for place in range(len(self.steps)) if changes.node_rows is not None else self._row_places:
            step = self.steps[place]
            rows = changes.concern(step.reads, table)
            if rows is None:
                continue
            if step.simple:
                self._column(place)[rows] = UNKNOWN
            else:
                self._store(place, rows, step.ask(state, pod, table, rows))
        if self._has_simple:
            self._combine_in_order(state, pod)
        elif changes.rows is not None:
            everywhere = self._reads_nodes and changes.node_rows is not None
            self._combine(table.all_rows if everywhere else changes.rows, dead_possible=changes.node_rows is not None)

    def passing_rows(self) -> RowIndex:
        """The passing rows one by one, ascending; remembered until one changes."""
        if self._passing_rows is None:
            self._passing_rows = np.flatnonzero(self.passing[: self._table.size])
        return self._passing_rows

    def answers(self) -> Filtered:
        """The answers, as views over all rows."""
        size = self._table.size
        return Filtered(self.first[:size], self.statuses, self.passing[:size])

    def _resize(self, capacity: int) -> None:
        self._columns = [None] * len(self.steps)
        self.first = np.zeros(capacity, dtype=np.uint16)
        self.passing = np.zeros(capacity, dtype=np.bool_)

    def _column(self, place: int) -> StatusIndex:
        column = self._columns[place]
        if column is None:
            column = self._columns[place] = np.zeros(len(self.first), dtype=np.uint16)
        return column

    def _store(self, place: int, rows: Rows, codes: Codes) -> None:
        if codes.statuses:
            numbers = [0, *(self._number(status, place) for status in codes.statuses)]
            self._column(place)[rows] = np.array(numbers, dtype=np.uint16)[codes.codes]
        else:
            column = self._columns[place]
            if column is not None:
                column[rows] = 0

    def _number(self, status: Status, place: int) -> int:
        number = self._index.get(status)
        if number is None:
            number = self._index[status] = len(self.statuses)
            self.statuses.append(status)
            self.orders.append(self.steps[place].order)
            self.last_refuser = max(self.last_refuser, self.steps[place].order)
        return number

    def _combine(self, rows: Rows, *, dead_possible: bool) -> None:
        first: npt.NDArray[np.uint16] | None = None
        for column in reversed(self._columns):
            if column is not None:
                mine = column[rows]
                first = mine if first is None else np.where(mine != 0, mine, first)
        if first is None:
            kept = self.passing[rows]
            if not dead_possible and np.count_nonzero(kept) == len(kept):
                return
            passing = self._table.live[rows]
            self.first[rows] = 0
        else:
            passing = first == 0
            if dead_possible:
                live = self._table.live[rows]
                first = np.where(live, first, 0)
                passing &= live
            self.first[rows] = first
        if self._passing_rows is None or (self.passing[rows] != passing).any():
            self.passing[rows] = passing
            self._passing_rows = None

    def _combine_in_order(self, state: CycleState, pod: Pod) -> None:
        """The form for profiles with simple plugins: whole columns, and questions where an answer is missing."""
        table = self._table
        size = table.size
        passing: Mask = table.live[:size].copy()
        first: StatusIndex = np.zeros(size, dtype=np.uint16)
        for place, step in enumerate(self.steps):
            column = self._columns[place]
            if column is None:
                continue
            if step.simple:
                missing: RowIndex = np.flatnonzero(passing & (column[:size] == UNKNOWN))
                if len(missing):
                    codes = step.ask(state, pod, table, missing)
                    column[missing] = 0
                    self._store(place, missing, codes)
            refused = passing & (column[:size] != 0)
            first[refused] = column[:size][refused]
            passing &= ~refused
        self.first[:size], self.passing[:size] = first, passing
        self._passing_rows = None
