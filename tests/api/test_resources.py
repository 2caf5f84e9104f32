import json
from pathlib import Path

import msgspec
import pytest

from skysail.api.core import Pod
from skysail.api.resources import (
    is_extended_resource,
    is_scalar_resource,
    pod_nonzero_requests,
    pod_requests,
    pod_resources,
    request_quantities,
    resource_amounts,
)

VECTORS = json.loads((Path(__file__).parents[1] / "golden/scheduler/functions/pod_requests.json").read_text())


@pytest.mark.parametrize("number", range(len(VECTORS)))
def test_counts_pods_as_recorded(number):
    pod = msgspec.convert(VECTORS[number]["input"], Pod)
    want = VECTORS[number]["output"]
    assert {n: str(q) for n, q in request_quantities(pod, use_status=False).items()} == want["pod_requests"]
    got = pod_resources(pod)
    requested = want["node_requested"]
    counted = dict(got.requests)
    assert counted.pop("cpu", 0) == requested["milli_cpu"]
    assert counted.pop("memory", 0) == requested["memory"]
    assert counted.pop("ephemeral-storage", 0) == requested["ephemeral_storage"]
    assert counted == requested["scalar"]
    nonzero = want["node_nonzero_requested"]
    assert (got.nonzero_milli_cpu, got.nonzero_memory) == (nonzero["milli_cpu"], nonzero["memory"])


def pod(spec, status=None):
    return msgspec.convert({"spec": spec, "status": status or {}}, Pod)


def container(name="c", restart=None, **requests):
    policy = {"restartPolicy": restart} if restart else {}
    return {"name": name, "resources": {"requests": requests}, **policy}


def test_fractions_are_added_before_they_are_rounded_up():
    assert pod_requests(pod({"containers": [container(memory="1.5"), container(memory="1.5")]})) == {"memory": 3}


def test_an_init_container_counts_with_the_sidecars_started_before_it():
    spec = {
        "containers": [container(cpu="1")],
        "initContainers": [
            container("s", "Always", cpu="500m"),
            container("i", cpu="2"),
            container("t", "Always", cpu="1"),
        ],
    }
    assert pod_requests(pod(spec)) == {"cpu": 2500}


def resizing(reason):
    spec = {"containers": [container(cpu="3")]}
    status = {
        "conditions": [{"type": "PodResizePending", "reason": reason, "status": "True"}],
        "containerStatuses": [
            {"name": "c", "resources": {"requests": {"cpu": "1"}}, "allocatedResources": {"cpu": "2"}}
        ],
    }
    return pod(spec, status)


def test_a_resize_under_way_counts_its_largest_side_and_an_infeasible_one_only_what_is_granted():
    assert pod_requests(resizing("Deferred")) == {"cpu": 3000}
    assert pod_requests(resizing("Infeasible")) == {"cpu": 2000}


def test_pod_level_requests_are_resized_too():
    spec = {"containers": [container(cpu="1")], "resources": {"requests": {"cpu": "2", "memory": "1Gi"}}}
    status = {"resources": {"requests": {"cpu": "4"}}, "allocatedResources": {"cpu": "3"}}
    assert pod_requests(pod(spec, status)) == {"cpu": 4000, "memory": 1 << 30}
    status["conditions"] = [{"type": "PodResizePending", "reason": "Infeasible", "status": "True"}]
    assert pod_requests(pod(spec, status)) == {"cpu": 4000, "memory": 0}


def test_a_resource_that_only_the_kubelet_tells_of_does_not_replace_what_the_containers_ask_for():
    spec = {"containers": [container(memory="2Gi")], "resources": {"requests": {"cpu": "100m"}}}
    status = {"resources": {"requests": {"cpu": "300m", "memory": "1Mi"}}}
    assert pod_requests(pod(spec, status)) == {"cpu": 300, "memory": 2 << 30}


def test_an_infeasible_resize_may_leave_a_container_without_a_request_when_nodes_are_scored():
    granted = {"name": "c", "ready": True, "restartCount": 0, "image": "", "imageID": "", "resources": {"requests": {}}}
    pending = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
    refused = pod(
        {"containers": [container(cpu="1", memory="2Gi")]}, {"containerStatuses": [granted], "conditions": [pending]}
    )
    assert pod_requests(refused) == {}
    assert pod_nonzero_requests(refused) == (100, 200 << 20)


def test_a_pod_that_asks_for_nothing_is_not_free_when_nodes_are_scored():
    assert pod_requests(pod({"containers": [{"name": "c"}]})) == {}
    assert pod_nonzero_requests(pod({"containers": [{"name": "c"}, {"name": "d"}]})) == (200, 400 << 20)


def test_resources_nobody_accounts_for_are_left_out():
    got = pod_resources(
        pod({"containers": [{"name": "c", "resources": {"requests": {"pods": "1", "weird": "2", "a/b": "1"}}}]})
    )
    assert got.requests == {"a/b": 1}


@pytest.mark.parametrize(
    ("name", "extended", "scalar"),
    [
        ("nvidia.com/gpu", True, True),
        ("hugepages-2Mi", False, True),
        ("attachable-volumes-csi-x", False, True),
        ("kubernetes.io/batch", False, True),
        ("requests.a/b", False, False),
        ("a b/c", False, False),
        ("cpu", False, False),
    ],
)
def test_resource_names_are_sorted_into_their_families(name, extended, scalar):
    assert (is_extended_resource(name), is_scalar_resource(name)) == (extended, scalar)


def test_a_resource_list_becomes_whole_numbers():
    assert resource_amounts({"cpu": "3.5", "memory": "1Ki", "pods": "110"}) == {
        "cpu": 3500,
        "memory": 1024,
        "pods": 110,
    }
