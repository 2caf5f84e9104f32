"""Nodes that fall silent: how they are marked, what becomes of their pods, and what happens when they return."""

from itertools import pairwise

from skysail.api.core import Pod, Toleration
from skysail.api.kinds import NODES
from skysail.api.node import Node
from skysail.controllers.pods import pod_condition
from skysail.simulator.hollow import HollowNode, numbered_nodes
from skysail.testing import make_deployment, make_pod

UNREACHABLE = "node.kubernetes.io/unreachable"


def taints(node: Node) -> list[tuple[str, str]]:
    return sorted((each.key, each.effect) for each in node.spec.taints)


def ready(node: Node) -> str:
    return next(each.status for each in node.status.conditions if each.type == "Ready")


async def start(cluster, nodes: "int | list[HollowNode]" = 3) -> None:
    await cluster.start_controllers(
        "node-lifecycle-controller", "taint-eviction-controller", "deployment-controller", "replicaset-controller"
    )
    await cluster.add_nodes(nodes)
    await cluster.start_scheduler()


async def test_a_silent_node_is_marked_after_its_grace_and_its_pods_are_not_ready(cluster):
    await start(cluster)
    await cluster.create(make_pod("web", node="node-0"))
    await cluster.settle()
    cluster.fail_node("node-0")
    await cluster.advance(40)
    assert ready(await cluster.get(Node, "node-0", "")) == "True"
    await cluster.advance(30)
    node = await cluster.get(Node, "node-0", "")
    assert ready(node) == "Unknown"
    assert taints(node) == [(UNREACHABLE, "NoExecute"), (UNREACHABLE, "NoSchedule")]
    assert pod_condition(await cluster.get(Pod, "web"), "Ready").status == "False"
    assert taints(await cluster.get(Node, "node-1", "")) == []


async def test_pods_leave_a_silent_node_when_their_toleration_ends_and_run_elsewhere(cluster):
    await start(cluster)
    await cluster.create(make_deployment("web", replicas=6))
    await cluster.settle()
    there = {pod.name for pod in await cluster.list(Pod) if pod.spec.node_name == "node-0"}
    assert there
    cluster.fail_node("node-0")
    await cluster.advance(340)
    assert not any(pod.metadata.deletion_timestamp for pod in await cluster.list(Pod))
    await cluster.advance(60)
    pods = await cluster.list(Pod)
    assert {pod.name for pod in pods if pod.metadata.deletion_timestamp is not None} == there
    assert sum(pod.spec.node_name != "node-0" and pod.status.phase == "Running" for pod in pods) == 6


async def test_a_node_that_returns_in_time_keeps_its_pods(cluster):
    await start(cluster)
    await cluster.create(make_pod("web", node="node-0"))
    await cluster.settle()
    before = (await cluster.get(Pod, "web")).uid
    cluster.fail_node("node-0")
    await cluster.advance(200)
    assert taints(await cluster.get(Node, "node-0", "")) != []
    cluster.recover_node("node-0")
    await cluster.advance(400)
    assert taints(await cluster.get(Node, "node-0", "")) == []
    pod = await cluster.get(Pod, "web")
    assert pod.uid == before
    assert pod_condition(pod, "Ready").status == "True"


async def test_a_pod_is_evicted_after_the_shortest_of_its_tolerations(cluster):
    await start(cluster)
    key = "example.com/broken"
    patient = Toleration(key=key, operator="Exists", effect="NoExecute", toleration_seconds=50)
    for_ever = Toleration(key=key, operator="Exists", effect="NoExecute")
    await cluster.create(
        make_pod("at-once", node="node-0"),
        make_pod("later", node="node-0", tolerations=[patient]),
        make_pod("never", node="node-0", tolerations=[for_ever]),
    )
    await cluster.settle()
    await cluster.client.patch(NODES, "node-0", "", {"spec": {"taints": [{"key": key, "effect": "NoExecute"}]}})
    await cluster.advance(20)
    assert [pod.name for pod in await cluster.list(Pod)] == ["later", "never"]
    await cluster.advance(40)
    assert [pod.name for pod in await cluster.list(Pod)] == ["never"]


async def test_an_eviction_is_called_off_when_the_taint_goes(cluster):
    await start(cluster)
    key = "example.com/broken"
    patient = Toleration(key=key, operator="Exists", effect="NoExecute", toleration_seconds=50)
    await cluster.create(make_pod("later", node="node-0", tolerations=[patient]))
    await cluster.settle()
    await cluster.client.patch(NODES, "node-0", "", {"spec": {"taints": [{"key": key, "effect": "NoExecute"}]}})
    await cluster.advance(20)
    await cluster.client.patch(NODES, "node-0", "", {"spec": {"taints": None}})
    await cluster.advance(100)
    assert [pod.name for pod in await cluster.list(Pod)] == ["later"]


async def test_a_zone_is_emptied_slowly_and_not_at_all_when_every_node_is_silent(cluster):
    nodes = numbered_nodes(20, zones=("a",))
    await start(cluster, nodes)
    for number in range(4):
        cluster.fail_node(f"node-{number}")
    marked: list[float] = []
    begin = cluster.clock.monotonic()
    while len(marked) < 4:
        await cluster.advance(1)
        assert cluster.clock.monotonic() - begin < 300
        count = sum((UNREACHABLE, "NoExecute") in taints(each) for each in await cluster.list(Node))
        marked += [cluster.clock.monotonic()] * (count - len(marked))
    assert all(9 <= later - earlier <= 11 for earlier, later in pairwise(marked))
    for number in range(4, 20):
        cluster.fail_node(f"node-{number}")
    await cluster.advance(200)
    all_nodes = await cluster.list(Node)
    assert all(ready(each) == "Unknown" for each in all_nodes)
    assert not any((UNREACHABLE, "NoExecute") in taints(each) for each in all_nodes)


async def test_a_pressure_becomes_a_taint_and_goes_with_it(cluster):
    await start(cluster)

    async def press(status: str) -> None:
        node = await cluster.get(Node, "node-0", "")
        conditions = [
            {"type": each.type, "status": status if each.type == "DiskPressure" else each.status}
            for each in node.status.conditions
        ]
        await cluster.client.patch(NODES, "node-0", "", {"status": {"conditions": conditions}}, subresource="status")
        await cluster.advance(5)

    await press("True")
    assert taints(await cluster.get(Node, "node-0", "")) == [("node.kubernetes.io/disk-pressure", "NoSchedule")]
    await press("False")
    assert taints(await cluster.get(Node, "node-0", "")) == []


async def test_watching_over_a_healthy_cluster_writes_nothing(cluster):
    await start(cluster)
    await cluster.create(make_pod("web", node="node-0"))
    await cluster.settle()
    before = {each.name: each.metadata.resource_version for each in await cluster.list(Node)}
    await cluster.advance(600)
    assert {each.name: each.metadata.resource_version for each in await cluster.list(Node)} == before
