"""Places pods on the nodes they select, and scores the ones they prefer.

Source: pkg/scheduler/framework/plugins/nodeaffinity, v1.36.
"""

from collections.abc import Hashable, Sequence

from skysail.api.affinity import NodeAffinity as NodeAffinityTerms
from skysail.api.affinity import NodeSelectorTerm
from skysail.api.core import Pod
from skysail.api.errors import ConfigError
from skysail.api.node import Node
from skysail.api.nodeselector import (
    CompiledNodeSelector,
    CompiledTerm,
    compile_node_selector,
    compile_preferred_terms,
    matches_required_node_affinity,
)
from skysail.scheduler.cache.matrices import RowIndex, Rows
from skysail.scheduler.cache.pod_info import PodInfo
from skysail.scheduler.cache.table import NodeTable
from skysail.scheduler.framework.codes import ALL_PASS, Codes, Reads, ScoreArray, zero_scores
from skysail.scheduler.framework.cycle_state import CycleState, StateKey
from skysail.scheduler.framework.events import NODE, ActionType, ClusterEvent, ClusterEventWithHint, QueueingHint
from skysail.scheduler.framework.handle import Handle
from skysail.scheduler.framework.plugin import ALL_NODES, PreFilterResult
from skysail.scheduler.framework.status import SKIP, SUCCESS, Status
from skysail.scheduler.plugins.args import NodeAffinityArgs
from skysail.scheduler.plugins.node_matching import match_node_selector, match_required_affinity, match_term
from skysail.scheduler.plugins.normalizing import default_normalize

REFUSED = Status.unresolvable("node(s) didn't match Pod's node affinity/selector")
REFUSED_BY_SCHEDULER = Status.unresolvable("node(s) didn't match scheduler-enforced node affinity")
CONFLICT = Status.unresolvable("pod affinity terms conflict")

WeightedTerms = tuple[tuple[int, CompiledTerm], ...]
PREFERRED = StateKey[WeightedTerms]("PreScoreNodeAffinity")


class NodeAffinity:
    """The plugin."""

    name = "NodeAffinity"
    reads = Reads.STATIC

    def __init__(self, args: NodeAffinityArgs, handle: Handle) -> None:
        self._added: CompiledNodeSelector | None = None
        self._added_preferred: WeightedTerms = ()
        added = args.added_affinity
        if added is not None:
            self._read_added(added)

    def _read_added(self, added: NodeAffinityTerms) -> None:
        required = added.required_during_scheduling_ignored_during_execution
        if required is not None:
            self._added = compile_node_selector(required)
            if self._added.errors:
                raise ConfigError("; ".join(self._added.errors), path="addedAffinity")
        try:
            self._added_preferred = compile_preferred_terms(added.preferred_during_scheduling_ignored_during_execution)
        except ValueError as error:
            raise ConfigError(str(error), path="addedAffinity") from error

    def sign(self, pod: PodInfo) -> Hashable:
        """Node selector and node affinity."""
        spec = pod.pod.spec
        affinity = spec.affinity.node_affinity if spec.affinity is not None else None
        selector = tuple(spec.node_selector.items()) if spec.node_selector else ()
        return (selector, affinity) if affinity is not None else selector

    def pre_filter(self, state: CycleState, pod: Pod, table: NodeTable) -> tuple[Status, PreFilterResult]:
        """Skip pods that ask for nothing; narrow the search where every term names its nodes."""
        affinity = _node_affinity(pod)
        required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
        if required is None and self._added is None and not pod.spec.node_selector:
            return SKIP, ALL_NODES
        if required is None or not required.node_selector_terms:
            return SUCCESS, ALL_NODES
        names: frozenset[str] = frozenset()
        for term in required.node_selector_terms:
            named = _named_nodes(term)
            if named is None:
                return SUCCESS, ALL_NODES
            names |= named
        return (SUCCESS, PreFilterResult(names)) if names else (CONFLICT, ALL_NODES)

    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Codes:
        """Refuse nodes that the pod, or the profile, does not select."""
        matches = match_required_affinity(pod, table, rows)
        if self._added is None:
            return ALL_PASS if matches.all() else Codes.refuse(~matches, REFUSED)
        codes = (~matches).astype("uint8")
        codes[~match_node_selector(self._added, table, rows)] = 2
        return Codes(codes, (REFUSED, REFUSED_BY_SCHEDULER))

    def explain(self, state: CycleState, pod: Pod, table: NodeTable, row: int) -> Status:
        """The refusal."""
        return self._status(pod, table.info(row).node)

    def _status(self, pod: Pod, node: Node) -> Status:
        name, labels = node.metadata.name, node.metadata.labels
        if self._added is not None and not self._added.matches(name, labels):
            return REFUSED_BY_SCHEDULER
        try:
            return SUCCESS if matches_required_node_affinity(pod, name, labels) else REFUSED
        except ValueError:
            return REFUSED

    def pre_score(self, state: CycleState, pod: Pod, table: NodeTable, rows: RowIndex) -> Status:
        """Read the preferences; skip without any."""
        affinity = _node_affinity(pod)
        terms = affinity.preferred_during_scheduling_ignored_during_execution if affinity is not None else ()
        if not terms and not self._added_preferred:
            return SKIP
        try:
            preferred = compile_preferred_terms(terms)
        except ValueError as error:
            return Status.error(str(error))
        state.write(PREFERRED, self._added_preferred + preferred)
        return SUCCESS

    def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> ScoreArray:
        """The weights of the terms that match."""
        total = zero_scores(rows)
        for weight, term in state.read(PREFERRED):
            total += weight * match_term(term, table, rows)
        return total

    def normalize(self, state: CycleState, raw: ScoreArray, low: int, high: int) -> ScoreArray:
        """The best node gets 100."""
        return default_normalize(raw, high)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Nodes that come or change labels."""
        return (
            ClusterEventWithHint(
                ClusterEvent(NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL), self._after_node_change
            ),
        )

    def _after_node_change(self, pod: Pod, old: object | None, new: object | None) -> QueueingHint:
        if not isinstance(new, Node) or not self._status(pod, new).is_success:
            return QueueingHint.SKIP
        if isinstance(old, Node) and matches_required_node_affinity(pod, old.name, old.metadata.labels):
            return QueueingHint.SKIP
        return QueueingHint.QUEUE


def _node_affinity(pod: Pod) -> NodeAffinityTerms | None:
    return pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None


def _named_nodes(term: NodeSelectorTerm) -> frozenset[str] | None:
    """The nodes a term names by field, or None when it leaves the name open."""
    names: frozenset[str] | None = None
    for requirement in term.match_fields:
        if requirement.key == "metadata.name" and requirement.operator == "In":
            values = frozenset(requirement.values)
            names = values if names is None else names & values
    return names
