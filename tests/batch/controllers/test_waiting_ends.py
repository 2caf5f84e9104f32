"""What a gang waited for is said no longer once it has its place, whatever gave it that."""

from skysail.api.kinds import JOBS
from skysail.batch.kinds import POD_GROUPS, QUEUES
from skysail.simulator.hollow import HollowNode
from tests.batch.controllers.test_foreign_live import job, on_cluster


async def waits_for(cluster, name):
    status = (await cluster.client.get(POD_GROUPS, name, "default")).status
    return status.phase, [each.code for each in status.scheduling_conditions]


def test_a_gang_that_was_promised_room_and_has_it():
    async def act(cluster):
        for name in ("a", "b"):
            await cluster.client.create(QUEUES, {"metadata": {"name": name}, "spec": {"deserved": {"cpu": 32}}})
        sweep = job("sweep", 64, {"scheduling.skysail.io/queue": "a"})
        sweep["metadata"]["annotations"] = {"scheduling.skysail.io/min-member": "1"}
        sweep["spec"]["template"]["metadata"]["labels"] = {"scheduling.skysail.io/queue": "a"}
        await cluster.client.create(JOBS, sweep, "default")
        await cluster.settle()
        train = job("train", 4)
        train["spec"]["template"]["metadata"]["labels"] = {"scheduling.skysail.io/queue": "b"}
        await cluster.client.create(JOBS, train, "default")
        await cluster.settle()
        assert await waits_for(cluster, "job-train") == ("Running", [])

    on_cluster(act)


def test_a_gang_for_which_a_node_came():
    async def act(cluster):
        await cluster.client.create(JOBS, job("train", 3, cpu="30"), "default")
        await cluster.settle()
        assert await waits_for(cluster, "job-train") == ("Inqueue", ["NotEnough"])
        await cluster.add_nodes([HollowNode("more")])
        await cluster.settle()
        assert await waits_for(cluster, "job-train") == ("Running", [])

    on_cluster(act)
