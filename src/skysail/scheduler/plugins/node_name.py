"""Honours a pod that names its node.

Source: pkg/scheduler/framework/plugins/nodename, v1.36.
"""

from collections.abc import Hashable, Sequence

import numpy as np

from skysail.api.core import Pod
from skysail.scheduler.cache.matrices import Rows
from skysail.scheduler.cache.pod_info import PodInfo
from skysail.scheduler.cache.table import NodeTable
from skysail.scheduler.framework.codes import ALL_PASS, Codes, Reads
from skysail.scheduler.framework.cycle_state import CycleState
from skysail.scheduler.framework.events import NODE, ActionType, ClusterEvent, ClusterEventWithHint
from skysail.scheduler.framework.handle import Handle
from skysail.scheduler.framework.status import SUCCESS, Status
from skysail.scheduler.plugins.args import PluginArgs

REFUSED = Status.unresolvable("node(s) didn't match the requested node name")


class NodeName:
    """The plugin."""

    name = "NodeName"
    reads = Reads.STATIC

    def __init__(self, args: PluginArgs, handle: Handle) -> None:
        pass

    def sign(self, pod: PodInfo) -> Hashable:
        """Only the node's name matters."""
        return pod.pod.spec.node_name

    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Codes:
        """Refuse every other node."""
        wanted = pod.spec.node_name
        if not wanted:
            return ALL_PASS
        index = np.arange(table.size)[rows] if isinstance(rows, slice) else rows
        refused = np.array([table.names[row] != wanted for row in index], dtype=np.bool_)
        return Codes.refuse(refused, REFUSED)

    def explain(self, state: CycleState, pod: Pod, table: NodeTable, row: int) -> Status:
        """The refusal."""
        wanted = pod.spec.node_name
        return REFUSED if wanted and table.names[row] != wanted else SUCCESS

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """A new node may be the one."""
        return (ClusterEventWithHint(ClusterEvent(NODE, ActionType.ADD)),)
