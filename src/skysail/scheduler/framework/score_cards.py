"""How a node's total came about: by plugin the raw score, the normalised one, and what that weighs.

Every attempt that had a choice leaves a `Scoring`: the chosen node, the runner-up, the dice. What normalising plugins
gave is copied at the time, as it depends on all nodes. What the others gave depends on the node and its pods alone: the
record keeps the account, which never changes once a snapshot holds it, and they are asked again when somebody reads.

Differs: an image's share of nodes (ImageLocality) is that of the moment of reading.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from skysail.api.core import Pod
from skysail.scheduler.cache.node_info import NodeInfo
from skysail.scheduler.cache.table import NodeTable
from skysail.scheduler.framework.containment import PluginFailed
from skysail.scheduler.framework.cycle_state import CycleState
from skysail.scheduler.framework.steps import ScoreStep

Given: TypeAlias = tuple[ScoreStep, int, int]
"""A plugin, its raw score of one node, and that normalised."""


class Unread(NamedTuple):
    """Whom to ask again, and with what.

    Attributes:
        steps: The plugins.
        state: With what their PreScore wrote.
        pod: Under test.
        table: Where to ask.
    """

    steps: tuple[ScoreStep, ...]
    state: CycleState
    pod: Pod
    table: NodeTable


@dataclass(frozen=True, slots=True)
class ScoreCard:
    """One node's scores.

    Attributes:
        node_name: Which node.
        total: The weighted sum, extenders' part included.
        extra: The extenders' part.
        scores: By plugin, raw and normalised; without those that cannot be asked again, because the node is gone.
        weights: By plugin.
    """

    node_name: str
    total: int
    extra: int
    scores: Mapping[str, tuple[int, int]]
    weights: Mapping[str, int]


class Scoring(NamedTuple):
    """What came of the Score phase.

    Attributes:
        infos: The accounts of the chosen node and of the runner-up, as the attempt saw them.
        totals: Their weighted sums, extenders' part included.
        extra: The extenders' part.
        given: For each of the two, what normalising plugins gave it.
        unread: The other plugins.
        skipped: Plugins that had nothing to score.
        dice: Which of the tied nodes was drawn, from 0, in the order of rows.
    """

    infos: tuple[NodeInfo, ...]
    totals: tuple[int, ...]
    extra: tuple[int, ...]
    given: tuple[Sequence[Given], ...]
    unread: Unread
    skipped: frozenset[str]
    dice: int

    def cards(self) -> Sequence[ScoreCard]:
        """The chosen node's scores, and the runner-up's."""
        return [self._card(place) for place in range(len(self.infos))]

    def _card(self, place: int) -> ScoreCard:
        info = self.infos[place]
        given = [*self.given[place], *_ask(self.unread, info)]
        scores = {step.name: (raw, normalized) for step, raw, normalized in given}
        weights = {step.name: step.weight for step, _, _ in given}
        return ScoreCard(info.name, self.totals[place], self.extra[place], scores, weights)


def _ask(unread: Unread, info: NodeInfo) -> Sequence[Given]:
    if info.name not in unread.table.rows:
        return ()
    found = []
    with unread.table.scratch([info]) as rows:
        for step in unread.steps:
            try:
                score = int(step.ask(unread.state, unread.pod, unread.table, rows)[0])
            except PluginFailed:
                continue
            found.append((step, score, score))
    return found
