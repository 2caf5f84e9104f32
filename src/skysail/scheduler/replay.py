"""An attempt decided again, for somebody who reads its record: every node's refusal, every feasible node's scores.

A record keeps a few references only (`skysail.scheduler.attempts`). The accounts of all nodes as the attempt saw them
are put together from the snapshot's history, a table is made of them, and the plain evaluation runs over it: what it
says of each node is what the attempt found. Nothing is kept, and nothing is asked of the cluster.

Differs: what plugins read from listers (volumes, claims, namespaces), and who is nominated where, are those of the
moment of reading. Of an image that nodes report with different sizes the first row's counts, not that of the first node
ever seen with it. What extenders said is not asked again. Whoever shows a replay compares it with the record.
"""

from collections.abc import Generator, Sequence
from typing import Final

import numpy as np

from skysail.api.core import Pod
from skysail.api.raw import Raw
from skysail.scheduler.algorithm import Attempt, SearchLimit, find_feasible, node_statuses
from skysail.scheduler.cache.node_info import NodeInfo
from skysail.scheduler.cache.pod_info import PodInfo
from skysail.scheduler.cache.snapshot import Snapshot
from skysail.scheduler.framework.containment import PluginFailed
from skysail.scheduler.framework.handle import Nominations
from skysail.scheduler.framework.runner import Framework
from skysail.scheduler.framework.score_cards import ScoreCard
from skysail.scheduler.telling import told_card, told_status

MAX_TOLD: Final = 1_000
"""Nodes told one by one: the best ones, and as many refused ones. The others are counted."""
_ROWS_A_STEP: Final = 128


def replay(
    framework: Framework,
    infos: Sequence[NodeInfo],
    pod: Pod,
    *,
    nominations: Nominations | None = None,
    limit: SearchLimit | None = None,
) -> Generator[None, None, Raw]:
    """Decide again, in steps: whoever runs it may do other things at each yield.

    Args:
        framework: The pod's profile.
        infos: The accounts of all nodes, as the attempt saw them.
        pod: As the attempt saw it.
        nominations: Who is promised which node.
        limit: How far the attempt looked.

    Returns:
        `feasible_nodes`, `refused_nodes`; `scores`, the best first; `nodes`, the refusals; `left_out`, how many of each
        are not told.

    Cost: Some 20 us a node, and one full evaluation.
    """
    snapshot = Snapshot()
    for number, info in enumerate(infos, 1):
        snapshot.table.write(info)
        if number % _ROWS_A_STEP == 0:
            yield
    try:
        attempt = find_feasible(
            framework, snapshot, PodInfo(pod), nominations=nominations, limit=limit, incremental=False
        )
        cards = yield from _cards(attempt)
    except PluginFailed as failure:
        return {"error": str(failure)}
    refusals = node_statuses(attempt) if attempt.filtered is not None else {}
    told = dict(zip(refusals, range(MAX_TOLD), strict=False))
    return {
        "feasible_nodes": attempt.feasible,
        "refused_nodes": len(refusals),
        "scores": [told_card(card) for card in cards],
        "nodes": {name: told_status(refusals[name]) for name in told},
        "left_out": {
            "scores": attempt.feasible - len(cards) if attempt.feasible > 1 else 0,
            "nodes": len(refusals) - len(told),
        },
    }


def _cards(attempt: Attempt) -> Generator[None, None, list[ScoreCard]]:
    """What every plugin gave each of the best nodes; nothing where there was no choice."""
    if attempt.feasible < 2:
        return []
    totals = attempt.evaluator.totals(attempt.passing)
    rows = attempt.feasible_rows()
    best = rows[np.argsort(-totals[rows].astype(np.int64), kind="stable")][:MAX_TOLD]
    cards = []
    for number, row in enumerate(best.tolist(), 1):
        given = attempt.evaluator.given(row)
        scores = {step.name: (raw, normalized) for step, raw, normalized in given}
        weights = {step.name: step.weight for step, _, _ in given}
        cards.append(ScoreCard(attempt.table.names[row], int(totals[row]), 0, scores, weights))
        if number % _ROWS_A_STEP == 0:
            yield
    return cards
