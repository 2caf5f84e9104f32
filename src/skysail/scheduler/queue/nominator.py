"""Pods that were promised a node (by preemption, or by whoever wrote `status.nominatedNodeName`).

Other pods of lower priority must leave that room alone. The promise made in memory counts before the API server has
heard of it, and an update of the pod that does not change its nomination does not take it back.

Source: pkg/scheduler/backend/queue/nominator.go, v1.36.
Differs: while a nomination is being written, only that one counts, and an update that leaves the status' nomination as
    it was leaves the one in memory as well. Upstream writes it before the next attempt begins, and goes back to what
    the status says at any update, also where writing failed: the pod would forget where victims die for it.
"""

from collections.abc import Callable, Mapping

from skysail.api.core import Pod

IsPending = Callable[[Pod], bool]
"""Whether the pod still exists and is bound to no node, as the informers know it."""
UnderWay = Callable[[Pod], str | None]
"""The nomination that is being written into the pod's status, "" where one is taken back; None when none is."""


class Nominator:
    """Who is nominated to which node.

    Args:
        is_pending: Asked before a nomination is taken: a pod that is gone or bound gets none.

    Attributes:
        under_way: Asked at updates: until they are written, nominations made here count. Set by whoever writes them.
    """

    def __init__(self, is_pending: IsPending = lambda pod: True) -> None:
        self._is_pending = is_pending
        self.under_way: UnderWay = lambda pod: None
        self._by_node: dict[str, dict[str, Pod]] = {}
        self._node_of: dict[str, str] = {}
        self.version = 0
        """Rises with every change: a cheap way to see that nothing moved."""

    def __len__(self) -> int:
        return len(self._node_of)

    def add(self, pod: Pod, node_name: str | None = None) -> None:
        """Nominate a pod, in place of any nomination it had.

        Args:
            pod: The pod.
            node_name: Where to; None takes what the pod's own status says, and does nothing when it says nothing.
        """
        self.remove(pod)
        target = pod.status.nominated_node_name if node_name is None else node_name
        if not target or not self._is_pending(pod):
            return
        self._node_of[pod.metadata.uid] = target
        self._by_node.setdefault(target, {})[pod.metadata.uid] = pod
        self.version += 1

    def update(self, old: Pod, new: Pod) -> None:
        """Follow an update of the pod; a nomination that it does not change is kept."""
        kept = self.under_way(new)
        if kept is None and old.status.nominated_node_name == new.status.nominated_node_name:
            kept = self._node_of.get(old.metadata.uid)
        self.remove(old)
        self.add(new, kept)

    def remove(self, pod: Pod) -> None:
        """Forget the pod's nomination, if it has one."""
        node_name = self._node_of.pop(pod.metadata.uid, None)
        if node_name is None:
            return
        pods = self._by_node[node_name]
        del pods[pod.metadata.uid]
        if not pods:
            del self._by_node[node_name]
        self.version += 1

    def keep(self, pod: Pod) -> None:
        """An attempt left the pod's nomination as it is; also while the server has not heard of it."""
        kept = self.under_way(pod)
        self.add(pod, self._node_of.get(pod.metadata.uid) if kept is None else kept)

    def node_of(self, pod: Pod) -> str:
        """Where the pod is nominated to; empty when nowhere."""
        return self._node_of.get(pod.metadata.uid, "")

    def pods_for_node(self, node_name: str) -> tuple[Pod, ...]:
        """The pods nominated to a node, in the order they came."""
        return tuple(self._by_node.get(node_name, {}).values())

    @property
    def by_node(self) -> Mapping[str, Mapping[str, Pod]]:
        """All nominations: node name, then uid; for reading only."""
        return self._by_node
