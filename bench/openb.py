"""The OpenB trace to its end: 1,213 nodes and 8,152 pods created through the API and scheduled, in one process."""

import asyncio
import random
import time
from pathlib import Path

from skysail.api.kinds import NODES, PODS
from skysail.apiserver.server import ApiServer
from skysail.simulator.clock import WallClock
from skysail.simulator.cluster import LocalCluster
from skysail.simulator.settling import wait_pods_decided
from skysail.simulator.traces import read_openb_nodes, read_openb_pods

_TRACE = Path(__file__).resolve().parents[1] / "tests" / "golden" / "openb"
_TARGET_SECONDS = 30


def main() -> None:
    asyncio.run(_run())


async def _run() -> None:
    nodes = read_openb_nodes(_TRACE / "openb_node_list_gpu_node.csv")
    pods = read_openb_pods(_TRACE / "openb_pod_list_default.csv")
    clock, rng = WallClock(), random.Random(0)
    async with ApiServer(clock=clock, rng=rng).running() as server:
        cluster = LocalCluster(server, [], clock=clock, rng=rng)
        async with cluster.running():
            await cluster.wait_nodes_ready()
            started, cpu = time.perf_counter(), time.process_time()
            for node in nodes:
                made = await cluster.client.create(NODES, node)
                await cluster.client.patch(NODES, made.name, "", {"spec": {"taints": None}})
            for pod in pods:
                await cluster.client.create(PODS, pod, "default")
            created = time.perf_counter() - started
            await wait_pods_decided(cluster, len(pods))
            seconds = time.perf_counter() - started
            bound = sum(1 for pod in cluster.pods if pod.spec.node_name)
    print(
        f"{len(nodes)} nodes, {len(pods)} pods: created in {created:.1f} s, all decided in {seconds:.1f} s "
        f"({time.process_time() - cpu:.1f} CPU s; target {_TARGET_SECONDS} s), "
        f"{bound} bound, {len(pods) - bound} pending"
    )
