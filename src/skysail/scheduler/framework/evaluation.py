"""The full evaluation: every enabled plugin asked about every row, in the order of the profile.

This is the plain path. It answers for `/diagnose` and `skysail explain`, for rows that a what-if changed, and it is the
oracle that the incremental path (`incremental`) must equal.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from skysail.api.core import Pod
from skysail.scheduler.cache.matrices import RowIndex, Rows
from skysail.scheduler.cache.pod_info import PodInfo
from skysail.scheduler.cache.table import NodeTable
from skysail.scheduler.framework.codes import Codes, Reads, ScoreArray, zero_scores
from skysail.scheduler.framework.cycle_state import CycleState
from skysail.scheduler.framework.plugin import ALL_NODES, PreFilterResult
from skysail.scheduler.framework.runner import Framework
from skysail.scheduler.framework.score_cards import Given, Unread
from skysail.scheduler.framework.status import SUCCESS, Code, Status
from skysail.scheduler.framework.steps import FilterStep, Mask, PreScoreStep, ScoreStep

StatusIndex: TypeAlias = npt.NDArray[np.uint16]
TotalArray: TypeAlias = npt.NDArray[np.signedinteger[Any]]
"""Weighted sums: int16 where they fit, else wider."""
RowAnswers: TypeAlias = dict[int, tuple[int, list[PodInfo], Status]]
"""By row, an answer with what it was an answer about: the account's generation, and the pods promised room there."""


@dataclass(frozen=True, slots=True)
class PreFilterOutcome:
    """What the PreFilter phase decided.

    Attributes:
        status: Success, a refusal for all nodes (signed), or an error.
        result: The nodes to look at.
        restricted_by: Who narrowed the search.
    """

    status: Status
    result: PreFilterResult = ALL_NODES
    restricted_by: frozenset[str] = frozenset()


class PreFilterAnswer(Protocol):
    """A PreFilter plugin, or its remembered answer."""

    @property
    def name(self) -> str:
        """The plugin's name."""
        ...

    def ask(self, state: CycleState, pod: Pod, table: NodeTable) -> tuple[Status, PreFilterResult]:
        """Success, Skip or a signed refusal."""
        ...


def run_pre_filter(steps: Iterable[PreFilterAnswer], state: CycleState, pod: Pod, table: NodeTable) -> PreFilterOutcome:
    """Run the phase: the first unresolvable refusal ends it, others let the rest run first; node sets meet.

    Raises:
        PluginFailed: A plugin raised or answered with an error.
    """
    skipped: set[str] = set()
    result, restricted_by, refusal = ALL_NODES, frozenset[str](), SUCCESS
    for step in steps:
        status, narrowed = step.ask(state, pod, table)
        if status.is_skip:
            skipped.add(step.name)
            state.skip_filter_plugins = frozenset(skipped)
            continue
        if status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return PreFilterOutcome(status)
        if not status.is_success:
            refusal = status
            continue
        if narrowed.node_names is not None:
            restricted_by |= {step.name}
        result = result.merge(narrowed)
        if result.node_names is not None and not result.node_names:
            return PreFilterOutcome(_nothing_left(restricted_by), result, restricted_by)
    return PreFilterOutcome(refusal, result, restricted_by)


def _nothing_left(restricted_by: frozenset[str]) -> Status:
    names = sorted(restricted_by)
    if len(names) == 1:
        return Status.unresolvable(f"node(s) didn't satisfy plugin {names[0]}")
    return Status.unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(names)}] simultaneously")


class Filtered:
    """What the Filter phase decided for some rows.

    Args:
        first: See below.
        statuses: The distinct refusals; `statuses[0]` is success.
        passing: See below.
        later: Codes of plugins that stand behind all others, merged only when somebody asks why.

    Attributes:
        passing: (n_rows,) bool: live rows without a refusal.
    """

    __slots__ = ("_first", "_later", "_statuses", "passing")

    def __init__(
        self, first: StatusIndex, statuses: Sequence[Status], passing: Mask, later: Sequence[tuple[Mask, Codes]] = ()
    ) -> None:
        self._first, self._statuses, self._later = first, statuses, later
        self.passing = passing

    @property
    def first(self) -> StatusIndex:
        """(n_rows,) uint16: 0 is no refusal, else an index into `statuses`: the first in the order of the profile."""
        self._merge()
        return self._first

    @property
    def statuses(self) -> Sequence[Status]:
        """The distinct refusals; `statuses[0]` is success."""
        self._merge()
        return self._statuses

    def _merge(self) -> None:
        if not self._later:
            return
        first, statuses = self._first.copy(), list(self._statuses)
        for before, codes in self._later:
            refused = (codes.codes != 0) & before
            first[refused] = codes.codes[refused] + np.uint16(len(statuses) - 1)
            statuses += codes.statuses
        self._first, self._statuses, self._later = first, statuses, ()


def run_filters(steps: Iterable[FilterStep], state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Filtered:
    """Ask every Filter plugin that PreFilter did not skip; a row's answer is the first refusal.

    Args:
        steps: The plugins.
        state: After PreFilter.
        pod: Under test.
        table: Where the rows are.
        rows: All rows, dead ones included, as a slice, or an index of live or scratch rows.

    Raises:
        PluginFailed: A plugin raised or answered with an error.
    """
    passing: Mask = table.live[rows].copy() if isinstance(rows, slice) else np.ones(len(rows), dtype=np.bool_)
    first: StatusIndex = np.zeros(len(passing), dtype=np.uint16)
    statuses: list[Status] = [SUCCESS]
    for step in steps:
        if step.name in state.skip_filter_plugins:
            continue
        codes = step.ask(state, pod, table, rows, passing)
        if codes.statuses:
            refused = (codes.codes != 0) & passing
            first[refused] = codes.codes[refused] + np.uint16(len(statuses) - 1)
            statuses += codes.statuses
            passing &= ~refused
    return Filtered(first, statuses, passing)


def run_pre_score(steps: Iterable[PreScoreStep], state: CycleState, pod: Pod, table: NodeTable, rows: RowIndex) -> None:
    """Run the phase; plugins that answer Skip are not asked to score.

    Raises:
        PluginFailed: A plugin raised or answered with a failure.
    """
    state.skip_score_plugins = frozenset([step.name for step in steps if step.skips(state, pod, table, rows)])


@dataclass(frozen=True, slots=True)
class PluginScores:
    """One plugin's scores of the feasible rows, in their order.

    Attributes:
        name: The plugin.
        weight: Its weight.
        raw: As the plugin gave them.
        normalized: 0..100.
    """

    name: str
    weight: int
    raw: ScoreArray
    normalized: ScoreArray


@dataclass(frozen=True, slots=True)
class Scored:
    """What the Score phase decided for the feasible rows, in their order."""

    plugins: tuple[PluginScores, ...]
    totals: ScoreArray


def run_scores(
    steps: Iterable[ScoreStep],
    state: CycleState,
    pod: Pod,
    table: NodeTable,
    rows: RowIndex,
    *,
    everything: bool = False,
) -> Scored:
    """Ask every Score plugin that PreScore did not skip, normalise, weigh and add up.

    Args:
        steps: The plugins.
        state: After PreScore.
        pod: Under test.
        table: The nodes.
        rows: The feasible rows, in any order; all of them live rows, or all of them scratch rows.
        everything: Whether these are all rows of the table, ascending.

    Raises:
        PluginFailed: A plugin raised, failed, or scored out of range.
    """
    scores = []
    # Reading whole columns and picking is quicker than picking from every column, once most rows are wanted.
    whole = len(rows) * 2 > table.size > rows[0]
    totals: ScoreArray = np.zeros(len(rows), dtype=np.int64)
    for step in steps:
        if step.name in state.skip_score_plugins:
            continue
        if step.idle(state.pod_info):
            nothing = zero_scores(rows)
            scores.append(PluginScores(step.name, step.weight, nothing, nothing))
            continue
        if whole and not step.simple and step.reads is not Reads.GLOBAL:
            raw = step.ask(state, pod, table, table.all_rows)
            raw = raw if everything else raw[rows]
        else:
            raw = step.ask(state, pod, table, rows)
        normalized = raw
        if step.normalizes:
            low, high = (int(raw.min()), int(raw.max())) if len(raw) else (0, 0)
            normalized = step.normalize(state, raw, low, high)
        step.check(normalized)
        totals += normalized if step.weight == 1 else step.weight * normalized
        scores.append(PluginScores(step.name, step.weight, raw, normalized))
    return Scored(tuple(scores), totals)


class Evaluator(Protocol):
    """Answers for one pod over one table: the plain form below, or the incremental one.

    Attributes:
        state: This attempt's memory.
        with_nominated: Answers about rows with the pods nominated there, as far as they are remembered.
    """

    state: CycleState
    with_nominated: RowAnswers

    def pre_filter(self) -> PreFilterOutcome:
        """Run the phase."""
        ...

    def filter(self) -> Filtered:
        """Run the phase over all rows."""
        ...

    def totals(self, passing: Mask) -> TotalArray:
        """Run PreScore and Score for the passing rows.

        Returns:
            (size,) integers: the weighted sum at passing rows, -1 elsewhere. To be read before the next call.
        """
        ...

    def given(self, row: int) -> Sequence[Given]:
        """What plugins gave a passing row; after `totals`."""
        ...

    def unread(self) -> Unread:
        """The plugins that are not among `given`: to be asked again when somebody wants to know."""
        ...


class PlainEvaluator:
    """Asks every plugin about every row, each time."""

    def __init__(self, framework: Framework, table: NodeTable, pod_info: PodInfo) -> None:
        self._framework = framework
        self._table = table
        self._pod = pod_info.pod
        self._scored: tuple[RowIndex, Scored] | None = None
        self.state = CycleState(pod_info)
        self.with_nominated: RowAnswers = {}

    def pre_filter(self) -> PreFilterOutcome:
        """Run the phase."""
        return run_pre_filter(self._framework.pre_filter, self.state, self._pod, self._table)

    def filter(self) -> Filtered:
        """Run the phase over all rows."""
        return run_filters(self._framework.filters, self.state, self._pod, self._table, self._table.all_rows)

    def totals(self, passing: Mask) -> TotalArray:
        """Run PreScore and Score for the passing rows."""
        rows = np.flatnonzero(passing)
        everything = len(rows) == self._table.size
        framework, state, pod, table = self._framework, self.state, self._pod, self._table
        run_pre_score(framework.pre_score, state, pod, table, rows)
        scored = run_scores(framework.scores, state, pod, table, rows, everything=everything)
        self._scored = rows, scored
        if everything:
            return scored.totals
        totals: TotalArray = np.full(len(passing), -1, dtype=np.int64)
        totals[rows] = scored.totals
        return totals

    def given(self, row: int) -> Sequence[Given]:
        """What plugins gave a passing row; after `totals`."""
        assert self._scored is not None
        rows, scored = self._scored
        place, steps = int(rows.searchsorted(row)), {step.name: step for step in self._framework.scores}
        return [(steps[each.name], each.raw.item(place), each.normalized.item(place)) for each in scored.plugins]

    def unread(self) -> Unread:
        """Nobody."""
        return Unread((), self.state, self._pod, self._table)


def score_rows(framework: Framework, state: CycleState, pod: Pod, table: NodeTable, rows: RowIndex) -> Scored:
    """PreScore and Score for these feasible rows.

    Raises:
        PluginFailed: A plugin raised, failed, or scored out of range.
    """
    run_pre_score(framework.pre_score, state, pod, table, rows)
    return run_scores(framework.scores, state, pod, table, rows)
