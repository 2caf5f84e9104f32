"""What breaks at night, in the middle of 2,000 pods: every pod is bound once, whoever dies."""

import asyncio
import contextlib
import json
import subprocess
import urllib.request
from collections.abc import AsyncIterator, Callable

from e2e.harness.control_plane import HOST, ControlPlane
from e2e.harness.processes import cpu_seconds_of, our_scheduler, scheduler_command
from e2e.harness.workload import assert_no_node_is_oversold, create_all, create_nodes, plain_node, plain_pod, wait_bound
from skysail.api.kinds import NODES, PODS
from skysail.api.resources import pod_requests
from skysail.client.api_client import ApiClient
from tests.conformance.conftest import connect

COUNT = 2_000
NAME = "sky-chaos"


@contextlib.asynccontextmanager
async def loaded(control_plane: ControlPlane) -> AsyncIterator[ApiClient]:
    async with connect(control_plane.kubeconfig) as client:
        await create_nodes(client, [plain_node(f"n{number}") for number in range(50)])
        await create_all(client, PODS, [plain_pod(f"p{number}", NAME) for number in range(COUNT)], "default")
        yield client


async def bind_all(client: ApiClient, disturb: Callable[[], None], at: int = COUNT // 3) -> None:
    """Wait until all are bound, and disturb once in the middle, off the event loop."""
    loop, disturbed = asyncio.get_running_loop(), []

    def on_bound(count: int) -> None:
        if count >= at and not disturbed:
            disturbed.append(loop.run_in_executor(None, disturb))

    async with asyncio.timeout(180):
        pods = await wait_bound(client, "default", COUNT, on_bound)
        assert disturbed
        await disturbed[0]
    assert len({pod.uid for pod in pods}) == COUNT
    assert_no_node_is_oversold(pods, lambda pod: pod_requests(pod)["cpu"], 32_000)


async def test_our_scheduler_dies_and_another_takes_over(control_plane: ControlPlane) -> None:
    async with loaded(control_plane) as client:
        command = scheduler_command(control_plane, NAME, elect=True)
        replicas = start_replicas(command)
        try:
            await bind_all(client, lambda: kill_leader(control_plane, replicas))
        finally:
            for replica in replicas:
                replica.kill()
                replica.wait()


def start_replicas(command: list[str]) -> list[subprocess.Popen[bytes]]:
    return [subprocess.Popen(command, stderr=subprocess.DEVNULL) for _ in range(2)]


def kill_leader(control_plane: ControlPlane, replicas: list[subprocess.Popen[bytes]]) -> None:
    """Kill the replica that has used most CPU: the one that schedules."""
    max(replicas, key=lambda replica: cpu_seconds_of(replica.pid)).kill()


async def test_kube_apiserver_dies_and_comes_back(control_plane: ControlPlane) -> None:
    def restart() -> None:
        control_plane.kill("kube-apiserver")
        control_plane.start_apiserver()

    async with loaded(control_plane) as client:
        with our_scheduler(control_plane, NAME):
            await bind_all(client, restart)


async def test_etcd_dies_and_comes_back(control_plane: ControlPlane) -> None:
    def restart() -> None:
        control_plane.kill("etcd")
        control_plane.start_etcd()

    async with loaded(control_plane) as client:
        with our_scheduler(control_plane, NAME):
            await bind_all(client, restart)


async def test_history_is_compacted_under_the_watches(control_plane: ControlPlane) -> None:
    def compact_and_restart() -> None:
        url = f"http://{HOST}:{control_plane.etcd_port}/v3"
        status = json.load(urllib.request.urlopen(post(f"{url}/maintenance/status", {})))
        revision = status["header"]["revision"]
        urllib.request.urlopen(post(f"{url}/kv/compaction", {"revision": revision, "physical": True})).read()
        control_plane.kill("kube-apiserver")  # its watch cache would hide the compaction
        control_plane.start_apiserver()

    async with loaded(control_plane) as client:
        with our_scheduler(control_plane, NAME):
            await bind_all(client, compact_and_restart)


def post(url: str, body: dict[str, object]) -> urllib.request.Request:
    return urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})


async def test_a_node_goes_while_pods_are_bound_to_it(control_plane: ControlPlane) -> None:
    async with loaded(control_plane) as client:
        loop = asyncio.get_running_loop()

        def remove() -> None:
            asyncio.run_coroutine_threadsafe(client.delete(NODES, "n0"), loop).result(30)

        with our_scheduler(control_plane, NAME):
            await bind_all(client, remove)
