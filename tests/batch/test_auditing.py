"""What is believed of the cluster is held against a fresh list, and set right without a restart."""

import msgspec
import pytest

from skysail.api.core import Pod
from skysail.testing.builders import make_pod
from tests.batch.test_batch_app import Batch, gang, gpu_container, running, set_up


@pytest.fixture
def batch(cluster):
    return Batch(cluster)


async def test_c09_a_pod_that_is_gone_unnoticed_is_found_within_one_period_and_its_room_given_on(cluster, batch):
    await set_up(batch, nodes=1)
    await batch.settle()
    world, auditing = batch.engine.world, batch.engine.auditing
    ghost = make_pod("ghost", uid="ghost", scheduler="other", node="node-0", containers=gpu_container(8))
    world.set_pod(msgspec.structs.replace(ghost, status=msgspec.structs.replace(ghost.status, phase="Running")))
    await gang(cluster, "waits", 4)
    await batch.settle()
    assert await running(cluster, "waits") == []
    await cluster.advance(320.0)
    assert len(await running(cluster, "waits")) == 4
    assert (auditing.statistics.differences, auditing.statistics.repairs) == (1, 1)
    await cluster.advance(320.0)
    assert auditing.statistics.repairs == 1
    assert auditing.statistics.audits >= 2


@pytest.mark.parametrize("lost", ["pod", "node"])
async def test_c09_what_was_never_seen_is_found_on_demand(cluster, batch, lost):
    await set_up(batch, nodes=2)
    await gang(cluster, "job", 8)
    await batch.settle()
    world = batch.engine.world
    if lost == "node":
        world.remove_node("node-1")
    else:
        (pod, *_) = await cluster.list(Pod)
        world.remove_pod(pod.uid)
    found = await batch.engine.auditing.audit()
    assert len(found) == 1
    assert await batch.engine.auditing.audit() == []
    assert {node.name for node in world.nodes()} == {"node-0", "node-1"}
    assert len(world.tasks) == 8


async def test_what_the_watch_has_yet_to_show_is_no_difference(cluster, batch):
    await set_up(batch, nodes=1)
    await batch.settle()
    await gang(cluster, "job", 4)
    assert await batch.engine.auditing.audit() == []
    assert batch.engine.auditing.statistics.repairs == 0
