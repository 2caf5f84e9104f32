"""The four places a pod of the queue can be in, and all that can be asked about them.

    active      may be popped, in the order of the QueueSort plugin
    backoff     was refused or failed, and waits for its time
    sleeping    was refused (or gated), and waits for an event
    in flight   was popped and is not done

Nothing here moves a pod: that is `scheduling_queue.py`. So whoever only looks may do so at any moment.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from skysail.api.core import Pod
from skysail.api.errors import InvariantBroken
from skysail.scheduler.framework.queued_pod import PodKey, QueuedPodInfo, scheduler_name
from skysail.scheduler.queue.backoff import BackoffQueue
from skysail.scheduler.queue.in_flight import InFlight
from skysail.scheduler.queue.pod_heap import PodHeap
from skysail.scheduler.queue.sleeping import SleepingPods


@dataclass(frozen=True, slots=True)
class QueueStatistics:
    """How many pods are where, and what came in so far."""

    active: int
    backoff: int
    unschedulable: int
    gated: int
    in_flight: int
    in_flight_events: int
    scheduling_cycle: int
    incoming: Mapping[tuple[str, str], int]


class QueueParts:
    """The four places, and what came in so far.

    Args:
        active: Where pods wait that may be popped.
        backoff: Where pods wait for their time.
    """

    def __init__(self, active: PodHeap, backoff: BackoffQueue) -> None:
        self._active, self._backoff = active, backoff
        self._sleeping = SleepingPods()
        self._in_flight = InFlight()
        self._incoming: Counter[tuple[str, str]] = Counter()
        self._scheduling_cycle = 0

    def __contains__(self, key: PodKey) -> bool:
        return key in self._active or key in self._backoff or key in self._sleeping

    def __len__(self) -> int:
        return len(self._active) + len(self._backoff) + len(self._sleeping)

    def get(self, key: PodKey) -> QueuedPodInfo | None:
        """The queued pod of that name; None when it is unknown or under way."""
        return self._active.get(key) or self._backoff.get(key) or self._sleeping.get(key)

    def part_of(self, key: PodKey) -> str:
        """`active`, `backoff`, `unschedulable` or `gated`; empty when it is unknown or under way."""
        info = self._sleeping.get(key)
        if info is not None:
            return "gated" if info.gated else "unschedulable"
        return "active" if key in self._active else "backoff" if key in self._backoff else ""

    def pending_pods(self) -> Iterator[QueuedPodInfo]:
        """Every queued pod: active, backing off, sleeping."""
        yield from self._active
        yield from self._backoff
        yield from self._sleeping

    @property
    def has_ready(self) -> bool:
        """Whether `pop` would give a pod."""
        return len(self._active) > 0 or self._backoff.has_early

    @property
    def in_flight_pods(self) -> tuple[Pod, ...]:
        """The pods under way, oldest first."""
        return self._in_flight.pods

    @property
    def in_flight_events_by_label(self) -> Mapping[str, int]:
        """What the log of events for pods under way holds."""
        return self._in_flight.events_by_label

    @property
    def backoff_count(self) -> int:
        """How many pods back off: without any, the one-second flush may rest."""
        return len(self._backoff)

    @property
    def sleeping_count(self) -> int:
        """How many pods sleep: without any, the half-minute flush may rest."""
        return len(self._sleeping)

    def unschedulable_reasons(self) -> Mapping[tuple[str, str], int]:
        """How many queued pods each plugin refused, by (plugin, profile). Cost: one step a queued pod."""
        counts: Counter[tuple[str, str]] = Counter()
        for info in self.pending_pods():
            counts.update((plugin, scheduler_name(info.pod)) for plugin in info.rejectors)
        return counts

    def statistics(self) -> QueueStatistics:
        """Counts of everything."""
        return QueueStatistics(
            active=len(self._active),
            backoff=len(self._backoff),
            unschedulable=len(self._sleeping) - self._sleeping.gated_count,
            gated=self._sleeping.gated_count,
            in_flight=len(self._in_flight),
            in_flight_events=self._in_flight.event_count,
            scheduling_cycle=self._scheduling_cycle,
            incoming=dict(self._incoming),
        )

    def validate(self) -> None:
        """Check the invariants (for tests, and the consistency checker).

        Raises:
            InvariantBroken: One does not hold.
        """
        seen: set[PodKey] = set()
        under_way = {pod.metadata.uid for pod in self._in_flight.pods}
        for info in self.pending_pods():
            if info.key in seen:
                raise InvariantBroken(f"pod {info.key} is in two parts of the queue")
            if info.pod.metadata.uid in under_way:
                raise InvariantBroken(f"pod {info.key} is queued and under way")
            seen.add(info.key)
        for info in self._sleeping:
            if not info.rejectors:
                raise InvariantBroken(f"pod {info.key} sleeps, though nobody refused it")
