"""Quota: not a limit, but a slot of resources that is itself scheduled.

It is bound to a node (or zone), held for its queue, then filled by tasks. Kueue and Koordinator mean a limit by the
same word; their limit is a Queue's `capability` here. A slot is charged to its queue when it is bound, and its pods are
not charged again.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, ClassVar, Final, Literal

import msgspec

from skysail.api.meta import ApiObject, LabelSelector, Struct
from skysail.batch.kinds.parts import GROUP, VERSION, Conditions, DurationText, ResourceAmounts
from skysail.controller.customresources import Column, CustomResource

MOST_SLOTS: Final = 10_000
"""Each slot is kept, placed and shown by itself; more of them are more Quotas."""


class JobReference(Struct, frozen=True, gc=False):
    """A pod group, or an object whose pods have one.

    Attributes:
        name: Its name, in the Quota's namespace.
        kind: Of what kind.
    """

    name: str
    kind: str = "PodGroup"


class QuotaOwner(Struct, frozen=True, gc=False):
    """Who may use the slots.

    Attributes:
        job_ref: One job; or
        label_selector: all pods with these labels.
    """

    job_ref: JobReference | None = None
    label_selector: LabelSelector | None = None


class ReleasePolicy(Struct, frozen=True, gc=False):
    """When slots are given back.

    Attributes:
        type: Idle after a while without a holder, never, or when the first holder's job is done.
        after: With Idle: how long.
    """

    type: Literal["Idle", "Never", "OnJobFinish"] = "Never"
    after: DurationText = "0s"


class QuotaTopology(Struct, frozen=True, gc=False):
    """Where slots shall be.

    Attributes:
        zone: The zone all must be in.
        required_level: A node label whose value all slots share.
        preferred_level: The same, if that can be.
    """

    zone: str = ""
    required_level: str = ""
    preferred_level: str = ""


class QuotaSpec(Struct, frozen=True, gc=False):
    """A number of equal slots.

    Attributes:
        queue: Whose share they are charged to.
        resources: The size of one.
        count: How many, 10,000 at most.
        flavor: The class of nodes they are for; empty is any.
        node_selector: Labels of the nodes they may be bound to.
        priority_class_name: Which is bound first.
        topology: Where they shall be.
        owners: Who may use them; empty is any job of the queue.
        allocate_policy: Aligned and Restricted never mix a slot's room with the node's.
        allocate_once: Whether a slot is given back when its first holder ends.
        ttl: How long it lives after it was made; or
        expires: until when.
        release_policy: When slots are given back.
        preemptible: Whether slots without holders may be taken by others.
    """

    queue: Annotated[str, msgspec.Meta(min_length=1)]
    resources: Annotated[ResourceAmounts, msgspec.Meta(min_length=1)]
    count: Annotated[int, msgspec.Meta(ge=0, le=MOST_SLOTS)] = 1
    flavor: str = ""
    node_selector: Mapping[str, str] = {}
    priority_class_name: str = ""
    topology: QuotaTopology = QuotaTopology()
    owners: tuple[QuotaOwner, ...] = ()
    allocate_policy: Literal["Aligned", "Restricted"] = "Aligned"
    allocate_once: bool = False
    ttl: DurationText | None = None
    expires: datetime | None = None
    release_policy: ReleasePolicy = ReleasePolicy()
    preemptible: bool = True


class SlotStatus(Struct, frozen=True, gc=False):
    """One slot.

    Attributes:
        index: Which.
        phase: Pending, Bound or Releasing.
        node_name: Where it is bound.
        bound_time: Since when.
        holders: Pods in it.
        used: Whether a pod was ever put into it.
        reason: While it is Releasing: Used, Idle or Expired.
    """

    index: int
    phase: str = ""
    node_name: str = ""
    bound_time: datetime | None = None
    holders: tuple[str, ...] = ()
    used: bool = False
    reason: str = ""

    @property
    def was_used(self) -> bool:
        """Whether it had a pod; of one that was given back that is believed where nobody wrote down why."""
        return self.used or bool(self.holders) or (self.phase == "Releasing" and not self.reason)


class QuotaStatus(Struct, frozen=True, gc=False):
    """Where the slots are.

    Attributes:
        phase: Pending, Claimed, Bound, Releasing or Failed; Bound when all slots are.
        node_name: The node, when there is one slot.
        zone: The zone of its nodes, when they share one.
        slots: Each slot.
        holder: Pods in its slots, for people.
        bound_time: When the last slot was bound.
        conditions: Bound.
    """

    phase: str = ""
    node_name: str = ""
    zone: str = ""
    slots: tuple[SlotStatus, ...] = ()
    holder: str = ""
    bound_time: datetime | None = None
    conditions: Conditions = ()


class Quota(ApiObject, frozen=True, gc=False, kw_only=True):
    """Not a limit: a slot of resources that is bound to a node, held for its queue, then filled by tasks."""

    resource: ClassVar[CustomResource] = CustomResource(
        GROUP,
        VERSION,
        "quotas",
        singular="slotquota",  # kubectl would take `quota`, the short name of core's resource quotas, for this kind
        short_names=("qt",),
        columns=(
            Column("Queue", ".spec.queue"),
            Column("Size", ".spec.resources"),
            Column("Count", ".spec.count", "integer", 1),
            Column("Phase", ".status.phase"),
            Column("Node", ".status.nodeName"),
            Column("Zone", ".status.zone"),
            Column("Holder", ".status.holder"),
        ),
    )
    spec: QuotaSpec
    status: QuotaStatus = QuotaStatus()
