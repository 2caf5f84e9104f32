"""Pods that were popped and are not done, and every event that came since: so that no wake-up is lost.

A pod under way is in no part of the queue, so an event that would wake it finds no sleeper. Instead the event is
written into one log, and when the pod comes back refused, the events since its pop are asked whether they help it.

Invariants:
- `_started[uid]` is the log position at which the pod was popped; pods are kept in the order of their pops;
- the log holds exactly the events at or after the oldest pod's position: what nobody can ask for any more is dropped.

Source: pkg/scheduler/backend/queue/active_queue.go (inFlightPods, inFlightEvents), v1.36.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from skysail.api.core import Pod
from skysail.scheduler.framework.events import ClusterEvent

_COMPACT_AT = 256


@dataclass(frozen=True, slots=True)
class InFlightEvent:
    """One event with the objects it is about; `old` is None for an addition, `new` for a deletion."""

    event: ClusterEvent
    old: object | None
    new: object | None


class InFlight:
    """The log and who still needs it."""

    def __init__(self) -> None:
        self._started: dict[str, int] = {}
        self._pods: dict[str, Pod] = {}
        self._log: list[InFlightEvent] = []
        self._head = 0  # entries of _log before it are dropped already
        self._offset = 0  # position of _log[0]
        self._labels: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._started)

    def __contains__(self, uid: str) -> bool:
        return uid in self._started

    @property
    def pods(self) -> tuple[Pod, ...]:
        """The pods under way, as they were when popped, oldest first."""
        return tuple(self._pods.values())

    @property
    def event_count(self) -> int:
        """How many events the log holds."""
        return len(self._log) - self._head

    @property
    def events_by_label(self) -> Mapping[str, int]:
        """How many events of each label the log holds (metric `inflight_events`)."""
        return {label: count for label, count in self._labels.items() if count}

    def start(self, pod: Pod) -> bool:
        """Note that the pod was popped; False when it is under way already (the caller drops the second one)."""
        uid = pod.metadata.uid
        if uid in self._started:
            return False
        self._started[uid] = self._offset + len(self._log)
        self._pods[uid] = pod
        return True

    def record(self, event: ClusterEvent, old: object | None, new: object | None) -> bool:
        """Write an event down if any pod is under way."""
        if not self._started:
            return False
        self._log.append(InFlightEvent(event, old, new))
        self._labels[event.label] += 1
        return True

    def events_since(self, uid: str) -> Iterator[InFlightEvent] | None:
        """What happened since that pod was popped, in order; None when it is not under way."""
        start = self._started.get(uid)
        if start is None:
            return None
        return (self._log[index] for index in range(start - self._offset, len(self._log)))

    def done(self, uid: str) -> None:
        """The pod is no longer under way; drop what only it could have asked for. Idempotent."""
        if self._started.pop(uid, None) is None:
            return
        del self._pods[uid]
        oldest = next(iter(self._started.values()), self._offset + len(self._log))
        while self._head < oldest - self._offset:
            self._labels[self._log[self._head].event.label] -= 1
            self._head += 1
        if self._head == len(self._log) or self._head > _COMPACT_AT:
            self._offset += self._head
            del self._log[: self._head]
            self._head = 0
