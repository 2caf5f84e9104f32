"""Spreads pods evenly over topology domains.

Hard constraints: on the nodes that count, a domain may hold at most `maxSkew` more matching pods than the emptiest one.
Soft ones: the fewer matching pods in a node's domains, the better; a domain of a key with many values weighs more.

Source: pkg/scheduler/framework/plugins/podtopologyspread, v1.36.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import numpy.typing as npt

from skysail.api.affinity import TopologySpreadConstraint
from skysail.api.core import Pod
from skysail.api.node import Node
from skysail.scheduler.cache.columns import ABSENT
from skysail.scheduler.cache.matrices import IntColumn, RowIndex, Rows
from skysail.scheduler.cache.node_info import NodeInfo
from skysail.scheduler.cache.pod_info import PodInfo
from skysail.scheduler.cache.table import NodeTable
from skysail.scheduler.framework.codes import (
    MAX_NODE_SCORE,
    CodeArray,
    Codes,
    Reads,
    ScoreArray,
    zero_scores,
)
from skysail.scheduler.framework.cycle_state import CycleState, StateKey
from skysail.scheduler.framework.events import NODE, POD, ActionType, ClusterEvent, ClusterEventWithHint, QueueingHint
from skysail.scheduler.framework.handle import Handle
from skysail.scheduler.framework.plugin import ALL_NODES, PreFilterResult
from skysail.scheduler.framework.status import SKIP, SUCCESS, Status
from skysail.scheduler.framework.steps import Mask
from skysail.scheduler.plugins.args import PodTopologySpreadArgs
from skysail.scheduler.plugins.default_selector import DefaultSelectors
from skysail.scheduler.plugins.spread_constraints import (
    HARD,
    HOSTNAME,
    SOFT,
    SYSTEM_DEFAULTS,
    ConstraintCounter,
    SpreadConstraint,
    counted_selector,
    read_constraints,
)

REMEMBERED = 1024

SKEWED = Status.unschedulable("node(s) didn't match pod topology spread constraints")
NO_LABEL = Status.unresolvable("node(s) didn't match pod topology spread constraints (missing required label)")


@dataclass(slots=True)
class HardSpread:
    """What Filter checks, constraint by constraint.

    Attributes:
        table: Where label codes come from.
        constraints: The hard constraints.
        counts: For each, (n_values + 1,) int64 matching pods by label code (see `DomainCounts`).
        present: For each, (n_values + 1,) bool, the domains that count.
        minimum: For each, the count of the emptiest of these.
    """

    table: NodeTable
    constraints: tuple[SpreadConstraint, ...]
    counts: list[IntColumn]
    present: list[npt.NDArray[np.bool_]]
    minimum: list[int]

    def clone(self) -> "HardSpread":
        """A state for a what-if."""
        return HardSpread(
            self.table,
            self.constraints,
            [counts.copy() for counts in self.counts],
            [present.copy() for present in self.present],
            list(self.minimum),
        )

    def add(self, index: int, code: int, number: int) -> None:
        """Count pods in or out of a domain, in a what-if."""
        self.counts[index][code] += number
        self.present[index][code] = True  # a domain exists for upstream as soon as it is counted in
        self.minimum[index] = int(self.counts[index][self.present[index]].min())

    def floor(self, index: int) -> int:
        """The count of the emptiest domain; 0 when there are fewer domains than wanted."""
        if np.count_nonzero(self.present[index]) < self.constraints[index].min_domains:
            return 0
        return self.minimum[index]


@dataclass(slots=True)
class SoftSpread:
    """What Score counts.

    Attributes:
        constraints: The soft constraints.
        counts: For each, (n_values + 1,) int64 by label code, the last place for nodes without the label; None for
            the hostname, where the node's own pods are counted.
        weights: For each, the logarithm of the number of domains.
        requires_all: Whether nodes that lack a key score nothing.
        ignored: (n_feasible,) bool, those nodes, aligned with the rows of PreScore.
    """

    constraints: tuple[SpreadConstraint, ...]
    counts: list[IntColumn | None]
    weights: list[float]
    requires_all: bool
    ignored: Mask


HARD_SPREAD = StateKey[HardSpread]("PreFilterPodTopologySpread")
SOFT_SPREAD = StateKey[SoftSpread]("PreScorePodTopologySpread")


class PodTopologySpread:
    """The plugin."""

    name = "PodTopologySpread"
    reads = Reads.GLOBAL

    def __init__(self, args: PodTopologySpreadArgs, handle: Handle) -> None:
        self._gates = handle.feature_gates
        self._comparison = self._gates["TaintTolerationComparisonOperators"]
        self._system_defaulted = args.defaulting_type == "System"
        self._defaults = SYSTEM_DEFAULTS if self._system_defaulted else args.default_constraints
        self._default_actions = frozenset(each.when_unsatisfiable for each in self._defaults)
        self._read: dict[tuple[bytes, tuple[tuple[str, str], ...], str], tuple[SpreadConstraint, ...]] = {}
        self._selectors = DefaultSelectors(handle) if self._defaults else None

    def _constraints(self, pod: Pod, action: str) -> tuple[SpreadConstraint, ...]:
        labels, own = pod.metadata.labels, pod.spec.topology_spread_constraints
        if own:
            return self._own_constraints(own, labels, action)
        if self._selectors is None or action not in self._default_actions:
            return ()
        selector = self._selectors.selector(pod)
        if selector.empty:
            return ()
        defaults = read_constraints(self._defaults, labels, action, self._gates)
        return tuple(
            SpreadConstraint(
                each.max_skew,
                each.topology_key,
                selector,
                each.min_domains,
                each.honors_affinity,
                each.honors_taints,
            )
            for each in defaults
        )

    def _own_constraints(
        self, own: tuple[TopologySpreadConstraint, ...], labels: Mapping[str, str], action: str
    ) -> tuple[SpreadConstraint, ...]:
        """`read_constraints`, remembered for pods of one template."""
        merged = any(each.match_label_keys for each in own)
        key = (msgspec.json.encode(own), tuple(labels.items()) if merged else (), action)
        found = self._read.get(key)
        if found is None:
            if len(self._read) >= REMEMBERED:
                self._read.clear()
            found = self._read[key] = read_constraints(own, labels, action, self._gates)
        return found

    # -- hard ------------------------------------------------------------------------------------------------------

    def pre_filter(self, state: CycleState, pod: Pod, table: NodeTable) -> tuple[Status, PreFilterResult]:
        """Count by domain; skip pods without hard constraints."""
        try:
            constraints = self._constraints(pod, HARD)
        except ValueError as error:
            return Status.error(
                f"get constraints from pod: obtaining pod's hard topology spread constraints: {error}"
            ), ALL_NODES
        if not constraints:
            return SKIP, ALL_NODES
        keys = [each.topology_key for each in constraints]
        counter = ConstraintCounter(table, pod, keys, self._comparison)
        found = [counter.counts(each) for each in constraints]
        spread = HardSpread(
            table,
            constraints,
            [each.counts for each in found],
            [each.present for each in found],
            [each.minimum for each in found],
        )
        state.write(HARD_SPREAD, spread)
        return SUCCESS, ALL_NODES

    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Codes:
        """Refuse nodes without a topology key, and domains that are too full; the first constraint to refuse tells."""
        spread = state.read(HARD_SPREAD)
        answer: CodeArray | None = None
        for index in reversed(range(len(spread.constraints))):
            codes = _codes_by_value(spread, index, pod)[table.label(spread.constraints[index].topology_key).codes[rows]]
            answer = codes if answer is None else np.where(codes != 0, codes, answer)
        assert answer is not None
        return Codes(answer, (SKEWED, NO_LABEL))

    def explain(self, state: CycleState, pod: Pod, table: NodeTable, row: int) -> Status:
        """The refusal, with the counts behind it."""
        spread = state.read(HARD_SPREAD)
        for index, constraint in enumerate(spread.constraints):
            label = table.label(constraint.topology_key)
            code = int(label.codes[row])
            if code == ABSENT:
                return Status.unresolvable(*NO_LABEL.reasons, f"label {constraint.topology_key} is missing")
            count = int(spread.counts[index][code])
            skew = count + constraint.selector.matches(pod.metadata.labels) - spread.floor(index)
            if skew > constraint.max_skew:
                where = f"{constraint.topology_key}={label.values[code]}"
                told = f"{where} has {count}, the emptiest domain {spread.floor(index)}, maxSkew {constraint.max_skew}"
                return Status.unschedulable(*SKEWED.reasons, told)
        return SUCCESS

    def add_pod(self, state: CycleState, pod: Pod, added: PodInfo, node: NodeInfo) -> Status:
        """Count a pod in."""
        self._move(state.read(HARD_SPREAD), pod, added.pod, node.node, 1)
        return SUCCESS

    def remove_pod(self, state: CycleState, pod: Pod, removed: PodInfo, node: NodeInfo) -> Status:
        """Count a pod out."""
        self._move(state.read(HARD_SPREAD), pod, removed.pod, node.node, -1)
        return SUCCESS

    def _move(self, spread: HardSpread, pod: Pod, moved: Pod, node: Node, number: int) -> None:
        labels = node.metadata.labels
        if moved.metadata.namespace != pod.metadata.namespace:
            return
        if any(each.topology_key not in labels for each in spread.constraints):
            return
        for index, constraint in enumerate(spread.constraints):
            if constraint.selector.matches(moved.metadata.labels) and constraint.includes(pod, node, self._comparison):
                code = spread.table.label(constraint.topology_key).code_of(labels[constraint.topology_key])
                spread.add(index, code, number)

    # -- soft ------------------------------------------------------------------------------------------------------

    def pre_score(self, state: CycleState, pod: Pod, table: NodeTable, rows: RowIndex) -> Status:
        """Count by domain; skip pods without soft constraints."""
        try:
            constraints = self._constraints(pod, SOFT)
        except ValueError as error:
            return Status.error(f"calculating preScoreState: obtaining pod's soft topology spread constraints: {error}")
        if not constraints:
            return SKIP
        requires_all = bool(pod.spec.topology_spread_constraints) or not self._system_defaulted
        keys = [each.topology_key for each in constraints] if requires_all else []
        counter = ConstraintCounter(table, pod, keys, self._comparison)
        ignored = ~counter.has_keys()[rows] if requires_all else np.zeros(len(rows), dtype=np.bool_)
        scored = rows[~ignored]
        counts: list[IntColumn | None] = []
        weights: list[float] = []
        for constraint in constraints:
            if constraint.topology_key == HOSTNAME:
                counts.append(None)
                weights.append(_weight(len(scored)))
                continue
            label = table.label(constraint.topology_key)
            codes = label.codes[scored]
            nowhere = label.code_of("")
            codes = np.where(codes == ABSENT, nowhere if nowhere != ABSENT else len(label.values), codes)
            weights.append(_weight(len(np.unique(codes))))
            counts.append(counter.counts(constraint).counts)
        state.write(SOFT_SPREAD, SoftSpread(constraints, counts, weights, requires_all, ignored))
        return SUCCESS

    def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> ScoreArray:
        """The weighted number of matching pods in the node's domains: fewer is better."""
        spread = state.read(SOFT_SPREAD)
        total = zero_scores(rows).astype(np.float64)
        known = np.ones(len(total), dtype=np.bool_)
        namespace = frozenset((pod.metadata.namespace,))
        for constraint, by_value, weight in zip(spread.constraints, spread.counts, spread.weights, strict=True):
            codes = table.label(constraint.topology_key).codes[rows]
            if by_value is None:
                own = table.matches((namespace, counted_selector(constraint.selector))).live[rows]
                counts = own.astype(np.int64)
            else:
                counts = by_value[codes]
            has_label = codes != ABSENT
            known &= has_label
            total += np.where(has_label, counts * weight + (constraint.max_skew - 1), 0.0)
        if spread.requires_all:
            total[~known] = 0.0
        scores: ScoreArray = np.floor(total + 0.5).astype(np.int64)
        return scores

    def normalize(self, state: CycleState, raw: ScoreArray, low: int, high: int) -> ScoreArray:
        """The emptiest gets 100; nodes that lack a key get 0. `raw` is aligned with the rows of PreScore."""
        ignored = state.read(SOFT_SPREAD).ignored
        scored = raw[~ignored]
        low, high = (int(scored.min()), int(scored.max())) if len(scored) else (0, 0)
        if high == 0:
            return np.where(ignored, 0, MAX_NODE_SCORE)
        return np.where(ignored, 0, MAX_NODE_SCORE * (high + low - raw) // high)

    # -- events ----------------------------------------------------------------------------------------------------

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Matching pods that come, go or change labels; nodes that change domains; the pod's own tolerations."""
        pods = ActionType.ADD | ActionType.UPDATE_POD_LABEL | ActionType.UPDATE_POD_TOLERATION | ActionType.DELETE
        nodes = ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_TAINT
        return (
            ClusterEventWithHint(ClusterEvent(POD, pods), self._after_pod_change),
            ClusterEventWithHint(ClusterEvent(NODE, nodes), self._after_node_change),
        )

    def _after_pod_change(self, pod: Pod, old: object | None, new: object | None) -> QueueingHint:
        before = old if isinstance(old, Pod) else None
        after = new if isinstance(new, Pod) else None
        if any(each is not None and not _is_involved(each, pod) for each in (before, after)):
            return QueueingHint.SKIP
        constraints = self._constraints(pod, HARD)
        if before is not None and after is not None:
            return self._after_pod_update(pod, before, after, constraints)
        moved = after if after is not None else before
        assert moved is not None
        matches = any(each.selector.matches(moved.metadata.labels) for each in constraints)
        return QueueingHint.QUEUE if matches else QueueingHint.SKIP

    @staticmethod
    def _after_pod_update(pod: Pod, before: Pod, after: Pod, constraints: Sequence[SpreadConstraint]) -> QueueingHint:
        own = after.uid == pod.uid and after.spec.tolerations != before.spec.tolerations
        if own and any(each.honors_taints for each in constraints):
            return QueueingHint.QUEUE
        old_labels, new_labels = before.metadata.labels, after.metadata.labels
        changed = any(each.selector.matches(old_labels) != each.selector.matches(new_labels) for each in constraints)
        return QueueingHint.QUEUE if changed else QueueingHint.SKIP

    def _after_node_change(self, pod: Pod, old: object | None, new: object | None) -> QueueingHint:
        keys = [each.topology_key for each in self._constraints(pod, HARD)]
        before = old if isinstance(old, Node) else None
        after = new if isinstance(new, Node) else None
        matched, matches = _has_all(before, keys), _has_all(after, keys)
        if before is None or after is None:
            return QueueingHint.QUEUE if matched or matches else QueueingHint.SKIP
        if matched != matches:
            return QueueingHint.QUEUE
        moved = any(before.metadata.labels.get(key) != after.metadata.labels.get(key) for key in keys)
        changed = moved or before.spec.taints != after.spec.taints
        return QueueingHint.QUEUE if matches and changed else QueueingHint.SKIP


def _codes_by_value(spread: HardSpread, index: int, pod: Pod) -> CodeArray:
    """(n_values + 1,) uint8: 0 passes, 1 too full, and in the last place, which ABSENT picks, 2 no label."""
    constraint = spread.constraints[index]
    room = constraint.max_skew + spread.floor(index) - constraint.selector.matches(pod.metadata.labels)
    codes: CodeArray = (spread.counts[index] > room).view(np.uint8)
    codes[-1] = 2
    return codes


def _weight(domains: int) -> float:
    return math.log(domains + 2)


def _is_involved(other: Pod, pod: Pod) -> bool:
    """Whether another pod's change may concern this one: it is the pod itself, or placed in its namespace."""
    if other.uid == pod.uid:
        return True
    placed = other.spec.node_name or other.status.nominated_node_name
    return bool(placed) and other.metadata.namespace == pod.metadata.namespace


def _has_all(node: Node | None, keys: Sequence[str]) -> bool:
    return node is not None and all(key in node.metadata.labels for key in keys)
