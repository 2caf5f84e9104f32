"""PodGroup: a gang. Its names are those of Volcano, KAI and upstream together."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, ClassVar, Literal

import msgspec

from skysail.api.meta import ApiObject, LabelSelector, Struct
from skysail.batch.kinds.parts import GROUP, VERSION, AmountText, Conditions, OutcomeRecord, TopologyWish
from skysail.controller.customresources import Column, CustomResource, list_map

Number = Annotated[int, msgspec.Meta(ge=0)]


class NetworkTopology(Struct, frozen=True, gc=False):
    """Volcano's way to ask for topology.

    Attributes:
        mode: Whether it must be, or should be.
        highest_tier_allowed: The farthest tier that still counts as together.
        highest_tier_name: The same by name.
    """

    mode: Literal["hard", "soft"] = "hard"
    highest_tier_allowed: Number | None = None
    highest_tier_name: str = ""


class SubGroup(Struct, frozen=True, gc=False):
    """A part of the gang.

    Attributes:
        name: Unique in the group.
        min_member: How many of its own pods are needed.
        parent: The sub-group it is part of; empty for the group itself.
        label_selector: Which pods belong to it, unless they name their sub-group.
        topology_constraint: What is wanted of topology for it.
        size: How many pods it has when complete.
        min_sub_groups: How many of its children are needed; absent is all.
    """

    name: Annotated[str, msgspec.Meta(min_length=1)]
    min_member: Number = 1
    parent: str = ""
    label_selector: LabelSelector | None = None
    topology_constraint: TopologyWish = TopologyWish()
    size: Number = 0
    min_sub_groups: Number | None = None


class PodGroupSpec(Struct, frozen=True, gc=False):
    """What must run together.

    Attributes:
        min_member: How many pods are needed for any to start; more may run.
        min_task_member: How many of each role are needed.
        min_resources: What the minimum needs together; for autoscalers and people, it hides no job from a decision.
        queue: The Queue; or
        job_queue: the line in the group's namespace.
        priority_class_name: Its priority; without it the highest of its pods.
        schedule_timeout_seconds: After so long of waiting it says ScheduleTimeout.
        preemptibility: Whether it may be evicted for others.
        disruption_mode: Whether single pods above the minimum may be evicted, or only the whole.
        match_policy: Which pods count towards the minimum.
        bundle: Groups of one bundle start together or not at all.
        network_topology: Volcano's way to ask for topology.
        topology_constraint: KAI's.
        sub_groups: The gang's tree.
        preferred_quota_refs: Names of Quotas whose slots it wants.
        maximum_execution_time: How many seconds it runs at most; lets it pass a blocked head.
    """

    min_member: Number = 1
    min_task_member: Mapping[str, Number] = {}
    min_resources: Mapping[str, AmountText] = {}
    queue: str = ""
    job_queue: str = ""
    priority_class_name: str = ""
    schedule_timeout_seconds: Number = 0
    preemptibility: Literal["Preemptible", "NonPreemptible"] = "Preemptible"
    disruption_mode: Literal["Pod", "PodGroup"] = "Pod"
    match_policy: Literal["once-satisfied", "waiting-and-running", "only-waiting"] = "waiting-and-running"
    bundle: str = ""
    network_topology: NetworkTopology | None = None
    topology_constraint: TopologyWish = TopologyWish()
    sub_groups: Annotated[tuple[SubGroup, ...], list_map("name")] = ()
    preferred_quota_refs: tuple[str, ...] = ()
    maximum_execution_time: Number | None = None


class ClaimStatus(Struct, frozen=True, gc=False):
    """Capacity promised to the group while its victims leave. Written before the first eviction.

    Attributes:
        id: Names it in logs and events.
        reason: `reclaim`, `preempt` or `repair`.
        placement: Node by pod uid.
        victims: `namespace/name` by uid of the pods that leave.
        capacity: How many pods wait for each node.
        expires: When the promise ends.
    """

    id: str = ""
    reason: str = ""
    placement: Mapping[str, str] = {}
    victims: Mapping[str, str] = {}
    capacity: Mapping[str, int] = {}
    expires: datetime | None = None


class PodGroupStatus(Struct, frozen=True, gc=False):
    """Where the gang stands.

    Attributes:
        phase: Pending, Inqueue (all members are there), Running, Unknown (below its minimum), Completed.
        pending: Pods that wait.
        running: Pods that run.
        succeeded: Pods that ended well.
        failed: Pods that failed.
        occupied_by: The object whose pods it groups.
        conditions: Scheduled, Unschedulable (Volcano's), PodGroupScheduled (upstream's).
        scheduling_conditions: Why it waits; one at most.
        claim: What it was promised.
    """

    phase: str = ""
    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    occupied_by: str = ""
    conditions: Conditions = ()
    scheduling_conditions: tuple[OutcomeRecord, ...] = ()
    claim: ClaimStatus | None = None


class PodGroup(ApiObject, frozen=True, gc=False, kw_only=True):
    """Pods that start together or not at all."""

    resource: ClassVar[CustomResource] = CustomResource(
        GROUP,
        VERSION,
        "podgroups",
        short_names=("pg",),
        columns=(
            Column("Phase", ".status.phase"),
            Column("Queue", ".spec.queue"),
            Column("MinMember", ".spec.minMember", "integer"),
            Column("Running", ".status.running", "integer"),
            Column("Pending", ".status.pending", "integer"),
            Column("Waits-For", ".status.schedulingConditions[0].code"),
            Column("Message", ".status.schedulingConditions[0].message", "string", 1),
        ),
    )
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()
