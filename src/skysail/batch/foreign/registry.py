"""The table of other systems' kinds, and reading all their objects at once.

A cluster serves some of them. Whoever watches asks `served` for the kinds to watch (of several versions of one kind the
newest that is served), and gives what it has to `read_queues`, `read_group` and `MembershipReader`.
"""

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from skysail.api.kinds import Kind
from skysail.api.raw import Raw
from skysail.batch.foreign import coscheduling, elastic, kai, koordinator, kueue, upstream, volcano
from skysail.batch.foreign.decoding import GroupReading
from skysail.batch.kinds.pod_group import PodGroupStatus
from skysail.batch.kinds.reading import PriorityOf, QueueRecords

RawKind = Kind[Raw]


def _kinds(group: str, versions: str, name: str, plural: str, *, namespaced: bool) -> tuple[RawKind, ...]:
    return tuple(Kind(group, each, name, plural, namespaced, dict, ("status",)) for each in versions.split())


VOLCANO_QUEUES: Final = _kinds(volcano.GROUP, "v1beta1", "Queue", "queues", namespaced=False)
CLUSTER_QUEUES: Final = _kinds(kueue.GROUP, "v1beta2 v1beta1", "ClusterQueue", "clusterqueues", namespaced=False)
COHORTS: Final = _kinds(kueue.GROUP, "v1beta2 v1beta1 v1alpha1", "Cohort", "cohorts", namespaced=False)
LOCAL_QUEUES: Final = _kinds(kueue.GROUP, "v1beta2 v1beta1", "LocalQueue", "localqueues", namespaced=True)
FLAVORS: Final = _kinds(kueue.GROUP, "v1beta2 v1beta1", "ResourceFlavor", "resourceflavors", namespaced=False)
KAI_QUEUES: Final = _kinds(kai.GROUP, "v2", "Queue", "queues", namespaced=False)
ELASTIC_QUOTAS: Final = (
    *_kinds("scheduling.x-k8s.io", "v1alpha1", "ElasticQuota", "elasticquotas", namespaced=True),
    *_kinds("scheduling.sigs.k8s.io", "v1alpha1", "ElasticQuota", "elasticquotas", namespaced=True),
)
QUEUE_KINDS: Final[tuple[tuple[RawKind, ...], ...]] = (
    VOLCANO_QUEUES,
    CLUSTER_QUEUES,
    COHORTS,
    LOCAL_QUEUES,
    FLAVORS,
    KAI_QUEUES,
    ELASTIC_QUOTAS[:1],
    ELASTIC_QUOTAS[1:],
)

WORKLOAD_PRIORITIES: Final = _kinds(
    kueue.GROUP, "v1beta2 v1beta1", "WorkloadPriorityClass", "workloadpriorityclasses", namespaced=False
)
WORKLOADS: Final = _kinds(kueue.GROUP, "v1beta2 v1beta1", "Workload", "workloads", namespaced=True)
RESERVATIONS: Final = _kinds(koordinator.GROUP, "v1alpha1", "Reservation", "reservations", namespaced=False)
VOLCANO_GROUPS: Final = _kinds(volcano.GROUP, "v1beta1", "PodGroup", "podgroups", namespaced=True)
KAI_GROUPS: Final = _kinds(kai.GROUP, "v2alpha2", "PodGroup", "podgroups", namespaced=True)
COSCHEDULING_GROUPS: Final = _kinds(coscheduling.GROUP, "v1alpha1", "PodGroup", "podgroups", namespaced=True)
UPSTREAM_GROUPS: Final = _kinds(upstream.GROUP, "v1alpha2", "PodGroup", "podgroups", namespaced=True)
GROUP_KINDS: Final[tuple[tuple[RawKind, ...], ...]] = (
    UPSTREAM_GROUPS,
    VOLCANO_GROUPS,
    KAI_GROUPS,
    COSCHEDULING_GROUPS,
)
"""In order of who counts when two systems have a group of one name."""


def served(table: Iterable[tuple[RawKind, ...]], resources: Container[tuple[str, str]]) -> list[RawKind]:
    """The kinds to watch.

    Args:
        table: `QUEUE_KINDS` or `GROUP_KINDS`.
        resources: Pairs of `group/version` and plural that the server has.
    """
    found = []
    for versions in table:
        kind = next((each for each in versions if (each.api_version, each.plural) in resources), None)
        if kind is not None:
            found.append(kind)
    return found


@dataclass(slots=True)
class ForeignQueues:
    """What all other systems' queues say together.

    Attributes:
        records: Queues, lines, flavors, problems.
        namespaces: By namespace, the queue of pods that name none.
    """

    records: QueueRecords = field(default_factory=QueueRecords)
    namespaces: dict[str, str] = field(default_factory=dict)


def read_queues(objects: Mapping[str, Iterable[Raw]]) -> ForeignQueues:
    """Read them all.

    Args:
        objects: By resource, e.g. `clusterqueues.kueue.x-k8s.io`.
    """

    def of(kinds: tuple[RawKind, ...]) -> list[Raw]:
        found = [
            raw for resource in dict.fromkeys(kind.resource for kind in kinds) for raw in objects.get(resource, ())
        ]
        return sorted(found, key=_place)

    found = ForeignQueues()
    found.records.add(volcano.read_queues(of(VOLCANO_QUEUES)))
    found.records.add(
        kueue.read_queues(kueue.KueueObjects(of(CLUSTER_QUEUES), of(COHORTS), of(LOCAL_QUEUES), of(FLAVORS)))
    )
    found.records.add(kai.read_queues(of(KAI_QUEUES)))
    quotas = elastic.read_quotas(of(ELASTIC_QUOTAS))
    found.records.add(quotas.records)
    found.namespaces = quotas.namespaces
    return found


def _place(raw: Raw) -> tuple[str, str]:
    metadata = raw.get("metadata") or {}
    return str(metadata.get("namespace", "")), str(metadata.get("name", ""))


_GROUP_READERS: Final[Mapping[str, Callable[[Raw, PriorityOf], GroupReading]]] = {
    UPSTREAM_GROUPS[0].resource: upstream.read_group,
    VOLCANO_GROUPS[0].resource: volcano.read_group,
    KAI_GROUPS[0].resource: kai.read_group,
    COSCHEDULING_GROUPS[0].resource: lambda raw, priority_of: coscheduling.read_group(raw),
}
_GROUP_STATUSES: Final[Mapping[str, Callable[[PodGroupStatus], Raw]]] = {
    UPSTREAM_GROUPS[0].resource: upstream.group_status,
    VOLCANO_GROUPS[0].resource: volcano.group_status,
    KAI_GROUPS[0].resource: kai.group_status,
    COSCHEDULING_GROUPS[0].resource: coscheduling.group_status,
}


def read_group(kind: RawKind, raw: Raw, priority_of: PriorityOf = lambda name: None) -> GroupReading:
    """One gang of another system."""
    return _GROUP_READERS[kind.resource](raw, priority_of)


def group_status(kind: RawKind, status: PodGroupStatus) -> Raw:
    """Our status of a gang in the words of the system whose object it is."""
    return _GROUP_STATUSES[kind.resource](status)
