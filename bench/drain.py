"""Five thousand pods wait; a `skysail scheduler` process starts and binds them over HTTP.

    python bench/drain.py [--nodes 100] [--pods 5000]

Prints the rate and the scheduler's own CPU seconds per 1,000 pods, start-up left out.
"""

import argparse
import asyncio
import contextlib
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from skysail.api.kinds import NODES, PODS
from skysail.client.api_client import ApiClient
from skysail.client.http import HttpTransport
from skysail.client.kubeconfig import load
from skysail.simulator.clock import WallClock

_SKYSAIL = Path(sys.executable).with_name("skysail")
_TARGET_PER_SECOND = 3_000
_CREATORS = 16


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--pods", type=int, default=5_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home, _api_server(home) as kubeconfig:
        idle = _scheduler_cpu(kubeconfig, 0)
        asyncio.run(_fill(kubeconfig, options.nodes, options.pods))
        seconds, cpu = _scheduler_cpu(kubeconfig, options.pods)
    print(
        f"{options.pods} pods onto {options.nodes} nodes over HTTP: {options.pods / seconds:,.0f} pods/s "
        f"(target {_TARGET_PER_SECOND:,}), {(cpu - idle[1]) / options.pods * 1e3:.2f} CPU s per 1,000 pods"
    )


@contextlib.contextmanager
def _api_server(home: str) -> Iterator[str]:
    command = [str(_SKYSAIL), "apiserver", "--port", "0", "--insecure-http"]
    environment = {**os.environ, "HOME": home, "XDG_RUNTIME_DIR": home}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        kubeconfig = ""
        for line in process.stdout:
            found = re.search(r"KUBECONFIG=(\S+)", line)
            kubeconfig = found.group(1) if found else kubeconfig
            if line.startswith("ready"):
                break
        try:
            yield kubeconfig
        finally:
            process.send_signal(signal.SIGINT)
            process.wait()


async def _fill(kubeconfig: str, nodes: int, pods: int) -> None:
    async with _client(kubeconfig) as client, asyncio.TaskGroup() as group:
        for first in range(_CREATORS):
            group.create_task(_create(client, range(first, nodes, _CREATORS), range(first, pods, _CREATORS)))


async def _create(client: ApiClient, nodes: range, pods: range) -> None:
    allocatable = {"cpu": "128", "memory": "512Gi", "pods": "1000"}
    for number in nodes:
        meta = {"name": f"n{number}", "labels": {"kubernetes.io/hostname": f"n{number}"}}
        await client.create(
            NODES, {"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": {"allocatable": allocatable}}
        )
        await client.patch(NODES, f"n{number}", "", {"spec": {"taints": None}})
    container = {"name": "c", "image": "registry.test/app:1", "resources": {"requests": {"cpu": "100m"}}}
    for number in pods:
        pod = {"metadata": {"name": f"p{number}", "namespace": "default"}, "spec": {"containers": [container]}}
        await client.create(PODS, {"apiVersion": "v1", "kind": "Pod", **pod})


def _scheduler_cpu(kubeconfig: str, wanted: int) -> tuple[float, float]:
    """Run a scheduler until so many pods are bound; seconds from its first binding to its last, and its CPU time."""
    command = [str(_SKYSAIL), "scheduler", "--kubeconfig", kubeconfig, "--no-leader-elect", "--secure-port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    seconds = asyncio.run(_wait_bound(kubeconfig, wanted)) if wanted else time.sleep(3) or 0.0
    process.send_signal(signal.SIGTERM)
    _, _, usage = os.wait4(process.pid, 0)
    return seconds, usage.ru_utime + usage.ru_stime


async def _wait_bound(kubeconfig: str, wanted: int) -> float:
    async with _client(kubeconfig) as client:
        bound, first = 0, 0.0
        listed = await client.list(PODS, limit=1)
        async for event in client.watch(PODS, resource_version=listed.resource_version):
            if event.type == "MODIFIED" and event.object.spec.node_name:
                first = first or time.perf_counter()
                bound += 1
                if bound >= wanted:
                    break
        return time.perf_counter() - first


@contextlib.asynccontextmanager
async def _client(kubeconfig: str):
    clock = WallClock()
    transport = HttpTransport(load(kubeconfig), clock=clock)
    try:
        yield ApiClient(transport, user_agent="bench", clock=clock, rng=random.Random(0))
    finally:
        await transport.close()


if __name__ == "__main__":
    main()
