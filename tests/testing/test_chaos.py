"""The whole cluster under faults by chance: whatever happened, it ends where it would have ended without them."""

import os
from collections import Counter

import pytest

from skysail.api.apps import Deployment, ReplicaSet
from skysail.api.core import Pod
from skysail.api.kinds import DEPLOYMENTS
from skysail.simulator.clock import run_virtual
from skysail.testing import Chaos, make_deployment
from skysail.testing.cluster import Cluster

SEEDS = range(int(os.environ.get("SOAK_SEEDS", "10")))
CASCADES = ("Background", "Foreground", "Orphan")
STORM = Chaos(
    refuse=0.05,
    lose_request=0.03,
    lose_answer=0.03,
    drop_watch=0.01,
    expire_watch=0.2,
    delay=0.05,
    delay_seconds=3.0,
)


async def storm(cluster):
    """Ten minutes of changes while everything fails now and then."""
    rng = cluster.rng
    await cluster.add_nodes(4)
    await cluster.start_controllers()
    await cluster.start_scheduler()
    cluster.faults.chaos = STORM
    for number in range(4):
        await cluster.create(make_deployment(f"app-{number}", replicas=rng.randrange(5)))
    for _ in range(12):
        await cluster.advance(rng.random() * 100)
        name = f"app-{rng.randrange(4)}"
        match rng.randrange(7):
            case 0:
                cluster.kill("controllers")
                await cluster.restart("controllers")
            case 1:
                cluster.kill("scheduler")
                await cluster.restart("scheduler")
            case 2:
                await cluster.client.scale(DEPLOYMENTS, name, "default", rng.randrange(6))
            case 3:
                image = {"name": "main", "image": f"registry.test/app:{rng.randrange(100)}"}
                patch = {"spec": {"template": {"spec": {"containers": [image]}}}}
                await cluster.client.patch(DEPLOYMENTS, name, "default", patch)
            case 4:
                cluster.stop_apiserver()
                await cluster.advance(rng.random() * 60)
                cluster.start_apiserver()
            case 5:
                with cluster.faults.partition():
                    await cluster.advance(rng.random() * 60)
            case 6:
                await cluster.client.delete(DEPLOYMENTS, name, "default", propagation=rng.choice(CASCADES))
                await cluster.advance(rng.random() * 60)
                await recreate(cluster, name)
    cluster.faults.clear()


async def recreate(cluster, name):
    """A new deployment of that name, as soon as the old one is gone."""

    async def is_gone():
        return name not in [each.name for each in await cluster.list(Deployment)]

    await cluster.wait_until(is_gone, timeout=3_600, what=f"{name} gone")
    await cluster.create(make_deployment(name, replicas=cluster.rng.randrange(5)))


@pytest.mark.parametrize("seed", SEEDS)
def test_after_the_storm_every_deployment_has_exactly_its_pods(seed):
    async def main(clock):
        async with Cluster(seed=seed) as cluster:
            await storm(cluster)
            await cluster.advance(1_000)
            await cluster.settle(timeout=7_200)
            await check(cluster)

    run_virtual(main)


async def check(cluster):
    pods = await cluster.list(Pod)
    assert {pod.status.phase for pod in pods} <= {"Running"}
    owned = Counter(pod.metadata.owner_references[0].uid for pod in pods)
    sets = await cluster.list(ReplicaSet)
    assert set(owned) <= {each.uid for each in sets}, "no pod outlives its set"
    for deployment in await cluster.list(Deployment):
        own = [each for each in sets if each.metadata.owner_references[0].uid == deployment.uid]
        assert sum(owned[each.uid] for each in own) == deployment.spec.replicas, deployment.name
        assert deployment.status.available_replicas == deployment.spec.replicas
        assert deployment.status.observed_generation == deployment.metadata.generation
        assert len([each for each in own if each.spec.replicas]) <= 1
