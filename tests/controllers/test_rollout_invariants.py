"""A rollout keeps its promises whatever goes wrong between the controllers and the server."""

import os
from collections.abc import Awaitable, Callable

import pytest

from skysail.api.apps import Deployment, ReplicaSet
from skysail.api.core import Pod
from skysail.api.kinds import DEPLOYMENTS
from skysail.client.bodies import STRATEGIC
from skysail.controllers.deployment.revisions import REVISION
from skysail.controllers.pods import is_ready
from skysail.simulator.clock import run_virtual
from skysail.simulator.hollow import HollowSettings
from skysail.simulator.hollow_pods import PodLatencies
from skysail.testing import Chaos, make_deployment
from skysail.testing.cluster import Cluster
from tests.controllers.audit import Audit

SEEDS = range(int(os.environ.get("SOAK_SEEDS", "10")))
CONTROLLERS = ("deployment-controller", "replicaset-controller", "garbage-collector-controller")
ROUGH = Chaos(
    refuse=0.05, lose_request=0.03, lose_answer=0.03, drop_watch=0.02, expire_watch=0.05, delay=0.1, delay_seconds=2.0
)
REQUESTS = 40
"""At least so many requests the controllers make in a rollout of three pods, Events aside."""
SLOW_PODS = HollowSettings(latencies=PodLatencies(start_seconds=1.0, ready_seconds=1.0, stop_seconds=2.0))


def image(name: str) -> dict[str, object]:
    return {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": name}]}}}}


async def prepare(cluster: Cluster, audit: Audit) -> None:
    """A cluster with a web deployment of 6 that is available."""
    await cluster.start_controllers(*CONTROLLERS)
    await cluster.add_nodes(3, SLOW_PODS)
    await cluster.start_scheduler()
    await audit.start(cluster)
    await cluster.create(make_deployment("web", replicas=6, max_surge=2, max_unavailable=1))
    await cluster.settle()


async def set_image(cluster: Cluster, name: str) -> None:
    await cluster.client.patch(DEPLOYMENTS, "web", "default", image(name), patch_type=STRATEGIC)


async def check_end(cluster: Cluster, wanted_image: str, replicas: int) -> None:
    """The last template alone has pods, and everybody says so."""
    pods = await cluster.list(Pod)
    assert len(pods) == replicas
    assert all(is_ready(pod) and pod.spec.containers[0].image == wanted_image for pod in pods)
    deployment = await cluster.get(Deployment, "web")
    status = deployment.status
    assert (status.replicas, status.updated_replicas, status.available_replicas) == (replicas,) * 3
    assert status.observed_generation == deployment.metadata.generation
    sets = await cluster.list(ReplicaSet)
    assert sorted(item.spec.replicas or 0 for item in sets) == [*[0] * (len(sets) - 1), replicas]


@pytest.mark.parametrize("seed", SEEDS)
def test_two_overlapping_rollouts_keep_their_bounds_under_chaos(seed: int) -> None:
    async def run() -> None:
        audit = Audit(most=8, least=5)
        async with Cluster(seed=seed) as cluster:
            await prepare(cluster, audit)
            faults = cluster.components["controllers"].faults
            faults.chaos = ROUGH
            await set_image(cluster, "web:2")
            await cluster.advance(cluster.rng.uniform(0, 12))
            await set_image(cluster, "web:3")
            await cluster.advance(120)
            faults.clear()
            await cluster.settle()
            assert faults.struck > 5
            assert audit.broken == []
            await check_end(cluster, "web:3", 6)

    run_virtual(run())


async def _rollout_with_crash(cluster: Cluster, crash: Callable[[Cluster], Awaitable[bool]]) -> bool:
    """Roll out once, with a crash on the way and a restart after it; whether the crash happened."""
    await cluster.start_controllers(*CONTROLLERS)
    await cluster.add_nodes(2)
    await cluster.start_scheduler()
    await cluster.create(make_deployment("web", replicas=3))
    await cluster.settle()
    await set_image(cluster, "web:2")
    crashed = await crash(cluster)
    if crashed:
        await cluster.restart("controllers")
    await cluster.settle()
    await check_end(cluster, "web:2", 3)
    sets = sorted(await cluster.list(ReplicaSet), key=lambda item: item.metadata.annotations[REVISION])
    assert [(item.metadata.annotations[REVISION], item.spec.replicas) for item in sets] == [("1", 0), ("2", 3)]
    return crashed


@pytest.mark.parametrize("seed", SEEDS)
def test_a_crash_at_any_request_of_a_rollout_changes_nothing_in_the_end(seed: int) -> None:
    async def crash(cluster: Cluster) -> bool:
        component = cluster.components["controllers"]
        component.faults.crash_at(seed * 7 % REQUESTS + 1, after=seed % 2 == 1)
        await cluster.settle()
        component.faults.clear()
        return component.has_crashed

    async def run() -> None:
        async with Cluster(seed=seed) as cluster:
            assert await _rollout_with_crash(cluster, crash)

    run_virtual(run())


@pytest.mark.parametrize("seed", SEEDS)
def test_a_kill_at_any_await_of_a_rollout_changes_nothing_in_the_end(seed: int) -> None:
    async def run() -> None:
        async with Cluster(seed=seed) as cluster:

            async def crash(cluster: Cluster) -> bool:
                await cluster.advance(cluster.rng.choice((0.0, 0.25, 0.5, 0.75, 1.0)))
                await cluster.crash_after("controllers", cluster.rng.randrange(40))
                return True

            await _rollout_with_crash(cluster, crash)

    run_virtual(run())
