"""One scheduling decision, from PreFilter to the pick. A pure function of the snapshot and the dice.

    PreFilter -> Filter -> nominated pods -> [extenders] -> PreScore -> Score -> normalise -> weigh -> pick

Read `schedule_pod` first. The cycle (`skysail.scheduler.cycle`) calls `find_feasible` and `choose` by themselves when
extenders have a say in between.

Source: pkg/scheduler/schedule_one.go `schedulePod`, v1.36.
"""

import random
from dataclasses import dataclass, field

import numpy as np

from skysail.scheduler.cache.matrices import RowIndex
from skysail.scheduler.cache.pod_info import PodInfo
from skysail.scheduler.cache.snapshot import Snapshot
from skysail.scheduler.cache.table import NodeTable
from skysail.scheduler.framework.codes import ScoreArray
from skysail.scheduler.framework.containment import PluginFailed
from skysail.scheduler.framework.conversation import ExtenderCall
from skysail.scheduler.framework.cycle_state import CycleState
from skysail.scheduler.framework.diagnosis import NO_NODES, Diagnosis, NodeStatuses
from skysail.scheduler.framework.evaluation import (
    Evaluator,
    Filtered,
    PlainEvaluator,
    PreFilterOutcome,
    TotalArray,
    run_filters,
)
from skysail.scheduler.framework.handle import Nominations
from skysail.scheduler.framework.incremental import IncrementalEvaluator
from skysail.scheduler.framework.nominated import refusals_with_nominated_pods
from skysail.scheduler.framework.runner import Framework
from skysail.scheduler.framework.score_cards import Scoring
from skysail.scheduler.framework.status import SUCCESS, Code, Status
from skysail.scheduler.framework.steps import Mask


@dataclass(frozen=True, slots=True)
class SearchLimit:
    """How far to look, when not at every node.

    Attributes:
        to_find: Feasible nodes that are enough.
        start: Where in the snapshot's visiting order to begin.
    """

    to_find: int
    start: int = 0


_NOTHING: Mask = np.zeros(0, dtype=np.bool_)


@dataclass(slots=True)
class Attempt:
    """One pod's attempt, as far as it got.

    Attributes:
        framework: The profile.
        table: The nodes.
        pod_info: The pod under test.
        evaluator: Answers for the pod; holds the cycle state.
        outcome: Of PreFilter.
        filtered: Of Filter; the arrays are over `rows`.
        rows: The rows looked at, or None for all of them.
        passing: (size,) bool: feasible rows; extenders may take some away.
        feasible: How many.
        looked_at: How many nodes were looked at.
        refusals: Rows refused because of nominated pods.
        nominated: Whether the pod's own nomination settled the search.
        scoring: Of Score; None when there was nothing to choose.
    """

    framework: Framework
    table: NodeTable
    pod_info: PodInfo
    evaluator: Evaluator
    outcome: PreFilterOutcome
    filtered: Filtered | None = None
    rows: RowIndex | None = None
    passing: Mask = field(default_factory=lambda: _NOTHING)
    feasible: int = 0
    looked_at: int = 0
    refusals: dict[int, Status] = field(default_factory=dict)
    nominated: bool = False
    scoring: Scoring | None = None

    @property
    def state(self) -> CycleState:
        """What plugins remember of this attempt."""
        return self.evaluator.state

    def feasible_rows(self) -> RowIndex:
        """The feasible rows, ascending."""
        return np.flatnonzero(self.passing)


@dataclass(slots=True)
class ScheduleResult:
    """A decision; not to be changed (a frozen dataclass takes ten times as long to make).

    Attributes:
        status: Success with a node; Unschedulable with a diagnosis whose `message()` says why; Error; or
            UnschedulableAndUnresolvable, without a diagnosis, when there are no nodes.
        state: The attempt's memory, for the points that follow; None when there was no attempt.
        node_name: The chosen node.
        total: Its weighted score; 0 when it was the only feasible node and nothing was scored.
        ties: How many nodes shared that score.
        evaluated_nodes: Nodes looked at.
        feasible_nodes: Nodes that passed.
        diagnosis: Why the others did not.
        calls: What extenders were asked, and what came of it.
        outcome: Of PreFilter.
        scoring: Of Score; None when there was nothing to choose.
        limit: How far it was to look; None is everywhere.
    """

    status: Status
    state: CycleState | None = None
    node_name: str = ""
    total: int = 0
    ties: int = 0
    evaluated_nodes: int = 0
    feasible_nodes: int = 0
    diagnosis: Diagnosis | None = None
    calls: tuple[ExtenderCall, ...] = ()
    outcome: PreFilterOutcome | None = None
    scoring: Scoring | None = None
    limit: SearchLimit | None = None


def schedule_pod(
    framework: Framework,
    snapshot: Snapshot,
    pod_info: PodInfo,
    rng: random.Random,
    *,
    nominations: Nominations | None = None,
    limit: SearchLimit | None = None,
    incremental: bool = True,
) -> ScheduleResult:
    """Decide where one pod goes.

    Args:
        framework: The pod's profile.
        snapshot: The cluster.
        pod_info: The pod.
        rng: Breaks ties, uniformly.
        nominations: Who was promised which node.
        limit: How far to look; None looks at every node.
        incremental: False asks every plugin about every row anew; the answer is the same.
    """
    if not len(snapshot):
        return ScheduleResult(NO_NODES)
    try:
        attempt = find_feasible(
            framework, snapshot, pod_info, nominations=nominations, limit=limit, incremental=incremental
        )
        if not attempt.feasible:
            diagnosis = diagnose(attempt)
            status = Status(Code.UNSCHEDULABLE, (diagnosis.message(),))
            return ScheduleResult(
                status, attempt.state, evaluated_nodes=attempt.looked_at, diagnosis=diagnosis, outcome=attempt.outcome
            )
        row, total, ties = choose(attempt, rng)
    except PluginFailed as failure:
        return ScheduleResult(failure.status())
    name = attempt.table.names[row]
    return ScheduleResult(
        SUCCESS, attempt.state, name, total, ties, attempt.looked_at, attempt.feasible,
        outcome=attempt.outcome, scoring=attempt.scoring,
    )  # fmt: skip


def find_feasible(
    framework: Framework,
    snapshot: Snapshot,
    pod_info: PodInfo,
    *,
    nominations: Nominations | None = None,
    limit: SearchLimit | None = None,
    incremental: bool = True,
    prefer_nominated: bool = True,
    all_wanted: bool = False,
) -> Attempt:
    """PreFilter and Filter. Arguments as in `schedule_pod`.

    Args:
        framework: The pod's profile.
        snapshot: The cluster.
        pod_info: The pod.
        nominations: Who was promised which node.
        limit: How far to look.
        incremental: Whether to use what is remembered.
        prefer_nominated: Whether the node that the pod was promised settles the search if it fits.
        all_wanted: Whether more than one node is of use although no plugin scores.

    Raises:
        PluginFailed: A plugin raised or answered with an error.
    """
    table = snapshot.table
    make = IncrementalEvaluator if incremental else PlainEvaluator
    evaluator: Evaluator = make(framework, table, pod_info)
    attempt = Attempt(framework, table, pod_info, evaluator, evaluator.pre_filter())
    if not attempt.outcome.status.is_success:
        return attempt
    refusals = refusals_with_nominated_pods(
        framework, attempt.state, pod_info.pod, table, nominations, evaluator.with_nominated
    )
    names = attempt.outcome.result.node_names
    if names is None:
        attempt.filtered = evaluator.filter()
        attempt.passing = attempt.filtered.passing
        attempt.looked_at = len(table)
    else:
        _look_at(attempt, np.array(sorted(table.rows[name] for name in names if name in table.rows), dtype=np.intp))
    attempt.refusals = refusals
    if refusals:
        attempt.passing = attempt.passing.copy()
        attempt.passing[list(refusals)] = False
    if prefer_nominated:
        _prefer_nominated_node(attempt)
    if limit is None and not framework.scores and not all_wanted:
        limit = SearchLimit(1)
    if limit is not None:
        _limit(attempt, snapshot, limit)
    attempt.feasible = int(np.count_nonzero(attempt.passing))
    return attempt


def _look_at(attempt: Attempt, rows: RowIndex) -> None:
    """Filter only some rows: a PreFilter plugin narrowed the search."""
    table = attempt.table
    attempt.rows = rows
    attempt.filtered = run_filters(attempt.framework.filters, attempt.state, attempt.pod_info.pod, table, rows)
    attempt.passing = np.zeros(table.size, dtype=np.bool_)
    attempt.passing[rows] = attempt.filtered.passing
    attempt.looked_at = len(rows)


def _prefer_nominated_node(attempt: Attempt) -> None:
    """A pod that was itself promised a node goes there, if it fits."""
    nominated = attempt.pod_info.pod.status.nominated_node_name
    row = attempt.table.rows.get(nominated) if nominated else None
    if row is None:
        return
    fits = bool(attempt.passing[row])
    if attempt.rows is not None and row not in attempt.rows:
        index = np.array([row], dtype=np.intp)
        filtered = run_filters(attempt.framework.filters, attempt.state, attempt.pod_info.pod, attempt.table, index)
        fits = bool(filtered.passing[0]) and row not in attempt.refusals
    if fits:
        attempt.passing = np.zeros_like(attempt.passing)
        attempt.passing[row] = True
        attempt.looked_at = 1
        attempt.nominated = True


def _limit(attempt: Attempt, snapshot: Snapshot, limit: SearchLimit) -> None:
    """Keep the first feasible rows in visiting order."""
    order = snapshot.visiting_order()
    if attempt.rows is not None:
        order = order[np.isin(order, attempt.rows)]
    if not len(order):
        return
    order = np.roll(order, -(limit.start % len(order)))
    found = np.flatnonzero(attempt.passing[order])
    if len(found) <= limit.to_find:
        return
    last = int(found[limit.to_find - 1])
    attempt.passing = np.zeros_like(attempt.passing)
    attempt.passing[order[found[: limit.to_find]]] = True
    attempt.looked_at = last + 1


def diagnose(attempt: Attempt) -> Diagnosis:
    """Why the nodes that are not feasible are not."""
    table, outcome = attempt.table, attempt.outcome
    diagnosis = Diagnosis(len(table), unschedulable_plugins=set(outcome.restricted_by))
    if not outcome.status.is_success:
        diagnosis.absent_status = outcome.status
        diagnosis.pre_filter_message = outcome.status.message
        diagnosis.add_plugin_status(outcome.status)
        return diagnosis
    if attempt.nominated:
        return diagnosis
    assert attempt.filtered is not None
    if attempt.rows is not None:
        names = " ".join(sorted(outcome.restricted_by))
        diagnosis.absent_status = Status.unresolvable(f"node(s) didn't satisfy plugin(s) [{names}]")
    diagnosis.node_statuses = node_statuses(attempt)
    for status, _ in diagnosis.node_statuses.counts():
        diagnosis.add_plugin_status(status)
    return diagnosis


def node_statuses(attempt: Attempt) -> NodeStatuses:
    """Filter's refusals, with those that nominated pods cause."""
    assert attempt.filtered is not None
    table, statuses = attempt.table, list(attempt.filtered.statuses)
    first = attempt.filtered.first.copy()
    if attempt.rows is None:
        names, refusals = table.all_names(), attempt.refusals
    else:
        names = tuple([table.names[row] for row in attempt.rows.tolist()])
        places = {row: place for place, row in enumerate(attempt.rows.tolist())}
        refusals = {places[row]: status for row, status in attempt.refusals.items() if row in places}
    for place, status in refusals.items():
        first[place] = len(statuses)
        statuses.append(status)
    return NodeStatuses(names, first, statuses)


def choose(attempt: Attempt, rng: random.Random, extra: ScoreArray | None = None) -> tuple[int, int, int]:
    """Score the feasible rows and pick one of the best.

    Args:
        attempt: With at least one feasible row.
        rng: Breaks ties.
        extra: What extenders add, aligned with `attempt.feasible_rows()`.

    Returns:
        `(row, total, ties)`; total is 0 when there was nothing to choose.

    Raises:
        PluginFailed: A plugin raised, failed, or scored out of range.
    """
    if attempt.feasible == 1:
        return int(attempt.passing.argmax()), 0, 1
    totals: TotalArray = attempt.evaluator.totals(attempt.passing)
    if extra is not None:
        totals = totals.astype(np.int64)
        totals[attempt.feasible_rows()] += extra
    row, total, ties, dice = _draw(totals, rng)
    second = int(ties[0 if dice else 1]) if len(ties) > 1 else _second(totals, row)
    attempt.scoring = _scoring(attempt, (row, second), (total, totals.item(second)), extra, dice)
    return row, total, len(ties)


def _second(totals: TotalArray, row: int) -> int:
    """The place of the greatest total but one."""
    best = totals.item(row)
    totals[row] = -1
    second = int(totals.argmax())
    totals[row] = best
    return second


def _scoring(
    attempt: Attempt, rows: tuple[int, int], totals: tuple[int, int], extra: ScoreArray | None, dice: int
) -> Scoring:
    """The record of the choice: the chosen row, the best of the others, which of the best was drawn."""
    added = (0, 0) if extra is None else tuple(extra[attempt.feasible_rows().searchsorted(rows)].tolist())
    evaluator, info, (first, second) = attempt.evaluator, attempt.table.info, rows
    return Scoring(
        (info(first), info(second)), totals, added, (evaluator.given(first), evaluator.given(second)),
        evaluator.unread(), attempt.state.skip_score_plugins, dice,
    )  # fmt: skip


def pick(totals: TotalArray, rng: random.Random) -> tuple[int, int, int]:
    """`(place, total, ties)` of one of the greatest totals."""
    place, total, ties, _ = _draw(totals, rng)
    return place, total, len(ties)


def _draw(totals: TotalArray, rng: random.Random) -> tuple[int, int, RowIndex, int]:
    """One of the greatest totals: its place, the total, the places that share it, which of these was drawn."""
    best = totals[totals.argmax()]
    ties: RowIndex = (totals == best).nonzero()[0]
    dice = rng.randrange(len(ties)) if len(ties) > 1 else 0
    return int(ties[dice]), int(best), ties, dice
