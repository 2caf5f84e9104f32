"""What is counted about a work queue, under the names that existing dashboards know.

Source: k8s.io/client-go/util/workqueue/metrics.go, v1.36 (`workqueue_*`, label `name`). Differs: the two gauges about
unfinished work are computed when they are read, not every half second.
"""

from collections.abc import Hashable
from typing import Protocol

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from skysail.api.ports import Clock

_BUCKETS = tuple(1e-8 * 10**power for power in range(12))


class QueueMetrics(Protocol):
    """What a queue tells about its items."""

    def added(self, item: Hashable) -> None:
        """An item that was clean needs work now."""
        ...

    def got(self, item: Hashable) -> None:
        """A worker took the item."""
        ...

    def finished(self, item: Hashable) -> None:
        """A worker gave the item back."""
        ...

    def retried(self) -> None:
        """An item was added with a delay."""
        ...


class NoMetrics:
    """Counts nothing."""

    def added(self, item: Hashable) -> None:
        """Nothing."""

    def got(self, item: Hashable) -> None:
        """Nothing."""

    def finished(self, item: Hashable) -> None:
        """Nothing."""

    def retried(self) -> None:
        """Nothing."""


class WorkQueueMetrics:
    """The metric families of all work queues of one registry; `for_queue` gives one queue its share."""

    def __init__(self, registry: CollectorRegistry, clock: Clock) -> None:
        self.clock = clock
        label = ("name",)
        self.depth = Gauge("workqueue_depth", "Current depth of workqueue", label, registry=registry)
        self.adds = Counter(
            "workqueue_adds_total", "Total number of adds handled by workqueue", label, registry=registry
        )
        self.latency = Histogram(
            "workqueue_queue_duration_seconds",
            "How long in seconds an item stays in workqueue before being requested.",
            label, registry=registry, buckets=_BUCKETS,
        )  # fmt: skip
        self.work = Histogram(
            "workqueue_work_duration_seconds",
            "How long in seconds processing an item from workqueue takes.",
            label, registry=registry, buckets=_BUCKETS,
        )  # fmt: skip
        self.unfinished = Gauge(
            "workqueue_unfinished_work_seconds",
            "How many seconds of work are in progress and not yet observed by work_duration.",
            label, registry=registry,
        )  # fmt: skip
        self.longest = Gauge(
            "workqueue_longest_running_processor_seconds",
            "How many seconds the longest running processor has been running.",
            label, registry=registry,
        )  # fmt: skip
        self.retries = Counter(
            "workqueue_retries_total", "Total number of retries handled by workqueue", label, registry=registry
        )

    def for_queue(self, name: str) -> "NamedQueueMetrics":
        """The metrics of the queue of that name."""
        return NamedQueueMetrics(self, name)


class NamedQueueMetrics:
    """One queue's metrics."""

    def __init__(self, families: WorkQueueMetrics, name: str) -> None:
        self._clock = families.clock
        self._depth = families.depth.labels(name)
        self._adds = families.adds.labels(name)
        self._latency = families.latency.labels(name)
        self._work = families.work.labels(name)
        self._retries = families.retries.labels(name)
        self._added_at: dict[Hashable, float] = {}
        self._started_at: dict[Hashable, float] = {}
        families.unfinished.labels(name).set_function(self.unfinished_seconds)
        families.longest.labels(name).set_function(self.longest_running_seconds)

    def added(self, item: Hashable) -> None:
        """One add, one more deep."""
        self._adds.inc()
        self._depth.inc()
        self._added_at.setdefault(item, self._clock.monotonic())

    def got(self, item: Hashable) -> None:
        """One less deep; its time in the queue is observed."""
        now = self._clock.monotonic()
        self._depth.dec()
        self._started_at[item] = now
        added_at = self._added_at.pop(item, None)
        if added_at is not None:
            self._latency.observe(now - added_at)

    def finished(self, item: Hashable) -> None:
        """Its time in work is observed."""
        started_at = self._started_at.pop(item, None)
        if started_at is not None:
            self._work.observe(self._clock.monotonic() - started_at)

    def retried(self) -> None:
        """One retry."""
        self._retries.inc()

    def unfinished_seconds(self) -> float:
        """Seconds of work in progress, over all items in work."""
        now = self._clock.monotonic()
        return sum(now - started_at for started_at in self._started_at.values())

    def longest_running_seconds(self) -> float:
        """Seconds the longest running item has been in work."""
        return self._clock.monotonic() - min(self._started_at.values()) if self._started_at else 0.0
