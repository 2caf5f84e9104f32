"""Kueue's ClusterQueue, Cohort, LocalQueue and ResourceFlavor (`kueue.x-k8s.io`, v1beta1 and v1beta2).

| Kueue                    | here                                                                                   |
| ------------------------ | -------------------------------------------------------------------------------------- |
| ClusterQueue in a cohort | a queue below it: deserved = nominal; guarantee = nominal - lendingLimit (0 if unset); |
|                          | capability = nominal + borrowingLimit (none if unset)                                  |
| ClusterQueue without one | capability = nominal: there is nobody to borrow from                                   |
| Cohort                   | a queue `cohort:NAME` without jobs; its figures are sums over its subtree and its own  |
| a cohort only named      | the same, at the top                                                                   |
| LocalQueue               | a line                                                                                 |
| ResourceFlavor           | a flavor, by its nodeLabels                                                            |

A top cohort's capability is the sum of its subtree: that is all its members can share. Resources that no group covers
are not limited, where Kueue would admit no job that asks for them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from skysail.api.labels import NOTHING, Selector
from skysail.api.meta import ApiObject, LabelSelector, Struct
from skysail.api.raw import Raw
from skysail.batch.foreign.decoding import Amount, T, decode
from skysail.batch.kinds.reading import DEQUEUES, STATES, Notes, Problem, QueueRecords, created
from skysail.batch.model import specs
from skysail.batch.model.resources import FlavorResource

GROUP: Final = "kueue.x-k8s.io"


class KueueResource(Struct, frozen=True, gc=False):
    """One resource of a flavor."""

    name: str = ""
    nominal_quota: Amount = 0
    borrowing_limit: Amount | None = None
    lending_limit: Amount | None = None


class KueueFlavor(Struct, frozen=True, gc=False):
    """One flavor of a resource group."""

    name: str = ""
    resources: tuple[KueueResource, ...] = ()


class ResourceGroup(Struct, frozen=True, gc=False):
    """Resources that are given out together."""

    flavors: tuple[KueueFlavor, ...] = ()


class KueueFairSharing(Struct, frozen=True, gc=False):
    """`fairSharing`."""

    weight: Amount = 1


class KueueBorrow(Struct, frozen=True, gc=False):
    """`preemption.borrowWithinCohort`."""

    policy: str = "Never"
    max_priority_threshold: int | None = None


class KueuePreemption(Struct, frozen=True, gc=False):
    """`preemption`; Kueue's defaults evict nobody."""

    within_cluster_queue: str = "Never"
    reclaim_within_cohort: str = "Never"
    borrow_within_cohort: KueueBorrow = KueueBorrow()


class ClusterQueueSpec(Struct, frozen=True, gc=False):
    """A ClusterQueue's spec; `cohort` is v1beta1's word for `cohortName`."""

    cohort_name: str = ""
    cohort: str = ""
    resource_groups: tuple[ResourceGroup, ...] = ()
    queueing_strategy: str = ""
    preemption: KueuePreemption = KueuePreemption()
    stop_policy: str = "None"
    fair_sharing: KueueFairSharing = KueueFairSharing()
    namespace_selector: LabelSelector | None = None


class ClusterQueue(ApiObject, frozen=True, gc=False, kw_only=True):
    """A ClusterQueue."""

    spec: ClusterQueueSpec = ClusterQueueSpec()


class CohortSpec(Struct, frozen=True, gc=False):
    """A Cohort's spec; `parent` is the older word for `parentName`."""

    parent_name: str = ""
    parent: str = ""
    resource_groups: tuple[ResourceGroup, ...] = ()
    fair_sharing: KueueFairSharing = KueueFairSharing()


class Cohort(ApiObject, frozen=True, gc=False, kw_only=True):
    """A Cohort."""

    spec: CohortSpec = CohortSpec()


class LocalQueueSpec(Struct, frozen=True, gc=False):
    """A LocalQueue's spec."""

    cluster_queue: str = ""
    stop_policy: str = "None"


class LocalQueue(ApiObject, frozen=True, gc=False, kw_only=True):
    """A LocalQueue."""

    spec: LocalQueueSpec = LocalQueueSpec()


class ResourceFlavorSpec(Struct, frozen=True, gc=False):
    """A ResourceFlavor's spec."""

    node_labels: Mapping[str, str] = {}


class ResourceFlavor(ApiObject, frozen=True, gc=False, kw_only=True):
    """A ResourceFlavor."""

    spec: ResourceFlavorSpec = ResourceFlavorSpec()


@dataclass(frozen=True, slots=True)
class KueueObjects:
    """All of Kueue's objects."""

    cluster_queues: Iterable[Raw] = ()
    cohorts: Iterable[Raw] = ()
    local_queues: Iterable[Raw] = ()
    flavors: Iterable[Raw] = ()


@dataclass(slots=True)
class _Quotas:
    """What one ClusterQueue or Cohort states, or its subtree adds up to."""

    nominal: dict[FlavorResource, int] = field(default_factory=dict)
    borrowing: dict[FlavorResource, int] = field(default_factory=dict)
    lending: dict[FlavorResource, int] = field(default_factory=dict)

    def figures(self, *, borrows: bool) -> dict[FlavorResource, specs.Figures]:
        """As a queue's figures."""
        found = {}
        for key, nominal in self.nominal.items():
            lending, borrowing = self.lending.get(key), self.borrowing.get(key)
            guarantee = max(0, nominal - lending) if lending is not None else None
            capability = nominal if not borrows else nominal + borrowing if borrowing is not None else None
            found[key] = specs.Figures(guarantee, nominal, capability)
        return found


def cohort_name(name: str) -> str:
    """The name of a cohort's queue: a cohort may bear the name of one of its ClusterQueues."""
    return f"cohort:{name}"


def read_queues(objects: KueueObjects) -> QueueRecords:
    """What all of Kueue's objects say together."""
    found = QueueRecords()
    queues = _decoded(objects.cluster_queues, ClusterQueue, found)
    cohorts = {each.name: each for each in _decoded(objects.cohorts, Cohort, found)}
    quotas = {queue.name: _quotas(queue.spec.resource_groups, f"ClusterQueue {queue.name}", found) for queue in queues}
    sharing = {queue.name: queue.spec.fair_sharing for queue in queues}
    weights = _weights(sharing | {cohort_name(name): each.spec.fair_sharing for name, each in cohorts.items()})
    for queue in queues:
        found.queues[queue.name] = _cluster_queue(queue, quotas[queue.name], weights[queue.name])
    _add_cohorts(found, queues, cohorts, quotas, weights)
    for line in _decoded(objects.local_queues, LocalQueue, found):
        found.job_queues[line.key] = specs.JobQueueSpec(
            line.namespace,
            line.name,
            line.spec.cluster_queue,
            uid=line.uid,
            stopped=line.spec.stop_policy != "None",
            created=created(line),
        )
    for flavor in _decoded(objects.flavors, ResourceFlavor, found):
        found.flavors[flavor.name] = specs.FlavorSpec(flavor.name, flavor.spec.node_labels)
    _say_missing_flavors(found)
    return found


def _decoded(raws: Iterable[Raw], struct: type[T], found: QueueRecords) -> list[T]:
    read = [decode(raw, struct) for raw in raws]
    found.problems += [each for each in read if isinstance(each, Problem)]
    return [each for each in read if not isinstance(each, Problem)]


def _quotas(groups: Iterable[ResourceGroup], who: str, found: QueueRecords) -> _Quotas:
    notes, quotas = Notes(who), _Quotas()
    for group in groups:
        for flavor in group.flavors:
            for resource in flavor.resources:
                key = (flavor.name, resource.name)
                path = f"flavors[{flavor.name}].resources"
                quotas.nominal[key] = _amount(notes, resource.name, resource.nominal_quota, path) or 0
                for limit, into in (
                    (resource.borrowing_limit, quotas.borrowing),
                    (resource.lending_limit, quotas.lending),
                ):
                    amount = _amount(notes, resource.name, limit, path)
                    if amount is not None:
                        into[key] = amount
    found.problems += notes.problems
    return quotas


def _amount(notes: Notes, resource: str, text: Amount | None, path: str) -> int | None:
    return None if text is None else notes.amounts({resource: str(text)}, path).get(resource)


def _cluster_queue(queue: ClusterQueue, quotas: _Quotas, weight: int) -> specs.QueueSpec:
    spec = queue.spec
    cohort = spec.cohort_name or spec.cohort
    borrow = spec.preemption.borrow_within_cohort
    return specs.QueueSpec(
        name=queue.name,
        uid=queue.uid,
        parent=cohort_name(cohort) if cohort else specs.ROOT,
        weight=weight,
        figures=quotas.figures(borrows=bool(cohort)),
        flavors=tuple(dict.fromkeys(flavor for flavor, _ in quotas.nominal)),
        dequeue=DEQUEUES.get(spec.queueing_strategy, "traverse"),
        preemption=specs.Preemption(
            within_queue=_within(spec.preemption.within_cluster_queue),
            from_others=_from_others(spec.preemption.reclaim_within_cohort),
            priority_threshold=borrow.max_priority_threshold if borrow.policy == "LowerPriority" else None,
        ),
        state=STATES.get(spec.stop_policy, "Open"),
        namespaces=_namespaces(spec),
        created=created(queue),
    )


def _namespaces(spec: ClusterQueueSpec) -> Selector | None:
    """Whose namespaces it takes: an absent selector takes none, an empty one takes all."""
    try:
        return Selector.from_label_selector(spec.namespace_selector)
    except ValueError:
        return NOTHING


def _within(text: str) -> specs.WithinQueue:
    if text == "LowerPriority":
        return "LowerPriority"
    return "LowerOrNewerEqualPriority" if text == "LowerOrNewerEqualPriority" else "Never"


def _from_others(text: str) -> specs.FromOthers:
    if text == "LowerPriority":
        return "LowerPriority"
    return "Any" if text == "Any" else "Never"


def _weights(sharing: Mapping[str, KueueFairSharing]) -> dict[str, int]:
    """Weights as integers: as they are while all are whole numbers, else all in thousandths."""
    notes = Notes("")
    milli = {name: notes.amounts({"cpu": str(each.weight)}, "").get("cpu", 1000) for name, each in sharing.items()}
    unit = 1 if any(weight % 1000 for weight in milli.values()) else 1000
    return {name: weight // unit for name, weight in milli.items()}


def _add_cohorts(
    found: QueueRecords,
    queues: Iterable[ClusterQueue],
    cohorts: Mapping[str, Cohort],
    quotas: Mapping[str, _Quotas],
    weights: Mapping[str, int],
) -> None:
    """A queue for every cohort that exists or is named, with the sums of what is below it."""
    members: dict[str, list[_Quotas]] = {}
    for queue in queues:
        if cohort := queue.spec.cohort_name or queue.spec.cohort:
            members.setdefault(cohort, []).append(quotas[queue.name])
    parents = {name: each.spec.parent_name or each.spec.parent for name, each in cohorts.items()}
    names = dict.fromkeys((*sorted(cohorts), *sorted(members), *sorted(set(filter(None, parents.values())))))
    children: dict[str, list[str]] = {}
    for name in names:
        if parent := parents.get(name, ""):
            children.setdefault(parent, []).append(name)
    own = {
        name: _quotas(cohorts[name].spec.resource_groups, f"Cohort {name}", found) if name in cohorts else _Quotas()
        for name in names
    }
    implied = 1000 if any(weight >= 1000 for weight in weights.values()) else 1
    for name in names:
        total = _sum(name, own, members, children, frozenset())
        known = cohorts.get(name)
        found.queues[cohort_name(name)] = specs.QueueSpec(
            name=cohort_name(name),
            uid=known.uid if known is not None else cohort_name(name),
            parent=cohort_name(parents[name]) if parents.get(name) else specs.ROOT,
            weight=weights.get(cohort_name(name), implied),
            figures=total.figures(borrows=bool(parents.get(name))),
            created=created(known) if known is not None else 0.0,
        )


def _sum(
    name: str,
    own: Mapping[str, _Quotas],
    members: Mapping[str, list[_Quotas]],
    children: Mapping[str, list[str]],
    above: frozenset[str],
) -> _Quotas:
    """A cohort's own quota and what is below it; a circle of cohorts counts once."""
    total = _Quotas(dict(own[name].nominal), own[name].borrowing, own[name].lending)
    below = (
        [] if name in above else [_sum(each, own, members, children, above | {name}) for each in children.get(name, [])]
    )
    for each in (*members.get(name, []), *below):
        for key, amount in each.nominal.items():
            total.nominal[key] = total.nominal.get(key, 0) + amount
    return total


def _say_missing_flavors(found: QueueRecords) -> None:
    for queue in found.queues.values():
        missing = [name for name in queue.flavors if name not in found.flavors]
        if missing:
            words = f"ResourceFlavor {', '.join(missing)} does not exist: no node is of it"
            found.problems.append(Problem(f"ClusterQueue {queue.name}", words))
