"""Carries out what a pod group's attempt came to: binds its pods, or sends all of them back.

    group             pod placed                         pod needs evictions                 pod refused
    succeeded         takes its node, is bound           -                                   back, refused
    waits for         back, nominated to its node        back, nominated                     back, refused
    evictions
    refused           back: group is unschedulable       back: group is unschedulable        back, refused
    failed            back with the error                back with the error                 back with its own error

The popped pod brings all others of its group along. The PodGroup gets the condition PodGroupScheduled.

Source: pkg/scheduler/schedule_one_podgroup.go, v1.36.
Differs: TopologyAwareWorkloadScheduling and WorkloadAwarePreemption (alpha, off by default) are not built.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

import msgspec

from skysail.api.core import Pod
from skysail.api.errors import ApiError, Unreachable
from skysail.api.kinds import POD_GROUPS
from skysail.api.meta import Condition
from skysail.api.scheduling import PodGroup
from skysail.client.api_client import ApiClient
from skysail.scheduler.attempts import Attempt
from skysail.scheduler.cache.pod_groups import GroupKey, PodGroups, group_of
from skysail.scheduler.cache.pod_info import PodInfo
from skysail.scheduler.cycle import SchedulingCycle
from skysail.scheduler.failure import Failure
from skysail.scheduler.flight import CycleProfile, Flight
from skysail.scheduler.framework.conversation import Conversation
from skysail.scheduler.framework.queued_pod import QueuedPodInfo, scheduler_name
from skysail.scheduler.framework.status import Code, Status
from skysail.scheduler.group_attempt import UNSCHEDULABLE_GROUP, GroupResult, MemberResult, Placed, attempt_group
from skysail.scheduler.metrics import ERROR, SCHEDULED, UNSCHEDULABLE, WAITING_ON_PREEMPTION, SchedulerMetrics
from skysail.scheduler.queue.scheduling_queue import SchedulingQueue

_log = logging.getLogger(__name__)
SCHEDULED_CONDITION: Final = "PodGroupScheduled"


@dataclass(slots=True)
class _Rehearsal:
    """The group's attempt in the running scheduler: pods are assumed in the cache, and forgotten again."""

    cycle: SchedulingCycle
    profile: CycleProfile
    infos: Mapping[str, QueuedPodInfo]
    now: Callable[[], float]
    attempts: dict[str, Attempt] = field(default_factory=dict)
    placed: dict[str, Placed] = field(default_factory=dict)
    flights: dict[str, Flight] = field(default_factory=dict)

    def place(self, pod_info: PodInfo) -> Conversation[Placed | Failure]:
        """Find a node for one pod."""
        info = self.infos[pod_info.key]
        attempt = self.attempts[pod_info.key] = self.cycle.begin(self.profile, info)
        decided = yield from self.cycle.decide(self.profile, info, attempt, self.now())
        if decided.failure is None and decided.state is not None:
            found = Placed(decided.state, decided.node_name)
        elif decided.failure is not None and decided.state is not None and decided.failure.nominated_node:
            found = Placed(decided.state, decided.failure.nominated_node, decided.failure)
        else:
            return decided.failure or Failure(Status.error("no decision"))
        self.placed[pod_info.key] = found
        return found

    def take(self, placed: Placed, pod_info: PodInfo) -> Pod | Failure:
        """Assume and reserve."""
        uid = pod_info.key
        flight = self.cycle.assume(
            self.profile, self.infos[uid], placed.state, placed.node_name, self.attempts[uid], self.now()
        )
        if isinstance(flight, Failure):
            return flight
        self.flights[uid] = flight
        return flight.pod

    def permit(self, placed: Placed, pod: Pod) -> Status:
        """Ask for permission."""
        return self.profile.binding.permit(placed.state, pod, placed.node_name, hold=False)

    def undo(self, placed: Placed, pod: Pod) -> None:
        """Unreserve and forget."""
        self.cycle.undo(self.flights[pod.uid])


class GroupCycle:
    """Schedules pod groups.

    Args:
        queue: Where the group's other pods wait.
        groups: Who belongs to a group.
        pod_group: A group's object; None when it is gone.
        client: Writes the condition; None writes none.
        now: Seconds on the queue's clock.
        today: The time of day.
        metrics: Counts and measures.
    """

    def __init__(
        self,
        queue: SchedulingQueue,
        groups: PodGroups,
        *,
        pod_group: Callable[[GroupKey], PodGroup | None],
        client: ApiClient | None,
        now: Callable[[], float],
        today: Callable[[], datetime],
        metrics: SchedulerMetrics,
    ) -> None:
        self._metrics = metrics
        self._queue, self._groups, self._pod_group = queue, groups, pod_group
        self._client, self._now, self._today = client, now, today

    def schedule(self, cycle: SchedulingCycle, info: QueuedPodInfo, tasks: asyncio.TaskGroup) -> Conversation[None]:
        """Try the popped pod's whole group."""
        members = self._members(cycle, info)
        profile = self._profile(cycle, members)
        if profile is None:
            return
        infos: dict[str, QueuedPodInfo] = {}
        for member in members:
            if cycle.is_to_skip(profile, member.pod):
                cycle.drop(member)
            else:
                infos[member.pod.uid] = member
        if not infos:
            return
        rehearsal = _Rehearsal(cycle, profile, infos, self._now)
        start = self._now()
        result = yield from attempt_group([PodInfo(each.pod) for each in infos.values()], rehearsal)
        self._metrics.observe("podgroup_scheduling_algorithm_duration_seconds", self._now() - start)
        self._submit(rehearsal, result, tasks)
        self._metrics.group_attempt(_outcome(result), profile.name, self._now() - start)
        self._tell(info.pod, result, tasks)

    def _members(self, cycle: SchedulingCycle, first: QueuedPodInfo) -> list[QueuedPodInfo]:
        """The group's queued pods, the most important first, then by how long they wait."""
        key = group_of(first.pod)
        others = list(self._groups.state(key).unscheduled.values()) if key is not None else []
        members = [first]
        for pod in others:
            if pod.uid != first.pod.uid:
                other = self._queue.pop_specific(pod, self._now())
                if other is not None:
                    cycle.popped(other)
                    members.append(other)
        return sorted(members, key=lambda each: (-(each.pod.spec.priority or 0), each.initial_attempt_timestamp or 0.0))

    def _profile(self, cycle: SchedulingCycle, members: Sequence[QueuedPodInfo]) -> CycleProfile | None:
        """The one profile of all members; where there is none, all of them go back."""
        names = list(dict.fromkeys(scheduler_name(each.pod) for each in members))
        profile = cycle.profile_of(members[0].pod)
        if len(names) == 1:
            return profile
        text = "all pods in a single pod group should have the same .spec.schedulerName set, got:"
        failure = Failure(Status.error(f'{text} "{names[0]}" and "{names[1]}"'))
        for member in members:
            own = cycle.profile_of(member.pod)
            if own is None:
                cycle.drop(member)
            else:
                cycle.fail(own, member, failure, cycle.begin(own, member), self._now())
        return None

    def _submit(self, rehearsal: _Rehearsal, result: GroupResult, tasks: asyncio.TaskGroup) -> None:
        cycle, profile = rehearsal.cycle, rehearsal.profile
        by_uid = {member.pod_info.key: member for member in result.members}
        for uid, info in rehearsal.infos.items():
            member = by_uid.get(uid)
            attempt = rehearsal.attempts.get(uid) or cycle.begin(profile, info)
            failure = _failure_of(member, result)
            if failure is not None:
                cycle.fail(profile, info, failure, attempt, self._now())
                continue
            placed = rehearsal.placed[uid]
            cycle.take_and_bind(profile, info, placed.state, placed.node_name, attempt, self._now(), tasks)

    def _tell(self, pod: Pod, result: GroupResult, tasks: asyncio.TaskGroup) -> None:
        key = group_of(pod)
        group = self._pod_group(key) if key is not None else None
        if group is None or self._client is None:
            return
        told = with_condition(group, result.status, self._today())
        if told is not None:
            tasks.create_task(self._write(self._client, group, told), name=f"condition of pod group {group.name}")

    async def _write(self, client: ApiClient, old: PodGroup, new: PodGroup) -> None:
        try:
            await client.patch_status(POD_GROUPS, old, new)
        except (ApiError, Unreachable) as error:
            _log.info("pod group status not written", extra={"group": old.name, "error": str(error)})
        except Exception:  # noqa: BLE001 - a condition costs no scheduler
            _log.exception("pod group status not written", extra={"group": old.name})


def _outcome(result: GroupResult) -> str:
    """The label of the metrics."""
    if result.waits_on_preemption:
        return WAITING_ON_PREEMPTION
    return SCHEDULED if result.status.is_success else UNSCHEDULABLE if result.status.is_rejected else ERROR


def _failure_of(member: MemberResult | None, result: GroupResult) -> Failure | None:
    """Why a pod goes back; None when it is to be bound."""
    if result.status.is_error:
        own = member.failure if member is not None else None
        return own if own is not None and own.status.is_error else Failure(result.status)
    if member is None:
        return Failure(result.status)
    if member.failure is not None and not (member.needs_preemption and not result.waits_on_preemption):
        return member.failure
    if result.status.is_success:
        return None
    if result.waits_on_preemption:
        return Failure(result.status, nominated_node=member.node_name)
    said = member.permit.message if member.permit is not None else ""
    return Failure(Status(Code.UNSCHEDULABLE, (UNSCHEDULABLE_GROUP, said) if said else (UNSCHEDULABLE_GROUP,)))


def with_condition(group: PodGroup, status: Status, now: datetime) -> PodGroup | None:
    """The group with what became of it; None when it says so already, or was scheduled before."""
    wanted = Condition(
        type=SCHEDULED_CONDITION,
        status="True" if status.is_success else "False",
        reason="Scheduled" if status.is_success else "Unschedulable" if status.is_rejected else "SchedulerError",
        message=status.message,
        last_transition_time=now,
        observed_generation=group.metadata.generation,
    )
    conditions = group.status.conditions
    old = next((each for each in conditions if each.type == SCHEDULED_CONDITION), None)
    if old is not None:
        if old.status == wanted.status:
            wanted = msgspec.structs.replace(wanted, last_transition_time=old.last_transition_time)
        if old == wanted or (old.status == "True" and wanted.status != "True"):
            return None
    others = tuple(each for each in conditions if each.type != SCHEDULED_CONDITION)
    status_after = msgspec.structs.replace(group.status, conditions=(*others, wanted))
    return msgspec.structs.replace(group, status=status_after)
