"""Upstream's Workload and PodGroup (`scheduling.k8s.io/v1alpha2`).

A gang needs `minCount` members; `basic` needs none together. A Workload is only a set of templates: its groups exist
when somebody has made PodGroups of them; `workload_groups` tells what they would be.
"""

from typing import Final

from skysail.api.meta import ApiObject, Struct, format_time
from skysail.api.raw import Raw
from skysail.batch.foreign.decoding import GroupReading, about, decode, read_one
from skysail.batch.kinds.pod_group import PodGroupStatus
from skysail.batch.kinds.reading import Notes, PriorityOf, Problem, created, owner_of
from skysail.batch.model import specs

GROUP: Final = "scheduling.k8s.io"


class GangPolicy(Struct, frozen=True, gc=False):
    """`schedulingPolicy.gang`."""

    min_count: int = 1


class BasicPolicy(Struct, frozen=True, gc=False):
    """`schedulingPolicy.basic`."""


class SchedulingPolicy(Struct, frozen=True, gc=False):
    """`schedulingPolicy`: one of the two."""

    basic: BasicPolicy | None = None
    gang: GangPolicy | None = None


class TopologyKey(Struct, frozen=True, gc=False):
    """One entry of `schedulingConstraints.topology`."""

    key: str = ""


class SchedulingConstraints(Struct, frozen=True, gc=False):
    """`schedulingConstraints`."""

    topology: tuple[TopologyKey, ...] = ()


class UpstreamGroupSpec(Struct, frozen=True, gc=False):
    """A PodGroup's spec, and a Workload's template of one."""

    name: str = ""
    scheduling_policy: SchedulingPolicy = SchedulingPolicy()
    scheduling_constraints: SchedulingConstraints | None = None
    disruption_mode: str = ""
    priority_class_name: str = ""
    priority: int | None = None


class UpstreamPodGroup(ApiObject, frozen=True, gc=False, kw_only=True):
    """A PodGroup."""

    spec: UpstreamGroupSpec = UpstreamGroupSpec()


class WorkloadSpec(Struct, frozen=True, gc=False):
    """A Workload's spec."""

    pod_group_templates: tuple[UpstreamGroupSpec, ...] = ()


class Workload(ApiObject, frozen=True, gc=False, kw_only=True):
    """A Workload."""

    spec: WorkloadSpec = WorkloadSpec()


def read_group(raw: Raw, priority_of: PriorityOf = lambda name: None) -> GroupReading:
    """One PodGroup; its queue is what its pods say."""
    return read_one(raw, UpstreamPodGroup, lambda group, notes: _group(group, group.name, group.spec, priority_of))


def workload_groups(
    raw: Raw, priority_of: PriorityOf = lambda name: None
) -> tuple[list[specs.PodGroupSpec], list[Problem]]:
    """The groups a Workload's templates stand for, as `WORKLOAD-TEMPLATE`."""
    workload = decode(raw, Workload)
    if isinstance(workload, Problem):
        return [], [workload]
    notes = Notes(about(raw))
    templates = workload.spec.pod_group_templates
    if not templates:
        notes.say("podGroupTemplates: there are none")
    groups = [_group(workload, f"{workload.name}-{each.name}", each, priority_of) for each in templates]
    return groups, notes.problems


def _group(obj: ApiObject, name: str, spec: UpstreamGroupSpec, priority_of: PriorityOf) -> specs.PodGroupSpec:
    gang = spec.scheduling_policy.gang
    constraints = spec.scheduling_constraints or SchedulingConstraints()
    level = constraints.topology[0].key if constraints.topology else ""
    priority = spec.priority
    if priority is None and spec.priority_class_name:
        priority = priority_of(spec.priority_class_name)
    return specs.PodGroupSpec(
        namespace=obj.namespace,
        name=name,
        uid=obj.uid,
        min_member=gang.min_count if gang is not None else 0,
        priority=priority,
        disruption_mode="PodGroup" if spec.disruption_mode == "PodGroup" else "Pod",
        zone=specs.ZoneWish(required=bool(level), level=level),
        owner=owner_of(obj),
        created=created(obj),
    )


def group_status(status: PodGroupStatus) -> Raw:
    """A PodGroup's status in upstream's words: PodGroupScheduled, and why not."""
    conditions = []
    for condition in status.conditions:
        if condition.type == "PodGroupScheduled":
            moment = condition.last_transition_time
            conditions.append(
                {
                    "type": condition.type,
                    "status": condition.status,
                    "reason": condition.reason,
                    "message": condition.message,
                    "lastTransitionTime": format_time(moment) if moment is not None else None,
                }
            )
    return {"conditions": conditions}
