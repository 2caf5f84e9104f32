"""Explaining goes further than deciding, and a plugin that fails only there spoils nothing."""

from skysail.scheduler.explain import explain_scenario

CLASS = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "any"}, "spec": {}}
SLICE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceSlice",
    "metadata": {"name": "s"},
    "spec": {
        "driver": "x.test",
        "nodeName": "n1",
        "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "d"}],
    },
}
CLAIM = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {"name": "c", "namespace": "default", "uid": "c"},
    "spec": {
        "devices": {
            "requests": [
                {
                    "name": "r",
                    "exactly": {
                        "deviceClassName": "any",
                        "allocationMode": "ExactCount",
                        "count": 1,
                        "selectors": [{"cel": {"expression": 'device.attributes["x.test"].absent == "y"'}}],
                    },
                }
            ]
        }
    },
}


def node(name, **spec):
    allocatable = {"cpu": "1", "memory": "1Gi", "pods": "10"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "spec": spec,
        "status": {"allocatable": allocatable},
    }


POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "default", "uid": "p"},
    "spec": {
        "containers": [{"name": "c", "image": "x", "resources": {"claims": [{"name": "c"}]}}],
        "resourceClaims": [{"name": "c", "resourceClaimName": "c"}],
    },
}


def test_a_plugin_that_would_fail_where_another_refused_before_it_is_not_told_of():
    tainted = node("n1", taints=[{"key": "k", "effect": "NoSchedule"}])
    scenario = {"id": "x", "objects": [tainted, node("n2"), CLASS, SLICE, CLAIM], "pod": POD}
    decision = explain_scenario(scenario)
    assert {name: status["plugin"] for name, status in decision["filter"].items()} == {
        "n1": "TaintToleration",
        "n2": "DynamicResources",
    }
    assert "also_failing" not in decision


def test_a_plugin_that_fails_in_the_attempt_is_told_of():
    scenario = {"id": "x", "objects": [node("n1"), CLASS, SLICE, CLAIM], "pod": POD}
    assert "no such key: absent" in explain_scenario(scenario)["cycle_error"]


def test_a_plugin_that_fails_before_any_node_is_looked_at_is_told_of_with_those_that_had_nothing_to_do():
    rack = {"key": "rack", "operator": "Gt", "values": ["second"]}
    allocation = {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [rack]}]}}
    claim = {**CLAIM, "status": {"allocation": allocation}}
    decision = explain_scenario({"id": "x", "objects": [node("n1"), claim], "pod": POD})
    told = decision["prefilter"]
    assert (told["code"], told["plugin"], told["reasons"]) == ("Error", "DynamicResources", [decision["cycle_error"]])
    assert "NodePorts" in told["skipped_filter_plugins"]
    assert "filter" not in decision
