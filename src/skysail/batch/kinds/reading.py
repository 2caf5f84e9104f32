"""From objects of the batch kinds to the records the engine works with.

Pure, and total: what cannot be read as it stands becomes a `problem` in words, never an exception, and the rest of the
object still counts.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Final

from skysail.api.labels import Selector
from skysail.api.meta import ApiObject, LabelSelector
from skysail.api.quantity import parse_quantity
from skysail.batch.kinds.job_queue import JobQueue
from skysail.batch.kinds.parts import TopologyWish
from skysail.batch.kinds.pod_group import PodGroup, SubGroup
from skysail.batch.kinds.queue import PreemptionRules, Queue, QueueFlavor, QueueLimit, QueueSpec
from skysail.batch.kinds.quota import Quota, QuotaSpec, SlotStatus
from skysail.batch.membership import sla_of
from skysail.batch.model import specs
from skysail.batch.model.claim import Claim
from skysail.batch.model.resources import ANY, FlavorResource
from skysail.scheduler.config.durations import parse_duration

STATES: Final[Mapping[str, specs.QueueState]] = {"None": "Open", "Hold": "Closed", "HoldAndDrain": "Closing"}
DEQUEUES: Final[Mapping[str, specs.Dequeue]] = {"StrictFIFO": "fifo", "BestEffortFIFO": "traverse"}
REASONS: Final[Mapping[str, specs.ReleaseReason]] = {"Used": "Used", "Idle": "Idle", "Expired": "Expired"}
PriorityOf = Callable[[str], int | None]
"""The value of a PriorityClass, or None when there is none of that name."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with an object.

    Attributes:
        about: `Kind namespace/name`.
        message: In words, with the field.
    """

    about: str
    message: str


@dataclass(slots=True)
class QueueRecords:
    """All that queues and their like say, of one API or of several.

    Attributes:
        queues: By name.
        job_queues: By `namespace/name`.
        flavors: By name.
        problems: What is wrong, in the order it was found.
    """

    queues: dict[str, specs.QueueSpec] = field(default_factory=dict)
    job_queues: dict[str, specs.JobQueueSpec] = field(default_factory=dict)
    flavors: dict[str, specs.FlavorSpec] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def add(self, other: "QueueRecords") -> None:
        """Take another API's records in; what is there already stays, and is said."""
        for name, queue in other.queues.items():
            if self.queues.setdefault(name, queue) is not queue:
                self.problems.append(Problem(f"Queue {name}", "another API has a queue of the same name, which counts"))
        for name, line in other.job_queues.items():
            if self.job_queues.setdefault(name, line) is not line:
                self.problems.append(Problem(f"JobQueue {name}", "another API has one of the same name, which counts"))
        for name, flavor in other.flavors.items():
            if self.flavors.setdefault(name, flavor) != flavor:
                self.problems.append(Problem(f"Flavor {name}", "is defined twice, with different labels"))
        self.problems += other.problems


class Notes:
    """Collects what is wrong with one object while it is read."""

    def __init__(self, about: str) -> None:
        self.about = about
        self.problems: list[Problem] = []

    def say(self, message: str) -> None:
        """Note a problem."""
        self.problems.append(Problem(self.about, message))

    def amounts(
        self, resources: Mapping[str, int | str] | Mapping[str, int | float | str], path: str
    ) -> dict[str, int]:
        """Quantities as integers: cpu in milli, the rest in units; what is no quantity is said and left out."""
        found = {}
        for name, text in resources.items():
            try:
                quantity = parse_quantity(str(text))
            except ValueError:
                self.say(f"{path}[{name}]: {text!r} is no quantity")
                continue
            found[name] = quantity.milli_value() if name == "cpu" else quantity.value()
        return found

    def seconds(self, text: str | None, path: str) -> float:
        """A duration; 0 when absent or unreadable, which is said."""
        try:
            return parse_duration(text) if text else 0.0
        except ValueError:
            self.say(f"{path}: {text!r} is no duration")
            return 0.0

    def selector(self, selector: LabelSelector | None, path: str) -> Selector | None:
        """A label selector; None when absent or unreadable, which is said."""
        if selector is None:
            return None
        try:
            return Selector.from_label_selector(selector)
        except ValueError as error:
            self.say(f"{path}: {error}")
            return None


def created(obj: ApiObject) -> float:
    """When an object was made, in seconds since 1970."""
    return seconds_of(obj.metadata.creation_timestamp)


def seconds_of(moment: datetime | None) -> float:
    """A moment in seconds since 1970; 0 when absent."""
    return moment.timestamp() if moment is not None else 0.0


# -- queues --------------------------------------------------------------------------------------------------------


def read_queues(queues: Iterable[Queue], job_queues: Iterable[JobQueue] = ()) -> QueueRecords:
    """Everything our own queues say."""
    found = QueueRecords()
    for queue in queues:
        notes = Notes(f"Queue {queue.name}")
        found.queues[queue.name] = read_queue(queue, notes)
        for flavor in queue.spec.flavors:
            _add_flavor(found, flavor, notes)
        found.problems += notes.problems
    for line in job_queues:
        found.job_queues[line.key] = read_job_queue(line)
    return found


def _add_flavor(found: QueueRecords, flavor: QueueFlavor, notes: Notes) -> None:
    known = found.flavors.get(flavor.name)
    wanted = specs.FlavorSpec(flavor.name, flavor.node_selector)
    if known is None or not known.node_labels:
        found.flavors[flavor.name] = wanted
    elif flavor.node_selector and flavor.node_selector != known.node_labels:
        notes.say(f"flavors[{flavor.name}].nodeSelector: another queue defines this flavor by other labels")


def read_queue(queue: Queue, notes: Notes) -> specs.QueueSpec:
    """One queue."""
    spec = queue.spec
    dequeue = spec.dequeue_strategy or DEQUEUES.get(spec.queueing_strategy or "", "traverse")
    return specs.QueueSpec(
        name=queue.name,
        uid=queue.uid,
        parent=spec.parent or specs.ROOT,
        type=spec.type,
        priority=spec.priority,
        weight=spec.weight,
        reclaimable=spec.reclaimable,
        figures=_figures(spec, notes),
        flavors=tuple(flavor.name for flavor in spec.flavors),
        dequeue=dequeue,
        backfill=spec.backfill,
        pass_over_limit=spec.pass_over_limit,
        preemption=_preemption(spec.preemption),
        reclaim_min_runtime_seconds=notes.seconds(spec.reclaim_min_runtime, "reclaimMinRuntime"),
        preempt_min_runtime_seconds=notes.seconds(spec.preempt_min_runtime, "preemptMinRuntime"),
        usage=queue.status.usage,
        usage_half_life_seconds=notes.seconds(spec.fair_sharing.usage_half_life, "fairSharing.usageHalfLife"),
        usage_weight=spec.fair_sharing.usage_weight,
        state=STATES[spec.stop_policy],
        max_jobs=spec.max_jobs,
        namespaces=notes.selector(spec.namespace_selector, "namespaceSelector"),
        limits=tuple(_user_limit(limit, f"limits[{place}]", notes) for place, limit in enumerate(spec.limits)),
        created=created(queue),
    )


def _user_limit(limit: QueueLimit, path: str, notes: Notes) -> specs.UserLimit:
    if bool(limit.user) == bool(limit.group):
        notes.say(f"{path}: names a user or a group, one of the two")
    amounts = notes.amounts(limit.resource, f"{path}.resource")
    return specs.UserLimit(limit.user, "" if limit.user else limit.group, amounts, limit.max_jobs)


def _preemption(rules: PreemptionRules) -> specs.Preemption:
    borrow = rules.borrow_within_cohort
    threshold = borrow.max_priority_threshold if borrow.policy == "LowerPriority" else None
    return specs.Preemption(rules.within_queue, rules.reclaim_within_cohort, threshold, rules.reclaim_within_quota)


def _figures(spec: QueueSpec, notes: Notes) -> dict[FlavorResource, specs.Figures]:
    found: dict[FlavorResource, specs.Figures] = {}
    weights = spec.over_quota_weight
    for flavor in spec.flavors:
        path = f"flavors[{flavor.name}]."
        guarantee = notes.amounts(flavor.guarantee.resource, f"{path}guarantee.resource")
        deserved = notes.amounts(flavor.deserved, f"{path}deserved")
        capability = notes.amounts(flavor.capability, f"{path}capability")
        found |= figures_of(flavor.name, guarantee, deserved, capability, weights, notes)
    if not spec.flavors:
        guarantee = notes.amounts(spec.guarantee.resource, "guarantee.resource")
        deserved = notes.amounts(spec.deserved, "deserved")
        capability = notes.amounts(spec.capability, "capability")
        _apply_limits(spec, guarantee, deserved, capability, notes)
        found = figures_of(ANY, guarantee, deserved, capability, weights, notes)
    return found


def _apply_limits(
    spec: QueueSpec, guarantee: dict[str, int], deserved: Mapping[str, int], capability: dict[str, int], notes: Notes
) -> None:
    """The limits on borrowing and lending say the same in other words; where both ways are used they must agree."""
    for name, limit in notes.amounts(spec.borrowing_limit, "borrowingLimit").items():
        wanted = deserved.get(name, 0) + limit
        if capability.setdefault(name, wanted) != wanted:
            notes.say(f"borrowingLimit[{name}]: capability says {capability[name]}, deserved and this say {wanted}")
    for name, limit in notes.amounts(spec.lending_limit, "lendingLimit").items():
        wanted = max(0, deserved.get(name, 0) - limit)
        if guarantee.setdefault(name, wanted) != wanted:
            notes.say(f"lendingLimit[{name}]: guarantee says {guarantee[name]}, deserved less this says {wanted}")


def figures_of(
    flavor: str,
    guarantee: Mapping[str, int],
    deserved: Mapping[str, int],
    capability: Mapping[str, int],
    weights: Mapping[str, int],
    notes: Notes,
) -> dict[FlavorResource, specs.Figures]:
    """Figures by (flavor, resource); what is not named stays absent.

    Notes where guarantee <= deserved <= capability does not hold.
    """
    found = {}
    for name in dict.fromkeys((*guarantee, *deserved, *capability, *weights)):
        figures = specs.Figures(guarantee.get(name), deserved.get(name), capability.get(name), weights.get(name))
        found[flavor, name] = figures
        stated = [("guarantee", figures.guarantee), ("deserved", figures.deserved), ("capability", figures.capability)]
        known = [(word, amount) for word, amount in stated if amount is not None]
        for (lower, small), (upper, large) in pairwise(known):
            if small > large:
                notes.say(f"{lower}[{name}] is {small}, above {upper}[{name}], which is {large}")
    return found


def read_job_queue(line: JobQueue) -> specs.JobQueueSpec:
    """One line."""
    spec = line.spec
    return specs.JobQueueSpec(
        namespace=line.namespace,
        name=line.name,
        queue=spec.queue or spec.cluster_queue,
        uid=line.uid,
        order=spec.order,
        max_jobs=spec.max_jobs,
        stopped=spec.stop_policy != "None",
        created=created(line),
    )


# -- groups --------------------------------------------------------------------------------------------------------


def read_group(
    group: PodGroup, priority_of: PriorityOf = lambda name: None
) -> tuple[specs.PodGroupSpec, list[Problem]]:
    """One gang, and what is wrong with it."""
    spec, notes = group.spec, Notes(f"PodGroup {group.key}")
    priority = priority_of(spec.priority_class_name) if spec.priority_class_name else None
    if spec.priority_class_name and priority is None:
        notes.say(f"priorityClassName: there is no {spec.priority_class_name!r}; the highest of its pods counts")
    read = specs.PodGroupSpec(
        namespace=group.namespace,
        name=group.name,
        uid=group.uid,
        queue=spec.queue,
        job_queue=spec.job_queue,
        min_member=spec.min_member,
        min_task_member=spec.min_task_member,
        min_resources=notes.amounts(spec.min_resources, "minResources"),
        sub_groups=tuple(_sub_group(each, notes) for each in spec.sub_groups),
        priority=priority,
        bundle=spec.bundle,
        schedule_timeout_seconds=float(spec.schedule_timeout_seconds),
        preemptible=spec.preemptibility == "Preemptible",
        disruption_mode=spec.disruption_mode,
        match_policy=spec.match_policy,
        zone=_zone(group),
        maximum_execution_seconds=None if spec.maximum_execution_time is None else float(spec.maximum_execution_time),
        quota_refs=spec.preferred_quota_refs,
        owner=group.status.occupied_by or owner_of(group),
        created=created(group),
        sla_waiting_seconds=sla_of({**group.metadata.annotations, **group.metadata.labels}),
    )
    return read, notes.problems


def owner_of(obj: ApiObject) -> str:
    """The object's controller as `Kind/namespace/name`, or empty."""
    for reference in obj.metadata.owner_references:
        if reference.controller:
            return f"{reference.kind}/{obj.namespace}/{reference.name}"
    return ""


def _zone(group: PodGroup) -> specs.ZoneWish:
    spec = group.spec
    wish = zone_wish(spec.topology_constraint)
    if spec.network_topology is None or wish != specs.ZoneWish():
        return wish
    hard = spec.network_topology.mode == "hard"
    return specs.ZoneWish(required=hard, preferred=not hard)


def zone_wish(wish: TopologyWish) -> specs.ZoneWish:
    """What is wanted of topology; a required level wins over a preferred one."""
    level = wish.required_topology_level or wish.preferred_topology_level
    return specs.ZoneWish(
        required=bool(wish.required_topology_level), preferred=bool(wish.preferred_topology_level), level=level
    )


def _sub_group(group: SubGroup, notes: Notes) -> specs.SubGroupSpec:
    return specs.SubGroupSpec(
        name=group.name,
        min_member=group.min_member,
        parent=group.parent,
        selector=notes.selector(group.label_selector, f"subGroups[{group.name}].labelSelector"),
        size=group.size,
        min_sub_groups=group.min_sub_groups,
        zone_required=bool(group.topology_constraint.required_topology_level),
    )


def read_claim(group: PodGroup) -> Claim | None:
    """The promise a group's status holds, for a process that was started after it was made."""
    status = group.status.claim
    if status is None or not status.placement:
        return None
    deadline = seconds_of(status.expires)
    return Claim(status.id, group.key, status.placement, status.victims, deadline, status.reason or "reclaim")


# -- slots ---------------------------------------------------------------------------------------------------------


def read_quota(quota: Quota) -> tuple[specs.QuotaSpec, list[Problem]]:
    """One Quota, and what is wrong with it."""
    spec, notes = quota.spec, Notes(f"Quota {quota.key}")
    selectors = [
        notes.selector(owner.label_selector, "owners[].labelSelector") for owner in spec.owners if owner.label_selector
    ]
    if len(selectors) > 1:
        notes.say("owners: one labelSelector counts, the first")
    jobs = [owner.job_ref.name for owner in spec.owners if owner.job_ref is not None]
    ttl = notes.seconds(spec.ttl, "ttl")
    expires = seconds_of(spec.expires) if spec.expires is not None else created(quota) + ttl if ttl else None
    read = specs.QuotaSpec(
        namespace=quota.namespace,
        name=quota.name,
        queue=spec.queue,
        resources=notes.amounts(spec.resources, "resources"),
        uid=quota.uid,
        count=spec.count,
        node_selector=spec.node_selector,
        owners=frozenset(f"{quota.namespace}/{name}" for name in jobs),
        owner_selector=selectors[0] if selectors else None,
        allocate_policy=spec.allocate_policy,
        allocate_once=spec.allocate_once,
        release=spec.release_policy.type,
        release_after_seconds=notes.seconds(spec.release_policy.after, "releasePolicy.after"),
        expires=expires,
        node={slot.index: slot.node_name for slot in quota.status.slots if slot.node_name},
        bound={slot.index: int(seconds_of(slot.bound_time)) for slot in quota.status.slots if slot.bound_time},
        holders={slot.index: slot.holders for slot in quota.status.slots if slot.holders},
        used=frozenset(slot.index for slot in quota.status.slots if slot.was_used),
        released={slot.index: _reason(slot, spec) for slot in quota.status.slots if slot.phase == "Releasing"},
        zone=spec.topology.zone,
        created=created(quota),
    )
    return read, notes.problems


def _reason(slot: SlotStatus, spec: QuotaSpec) -> specs.ReleaseReason:
    """Why a slot was given back; where nobody wrote it down, what the Quota's policy would do it for."""
    return REASONS.get(slot.reason) or ("Idle" if spec.release_policy.type == "Idle" else "Used")
