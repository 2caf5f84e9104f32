"""Which jobs are to be looked at, and what wakes the others.

A job that was tried in vain sleeps until an event that its Outcome names, or a moment. Nothing else wakes it: with no
events, no job is tried twice. Invariant: a known job is awake, or asleep under at least one event or moment, or has
nothing that waits.
"""

import heapq
from collections.abc import Iterable


class Sleepers:
    """The index.

    Attributes:
        awake: Keys of jobs to look at in the next cycle, in the order they woke.
    """

    def __init__(self) -> None:
        self.awake: dict[str, None] = {}
        self._by_event: dict[str, dict[str, None]] = {}
        self._events: dict[str, tuple[str, ...]] = {}
        self._moments: list[tuple[float, str]] = []
        self._until: dict[str, float] = {}

    def wake(self, key: str) -> None:
        """Look at a job in the next cycle."""
        self._forget(key)
        self.awake[key] = None

    def sleep(self, key: str, events: Iterable[str], until: float | None = None) -> None:
        """Let a job sleep until one of these events, or a moment."""
        self.awake.pop(key, None)
        self._forget(key)
        names = tuple(dict.fromkeys(events))
        self._events[key] = names
        for name in names:
            self._by_event.setdefault(name, {})[key] = None
        if until is not None:
            self._until[key] = until
            heapq.heappush(self._moments, (until, key))
            if len(self._moments) > 2 * len(self._until) + 64:
                self._moments = [(moment, key) for key, moment in self._until.items()]
                heapq.heapify(self._moments)

    def drop(self, key: str) -> None:
        """The job is gone, or has nothing that waits."""
        self.awake.pop(key, None)
        self._forget(key)

    def tell(self, event: str) -> int:
        """Something happened; returns how many it woke."""
        keys = self._by_event.get(event)
        if not keys:
            return 0
        woken = list(keys)
        for key in woken:
            self.wake(key)
        return len(woken)

    def pass_time(self, now: float) -> None:
        """Wake those whose moment has come."""
        while self._moments and self._moments[0][0] <= now:
            moment, key = heapq.heappop(self._moments)
            if self._until.get(key) == moment:
                self.wake(key)

    def next_moment(self) -> float | None:
        """When the next sleeper wakes by itself."""
        while self._moments and self._until.get(self._moments[0][1]) != self._moments[0][0]:
            heapq.heappop(self._moments)
        return self._moments[0][0] if self._moments else None

    def waiting_for(self, event: str) -> list[str]:
        """Who waits for an event."""
        return list(self._by_event.get(event, ()))

    def is_awaited(self, event: str) -> bool:
        """Whether anybody waits for an event."""
        return event in self._by_event

    def events_of(self, key: str) -> tuple[str, ...]:
        """What a sleeper waits for."""
        return self._events.get(key, ())

    def moment_of(self, key: str) -> float | None:
        """When a sleeper wakes by itself."""
        return self._until.get(key)

    def _forget(self, key: str) -> None:
        for name in self._events.pop(key, ()):
            keys = self._by_event.get(name)
            if keys is not None:
                keys.pop(key, None)
                if not keys:
                    del self._by_event[name]
        self._until.pop(key, None)
