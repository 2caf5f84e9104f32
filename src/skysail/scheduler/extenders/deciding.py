"""A decision in which extenders have a say, as a conversation.

    PreFilter -> Filter -> nominated pods -> extenders filter -> PreScore -> Score -> extenders score -> pick

Source: pkg/scheduler/schedule_one.go (findNodesThatFitPod, prioritizeNodes), v1.36.
"""

import random
from collections.abc import Mapping, Sequence

import numpy as np

from skysail.scheduler.algorithm import (
    Attempt,
    ScheduleResult,
    SearchLimit,
    choose,
    diagnose,
    find_feasible,
    pick,
)
from skysail.scheduler.cache.node_info import NodeInfo
from skysail.scheduler.cache.pod_info import PodInfo
from skysail.scheduler.cache.snapshot import Snapshot
from skysail.scheduler.extenders.chain import EXTENDER, Candidate, ExtenderChain
from skysail.scheduler.framework.codes import ScoreArray
from skysail.scheduler.framework.containment import PluginFailed
from skysail.scheduler.framework.conversation import Conversation, ExtenderCall, ExtenderFailed
from skysail.scheduler.framework.diagnosis import NO_NODES, Diagnosis
from skysail.scheduler.framework.evaluation import Scored, score_rows
from skysail.scheduler.framework.handle import Nominations
from skysail.scheduler.framework.runner import Framework
from skysail.scheduler.framework.status import SUCCESS, Code, Status


class ExtendedAttempt:
    """An attempt after the extenders were asked.

    Attributes:
        attempt: What the plugins decided; `passing` and `feasible` after the extenders.
        candidates: The nodes that are left, in row order.
        statuses: Refusals by extenders, by node name.
        refused: Whether extenders took nodes away.
        calls: The record of every call.
    """

    def __init__(self, attempt: Attempt, calls: list[ExtenderCall]) -> None:
        self.attempt, self.calls = attempt, calls
        self.candidates: Sequence[Candidate] = _candidates(attempt)
        self.statuses: dict[str, Status] = {}
        self.refused = False

    def diagnosis(self) -> Diagnosis:
        """Why the nodes that are not left are not."""
        diagnosis = diagnose(self.attempt)
        diagnosis.extender_statuses, diagnosis.extender_calls = self.statuses, self.calls
        if self.refused:
            diagnosis.unschedulable_plugins.add(EXTENDER)
        return diagnosis

    def scored(self) -> Scored:
        """What the Score plugins give the candidates, in their order; nodes that came back are seen without pods.

        Raises:
            PluginFailed: A plugin raised, failed, or scored out of range.
        """
        attempt, table = self.attempt, self.attempt.table
        framework, state, pod = attempt.framework, attempt.state, attempt.pod_info.pod
        if not any(candidate.bare for candidate in self.candidates):
            rows = np.array([table.rows[each.name] for each in self.candidates], dtype=np.intp)
            return score_rows(framework, state, pod, table, rows)
        with table.scratch([_bare(each, table.info(table.rows[each.name])) for each in self.candidates]) as rows:
            return score_rows(framework, state, pod, table, rows)


def _candidates(attempt: Attempt) -> list[Candidate]:
    infos = [attempt.table.info(int(row)) for row in attempt.feasible_rows()]
    return [Candidate(info.name, info.node, info.node) for info in infos]


def _bare(candidate: Candidate, known: NodeInfo) -> NodeInfo:
    if not candidate.bare:
        return known
    info = NodeInfo(candidate.name)
    info.set_node(candidate.node)
    return info


def schedule_asking(
    framework: Framework,
    snapshot: Snapshot,
    pod_info: PodInfo,
    rng: random.Random,
    chain: ExtenderChain,
    *,
    nominations: Nominations | None = None,
    limit: SearchLimit | None = None,
) -> Conversation[ScheduleResult]:
    """Decide where one pod goes, with extenders; arguments as in `skysail.scheduler.algorithm.schedule_pod`."""
    if not len(snapshot):
        return ScheduleResult(NO_NODES)
    calls: list[ExtenderCall] = []
    try:
        extended = yield from find_asking(
            framework, snapshot, pod_info, chain, calls, nominations=nominations, limit=limit
        )
        attempt = extended.attempt
        if not attempt.feasible:
            diagnosis = extended.diagnosis()
            status = Status(Code.UNSCHEDULABLE, (diagnosis.message(),))
            return ScheduleResult(
                status, attempt.state, evaluated_nodes=attempt.looked_at, diagnosis=diagnosis, calls=tuple(calls),
                outcome=attempt.outcome,
            )  # fmt: skip
        name, total, ties = yield from _choose_asking(extended, chain, rng)
    except PluginFailed as failure:
        return ScheduleResult(failure.status(), calls=tuple(calls))
    except ExtenderFailed as failure:
        return ScheduleResult(Status.error(str(failure)), calls=tuple(calls))
    return ScheduleResult(
        SUCCESS, attempt.state, name, total, ties, attempt.looked_at, attempt.feasible, calls=tuple(calls),
        outcome=attempt.outcome, scoring=attempt.scoring,
    )  # fmt: skip


def find_asking(
    framework: Framework,
    snapshot: Snapshot,
    pod_info: PodInfo,
    chain: ExtenderChain,
    calls: list[ExtenderCall],
    *,
    nominations: Nominations | None = None,
    limit: SearchLimit | None = None,
    incremental: bool = True,
) -> Conversation[ExtendedAttempt]:
    """PreFilter, Filter, and the extenders' filters. The pod's own nominated node is asked about alone first.

    Raises:
        PluginFailed: A plugin raised or answered with an error.
        ExtenderFailed: An extender that may not be ignored failed.
    """

    def attempt(*, nominated: bool) -> Attempt:
        return find_feasible(
            framework, snapshot, pod_info, nominations=nominations, limit=limit, incremental=incremental,
            prefer_nominated=nominated, all_wanted=chain.filters or chain.prioritizes,
        )  # fmt: skip

    extended = ExtendedAttempt(attempt(nominated=True), calls)
    if extended.attempt.nominated:
        try:
            yield from _filter(extended, chain)
        except ExtenderFailed:
            extended.attempt.feasible = 0
        if extended.attempt.feasible:
            extended.refused = False
            return extended
        statuses = extended.statuses
        extended = ExtendedAttempt(attempt(nominated=False), calls)
        extended.statuses = statuses
    yield from _filter(extended, chain)
    return extended


def _filter(extended: ExtendedAttempt, chain: ExtenderChain) -> Conversation[None]:
    attempt = extended.attempt
    before = extended.candidates
    left = yield from chain.filter(attempt.pod_info.pod, before, extended.statuses, extended.calls)
    if left is before:
        return
    rows = attempt.table.rows
    extended.candidates = sorted(left, key=lambda each: rows[each.name])
    extended.refused = len(left) != len(before)
    attempt.passing = np.zeros_like(attempt.passing)
    attempt.passing[[rows[each.name] for each in left]] = True
    attempt.feasible = len(left)


def _choose_asking(
    extended: ExtendedAttempt, chain: ExtenderChain, rng: random.Random
) -> Conversation[tuple[str, int, int]]:
    attempt, candidates = extended.attempt, extended.candidates
    if len(candidates) == 1:
        return candidates[0].name, 0, 1
    points = yield from chain.prioritize(attempt.pod_info.pod, candidates, extended.calls)
    extra = added(points, len(candidates))
    if not any(candidate.bare for candidate in candidates):
        row, total, ties = choose(attempt, rng, extra)
        return attempt.table.names[row], total, ties
    place, total, ties = pick(extended.scored().totals + extra, rng)
    return candidates[place].name, total, ties


def added(points: Mapping[str, Sequence[int]], count: int) -> ScoreArray:
    """(count,) int64: what all extenders together add."""
    total: ScoreArray = np.zeros(count, dtype=np.int64)
    for each in points.values():
        total += np.array(each, dtype=np.int64)
    return total
