"""Every metric of kube-scheduler 1.36 that has a meaning here is given, under its name, with its labels and buckets."""

import pytest

from skysail.api.errors import Unreachable
from skysail.api.kinds import NODES, PRIORITY_CLASSES
from skysail.client.inprocess import InProcessTransport
from skysail.scheduler.framework.status import SUCCESS, Status
from skysail.scheduler.metrics import SchedulerMetrics, exponential_buckets
from skysail.scheduler.plugins.volume_binding import VolumeBinding
from skysail.simulator.clock import settle
from tests.scheduler.test_plugins_at_work import Recording
from tests.scheduler.world import ADMIN, FaultyTransport, World, in_world

ATTEMPT, POINT, PLUGIN = (0.001, 2, 15), (0.0001, 2, 12), (0.00001, 1.5, 20)
LONG = (0.01, 2, 20)

HISTOGRAMS = {
    "event_handling_duration_seconds": (("event",), POINT),
    "scheduling_attempt_duration_seconds": (("result", "profile"), ATTEMPT),
    "scheduling_algorithm_duration_seconds": ((), ATTEMPT),
    "preemption_victims": ((), (1, 2, 7)),
    "pod_scheduling_sli_duration_seconds": (("attempts",), LONG),
    "pod_scheduling_attempts": ((), (1, 2, 5)),
    "framework_extension_point_duration_seconds": (("extension_point", "status", "profile"), POINT),
    "plugin_execution_duration_seconds": (("plugin", "extension_point", "status"), PLUGIN),
    "queueing_hint_execution_duration_seconds": (("plugin", "event", "hint"), PLUGIN),
    "permit_wait_duration_seconds": (("result",), ATTEMPT),
    "preemption_goroutines_duration_seconds": (("result",), LONG),
    "async_api_call_execution_duration_seconds": (("call_type", "result"), ATTEMPT),
    "podgroup_scheduling_attempt_duration_seconds": (("result", "profile"), ATTEMPT),
    "podgroup_scheduling_algorithm_duration_seconds": ((), ATTEMPT),
}
COUNTERS = {
    "schedule_attempts_total": ("result", "profile"),
    "preemption_attempts_total": (),
    "pod_scheduled_after_flush_total": (),
    "queue_incoming_pods_total": ("queue", "event"),
    "plugin_evaluation_total": ("plugin", "extension_point", "profile"),
    "preemption_goroutines_execution_total": ("result",),
    "async_api_call_execution_total": ("call_type", "result"),
    "podgroup_schedule_attempts_total": ("result", "profile"),
    "resourceclaim_creates_total": ("status",),
    "volume_scheduling_stage_error_total": ("operation",),
}
GAUGES = {
    "pending_pods",
    "inflight_events",
    "goroutines",
    "cache_size",
    "unschedulable_pods",
    "pending_async_api_calls",
}


@pytest.mark.parametrize("name", HISTOGRAMS)
def test_a_histogram_has_upstreams_labels_and_buckets(name):
    labels, buckets = HISTOGRAMS[name]
    metrics = SchedulerMetrics()
    metrics.observe(name, 0.0, *labels)
    family = next(family for family in metrics.families() if family.name == f"scheduler_{name}")
    samples = [sample for sample in family.samples if sample.name.endswith("_bucket")]
    assert tuple(sorted(samples[0].labels)) == tuple(sorted((*labels, "le")))
    bounds = [float(sample.labels["le"]) for sample in samples[:-1]]
    assert bounds == pytest.approx(list(exponential_buckets(*buckets)))
    assert samples[-1].labels["le"] == "+Inf"


@pytest.mark.parametrize("name", COUNTERS)
def test_a_counter_has_upstreams_labels(name):
    metrics = SchedulerMetrics()
    metrics.count(name, *COUNTERS[name])
    family = next(family for family in metrics.families() if f"{family.name}_total" == f"scheduler_{name}")
    assert tuple(sorted(family.samples[-1].labels)) == tuple(sorted(COUNTERS[name]))


@in_world
async def test_the_gauges_are_there(world: World):
    families = {family.name for family in world.scheduler().collector().collect()}
    assert {f"scheduler_{name}" for name in GAUGES} <= families


@in_world
async def test_an_attempt_at_preemption_is_counted_only_when_the_plugin_for_it_ran(world: World):
    class Fixer(Recording):
        name = "Fixer"

        def post_filter(self, state, pod, diagnosis):
            from skysail.scheduler.framework.plugin import PostFilterResult

            return SUCCESS, PostFilterResult(nominated_node="n1")

    await world.node("n1")
    first = "profiles: [{plugins: {postFilter: {enabled: [{name: Fixer}, {name: DefaultPreemption}], "
    first += "disabled: [{name: '*'}]}}}]"
    async with world.running(scheduler := world.scheduler(first, {"Fixer": Fixer})):
        await world.pod("big", cpu="16")
        await settle()
        assert scheduler.metrics.counter("preemption_attempts_total") == 0
    async with world.running(scheduler := world.scheduler()):
        await settle()
        assert scheduler.metrics.counter("preemption_attempts_total") > 0


@in_world
async def test_evictions_are_counted_and_timed(world: World):
    await world.node("n1")
    metadata = {"name": "important"}
    await world.client.create(
        PRIORITY_CLASSES,
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": metadata, "value": 1000},
    )
    async with world.running(scheduler := world.scheduler()):
        await world.pod("low", cpu="3")
        await settle()
        await world.pod("high", cpu="3", priorityClassName="important")
        await settle()
        assert scheduler.metrics.counter("preemption_goroutines_execution_total", "success") == 1
        assert scheduler.metrics.counter("preemption_goroutines_execution_total", "error") == 0


@in_world
async def test_calls_beside_the_cycle_are_counted_by_type_and_result(world: World):
    await world.node("n1")
    transport = FaultyTransport(InProcessTransport(world.server, ADMIN))
    faults = [Unreachable("reset")]

    def fault(request):
        if request.path.endswith("/status") and faults:
            raise faults.pop()

    transport.fault = fault
    async with world.running(scheduler := world.scheduler(transport=transport)):
        await world.pod("web")
        await world.pod("big", cpu="16")
        await settle(within=1.0)
        count = scheduler.metrics.counter
        assert count("async_api_call_execution_total", "pod_binding", "success") == 1
        assert count("async_api_call_execution_total", "pod_status_patch", "error") == 1
        assert count("async_api_call_execution_total", "pod_status_patch", "success") == 1
        assert {name: pending() for name, pending in scheduler.metrics.pending_calls.items()} == {
            "pod_binding": 0, "pod_status_patch": 0,
        }  # fmt: skip


@in_world
async def test_hints_are_timed_by_plugin_event_and_answer(world: World):
    await world.node("n1")
    async with world.running(scheduler := world.scheduler()):
        await world.pod("big", cpu="16")
        await settle()
        await world.node("n2", cpu="2")
        await world.client.patch(NODES, "n1", "", {"status": {"allocatable": {"cpu": "32"}}}, subresource="status")
        await settle(within=2.0)
        series = scheduler.metrics._histograms["queueing_hint_execution_duration_seconds"]
        assert {
            ("NodeResourcesFit", "NodeAdd", "QueueSkip"),
            ("NodeResourcesFit", "NodeUpdateNodeAllocatable", "Queue"),
        } <= {(plugin, event.replace("/", ""), hint) for plugin, event, hint in series}


@in_world
async def test_errors_about_volumes_are_counted_by_stage(world: World):
    class Failing(VolumeBinding):
        def reserve(self, state, pod, node_name):
            return Status.error("the volume is gone")

    await world.node("n1")
    async with world.running(scheduler := world.scheduler(plugins={"VolumeBinding": Failing})):
        await world.pod("web")
        await settle()
        assert scheduler.metrics.counter("volume_scheduling_stage_error_total", "assume") == 1
