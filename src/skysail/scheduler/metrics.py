"""What the scheduler counts and measures, under upstream's names, so that existing dashboards work.

The hot path pays a dictionary look-up and an addition; `SchedulerCollector` turns the numbers into Prometheus families
only when somebody scrapes. Gauges (pending pods, cache size) are not kept at all: they are read then.

Left out, as there is nothing here that they could count:

    batch_attempts_total, batch_cache_flushed_total,       no node is hinted from pod to pod: pods of one signature
    get_node_hint_duration_seconds,                        share columns over every node
    store_schedule_results_duration_seconds
    volume_binder_cache_requests_total                     the binder has no cache of its own
    dra_bindingconditions_allocations_total,               binding conditions of devices are recorded in a claim, not
    dra_bindingconditions_wait_duration_seconds            waited for

Ours alone: slow_plugin_calls_total, dropped_writes_total, inflight_pods.

Source: pkg/scheduler/metrics/metrics.go, pkg/scheduler/framework/plugins/volumebinding/metrics/metrics.go, v1.36.
Differs: what upstream registers only with a feature gate is always there, and stays empty without it.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from skysail.scheduler.cache.cluster_cache import CacheStatistics
from skysail.scheduler.queue.parts import QueueStatistics

SCHEDULED: Final = "scheduled"
UNSCHEDULABLE: Final = "unschedulable"
ERROR: Final = "error"
WAITING_ON_PREEMPTION: Final = "waiting_on_preemption"


def exponential_buckets(start: float, factor: float, count: int) -> tuple[float, ...]:
    """Upper bounds `start`, `start * factor`, ...; `count` of them."""
    return tuple(start * factor**step for step in range(count))


_ATTEMPT: Final = exponential_buckets(0.001, 2, 15)
_POINT: Final = exponential_buckets(0.0001, 2, 12)
_PLUGIN: Final = exponential_buckets(0.00001, 1.5, 20)
_SLI: Final = exponential_buckets(0.01, 2, 20)
_STAGES: Final[Mapping[str, str]] = {"Filter": "predicate", "Reserve": "assume", "PreBind": "bind"}

_HISTOGRAMS: Final[Mapping[str, tuple[str, tuple[str, ...], tuple[float, ...]]]] = {
    "event_handling_duration_seconds": ("Event handling latency in seconds.", ("event",), _POINT),
    "scheduling_attempt_duration_seconds": (
        "Scheduling attempt latency in seconds (scheduling algorithm + binding)", ("result", "profile"), _ATTEMPT,
    ),
    "scheduling_algorithm_duration_seconds": ("Scheduling algorithm latency in seconds", (), _ATTEMPT),
    "preemption_victims": ("Number of selected preemption victims", (), exponential_buckets(1, 2, 7)),
    "pod_scheduling_sli_duration_seconds": (
        "Time from a pod's first entry into the queue to its binding, over all its attempts.", ("attempts",), _SLI,
    ),
    "pod_scheduling_attempts": (
        "Number of attempts to successfully schedule a pod.", (), exponential_buckets(1, 2, 5),
    ),
    "framework_extension_point_duration_seconds": (
        "Latency for running all plugins of a specific extension point.",
        ("extension_point", "status", "profile"), _POINT,
    ),
    "plugin_execution_duration_seconds": (
        "Duration for running a plugin at a specific extension point.",
        ("plugin", "extension_point", "status"), _PLUGIN,
    ),
    "permit_wait_duration_seconds": ("Duration of waiting on permit.", ("result",), _ATTEMPT),
    "queueing_hint_execution_duration_seconds": (
        "Duration for running a queueing hint function of a plugin.", ("plugin", "event", "hint"), _PLUGIN,
    ),
    "preemption_goroutines_duration_seconds": (
        "How long the evictions of one preemption took, in seconds.", ("result",), _SLI,
    ),
    "async_api_call_execution_duration_seconds": (
        "How long an API call beside the scheduling cycle took, in seconds.", ("call_type", "result"), _ATTEMPT,
    ),
    "podgroup_scheduling_attempt_duration_seconds": (
        "Pod group scheduling attempt latency in seconds (scheduling algorithm + binding)",
        ("result", "profile"), _ATTEMPT,
    ),
    "podgroup_scheduling_algorithm_duration_seconds": (
        "Pod group scheduling algorithm latency in seconds", (), _ATTEMPT,
    ),
}  # fmt: skip

_COUNTERS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "schedule_attempts_total": (
        "Number of attempts to schedule pods, by the result. 'unschedulable' means a pod could not be scheduled, while "
        "'error' means an internal scheduler problem.",
        ("result", "profile"),
    ),
    "preemption_attempts_total": ("Total preemption attempts in the cluster till now", ()),
    "pod_scheduled_after_flush_total": (
        "Number of pods scheduled after being flushed from the unschedulable pods by the time-out.", (),
    ),
    "plugin_evaluation_total": (
        "Number of attempts to schedule pods by each plugin and the extension point (available only in PreFilter, "
        "Filter, PreScore, and Score).",
        ("plugin", "extension_point", "profile"),
    ),
    "queue_incoming_pods_total": (
        "Number of pods added to scheduling queues by event and queue type.", ("queue", "event"),
    ),
    "preemption_goroutines_execution_total": ("Number of preemptions whose evictions were carried out.", ("result",)),
    "async_api_call_execution_total": ("Number of API calls beside the scheduling cycle.", ("call_type", "result")),
    "podgroup_schedule_attempts_total": (
        "Number of attempts to schedule pod group, by the result. 'unschedulable' means a pod group could not be "
        "scheduled, while 'error' means an internal scheduler problem.",
        ("result", "profile"),
    ),
    "resourceclaim_creates_total": ("Number of ResourceClaims creation requests within scheduler", ("status",)),
    "volume_scheduling_stage_error_total": ("Volume scheduling stage error count", ("operation",)),
    "slow_plugin_calls_total": ("Synchronous plugin calls that took over a second.", ("plugin", "extension_point")),
    "dropped_writes_total": ("Conditions and events given up to let bindings pass.", ("kind",)),
}  # fmt: skip

Labels = tuple[str, ...]


class Histogram:
    """Counts per bucket and a sum."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        """Take a value in."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def cumulative(self) -> list[tuple[str, float]]:
        """Bounds with the number of values up to each, as Prometheus wants them."""
        rows, count = [], 0
        for bound, here in zip((*(_bound(b) for b in self.bounds), "+Inf"), self.counts, strict=True):
            count += here
            rows.append((bound, float(count)))
        return rows


class SchedulerMetrics:
    """Everything that is counted as it happens. Names are upstream's without the `scheduler_` in front."""

    def __init__(self) -> None:
        self._histograms: dict[str, dict[Labels, Histogram]] = {
            name: {} if labels else {(): Histogram(bounds)} for name, (_, labels, bounds) in _HISTOGRAMS.items()
        }
        self._counters: dict[str, Counter[Labels]] = {
            name: Counter() if labels else Counter({(): 0}) for name, (_, labels) in _COUNTERS.items()
        }
        self.in_progress: Counter[str] = Counter()
        """Running operations, by what they do (`binding`); upstream's `goroutines`."""
        self.pending_calls: dict[str, Callable[[], int]] = {}
        """How many API calls of each type wait or are under way, asked at the scrape."""

    def observe(self, name: str, value: float, *labels: str) -> None:
        """Take a measurement in; `labels` in the order of the metric's label names."""
        series = self._histograms[name]
        histogram = series.get(labels)
        if histogram is None:
            histogram = series[labels] = Histogram(_HISTOGRAMS[name][2])
        histogram.observe(value)

    def count(self, name: str, *labels: str, by: int = 1) -> None:
        """Count something."""
        self._counters[name][labels] += by

    def attempt(self, result: str, profile: str, seconds: float) -> None:
        """An attempt ended (`scheduled`, `unschedulable`, `error`)."""
        self.observe("scheduling_attempt_duration_seconds", seconds, result, profile)
        self.count("schedule_attempts_total", result, profile)

    def scheduled(self, attempts: int, sli_seconds: float, after_flush: bool) -> None:
        """A pod was bound."""
        self.observe("pod_scheduling_attempts", attempts)
        self.observe("pod_scheduling_sli_duration_seconds", sli_seconds, str(attempts) if attempts < 15 else "15+")
        if after_flush:
            self.count("pod_scheduled_after_flush_total")

    def called(self, call_type: str, ok: bool, seconds: float) -> None:
        """An API call beside the scheduling cycle ended (`pod_binding`, `pod_status_patch`)."""
        result = _result(ok)
        self.count("async_api_call_execution_total", call_type, result)
        self.observe("async_api_call_execution_duration_seconds", seconds, call_type, result)

    def evicted(self, ok: bool, seconds: float) -> None:
        """All victims of one preemption were dealt with."""
        self.count("preemption_goroutines_execution_total", _result(ok))
        self.observe("preemption_goroutines_duration_seconds", seconds, _result(ok))

    def group_attempt(self, result: str, profile: str, seconds: float) -> None:
        """An attempt for a pod group ended."""
        self.observe("podgroup_scheduling_attempt_duration_seconds", seconds, result, profile)
        self.count("podgroup_schedule_attempts_total", result, profile)

    def plugin_failed(self, plugin: str, point: str) -> None:
        """A plugin answered with an error: upstream counts that for volumes, by stage."""
        if plugin == "VolumeBinding" and point in _STAGES:
            self.count("volume_scheduling_stage_error_total", _STAGES[point])

    def counter(self, name: str, *labels: str) -> int:
        """A counter's value (for tests and statistics)."""
        return self._counters[name][labels]

    def families(self) -> Iterable[Metric]:
        """What was measured and counted, as Prometheus families."""
        for name, (text, label_names, _) in _HISTOGRAMS.items():
            family = HistogramMetricFamily(f"scheduler_{name}", text, labels=label_names)
            for labels, histogram in self._histograms[name].items():
                family.add_metric(labels, buckets=histogram.cumulative(), sum_value=histogram.total)
            yield family
        for name, (text, counted_labels) in _COUNTERS.items():
            counter = CounterMetricFamily(f"scheduler_{name}", text, labels=counted_labels)
            for labels, value in self._counters[name].items():
                counter.add_metric(labels, value)
            yield counter


class SchedulerCollector(Collector):
    """Gives a Prometheus registry all of the scheduler's metrics, gauges read at the moment of the scrape.

    Args:
        metrics: What is counted as it happens.
        queue: Reads the queue's statistics.
        cache: Reads the cache's statistics.
        reasons: How many queued pods each plugin refused, by (plugin, profile).
        in_flight_events: How many events of each label are kept for pods under way.
    """

    def __init__(
        self,
        metrics: SchedulerMetrics,
        *,
        queue: Callable[[], QueueStatistics],
        cache: Callable[[], CacheStatistics],
        reasons: Callable[[], Mapping[tuple[str, str], int]],
        in_flight_events: Callable[[], Mapping[str, int]],
    ) -> None:
        self._metrics, self._queue, self._cache = metrics, queue, cache
        self._reasons, self._in_flight_events = reasons, in_flight_events
        self._counted: Counter[Labels] = Counter()

    def collect(self) -> Iterable[Metric]:
        """All families."""
        queue, cache = self._queue(), self._cache()
        incoming = self._metrics._counters["queue_incoming_pods_total"]
        incoming.clear()
        incoming.update(queue.incoming)
        yield from self._metrics.families()
        for name, text, label, values in (
            ("pending_pods", "Number of pending pods, by the queue type.", "queue",
             {"active": queue.active, "backoff": queue.backoff, "unschedulable": queue.unschedulable,
              "gated": queue.gated}),
            ("cache_size", "Number of nodes, pods, and assumed (bound) pods in the scheduler cache.", "type",
             {"nodes": cache.nodes, "pods": cache.pods, "assumed_pods": cache.assumed_pods}),
            ("goroutines", "Number of running operations split by the work they do such as binding.", "operation",
             dict(self._metrics.in_progress)),
            ("inflight_events", "Number of events currently tracked in the scheduling queue.", "event",
             dict(self._in_flight_events())),
            ("pending_async_api_calls", "Number of API calls that wait or are under way, by type.", "call_type",
             {call_type: count() for call_type, count in self._metrics.pending_calls.items()}),
            ("inflight_pods", "Number of pods popped and not yet done.", "", {"": queue.in_flight}),
        ):  # fmt: skip
            family = GaugeMetricFamily(f"scheduler_{name}", text, labels=(label,) if label else ())
            for key, value in values.items():
                family.add_metric((key,) if label else (), value)
            yield family
        refused = GaugeMetricFamily(
            "scheduler_unschedulable_pods",
            "The number of unschedulable pods broken down by plugin name.",
            labels=("plugin", "profile"),
        )
        for reason, count in self._reasons().items():
            refused.add_metric(reason, count)
        yield refused


def _result(ok: bool) -> str:
    return "success" if ok else "error"


def _bound(value: float) -> str:
    return repr(round(value, 10))
