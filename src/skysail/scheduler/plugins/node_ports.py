"""Keeps pods off nodes where a host port they want is taken.

Source: pkg/scheduler/framework/plugins/nodeports, k8s.io/kube-scheduler/framework `HostPortInfo`, v1.36.
"""

from collections.abc import Collection, Hashable, Sequence

import numpy as np

from skysail.api.core import Pod
from skysail.scheduler.cache.matrices import Rows
from skysail.scheduler.cache.pod_info import PodInfo, host_ports
from skysail.scheduler.cache.table import NodeTable
from skysail.scheduler.framework.codes import ALL_PASS, Codes, Reads
from skysail.scheduler.framework.cycle_state import CycleState
from skysail.scheduler.framework.events import NODE, POD, ActionType, ClusterEvent, ClusterEventWithHint, QueueingHint
from skysail.scheduler.framework.handle import Handle
from skysail.scheduler.framework.plugin import ALL_NODES, PreFilterResult
from skysail.scheduler.framework.status import SKIP, SUCCESS, Status
from skysail.scheduler.plugins.args import PluginArgs

REFUSED = Status.unschedulable("node(s) didn't have free ports for the requested pod ports")
ANY_ADDRESS = "0.0.0.0"

HostPort = tuple[str, str, int]


class NodePorts:
    """The plugin."""

    name = "NodePorts"
    reads = Reads.ROW

    def __init__(self, args: PluginArgs, handle: Handle) -> None:
        pass

    def sign(self, pod: PodInfo) -> Hashable:
        """Only host ports matter."""
        return pod.host_ports

    def pre_filter(self, state: CycleState, pod: Pod, table: NodeTable) -> tuple[Status, PreFilterResult]:
        """Skip pods without host ports."""
        return (SUCCESS if state.pod_info.host_ports else SKIP), ALL_NODES

    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Codes:
        """Refuse nodes with a conflict; only nodes where some host port is used are looked at."""
        used, wanted = table.rows_with_ports, state.pod_info.host_ports
        if not used:
            return ALL_PASS
        index = range(rows.stop) if isinstance(rows, slice) else rows
        refused = np.zeros(len(index), dtype=np.bool_)
        for place, row in enumerate(index):
            if int(row) in used and conflicts(wanted, table.info(int(row)).used_ports):
                refused[place] = True
        return Codes.refuse(refused, REFUSED)

    def explain(self, state: CycleState, pod: Pod, table: NodeTable, row: int) -> Status:
        """The refusal."""
        return REFUSED if conflicts(state.pod_info.host_ports, table.info(row).used_ports) else SUCCESS

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Pods that free a port, and new nodes."""
        return (
            ClusterEventWithHint(ClusterEvent(POD, ActionType.DELETE), self._after_pod_deleted),
            ClusterEventWithHint(ClusterEvent(NODE, ActionType.ADD)),
        )

    def _after_pod_deleted(self, pod: Pod, old: object | None, new: object | None) -> QueueingHint:
        if not isinstance(old, Pod) or not (old.spec.node_name or old.status.nominated_node_name):
            return QueueingHint.SKIP
        return QueueingHint.QUEUE if conflicts(host_ports(pod), host_ports(old)) else QueueingHint.SKIP


def conflicts(wanted: Sequence[HostPort], used: Collection[HostPort]) -> bool:
    """Whether a wanted port is taken: the wildcard address meets every address."""
    for address, protocol, port in wanted:
        for other_address, other_protocol, other_port in used:
            meet = address == other_address or ANY_ADDRESS in (address, other_address)
            if meet and port == other_port and protocol == other_protocol:
                return True
    return False
