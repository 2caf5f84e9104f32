"""The plain, per-node form of the plugins that count over all nodes: the oracle of their table form.

Written after upstream's walk over nodes and pods, with dictionaries, as simply as can be.
"""

import math
from collections import Counter

from skysail.api.core import Pod
from skysail.scheduler.cache.node_info import NodeInfo
from skysail.scheduler.cache.pod_info import AffinityTerm, PodInfo
from skysail.scheduler.framework.cycle_state import CycleState
from skysail.scheduler.framework.status import SUCCESS, Status
from skysail.scheduler.plugins.spread_constraints import HARD, HOSTNAME, SOFT, SpreadConstraint, read_constraints

Pair = tuple[str, str]


class PlainSpread:
    """Topology spread of one pod with its own constraints, over a list of nodes."""

    def __init__(self, nodes: list[NodeInfo], pod: Pod, gates: dict[str, bool]) -> None:
        self.nodes, self.pod = nodes, pod
        constraints, labels = pod.spec.topology_spread_constraints, pod.metadata.labels
        self.hard = read_constraints(constraints, labels, HARD, gates)
        self.soft = read_constraints(constraints, labels, SOFT, gates)

    def matching(self, node: NodeInfo, constraint: SpreadConstraint) -> int:
        return sum(
            info.pod.metadata.deletion_timestamp is None
            and info.pod.metadata.namespace == self.pod.metadata.namespace
            and not constraint.selector.empty
            and constraint.selector.matches(info.pod.metadata.labels)
            for info in node.pods.values()
        )

    def by_domain(self, constraint: SpreadConstraint, keys: list[str]) -> Counter[str]:
        counts: Counter[str] = Counter()
        for node in self.nodes:
            labels = node.node.metadata.labels
            if all(key in labels for key in keys) and constraint.includes(self.pod, node.node, False):
                counts[labels[constraint.topology_key]] += self.matching(node, constraint)
        return counts

    def filter(self, node: NodeInfo) -> str:
        keys = [each.topology_key for each in self.hard]
        for constraint in self.hard:
            value = node.node.metadata.labels.get(constraint.topology_key)
            if value is None:
                return "missing"
            counts = self.by_domain(constraint, keys)
            low = 0 if len(counts) < constraint.min_domains else min(counts.values())
            own = constraint.selector.matches(self.pod.metadata.labels)
            if counts[value] + own - low > constraint.max_skew:
                return "skewed"
        return ""

    def scores(self, feasible: list[NodeInfo]) -> list[int]:
        keys = [each.topology_key for each in self.soft]
        scored = [node for node in feasible if all(key in node.node.metadata.labels for key in keys)]
        raw = {node.name: self.raw(node, scored, keys) for node in scored}
        low, high = min(raw.values(), default=0), max(raw.values(), default=0)
        return [
            0 if node.name not in raw else 100 if high == 0 else 100 * (high + low - raw[node.name]) // high
            for node in feasible
        ]

    def raw(self, node: NodeInfo, scored: list[NodeInfo], keys: list[str]) -> int:
        total = 0.0
        for constraint in self.soft:
            value = node.node.metadata.labels[constraint.topology_key]
            if constraint.topology_key == HOSTNAME:
                count, domains = self.matching(node, constraint), len(scored)
            else:
                count = self.by_domain(constraint, keys)[value]
                domains = len({each.node.metadata.labels[constraint.topology_key] for each in scored})
            total += count * math.log(domains + 2) + (constraint.max_skew - 1)
        return math.floor(total + 0.5)


class PlainAffinity:
    """Pod affinity of one pod, over a list of nodes; namespaces by name only."""

    def __init__(self, nodes: list[NodeInfo], pod: Pod, hard_weight: int = 1) -> None:
        self.nodes, self.pod, self.info, self.hard_weight = nodes, pod, PodInfo(pod), hard_weight

    def pairs(self) -> tuple[Counter[Pair], Counter[Pair], Counter[Pair]]:
        near: Counter[Pair] = Counter()
        away: Counter[Pair] = Counter()
        unwanted: Counter[Pair] = Counter()
        for node in self.nodes:
            labels = node.node.metadata.labels
            for other in node.pods.values():
                affinity = self.info.required_affinity
                if affinity and all(term.matches(other.pod, {}) for term in affinity):
                    near.update(
                        (term.topology_key, labels[term.topology_key])
                        for term in affinity
                        if term.topology_key in labels
                    )
                for counts, terms, meant in (
                    (away, self.info.required_anti_affinity, other.pod),
                    (unwanted, other.required_anti_affinity, self.pod),
                ):
                    counts.update(
                        (term.topology_key, labels[term.topology_key])
                        for term in terms
                        if term.matches(meant, {}) and term.topology_key in labels
                    )
        return near, away, unwanted

    def filter(self, node: NodeInfo) -> str:
        near, away, unwanted = self.pairs()
        labels = node.node.metadata.labels
        terms = self.info.required_affinity
        if any(term.topology_key not in labels for term in terms):
            return "near"
        if any(not near[(term.topology_key, labels[term.topology_key])] for term in terms):
            first = not near and all(term.matches(self.pod, {}) for term in terms)
            if not first:
                return "near"
        if any(
            away[(term.topology_key, labels.get(term.topology_key, ""))] for term in self.info.required_anti_affinity
        ):
            return "away"
        return "unwanted" if any(unwanted[pair] for pair in labels.items()) else ""

    def raw(self) -> Counter[Pair]:
        scores: Counter[Pair] = Counter()
        for node in self.nodes:
            for other in node.pods.values():
                self._add(scores, node, self.info.preferred_affinity, other.pod, 1)
                self._add(scores, node, self.info.preferred_anti_affinity, other.pod, -1)
                self._add(scores, node, other.required_affinity, self.pod, self.hard_weight)
                self._add(scores, node, other.preferred_affinity, self.pod, 1)
                self._add(scores, node, other.preferred_anti_affinity, self.pod, -1)
        return scores

    @staticmethod
    def _add(scores: Counter[Pair], node: NodeInfo, terms: tuple[AffinityTerm, ...], meant: Pod, factor: int) -> None:
        for term in terms:
            value = node.node.metadata.labels.get(term.topology_key)
            if value is not None and term.matches(meant, {}):
                scores[(term.topology_key, value)] += factor * (term.weight or 1)

    def scores(self, feasible: list[NodeInfo]) -> list[int]:
        pairs = self.raw()
        raw = [sum(pairs[pair] for pair in node.node.metadata.labels.items()) for node in feasible]
        low, high = min(raw, default=0), max(raw, default=0)
        return [int(100.0 * ((score - low) / (high - low))) if high > low else 0 for score in raw]


def outcome(status: Status) -> str:
    """A table plugin's status in the plain form's words."""
    words = {
        "node(s) didn't match pod topology spread constraints": "skewed",
        "node(s) didn't match pod topology spread constraints (missing required label)": "missing",
        "node(s) didn't match pod affinity rules": "near",
        "node(s) didn't match pod anti-affinity rules": "away",
        "node(s) didn't satisfy existing pods anti-affinity rules": "unwanted",
    }
    return words[status.reasons[0]] if status != SUCCESS else ""


def new_state(pod: Pod) -> CycleState:
    return CycleState(PodInfo(pod))
