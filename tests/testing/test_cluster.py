import pytest

from skysail.api.core import Pod
from skysail.api.errors import NotFound
from skysail.api.node import Node
from skysail.testing import make_nodes, make_pod


async def test_a_fresh_cluster_has_its_namespaces_and_nothing_else(cluster):
    assert await cluster.list(Pod) == []
    assert await cluster.list(Node) == []


async def test_objects_are_created_and_read_back(cluster):
    made = await cluster.create(*make_nodes(2), make_pod("web", cpu="1"))
    assert made[2].uid
    assert (await cluster.get(Pod, "web")).spec.containers[0].resources.requests == {"cpu": "1"}
    with pytest.raises(NotFound):
        await cluster.get(Pod, "other")
