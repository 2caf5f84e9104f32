"""In which order a work queue hands its items out: first come first served, or by priority.

An order holds each item at most once; the queue that owns it takes care of that. Heap entries are
`(-priority, arrival, item)`: arrival numbers are unique, so the order is total and runs repeat exactly.
"""

from collections import deque
from heapq import heappop, heappush
from typing import Generic, Protocol, TypeVar

T = TypeVar("T")


class Order(Protocol[T]):
    """The waiting line of a `WorkQueue`."""

    def push(self, item: T, priority: int) -> None:
        """Take in an item that is not waiting yet."""
        ...

    def touch(self, item: T, priority: int) -> None:
        """An item that waits already was added again, now with this priority."""
        ...

    def pop(self) -> tuple[T, int]:
        """Take out the next item and its priority; the order is not empty."""
        ...

    def __len__(self) -> int: ...


class ArrivalOrder(Generic[T]):
    """First come, first served; priorities are carried along but mean nothing."""

    def __init__(self) -> None:
        self._items: deque[tuple[T, int]] = deque()

    def push(self, item: T, priority: int) -> None:
        """Queue at the end."""
        self._items.append((item, priority))

    def touch(self, item: T, priority: int) -> None:
        """Nothing changes: the item keeps its place."""

    def pop(self) -> tuple[T, int]:
        """The item that waited longest."""
        return self._items.popleft()

    def __len__(self) -> int:
        return len(self._items)


class PriorityOrder(Generic[T]):
    """Highest priority first, then first come first served.

    Adding a waiting item again with a higher priority moves it up behind its new peers; a lower one changes nothing.

    Cost: push, touch and pop O(log n); a raised item leaves a dead heap entry behind until it surfaces.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, T]] = []
        self._live: dict[T, tuple[int, int]] = {}
        self._arrivals = 0

    def push(self, item: T, priority: int) -> None:
        """Queue behind the items of the same priority."""
        self._arrivals += 1
        self._live[item] = (-priority, self._arrivals)
        heappush(self._heap, (-priority, self._arrivals, item))

    def touch(self, item: T, priority: int) -> None:
        """Move up, if this priority is higher than the one the item waits with."""
        if -priority < self._live[item][0]:
            self.push(item, priority)

    def pop(self) -> tuple[T, int]:
        """The oldest item of the highest priority."""
        while True:
            negative, arrival, item = heappop(self._heap)
            if self._live.get(item) == (negative, arrival):
                del self._live[item]
                return item, -negative

    def __len__(self) -> int:
        return len(self._live)
