import doctest

import msgspec
import pytest

from skysail import testing
from skysail.api.core import Pod
from skysail.api.meta import ObjectMeta
from skysail.testing import (
    HOSTNAME,
    ZONE,
    affinity,
    away_from,
    builders,
    calls,
    make_config_map,
    make_container,
    make_deployment,
    make_disruption_budget,
    make_job,
    make_namespace,
    make_node,
    make_nodes,
    make_pod,
    make_priority_class,
    make_replica_set,
    make_service,
    near,
    node_term,
    owner_of,
    placement,
    require_nodes,
    spread_over,
    taint,
    tolerate,
    workloads,
)


def wire(obj):
    """The object as it goes over the wire."""
    return msgspec.json.decode(msgspec.json.encode(obj))


@pytest.mark.parametrize("module", [testing, builders, placement, workloads, calls], ids=lambda module: module.__name__)
def test_the_examples_in_the_docstrings_are_true(module):
    results = doctest.testmod(module)
    assert results.attempted > 0
    assert results.failed == 0


def test_a_plain_pod_has_one_container_and_nothing_else():
    assert wire(make_pod()) == {
        "metadata": {"name": "pod", "namespace": "default"},
        "spec": {"containers": [{"name": "main", "image": "registry.test/app:1", "resources": {}}]},
        "status": {},
    }


def test_a_pod_says_what_it_is_told_to():
    pod = make_pod(
        "p",
        "team",
        requests={"nvidia.com/gpu": "1"},
        init_containers=[make_container("side", cpu="100m", sidecar=True)],
        gates=["wait"],
        host_ports=[80],
        phase="Running",
        ready=True,
        priority=7,
        owner=owner_of(make_replica_set("rs")),
    )
    assert pod.spec.containers[0].ports[0].host_port == 80
    assert pod.spec.init_containers[0].restart_policy == "Always"
    assert pod.status.conditions[0].status == "True"
    assert (pod.metadata.owner_references[0].kind, pod.metadata.owner_references[0].controller) == ("ReplicaSet", True)


def test_nodes_are_dealt_out_to_zones():
    nodes = make_nodes(3, zones=("a", "b"))
    assert [node.metadata.labels[ZONE] for node in nodes] == ["a", "b", "a"]
    assert nodes[2].metadata.labels[HOSTNAME] == "node-2"
    assert make_node(capacity={"nvidia.com/gpu": "8"}).status.allocatable["nvidia.com/gpu"] == "8"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("gpu=a:NoSchedule", ("gpu", "Equal", "a", "NoSchedule")),
        ("gpu:NoExecute", ("gpu", "Exists", "", "NoExecute")),
        ("gpu", ("gpu", "Exists", "", "")),
        ("", ("", "Exists", "", "")),
    ],
)
def test_tolerations_are_written_as_kubectl_writes_taints(text, wanted):
    toleration = tolerate(text)
    assert (toleration.key, toleration.operator, toleration.value, toleration.effect) == wanted
    assert taint("a=b:NoSchedule").value == "b"


def test_affinities_put_each_term_in_its_place():
    built = affinity(
        nodes=require_nodes({"disk": "ssd"}, {"zone": ("a", "b"), "gpu": None}),
        prefer_nodes=[(5, node_term({"zone": "a"}))],
        near=[near({"app": "db"})],
        prefer_near=[(3, near({"app": "cache"}, HOSTNAME))],
        prefer_away=[(9, away_from({"app": "web"}, HOSTNAME))],
    )
    selector = built.node_affinity.required_during_scheduling_ignored_during_execution
    assert [[(e.key, e.operator, e.values) for e in t.match_expressions] for t in selector.node_selector_terms] == [
        [("disk", "In", ("ssd",))],
        [("zone", "In", ("a", "b")), ("gpu", "Exists", ())],
    ]
    assert built.node_affinity.preferred_during_scheduling_ignored_during_execution[0].weight == 5
    assert built.pod_affinity.required_during_scheduling_ignored_during_execution[0].topology_key == ZONE
    assert built.pod_anti_affinity.preferred_during_scheduling_ignored_during_execution[0].weight == 9
    assert affinity() == affinity(near=[])
    assert spread_over({"app": "web"}, hard=False).when_unsatisfiable == "ScheduleAnyway"


def test_templates_carry_labels_and_spec():
    web = wire(make_deployment("web", replicas=2, cpu="1", max_surge="25%"))
    assert web["spec"]["template"]["metadata"]["labels"] == {"app": "web"} == web["spec"]["selector"]["matchLabels"]
    assert web["spec"]["template"]["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "1"}}
    assert web["spec"]["strategy"] == {"rollingUpdate": {"maxSurge": "25%"}}
    assert wire(make_job("j"))["spec"]["template"]["spec"]["restartPolicy"] == "Never"


async def test_the_server_accepts_every_kind_of_built_object(cluster):
    objects = [
        make_namespace("team"),
        make_priority_class("high", 1000),
        make_config_map("c", a="1"),
        make_service(),
        make_disruption_budget(min_available="50%"),
        make_deployment(strategy="Recreate"),
        make_replica_set(namespace="team"),
        make_job(parallelism=2),
        make_node(taints=[taint("a=b:NoSchedule")], images={"x:1": 5}),
        make_pod(
            affinity=affinity(nodes=require_nodes({"a": "b"})), tolerations=[tolerate("x")], priority_class="high"
        ),
    ]
    made = await cluster.create(*objects)
    assert all(obj.uid for obj in made)
    pod: Pod = made[-1]
    assert pod.spec.priority == 1000
    assert pod.metadata != ObjectMeta()
