"""A rollout keeps its promises whatever goes wrong between the controllers and the server."""

import os

import pytest

from skysail.api.apps import Deployment, ReplicaSet
from skysail.api.core import Pod
from skysail.api.kinds import DEPLOYMENTS
from skysail.client.bodies import STRATEGIC
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
