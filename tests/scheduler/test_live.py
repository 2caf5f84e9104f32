import asyncio
from pathlib import Path

import pytest

from skysail.api.core import Pod
from skysail.api.errors import ConfigError, NotFound
from skysail.api.ports import Request, Response
from skysail.scheduler.cache.node_info import NodeInfo
from skysail.scheduler.explain import explain_scenario, load_scenarios
from skysail.scheduler.framework.cycle_state import CycleState
from skysail.scheduler.framework.handle import Handle
from skysail.scheduler.framework.status import SUCCESS, Status
from skysail.scheduler.limited import LimitedTransport
from skysail.scheduler.live import live_scenario
from skysail.scheduler.profiles import plugin_factories
from skysail.simulator.clock import run_virtual
from tests.scheduler.world import World, in_world

GOLDEN = Path(__file__).parents[1] / "golden" / "scheduler"


@in_world
async def test_a_live_clusters_pod_is_explained_as_a_recorded_one(world: World):
    await world.node("n1")
    await world.node("n2", cpu="32")
    await world.pod("big", cpu="16")
    scenario = await live_scenario(world.client, "default", "big")
    decision = explain_scenario(scenario)
    assert decision["feasible"] == ["n2"]
    assert decision["filter"]["n1"]["reasons"] == ["Insufficient cpu"]


@in_world
async def test_a_bound_pod_is_explained_as_if_it_were_not(world: World):
    await world.node("n1", cpu="1")
    pod = await world.pod("web", cpu="800m")
    await world.client.bind("default", "web", pod.uid, "n1")
    scenario = await live_scenario(world.client, "default", "web")
    assert explain_scenario(scenario)["feasible"] == ["n1"]


class Picky:
    name = "Picky"

    def __init__(self, args: object, handle: Handle) -> None:
        pass

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        return Status.unschedulable("not to its taste") if node.name == "n1" else SUCCESS

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> tuple[int, Status]:
        return (70 if node.name == "n3" else 20), SUCCESS


@in_world
async def test_plugins_of_ones_own_are_explained(world: World):
    for name in ("n1", "n2", "n3"):
        await world.node(name)
    await world.pod("web")
    profile = {
        "schedulerName": "default-scheduler",
        "plugins": {"multiPoint": {"enabled": [{"name": "Picky"}]}, "score": {"enabled": [{"name": "Picky"}]}},
    }
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile],
    }
    scenario = await live_scenario(world.client, "default", "web") | {"config": config}
    decision = explain_scenario(scenario, factories=plugin_factories([Picky]))
    assert decision["filter"]["n1"]["reasons"] == ["not to its taste"]
    assert decision["scores"]["Picky"]["raw"] == [20, 70]
    with pytest.raises(ConfigError, match="Picky"):
        explain_scenario(scenario)
    with pytest.raises(ConfigError, match="'other'; the configuration has default-scheduler"):
        explain_scenario(
            scenario | {"pod": {**scenario["pod"], "spec": {"schedulerName": "other"}}},
            factories=plugin_factories([Picky]),
        )


@in_world
async def test_what_is_told_of_a_live_pod_has_the_fields_of_the_recorded_decisions(world: World):
    recorded = [each["expected"] for each in load_scenarios(GOLDEN / "mixed.json.gz")]
    await world.node("n1")
    await world.node("n2")
    for name, cpu, scored in (("fits", "1", True), ("big", "16", False)):
        await world.pod(name, cpu=cpu)
        decision = explain_scenario(await live_scenario(world.client, "default", name))
        assert decision["score_phase_run"] is scored
        alike = [each for each in recorded if each["score_phase_run"] is scored]
        assert decision.keys() <= {field for each in recorded for field in each}
        assert decision.keys() >= set.intersection(*(set(each) for each in alike))


@in_world
async def test_an_unknown_pod_is_not_found(world: World):
    with pytest.raises(NotFound):
        await live_scenario(world.client, "default", "nobody")


class Instant:
    """Answers at once and notes when it was asked."""

    def __init__(self, clock) -> None:
        self.clock, self.asked = clock, []

    async def request(self, request: Request) -> Response:
        self.asked.append((request.path, self.clock.monotonic()))
        return Response(200)

    async def close(self) -> None:
        self.asked.append(("closed", 0.0))


def test_a_configured_rate_holds_requests_back_but_never_the_lease():
    async def main(clock):
        inner = Instant(clock)
        transport = LimitedTransport(inner, clock, per_second=10.0, burst=2)
        async with asyncio.TaskGroup() as group:
            for number in range(4):
                group.create_task(transport.request(Request("GET", f"/api/v1/pods/{number}")))
            group.create_task(transport.request(Request("PUT", "/apis/coordination.k8s.io/v1/leases/mine")))
        await transport.close()
        times = sorted(round(at, 3) for path, at in inner.asked if "pods" in path)
        assert times == [0.0, 0.0, 0.1, 0.2]
        assert [at for path, at in inner.asked if "lease" in path] == [0.0]

    run_virtual(main)
