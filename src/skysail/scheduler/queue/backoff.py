"""How long a refused pod waits before it is tried again, and the two heaps of those who wait.

Backoff starts at `initial` seconds, doubles with each refusal, and ends at `maximum`. Ends of backoffs are rounded down
to whole seconds, so that all pods of one second come back together, the most important first. Pods that came back with
an *error* wait apart: they must not be popped early, as the wait protects the API server, not the scheduler.

Source: pkg/scheduler/backend/queue/backoff_queue.go, v1.36 (with SchedulerPopFromBackoffQ, on since 1.33).
"""

import math
from collections.abc import Iterator

from skysail.scheduler.framework.queued_pod import PodKey, QueuedPodInfo
from skysail.scheduler.queue.pod_heap import Order, PodHeap, SortKey

ORDERING_WINDOW_SECONDS = 1.0
"""Within one such window pods are ordered as in the active queue, not by the instant their backoff ends."""

_NEVER = -math.inf


def backoff_seconds(initial: float, maximum: float, count: int) -> float:
    """How long to wait after `count` failures; 0 before the first.

    Computed in whole nanoseconds as the original does, so that odd settings (a maximum below the initial value) agree.
    """
    if count <= 0:
        return 0.0
    first, most, shift = round(initial * 1e9), round(maximum * 1e9), min(count - 1, 63)
    return maximum if first > most >> shift else (first << shift) / 1e9


class BackoffQueue:
    """Pods that wait out their backoff.

    Args:
        initial_seconds: Wait after the first refusal.
        maximum_seconds: Longest wait; 0 switches backoff off.
        active_order: The order of the active queue, used within one window.
        groups_wait: Whether pods of pod groups wait to the end.
    """

    def __init__(
        self, initial_seconds: float, maximum_seconds: float, active_order: Order, *, groups_wait: bool = False
    ) -> None:
        self._groups_wait = groups_wait
        self._initial = initial_seconds
        self._maximum = maximum_seconds
        self._active_order = active_order
        self._refused = PodHeap(self._by_window)
        self._failed = PodHeap(self.expiration)

    def __len__(self) -> int:
        return len(self._refused) + len(self._failed)

    def __contains__(self, key: PodKey) -> bool:
        return key in self._refused or key in self._failed

    def __iter__(self) -> Iterator[QueuedPodInfo]:
        yield from self._refused
        yield from self._failed

    def get(self, key: PodKey) -> QueuedPodInfo | None:
        """The pod of that name, or None."""
        return self._refused.get(key) or self._failed.get(key)

    def push(self, info: QueuedPodInfo) -> None:
        """Add a pod, or move it when it waits already; who nobody refused came back with an error.

        Pods of a group never come early: one of them brings all others along, and the group would be tried without end.
        """
        self.remove(info.key)
        refused = info.unschedulable_plugins or info.pending_plugins
        grouped = self._groups_wait and info.pod.spec.scheduling_group is not None
        (self._refused if refused and not grouped else self._failed).push(info)

    def remove(self, key: PodKey) -> QueuedPodInfo | None:
        """Take a pod out by name."""
        return self._refused.remove(key) or self._failed.remove(key)

    def pop_early(self) -> QueuedPodInfo | None:
        """The refused pod whose wait ends first, before its time: there is nothing better to do."""
        return self._refused.pop()

    @property
    def has_early(self) -> bool:
        """Whether `pop_early` would give a pod."""
        return len(self._refused) > 0

    def pop_completed(self, now: float) -> list[QueuedPodInfo]:
        """All pods whose wait is over, in the order they go to the active queue."""
        completed: list[QueuedPodInfo] = []
        for heap in (self._refused, self._failed):
            while (info := heap.peek()) is not None and not self.is_backing_off(info, now):
                heap.pop()
                completed.append(info)
        return completed

    def next_expiration(self) -> float | None:
        """When the first wait ends, None when nobody waits; a flush is of no use before."""
        ends = [self.expiration(info) for heap in (self._refused, self._failed) if (info := heap.peek()) is not None]
        return min(ends) if ends else None

    def is_backing_off(self, info: QueuedPodInfo, now: float) -> bool:
        """Whether the pod must still wait; true to the end of the window in which its backoff ends."""
        return self.expiration(info) >= math.floor(now / ORDERING_WINDOW_SECONDS) * ORDERING_WINDOW_SECONDS

    def expiration(self, info: QueuedPodInfo) -> float:
        """When its wait ends, remembered in the pod until its next attempt; minus infinity when there is none."""
        count = info.consecutive_errors_count or info.unschedulable_count
        if self._maximum == 0 or count == 0:
            return _NEVER
        if info.backoff_expiration is None:
            end = info.timestamp + backoff_seconds(self._initial, self._maximum, count)
            info.backoff_expiration = math.floor(end / ORDERING_WINDOW_SECONDS) * ORDERING_WINDOW_SECONDS
        return info.backoff_expiration

    def _by_window(self, info: QueuedPodInfo) -> "_WindowKey":
        return _WindowKey(self.expiration(info), self._active_order(info))


class _WindowKey:
    __slots__ = ("active", "end")

    def __init__(self, end: float, active: SortKey) -> None:
        self.end, self.active = end, active

    def __lt__(self, other: "_WindowKey") -> bool:
        return self.end < other.end if self.end != other.end else self.active < other.active
