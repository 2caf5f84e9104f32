from skysail.scheduler.framework.events import NODE, ActionType, ClusterEvent, ClusterEventWithHint, QueueingHint
from skysail.scheduler.framework.status import SUCCESS, Status
from skysail.scheduler.instruments import Instruments
from skysail.scheduler.metrics import SchedulerMetrics


class Ticking:
    """Seconds that a test moves."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


class Plugin:
    name = "Mine"

    def __init__(self, clock: Ticking, takes: float, answer: object = SUCCESS) -> None:
        self.clock, self.takes, self.answer = clock, takes, answer

    def _work(self):
        self.clock.seconds += self.takes
        return self.answer

    def pre_filter(self, state, pod, table):
        return self._work(), None

    def filter(self, state, pod, node):
        return self._work()

    def permit(self, state, pod, node):
        return self._work(), 0.0

    def events_to_register(self):
        added = ClusterEvent(NODE, ActionType.ADD)
        return ClusterEventWithHint(added), ClusterEventWithHint(added, lambda pod, old, new: self._work())


def watched(takes: float, answer: object = SUCCESS, *, built_in: bool = False):
    clock, metrics = Ticking(), SchedulerMetrics()
    instruments, plugin = Instruments(clock, metrics), Plugin(clock, takes, answer)
    instruments.watch(plugin, "default-scheduler", built_in=built_in)
    return plugin, instruments, metrics


def histogram(metrics: SchedulerMetrics, name: str, *labels: str):
    return metrics._histograms[name].get(labels)


def test_a_call_over_a_second_is_named_and_counted():
    plugin, instruments, metrics = watched(1.5)
    plugin.permit(None, None, None)
    assert [(call.plugin, call.point, call.seconds) for call in instruments.slow_calls] == [("Mine", "Permit", 1.5)]
    assert metrics.counter("slow_plugin_calls_total", "Mine", "Permit") == 1


def test_a_slow_queueing_hint_is_named():
    plugin, instruments, _ = watched(1.5, QueueingHint.SKIP)
    bare, with_hint = plugin.events_to_register()
    assert bare.hint is None
    assert with_hint.hint(None, None, None) is QueueingHint.SKIP
    assert [(call.plugin, call.point) for call in instruments.slow_calls] == [("Mine", "QueueingHint")]


def test_a_quick_call_is_not():
    plugin, instruments, _ = watched(0.5)
    plugin.permit(None, None, None)
    assert not instruments.slow_calls


def test_an_attempts_calls_are_added_up_by_extension_point():
    plugin, instruments, metrics = watched(0.01)
    instruments.begin()
    for _ in range(3):
        plugin.filter(None, None, None)
    instruments.end("default-scheduler")
    series = histogram(metrics, "framework_extension_point_duration_seconds", "Filter", "Success", "default-scheduler")
    assert sum(series.counts) == 1
    assert round(series.total, 6) == 0.03


def test_a_refusal_shows_in_the_status_label():
    plugin, instruments, metrics = watched(0.01, Status.unschedulable("no"))
    instruments.begin()
    plugin.pre_filter(None, None, None)
    instruments.end("p")
    assert histogram(metrics, "framework_extension_point_duration_seconds", "PreFilter", "Unschedulable", "p")


def test_single_plugins_are_measured_in_one_attempt_out_of_ten():
    plugin, instruments, metrics = watched(0.01)
    for _ in range(20):
        instruments.begin()
        plugin.pre_filter(None, None, None)
        instruments.end("p")
    series = histogram(metrics, "plugin_execution_duration_seconds", "Mine", "PreFilter", "Success")
    assert sum(series.counts) == 2
    assert metrics.counter("plugin_evaluation_total", "Mine", "PreFilter", "default-scheduler") == 20


def test_a_built_in_plugins_small_methods_are_left_alone():
    plugin, _, _ = watched(1.5, built_in=True)
    assert plugin.permit.__func__ is Plugin.permit
