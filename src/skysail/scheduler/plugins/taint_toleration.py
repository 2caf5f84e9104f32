"""Keeps pods off nodes whose taints they do not tolerate, and prefers nodes with few soft taints.

Taint sets are interned in the table, so a pod is asked once for each distinct set, not once for each node.

Source: pkg/scheduler/framework/plugins/tainttoleration, v1.36.
"""

from collections.abc import Hashable, Sequence

import numpy as np
import numpy.typing as npt

from skysail.api.core import Pod, Toleration
from skysail.api.node import Node, Taint
from skysail.api.tolerations import find_untolerated_taint, tolerates
from skysail.scheduler.cache.matrices import RowIndex, Rows
from skysail.scheduler.cache.pod_info import PodInfo
from skysail.scheduler.cache.table import NodeTable
from skysail.scheduler.framework.codes import ALL_PASS, Codes, Reads, ScoreArray, zero_scores
from skysail.scheduler.framework.cycle_state import CycleState, StateKey
from skysail.scheduler.framework.events import NODE, POD, ActionType, ClusterEvent, ClusterEventWithHint, QueueingHint
from skysail.scheduler.framework.handle import Handle
from skysail.scheduler.framework.status import SUCCESS, Status
from skysail.scheduler.plugins.args import PluginArgs
from skysail.scheduler.plugins.normalizing import default_normalize

REFUSED = Status.unresolvable("node(s) had untolerated taint(s)")
SOFT = "PreferNoSchedule"

SOFT_TOLERATIONS = StateKey[tuple[Toleration, ...]]("PreScoreTaintToleration")


class TaintToleration:
    """The plugin."""

    name = "TaintToleration"
    reads = Reads.STATIC

    def __init__(self, args: PluginArgs, handle: Handle) -> None:
        self._comparison = handle.feature_gates["TaintTolerationComparisonOperators"]

    def sign(self, pod: PodInfo) -> Hashable:
        """Only tolerations matter."""
        return pod.pod.spec.tolerations

    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Codes:
        """Refuse nodes with a hard taint that nothing tolerates."""
        sets = table.taint_sets
        if len(sets) == 1:
            return ALL_PASS
        refused: npt.NDArray[np.bool_] = np.fromiter(
            (self._untolerated(taints, pod.spec.tolerations) for taints in sets), np.bool_, len(sets)
        )
        return Codes.refuse(refused[table.taint_ids[rows]], REFUSED) if refused.any() else ALL_PASS

    def explain(self, state: CycleState, pod: Pod, table: NodeTable, row: int) -> Status:
        """The refusal."""
        taints = table.taint_sets[int(table.taint_ids[row])]
        return REFUSED if self._untolerated(taints, pod.spec.tolerations) else SUCCESS

    def _untolerated(self, taints: Sequence[Taint], tolerations: Sequence[Toleration]) -> bool:
        return find_untolerated_taint(taints, tolerations, comparison_operators=self._comparison) is not None

    def pre_score(self, state: CycleState, pod: Pod, table: NodeTable, rows: RowIndex) -> Status:
        """Note the tolerations that may concern soft taints."""
        state.write(SOFT_TOLERATIONS, tuple(each for each in pod.spec.tolerations if each.effect in ("", SOFT)))
        return SUCCESS

    def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> ScoreArray:
        """How many soft taints nothing tolerates."""
        sets = table.taint_sets
        if len(sets) == 1:
            return zero_scores(rows)
        tolerations = state.read(SOFT_TOLERATIONS)
        counts: ScoreArray = np.fromiter(
            (self._count_soft(taints, tolerations) for taints in sets), np.int64, len(sets)
        )
        return counts[table.taint_ids[rows]]

    def normalize(self, state: CycleState, raw: ScoreArray, low: int, high: int) -> ScoreArray:
        """Fewer is better."""
        return default_normalize(raw, high, reverse=True)

    def _count_soft(self, taints: Sequence[Taint], tolerations: Sequence[Toleration]) -> int:
        return sum(
            taint.effect == SOFT and not any(tolerates(each, taint, self._comparison) for each in tolerations)
            for taint in taints
        )

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Nodes that come or lose a taint; the pod's own tolerations."""
        return (
            ClusterEventWithHint(
                ClusterEvent(NODE, ActionType.ADD | ActionType.UPDATE_NODE_TAINT), self._after_node_change
            ),
            ClusterEventWithHint(ClusterEvent(POD, ActionType.UPDATE_POD_TOLERATION), self._after_toleration_change),
        )

    def _after_node_change(self, pod: Pod, old: object | None, new: object | None) -> QueueingHint:
        was_refused = not isinstance(old, Node) or self._untolerated(old.spec.taints, pod.spec.tolerations)
        if was_refused and isinstance(new, Node) and not self._untolerated(new.spec.taints, pod.spec.tolerations):
            return QueueingHint.QUEUE
        return QueueingHint.SKIP

    def _after_toleration_change(self, pod: Pod, old: object | None, new: object | None) -> QueueingHint:
        return QueueingHint.QUEUE if isinstance(new, Pod) and new.uid == pod.uid else QueueingHint.SKIP
