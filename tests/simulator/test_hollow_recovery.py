from skysail.api.core import Pod
from skysail.api.kinds import NODES, PODS
from skysail.api.node import Node
from skysail.testing import make_pod


def ready(obj):
    return next(each.status for each in obj.status.conditions if each.type == "Ready")


async def test_a_node_that_was_given_up_says_that_it_lives_and_that_its_pods_are_ready(cluster):
    await cluster.add_nodes(2)
    await cluster.create(make_pod("web", node="node-0"))
    await cluster.settle()
    unknown = {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}
    await cluster.client.patch(NODES, "node-0", "", unknown, subresource="status")
    await cluster.client.patch(PODS, "web", "default", NOT_READY, subresource="status")
    await cluster.advance(30)
    assert ready(await cluster.get(Node, "node-0")) == "True"
    assert ready(await cluster.get(Pod, "web")) == "True"


NOT_READY = {
    "status": {"conditions": [{"type": "Ready", "status": "False"}, {"type": "ContainersReady", "status": "True"}]}
}


async def test_a_pod_whose_containers_are_made_unready_by_a_test_stays_so(cluster):
    await cluster.add_nodes(1)
    await cluster.create(make_pod("web", node="node-0"))
    await cluster.settle()
    conditions = [{"type": each, "status": "False"} for each in ("Ready", "ContainersReady")]
    await cluster.client.patch(PODS, "web", "default", {"status": {"conditions": conditions}}, subresource="status")
    await cluster.advance(60)
    assert ready(await cluster.get(Pod, "web")) == "False"


async def test_nodes_register_in_the_end_however_often_the_server_refuses(cluster):
    cluster.faults.lose_requests(verb="create", resource="nodes", times=3)
    cluster.faults.lose_answers(verb="create", resource="leases", times=2)
    await cluster.add_nodes(3)
    assert [ready(each) for each in await cluster.list(Node)] == ["True"] * 3
