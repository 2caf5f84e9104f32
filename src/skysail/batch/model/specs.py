"""What readers of API objects say: one frozen record for each object, whichever API it came from.

A foreign object (Volcano, Kueue, KAI, ...) becomes the same records as ours. Absent figures are `None`, and mean:

    guarantee   absent is 0: nothing is kept for the queue
    deserved    absent is no claim: the queue may use, but never reclaim, and what it uses may be reclaimed
    capability  absent is no limit
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from skysail.api.labels import Selector
from skysail.batch.model.resources import FlavorResource

ROOT: Final = "root"

QueueType = Literal["Quota", "Spot"]
QueueState = Literal["Open", "Closed", "Closing"]
"""Closed takes no new jobs; Closing (hold and drain) also wants the running ones out."""
Dequeue = Literal["fifo", "traverse"]
WithinQueue = Literal["Never", "LowerPriority", "LowerOrNewerEqualPriority"]
FromOthers = Literal["Never", "LowerPriority", "Any"]


@dataclass(frozen=True, slots=True)
class Figures:
    """One queue's figures for one (flavor, resource)."""

    guarantee: int | None = None
    deserved: int | None = None
    capability: int | None = None
    weight: int | None = None


@dataclass(frozen=True, slots=True)
class Preemption:
    """Whom a queue's jobs may evict.

    Attributes:
        within_queue: In the own queue.
        from_others: In queues above their entitlement.
        priority_threshold: With it, a borrowing job may evict borrowers of at most this priority.
        within_quota: Whether lower-priority queues may be taken from even within their entitlement.
    """

    within_queue: WithinQueue = "LowerPriority"
    from_others: FromOthers = "Any"
    priority_threshold: int | None = None
    within_quota: Literal["Never", "LowerQueuePriority"] = "Never"


@dataclass(frozen=True, slots=True)
class UserLimit:
    """What a user, or a group of users together, may use of a queue.

    Attributes:
        user: Whose; `*` is everybody for whom the queue names no limit of their own, each by themselves.
        group: Whose, together; `*` is all users of no group the queue names.
        amounts: The most, by resource, over all flavors; what is not named is not limited.
        max_jobs: How many of their jobs may run; None is any number.
    """

    user: str = ""
    group: str = ""
    amounts: Mapping[str, int] = field(default_factory=dict)
    max_jobs: int | None = None


@dataclass(frozen=True, slots=True)
class QueueSpec:
    """A queue, cluster-wide.

    Attributes:
        name: Unique.
        uid: Of the object.
        parent: Its parent's name; `root` need not exist.
        type: `Quota` has an entitlement; `Spot` lives on what is idle.
        priority: Higher is served first, and gets surplus first.
        weight: Its part of the surplus among siblings of equal priority; figures may say otherwise per resource.
        reclaimable: Whether others may take back what it uses above its entitlement.
        figures: By (flavor, resource); plain figures stand under `ANY`.
        flavors: Flavors it may use, in order of preference; empty is any.
        dequeue: Whether a blocked head blocks those behind that compete with it.
        backfill: Whether jobs may pass a blocked head that end before it could start.
        pass_over_limit: How many jobs of unknown length may pass a blocked head.
        preemption: Whom its jobs may evict.
        reclaim_min_runtime_seconds: How long a job of this queue runs before others may reclaim it.
        preempt_min_runtime_seconds: Alike, for its own queue's jobs.
        usage: Decayed past use, in millionths of the cluster, as a status kept it; the engine goes on from there.
        usage_half_life_seconds: After this long, use counts half; 0 counts no past use.
        usage_weight: How much past use counts, in thousandths.
        state: Open, Closed or Closing.
        max_jobs: How many jobs may run; None is any number.
        namespaces: Labels of the namespaces whose jobs it takes; None is any namespace.
        limits: For users and groups of users.
        created: Seconds since 1970, for ties.
    """

    name: str
    uid: str = ""
    parent: str = ROOT
    type: QueueType = "Quota"
    priority: int = 0
    weight: int = 1
    reclaimable: bool = True
    figures: Mapping[FlavorResource, Figures] = field(default_factory=dict)
    flavors: tuple[str, ...] = ()
    dequeue: Dequeue = "traverse"
    backfill: Literal["None", "EASY"] = "None"
    pass_over_limit: int = 16
    preemption: Preemption = Preemption()
    reclaim_min_runtime_seconds: float = 0.0
    preempt_min_runtime_seconds: float = 0.0
    usage: int = 0
    usage_half_life_seconds: float = 0.0
    usage_weight: int = 0
    state: QueueState = "Open"
    max_jobs: int | None = None
    namespaces: Selector | None = None
    limits: tuple[UserLimit, ...] = ()
    created: float = 0.0


@dataclass(frozen=True, slots=True)
class JobQueueSpec:
    """A namespaced line into a queue."""

    namespace: str
    name: str
    queue: str
    uid: str = ""
    order: Literal["FIFO", "Priority"] = "FIFO"
    max_jobs: int | None = None
    stopped: bool = False
    created: float = 0.0


@dataclass(frozen=True, slots=True)
class FlavorSpec:
    """A class of nodes: those with these labels. Of several a node bears, that of most labels is its own, then by name.

    Attributes:
        name: Unique.
        node_labels: All must match; empty matches every node.
    """

    name: str
    node_labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SubGroupSpec:
    """A part of a gang.

    Attributes:
        name: Unique in the group.
        min_member: How many of its own tasks are needed.
        parent: The sub-group it is part of; empty for the group itself.
        selector: Which pods belong to it, unless they name their sub-group.
        size: How many tasks it has when complete; 0 is unknown.
        min_sub_groups: How many of its children are needed; None is all.
        zone_required: Whether its tasks must share a zone.
    """

    name: str
    min_member: int = 1
    parent: str = ""
    selector: Selector | None = None
    size: int = 0
    min_sub_groups: int | None = None
    zone_required: bool = False


MatchPolicy = Literal["once-satisfied", "waiting-and-running", "only-waiting"]


@dataclass(frozen=True, slots=True)
class ZoneWish:
    """What a group wants of topology.

    Attributes:
        required: All of it in one zone, or not at all.
        preferred: In one zone, if that can be.
        level: The node label whose values are zones; empty is the engine's.
    """

    required: bool = False
    preferred: bool = False
    level: str = ""


@dataclass(frozen=True, slots=True)
class PodGroupSpec:
    """A gang.

    Attributes:
        namespace: Where it lives.
        name: Its name.
        uid: Of the object; breaks ties.
        queue: The queue's name, or a JobQueue's in its namespace (`job_queue`).
        job_queue: The line it waits in; empty when it names the queue itself.
        min_member: How many tasks are needed.
        min_task_member: By role.
        min_resources: What must be free before it is looked at; for compatibility.
        sub_groups: Its tree.
        priority: As resolved from its class; None takes the highest of its pods.
        bundle: Gangs of one bundle start together or not at all.
        schedule_timeout_seconds: After so long of waiting it says `ScheduleTimeout`; 0 is never.
        preemptible: Whether it may be evicted for others of its queue, or reclaimed.
        disruption_mode: Whether single pods may be evicted, or only the whole.
        match_policy: What counts towards the minimum.
        zone: Topology.
        maximum_execution_seconds: How long it runs at most; None is unknown.
        quota_refs: Names of Quotas it wants slots of.
        owner: The top owner, `Kind/namespace/name`; for `why job`.
        created: Seconds since 1970.
        bundle_members: Keys of all gangs of its bundle, its own included; empty when it does not say.
        sla_waiting_seconds: After so long of waiting it goes before others of its queue; None is no agreement.
    """

    namespace: str
    name: str
    uid: str = ""
    queue: str = ""
    job_queue: str = ""
    min_member: int = 1
    min_task_member: Mapping[str, int] = field(default_factory=dict)
    min_resources: Mapping[str, int] = field(default_factory=dict)
    sub_groups: tuple[SubGroupSpec, ...] = ()
    priority: int | None = None
    bundle: str = ""
    schedule_timeout_seconds: float = 0.0
    preemptible: bool = True
    disruption_mode: Literal["Pod", "PodGroup"] = "Pod"
    match_policy: MatchPolicy = "waiting-and-running"
    zone: ZoneWish = ZoneWish()
    maximum_execution_seconds: float | None = None
    quota_refs: tuple[str, ...] = ()
    owner: str = ""
    created: float = 0.0
    bundle_members: frozenset[str] = frozenset()
    sla_waiting_seconds: float | None = None

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"


ReleaseReason = Literal["Used", "Idle", "Expired"]
"""Why a slot is given back: who sat in it ended, nobody sat in it for too long, or its time is over."""


@dataclass(frozen=True, slots=True)
class QuotaSpec:
    """A slot of resources that is itself scheduled: bound to a node, held for its queue, then filled by tasks.

    Attributes:
        namespace: Where it lives.
        name: Its name; slots of `count` more than one are `name-0`, `name-1`, ...
        uid: Of the object.
        queue: Whose share it is charged to.
        resources: The size of one slot.
        count: How many.
        node_selector: Where it may be.
        owners: Group keys that may use it; empty is any job of the queue.
        owner_selector: Labels of pods that may use it; None asks for none.
        allocate_policy: Aligned and Restricted never mix slot and node room; Flexible is not offered.
        allocate_once: Whether it is given back when its first holder ends.
        release: `Idle` gives it back after `release_after_seconds` without a holder; `OnJobFinish`; `Never`.
        release_after_seconds: See there.
        expires: Seconds since 1970 at which it ends; None is never.
        node: The node it is bound to, as its status says, by index.
        bound: Since when slots are bound, as its status says, in seconds since 1970, by index.
        holders: Names of the pods in slots, as its status says, by index; it may say it a moment late.
        used: Slots in which pods ran or were to run, as its status says, by index.
        released: Slots that were given back, and why, as its status says, by index.
        zone: The zone it shall be in; empty is any.
        created: Seconds since 1970.
    """

    namespace: str
    name: str
    queue: str
    resources: Mapping[str, int]
    uid: str = ""
    count: int = 1
    node_selector: Mapping[str, str] = field(default_factory=dict)
    owners: frozenset[str] = frozenset()
    owner_selector: Selector | None = None
    allocate_policy: Literal["Aligned", "Restricted"] = "Aligned"
    allocate_once: bool = False
    release: Literal["Idle", "OnJobFinish", "Never"] = "Never"
    release_after_seconds: float = 0.0
    expires: float | None = None
    node: Mapping[int, str] = field(default_factory=dict)
    bound: Mapping[int, int] = field(default_factory=dict)
    holders: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    used: frozenset[int] = frozenset()
    released: Mapping[int, ReleaseReason] = field(default_factory=dict)
    zone: str = ""
    created: float = 0.0

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def ends_with_use(self) -> bool:
        """Whether a slot is given back once nobody sits in it any more."""
        return self.allocate_once or self.release == "OnJobFinish"


@dataclass(frozen=True, slots=True)
class Membership:
    """What a pod says of itself: which group, which role, which queue.

    Attributes:
        group: The key of its pod group; empty for a pod that stands alone.
        role: Its role in the group (`volcano.sh/task-spec`).
        sub_group: The sub-group it names.
        queue: The queue it names (used when there is no group, or the group names none).
        job_queue: The line it names, in its own namespace.
        implicit: Whether the group exists without an object, made of what its pods say.
        min_member: With `implicit`: how many are needed.
        preemptible: What it says of itself; None says nothing.
        bundle: With `implicit`: the keys of all groups of its bundle.
        match_policy: With `implicit`.
        user: Who submitted it, for queues that limit users.
        user_groups: The groups that user is in.
        protected_seconds: For so long after its start it is evicted for nobody.
        zone: With `implicit`: topology.
        schedule_timeout_seconds: With `implicit`: after so long of waiting it says `ScheduleTimeout`.
        sla_waiting_seconds: With `implicit`: after so long of waiting it goes before others.
    """

    group: str = ""
    role: str = ""
    sub_group: str = ""
    queue: str = ""
    job_queue: str = ""
    implicit: bool = False
    min_member: int = 1
    preemptible: bool | None = None
    bundle: frozenset[str] = frozenset()
    match_policy: MatchPolicy = "waiting-and-running"
    user: str = ""
    user_groups: tuple[str, ...] = ()
    protected_seconds: float = 0.0
    zone: ZoneWish = ZoneWish()
    schedule_timeout_seconds: float = 0.0
    sla_waiting_seconds: float | None = None


ALONE: Final = Membership()
