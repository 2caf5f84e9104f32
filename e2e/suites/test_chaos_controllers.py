"""Our controllers while everything around them dies: they converge, make nothing twice, and leave nothing behind."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from e2e.harness.control_plane import ControlPlane
from e2e.harness.disturbed import off_the_loop
from e2e.harness.processes import our_controllers, our_scheduler
from skysail.api.apps import Deployment
from skysail.api.core import Pod
from skysail.api.kinds import DEPLOYMENTS, NODES, PODS, REPLICASETS
from skysail.api.raw import Raw
from skysail.client.api_client import ApiClient
from skysail.controller.controller import Controller
from skysail.controllers.nodelifecycle.health import HealthSettings
from skysail.controllers.nodelifecycle.loop import NodeLifecycleController, NodeLifecycleSettings
from skysail.controllers.registry import CONTROLLERS
from skysail.simulator.hollow import HollowNode, HollowNodes, HollowSettings
from tests.conformance.components import running_controllers
from tests.conformance.conftest import connect
from tests.conformance.objects import deployment
from tests.conformance.waiting import wait_until

NAME = "default-scheduler"
DEPLOYED, REPLICAS = 20, 10
SECONDS = 120.0


@asynccontextmanager
async def hollow(control_plane: ControlPlane, names: Sequence[str]) -> AsyncIterator[None]:
    """Nodes that run what is bound to them, until the block is left: then they are silent, as dead ones."""
    nodes = HollowNodes([HollowNode(name) for name in names], HollowSettings(heartbeat_seconds=2.0))
    async with running_controllers(control_plane.kubeconfig, [nodes]):
        await nodes.wait_registered()
        yield


def tolerant(name: str) -> Raw:
    """A deployment whose pods leave a node two seconds after it died."""
    body = deployment(name, REPLICAS)
    body["spec"]["template"]["spec"]["tolerations"] = [
        {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 2}
        for key in ("not-ready", "unreachable")
    ]
    return body


def are_available(found: list[Deployment]) -> bool:
    return len(found) == DEPLOYED and all(each.status.available_replicas == REPLICAS for each in found)


def living(pods: list[Pod]) -> list[Pod]:
    return [pod for pod in pods if pod.metadata.deletion_timestamp is None]


async def assert_exact(client: ApiClient, among: set[str]) -> None:
    """As many pods as wanted, each owned by its replica set, all on these nodes."""
    pods = living((await client.list_all(PODS, "default")).items)
    assert len(pods) == DEPLOYED * REPLICAS
    sets = {each.uid: each for each in (await client.list_all(REPLICASETS, "default")).items}
    assert len(sets) == DEPLOYED
    assert {pod.metadata.owner_references[0].uid for pod in pods} == set(sets)
    assert {pod.spec.node_name for pod in pods} <= among


async def delete_all(client: ApiClient) -> None:
    """Delete the deployments; what they own is to go too."""
    for number in range(DEPLOYED):
        await client.delete(DEPLOYMENTS, f"web-{number}", "default", propagation="Background")
    await wait_until(client, REPLICASETS, "default", lambda found: not found, seconds=SECONDS)
    await wait_until(client, PODS, "default", lambda found: not found, seconds=SECONDS)


async def test_controllers_converge_whoever_dies(control_plane: ControlPlane) -> None:
    def strike() -> None:
        control_plane.compact()
        control_plane.kill("kube-apiserver")
        control_plane.kill("etcd")
        control_plane.start_etcd()
        control_plane.start_apiserver()

    names = [f"n{number}" for number in range(5)]
    async with connect(control_plane.kubeconfig) as client, hollow(control_plane, names):
        with our_scheduler(control_plane, NAME):
            with our_controllers(control_plane) as first:
                for number in range(DEPLOYED):
                    await client.create(DEPLOYMENTS, deployment(f"web-{number}", REPLICAS), "default")
                await wait_until(client, PODS, "default", lambda pods: len(pods) > DEPLOYED, seconds=SECONDS)
                first.kill()
            with our_controllers(control_plane):
                await off_the_loop(strike)()
                await wait_until(client, DEPLOYMENTS, "default", are_available, seconds=SECONDS)
                await assert_exact(client, set(names))
                await off_the_loop(strike)()
                await delete_all(client)


def controllers() -> list[Controller]:
    """All, of which one takes nodes for dead sooner."""
    health = HealthSettings(grace_seconds=8.0, startup_grace_seconds=8.0)
    quick = NodeLifecycleController(NodeLifecycleSettings(health=health))
    name = "node-lifecycle-controller"
    return [quick, *(make() for key, make in CONTROLLERS.items() if key != name)]


async def test_nodes_die_under_running_pods(control_plane: ControlPlane) -> None:
    dying, staying = ["d0", "d1"], ["s0", "s1", "s2"]
    async with connect(control_plane.kubeconfig) as client, hollow(control_plane, staying):
        with our_scheduler(control_plane, NAME):
            async with running_controllers(control_plane.kubeconfig, controllers()):
                async with hollow(control_plane, dying):
                    async with asyncio.TaskGroup() as group:
                        for number in range(DEPLOYED):
                            group.create_task(client.create(DEPLOYMENTS, tolerant(f"web-{number}"), "default"))
                    await wait_until(client, DEPLOYMENTS, "default", are_available, seconds=SECONDS)
                    await assert_exact(client, {*dying, *staying})
                await wait_until(client, PODS, "default", lambda pods: all_left(pods, dying), seconds=SECONDS)
                await wait_until(client, DEPLOYMENTS, "default", are_available, seconds=SECONDS)
                await assert_exact(client, set(staying))
                for name in dying:
                    await client.delete(NODES, name)
                await wait_until(
                    client, PODS, "default", lambda pods: len(pods) == DEPLOYED * REPLICAS, seconds=SECONDS
                )
                await delete_all(client)


def all_left(pods: list[Pod], nodes: Sequence[str]) -> bool:
    return not any(pod.spec.node_name in nodes for pod in living(pods))
