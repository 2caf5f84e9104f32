"""Pods that fill a cluster to the last one, and something that breaks in the middle of them.

The nodes hold exactly the pods there are: whatever a scheduler forgets, counts twice or holds on to keeps pods waiting.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

from e2e.harness.control_plane import ControlPlane
from e2e.harness.workload import assert_no_node_is_oversold, create_all, create_nodes, plain_node, plain_pod, wait_bound
from skysail.api.core import Pod
from skysail.api.kinds import PODS
from skysail.api.resources import pod_requests
from skysail.client.api_client import ApiClient
from tests.conformance.conftest import connect

COUNT = 2_000
PODS_A_NODE = 40
_MILLI_A_POD = 10
_SECONDS = 180
_SECONDS_AFTERWARDS = 120


@contextlib.asynccontextmanager
async def loaded(
    control_plane: ControlPlane, scheduler: str, count: int = COUNT, *, spare_nodes: int = 0
) -> AsyncIterator[ApiClient]:
    """A cluster with nodes for so many pods, and the pods, for one scheduler to bind."""
    async with connect(control_plane.kubeconfig) as client:
        await make_nodes(client, count // PODS_A_NODE + spare_nodes)
        await make_pods(client, scheduler, range(count))
        yield client


async def make_nodes(client: ApiClient, count: int) -> None:
    """Nodes `n0`, `n1`, ... of `PODS_A_NODE` pods each."""
    cpu = f"{PODS_A_NODE * _MILLI_A_POD}m"
    await create_nodes(client, [plain_node(f"n{number}", cpu=cpu) for number in range(count)])


async def make_pods(client: ApiClient, scheduler: str, numbers: range) -> None:
    """Pods `p0`, `p1`, ..."""
    await create_all(client, PODS, [plain_pod(f"p{number}", scheduler) for number in numbers], "default")


async def assert_all_are_bound_once(
    client: ApiClient, disturb: Callable[[], Awaitable[None]], count: int = COUNT
) -> None:
    """Wait until all are bound, and disturb once, when a third of them are.

    Raises:
        AssertionError: A pod was on two nodes, a node is oversold, or nothing was disturbed.
        TimeoutError: A pod is not bound after three minutes.
    """
    disturbed: list[asyncio.Task[None]] = []

    async def disturbing() -> None:
        await disturb()

    def on_bound(bound: int) -> None:
        if bound >= count // 3 and not disturbed:
            disturbed.append(group.create_task(disturbing()))

    async with asyncio.timeout(_SECONDS), asyncio.TaskGroup() as group:
        pods = await wait_bound(client, "default", count, on_bound)
    assert disturbed
    assert_they_fit(pods, count)


async def assert_all_come_to_be_bound(client: ApiClient, count: int) -> None:
    """Wait until all are bound.

    Raises:
        AssertionError: A pod was on two nodes, or a node is oversold.
        TimeoutError: A pod is not bound after two minutes.
    """
    async with asyncio.timeout(_SECONDS_AFTERWARDS):
        pods = await wait_bound(client, "default", count)
    assert_they_fit(pods, count)


def assert_they_fit(pods: list[Pod], count: int) -> None:
    """So many pods, and no node has more than it holds."""
    assert len({pod.uid for pod in pods}) == count
    assert_no_node_is_oversold(pods, milli_cpu_of, PODS_A_NODE * _MILLI_A_POD)


def milli_cpu_of(pod: Pod) -> int:
    """What a pod asks for."""
    return pod_requests(pod)["cpu"]


def off_the_loop(disturb: Callable[[], object]) -> Callable[[], Awaitable[None]]:
    """Run what blocks in a thread."""

    async def run() -> None:
        await asyncio.get_running_loop().run_in_executor(None, disturb)

    return run


def sockets_of(pid: int) -> int:
    """How many sockets a process holds open."""
    held = 0
    for each in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            held += each.readlink().name.startswith("socket:")
    return held
