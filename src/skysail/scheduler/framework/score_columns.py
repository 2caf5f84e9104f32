"""The weighted total of every row, for pods of one signature, kept up to date as rows change.

Holds the answers of the Score plugins that are not GLOBAL, in two groups:

    merged    table plugins that do not normalise: one sum, kept up to date row by row
    scaled    plugins that normalise, and simple ones: a raw column each, and a normalised one that is true for the
              extremes of the rows that passed when it was computed

Invariant after `totals`: for every passing row the total is what `run_scores` with the same plugins would add up.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from skysail.api.core import Pod
from skysail.scheduler.cache.matrices import RowIndex, Rows
from skysail.scheduler.cache.table import NodeTable
from skysail.scheduler.framework.codes import MAX_NODE_SCORE, Reads, ScoreArray
from skysail.scheduler.framework.cycle_state import CycleState
from skysail.scheduler.framework.evaluation import TotalArray
from skysail.scheduler.framework.filter_columns import Changes
from skysail.scheduler.framework.score_cards import Given
from skysail.scheduler.framework.steps import Mask, ScoreStep

UNKNOWN = np.iinfo(np.int64).min
LOWEST, HIGHEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


class ScaledColumn:
    """One plugin's raw scores and what they come to after normalising.

    Attributes:
        step: The plugin.
        raw: (capacity,) int64; UNKNOWN where a simple plugin was not asked yet.
        normalized: (capacity,) int64, 0..100, true for the extremes `low` and `high`.
        constant: The one raw score that all live rows have, if they do.
    """

    __slots__ = ("constant", "high", "low", "normalized", "raw", "step")

    def __init__(self, step: ScoreStep, capacity: int) -> None:
        self.step = step
        self.raw: ScoreArray = np.zeros(capacity, dtype=np.int64)
        self.normalized: ScoreArray = np.zeros(capacity, dtype=np.int64)
        self.low, self.high = 1, 0
        self.constant: int | None = None

    def note_constant(self, table: NodeTable) -> None:
        """See whether all live rows have the same raw score: no extremes to look for, the same to add everywhere."""
        size = table.size
        raw = self.raw[:size][table.live[:size]]
        self.constant = int(raw[0]) if len(raw) and (raw[0] == raw).all() else None

    def extremes(self, passing: Mask) -> tuple[int, int]:
        """The least and the greatest raw score among the passing rows."""
        if self.constant is not None:
            return self.constant, self.constant
        raw = self.raw[: len(passing)]
        return int(np.where(passing, raw, HIGHEST).min()), int(np.where(passing, raw, LOWEST).max())


class ScoreColumns:
    """The columns.

    Args:
        steps: Score plugins that are not GLOBAL and that PreScore did not skip.
        table: The table whose rows are answered for.
        dtype: What totals fit into.
    """

    def __init__(self, steps: Sequence[ScoreStep], table: NodeTable, dtype: npt.DTypeLike) -> None:
        self._table = table
        self._dtype = np.dtype(dtype)
        self._changes = Changes()
        merged = [step for step in steps if not step.normalizes and not step.simple]
        self.merged = tuple(merged)
        """The plugins of which only the sum is kept."""
        self._merged_rows = tuple(step for step in merged if step.reads is Reads.ROW)
        self._merged_nodes = tuple(step for step in merged if step.reads is not Reads.ROW)
        self._scaled_steps = tuple(step for step in steps if step.normalizes or step.simple)
        self._resize(0)

    def _resize(self, capacity: int) -> None:
        self._sum: TotalArray = np.zeros(capacity, dtype=self._dtype)
        self._node_sum: TotalArray | None = None
        self._total: TotalArray = np.zeros(capacity, dtype=self._dtype)
        self._ranked: TotalArray = np.full(capacity, -1, dtype=self._dtype)
        self._scaled = [ScaledColumn(step, capacity) for step in self._scaled_steps]

    def totals(self, state: CycleState, pod: Pod, passing: Mask, usual: Mask) -> TotalArray:
        """Ask again about rows that changed, normalise anew where the extremes moved, add up.

        Args:
            state: After PreScore.
            pod: Under test.
            passing: (size,) bool, the feasible rows.
            usual: (size,) bool, the rows that the filter columns let pass: `passing` itself, unless nominated pods, a
                GLOBAL plugin, an extender or a limit took some away. The masked totals are kept for these.

        Returns:
            (size,) integers, a view: the total at passing rows; elsewhere -1 when `passing` is `usual`, else anything.

        Raises:
            PluginFailed: A plugin raised, failed, or scored out of range; the columns are then to be thrown away.
        """
        changes, table = self._changes, self._table
        rows: Rows | None = None
        merged: TotalArray | None = None
        if changes.read(table):
            if len(self._sum) != table.capacity:
                self._resize(table.capacity)
            merged = self._ask(changes, state, pod)
            rows = asked = changes.rows
        if self._scaled:
            rows = self._normalize(changes, state, pod, passing, rows)
        if rows is not None:
            self._add_up(rows, usual, merged if merged is not None and rows is asked else self._sum[rows])
        size = table.size
        return self._ranked[:size] if passing is usual else self._total[:size]

    def given(self, row: int) -> list[Given]:
        """What the scaled plugins gave a passing row, as of the last `totals`."""
        return [(each.step, each.raw.item(row), each.normalized.item(row)) for each in self._scaled]

    def _add_up(self, rows: Rows, usual: Mask, total: TotalArray) -> None:
        if self._node_sum is not None:
            total = total + self._node_sum[rows]
        same, any_live = 0, -1
        for column in self._scaled:
            if column.constant is not None:
                any_live = int(usual.argmax()) if any_live < 0 else any_live
                same += column.step.weight * int(column.normalized[any_live])
            else:
                total = total + self._weighted(column.normalized[rows], column.step.weight)
        if same:
            total = total + same
        self._total[rows] = total
        kept = usual[rows]
        self._ranked[rows] = total if np.count_nonzero(kept) == len(kept) else np.where(kept, total, -1)

    def _weighted(self, scores: ScoreArray, weight: int) -> TotalArray:
        narrow = scores.astype(self._dtype)
        return narrow if weight == 1 else narrow * self._dtype.type(weight)

    def _ask(self, changes: Changes, state: CycleState, pod: Pod) -> TotalArray | None:
        """Ask about the rows that changed; the new sums at `changes.rows`, if any plugin was asked about these."""
        table, asked, merged = self._table, changes.rows, None
        if asked is not None and self._merged_rows:
            merged = self._ask_merged(self._merged_rows, asked, state, pod)
            self._sum[asked] = merged
        if changes.node_rows is not None and self._merged_nodes:
            self._ask_nodes(changes, state, pod)
        for column in self._scaled:
            rows = changes.concern(column.step.reads, table)
            if rows is None:
                continue
            if column.step.simple:
                column.raw[rows] = UNKNOWN
                continue
            column.raw[rows] = column.step.ask(state, pod, table, rows)
            column.note_constant(table)
        return merged if changes.rows is asked else None

    def _ask_merged(self, steps: Sequence[ScoreStep], rows: Rows, state: CycleState, pod: Pod) -> TotalArray:
        total: ScoreArray | None = None
        for step in steps:
            scores = step.ask(state, pod, self._table, rows)
            if not step.bounded:
                step.check(scores)
            part = scores if step.weight == 1 else scores * step.weight
            total = part if total is None else total + part
        assert total is not None
        return total.astype(self._dtype)

    def _ask_nodes(self, changes: Changes, state: CycleState, pod: Pod) -> None:
        only_static = all(step.reads is Reads.STATIC for step in self._merged_nodes)
        rows = changes.node_rows if only_static else self._table.all_rows
        assert rows is not None
        part = self._ask_merged(self._merged_nodes, rows, state, pod)
        if self._node_sum is None:
            if not part.any():
                return
            self._node_sum = np.zeros(self._table.capacity, dtype=self._dtype)
        self._node_sum[rows] = part
        if not only_static:
            changes.rows = rows

    def _normalize(
        self, changes: Changes, state: CycleState, pod: Pod, passing: Mask, rows: Rows | None
    ) -> Rows | None:
        """Bring the normalised columns up to date; the rows whose total changed, `rows` included."""
        table = self._table
        for column in self._scaled:
            step = column.step
            asked = self._ask_missing(column, state, pod, passing) if step.simple else None
            extremes = column.extremes(passing)
            if extremes != (column.low, column.high):
                self._rescale(column, table.all_rows, state, passing, extremes)
                rows = table.all_rows
                continue
            touched = asked if step.simple else changes.concern(step.reads, table)
            if touched is not None:
                self._rescale(column, touched, state, passing, extremes)
                rows = touched if rows is None else _either(rows, touched)
        return rows

    @staticmethod
    def _rescale(column: ScaledColumn, rows: Rows, state: CycleState, passing: Mask, extremes: tuple[int, int]) -> None:
        normalized = column.step.normalize(state, column.raw[rows], *extremes)
        if not column.step.bounded:
            column.step.check(normalized[passing[rows]])
        column.normalized[rows] = normalized
        column.low, column.high = extremes

    def _ask_missing(self, column: ScaledColumn, state: CycleState, pod: Pod, passing: Mask) -> RowIndex | None:
        missing = np.flatnonzero(passing & (column.raw[: len(passing)] == UNKNOWN))
        if not len(missing):
            return None
        column.raw[missing] = column.step.ask(state, pod, self._table, missing)
        return missing


def _either(first: Rows, second: Rows) -> Rows:
    if isinstance(first, slice):
        return first
    return second if isinstance(second, slice) else np.concatenate((first, second))


def total_dtype(weights: Sequence[int]) -> npt.DTypeLike:
    """The narrowest integer that holds any total."""
    top = MAX_NODE_SCORE * sum(weights)
    return np.int16 if top <= np.iinfo(np.int16).max else np.int32 if top <= np.iinfo(np.int32).max else np.int64
