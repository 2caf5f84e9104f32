"""Keeps pods off cordoned nodes, unless they tolerate the taint that stands for it.

Source: pkg/scheduler/framework/plugins/nodeunschedulable, v1.36.
"""

from collections.abc import Hashable, Sequence

from skysail.api.core import Pod
from skysail.api.node import Node, Taint
from skysail.api.tolerations import tolerates
from skysail.scheduler.cache.matrices import Rows
from skysail.scheduler.cache.pod_info import PodInfo
from skysail.scheduler.cache.table import NodeTable
from skysail.scheduler.framework.codes import ALL_PASS, Codes, Reads
from skysail.scheduler.framework.cycle_state import CycleState
from skysail.scheduler.framework.events import NODE, POD, ActionType, ClusterEvent, ClusterEventWithHint, QueueingHint
from skysail.scheduler.framework.handle import Handle
from skysail.scheduler.framework.status import SUCCESS, Status
from skysail.scheduler.plugins.args import PluginArgs

UNSCHEDULABLE_TAINT = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
REFUSED = Status.unresolvable("node(s) were unschedulable")


class NodeUnschedulable:
    """The plugin."""

    name = "NodeUnschedulable"
    reads = Reads.STATIC

    def __init__(self, args: PluginArgs, handle: Handle) -> None:
        self._comparison = handle.feature_gates["TaintTolerationComparisonOperators"]

    def sign(self, pod: PodInfo) -> Hashable:
        """Only tolerations matter."""
        return pod.pod.spec.tolerations

    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Codes:
        """Refuse cordoned nodes."""
        cordoned = table.unschedulable[rows]
        if not cordoned.any() or self._tolerated(pod):
            return ALL_PASS
        return Codes.refuse(cordoned, REFUSED)

    def explain(self, state: CycleState, pod: Pod, table: NodeTable, row: int) -> Status:
        """The refusal."""
        return REFUSED if table.unschedulable[row] and not self._tolerated(pod) else SUCCESS

    def _tolerated(self, pod: Pod) -> bool:
        return any(tolerates(each, UNSCHEDULABLE_TAINT, self._comparison) for each in pod.spec.tolerations)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Nodes that come or are uncordoned; the pod's own tolerations."""
        return (
            ClusterEventWithHint(
                ClusterEvent(NODE, ActionType.ADD | ActionType.UPDATE_NODE_TAINT), self._after_node_change
            ),
            ClusterEventWithHint(ClusterEvent(POD, ActionType.UPDATE_POD_TOLERATION), self._after_toleration_change),
        )

    def _after_node_change(self, pod: Pod, old: object | None, new: object | None) -> QueueingHint:
        if isinstance(new, Node) and not new.spec.unschedulable and (old is None or _cordoned(old)):
            return QueueingHint.QUEUE
        return QueueingHint.SKIP

    def _after_toleration_change(self, pod: Pod, old: object | None, new: object | None) -> QueueingHint:
        if isinstance(new, Pod) and new.uid == pod.uid and self._tolerated(new):
            return QueueingHint.QUEUE
        return QueueingHint.SKIP


def _cordoned(node: object) -> bool:
    return isinstance(node, Node) and node.spec.unschedulable
