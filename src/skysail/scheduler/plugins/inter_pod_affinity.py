"""Places pods near to, or away from, other pods.

Required terms, both ways: what the pod asks of others (affinity, anti-affinity), and what pods that are there ask of it
(anti-affinity is mutual). Preferred terms, both ways, make the score; a required affinity of a pod that is there counts
as a preference of `hardPodAffinityWeight`.

`matchLabelKeys` and `mismatchLabelKeys` are the API server's affair: it merges them into the selectors.

Source: pkg/scheduler/framework/plugins/interpodaffinity, v1.36.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from skysail.api.core import Pod
from skysail.api.kinds import NAMESPACES
from skysail.api.node import Node
from skysail.scheduler.cache.columns import ABSENT, TermKind
from skysail.scheduler.cache.matrices import RowIndex, Rows
from skysail.scheduler.cache.node_info import NodeInfo
from skysail.scheduler.cache.pod_info import AffinityTerm, PodInfo
from skysail.scheduler.cache.table import NodeTable
from skysail.scheduler.framework.codes import MAX_NODE_SCORE, CodeArray, Codes, Reads, ScoreArray
from skysail.scheduler.framework.cycle_state import CycleState, StateKey
from skysail.scheduler.framework.events import NODE, POD, ActionType, ClusterEvent, ClusterEventWithHint, QueueingHint
from skysail.scheduler.framework.handle import Handle
from skysail.scheduler.framework.plugin import ALL_NODES, PreFilterResult
from skysail.scheduler.framework.status import SKIP, SUCCESS, Status
from skysail.scheduler.framework.steps import Mask
from skysail.scheduler.plugins.affinity_counts import (
    NO_LABELS,
    Labels,
    PairCounts,
    PairScores,
    Test,
    carried_terms,
    count_carriers,
    count_matches,
    passes,
    passes_all,
    resolve_namespaces,
)
from skysail.scheduler.plugins.args import InterPodAffinityArgs

NOT_NEAR = Status.unresolvable("node(s) didn't match pod affinity rules")
NOT_AWAY = Status.unschedulable("node(s) didn't match pod anti-affinity rules")
UNWANTED = Status.unschedulable("node(s) didn't satisfy existing pods anti-affinity rules")


@dataclass(slots=True)
class Required:
    """What Filter checks.

    Attributes:
        table: Where label codes come from.
        pod_info: The pod.
        namespace_labels: Of the pod's namespace.
        near: The pod's affinity terms: topology key and resolved test of each.
        away: Its anti-affinity terms, alike.
        near_counts: Pods that every affinity term means, by the pairs of each term's key.
        away_counts: Pods that an anti-affinity term means, by pair.
        unwanted: Carriers of anti-affinity terms that mean the pod, by pair.
    """

    table: NodeTable
    pod_info: PodInfo
    namespace_labels: Labels
    near: tuple[tuple[str, Test], ...]
    away: tuple[tuple[str, Test], ...]
    near_counts: PairCounts
    away_counts: PairCounts
    unwanted: PairCounts

    def clone(self) -> "Required":
        """A state for a what-if."""
        return Required(
            self.table,
            self.pod_info,
            self.namespace_labels,
            self.near,
            self.away,
            self.near_counts.own(),
            self.away_counts.own(),
            self.unwanted.own(),
        )

    def move(self, moved: PodInfo, node: Node, number: int) -> None:
        """Count a pod on a node in or out, in a what-if."""
        labels, table, pod = node.metadata.labels, self.table, self.pod_info.pod
        for term in moved.required_anti_affinity:
            if term.matches(pod, self.namespace_labels):
                self.unwanted.move(table, term.topology_key, labels.get(term.topology_key), number)
        if passes_all([test for _, test in self.near], moved.pod):
            for key, _ in self.near:
                self.near_counts.move(table, key, labels.get(key), number)
        for key, test in self.away:
            if passes(test, moved.pod):
                self.away_counts.move(table, key, labels.get(key), number)


REQUIRED = StateKey[Required]("PreFilterInterPodAffinity")
PREFERRED = StateKey[PairScores]("PreScoreInterPodAffinity")


class InterPodAffinity:
    """The plugin."""

    name = "InterPodAffinity"
    reads = Reads.GLOBAL

    def __init__(self, args: InterPodAffinityArgs, handle: Handle) -> None:
        self._hard_weight = args.hard_pod_affinity_weight
        self._ignores_preferences_of_others = args.ignore_preferred_terms_of_existing_pods
        self._namespaces = handle.lister(NAMESPACES)

    def _labels_of(self, namespace: str) -> Labels:
        found = self._namespaces.get("", namespace)
        return found.metadata.labels if found is not None else NO_LABELS

    def _resolve(self, terms: Sequence[AffinityTerm]) -> tuple[tuple[str, Test], ...]:
        return tuple((term.topology_key, self._test(term)) for term in terms)

    def _test(self, term: AffinityTerm) -> Test:
        if term.namespace_selector.empty or not term.namespace_selector.selectable:
            return resolve_namespaces(term, ())
        return resolve_namespaces(term, ((each.name, each.metadata.labels) for each in self._namespaces.list()))

    # -- required --------------------------------------------------------------------------------------------------

    def pre_filter(self, state: CycleState, pod: Pod, table: NodeTable) -> tuple[Status, PreFilterResult]:
        """Count by topology pair; skip pods that ask for nothing and that nobody objects to."""
        info = state.pod_info
        if info.terms_error:
            return Status.unresolvable(f"parsing pod: {info.terms_error}"), ALL_NODES
        if not info.required_affinity and not info.required_anti_affinity and not table.rows_with_anti_affinity:
            return SKIP, ALL_NODES
        namespace_labels = self._labels_of(pod.metadata.namespace)
        unwanted = PairCounts()
        for term in carried_terms(table, "required_anti_affinity", pod, namespace_labels):
            unwanted.add(term.topology_key, count_carriers(table, "required_anti_affinity", term))
        near, away = self._resolve(info.required_affinity), self._resolve(info.required_anti_affinity)
        if not near and not away and unwanted.empty:
            return SKIP, ALL_NODES
        near_counts, away_counts = PairCounts(), PairCounts()
        tests = [test for _, test in near]
        for key, _ in near:
            near_counts.add(key, count_matches(table, tests, key))
        for key, test in away:
            away_counts.add(key, count_matches(table, [test], key))
        required = Required(table, info, namespace_labels, near, away, near_counts, away_counts, unwanted)
        state.write(REQUIRED, required)
        return SUCCESS, ALL_NODES

    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Codes:
        """Refuse: no pod to be near to (1), a pod to be away from (2), a pod that wants to be away (3)."""
        required = state.read(REQUIRED)
        codes: CodeArray = np.zeros(rows.stop if isinstance(rows, slice) else len(rows), dtype=np.uint8)
        for key in required.unwanted.by_key:
            codes[required.unwanted.positive(key, table, rows)] = 3
        for key in required.away_counts.by_key:
            codes[required.away_counts.positive(key, table, rows)] = 2
        if required.near:
            codes[~_is_near(required, table, rows)] = 1
        return Codes(codes, (NOT_NEAR, NOT_AWAY, UNWANTED))

    def explain(self, state: CycleState, pod: Pod, table: NodeTable, row: int) -> Status:
        """The refusal."""
        codes = self.filter_rows(state, pod, table, np.array([row], dtype=np.intp))
        return codes.statuses[int(codes.codes[0]) - 1] if codes.statuses and codes.codes[0] else SUCCESS

    def add_pod(self, state: CycleState, pod: Pod, added: PodInfo, node: NodeInfo) -> Status:
        """Count a pod in."""
        state.read(REQUIRED).move(added, node.node, 1)
        return SUCCESS

    def remove_pod(self, state: CycleState, pod: Pod, removed: PodInfo, node: NodeInfo) -> Status:
        """Count a pod out."""
        state.read(REQUIRED).move(removed, node.node, -1)
        return SUCCESS

    # -- preferred -------------------------------------------------------------------------------------------------

    def pre_score(self, state: CycleState, pod: Pod, table: NodeTable, rows: RowIndex) -> Status:
        """Add the weights up by topology pair; skip when no term means any pod."""
        info = state.pod_info
        prefers = bool(info.preferred_affinity or info.preferred_anti_affinity)
        if not prefers and (self._ignores_preferences_of_others or not table.rows_with_affinity):
            return SKIP
        scores = PairScores()
        for terms, sign in ((info.preferred_affinity, 1), (info.preferred_anti_affinity, -1)):
            for term in terms:
                counts = count_matches(table, [self._test(term)], term.topology_key)
                if counts.any():
                    scores.add(term.topology_key, counts, sign * term.weight)
        if table.rows_with_affinity:
            self._add_wishes_of_others(scores, pod, table)
        if not scores.by_key:
            return SKIP
        state.write(PREFERRED, scores)
        return SUCCESS

    def _add_wishes_of_others(self, scores: PairScores, pod: Pod, table: NodeTable) -> None:
        namespace_labels = self._labels_of(pod.metadata.namespace)
        wishes: list[tuple[TermKind, int]] = [("preferred_affinity", 1), ("preferred_anti_affinity", -1)]
        if self._hard_weight > 0:
            wishes.append(("required_affinity", self._hard_weight))
        for kind, factor in wishes:
            for term in carried_terms(table, kind, pod, namespace_labels):
                counts = count_carriers(table, kind, term)
                if counts.any():
                    scores.add(term.topology_key, counts, factor * (term.weight or 1))

    def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> ScoreArray:
        """The weights that the node's topology pairs add up to; below 0 where pods are to be kept away from."""
        return state.read(PREFERRED).of_rows(table, rows)

    def normalize(self, state: CycleState, raw: ScoreArray, low: int, high: int) -> ScoreArray:
        """The lowest gets 0, the highest 100."""
        if high == low:
            return np.zeros_like(raw)
        scaled: ScoreArray = (float(MAX_NODE_SCORE) * ((raw - low) / float(high - low))).astype(np.int64)
        return scaled

    # -- events ----------------------------------------------------------------------------------------------------

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Pods that come, go or change labels; nodes that come or change domains."""
        pods = ActionType.ADD | ActionType.UPDATE_POD_LABEL | ActionType.DELETE
        nodes = ActionType.ADD | ActionType.UPDATE_NODE_LABEL
        return (
            ClusterEventWithHint(ClusterEvent(POD, pods), self._after_pod_change),
            ClusterEventWithHint(ClusterEvent(NODE, nodes), self._after_node_change),
        )

    def _after_pod_change(self, pod: Pod, old: object | None, new: object | None) -> QueueingHint:
        before = old if isinstance(old, Pod) else None
        after = new if isinstance(new, Pod) else None
        if before is not None and after is not None and after.uid == pod.uid:
            return QueueingHint.QUEUE
        if any(each is not None and not _is_placed(each) for each in (before, after)):
            return QueueingHint.SKIP
        info = PodInfo(pod)
        near, away = info.required_affinity, info.required_anti_affinity
        if before is not None and after is not None:
            helps = (_mean(near, after) and not _mean(near, before)) or (_mean(away, before) and not _mean(away, after))
        elif after is not None:
            helps = _mean(near, after)
        else:
            assert before is not None
            helps = _mean(away, before) or _mean(PodInfo(before).required_anti_affinity, pod)
        return QueueingHint.QUEUE if helps else QueueingHint.SKIP

    def _after_node_change(self, pod: Pod, old: object | None, new: object | None) -> QueueingHint:
        if not isinstance(new, Node):
            return QueueingHint.SKIP
        info = PodInfo(pod)
        after = new.metadata.labels
        if not isinstance(old, Node):
            near = any(term.topology_key in after for term in info.required_affinity)
            return QueueingHint.QUEUE if near or info.required_anti_affinity else QueueingHint.SKIP
        before = old.metadata.labels
        for term in info.required_affinity:
            if term.topology_key in after and before.get(term.topology_key) != after[term.topology_key]:
                return QueueingHint.QUEUE
        for term in info.required_anti_affinity:
            if term.topology_key in before and before[term.topology_key] != after.get(term.topology_key):
                return QueueingHint.QUEUE
        return QueueingHint.SKIP


def _is_near(required: Required, table: NodeTable, rows: Rows) -> Mask:
    """(n_rows,) bool: nodes with every topology key and, in each domain, a pod to be near to.

    The first pod of a group that is to be near to itself goes anywhere: when no pod is meant yet, and it means itself.
    """
    has_keys: Mask | None = None
    near: Mask | None = None
    for key, _ in required.near:
        here = table.label(key).codes[rows] != ABSENT
        close = required.near_counts.positive(key, table, rows)
        has_keys = here if has_keys is None else has_keys & here
        near = close if near is None else near & close
    assert has_keys is not None
    assert near is not None
    if required.near_counts.empty and passes_all([test for _, test in required.near], required.pod_info.pod):
        return has_keys
    return near


def _is_placed(pod: Pod) -> bool:
    return bool(pod.spec.node_name or pod.status.nominated_node_name)


def _mean(terms: Sequence[AffinityTerm], pod: Pod) -> bool:
    """Whether every term means the pod, namespaces looked at by name only, as upstream's hints do."""
    return bool(terms) and all(term.matches(pod, NO_LABELS) for term in terms)
