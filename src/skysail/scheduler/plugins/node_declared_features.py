"""Places pods that need a new kubelet feature on nodes that declare it.

Source: pkg/scheduler/framework/plugins/nodedeclaredfeatures, k8s.io/component-helpers/nodedeclaredfeatures, v1.36.
"""

from collections.abc import Hashable, Sequence

import numpy as np

from skysail.api.core import Container, Pod
from skysail.api.node import Node
from skysail.scheduler.cache.matrices import Rows
from skysail.scheduler.cache.pod_info import PodInfo
from skysail.scheduler.cache.table import NodeTable
from skysail.scheduler.framework.codes import Codes, Reads
from skysail.scheduler.framework.cycle_state import CycleState, StateKey
from skysail.scheduler.framework.events import NODE, POD, ActionType, ClusterEvent, ClusterEventWithHint, QueueingHint
from skysail.scheduler.framework.handle import Handle
from skysail.scheduler.framework.plugin import ALL_NODES, PreFilterResult
from skysail.scheduler.framework.status import SKIP, SUCCESS, Status
from skysail.scheduler.framework.steps import index_of
from skysail.scheduler.plugins.args import PluginArgs

REFUSED = Status.unresolvable("node(s) didn't match Pod's required features")
RESTART_ALL_CONTAINERS = "RestartAllContainersOnContainerExits"
USER_NAMESPACES_ON_HOST_NETWORK = "UserNamespacesHostNetworkSupport"

NEEDED = StateKey[frozenset[str]]("PreFilterNodeDeclaredFeatures")


class NodeDeclaredFeatures:
    """The plugin."""

    name = "NodeDeclaredFeatures"
    reads = Reads.STATIC

    def __init__(self, args: PluginArgs, handle: Handle) -> None:
        self._enabled = handle.feature_gates["NodeDeclaredFeatures"]

    def sign(self, pod: PodInfo) -> Hashable:
        """The needed features."""
        return needed_features(pod.pod)

    def pre_filter(self, state: CycleState, pod: Pod, table: NodeTable) -> tuple[Status, PreFilterResult]:
        """Skip pods that need none."""
        needed = needed_features(pod)
        if not needed or not self._enabled:
            return SKIP, ALL_NODES
        state.write(NEEDED, needed)
        return SUCCESS, ALL_NODES

    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Codes:
        """Refuse nodes that do not declare every needed feature."""
        needed = state.read(NEEDED)
        refused = [
            (info := table.infos[int(row)]) is not None and not needed.issubset(info.node.status.declared_features)
            for row in index_of(rows)
        ]
        return Codes.refuse(np.array(refused, dtype=np.bool_), REFUSED)

    def explain(self, state: CycleState, pod: Pod, table: NodeTable, row: int) -> Status:
        """The refusal, with the missing features."""
        missing = state.read(NEEDED).difference(table.info(row).node.status.declared_features)
        return Status.unresolvable(f"{REFUSED.message}: {', '.join(sorted(missing))}") if missing else SUCCESS

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Nodes that come or declare other features; the pod's own needs."""
        if not self._enabled:
            return ()
        nodes = ActionType.ADD | ActionType.UPDATE_NODE_DECLARED_FEATURE
        return (
            ClusterEventWithHint(ClusterEvent(NODE, nodes), _after_node_change),
            ClusterEventWithHint(ClusterEvent(POD, ActionType.UPDATE), _after_pod_update),
        )


def needed_features(pod: Pod) -> frozenset[str]:
    """Features that a node must declare to run the pod."""
    needed = _NONE
    spec = pod.spec
    if spec.host_network and spec.host_users is False:
        needed |= {USER_NAMESPACES_ON_HOST_NETWORK}
    for containers in (spec.containers, spec.init_containers):
        for container in containers:
            if container.restart_policy_rules and _restarts_all(container):
                needed |= {RESTART_ALL_CONTAINERS}
    return needed


def _restarts_all(container: Container) -> bool:
    return any(rule.action == "RestartAllContainers" for rule in container.restart_policy_rules)


_NONE: frozenset[str] = frozenset()


def _after_node_change(pod: Pod, old: object | None, new: object | None) -> QueueingHint:
    if isinstance(old, Node) and isinstance(new, Node) and old.status.declared_features == new.status.declared_features:
        return QueueingHint.SKIP
    return QueueingHint.QUEUE


def _after_pod_update(pod: Pod, old: object | None, new: object | None) -> QueueingHint:
    if not isinstance(old, Pod) or not isinstance(new, Pod):
        return QueueingHint.QUEUE
    if new.uid != pod.uid or needed_features(old) == needed_features(new):
        return QueueingHint.SKIP
    return QueueingHint.QUEUE
