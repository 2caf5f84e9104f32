"""The cluster of `skysail up`, beside which people start things of their own."""

import asyncio
from random import Random

from skysail.api.kinds import LEASES, PODS
from skysail.apiserver.server import ApiServer
from skysail.controller.leader_elector import LeaderElector
from skysail.controller.lease import LeaderElection
from skysail.scheduler.app import Scheduler
from skysail.simulator.clock import run_virtual
from skysail.simulator.cluster import LocalCluster, default_configuration
from skysail.simulator.hollow import numbered_nodes
from skysail.testing import make_pod

LEASE = LeaderElection("kube-scheduler")


def test_a_second_scheduler_of_its_name_waits_until_the_cluster_ends():
    async def main(clock):
        server = ApiServer(clock=clock, rng=Random(1))
        async with server.running(), asyncio.TaskGroup() as group:
            cluster = LocalCluster(server, numbered_nodes(2), clock=clock, rng=Random(1), lease=LEASE)
            client = cluster.client_for("second")
            elector = LeaderElector(client, LEASE, "second", clock=clock, rng=Random(2))
            second = Scheduler(client, default_configuration(), clock=clock, rng=Random(2), elector=elector)
            async with cluster.running():
                await cluster.wait_nodes_ready()
                task = group.create_task(second.run())
                await client.create(PODS, make_pod("a", cpu="1"), "default")
                await asyncio.sleep(60)
                assert (await client.get(PODS, "a", "default")).spec.node_name
                assert (await client.get(LEASES, LEASE.name, LEASE.namespace)).spec.holder_identity == "skysail"
                assert not second.is_leading
            await asyncio.sleep(30)
            assert second.is_leading
            task.cancel()

    run_virtual(main)
