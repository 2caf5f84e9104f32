"""Hollow nodes do what a cluster above them expects of nodes."""

from datetime import timedelta

import msgspec
import pytest

from skysail.api.coordination import Lease
from skysail.api.core import Container, Pod
from skysail.api.kinds import PODS
from skysail.api.meta import parse_time
from skysail.api.node import Node
from skysail.simulator.hollow import HollowNode, HollowSettings, numbered_nodes
from skysail.simulator.hollow_pods import EXIT_CODE, RUN_SECONDS, PodLatencies, ending_of
from skysail.testing import make_pod

SLOW = HollowSettings(latencies=PodLatencies(start_seconds=5, ready_seconds=10, stop_seconds=20))


def ready(obj):
    return next((each.status for each in obj.status.conditions if each.type == "Ready"), "")


async def test_nodes_register_ready_and_without_the_taint_of_creation(cluster):
    node = HollowNode(
        "big", zone="z", capacity={"cpu": "64", "memory": "1Ti", "pods": "250", "nvidia.com/gpu": "8"},
        labels={"disk": "ssd"}, taints=[{"key": "gpu", "effect": "NoSchedule"}], annotations={"note": "x"},
    )  # fmt: skip
    await cluster.add_nodes([node, HollowNode("plain")])
    big = await cluster.get(Node, "big", "")
    assert ready(big) == "True"
    assert [taint.key for taint in big.spec.taints] == ["gpu"]
    assert big.status.allocatable["nvidia.com/gpu"] == "8"
    assert big.metadata.labels["topology.kubernetes.io/zone"] == "z"
    assert big.metadata.labels["kubernetes.io/hostname"] == "big"
    assert big.metadata.labels["disk"] == "ssd"
    assert big.metadata.annotations["note"] == "x"
    plain = await cluster.get(Node, "plain", "")
    assert plain.spec.taints == ()
    assert "topology.kubernetes.io/zone" not in plain.metadata.labels


async def test_leases_are_renewed_and_belong_to_their_nodes(cluster):
    await cluster.add_nodes(3)
    await cluster.advance(300)
    leases = await cluster.list(Lease, "kube-node-lease")
    assert [lease.name for lease in leases] == ["node-0", "node-1", "node-2"]
    for lease in leases:
        assert lease.metadata.owner_references[0].kind == "Node"
        assert cluster.clock.now() - parse_time(lease.spec.renew_time) < timedelta(seconds=15)


async def test_a_pod_goes_from_bound_to_running_to_ready_in_its_time(cluster):
    await cluster.add_nodes(1, SLOW)
    await cluster.create(make_pod("web", node="node-0"))
    await cluster.advance(4)
    assert (await cluster.get(Pod, "web")).status.phase == "Pending"
    await cluster.advance(2)
    pod = await cluster.get(Pod, "web")
    assert (pod.status.phase, ready(pod)) == ("Running", "False")
    await cluster.advance(10)
    pod = await cluster.get(Pod, "web")
    assert (pod.status.phase, ready(pod)) == ("Running", "True")
    assert pod.status.pod_ip
    assert pod.status.host_ip
    assert pod.status.start_time is not None
    [container] = pod.status.container_statuses
    assert (container.ready, container.started, container.restart_count) == (True, True, 0)
    assert container.state.running.started_at is not None


@pytest.mark.parametrize(("grace", "gone_after"), [(None, 20), (8, 8), (0, 0)])
async def test_a_deleted_pod_goes_after_its_time_and_never_later_than_its_grace(cluster, grace, gone_after):
    await cluster.add_nodes(1, SLOW)
    await cluster.create(make_pod("web", node="node-0"))
    await cluster.settle()
    await cluster.client.delete(PODS, "web", "default", grace_period_seconds=grace)
    if gone_after:
        await cluster.advance(gone_after - 1)
        assert len(await cluster.list(Pod)) == 1
    await cluster.advance(2)
    assert await cluster.list(Pod) == []


@pytest.mark.parametrize(("code", "phase"), [("0", "Succeeded"), ("7", "Failed")])
async def test_a_pod_that_is_told_how_to_end_ends_so(cluster, code, phase):
    await cluster.add_nodes(1)
    await cluster.create(make_pod("run", node="node-0", annotations={RUN_SECONDS: "30", EXIT_CODE: code}))
    await cluster.advance(20)
    assert (await cluster.get(Pod, "run")).status.phase == "Running"
    await cluster.advance(20)
    pod = await cluster.get(Pod, "run")
    assert pod.status.phase == phase
    ended = pod.status.container_statuses[0].state.terminated
    assert (ended.exit_code, ended.finished_at - ended.started_at) == (int(code), timedelta(seconds=30))


@pytest.mark.parametrize(
    ("command", "restart", "expected"),
    [
        (("sleep", "5"), "Never", (5.0, 0)),
        (("sh", "-c", "sleep 2m; exit 3"), "OnFailure", (120.0, 3)),
        (("sh", "-c", "exit 1"), "Never", (1.0, 1)),
        (("sleep", "5"), "Always", None),
        (("nginx",), "Never", None),
    ],
)
def test_a_command_says_how_long_a_pod_runs(command, restart, expected):
    pod = make_pod(containers=[Container(name="main", image="x", command=command)])
    pod = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, restart_policy=restart))
    found = ending_of(pod, PodLatencies())
    assert (None if found is None else (found.after_seconds, found.exit_code)) == expected


async def test_a_restarted_set_of_nodes_goes_on_where_it_was(cluster):
    await cluster.add_nodes(2)
    await cluster.create(make_pod("run", node="node-0", annotations={RUN_SECONDS: "100"}), make_pod("b", node="node-1"))
    await cluster.advance(20)
    address = (await cluster.get(Pod, "b")).status.pod_ip
    cluster.kill("hollow-nodes")
    await cluster.advance(5)
    await cluster.add_nodes(2)
    await cluster.advance(150)
    assert (await cluster.get(Pod, "run")).status.phase == "Succeeded"
    assert (await cluster.get(Pod, "b")).status.pod_ip == address


async def test_pods_of_one_node_have_addresses_of_their_own(cluster):
    await cluster.add_nodes(2)
    await cluster.create(*(make_pod(f"p-{number}", node=f"node-{number % 2}") for number in range(60)))
    await cluster.settle()
    addresses = [pod.status.pod_ip for pod in await cluster.list(Pod)]
    assert len(set(addresses)) == 60


def test_nodes_are_dealt_out_to_the_zones_in_turn():
    assert [node.zone for node in numbered_nodes(5, zones=("a", "b"))] == ["a", "b", "a", "b", "a"]
    assert [node.name for node in numbered_nodes(2, prefix="n")] == ["n0", "n1"]
    assert numbered_nodes(1, zones=())[0].zone == ""
