"""Pods that need a kubelet feature go where it is declared."""

import random

import pytest

from skysail.api.core import Container, ContainerRestartRule, Pod, PodSpec
from skysail.api.meta import ObjectMeta
from skysail.api.node import Node, NodeStatus
from skysail.scheduler.algorithm import schedule_pod
from skysail.scheduler.cache.cluster_cache import ClusterCache
from skysail.scheduler.cache.pod_info import PodInfo
from skysail.scheduler.cache.snapshot import Snapshot
from skysail.scheduler.scenario import build_framework, build_world, resolve_profiles

NEEDS_RESTART = PodSpec(
    containers=(Container(restart_policy_rules=(ContainerRestartRule(action="RestartAllContainers"),)),)
)
NEEDS_USER_NAMESPACES = PodSpec(host_network=True, host_users=False)


def node(name: str, *features: str) -> Node:
    return Node(
        metadata=ObjectMeta(name=name),
        status=NodeStatus(allocatable={"pods": "10"}, declared_features=features),
    )


@pytest.mark.parametrize(
    ("spec", "feature"),
    [
        (NEEDS_RESTART, "RestartAllContainersOnContainerExits"),
        (NEEDS_USER_NAMESPACES, "UserNamespacesHostNetworkSupport"),
    ],
)
@pytest.mark.parametrize("incremental", [True, False])
def test_only_nodes_that_declare_the_needed_feature_pass(spec: PodSpec, feature: str, incremental: bool) -> None:
    world = build_world((), {})
    framework = build_framework(resolve_profiles(None, world.gates)[0], world)
    cache, snapshot = ClusterCache(), Snapshot()
    cache.add_node(node("bare"))
    cache.update_snapshot(snapshot)
    info, dice = PodInfo(Pod(metadata=ObjectMeta(uid="p"), spec=spec)), random.Random(0)
    refused = schedule_pod(framework, snapshot, info, dice, incremental=incremental)
    assert refused.diagnosis is not None
    told = "0/1 nodes are available: 1 node(s) didn't match Pod's required features."
    assert refused.diagnosis.message() == told
    cache.add_node(node("able", feature, "Other"))
    cache.update_snapshot(snapshot)
    assert schedule_pod(framework, snapshot, info, dice, incremental=incremental).node_name == "able"
