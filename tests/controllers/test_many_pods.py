"""Thousands of pods become available, and for no pod is more written than needed. A tenth of it in `make test`."""

import os
from collections import Counter
from collections.abc import Sequence

import pytest

from skysail.api.apps import Deployment
from skysail.api.core import Pod
from skysail.api.ports import Request, Response, User
from skysail.controllers.pods import is_ready
from skysail.simulator.clock import run_virtual
from skysail.testing import make_deployment
from skysail.testing.calls import call_of
from skysail.testing.cluster import Cluster

PART = 1 if int(os.environ.get("SOAK_SEEDS", "10")) >= 100 else 10
LOADS = {
    "one-deployment": ([make_deployment("web", replicas=3_000 // PART)], 1.3),
    "one-replica-deployments": ([make_deployment(f"web-{number}") for number in range(600 // PART)], 9.0),
}
"""The deployments, and how many writes of the controllers there may be for a pod, Events aside."""


def count_writes(cluster: Cluster) -> Counter[str]:
    """From now on, how many writes the controllers make of what."""
    writes: Counter[str] = Counter()
    handle = cluster.server.handle

    async def counting(request: Request, user: User) -> Response:
        if request.method != "GET" and request.headers.get("user-agent", "").startswith("controllers"):
            writes[call_of(request).resource] += 1
        return await handle(request, user)

    cluster.server.handle = counting  # type: ignore[method-assign]
    return writes


async def roll_out(deployments: Sequence[Deployment], most_writes: float) -> None:
    async with Cluster() as cluster:
        await cluster.start_controllers("deployment-controller", "replicaset-controller")
        await cluster.add_nodes(60)
        await cluster.start_scheduler()
        writes = count_writes(cluster)
        await cluster.create(*deployments)
        await cluster.settle()
        wanted = sum(each.spec.replicas or 0 for each in deployments)
        pods = await cluster.list(Pod)
        assert len(pods) == wanted
        assert all(map(is_ready, pods))
        found = await cluster.list(Deployment)
        assert all(each.status.available_replicas == each.spec.replicas for each in found)
        assert writes["pods"] == wanted
        writes.pop("events", None)
        assert writes.total() <= most_writes * wanted


@pytest.mark.parametrize("load", LOADS)
def test_all_pods_become_available_and_each_takes_few_writes(load: str) -> None:
    run_virtual(roll_out(*LOADS[load]))
