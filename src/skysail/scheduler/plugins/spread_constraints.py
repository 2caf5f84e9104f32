"""Topology spread constraints, read: which apply to a pod, and which rows each of them looks at.

Source: pkg/scheduler/framework/plugins/podtopologyspread/common.go, v1.36.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from skysail.api.affinity import TopologySpreadConstraint
from skysail.api.core import Pod
from skysail.api.labels import Requirement, Selector
from skysail.api.node import Node
from skysail.api.nodeselector import matches_required_node_affinity
from skysail.api.tolerations import find_untolerated_taint
from skysail.scheduler.cache.columns import ABSENT
from skysail.scheduler.cache.table import NodeTable
from skysail.scheduler.framework.steps import Mask
from skysail.scheduler.plugins.domain_counts import DomainCounts, domain_counts
from skysail.scheduler.plugins.node_matching import match_required_affinity

HOSTNAME = "kubernetes.io/hostname"
HARD, SOFT = "DoNotSchedule", "ScheduleAnyway"

SYSTEM_DEFAULTS = (
    TopologySpreadConstraint(topology_key=HOSTNAME, when_unsatisfiable=SOFT, max_skew=3),
    TopologySpreadConstraint(topology_key="topology.kubernetes.io/zone", when_unsatisfiable=SOFT, max_skew=5),
)


@dataclass(frozen=True, slots=True)
class SpreadConstraint:
    """One constraint, parsed, with defaults filled in.

    Attributes:
        max_skew: The most that a domain may be ahead of the emptiest.
        topology_key: What makes a domain.
        selector: Which pods are spread.
        min_domains: With fewer domains the emptiest counts as empty.
        honors_affinity: Whether nodes that the pod does not select are left out.
        honors_taints: Whether nodes whose taints the pod does not tolerate are left out.
    """

    max_skew: int
    topology_key: str
    selector: Selector
    min_domains: int = 1
    honors_affinity: bool = True
    honors_taints: bool = False

    def includes(self, pod: Pod, node: Node, comparison_operators: bool) -> bool:
        """Whether the node counts for this pod, by the inclusion policies."""
        if self.honors_affinity:
            try:
                if not matches_required_node_affinity(pod, node.metadata.name, node.metadata.labels):
                    return False
            except ValueError:
                return False
        if not self.honors_taints:
            return True
        tolerations = pod.spec.tolerations
        return find_untolerated_taint(node.spec.taints, tolerations, comparison_operators=comparison_operators) is None


def read_constraints(
    constraints: Iterable[TopologySpreadConstraint], labels: Mapping[str, str], action: str, gates: Mapping[str, bool]
) -> tuple[SpreadConstraint, ...]:
    """The constraints with this `whenUnsatisfiable`, `matchLabelKeys` merged into their selectors.

    Raises:
        ValueError: A selector cannot be read.
    """
    return tuple(_read(each, labels, gates) for each in constraints if each.when_unsatisfiable == action)


def _read(
    constraint: TopologySpreadConstraint, labels: Mapping[str, str], gates: Mapping[str, bool]
) -> SpreadConstraint:
    selector = Selector.from_label_selector(constraint.label_selector)
    if constraint.match_label_keys and gates["MatchLabelKeysInPodTopologySpread"] and selector.selectable:
        merged = [Requirement(key, "=", (labels[key],)) for key in constraint.match_label_keys if key in labels]
        if merged:
            selector = Selector((*merged, *selector.requirements))
    policies = gates["NodeInclusionPolicyInPodTopologySpread"]
    return SpreadConstraint(
        max_skew=constraint.max_skew,
        topology_key=constraint.topology_key,
        selector=selector,
        min_domains=1 if constraint.min_domains is None else constraint.min_domains,
        honors_affinity=not policies or constraint.node_affinity_policy in ("", "Honor"),
        honors_taints=policies and constraint.node_taints_policy == "Honor",
    )


class ConstraintCounter:
    """Counts pods by domain for the constraints of one pod.

    Args:
        table: The nodes.
        pod: Whose constraints they are.
        keys: Topology keys that a node must have to count at all.
        comparison_operators: Whether `Lt` and `Gt` tolerate.
    """

    def __init__(self, table: NodeTable, pod: Pod, keys: Sequence[str], comparison_operators: bool) -> None:
        self._table, self._pod, self._keys = table, pod, tuple(keys)
        self._comparison = comparison_operators

    def has_keys(self) -> Mask:
        """(size,) bool: rows with every one of the keys."""
        table = self._table
        found: Mask = table.live[: table.size].copy()
        for key in self._keys:
            found &= table.label(key).codes[: table.size] != ABSENT
        return found

    def counts(self, constraint: SpreadConstraint) -> DomainCounts:
        """Matching pods by domain, on nodes that count."""
        table, pod = self._table, self._pod
        column = table.matches((frozenset((pod.metadata.namespace,)), counted_selector(constraint.selector)))
        key = (pod.metadata.namespace, constraint.selector, self._keys, self._inclusion_key(constraint))
        return domain_counts(table, key, constraint.topology_key, column, "live", lambda: self._eligible(constraint))

    def _inclusion_key(self, constraint: SpreadConstraint) -> Hashable:
        spec = self._pod.spec
        affinity = spec.affinity.node_affinity if spec.affinity is not None else None
        selects = (tuple(spec.node_selector.items()), affinity) if constraint.honors_affinity else None
        return selects, spec.tolerations if constraint.honors_taints else None

    def _eligible(self, constraint: SpreadConstraint) -> Mask:
        table, pod = self._table, self._pod
        found = self.has_keys()
        if constraint.honors_affinity:
            found &= match_required_affinity(pod, table, table.all_rows)
        if constraint.honors_taints:
            tolerated = np.array([self._tolerates(taints) for taints in table.taint_sets], dtype=np.bool_)
            found &= tolerated[table.taint_ids[: table.size]]
        return found

    def _tolerates(self, taints: Sequence[object]) -> bool:
        tolerations = self._pod.spec.tolerations
        return find_untolerated_taint(taints, tolerations, comparison_operators=self._comparison) is None  # type: ignore[arg-type]


_NONE = Selector(selectable=False)


def counted_selector(selector: Selector) -> Selector:
    """What is counted for a selector: an empty one counts no pods (though it matches the pod itself)."""
    return _NONE if selector.empty else selector
