"""A pod with what scheduling derives from it, computed once.

Equal pods share: what a template's containers request is added up once and remembered by its shape, a pure function of
the object, so that the memory can be dropped at any time.

Source: k8s.io/kubernetes/pkg/scheduler/framework `PodInfo`, `AffinityTerm`, v1.36.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter

import msgspec

from skysail.api.affinity import Affinity, PodAffinityTerm, WeightedPodAffinityTerm
from skysail.api.core import Pod, PodStatus
from skysail.api.labels import Selector
from skysail.api.resources import PodResources, is_accounted, pod_resources, request_quantities, to_amounts

ContainerRequests = tuple[tuple[tuple[str, str], ...], ...]
LAST_SECOND = (1 << 32) - 1
"""The second of the start of a pod that has not started."""
LEAST_PRIORITY, MOST_PRIORITY = -(1 << 31), (1 << 31) - 1
"""A priority is an int32."""
REMEMBERED = 4096
"""How many distinct shapes of requests are remembered, so that pods of one template are added up once."""


@dataclass(frozen=True, slots=True, eq=False)
class AffinityTerm:
    """A pod affinity term, parsed. Terms of equal pods are one object, so terms compare and hash by identity.

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


def importance_of(priority: int, start: datetime | None) -> int:
    """Sorts the most important pod first: by priority, then by how long it runs. An int64, ~priority in the upper half.

    The lower half is the second of the start (the wire has no finer one). A pod that has not started comes last among
    equals: upstream takes the present for its start.

    Differs: starts before 1970 and after 2106 count as these; a start that lies ahead, as where a node's clock is
    fast, still comes before a pod that has not started.
    Source: pkg/scheduler/util `MoreImportantPod`, v1.36.
    """
    second = LAST_SECOND if start is None else min(max(int(start.timestamp()), 0), LAST_SECOND - 1)
    return ~min(max(priority, LEAST_PRIORITY), MOST_PRIORITY) << 32 | second


class PodInfo:
    """A pod and its derived values. Never changed after construction.

    Attributes:
        pod: The API object.
        key: Its uid, the cache's key.
        priority: 0 when none was set.
        importance: Its priority and its start as one number; the smaller, the more important (see `importance_of`).
        requests: What placing it asks for (`cpu` in milli, the rest in units; zero entries kept).
        resources: What it adds to its node's account: requests as in-place resize leaves them, and the non-zero form.
        scoring: What NodeResourcesFit counts when it scores: containers only, in the non-zero form (upstream leaves out
            pod-level requests and resizes there).
        request_key: Equal for two pods only if they request the same.
        host_ports: `(host_ip, protocol, port)` of all containers' host ports.
        claims: `namespace/name` of the persistent volume claims it mounts by name.
        required_affinity: Required pod affinity terms; the other three alike.
        terms_error: Why some term cannot be read; the list it stands in is then left out.
    """

    __slots__ = (
        "claims",
        "host_ports",
        "importance",
        "key",
        "pod",
        "preferred_affinity",
        "preferred_anti_affinity",
        "priority",
        "request_key",
        "requests",
        "required_affinity",
        "required_anti_affinity",
        "resources",
        "scoring",
        "terms_error",
    )

    def __init__(self, pod: Pod) -> None:
        self.pod = pod
        self.key = pod.metadata.uid
        self.priority = pod.spec.priority or 0
        self.importance = importance_of(self.priority, pod.status.start_time)
        self.resources, self.request_key = resources_of(pod)
        self.requests = self.resources.requests
        self.scoring = self.resources
        if pod.spec.resources is not None or _may_be_resized(pod):
            self._read_special_requests(pod)
        self.host_ports = host_ports(pod)
        self.claims = claim_names(pod)
        self.required_affinity: tuple[AffinityTerm, ...] = ()
        self.required_anti_affinity: tuple[AffinityTerm, ...] = ()
        self.preferred_affinity: tuple[AffinityTerm, ...] = ()
        self.preferred_anti_affinity: tuple[AffinityTerm, ...] = ()
        self.terms_error = ""
        if pod.spec.affinity is not None:
            self._parse_affinity(pod.spec.affinity)

    def _read_special_requests(self, pod: Pod) -> None:
        """Where upstream's uses of the requests part ways: pod-level requests, and resizes under way."""
        self.requests = _requests_without_status(pod)
        containers_only = msgspec.structs.replace(pod.spec, resources=None)
        self.scoring = pod_resources(msgspec.structs.replace(pod, spec=containers_only, status=PodStatus()))
        self.request_key = (self.request_key, tuple(sorted(self.requests.items())), _key(self.scoring))

    def _parse_affinity(self, affinity: Affinity) -> None:
        """Each of the four lists by itself: one that cannot be read leaves the others as they are."""
        near, away = affinity.pod_affinity, affinity.pod_anti_affinity
        namespace, errors = self.pod.metadata.namespace, list[str]()
        if near is not None:
            required = near.required_during_scheduling_ignored_during_execution
            preferred = near.preferred_during_scheduling_ignored_during_execution
            self.required_affinity = _terms(namespace, required, "requiredAffinityTerms", errors)
            self.preferred_affinity = _weighted(namespace, preferred, "preferredAffinityTerms", errors)
        if away is not None:
            required = away.required_during_scheduling_ignored_during_execution
            preferred = away.preferred_during_scheduling_ignored_during_execution
            self.required_anti_affinity = _terms(namespace, required, "requiredAntiAffinityTerms", errors)
            self.preferred_anti_affinity = _weighted(namespace, preferred, "preferredAntiAffinityTerms", errors)
        self.terms_error = errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]" if errors else ""

    def bound_to(self, pod: Pod) -> "PodInfo":
        """The same derived values for a new version of the object that differs in nothing they depend on."""
        copy = PodInfo.__new__(PodInfo)
        copy.pod, copy.key, copy.priority = pod, self.key, self.priority
        copy.importance = importance_of(self.priority, pod.status.start_time)
        copy.requests, copy.resources, copy.scoring = self.requests, self.resources, self.scoring
        copy.request_key = self.request_key
        copy.host_ports, copy.claims, copy.terms_error = self.host_ports, self.claims, self.terms_error
        copy.required_affinity, copy.required_anti_affinity = self.required_affinity, self.required_anti_affinity
        copy.preferred_affinity, copy.preferred_anti_affinity = self.preferred_affinity, self.preferred_anti_affinity
        return copy

    @property
    def has_affinity(self) -> bool:
        """Whether any pod affinity or anti-affinity is set, required or preferred (upstream `podWithAffinity`)."""
        affinity = self.pod.spec.affinity
        return affinity is not None and (affinity.pod_affinity is not None or affinity.pod_anti_affinity is not None)

    def __repr__(self) -> str:
        return f"PodInfo({self.pod.metadata.namespace}/{self.pod.metadata.name})"


by_importance = attrgetter("importance")
"""The key that sorts the most important pod first."""


_remembered: dict[ContainerRequests, tuple[PodResources, Hashable]] = {}


def resources_of(pod: Pod) -> tuple[PodResources, Hashable]:
    """`pod_resources` and its key, remembered for plain pods (containers only) by what their containers request."""
    spec = pod.spec
    if spec.init_containers or spec.overhead or spec.resources is not None or _may_be_resized(pod):
        resources = pod_resources(pod)
        return resources, _key(resources)
    shape = tuple(
        [
            tuple(container.resources.requests.items()) if container.resources is not None else ()
            for container in spec.containers
        ]
    )
    known = _remembered.get(shape)
    if known is None:
        if len(_remembered) >= REMEMBERED:
            _remembered.clear()
        resources = pod_resources(pod)
        known = _remembered[shape] = (resources, _key(resources))
    return known


def _key(resources: PodResources) -> Hashable:
    requests = tuple(sorted(resources.requests.items()))
    return requests, resources.nonzero_milli_cpu, resources.nonzero_memory


def _may_be_resized(pod: Pod) -> bool:
    status = pod.status
    return bool(status.container_statuses or status.init_container_statuses or status.resources is not None)


def _requests_without_status(pod: Pod) -> Mapping[str, int]:
    amounts = to_amounts(request_quantities(pod, use_status=False))
    return {name: amount for name, amount in amounts.items() if is_accounted(name)}


def host_ports(pod: Pod) -> tuple[tuple[str, str, int], ...]:
    """`(host_ip, protocol, port)` of every host port of containers and of restartable init containers.

    An empty address is `0.0.0.0`, an empty protocol `TCP`. The answer follows upstream's
    `pkg/scheduler/util.GetHostPorts`.
    """
    found: list[tuple[str, str, int]] = []
    for containers, only_sidecars in ((pod.spec.init_containers, True), (pod.spec.containers, False)):
        for container in containers:
            if container.ports and (not only_sidecars or container.restart_policy == "Always"):
                found += [
                    (port.host_ip or "0.0.0.0", port.protocol or "TCP", port.host_port)
                    for port in container.ports
                    if port.host_port > 0
                ]
    return tuple(found)


def claim_names(pod: Pod) -> tuple[str, ...]:
    """`namespace/name` of every claim mounted by name."""
    if not pod.spec.volumes:
        return ()
    return tuple(
        f"{pod.metadata.namespace}/{volume.persistent_volume_claim.claim_name}"
        for volume in pod.spec.volumes
        if volume.persistent_volume_claim is not None
    )


_terms_read: dict[tuple[str, bytes, int], AffinityTerm] = {}


def parse_term(namespace: str, term: PodAffinityTerm, weight: int = 0) -> AffinityTerm:
    """Parse one term of a pod in `namespace`; equal terms are one object.

    Raises:
        ValueError: A selector cannot be read.
    """
    names = term.namespaces
    if not names and term.namespace_selector is None:
        names = (namespace,)
    else:
        namespace = ""
    key = (namespace, msgspec.json.encode(term, order="deterministic"), weight)
    known = _terms_read.get(key)
    if known is None:
        if len(_terms_read) >= REMEMBERED:
            _terms_read.clear()
        known = _terms_read[key] = AffinityTerm(
            namespaces=frozenset(names),
            selector=Selector.from_label_selector(term.label_selector),
            topology_key=term.topology_key,
            namespace_selector=Selector.from_label_selector(term.namespace_selector),
            weight=weight,
        )
    return known


def _terms(
    namespace: str, terms: tuple[PodAffinityTerm, ...], kind: str, errors: list[str]
) -> tuple[AffinityTerm, ...]:
    """The terms of one list; none when one of them cannot be read, and the reason goes to `errors`."""
    try:
        return tuple(parse_term(namespace, term) for term in terms)
    except ValueError as error:
        errors.append(f"{kind}: {error}")
        return ()


def _weighted(
    namespace: str, terms: tuple[WeightedPodAffinityTerm, ...], kind: str, errors: list[str]
) -> tuple[AffinityTerm, ...]:
    """`_terms` for preferred ones."""
    try:
        return tuple(
            parse_term(namespace, term.pod_affinity_term, term.weight)
            for term in terms
            if term.pod_affinity_term is not None
        )
    except ValueError as error:
        errors.append(f"{kind}: {error}")
        return ()
