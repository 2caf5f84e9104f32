"""A heap of pods that also finds, replaces and removes by pod.

Invariants:
- every pod is in at most once: `_entries` maps its key to its one live entry;
- an entry whose `info` is None is dead (removed or replaced) and is dropped when it reaches the top, or at the next
  sweep: dead entries never outnumber the live ones by more than `_SWEEP_AT`;
- order is total: sort key, then order of insertion.
"""

import heapq
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from skysail.scheduler.framework.queued_pod import PodKey, QueuedPodInfo

_SWEEP_AT = 64


class SortKey(Protocol):
    """Anything that compares with `<`."""

    def __lt__(self, other: Any, /) -> bool:
        """Whether this comes first."""
        ...


Order = Callable[[QueuedPodInfo], SortKey]


class _Entry:
    __slots__ = ("info", "key", "sequence")

    def __init__(self, key: SortKey, sequence: int, info: QueuedPodInfo | None) -> None:
        self.key, self.sequence, self.info = key, sequence, info

    def __lt__(self, other: "_Entry") -> bool:
        if self.key < other.key:
            return True
        if other.key < self.key:
            return False
        return self.sequence < other.sequence


class PodHeap:
    """The heap.

    Args:
        order: Gives each pod its sort key; smallest first. It is asked once for each `push`.
    """

    def __init__(self, order: Order) -> None:
        self._order = order
        self._heap: list[_Entry] = []
        self._entries: dict[PodKey, _Entry] = {}
        self._sequence = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: PodKey) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[QueuedPodInfo]:
        """The pods, in order of insertion."""
        return (entry.info for entry in self._entries.values() if entry.info is not None)

    def get(self, key: PodKey) -> QueuedPodInfo | None:
        """The pod of that name, or None."""
        entry = self._entries.get(key)
        return entry.info if entry else None

    def push(self, info: QueuedPodInfo) -> None:
        """Add a pod, or give one that is in already its new place. O(log n)."""
        self.remove(info.key)
        self._sequence += 1
        entry = _Entry(self._order(info), self._sequence, info)
        self._entries[info.key] = entry
        heapq.heappush(self._heap, entry)

    def remove(self, key: PodKey) -> QueuedPodInfo | None:
        """Take a pod out by name; None when it was not in. O(1) but for a sweep now and then."""
        entry = self._entries.pop(key, None)
        if entry is None:
            return None
        info, entry.info = entry.info, None
        if len(self._heap) > 2 * len(self._entries) + _SWEEP_AT:
            self._heap = [entry for entry in self._heap if entry.info is not None]
            heapq.heapify(self._heap)
        return info

    def peek(self) -> QueuedPodInfo | None:
        """The first pod, left in place."""
        while self._heap and self._heap[0].info is None:
            heapq.heappop(self._heap)
        return self._heap[0].info if self._heap else None

    def pop(self) -> QueuedPodInfo | None:
        """The first pod, taken out; None when empty. O(log n)."""
        info = self.peek()
        if info is not None:
            heapq.heappop(self._heap)
            del self._entries[info.key]
        return info
