"""The watchdog, and what plugins cost."""

import asyncio

import pytest

from skysail.scheduler.binding import BindingPlugins, BindingRunner
from skysail.scheduler.framework.events import NODE, ActionType, ClusterEvent, ClusterEventWithHint, QueueingHint
from skysail.scheduler.framework.status import SUCCESS, Status
from skysail.scheduler.instruments import Instruments
from skysail.scheduler.metrics import SchedulerMetrics
from skysail.scheduler.stepping import stepped
from skysail.scheduler.waiting_pods import WaitingPods


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


def test_a_step_of_an_asynchronous_point_that_holds_the_loop_is_named():
    async def main() -> None:
        clock, slow = [0.0], []

        class Blocking:
            name = "Blocking"

            async def pre_bind(self, state, pod, node_name):
                await asyncio.sleep(0)
                clock[0] += 2.5  # a blocking call
                await asyncio.sleep(0)
                clock[0] += 0.5
                return SUCCESS

            def pre_bind_pre_flight(self, state, pod, node_name):
                return SUCCESS

        metrics = SchedulerMetrics()
        instruments = Instruments(lambda: clock[0], metrics)
        runner = BindingRunner(
            "p", BindingPlugins(pre_bind=[Blocking()]), WaitingPods(), now=lambda: clock[0], metrics=metrics,
            on_step=instruments.step,
        )  # fmt: skip
        assert (await runner.pre_bind(None, None, "n1", frozenset())).is_success
        slow = [(call.plugin, call.point, call.seconds) for call in instruments.slow_calls]
        assert slow == [("Blocking", "PreBind", 2.5)]
        assert metrics.counter("slow_plugin_calls_total", "Blocking", "PreBind") == 1

    asyncio.run(main())


def test_waiting_long_without_holding_the_loop_is_not_named():
    async def main() -> None:
        steps = []
        clock = [0.0]

        async def patient() -> str:
            await asyncio.sleep(0)
            return "done"

        async def others() -> None:
            clock[0] += 100.0

        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(awaiting(stepped(patient(), lambda: clock[0], steps.append)))
            group.create_task(others())
        assert waiting.result() == "done"
        assert steps == [0.0, 0.0]

    async def awaiting(call):
        return await call

    asyncio.run(main())


def test_what_is_thrown_into_a_stepped_coroutine_reaches_it():
    async def main() -> None:
        caught = []

        async def patient() -> None:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                caught.append("cancelled")
                raise

        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await stepped(patient(), lambda: 0.0, lambda seconds: None)
        assert caught == ["cancelled"]
        with pytest.raises(TypeError, match="cannot be awaited"):
            stepped("nonsense", lambda: 0.0, lambda seconds: None)

    asyncio.run(main())
