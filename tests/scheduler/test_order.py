"""A queue sort plugin that raises, or whose keys cannot be compared, loses no pod."""

import pytest

from skysail.scheduler.framework.queued_pod import QueuedPodInfo
from skysail.scheduler.queue.order import safe_order
from skysail.scheduler.queue.pod_heap import PodHeap
from skysail.simulator.clock import settle
from tests.scheduler.queue_objects import pod
from tests.scheduler.test_plugins_at_work import Recording
from tests.scheduler.world import World, in_world


def raises(info):
    raise ValueError("no key")


def odd(info):
    """Keys of types that do not compare, and one that compares to nonsense."""
    return {"a": 1, "b": "x", "c": object(), "d": float("nan")}[info.pod.metadata.name]


@pytest.mark.parametrize("order", [raises, odd, lambda info: None, lambda info: -info.timestamp])
def test_every_pod_comes_out_once_whatever_the_plugin_does(order):
    failures = []
    heap = PodHeap(safe_order("Odd", order, lambda plugin, error: failures.append(plugin)))
    for number, name in enumerate("abcd"):
        heap.push(QueuedPodInfo(pod(name), float(number)))
    out = []
    while (info := heap.pop()) is not None:
        out.append(info.pod.metadata.name)
    assert sorted(out) == ["a", "b", "c", "d"]
    if order is raises:
        assert out == ["a", "b", "c", "d"]
        assert set(failures) == {"Odd"}


@in_world
async def test_a_scheduler_with_such_a_plugin_still_schedules(world: World):
    class Odd(Recording):
        name = "Odd"

        def sort_key(self, info):
            raise ValueError("no key")

    await world.node("n1")
    config = "profiles: [{plugins: {queueSort: {enabled: [{name: Odd}], disabled: [{name: '*'}]}}}]"
    async with world.running(world.scheduler(config, {"Odd": Odd})):
        await world.pod("web")
        await settle()
        assert await world.node_of("web") == "n1"
