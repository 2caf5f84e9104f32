"""The schedulers' account of the cluster: the truth that snapshots are taken of.

A pod's way through the cache (upstream's state machine):

    unknown --assume--> assumed --finish_binding--> assumed, may expire --expire--> unknown
       |                   | forget: unknown              |
       |                   +---------- add_pod -----------+--> added   (the watch confirms the binding)
       +---- add_pod ---> added --update_pod--> added --remove_pod--> unknown

Invariants:
- a pod is on exactly one node's account, the one its state names, also when that Node object is unknown or gone;
- an assumed pod whose binding has not finished never expires;
- every change gives the touched account the next generation; accounts that a snapshot holds are never changed, a
  clone takes their place.

Both engines use one cache. It has no clock: whoever calls `expire` says what time it is.

Source: pkg/scheduler/backend/cache/cache.go, v1.36.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from skysail.api.core import Pod
from skysail.api.node import Node
from skysail.scheduler.cache.node_info import NodeInfo
from skysail.scheduler.cache.pod_groups import PodGroups
from skysail.scheduler.cache.pod_info import PodInfo
from skysail.scheduler.cache.snapshot import Snapshot
from skysail.scheduler.cache.table import NodeTable

MAX_TOMBSTONES = 10_000


class CacheError(ValueError):
    """The caller asked for something the pod's or node's state does not allow."""


@dataclass(slots=True)
class PodState:
    """What the cache knows of one pod.

    Attributes:
        info: The pod as accounted for.
        node_name: On whose account.
        assumed: Whether the watch has yet to confirm it.
        binding_finished: Whether the binding was written, so that the assumption may expire.
        deadline: When it expires, on the caller's clock; None is never.
    """

    info: PodInfo
    node_name: str
    assumed: bool = False
    binding_finished: bool = False
    deadline: float | None = None


@dataclass(frozen=True, slots=True)
class CacheStatistics:
    """Sizes, for metrics."""

    nodes: int
    pods: int
    assumed_pods: int


class ClusterCache:
    """The account.

    Args:
        assume_ttl_seconds: How long an assumed pod whose binding finished waits for its confirmation; 0 is for ever
            (upstream's default since 1.23).
    """

    def __init__(self, *, assume_ttl_seconds: float = 0.0) -> None:
        self._ttl = assume_ttl_seconds
        self._nodes: dict[str, NodeInfo] = {}
        self._pods: dict[str, PodState] = {}
        self._assumed: dict[str, PodState] = {}
        self._changed: dict[str, int] = {}
        self._tombstones = 0
        self._forgotten = 0
        self.generation = 0
        """Of the newest change."""
        self.pod_groups: PodGroups | None = None
        """Pods by group, where groups are scheduled together (see `keep_groups`)."""

    # -- reading ---------------------------------------------------------------------------------------------------

    def statistics(self) -> CacheStatistics:
        """How much there is."""
        return CacheStatistics(
            nodes=sum(info.exists for info in self._nodes.values()),
            pods=len(self._pods),
            assumed_pods=len(self._assumed),
        )

    def node_info(self, name: str) -> NodeInfo | None:
        """One account, live: it changes under the reader. Snapshots do not."""
        return self._nodes.get(name)

    def node_infos(self) -> Iterator[NodeInfo]:
        """All accounts, those of unknown nodes included."""
        return iter(self._nodes.values())

    def pod_state(self, uid: str) -> PodState | None:
        """What is known of a pod."""
        return self._pods.get(uid)

    def pods(self) -> Iterator[PodState]:
        """Every accounted pod, assumed ones included."""
        return iter(self._pods.values())

    def has_assumed(self) -> bool:
        """Whether any pod is assumed and not yet confirmed."""
        return bool(self._assumed)

    def is_assumed(self, uid: str) -> bool:
        """Whether a pod is assumed and not yet confirmed."""
        return uid in self._assumed

    # -- the scheduler's own changes -------------------------------------------------------------------------------

    def assume(self, pod: Pod | PodInfo, node_name: str) -> PodInfo:
        """Account for a pod on a node before its binding is written.

        Returns:
            The assumed pod: the object with `spec.nodeName` set.

        Raises:
            CacheError: The pod is accounted for already.
        """
        info = pod if isinstance(pod, PodInfo) else PodInfo(pod)
        if info.key in self._pods:
            raise CacheError(f"pod {info.pod.key} ({info.key}) is in the cache, so can't be assumed")
        old = info.pod
        spec = msgspec.structs.replace(old.spec, node_name=node_name)
        assumed = info.bound_to(msgspec.structs.replace(old, spec=spec))
        try:
            self._account(node_name).add_pod(assumed)
            if self.pod_groups is not None:
                self.pod_groups.assume(old)
        except Exception:
            self._count_anew(node_name)
            raise
        self._pods[info.key] = self._assumed[info.key] = PodState(assumed, node_name, assumed=True)
        return assumed

    def keep_groups(self) -> PodGroups:
        """Keep account of pod groups from now on; members are told to it by whoever sees pods come and go."""
        if self.pod_groups is None:
            self.pod_groups = PodGroups()
        return self.pod_groups

    def finish_binding(self, uid: str, now: float) -> None:
        """The binding was written: from now on the assumption may expire. Nothing happens when it is no more."""
        state = self._assumed.get(uid)
        if state is not None:
            state.binding_finished = True
            state.deadline = now + self._ttl if self._ttl > 0 else None

    def forget(self, uid: str) -> None:
        """Take an assumption back.

        Raises:
            CacheError: The pod was confirmed meanwhile: only `remove_pod` may take it away.
        """
        state = self._pods.get(uid)
        if state is None:
            return
        if not state.assumed:
            raise CacheError(f"pod {state.info.pod.key} ({uid}) was added, so can't be forgotten")
        self._drop(uid, state)

    def expire(self, now: float) -> list[PodInfo]:
        """Drop assumptions whose time is over; a sweep for every second.

        Returns:
            The dropped pods, for a warning each.
        """
        if not self._ttl:
            return []
        late = [
            (uid, state)
            for uid, state in self._assumed.items()
            if state.binding_finished and state.deadline is not None and now >= state.deadline
        ]
        for uid, state in late:
            self._drop(uid, state)
        return [state.info for _, state in late]

    # -- what the watch says ---------------------------------------------------------------------------------------

    def add_pod(self, pod: Pod) -> None:
        """A pod bound to a node was seen; confirms an assumption, on another node than assumed if need be."""
        uid, node_name = pod.metadata.uid, pod.spec.node_name
        state = self._pods.get(uid)
        if state is not None and not state.assumed:
            self._replace(state, pod)
            return
        if state is not None:
            self._replace(state, pod)
            state.assumed = state.binding_finished = False
            state.deadline = None
            del self._assumed[uid]
            return
        info = PodInfo(pod)
        self._pods[uid] = PodState(info, node_name)
        self._account(node_name).add_pod(info)

    def update_pod(self, pod: Pod) -> None:
        """A bound pod changed. One the cache does not know is added."""
        self.add_pod(pod)

    def remove_pod(self, uid: str) -> None:
        """A bound pod is gone. Nothing happens when the cache does not know it."""
        state = self._pods.get(uid)
        if state is not None:
            self._drop(uid, state)

    def add_node(self, node: Node) -> NodeInfo:
        """A node was seen, new or changed."""
        name = node.metadata.name
        info = self._account(name)
        info.set_node(node)
        info.node_generation = info.generation
        return info

    def update_node(self, node: Node) -> NodeInfo:
        """A node changed; a version equal in all that scheduling reads still counts as a change."""
        return self.add_node(node)

    def remove_node(self, name: str) -> None:
        """A node is gone. Pods still accounted to it stay on a ghost account, which no snapshot shows.

        Raises:
            CacheError: No such node.
        """
        known = self._nodes.get(name)
        if known is None or not known.exists:
            raise CacheError(f"node {name} is not found")
        info = self._account(name)
        info.remove_node()
        info.node_generation = info.generation
        self._bury_if_empty(name, info)

    # -- snapshots -------------------------------------------------------------------------------------------------

    def update_snapshot(self, snapshot: Snapshot) -> None:
        """Bring a snapshot up to date.

        Cost: One row for each node changed since its last time.
        """
        last = snapshot.generation
        if last == self.generation:
            return
        try:
            self._write_changes(snapshot.table, last)
        except Exception:
            snapshot.clear()  # half written: the next time it is written as a whole
            raise
        snapshot.generation = self.generation

    def _write_changes(self, table: NodeTable, last: int) -> None:
        """Write the rows of all nodes that changed after generation `last`."""
        names: list[str] = []
        for name in reversed(self._changed):
            if self._changed[name] <= last:
                break
            names.append(name)
        for name in reversed(names):
            info = self._nodes.get(name)
            if info is not None and info.exists:
                info.shared = True
                table.write(info)
            elif name in table.rows:
                table.remove(name)
        if last < self._forgotten:
            for name in [name for name in table.rows if not self._is_node(name)]:
                table.remove(name)

    def _is_node(self, name: str) -> bool:
        info = self._nodes.get(name)
        return info is not None and info.exists

    # -- inside ----------------------------------------------------------------------------------------------------

    def _account(self, name: str) -> NodeInfo:
        """The account of a node, made if need be, ready to be changed: not shared, with the next generation."""
        info = self._nodes.get(name)
        if info is None:
            info = self._nodes[name] = NodeInfo(name)
        elif info.shared:
            info = self._nodes[name] = info.clone()
        self.generation += 1
        info.generation = self.generation
        self._changed.pop(name, None)
        self._changed[name] = self.generation
        return info

    def _count_anew(self, name: str) -> None:
        """A bug left an account half changed: make it again, from the Node object and the pods that are there."""
        before = self._nodes.get(name)
        fresh = NodeInfo(name)
        if before is not None and before.exists:
            fresh.set_node(before.node)
        for state in self._pods.values():
            if state.node_name == name:
                fresh.add_pod(state.info)
        self.generation += 1
        fresh.generation = fresh.node_generation = self.generation
        self._nodes[name] = fresh
        self._changed.pop(name, None)
        self._changed[name] = self.generation
        self._bury_if_empty(name, fresh)

    def _replace(self, state: PodState, pod: Pod) -> None:
        before = self._account(state.node_name)
        before.remove_pod(state.info.pod)
        if pod.spec.node_name != state.node_name:
            self._bury_if_empty(state.node_name, before)
        state.info = PodInfo(pod)
        state.node_name = pod.spec.node_name
        self._account(state.node_name).add_pod(state.info)

    def _drop(self, uid: str, state: PodState) -> None:
        if state.assumed and self.pod_groups is not None:
            self.pod_groups.forget(state.info.pod)
        del self._pods[uid]
        self._assumed.pop(uid, None)
        try:
            info = self._account(state.node_name)
            info.remove_pod(state.info.pod)
            self._bury_if_empty(state.node_name, info)
        except Exception:
            self._count_anew(state.node_name)
            raise

    def _bury_if_empty(self, name: str, info: NodeInfo) -> None:
        """Forget an account that has neither a Node object nor pods; its name stays in the order of changes."""
        if info.exists or info.pods:
            return
        del self._nodes[name]
        self._tombstones += 1
        if self._tombstones > MAX_TOMBSTONES:
            self._changed = {name: at for name, at in self._changed.items() if name in self._nodes}
            self._tombstones = 0
            self._forgotten = self.generation
