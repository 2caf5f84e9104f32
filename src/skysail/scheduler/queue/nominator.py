"""Pods that were promised a node (by preemption, or by whoever wrote `status.nominatedNodeName`).

Other pods of lower priority must leave that room alone. A promise made here counts before the API server has heard of
it, and until the pod's status shows it: the status may show earlier ones on the way, or nothing when writing failed.

Source: pkg/scheduler/backend/queue/nominator.go, v1.36.
Differs: upstream goes back to what the status says at any update of a pod that was nominated once, also to a nomination
    that was replaced since: the pod would forget where victims die for it. (It writes nominations before the next
    attempt begins, so that this happens there only when writing fails, or when the watch lags behind.)
"""

from collections.abc import Callable, Mapping

from skysail.api.core import Pod
from skysail.scheduler.cache.pod_info import PodInfo

IsPending = Callable[[Pod], bool]
"""Whether the pod still exists and is bound to no node, as the informers know it."""


class Nominator:
    """Who is nominated to which node.

    Args:
        is_pending: Asked before a nomination is taken: a pod that is gone or bound gets none.
    """

    def __init__(self, is_pending: IsPending = lambda pod: True) -> None:
        self._is_pending = is_pending
        self._by_node: dict[str, dict[str, PodInfo]] = {}
        self._node_of: dict[str, str] = {}
        self._not_shown: dict[str, list[str]] = {}
        """By uid, the nominations made here that the pod's status did not show yet, "" for none; the latest last."""
        self.version = 0
        """Rises with every change: a cheap way to see that nothing moved."""

    def __len__(self) -> int:
        return len(self._node_of)

    def add(self, pod: Pod, node_name: str | None = None) -> None:
        """Nominate a pod, in place of any nomination it had.

        Args:
            pod: The pod.
            node_name: Where to, "" takes a nomination back. None leaves it as it is: what was decided here and the
                status does not show yet, else what the status says.
        """
        not_shown = self._not_shown.get(pod.metadata.uid, [])
        if node_name is not None:
            standing = not_shown[-1] if not_shown else pod.status.nominated_node_name
            if node_name != standing:
                not_shown = [*(each for each in not_shown if each != node_name), node_name]
        self._nominate(pod, not_shown)

    def update(self, old: Pod, new: Pod) -> None:
        """Follow an update of the pod; the nomination changes only where that in its status did."""
        uid, said = new.metadata.uid, new.status.nominated_node_name
        not_shown = self._not_shown.get(uid, [])
        if said != old.status.nominated_node_name:
            not_shown = not_shown[not_shown.index(said) + 1 :] if said in not_shown else []
        self._nominate(new, not_shown)

    def remove(self, pod: Pod) -> None:
        """Forget all about the pod's nominations."""
        self._not_shown.pop(pod.metadata.uid, None)
        self._withdraw(pod.metadata.uid)

    def not_shown(self, pod: Pod) -> str | None:
        """The nomination that the pod's status ought to show and does not yet, "" for none; None when it shows it."""
        not_shown = self._not_shown.get(pod.metadata.uid)
        return not_shown[-1] if not_shown else None

    def node_of(self, pod: Pod) -> str:
        """Where the pod is nominated to; empty when nowhere."""
        return self._node_of.get(pod.metadata.uid, "")

    def pods_for_node(self, node_name: str) -> tuple[Pod, ...]:
        """The pods nominated to a node, in the order they came."""
        return tuple(info.pod for info in self._by_node.get(node_name, {}).values())

    @property
    def by_node(self) -> Mapping[str, Mapping[str, PodInfo]]:
        """All nominations: node name, then uid; for reading only."""
        return self._by_node

    def _nominate(self, pod: Pod, not_shown: list[str]) -> None:
        uid = pod.metadata.uid
        self.remove(pod)
        if not self._is_pending(pod):
            return
        if not_shown:
            self._not_shown[uid] = not_shown
        target = not_shown[-1] if not_shown else pod.status.nominated_node_name
        if target:
            self._node_of[uid] = target
            self._by_node.setdefault(target, {})[uid] = PodInfo(pod)
            self.version += 1

    def _withdraw(self, uid: str) -> None:
        node_name = self._node_of.pop(uid, None)
        if node_name is None:
            return
        pods = self._by_node[node_name]
        del pods[uid]
        if not pods:
            del self._by_node[node_name]
        self.version += 1
