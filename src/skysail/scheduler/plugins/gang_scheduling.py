"""All or nothing: the pods of a gang wait until enough of them have a node.

Source: pkg/scheduler/framework/plugins/gangscheduling/gangscheduling.go, v1.36.
"""

from collections.abc import Sequence

from skysail.api.core import Pod
from skysail.api.kinds import POD_GROUPS
from skysail.api.scheduling import PodGroup
from skysail.scheduler.cache.pod_groups import PodGroups, group_of
from skysail.scheduler.framework.cycle_state import CycleState
from skysail.scheduler.framework.events import (
    POD,
    POD_GROUP,
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    QueueingHint,
)
from skysail.scheduler.framework.handle import Handle
from skysail.scheduler.framework.status import SUCCESS, Code, Status
from skysail.scheduler.plugins.args import PluginArgs

PERMIT_SECONDS = 300.0
TOO_FEW = Status.unresolvable("waiting for minCount pods from a gang to appear in scheduling queue")
WAITING = Status(Code.WAIT, ("waiting for minCount pods from a gang to be scheduled",))


class GangScheduling:
    """The plugin.

    Attributes:
        groups: Which pods of each group are known. Set by whoever keeps the account.
    """

    name = "GangScheduling"

    def __init__(self, args: PluginArgs, handle: Handle) -> None:
        self._handle = handle
        self._pod_groups = handle.lister(POD_GROUPS)
        self.groups = PodGroups()

    def pre_enqueue(self, pod: Pod) -> Status:
        """Hold a pod back until its group is there, and enough pods of the gang."""
        key = group_of(pod)
        if key is None:
            return SUCCESS
        group = self._pod_groups.get(*key)
        if group is None:
            return Status.unresolvable(f'waiting for pods\'s pod group "{key[1]}" to appear in scheduling queue')
        gang = group.spec.scheduling_policy.gang
        return TOO_FEW if gang is not None and self.groups.state(key).all_count < gang.min_count else SUCCESS

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status, float]:
        """Hold the pod until enough of the gang have a node; then let all of them go."""
        key = group_of(pod)
        if key is None:
            return SUCCESS, 0.0
        group = self._pod_groups.get(*key)
        if group is None:
            return Status.error(f'failed to get podGroup {key[0]}/{key[1]}: podgroup "{key[1]}" not found'), 0.0
        gang = group.spec.scheduling_policy.gang
        if gang is None:
            return SUCCESS, 0.0
        known = self.groups.state(key)
        if known.scheduled_count < gang.min_count:
            self._handle.activate(list(known.unscheduled.values()))
            return WAITING, PERMIT_SECONDS
        for uid in known.assumed:
            waiting = self._handle.waiting_pod(uid)
            if waiting is not None:
                waiting.allow(self.name)
        return SUCCESS, 0.0

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Another pod of the gang; the group itself."""
        return (
            ClusterEventWithHint(ClusterEvent(POD, ActionType.ADD), _after_pod_added),
            ClusterEventWithHint(ClusterEvent(POD_GROUP, ActionType.ADD), _after_group_added),
        )


def _after_pod_added(pod: Pod, old: object | None, new: object | None) -> QueueingHint:
    if not isinstance(new, Pod):
        return QueueingHint.QUEUE
    mine = group_of(pod)
    return QueueingHint.QUEUE if mine is not None and mine == group_of(new) else QueueingHint.SKIP


def _after_group_added(pod: Pod, old: object | None, new: object | None) -> QueueingHint:
    if not isinstance(new, PodGroup):
        return QueueingHint.QUEUE
    same = group_of(pod) == (new.namespace, new.name)
    return QueueingHint.QUEUE if same else QueueingHint.SKIP
