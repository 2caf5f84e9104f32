"""A pod group's attempt: its pods one after the other, each seeing those before it as placed; nothing is kept.

    for each pod, the most important first:
        decide ─▶ refused, nobody to evict ─▶ on with the next
               ─▶ an error                  ─▶ the group fails with it
               ─▶ a node, or one to be freed by evictions ─▶ assume, reserve, permit
    then everything is undone, in reverse order.

The group succeeds as soon as Permit lets one of its pods pass, unless evictions must come first. Who carries out the
result is `skysail.scheduler.group_cycle`; `skysail explain` only shows it.

Source: pkg/scheduler/schedule_one_podgroup.go (podGroupSchedulingDefaultAlgorithm), v1.36.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from skysail.api.core import Pod
from skysail.scheduler.cache.pod_info import PodInfo
from skysail.scheduler.failure import Failure, refused_on
from skysail.scheduler.framework.conversation import Conversation
from skysail.scheduler.framework.cycle_state import CycleState
from skysail.scheduler.framework.status import SUCCESS, Code, Status

UNSCHEDULABLE_GROUP = "pod group is unschedulable"
WAITING_ON_PREEMPTION = "pod group is waiting for preemption to complete"


@dataclass(frozen=True, slots=True)
class Placed:
    """A node was found for a pod.

    Attributes:
        state: The attempt's memory.
        node_name: Where.
        refusal: When others must be evicted first: the refusal that led to it.
    """

    state: CycleState
    node_name: str
    refusal: Failure | None = None


@dataclass(slots=True)
class MemberResult:
    """What became of one pod.

    Attributes:
        pod_info: The pod.
        failure: Why it has no node, or why others must be evicted first.
        node_name: Where it was placed.
        permit: What Permit said; None when it did not get that far.
        needs_preemption: Whether others must be evicted first.
    """

    pod_info: PodInfo
    failure: Failure | None = None
    node_name: str = ""
    permit: Status | None = None
    needs_preemption: bool = False


@dataclass(slots=True)
class GroupResult:
    """What became of the group.

    Attributes:
        members: In the order tried; fewer than the group has when an error ended it.
        status: Success when the placed pods may be bound.
        waits_on_preemption: Whether all would fit once the victims are gone.
    """

    members: list[MemberResult]
    status: Status
    waits_on_preemption: bool = False


class Surroundings(Protocol):
    """What an attempt does to the world, and undoes."""

    def place(self, pod_info: PodInfo) -> Conversation[Placed | Failure]:
        """Find a node for one pod, PostFilter included."""
        ...

    def take(self, placed: Placed, pod_info: PodInfo) -> Pod | Failure:
        """Assume and reserve; the assumed pod. All undone when it fails."""
        ...

    def permit(self, placed: Placed, pod: Pod) -> Status:
        """Ask for permission, holding nobody."""
        ...

    def undo(self, placed: Placed, pod: Pod) -> None:
        """Unreserve and forget."""
        ...


def attempt_group(members: Sequence[PodInfo], around: Surroundings) -> Conversation[GroupResult]:
    """Try all pods of a group.

    Args:
        members: The most important first.
        around: The world.
    """
    result = GroupResult([], Status(Code.UNSCHEDULABLE, (UNSCHEDULABLE_GROUP,)))
    taken: list[tuple[Placed, Pod]] = []
    needs_preemption = False
    try:
        for pod_info in members:
            found = yield from around.place(pod_info)
            member = MemberResult(pod_info)
            result.members.append(member)
            if isinstance(found, Placed):
                _take(found, member, around, taken)
            else:
                member.failure = found
            if member.permit is None:
                assert member.failure is not None
                if member.failure.status.is_rejected:
                    continue
                message = f"failed to schedule other pod from a pod group: {member.failure.message}"
                result.status, result.waits_on_preemption = Status.error(message), False
                break
            needs_preemption |= member.needs_preemption
            if member.permit.is_success:
                result.waits_on_preemption = needs_preemption
                waiting = Status(Code.UNSCHEDULABLE, (UNSCHEDULABLE_GROUP, WAITING_ON_PREEMPTION))
                result.status = waiting if needs_preemption else SUCCESS
    finally:
        for placed, pod in reversed(taken):
            around.undo(placed, pod)
    return result


def _take(placed: Placed, member: MemberResult, around: Surroundings, taken: list[tuple[Placed, Pod]]) -> None:
    pod = around.take(placed, member.pod_info)
    if isinstance(pod, Failure):
        member.failure = pod
        return
    permit = around.permit(placed, pod)
    if not permit.is_success and not permit.is_wait:
        around.undo(placed, pod)
        member.failure = refused_on(placed.node_name, permit) if permit.is_rejected else Failure(permit)
        return
    taken.append((placed, pod))
    member.node_name, member.permit = placed.node_name, permit
    member.failure, member.needs_preemption = placed.refusal, placed.refusal is not None
