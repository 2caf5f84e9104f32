"""A pod group's attempt as data, in the form of the recorded ones."""

from dataclasses import dataclass

import msgspec

from skysail.api.core import Pod
from skysail.api.errors import ConfigError
from skysail.api.raw import Raw
from skysail.scheduler.algorithm import schedule_pod
from skysail.scheduler.binding import HELD
from skysail.scheduler.cache.pod_groups import PodGroups
from skysail.scheduler.cache.pod_info import PodInfo
from skysail.scheduler.failure import Failure
from skysail.scheduler.framework.conversation import Conversation, alone
from skysail.scheduler.framework.runner import Framework
from skysail.scheduler.framework.status import SUCCESS, Code, Status
from skysail.scheduler.group_attempt import GroupResult, MemberResult, Placed, attempt_group
from skysail.scheduler.plugins.gang_scheduling import GangScheduling
from skysail.scheduler.scenario import FINISHED, World
from skysail.scheduler.telling import told_status


@dataclass(frozen=True, slots=True)
class _Rehearsal:
    """A group's attempt in a cluster of objects, where nothing else happens."""

    framework: Framework
    world: World

    def place(self, pod_info: PodInfo) -> Conversation[Placed | Failure]:
        """Find a node for one pod."""
        self.world.cache.update_snapshot(self.world.current)
        result = schedule_pod(
            self.framework, self.world.current, pod_info, self.world.rng, nominations=self.world.nominations,
            incremental=False,
        )  # fmt: skip
        if result.node_name and result.state is not None:
            return Placed(result.state, result.node_name)
        if result.state is None or result.diagnosis is None or result.status.is_error:
            return Failure(result.status)
        status, found = yield from self.framework.post_filter_asking(result.state, pod_info.pod, result.diagnosis)
        result.diagnosis.post_filter_message = status.message
        failure = Failure(Status(Code.UNSCHEDULABLE), result.diagnosis, found.nominated_node)
        if found.nominated_node:
            return Placed(result.state, found.nominated_node, failure)
        return failure

    def take(self, placed: Placed, pod_info: PodInfo) -> Pod | Failure:
        """Assume and reserve."""
        pod = self.world.cache.assume(pod_info, placed.node_name).pod
        for plugin in self.framework.reserve:
            status = plugin.reserve(placed.state, pod, placed.node_name)
            if not status.is_success:
                self.undo(placed, pod)
                return Failure(status)
        return pod

    def permit(self, placed: Placed, pod: Pod) -> Status:
        """Ask for permission."""
        held: Status | None = None
        for plugin in self.framework.permit:
            status, _ = plugin.permit(placed.state, pod, placed.node_name)
            if status.is_wait:
                held = status
            elif not status.is_success:
                return status.with_plugin(plugin.name)
        return SUCCESS if held is None else Status(Code.WAIT, (*held.reasons, HELD))

    def undo(self, placed: Placed, pod: Pod) -> None:
        """Unreserve and forget."""
        for plugin in reversed(self.framework.reserve):
            plugin.unreserve(placed.state, pod, placed.node_name)
        self.world.cache.forget(pod.uid)


def explain_group(scenario: Raw, framework: Framework, world: World) -> Raw:
    """Try the members of a group, with everything that led to the result.

    Raises:
        ConfigError: A member cannot be read.
    """
    members = [_pod(raw, scenario) for raw in scenario["pods"]]
    groups = world.cache.keep_groups()
    for pod in (*world.objects.get("pods", ()), *members):
        if pod.status.phase not in FINISHED:
            groups.put(pod)
    plugin = framework.plugins.get(GangScheduling.name)
    if isinstance(plugin, GangScheduling):
        plugin.groups = groups
    statuses = {pod.uid: framework.run_pre_enqueue(pod) for pod in members}
    tried = sorted((pod for pod in members if statuses[pod.uid].is_success), key=lambda pod: -(pod.spec.priority or 0))
    found = {**_counts(groups, (members[0].namespace, scenario["pod_group"]))}
    result = None
    if tried:
        found["attempt_order"] = [pod.name for pod in tried]
        result = alone(attempt_group([PodInfo(pod) for pod in tried], _Rehearsal(framework, world)))
    by_uid = {member.pod_info.pod.uid: member for member in result.members} if result is not None else {}
    found["pods"] = [_member(pod, statuses[pod.uid], by_uid.get(pod.uid)) for pod in members]
    return found | _group(result)


def _pod(raw: Raw, scenario: Raw) -> Pod:
    try:
        return msgspec.json.decode(msgspec.json.encode(raw), type=Pod)
    except msgspec.ValidationError as error:
        raise ConfigError(f"no usable pod: {error}", path=str(scenario.get("id", ""))) from error


def _counts(groups: PodGroups, key: tuple[str, str]) -> Raw:
    state = groups.state(key)
    return {"all_pods_count": state.all_count, "scheduled_pods_count": state.scheduled_count}


def _member(pod: Pod, pre_enqueue: Status, member: MemberResult | None) -> Raw:
    found: Raw = {"pod": pod.name, "pre_enqueue": told_status(pre_enqueue), "attempted": member is not None}
    if member is None:
        return found
    failure = member.failure
    found["status"] = told_status(failure.status if failure is not None else SUCCESS)
    if failure is not None:
        found["fit_error"] = failure.message
    if member.node_name:
        found["node"] = member.node_name
    if member.needs_preemption:
        found |= {"nominated_node": member.node_name, "requires_preemption": True}
    if member.permit is not None:
        found["permit"] = told_status(member.permit)
    return found


def _group(result: GroupResult | None) -> Raw:
    if result is None:
        return {"group_status": {"code": "Skip"}, "waiting_on_preemption": False}
    found: Raw = {"group_status": told_status(result.status), "waiting_on_preemption": result.waits_on_preemption}
    if not result.status.is_success:
        found["group_error"] = result.status.reasons[0]
    return found
