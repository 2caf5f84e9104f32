"""Nodes and pods in numbers, and waiting until all of them are bound - each exactly once."""

import asyncio
from collections.abc import Callable, Iterable

from skysail.api.core import Pod
from skysail.api.errors import ApiError, Unreachable
from skysail.api.kinds import NODES, PODS, Kind
from skysail.api.raw import Raw
from skysail.client.api_client import ApiClient
from skysail.simulator.hollow import without_not_ready

LANES = 16


def plain_node(name: str, cpu: str = "32", memory: str = "256Gi", zone: str = "") -> Raw:
    """A Ready node."""
    room = {"cpu": cpu, "memory": memory, "pods": "250"}
    labels = {"kubernetes.io/hostname": name} | ({"topology.kubernetes.io/zone": zone} if zone else {})
    status = {"capacity": room, "allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"metadata": {"name": name, "labels": labels}, "status": status}


def plain_pod(name: str, scheduler: str, **spec: object) -> Raw:
    """A small pod for one scheduler."""
    container = {"name": "main", "image": "nginx", "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}}}
    return {
        "metadata": {"name": name, "labels": {"app": "load"}},
        "spec": {"schedulerName": scheduler, "containers": [container], **spec},
    }


async def create_all(client: ApiClient, kind: Kind, bodies: Iterable[Raw], namespace: str = "") -> None:
    """Create them over some lanes, again where the server was away."""
    rest = iter(bodies)

    async def lane() -> None:
        for body in rest:
            await _create(client, kind, body, namespace)

    async with asyncio.TaskGroup() as group:
        for _ in range(LANES):
            group.create_task(lane())


async def _create(client: ApiClient, kind: Kind, body: Raw, namespace: str) -> None:
    while True:
        try:
            await client.create(kind, body, namespace)
        except Unreachable:
            await asyncio.sleep(0.2)
        except ApiError as error:
            if error.code == 409 or error.status.code == 409:
                return
            if error.status.code < 500 and error.status.code != 429:
                raise
            await asyncio.sleep(0.2)
        else:
            return


async def create_nodes(client: ApiClient, nodes: Iterable[Raw]) -> None:
    """Create nodes, Ready and without the taint of new ones."""
    await create_all(client, NODES, nodes)
    for node in (await client.list_all(NODES)).items:
        if patch := without_not_ready(node):
            await client.patch(NODES, node.name, "", patch)


async def wait_bound(
    client: ApiClient, namespace: str, count: int, on_bound: Callable[[int], None] = lambda _: None
) -> list[Pod]:
    """Wait until so many pods are bound; through restarts of the server.

    Raises:
        AssertionError: A pod was seen on two nodes.
    """
    nodes: dict[str, str] = {}
    pods: dict[str, Pod] = {}

    def note(pod: Pod) -> None:
        pods[pod.uid] = pod
        if pod.spec.node_name:
            assert nodes.setdefault(pod.uid, pod.spec.node_name) == pod.spec.node_name, f"{pod.key} is on two nodes"
            on_bound(len(nodes))

    while len(nodes) < count:
        try:
            page = await client.list_all(PODS, namespace)
            for pod in page.items:
                note(pod)
            if len(nodes) >= count:
                break
            async for event in client.watch(PODS, namespace, resource_version=page.resource_version):
                if event.type in ("ADDED", "MODIFIED"):
                    note(event.object)
                if len(nodes) >= count:
                    break
        except (ApiError, Unreachable):
            await asyncio.sleep(0.2)
    return list(pods.values())


def assert_no_node_is_oversold(pods: Iterable[Pod], milli_cpu_of: Callable[[Pod], int], room: int) -> None:
    """No node holds more CPU than it has."""
    used: dict[str, int] = {}
    for pod in pods:
        used[pod.spec.node_name] = used.get(pod.spec.node_name, 0) + milli_cpu_of(pod)
    assert max(used.values()) <= room, used
