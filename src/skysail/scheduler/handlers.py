"""From what the informers saw to the cache and the queue: the only place where both learn about the cluster.

    pod, bound          ->  cache; wakes who waits for assigned pods
    pod, unbound, ours  ->  queue
    pod, unbound, other ->  nothing
    node                ->  cache; wakes who waits for nodes
    anything else       ->  wakes who waits for it

Handlers run between two awaits of the event loop, so the cache and the queue are never seen half changed.

Source: pkg/scheduler/eventhandlers.go, v1.36.
"""

from collections.abc import Callable

from skysail.api.core import Pod
from skysail.api.node import Node
from skysail.scheduler.cache.cluster_cache import CacheError, ClusterCache
from skysail.scheduler.cache.pod_groups import PodGroups
from skysail.scheduler.framework.changes import node_scheduling_properties_change, pod_scheduling_properties_change
from skysail.scheduler.framework.events import (
    EVENT_ASSIGNED_POD_ADD,
    EVENT_ASSIGNED_POD_DELETE,
    EVENT_UNSCHEDULED_POD_ADD,
    EVENT_UNSCHEDULED_POD_DELETE,
    EVENT_UNSCHEDULED_POD_UPDATE,
    NODE,
    ActionType,
    ClusterEvent,
)
from skysail.scheduler.framework.queued_pod import scheduler_name
from skysail.scheduler.metrics import SchedulerMetrics
from skysail.scheduler.queue.scheduling_queue import SchedulingQueue

TERMINAL_PHASES = ("Succeeded", "Failed")

_NODE_ADD = ClusterEvent(NODE, ActionType.ADD)
_NODE_DELETE = ClusterEvent(NODE, ActionType.DELETE)


def is_live(pod: Pod) -> bool:
    """Whether a pod still takes room: one that has ended counts as gone."""
    return pod.status.phase not in TERMINAL_PHASES


class ClusterEventHandlers:
    """Plain functions for informers to call.

    Args:
        cache: Bound and assumed pods, nodes.
        queue: Unbound pods of our profiles.
        profiles: Our scheduler names.
        now: Seconds, on the queue's clock.
        reject_waiting: Rejects a pod that waits at Permit; False when it does not wait.
        metrics: Where handling times go.
        groups: The account of pod groups; None where these are scheduled like all others.
    """

    def __init__(
        self,
        cache: ClusterCache,
        queue: SchedulingQueue,
        *,
        profiles: frozenset[str],
        now: Callable[[], float],
        reject_waiting: Callable[[str], bool],
        metrics: SchedulerMetrics,
        groups: PodGroups | None = None,
    ) -> None:
        self._groups = groups
        self._cache, self._queue, self._profiles = cache, queue, profiles
        self._now, self._reject_waiting, self._metrics = now, reject_waiting, metrics

    # -- pods -------------------------------------------------------------------------------------------------------

    def add_pod(self, pod: Pod) -> None:
        """A pod appeared."""
        start = self._now()
        if pod.spec.node_name:
            self._add_assigned(pod, start)
        elif self._is_ours(pod):
            if self._groups is not None:
                self._groups.put(pod)
            self._queue.add(pod, start)
            if self._groups is not None:
                self._queue.move_all_to_active_or_backoff(EVENT_UNSCHEDULED_POD_ADD, None, pod, start)
            self._took(EVENT_UNSCHEDULED_POD_ADD, start)

    def update_pod(self, old: Pod, new: Pod) -> None:
        """A pod changed. Another uid under the same name is another pod."""
        if old.metadata.uid != new.metadata.uid:
            self.delete_pod(old)
            self.add_pod(new)
        elif old.spec.node_name:
            self._update_assigned(old, new)
        elif new.spec.node_name:
            self._add_assigned(new, self._now())
            if self._is_ours(old):
                self._queue.delete(old)
        elif self._is_ours(old):
            self._update_unassigned(old, new)

    def delete_pod(self, pod: Pod) -> None:
        """A pod is gone, or has ended."""
        start = self._now()
        if pod.spec.node_name:
            self._delete_assigned(pod, start)
        elif self._is_ours(pod):
            self._delete_unassigned(pod, start)
        elif self._cache.pod_state(pod.metadata.uid) is not None:
            self._delete_assigned(pod, start)

    def _add_assigned(self, pod: Pod, start: float) -> None:
        if self._groups is not None:
            self._groups.put(pod)
        self._cache.add_pod(pod)
        self._move(EVENT_ASSIGNED_POD_ADD, None, pod, start)

    def _update_assigned(self, old: Pod, new: Pod) -> None:
        start = self._now()
        if self._groups is not None:
            self._groups.put(new)
        self._cache.update_pod(new)
        for event in pod_scheduling_properties_change(old, new):
            self._move(event, old, new, start)

    def _delete_assigned(self, pod: Pod, start: float) -> None:
        if self._groups is not None:
            self._groups.remove(pod)
        self._cache.remove_pod(pod.metadata.uid)
        self._move(EVENT_ASSIGNED_POD_DELETE, pod, None, start)

    def _update_unassigned(self, old: Pod, new: Pod) -> None:
        if old.metadata.resource_version == new.metadata.resource_version and new.metadata.resource_version:
            return
        start = self._now()
        if self._groups is not None:
            self._groups.put(new)
        if self._cache.is_assumed(new.metadata.uid):
            if new.metadata.deletion_timestamp is not None and old.metadata.deletion_timestamp is None:
                self._assumed_pod_deleted(new)
            return
        self._queue.update(old, new, start)
        nominated = old.status.nominated_node_name
        if nominated and nominated != new.status.nominated_node_name:
            self._nomination_gone(old, start)
        self._took(EVENT_UNSCHEDULED_POD_UPDATE, start)

    def _delete_unassigned(self, pod: Pod, start: float) -> None:
        if self._groups is not None:
            self._groups.remove(pod)
        self._queue.delete(pod)
        if self._cache.is_assumed(pod.metadata.uid):
            self._assumed_pod_deleted(pod)
        elif self._cache.pod_state(pod.metadata.uid) is not None:
            self._delete_assigned(pod, start)
        elif pod.status.nominated_node_name:
            self._nomination_gone(pod, start)
        self._took(EVENT_UNSCHEDULED_POD_DELETE, start)

    def _nomination_gone(self, pod: Pod, start: float) -> None:
        """The node it was promised is free again for other pods of no higher priority."""
        uid, priority = pod.metadata.uid, pod.spec.priority or 0

        def may_use_it(other: Pod) -> bool:
            return other.metadata.uid != uid and (other.spec.priority or 0) <= priority

        self._queue.move_all_to_active_or_backoff(EVENT_ASSIGNED_POD_DELETE, pod, None, start, only=may_use_it)

    def _assumed_pod_deleted(self, pod: Pod) -> None:
        """Free its room now; its binding cycle goes on and fails by itself."""
        state = self._cache.pod_state(pod.metadata.uid)
        if state is None:
            return
        if not self._reject_waiting(pod.metadata.uid):
            try:
                self._cache.forget(pod.metadata.uid)
            except CacheError:  # confirmed by the watch in the meantime: its deletion will be seen as well
                return
        self._move(EVENT_ASSIGNED_POD_DELETE, state.info.pod, None, self._now())

    # -- nodes ------------------------------------------------------------------------------------------------------

    def add_node(self, node: Node) -> None:
        """A node appeared."""
        start = self._now()
        self._cache.add_node(node)
        self._move(_NODE_ADD, None, node, start)

    def update_node(self, old: Node, new: Node) -> None:
        """A node changed; a mere heartbeat wakes nobody."""
        start = self._now()
        events = node_scheduling_properties_change(old, new)
        if events or _rest(old) != _rest(new):
            self._cache.update_node(new)
        for event in events:
            self._move(event, old, new, start)

    def delete_node(self, node: Node) -> None:
        """A node is gone; its pods may still be there."""
        start = self._now()
        self._move(_NODE_DELETE, node, None, start)
        try:
            self._cache.remove_node(node.metadata.name)
        except CacheError:  # never seen, or removed already when a decision found it missing
            return

    # -- anything else ----------------------------------------------------------------------------------------------

    def changed(self, resource: str, action: ActionType, old: object | None, new: object | None) -> None:
        """An object of a kind that some plugin registered for was added, updated or deleted."""
        self._move(ClusterEvent(resource, action), old, new, self._now())

    def _is_ours(self, pod: Pod) -> bool:
        return scheduler_name(pod) in self._profiles

    def _move(self, event: ClusterEvent, old: object | None, new: object | None, start: float) -> None:
        self._queue.move_all_to_active_or_backoff(event, old, new, start)
        self._took(event, start)

    def _took(self, event: ClusterEvent, start: float) -> None:
        self._metrics.observe("event_handling_duration_seconds", self._now() - start, event.label)


def _rest(node: Node) -> tuple[object, ...]:
    """What plugins may read besides what makes an event."""
    status = node.status
    return node.spec, status.images, status.capacity, status.volumes_attached, status.volumes_in_use
