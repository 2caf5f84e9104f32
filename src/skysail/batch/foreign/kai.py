"""KAI's Queue (`scheduling.run.ai/v2`) and PodGroup (`scheduling.run.ai/v2alpha2`).

A queue's figures are plain numbers: cpu in thousandths, memory in megabytes (10^6 bytes), gpu in whole devices. -1 is
no bound, 0 is nothing; a resource that is not named is KAI's 0. Differs: parts of a gpu are rounded down.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from skysail.api.meta import ApiObject, Struct
from skysail.api.raw import Raw
from skysail.batch.foreign.decoding import GroupReading, about, decode, read_one
from skysail.batch.kinds.parts import TopologyWish
from skysail.batch.kinds.pod_group import PodGroupStatus
from skysail.batch.kinds.queue import QueueStatus
from skysail.batch.kinds.reading import Notes, PriorityOf, Problem, QueueRecords, created, owner_of, zone_wish
from skysail.batch.model import specs
from skysail.batch.model.outcome import OutcomeCode
from skysail.batch.model.resources import ANY, UNLIMITED, FlavorResource

GROUP: Final = "scheduling.run.ai"
NODE_POOL: Final = "default"
PREEMPTIBLE_BELOW: Final = 100
"""KAI: without a word of its own a gang may be evicted when its priority is below this."""


class KaiResource(Struct, frozen=True, gc=False):
    """Figures of one resource."""

    quota: float = 0
    limit: float = -1
    over_quota_weight: float = 0


class KaiResources(Struct, frozen=True, gc=False):
    """Figures of a queue; None is not named."""

    cpu: KaiResource | None = None
    memory: KaiResource | None = None
    gpu: KaiResource | None = None


class KaiQueueSpec(Struct, frozen=True, gc=False):
    """A Queue's spec."""

    parent_queue: str = ""
    resources: KaiResources | None = None
    priority: int = 100
    preempt_min_runtime: str | None = None
    reclaim_min_runtime: str | None = None


class KaiQueue(ApiObject, frozen=True, gc=False, kw_only=True):
    """A Queue."""

    spec: KaiQueueSpec = KaiQueueSpec()


class KaiSubGroup(Struct, frozen=True, gc=False):
    """One entry of `subGroups`."""

    name: str = ""
    min_member: int = 0
    min_sub_group: int | None = None
    parent: str | None = None
    topology_constraint: TopologyWish | None = None


class KaiPodGroupSpec(Struct, frozen=True, gc=False):
    """A PodGroup's spec."""

    min_member: int = 1
    queue: str = ""
    priority_class_name: str = ""
    preemptibility: str = ""
    topology_constraint: TopologyWish = TopologyWish()
    sub_groups: tuple[KaiSubGroup, ...] = ()


class KaiPodGroup(ApiObject, frozen=True, gc=False, kw_only=True):
    """A PodGroup."""

    spec: KaiPodGroupSpec = KaiPodGroupSpec()


_UNITS: Final[Mapping[str, tuple[str, int]]] = {
    "cpu": ("cpu", 1),
    "memory": ("memory", 1_000_000),
    "gpu": ("nvidia.com/gpu", 1),
}


def read_queues(queues: Iterable[Raw]) -> QueueRecords:
    """What KAI's Queues say."""
    found = QueueRecords()
    for raw in queues:
        queue = decode(raw, KaiQueue)
        if isinstance(queue, Problem):
            found.problems.append(queue)
            continue
        notes, spec = Notes(about(raw)), queue.spec
        found.queues[queue.name] = specs.QueueSpec(
            name=queue.name,
            uid=queue.uid,
            parent=spec.parent_queue or specs.ROOT,
            priority=spec.priority,
            figures=_figures(spec.resources),
            reclaim_min_runtime_seconds=notes.seconds(spec.reclaim_min_runtime, "reclaimMinRuntime"),
            preempt_min_runtime_seconds=notes.seconds(spec.preempt_min_runtime, "preemptMinRuntime"),
            created=created(queue),
        )
        found.problems += notes.problems
    return found


def _figures(resources: KaiResources | None) -> dict[FlavorResource, specs.Figures]:
    found: dict[FlavorResource, specs.Figures] = {}
    if resources is None:
        return found
    for word, (name, unit) in _UNITS.items():
        figures: KaiResource = getattr(resources, word) or KaiResource()
        found[ANY, name] = specs.Figures(
            deserved=UNLIMITED if figures.quota < 0 else int(figures.quota * unit),
            capability=None if figures.limit < 0 else int(figures.limit * unit),
            weight=int(figures.over_quota_weight),
        )
    return found


def read_group(raw: Raw, priority_of: PriorityOf = lambda name: None) -> GroupReading:
    """One PodGroup."""
    return read_one(raw, KaiPodGroup, lambda group, notes: _group(group, priority_of))


def _group(group: KaiPodGroup, priority_of: PriorityOf) -> specs.PodGroupSpec:
    spec = group.spec
    priority = priority_of(spec.priority_class_name) if spec.priority_class_name else None
    by_priority = priority is None or priority < PREEMPTIBLE_BELOW
    return specs.PodGroupSpec(
        namespace=group.namespace,
        name=group.name,
        uid=group.uid,
        queue=spec.queue,
        min_member=spec.min_member,
        sub_groups=tuple(
            specs.SubGroupSpec(
                name=each.name,
                min_member=each.min_member,
                parent=each.parent or "",
                min_sub_groups=each.min_sub_group,
                zone_required=each.topology_constraint is not None
                and bool(each.topology_constraint.required_topology_level),
            )
            for each in spec.sub_groups
        ),
        priority=priority,
        preemptible=spec.preemptibility == "preemptible" if spec.preemptibility else by_priority,
        zone=zone_wish(spec.topology_constraint),
        owner=owner_of(group),
        created=created(group),
    )


def group_status(status: PodGroupStatus) -> Raw:
    """A PodGroup's status in KAI's words."""
    conditions = []
    for record in status.scheduling_conditions:
        moment = record.since.strftime("%Y-%m-%dT%H:%M:%SZ") if record.since is not None else None
        reason: Raw = {"reason": record.code, "message": record.message}
        if record.code in (OutcomeCode.QUOTA_EXCEEDED, OutcomeCode.EXCEEDS_MAX):
            reason = {
                "reason": "OverLimit",
                "message": record.message,
                "details": {"queueDetails": {"name": str(record.details.get("queue", ""))}},
            }
        conditions.append(
            {
                "type": "UnschedulableOnNodePool",
                "nodePool": NODE_POOL,
                "status": "True",
                "reason": "Unschedulable",
                "message": record.message,
                "reasons": [reason],
                "transitionID": f"{record.since.timestamp():.0f}" if record.since is not None else "0",
                "lastTransitionTime": moment,
            }
        )
    return {
        "phase": status.phase,
        "pending": status.pending,
        "running": status.running,
        "succeeded": status.succeeded,
        "failed": status.failed,
        "schedulingConditions": conditions,
    }


def queue_status(status: QueueStatus) -> Raw:
    """A Queue's status in KAI's words."""
    return {
        "allocated": dict(status.allocated),
        "requested": dict(status.requested),
        "childQueues": list(status.child_queues),
    }
