"""Queue: a share of the cluster.

Field names are Volcano's where Volcano has them, Kueue's and KAI's for the rest.
"""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

import msgspec

from skysail.api.meta import ApiObject, LabelSelector, Struct
from skysail.api.raw import Raw
from skysail.batch.kinds.parts import GROUP, VERSION, AmountText, Conditions, DurationText
from skysail.controller.customresources import Column, CustomResource, list_map

Weight = Annotated[int, msgspec.Meta(ge=0)]


class Guarantee(Struct, frozen=True, gc=False):
    """What is kept for a queue.

    Attributes:
        resource: By resource; what is not named is not kept.
    """

    resource: Mapping[str, AmountText] = {}


class QueueFlavor(Struct, frozen=True, gc=False):
    """A queue's figures on one class of nodes.

    Attributes:
        name: The flavor's name, shared by all queues that use it.
        node_selector: Labels of the flavor's nodes; may stand in one queue only.
        guarantee: Kept for the queue on these nodes.
        deserved: What the queue may take back from borrowers on these nodes.
        capability: The most it may use on these nodes.
    """

    name: Annotated[str, msgspec.Meta(min_length=1)]
    node_selector: Mapping[str, str] = {}
    guarantee: Guarantee = Guarantee()
    deserved: Mapping[str, AmountText] = {}
    capability: Mapping[str, AmountText] = {}


class BorrowWithinCohort(Struct, frozen=True, gc=False):
    """Whether a job that makes its queue borrow may evict borrowers of other queues.

    Attributes:
        policy: Never, or those of lower priority.
        max_priority_threshold: Only those of at most this priority.
    """

    policy: Literal["Never", "LowerPriority"] = "Never"
    max_priority_threshold: int | None = None


class PreemptionRules(Struct, frozen=True, gc=False):
    """Whom the queue's jobs may evict.

    Attributes:
        within_queue: In the own queue.
        reclaim_within_cohort: In queues above their entitlement.
        borrow_within_cohort: While borrowing themselves.
        reclaim_within_quota: Whether lower-priority queues may be taken from even within their entitlement.
    """

    within_queue: Literal["Never", "LowerPriority", "LowerOrNewerEqualPriority"] = "LowerPriority"
    reclaim_within_cohort: Literal["Never", "LowerPriority", "Any"] = "Any"
    borrow_within_cohort: BorrowWithinCohort = BorrowWithinCohort()
    reclaim_within_quota: Literal["Never", "LowerQueuePriority"] = "Never"


class FairSharing(Struct, frozen=True, gc=False):
    """How past use counts.

    Attributes:
        usage_half_life: After this long, use counts half; empty counts no past use.
        usage_weight: How much past use counts, in thousandths.
    """

    usage_half_life: DurationText | None = None
    usage_weight: Weight = 0


class QueueLimit(Struct, frozen=True, gc=False):
    """A limit for one user or group of users within the queue.

    Attributes:
        user: Whom it is for; or
        group: which group of users.
        resource: The most they may use together.
        max_jobs: How many of their jobs may run.
    """

    user: str = ""
    group: str = ""
    resource: Mapping[str, AmountText] = {}
    max_jobs: int | None = None


class QueueSpec(Struct, frozen=True, gc=False):
    """What a queue is entitled to, and its rules.

    Attributes:
        type: Quota has an entitlement; Spot has none and lives on what is idle.
        parent: The queue above; `root` need not exist.
        priority: Queues of higher priority are served first, and get surplus first.
        weight: The part of the surplus among siblings of equal priority.
        over_quota_weight: The same for single resources.
        reclaimable: Whether others may take back what the queue uses above its entitlement.
        guarantee: Kept for the queue even when it does not ask. Not named is 0.
        deserved: What the queue may take back from borrowers. Not named states no claim; what is used is reclaimable.
        capability: The most the queue may use. Not named is no limit.
        borrowing_limit: Another way to write capability: deserved and this much more.
        lending_limit: Another way to write guarantee: deserved less this much.
        flavors: Figures by class of nodes, in order of preference; then the plain figures must be absent.
        dequeue_strategy: With fifo a blocked head blocks those behind that compete with it; traverse looks past it.
        queueing_strategy: The same in Kueue's words.
        backfill: With EASY, jobs may pass a blocked head that end before it could start.
        pass_over_limit: How many jobs of unknown length may pass a blocked head.
        preemption: Whom its jobs may evict.
        preempt_min_runtime: How long a job runs before its own queue may preempt it.
        reclaim_min_runtime: How long a job runs before others may reclaim it.
        fair_sharing: How past use counts.
        stop_policy: Hold takes no new jobs; HoldAndDrain also evicts the running ones.
        max_jobs: How many jobs may run at a time; absent is any number.
        namespace_selector: Whose namespaces may use it; absent is all.
        limits: For users and groups.
    """

    type: Literal["Quota", "Spot"] = "Quota"
    parent: str = "root"
    priority: int = 0
    weight: Weight = 1
    over_quota_weight: Mapping[str, Weight] = {}
    reclaimable: bool = True
    guarantee: Guarantee = Guarantee()
    deserved: Mapping[str, AmountText] = {}
    capability: Mapping[str, AmountText] = {}
    borrowing_limit: Mapping[str, AmountText] = {}
    lending_limit: Mapping[str, AmountText] = {}
    flavors: Annotated[tuple[QueueFlavor, ...], list_map("name")] = ()
    dequeue_strategy: Literal["fifo", "traverse"] | None = None
    queueing_strategy: Literal["StrictFIFO", "BestEffortFIFO"] | None = None
    backfill: Literal["None", "EASY"] = "None"
    pass_over_limit: Annotated[int, msgspec.Meta(ge=0)] = 16
    preemption: PreemptionRules = PreemptionRules()
    preempt_min_runtime: DurationText | None = None
    reclaim_min_runtime: DurationText | None = None
    fair_sharing: FairSharing = FairSharing()
    stop_policy: Literal["None", "Hold", "HoldAndDrain"] = "None"
    max_jobs: Annotated[int, msgspec.Meta(ge=0)] | None = None
    namespace_selector: LabelSelector | None = None
    limits: tuple[QueueLimit, ...] = ()


class QueueStatus(Struct, frozen=True, gc=False):
    """Where the queue stands.

    Attributes:
        state: Open, Closed or Closing.
        pending: Jobs that wait.
        inqueue: Jobs that wait and whose members are all there.
        running: Jobs that run.
        completed: Jobs that ended and are still there.
        unknown: Jobs that run below their minimum.
        allocated: What its jobs hold.
        claimed: What was promised to its jobs while victims leave.
        releasing: What leaving pods still hold.
        requested: What its jobs hold and wait for.
        entitlement: What it may hold now.
        share: The largest part of its entitlement in use, in thousandths.
        usage: Decayed past use, in millionths of the cluster.
        child_queues: The queues right below it.
        conditions: EntitlementScaled, OverLimit, Misconfigured.
    """

    state: str = ""
    pending: int = 0
    inqueue: int = 0
    running: int = 0
    completed: int = 0
    unknown: int = 0
    allocated: Mapping[str, str] = {}
    claimed: Mapping[str, str] = {}
    releasing: Mapping[str, str] = {}
    requested: Mapping[str, str] = {}
    entitlement: Mapping[str, str] = {}
    share: int = 0
    usage: int = 0
    child_queues: tuple[str, ...] = ()
    conditions: Conditions = ()


_HAS_ENTITLEMENT: Raw = {"anyOf": [{"required": ["deserved"]}, {"required": ["guarantee"]}]}
_HAS_FIGURES: Raw = {"anyOf": [{"required": ["deserved"]}, {"required": ["capability"]}]}
COHERENT = msgspec.Meta(
    extra_json_schema={
        "allOf": [
            {"anyOf": [{"properties": {"type": {"enum": ["Quota"]}}}, {"not": _HAS_ENTITLEMENT}]},
            {"not": {"allOf": [{"required": ["flavors"]}, _HAS_FIGURES]}},
        ]
    }
)
"""A queue of type Spot has no entitlement; figures stand either on the queue or on its flavors.

Not written as CEL rules: servers without CEL shall serve these kinds, too.
"""


class Queue(ApiObject, frozen=True, gc=False, kw_only=True):
    """A share of the cluster. Queues form a tree."""

    resource: ClassVar[CustomResource] = CustomResource(
        GROUP,
        VERSION,
        "queues",
        namespaced=False,
        short_names=("q",),
        columns=(
            Column("Type", ".spec.type"),
            Column("Parent", ".spec.parent"),
            Column("State", ".status.state"),
            Column("Running", ".status.running", "integer"),
            Column("Pending", ".status.pending", "integer"),
            Column("Share", ".status.share", "integer", 1, "Thousandths of the entitlement in use."),
            Column("Priority", ".spec.priority", "integer", 1),
        ),
    )
    spec: Annotated[QueueSpec, COHERENT] = QueueSpec()
    status: QueueStatus = QueueStatus()
