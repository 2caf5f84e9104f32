"""The batch engine of a local cluster costs nothing until somebody uses it, whatever the first use is."""

import pytest

from skysail.api.kinds import CONFIGMAPS, PODS
from skysail.batch.kinds import POD_GROUPS, QUEUES
from skysail.controller.customresources.installing import DEFINITIONS
from skysail.informer.factory import InformerFactory
from skysail.simulator.batch_on_demand import BatchOnDemand
from skysail.testing import make_config_map, make_pod

GADGETS = {
    "metadata": {"name": "gadgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "gadgets", "kind": "Gadget"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    },
}


class Process:
    runs = 0

    async def run(self):
        self.runs += 1


async def process_on_demand(cluster):
    made = Process()
    informers = InformerFactory(cluster.client, clock=cluster.clock, rng=cluster.rng)

    async def run(client):
        async with informers:
            await BatchOnDemand(client, informers, lambda: made).run()

    await cluster.run("batch", run)
    await cluster.settle()
    return made


def pod(scheduler):
    return {
        "metadata": {"name": scheduler},
        "spec": {"schedulerName": scheduler, "containers": [{"name": "c", "image": "i"}]},
    }


FIRST_USES = {
    "a pod of its scheduler": (PODS, pod("sky-scheduler"), "default"),
    "a queue": (QUEUES, {"metadata": {"name": "team"}, "spec": {}}, ""),
    "a pod group": (POD_GROUPS, {"metadata": {"name": "gang"}, "spec": {"minMember": 2}}, "default"),
    "somebody else's kind": (DEFINITIONS, GADGETS, ""),
}


@pytest.mark.parametrize("use", FIRST_USES)
async def test_the_first_use_starts_it(cluster, use):
    process = await process_on_demand(cluster)
    await cluster.client.create(*FIRST_USES[use])
    await cluster.advance(1)
    assert process.runs == 1


async def test_nothing_else_does(cluster):
    process = await process_on_demand(cluster)
    await cluster.create(make_pod("web"), make_config_map("settings"))
    await cluster.client.create(PODS, pod("other-scheduler"), "default")
    await cluster.advance(600)
    assert await cluster.list(CONFIGMAPS)
    assert process.runs == 0
