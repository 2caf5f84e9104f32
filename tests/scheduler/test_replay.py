"""What every node got at an attempt, worked out when somebody asks, however the cluster has changed since."""

import json
import os
import random

import pytest

from skysail.api.kinds import NODES
from skysail.scheduler.algorithm import schedule_pod
from skysail.scheduler.cache.cluster_cache import ClusterCache
from skysail.scheduler.cache.history import RowHistory
from skysail.scheduler.cache.pod_info import PodInfo
from skysail.scheduler.cache.snapshot import Snapshot
from skysail.scheduler.framework.runner import Framework
from skysail.scheduler.replay import MAX_TOLD, replay
from skysail.scheduler.serving import scheduler_application
from skysail.simulator.clock import settle
from tests.scheduler.test_cache import node, pod
from tests.scheduler.test_incremental_equals_full import frameworks, make_node, templates
from tests.scheduler.test_serving import get
from tests.scheduler.world import World, in_world

SEEDS = range(int(os.environ.get("SOAK_SEEDS", "10")))


def run(steps):
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


async def told(scheduler, name: str) -> dict:
    return json.loads((await get(scheduler_application(scheduler), "/debug/attempts", f"pod=default/{name}"))[1])


@in_world
async def test_every_feasible_node_is_told_with_all_its_scores_as_they_were(world: World):
    for name, cpu in (("large", "8"), ("middle", "4"), ("small", "2")):
        await world.node(name, cpu=cpu, pool="ours")
    await world.node("elsewhere", pool="other")
    async with world.running(scheduler := world.scheduler()):
        await world.pod("web", cpu="1", nodeSelector={"pool": "ours"})
        await settle()
        before = (await told(scheduler, "web"))["every_node"]
        for number in range(3):
            await world.pod(f"later{number}", cpu="1", nodeSelector={"pool": "ours"})
        await world.client.delete(NODES, "middle")
        await world.node("new", cpu="64", pool="ours")
        await settle()
        shown = await told(scheduler, "web")
    every = shown["every_node"]
    assert every == before
    assert every["as_decided"]
    assert (every["feasible_nodes"], every["refused_nodes"]) == (3, 1)
    assert [card["node"] for card in every["scores"]] == ["large", "middle", "small"]
    for card, recorded in zip(every["scores"], shown["candidates"], strict=False):
        assert (card["node"], card["total"]) == (recorded["node"], recorded["total"])
        assert recorded["scores"].items() <= card["scores"].items()
    assert every["nodes"]["elsewhere"]["plugin"] == "NodeAffinity"
    assert every["left_out"] == {"scores": 0, "nodes": 0}
    for card in every["scores"]:
        assert sum(score["weighted"] for score in card["scores"].values()) == card["total"]


@in_world
async def test_what_is_too_long_ago_is_said_to_be_forgotten_and_the_record_stays(world: World):
    await world.node("n1")
    await world.node("n2")
    async with world.running(scheduler := world.scheduler()):
        await world.pod("web")
        await settle()
        for _ in range(4_100):
            scheduler.snapshot.table.history.note(0, scheduler.snapshot.table.infos[0])
        shown = await told(scheduler, "web")
    assert shown["every_node"] is None
    assert len(shown["candidates"]) == 2


@in_world
async def test_a_limited_search_is_told_as_far_as_it_looked(world: World):
    for number in range(150):
        await world.node(f"n{number:03}")
    async with world.running(scheduler := world.scheduler("percentageOfNodesToScore: 10")):
        await world.pod("a")
        await world.pod("b")
        await settle()
        shown = await told(scheduler, "b")
    assert shown["every_node"]["as_decided"]
    assert len(shown["every_node"]["scores"]) == shown["feasible_nodes"] == 100


def test_beyond_a_thousand_nodes_the_rest_is_counted():
    cache, snapshot = ClusterCache(), Snapshot()
    for number in range(MAX_TOLD + 5):
        cache.add_node(node(f"n{number}"))
    cache.update_snapshot(snapshot)
    found = run(replay(frameworks()[0], list(snapshot), pod("web")))
    assert (found["feasible_nodes"], len(found["scores"])) == (MAX_TOLD + 5, MAX_TOLD)
    assert found["left_out"] == {"scores": 5, "nodes": 0}


def test_a_plugin_that_breaks_is_named():
    cache, snapshot = ClusterCache(), Snapshot()
    cache.add_node(node("n1"))
    cache.update_snapshot(snapshot)

    class Broken:
        name = "Broken"

        def filter(self, state, pod, node):
            raise ValueError("oops")

    found = run(replay(Framework("p", {"filter": [Broken()]}), list(snapshot), pod("web")))
    assert found == {"error": 'running "Broken" filter plugin: ValueError: oops'}


def without_image_locality() -> Framework:
    """The default profile but for the one plugin that remembers what a table does not show (see the module)."""
    points = frameworks()[0].points
    return Framework("p", {point: [each for each in points[point] if each.name != "ImageLocality"] for point in points})


@pytest.mark.parametrize("seed", SEEDS)
def test_over_random_histories_a_replay_tells_what_the_attempt_found(seed: int) -> None:
    rng = random.Random(seed)
    cache, snapshot = ClusterCache(), Snapshot(RowHistory())
    names, specs, placed = [f"n{number}" for number in range(12)], templates(rng), []
    framework, seen = without_image_locality(), []
    for name in names:
        cache.add_node(make_node(rng, name))
    for step in range(60):
        dice, name = rng.random(), rng.choice(names)
        info = cache.node_info(name)
        if dice < 0.1:
            cache.add_node(make_node(rng, name))
        elif dice < 0.15 and info is not None and info.exists:
            cache.remove_node(name)
        elif dice < 0.3 and placed:
            cache.forget(placed.pop(rng.randrange(len(placed))))
        if rng.random() < 0.02:
            snapshot.clear()
        cache.update_snapshot(snapshot)
        template = pod(f"p{step}", app=rng.choice(["web", "db"]))
        template = type(template)(metadata=template.metadata, spec=rng.choice(specs))
        result = schedule_pod(framework, snapshot, PodInfo(template), random.Random(step))
        seen.append((snapshot.position, template, result))
        if result.status.is_success:
            cache.assume(template, result.node_name)
            placed.append(template.uid)
    replayed = 0
    for position, template, result in seen:
        infos = snapshot.infos_at(position)
        if infos is None:
            continue
        replayed += 1
        found = run(replay(framework, infos, template))
        assert found["feasible_nodes"] == result.feasible_nodes
        totals = {card["node"]: card["total"] for card in found["scores"]}
        assert not totals or totals[result.node_name] == result.total == max(totals.values())
        if result.diagnosis is not None and not result.diagnosis.pre_filter_message:
            refused = result.diagnosis.node_statuses
            assert found["nodes"].keys() == set(refused)
            assert all(found["nodes"][name]["plugin"] == refused[name].plugin for name in refused)
    assert replayed
