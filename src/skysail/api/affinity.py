"""Node affinity, pod affinity and topology spread: where a pod wants, or refuses, to be."""

from skysail.api.meta import LabelSelector, Struct


class NodeSelectorRequirement(Struct, frozen=True, gc=False):
    """One test on a node label (or on a node field)."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class NodeSelectorTerm(Struct, frozen=True, gc=False):
    """Requirements that must all hold."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(Struct, frozen=True, gc=False):
    """Terms of which one must hold."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class PreferredSchedulingTerm(Struct, frozen=True, gc=False):
    """A node term worth `weight` points, 1..100."""

    preference: NodeSelectorTerm | None = None
    weight: int = 0


class NodeAffinity(Struct, frozen=True, gc=False):
    """What the pod asks of its node."""

    preferred_during_scheduling_ignored_during_execution: tuple[PreferredSchedulingTerm, ...] = ()
    required_during_scheduling_ignored_during_execution: NodeSelector | None = None


class PodAffinityTerm(Struct, frozen=True, gc=False):
    """Pods to be near to, or away from, within one value of `topology_key`."""

    label_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    topology_key: str = ""


class WeightedPodAffinityTerm(Struct, frozen=True, gc=False):
    """A pod affinity term worth `weight` points, 1..100."""

    pod_affinity_term: PodAffinityTerm | None = None
    weight: int = 0


class PodAffinity(Struct, frozen=True, gc=False):
    """Pods to be near to."""

    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] = ()
    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()


class PodAntiAffinity(Struct, frozen=True, gc=False):
    """Pods to be away from."""

    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] = ()
    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()


class Affinity(Struct, frozen=True, gc=False):
    """All of a pod's affinities."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAntiAffinity | None = None


class TopologySpreadConstraint(Struct, frozen=True, gc=False):
    """How evenly matching pods must lie over the domains of one topology key."""

    label_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    max_skew: int = 0
    min_domains: int | None = None
    node_affinity_policy: str = ""
    node_taints_policy: str = ""
    topology_key: str = ""
    when_unsatisfiable: str = ""
