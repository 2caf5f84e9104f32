"""Where pods want to be, in words short enough for a test.

>>> near_nodes = require_nodes({"zone": ("a", "b"), "gpu": None})
>>> away = away_from({"app": "web"}, HOSTNAME)
>>> affinity(nodes=near_nodes, away=[away]).pod_anti_affinity.required_during_scheduling_ignored_during_execution[0]
PodAffinityTerm(label_selector=LabelSelector(match_labels={'app': 'web'}, match_expressions=()), match_label_keys=(), \
mismatch_label_keys=(), namespace_selector=None, namespaces=(), topology_key='kubernetes.io/hostname')
"""

from collections.abc import Iterable, Mapping

from skysail.api.affinity import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PodAffinity,
    PodAffinityTerm,
    PodAntiAffinity,
    PreferredSchedulingTerm,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from skysail.api.meta import LabelSelector
from skysail.testing.builders import HOSTNAME, ZONE

Values = str | tuple[str, ...] | None


def node_term(labels: Mapping[str, Values]) -> NodeSelectorTerm:
    """A term: for each label one value, one of several, or (None) just that it is there."""
    return NodeSelectorTerm(
        match_expressions=tuple(
            NodeSelectorRequirement(key=key, operator="Exists")
            if values is None
            else NodeSelectorRequirement(
                key=key, operator="In", values=(values,) if isinstance(values, str) else values
            )
            for key, values in labels.items()
        )
    )


def require_nodes(*terms: Mapping[str, Values]) -> NodeSelector:
    """Nodes that satisfy one of these terms (see `node_term`)."""
    return NodeSelector(node_selector_terms=tuple(map(node_term, terms)))


def near(labels: Mapping[str, str], topology_key: str = ZONE, *, namespaces: Iterable[str] = ()) -> PodAffinityTerm:
    """Pods with these labels in the same domain."""
    return PodAffinityTerm(
        label_selector=LabelSelector(match_labels=dict(labels)),
        topology_key=topology_key,
        namespaces=tuple(namespaces),
    )


away_from = near
"""The same term; it is where it is put that makes it an anti-affinity."""


def affinity(
    *,
    nodes: NodeSelector | None = None,
    prefer_nodes: Iterable[tuple[int, NodeSelectorTerm]] = (),
    near: Iterable[PodAffinityTerm] = (),
    prefer_near: Iterable[tuple[int, PodAffinityTerm]] = (),
    away: Iterable[PodAffinityTerm] = (),
    prefer_away: Iterable[tuple[int, PodAffinityTerm]] = (),
) -> Affinity:
    """All of a pod's affinities; what is preferred comes with a weight of 1 to 100."""
    preferred = tuple(PreferredSchedulingTerm(weight=weight, preference=term) for weight, term in prefer_nodes)
    near_terms, near_weighted = tuple(near), _weighted(prefer_near)
    away_terms, away_weighted = tuple(away), _weighted(prefer_away)
    return Affinity(
        node_affinity=NodeAffinity(
            required_during_scheduling_ignored_during_execution=nodes,
            preferred_during_scheduling_ignored_during_execution=preferred,
        )
        if nodes or preferred
        else None,
        pod_affinity=PodAffinity(
            required_during_scheduling_ignored_during_execution=near_terms,
            preferred_during_scheduling_ignored_during_execution=near_weighted,
        )
        if near_terms or near_weighted
        else None,
        pod_anti_affinity=PodAntiAffinity(
            required_during_scheduling_ignored_during_execution=away_terms,
            preferred_during_scheduling_ignored_during_execution=away_weighted,
        )
        if away_terms or away_weighted
        else None,
    )


def spread_over(
    labels: Mapping[str, str], topology_key: str = ZONE, *, max_skew: int = 1, hard: bool = True
) -> TopologySpreadConstraint:
    """Pods with these labels lie evenly over the domains of a topology key."""
    return TopologySpreadConstraint(
        label_selector=LabelSelector(match_labels=dict(labels)),
        topology_key=topology_key,
        max_skew=max_skew,
        when_unsatisfiable="DoNotSchedule" if hard else "ScheduleAnyway",
    )


def _weighted(terms: Iterable[tuple[int, PodAffinityTerm]]) -> tuple[WeightedPodAffinityTerm, ...]:
    return tuple(WeightedPodAffinityTerm(weight=weight, pod_affinity_term=term) for weight, term in terms)


__all__ = [
    "HOSTNAME",
    "ZONE",
    "affinity",
    "away_from",
    "near",
    "node_term",
    "require_nodes",
    "spread_over",
]
