"""The incremental evaluation: pods of one signature share columns, and only rows that changed are asked about again.

    plugin reads      its PreFilter and PreScore     its Filter and Score
    STATIC, ROW,      once for each signature        for rows that changed since the signature was last used
    NODES
    GLOBAL            at every attempt               at every attempt, for all rows; on top of the shared columns

The answers are those of `PlainEvaluator`, which stays the oracle; a property test compares the two over random
histories of pods and nodes coming and going. At most `MAX_SIGNATURES` are kept for a table, the one least recently used
goes first; what is lost is computed again.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from skysail.scheduler.cache.matrices import RowIndex
from skysail.scheduler.cache.pod_info import PodInfo
from skysail.scheduler.cache.table import NO_ROWS, NodeTable
from skysail.scheduler.framework.codes import Codes, Reads, ScoreArray
from skysail.scheduler.framework.cycle_state import CycleState
from skysail.scheduler.framework.evaluation import (
    Filtered,
    PreFilterAnswer,
    PreFilterOutcome,
    RowAnswers,
    TotalArray,
    run_pre_filter,
)
from skysail.scheduler.framework.filter_columns import FilterColumns
from skysail.scheduler.framework.plugin import ALL_NODES, PreFilterResult
from skysail.scheduler.framework.runner import Framework
from skysail.scheduler.framework.score_cards import Given, Unread
from skysail.scheduler.framework.score_columns import ScoreColumns, total_dtype
from skysail.scheduler.framework.status import SKIP, SUCCESS, Code, Status
from skysail.scheduler.framework.steps import FilterStep, Mask, ScoreStep

MAX_SIGNATURES = 64


@dataclass(frozen=True, slots=True)
class _Remembered:
    """A PreFilter plugin's answer for every pod of the signature."""

    name: str
    answer: tuple[Status, PreFilterResult]

    def ask(self, state: CycleState, pod: object, table: NodeTable) -> tuple[Status, PreFilterResult]:
        """The answer."""
        return self.answer


_SKIPPED = (SKIP, ALL_NODES)


class SignatureEntry:
    """What pods of one signature share.

    Args:
        framework: The profile.
        table: The nodes.
        pod_info: The first pod of the signature.

    Raises:
        PluginFailed: A PreFilter plugin raised or answered with an error.
    """

    def __init__(self, framework: Framework, table: NodeTable, pod_info: PodInfo) -> None:
        self._framework = framework
        self._table = table
        self.last_used = 0
        """The end of the table's log at the last attempt."""
        self.base = CycleState(pod_info)
        self.pre_filter: list[PreFilterAnswer] = []
        skipped: set[str] = set()
        idle = framework.idle_plugins(pod_info)
        self.plain = True
        """Whether no remembered answer refuses or narrows."""
        for step in framework.pre_filter:
            if step.name in idle:
                self.pre_filter.append(_Remembered(step.name, _SKIPPED))
                skipped.add(step.name)
                continue
            if step.reads is Reads.GLOBAL:
                self.pre_filter.append(step)
                continue
            answer = step.ask(self.base, pod_info.pod, table)
            self.pre_filter.append(_Remembered(step.name, answer))
            if answer[0].is_skip:
                skipped.add(step.name)
            elif not answer[0].is_success or answer[1].node_names is not None:
                self.plain = False
        self.skipped = frozenset(skipped)
        self.base.skip_filter_plugins = self.skipped
        self.global_pre_filter = tuple(
            step for step in framework.pre_filter if step.reads is Reads.GLOBAL and step.name not in skipped
        )
        shared = [step for step in framework.filters if step.reads is not Reads.GLOBAL]
        self.filters = FilterColumns([step for step in shared if step.name not in skipped], table)
        self.idle = idle
        self._after_skips: dict[tuple[str, ...], tuple[frozenset[str], tuple[FilterStep, ...]]] = {}
        self.with_nominated: RowAnswers = {}
        self._scores: ScoreColumns | None = None
        self.skipped_scores: frozenset[str] = frozenset()
        self.global_pre_score = tuple(
            step for step in framework.pre_score if step.reads is Reads.GLOBAL and step.name not in idle
        )
        self._after_score_skips: dict[tuple[str, ...], tuple[frozenset[str], tuple[ScoreStep, ...]]] = {}

    def after_skips(self, skipped: tuple[str, ...]) -> tuple[frozenset[str], tuple[FilterStep, ...]]:
        """All plugins that skip Filter when these GLOBAL ones do, and the GLOBAL ones that are left."""
        found = self._after_skips.get(skipped)
        if found is None:
            every = self.skipped.union(skipped)
            steps = self._framework.filters
            left = tuple(step for step in steps if step.reads is Reads.GLOBAL and step.name not in every)
            found = self._after_skips[skipped] = (every, left)
        return found

    def after_score_skips(self, skipped: tuple[str, ...]) -> tuple[frozenset[str], tuple[ScoreStep, ...]]:
        """All plugins that skip Score when these GLOBAL ones do, and the GLOBAL ones that are left."""
        found = self._after_score_skips.get(skipped)
        if found is None:
            every = self.skipped_scores.union(skipped)
            idle, steps = self.idle, self._framework.scores
            left = tuple(
                step
                for step in steps
                if step.reads is Reads.GLOBAL and step.name not in every and step.name not in idle
            )
            found = self._after_score_skips[skipped] = (every, left)
        return found

    def scores(self, pod_info: PodInfo) -> ScoreColumns:
        """The score columns, made when a pod of the signature first has a choice.

        Raises:
            PluginFailed: A PreScore plugin raised or failed.
        """
        if self._scores is None:
            framework, table = self._framework, self._table
            self.skipped_scores = frozenset(
                step.name
                for step in framework.pre_score
                if step.name in self.idle
                or (step.reads is not Reads.GLOBAL and step.skips(self.base, pod_info.pod, table, NO_ROWS))
            )
            shared = [
                step
                for step in framework.scores
                if step.reads is not Reads.GLOBAL and step.name not in self.skipped_scores
            ]
            self._scores = ScoreColumns(shared, table, total_dtype([step.weight for step in framework.scores]))
        return self._scores


class IncrementalEvaluator:
    """Answers for one pod, from its signature's columns (see `Evaluator`)."""

    def __init__(self, framework: Framework, table: NodeTable, pod_info: PodInfo) -> None:
        self._framework = framework
        self._table = table
        self._pod_info = pod_info
        self._pod = pod_info.pod
        self._entries = _entries(framework, table)
        self._signature = framework.sign(pod_info)
        entry = self._entries.get(self._signature)
        if entry is None:
            entry = SignatureEntry(framework, table, pod_info)
            if len(self._entries) >= MAX_SIGNATURES:
                del self._entries[min(self._entries, key=lambda signature: self._entries[signature].last_used)]
            self._entries[self._signature] = entry
        entry.last_used = table.log.end
        self._entry = entry
        self._usual: Mask = np.zeros(0, dtype=np.bool_)
        self._rows: RowIndex | None = None
        self._active: tuple[FilterStep, ...] | None = None
        self._asked: list[tuple[ScoreStep, RowIndex, ScoreArray, ScoreArray]] = []
        self.state = entry.base.fork(pod_info)
        self.with_nominated = entry.with_nominated

    def pre_filter(self) -> PreFilterOutcome:
        """Run the phase: GLOBAL plugins are asked, the others remembered."""
        entry, state = self._entry, self.state
        if not entry.plain:
            return run_pre_filter(entry.pre_filter, state, self._pod, self._table)
        skipped: tuple[str, ...] = ()
        for step in entry.global_pre_filter:
            status, narrowed = step.ask(state, self._pod, self._table)
            if status.code is _SKIP:
                skipped += (step.name,)
            elif status.code is not _SUCCESS or narrowed is not ALL_NODES:
                return run_pre_filter(entry.pre_filter, state, self._pod, self._table)
        state.skip_filter_plugins, self._active = entry.after_skips(skipped)
        return _ALL_WELL

    def filter(self) -> Filtered:
        """Run the phase: the shared columns, then GLOBAL plugins on top."""
        entry, state = self._entry, self.state
        try:
            entry.filters.refresh(state, self._pod)
        except Exception:
            self._forget()
            raise
        shared = entry.filters.answers()
        self._usual = shared.passing
        active = self._active
        if active is None:  # PreFilter took the long way
            skipped = state.skip_filter_plugins
            steps = self._framework.filters
            active = tuple(step for step in steps if step.reads is Reads.GLOBAL and step.name not in skipped)
        return self._with_global(shared, active) if active else shared

    def _with_global(self, shared: Filtered, active: tuple[FilterStep, ...]) -> Filtered:
        table, state, pod = self._table, self.state, self._pod
        passing = shared.passing
        last = self._entry.filters.last_refuser
        later: list[tuple[Mask, Codes]] = []
        for step in active:
            # A GLOBAL plugin may stand before a shared one that refused the row: the earlier refusal is told.
            before = passing if step.order > last else self._not_refused_before(step.order, passing)
            codes = step.ask(state, pod, table, table.all_rows, before)
            if codes.statuses:
                later.append((before, codes))
                passing = passing & (codes.codes == 0)
        return Filtered(shared.first, shared.statuses, passing, later)

    def _not_refused_before(self, order: int, passing: Mask) -> Mask:
        columns = self._entry.filters
        orders = np.array(columns.orders, dtype=np.int64)
        size = self._table.size
        refused_later: Mask = (orders[columns.first[:size]] > order) & self._table.live[:size]
        return passing | refused_later

    def totals(self, passing: Mask) -> TotalArray:
        """Run PreScore and Score for the passing rows: the shared columns, and GLOBAL plugins on top."""
        entry = self._entry
        try:
            columns = entry.scores(self._pod_info)
            self.state.adopt(entry.base)
            totals = columns.totals(self.state, self._pod, passing, self._usual)
        except Exception:
            self._forget()
            raise
        active = self._pre_score(passing)
        if not active and passing is self._usual:
            return totals
        totals = np.where(passing, totals, -1)
        if not active:
            return totals
        rows = self._rows_of(passing)
        for step in active:
            raw = step.ask(self.state, self._pod, self._table, rows)
            normalized = step.normalize(self.state, raw, int(raw.min()), int(raw.max()))
            step.check(normalized)
            self._asked.append((step, rows, raw, normalized))
            totals[rows] += (step.weight * normalized).astype(totals.dtype)
        return totals

    def given(self, row: int) -> Sequence[Given]:
        """What plugins gave a passing row; after `totals`."""
        found = self._entry.scores(self._pod_info).given(row)
        for step, rows, raw, normalized in self._asked:
            place = int(rows.searchsorted(row))
            found.append((step, raw.item(place), normalized.item(place)))
        return found

    def unread(self) -> Unread:
        """The plugins that are not among `given`."""
        entry = self._entry
        return Unread(entry.scores(self._pod_info).merged, entry.base, self._pod, self._table)

    def _pre_score(self, passing: Mask) -> tuple[ScoreStep, ...]:
        """Run the GLOBAL plugins' phase; the GLOBAL plugins that have something to score."""
        entry, state, skipped = self._entry, self.state, tuple[str, ...]()
        if entry.global_pre_score:
            rows = self._rows_of(passing)
            for step in entry.global_pre_score:
                if step.skips(state, self._pod, self._table, rows):
                    skipped += (step.name,)
        state.skip_score_plugins, active = entry.after_score_skips(skipped)
        return active

    def _rows_of(self, passing: Mask) -> RowIndex:
        """The passing rows one by one."""
        if passing is self._usual:
            return self._entry.filters.passing_rows()
        if self._rows is None:
            self._rows = np.flatnonzero(passing)
        return self._rows

    def _forget(self) -> None:
        """Throw the columns away: a plugin, or a bug, left them half changed."""
        self._entries.pop(self._signature, None)


_ALL_WELL = PreFilterOutcome(SUCCESS)
_SKIP, _SUCCESS = Code.SKIP, Code.SUCCESS


def _entries(framework: Framework, table: NodeTable) -> dict[Hashable, SignatureEntry]:
    """The table's entries for a profile."""
    kept = table.memo.get(framework)
    if kept is None:
        kept = table.memo[framework] = {}
    return kept  # type: ignore[return-value]
