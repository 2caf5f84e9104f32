"""Pod groups under their alpha gates: recorded attempts, and gangs on the embedded cluster."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from skysail.api.kinds import POD_GROUPS, PODS
from skysail.apiserver import server
from skysail.apiserver.schema.table import load
from skysail.scheduler.explain import compare, explain_scenario, load_scenarios
from skysail.simulator.clock import settle
from tests.scheduler.world import World, in_world

GOLDEN = Path(__file__).parents[1] / "golden"
ALPHA = [("scheduling.k8s.io", "v1alpha2")]
GATES = {"GenericWorkload": True, "GangScheduling": True}


@pytest.mark.parametrize("recorded", ["scheduler/gang_and_podgroup.json.gz", "scheduler-more/groups.json.gz"])
def test_every_recorded_attempt_of_a_pod_group_is_ours(recorded: str):
    differing = {}
    for scenario in load_scenarios(GOLDEN / recorded):
        differences = compare(scenario["expected"], explain_scenario(scenario))
        if differences:
            differing[scenario["id"]] = differences
    assert differing == {}


@pytest.fixture(autouse=True)
def _alpha_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "load", partial(load, enable=ALPHA))


async def make_group(world: World, name: str, **policy: Any) -> None:
    await world.client.create(
        POD_GROUPS, {"metadata": {"name": name, "namespace": "default"}, "spec": {"schedulingPolicy": policy}}
    )


async def make_member(world: World, name: str, cpu: str = "500m", **spec: Any) -> None:
    await world.pod(name, cpu=cpu, schedulingGroup={"podGroupName": "gang"}, **spec)


async def nodes_of(world: World, *names: str) -> list[str]:
    return [await world.node_of(name) for name in names]


async def condition_of(world: World) -> tuple[str, str]:
    group = await world.client.get(POD_GROUPS, "gang", "default")
    return next(((each.status, each.reason) for each in group.status.conditions), ("", ""))


@in_world
async def test_a_gang_waits_for_its_group_and_for_enough_pods_and_is_bound_together(world: World):
    await world.node("n1")
    async with world.running(scheduler := world.scheduler(gates=GATES)):
        await make_member(world, "a")
        await settle()
        assert scheduler.queue.part_of(("default", "a")) == "gated"
        await make_group(world, "gang", gang={"minCount": 2})
        await settle()
        assert scheduler.queue.part_of(("default", "a")) == "gated"
        await make_member(world, "b")
        await settle()
        assert await nodes_of(world, "a", "b") == ["n1", "n1"]
        assert await condition_of(world) == ("True", "Scheduled")
        counter = scheduler.metrics.counter
        assert counter("podgroup_schedule_attempts_total", "scheduled", "default-scheduler") == 1


@in_world
async def test_a_gang_that_does_not_fit_as_a_whole_takes_no_room(world: World):
    await world.node("n1", cpu="1")
    async with world.running(scheduler := world.scheduler(gates=GATES)):
        await make_group(world, "gang", gang={"minCount": 3})
        for name in ("a", "b", "c"):
            await make_member(world, name)
        await settle()
        assert await nodes_of(world, "a", "b", "c") == ["", "", ""]
        assert await condition_of(world) == ("False", "Unschedulable")
        message = (await world.condition("a"))[2]
        assert message.startswith("pod group is unschedulable, waiting for minCount pods from a gang to be scheduled")
        assert scheduler.cache.statistics().assumed_pods == 0
        await world.pod("other", cpu="900m")
        await settle(within=2.0)
        assert await world.node_of("other") == "n1"
        await world.client.delete(PODS, "other", "default", grace_period_seconds=0)
        await world.node("n2", cpu="1")
        await settle(within=60.0)
        assert sorted(await nodes_of(world, "a", "b", "c")) in (["n1", "n1", "n2"], ["n1", "n2", "n2"])


@in_world
async def test_pods_of_a_basic_group_are_bound_one_by_one_as_they_fit(world: World):
    await world.node("n1", cpu="1")
    async with world.running(world.scheduler(gates=GATES)):
        await make_group(world, "gang", basic={})
        await make_member(world, "a")
        await make_member(world, "b")
        await make_member(world, "c")
        await settle()
        assert sorted(await nodes_of(world, "a", "b", "c")) == ["", "n1", "n1"]


@in_world
async def test_without_the_gates_a_pod_of_a_group_is_a_pod_like_any_other(world: World):
    await world.node("n1")
    async with world.running(world.scheduler()):
        await make_member(world, "a")
        await settle()
        assert await world.node_of("a") == "n1"
