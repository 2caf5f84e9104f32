"""A pod with what scheduling derives from it, computed once.

Source: k8s.io/kubernetes/pkg/scheduler/framework `PodInfo`, `AffinityTerm`, v1.36.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from skysail.api.affinity import Affinity, PodAffinityTerm, WeightedPodAffinityTerm
from skysail.api.core import Pod
from skysail.api.labels import Selector
from skysail.api.resources import PodResource, pod_requests, pod_resource

NO_REQUESTS: Mapping[str, int] = {}


@dataclass(frozen=True, slots=True)
class AffinityTerm:
    """A pod affinity term, parsed.

    Attributes:
        namespaces: Namespaces by name. The pod's own one stands here when the term names none and has no selector.
        selector: Which pods.
        topology_key: Within which domains.
        namespace_selector: Namespaces by label; matches nothing when the term has none.
        weight: 1..100 for preferred terms, 0 for required ones.
    """

    namespaces: frozenset[str]
    selector: Selector
    topology_key: str
    namespace_selector: Selector
    weight: int = 0

    def matches(self, pod: Pod, namespace_labels: Mapping[str, str]) -> bool:
        """Whether `pod` is meant; `namespace_labels` are those of its namespace."""
        if pod.metadata.namespace in self.namespaces or self.namespace_selector.matches(namespace_labels):
            return self.selector.matches(pod.metadata.labels)
        return False


class PodInfo:
    """A pod and its derived values. Never changed after construction.

    Attributes:
        pod: The API object.
        key: Its uid, the cache's key.
        requests: What placing it asks for (`cpu` in milli, the rest in units; zero entries kept).
        resource: What it adds to its node's account: requests as in-place resize leaves them, and the non-zero form.
        host_ports: `(host_ip, protocol, port)` of all containers' host ports.
        claims: `namespace/name` of the persistent volume claims it mounts by name.
        required_affinity: Required pod affinity terms; the other three alike.
    """

    __slots__ = (
        "claims",
        "host_ports",
        "key",
        "pod",
        "preferred_affinity",
        "preferred_anti_affinity",
        "required_affinity",
        "required_anti_affinity",
        "requests",
        "resource",
    )

    def __init__(self, pod: Pod) -> None:
        self.pod = pod
        self.key = pod.metadata.uid
        self.requests: Mapping[str, int] = pod_requests(pod)
        self.resource: PodResource = pod_resource(pod)
        self.host_ports = host_ports(pod)
        self.claims = claim_names(pod)
        self.required_affinity: tuple[AffinityTerm, ...] = ()
        self.required_anti_affinity: tuple[AffinityTerm, ...] = ()
        self.preferred_affinity: tuple[AffinityTerm, ...] = ()
        self.preferred_anti_affinity: tuple[AffinityTerm, ...] = ()
        if pod.spec.affinity is not None:
            self._parse_affinity(pod.spec.affinity)

    def _parse_affinity(self, affinity: Affinity) -> None:
        namespace = self.pod.metadata.namespace
        if affinity.pod_affinity is not None:
            near = affinity.pod_affinity
            self.required_affinity = _terms(namespace, near.required_during_scheduling_ignored_during_execution)
            self.preferred_affinity = _weighted(namespace, near.preferred_during_scheduling_ignored_during_execution)
        if affinity.pod_anti_affinity is not None:
            away = affinity.pod_anti_affinity
            self.required_anti_affinity = _terms(namespace, away.required_during_scheduling_ignored_during_execution)
            self.preferred_anti_affinity = _weighted(
                namespace, away.preferred_during_scheduling_ignored_during_execution
            )

    @property
    def has_affinity(self) -> bool:
        """Whether any pod affinity or anti-affinity is set, required or preferred (upstream `podWithAffinity`)."""
        affinity = self.pod.spec.affinity
        return affinity is not None and (affinity.pod_affinity is not None or affinity.pod_anti_affinity is not None)

    def __repr__(self) -> str:
        return f"PodInfo({self.pod.metadata.namespace}/{self.pod.metadata.name})"


def host_ports(pod: Pod) -> tuple[tuple[str, str, int], ...]:
    """`(host_ip, protocol, port)` of every host port of containers and of restartable init containers.

    An empty address is `0.0.0.0`, an empty protocol `TCP`. The answer follows upstream's
    `pkg/scheduler/util.GetHostPorts`.
    """
    found: list[tuple[str, str, int]] = []
    spec = pod.spec
    for container in spec.containers:
        for port in container.ports:
            if port.host_port > 0:
                found.append((port.host_ip or "0.0.0.0", port.protocol or "TCP", port.host_port))
    for container in spec.init_containers:
        if container.restart_policy == "Always":
            for port in container.ports:
                if port.host_port > 0:
                    found.append((port.host_ip or "0.0.0.0", port.protocol or "TCP", port.host_port))
    return tuple(found)


def claim_names(pod: Pod) -> tuple[str, ...]:
    """`namespace/name` of every claim mounted by name."""
    return tuple(
        f"{pod.metadata.namespace}/{volume.persistent_volume_claim.claim_name}"
        for volume in pod.spec.volumes
        if volume.persistent_volume_claim is not None
    )


def parse_term(namespace: str, term: PodAffinityTerm, weight: int = 0) -> AffinityTerm:
    """Parse one term of a pod in `namespace`."""
    names = term.namespaces
    if not names and term.namespace_selector is None:
        names = (namespace,)
    return AffinityTerm(
        namespaces=frozenset(names),
        selector=Selector.from_label_selector(term.label_selector),
        topology_key=term.topology_key,
        namespace_selector=Selector.from_label_selector(term.namespace_selector),
        weight=weight,
    )


def _terms(namespace: str, terms: tuple[PodAffinityTerm, ...]) -> tuple[AffinityTerm, ...]:
    return tuple(parse_term(namespace, term) for term in terms)


def _weighted(namespace: str, terms: tuple[WeightedPodAffinityTerm, ...]) -> tuple[AffinityTerm, ...]:
    return tuple(
        parse_term(namespace, term.pod_affinity_term, term.weight)
        for term in terms
        if term.pod_affinity_term is not None
    )
