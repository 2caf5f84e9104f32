"""Holds back pods whose scheduling gates are not all lifted.

Source: pkg/scheduler/framework/plugins/schedulinggates, v1.36.
"""

from collections.abc import Sequence

from skysail.api.core import Pod
from skysail.scheduler.framework.events import POD, ActionType, ClusterEvent, ClusterEventWithHint, QueueingHint
from skysail.scheduler.framework.handle import Handle
from skysail.scheduler.framework.status import SUCCESS, Status
from skysail.scheduler.plugins.args import PluginArgs


class SchedulingGates:
    """The plugin."""

    name = "SchedulingGates"

    def __init__(self, args: PluginArgs, handle: Handle) -> None:
        pass

    def pre_enqueue(self, pod: Pod) -> Status:
        """Refuse while any gate is left."""
        gates = pod.spec.scheduling_gates
        if not gates:
            return SUCCESS
        names = " ".join(gate.name for gate in gates)
        return Status.unresolvable(f"waiting for scheduling gates: [{names}]")

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """The pod's own gates, all gone."""
        event = ClusterEvent(POD, ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
        return (ClusterEventWithHint(event, self._after_gates_eliminated),)

    def _after_gates_eliminated(self, pod: Pod, old: object | None, new: object | None) -> QueueingHint:
        return QueueingHint.QUEUE if isinstance(new, Pod) and new.uid == pod.uid else QueueingHint.SKIP
