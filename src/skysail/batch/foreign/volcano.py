"""Volcano's Queue and PodGroup (`scheduling.volcano.sh/v1beta1`).

Differs: `subGroupPolicy` makes one sub-group of `subGroupSize` times `minSubGroups` members, for Volcano makes them of
label values as pods come; a queue's `affinity` to node groups is not followed. Closing does not drain, as there.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from skysail.api.meta import ApiObject, LabelSelector, Struct
from skysail.api.raw import Raw
from skysail.batch.foreign.decoding import Amount, GroupReading, about, decode, read_one
from skysail.batch.kinds.pod_group import PodGroupStatus
from skysail.batch.kinds.queue import QueueStatus
from skysail.batch.kinds.reading import Notes, PriorityOf, Problem, QueueRecords, created, figures_of, owner_of
from skysail.batch.membership import sla_of
from skysail.batch.model import specs
from skysail.batch.model.outcome import OutcomeCode
from skysail.batch.model.resources import ANY

GROUP: Final = "scheduling.volcano.sh"
PREEMPTABLE: Final = "volcano.sh/preemptable"


class Guarantee(Struct, frozen=True, gc=False):
    """What is kept for a queue."""

    resource: Mapping[str, Amount] = {}


class VolcanoQueueSpec(Struct, frozen=True, gc=False):
    """A Queue's spec."""

    weight: int = 1
    capability: Mapping[str, Amount] = {}
    deserved: Mapping[str, Amount] = {}
    guarantee: Guarantee = Guarantee()
    reclaimable: bool | None = None
    parent: str = ""
    priority: int = 0
    dequeue_strategy: str = ""
    affinity: Mapping[str, object] | None = None


class VolcanoQueueStatus(Struct, frozen=True, gc=False):
    """Where Volcano keeps a queue's state."""

    state: str = ""


class VolcanoQueue(ApiObject, frozen=True, gc=False, kw_only=True):
    """A Queue."""

    spec: VolcanoQueueSpec = VolcanoQueueSpec()
    status: VolcanoQueueStatus = VolcanoQueueStatus()


class VolcanoTopology(Struct, frozen=True, gc=False):
    """`networkTopology`."""

    mode: str = ""
    highest_tier_allowed: int | None = None
    highest_tier_name: str = ""


class SubGroupPolicy(Struct, frozen=True, gc=False):
    """One entry of `subGroupPolicy`."""

    name: str = ""
    sub_group_size: int = 1
    min_sub_groups: int | None = None
    label_selector: LabelSelector | None = None
    network_topology: VolcanoTopology | None = None


class VolcanoPodGroupSpec(Struct, frozen=True, gc=False):
    """A PodGroup's spec."""

    min_member: int = 0
    min_task_member: Mapping[str, int] = {}
    queue: str = ""
    priority_class_name: str = ""
    min_resources: Mapping[str, Amount] = {}
    network_topology: VolcanoTopology | None = None
    sub_group_policy: tuple[SubGroupPolicy, ...] = ()


class VolcanoPodGroup(ApiObject, frozen=True, gc=False, kw_only=True):
    """A PodGroup."""

    spec: VolcanoPodGroupSpec = VolcanoPodGroupSpec()


def read_queues(queues: Iterable[Raw]) -> QueueRecords:
    """What Volcano's Queues say. Its `root` needs no record."""
    found = QueueRecords()
    for raw in queues:
        queue = decode(raw, VolcanoQueue)
        if isinstance(queue, Problem):
            found.problems.append(queue)
        elif queue.name != specs.ROOT:
            notes = Notes(about(raw))
            found.queues[queue.name] = _queue(queue, notes)
            found.problems += notes.problems
    return found


def _queue(queue: VolcanoQueue, notes: Notes) -> specs.QueueSpec:
    spec = queue.spec
    if spec.affinity:
        notes.say("affinity: queues are not tied to node groups; use flavors of a scheduling.skysail.io Queue")
    return specs.QueueSpec(
        name=queue.name,
        uid=queue.uid,
        parent=spec.parent or specs.ROOT,
        priority=spec.priority,
        weight=max(0, spec.weight),
        reclaimable=spec.reclaimable is not False,
        figures=figures_of(
            ANY,
            notes.amounts(spec.guarantee.resource, "guarantee.resource"),
            notes.amounts(spec.deserved, "deserved"),
            notes.amounts(spec.capability, "capability"),
            {},
            notes,
        ),
        dequeue="fifo" if spec.dequeue_strategy == "fifo" else "traverse",
        state="Closed" if queue.status.state in ("Closed", "Closing") else "Open",
        created=created(queue),
    )


def read_group(raw: Raw, priority_of: PriorityOf = lambda name: None) -> GroupReading:
    """One PodGroup."""
    return read_one(raw, VolcanoPodGroup, lambda group, notes: _group(group, notes, priority_of))


def _group(group: VolcanoPodGroup, notes: Notes, priority_of: PriorityOf) -> specs.PodGroupSpec:
    spec = group.spec
    words = {**group.metadata.annotations, **group.metadata.labels}
    said = words.get(PREEMPTABLE, "")
    return specs.PodGroupSpec(
        namespace=group.namespace,
        name=group.name,
        uid=group.uid,
        queue=spec.queue or "default",
        min_member=spec.min_member,
        min_task_member=spec.min_task_member,
        min_resources=notes.amounts(spec.min_resources, "minResources"),
        sub_groups=tuple(_sub_group(policy, notes) for policy in spec.sub_group_policy),
        priority=priority_of(spec.priority_class_name) if spec.priority_class_name else None,
        preemptible=said != "false",
        zone=_zone(spec.network_topology),
        owner=owner_of(group),
        created=created(group),
        sla_waiting_seconds=sla_of(words),
    )


def _sub_group(policy: SubGroupPolicy, notes: Notes) -> specs.SubGroupSpec:
    groups = 1 if policy.min_sub_groups is None else policy.min_sub_groups
    return specs.SubGroupSpec(
        name=policy.name,
        min_member=policy.sub_group_size * groups,
        selector=notes.selector(policy.label_selector, f"subGroupPolicy[{policy.name}].labelSelector"),
        size=policy.sub_group_size * groups,
        zone_required=_zone(policy.network_topology).required,
    )


def _zone(topology: VolcanoTopology | None) -> specs.ZoneWish:
    if topology is None:
        return specs.ZoneWish()
    hard = topology.mode != "soft"
    return specs.ZoneWish(required=hard, preferred=not hard)


_REASONS: Final[Mapping[str, str]] = {
    OutcomeCode.MEMBERS_MISSING: "NotEnoughTasks",
    OutcomeCode.GANG_BROKEN: "NotEnoughTasks",
    OutcomeCode.NOT_ENOUGH: "NotEnoughResources",
    OutcomeCode.NO_NODE: "NotEnoughResources",
    OutcomeCode.QUOTA_EXCEEDED: "NotEnoughResources",
}
"""Volcano's reasons where it has one that fits; else ours."""


def group_status(status: PodGroupStatus) -> Raw:
    """A PodGroup's status in Volcano's words."""
    conditions = []
    for condition in status.conditions:
        if condition.type in ("Scheduled", "Unschedulable"):
            moment = condition.last_transition_time
            conditions.append(
                {
                    "type": condition.type,
                    "status": condition.status,
                    "transitionID": f"{moment.timestamp():.0f}" if moment is not None else "0",
                    "lastTransitionTime": moment.strftime("%Y-%m-%dT%H:%M:%SZ") if moment is not None else None,
                    "reason": _REASONS.get(condition.reason, condition.reason),
                    "message": condition.message,
                }
            )
    counts = {"running": status.running, "succeeded": status.succeeded, "failed": status.failed}
    return {"phase": status.phase or "Pending", "conditions": conditions, **counts}


def queue_status(status: QueueStatus) -> Raw:
    """A Queue's status in Volcano's words. Its state is left to whoever closes it."""
    return {
        "pending": status.pending,
        "inqueue": status.inqueue,
        "running": status.running,
        "completed": status.completed,
        "unknown": status.unknown,
        "allocated": dict(status.allocated),
    }
