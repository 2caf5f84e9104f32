"""A slot: a place of a certain size, scheduled by itself and then filled by tasks.

    Pending --AllocateQuota--> Bound --was used, idle too long, expired--> Releasing --> gone
       |  ^                                                                | ^
       |  `------------ its Quota says otherwise than why it went ---------' |
       `---------------------------------- expired --------------------------'

Implicit slots, one for a task whose queue's users define no Quota, are made and released with their task and have no
object; they need no account of their own, so only explicit slots are `Slot`s.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Literal, Protocol

from skysail.batch.model.resources import PODS
from skysail.batch.model.specs import QuotaSpec, ReleaseReason

SlotPhase = Literal["Pending", "Bound", "Releasing"]


class Holder(Protocol):
    """A task, as far as a slot knows it."""

    uid: str
    request: Mapping[str, int]


class Slot:
    """One slot of a Quota.

    Attributes:
        spec: The Quota.
        index: Which of its slots.
        phase: See above.
        node: Where it is bound, or empty.
        bound_at: Since when, in whole seconds since 1970, as its status says it.
        holders: Tasks in it, by uid.
        used: What they take.
        idle_since: Seconds at which its last holder left; None while it has one.
        was_used: Whether a pod ever ran in it.
        reason: While it is Releasing: why.
    """

    __slots__ = ("bound_at", "holders", "idle_since", "index", "node", "phase", "reason", "spec", "used", "was_used")

    def __init__(self, spec: QuotaSpec, index: int, now: float) -> None:
        self.spec, self.index = spec, index
        self.phase: SlotPhase = "Pending"
        self.node = ""
        self.bound_at = 0
        self.holders: dict[str, Holder] = {}
        self.used: dict[str, int] = {}
        self.idle_since: float | None = now
        self.was_used = False
        self.reason: ReleaseReason | None = None

    @property
    def key(self) -> str:
        """`namespace/name`, with the index where there are several."""
        return slot_key(self.spec, self.index)

    @property
    def size(self) -> Mapping[str, int]:
        """What it offers."""
        return self.spec.resources

    @property
    def bound_time(self) -> datetime | None:
        """Since when it is on its node, in UTC; None when it is on none, or nobody wrote it down."""
        return datetime.fromtimestamp(self.bound_at, UTC) if self.node and self.bound_at else None

    @property
    def is_spent(self) -> bool:
        """Whether a pod ran in it, or is on its way there: what must be known of it after a restart."""
        return self.was_used or bool(self.holders)

    def has_room_for(self, request: Mapping[str, int]) -> bool:
        """Whether a task fits beside its holders: only the resources the slot names count, and it must name them."""
        size, used = self.spec.resources, self.used
        return all(
            resource in size and amount + used.get(resource, 0) <= size[resource]
            for resource, amount in request.items()
            if resource != PODS
        )

    def times(self, request: Mapping[str, int]) -> int:
        """How many such tasks fit beside its holders, at most one where a task asks for nothing but to be there."""
        if not self.has_room_for(request):
            return 0
        size, used = self.spec.resources, self.used
        return min(
            (
                (size[resource] - used.get(resource, 0)) // amount
                for resource, amount in request.items()
                if resource != PODS and amount
            ),
            default=1,
        )

    def room_left(self) -> int:
        """A measure of what is left, for the tightest fit: the sum of what its holders do not take."""
        return sum(amount - self.used.get(resource, 0) for resource, amount in self.spec.resources.items())

    def put(self, task: Holder) -> None:
        """A task takes room in it."""
        self.holders[task.uid] = task
        self._count(task, 1)
        self.idle_since = None

    def take(self, task: Holder, now: float) -> None:
        """A task leaves it."""
        if self.holders.pop(task.uid, None) is not None:
            self._count(task, -1)
            if not self.holders:
                self.idle_since = now

    def _count(self, task: Holder, sign: int) -> None:
        for resource, amount in task.request.items():
            if resource != PODS:
                self.used[resource] = self.used.get(resource, 0) + sign * amount

    def __repr__(self) -> str:
        return f"Slot({self.key}, {self.phase}, {self.node or '-'}, {len(self.holders)} holders)"


def slot_key(spec: QuotaSpec, index: int) -> str:
    """`namespace/name`, with `[index]` where there are several: no other Quota can be named so."""
    return f"{spec.key}[{index}]" if spec.count > 1 else spec.key


def common_phase(slots: Sequence[Slot]) -> SlotPhase:
    """The phase of a Quota: Bound when all of its slots are, Releasing when any is."""
    phases = {slot.phase for slot in slots}
    if "Releasing" in phases:
        return "Releasing"
    return "Bound" if phases == {"Bound"} else "Pending"
