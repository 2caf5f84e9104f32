"""Defaults are filled in as kube-apiserver fills them in, and filling them in twice changes nothing."""

import json
from pathlib import Path
from typing import Any

import pytest

from skysail.apiserver.schema import load
from skysail.apiserver.strategies import for_resource
from skysail.apiserver.strategies.match_label_keys import merge_pod_affinity, merge_topology_spread

FUNCTIONS = Path(__file__).parent.parent / "golden/scheduler/functions"
DEFAULTS = json.loads((FUNCTIONS / "api_defaults.json").read_text())
MERGES = json.loads((FUNCTIONS / "match_label_keys_merge.json").read_text())
PLURALS = {(info.api_version, info.kind): info for info in load().resources}


def defaulted(obj: dict[str, Any]) -> dict[str, Any]:
    copy: dict[str, Any] = json.loads(json.dumps(obj))
    info = PLURALS[obj["apiVersion"], obj["kind"]]
    for_resource(info.group, info.resource).default(copy)
    return copy


@pytest.mark.parametrize("case", DEFAULTS, ids=[f"{n}-{case['input']['kind']}" for n, case in enumerate(DEFAULTS)])
def test_a_recorded_object_gets_the_recorded_defaults(case: dict[str, Any]) -> None:
    assert defaulted(case["input"]) == case["output"]


@pytest.mark.parametrize("case", DEFAULTS, ids=[f"{n}-{case['input']['kind']}" for n, case in enumerate(DEFAULTS)])
def test_defaults_are_stable(case: dict[str, Any]) -> None:
    assert defaulted(case["output"]) == case["output"]


@pytest.mark.parametrize("case", MERGES)
def test_label_keys_are_merged_as_recorded(case: dict[str, Any]) -> None:
    pod = json.loads(json.dumps(case["input"]))
    merge_pod_affinity(pod)
    merge_topology_spread(pod)
    for key, expected in case["output"].items():
        assert pod["spec"].get(key) == expected


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        ("0.5", "500m"), ("1000m", "1"), ("1024Mi", "1Gi"), ("1e3", "1e3"), ("0.1e1", "1"), ("1.5Gi", "1536Mi"),
        ("100000000n", "100m"), ("0", "0"), ("1E", "1E"), (2, "2"),
    ],
)  # fmt: skip
def test_amounts_get_their_canonical_form(asked: object, shown: str) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
    container = {"name": "c", "resources": {"requests": {"example.com/x": asked}}}
    made = defaulted({**pod, "spec": {"containers": [container]}})
    assert made["spec"]["containers"][0]["resources"]["requests"]["example.com/x"] == shown


def test_limits_become_requests_in_pods_but_not_in_templates() -> None:
    spec = {"containers": [{"name": "c", "resources": {"limits": {"cpu": "1"}}}]}
    pod = defaulted({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec})
    assert pod["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1"}
    holder = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}}
    deployment = defaulted({**holder, "spec": {"template": {"spec": spec}}})
    assert "requests" not in deployment["spec"]["template"]["spec"]["containers"][0]["resources"]


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("a", "Always"), ("a:latest", "Always"), ("a:1", "IfNotPresent"), ("r:5000/a", "Always"),
        ("r:5000/a:1", "IfNotPresent"), ("a@sha256:0123", "IfNotPresent"),
    ],
)  # fmt: skip
def test_the_pull_policy_follows_the_tag(image: str, policy: str) -> None:
    spec = {"containers": [{"name": "c", "image": image}]}
    pod = defaulted({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec})
    assert pod["spec"]["containers"][0]["imagePullPolicy"] == policy


def test_a_negative_grace_period_is_one_second_in_pods_only() -> None:
    spec = {"containers": [], "terminationGracePeriodSeconds": -3}
    pod = defaulted({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec})
    assert pod["spec"]["terminationGracePeriodSeconds"] == 1
    job = defaulted({"apiVersion": "batch/v1", "kind": "Job", "metadata": {}, "spec": {"template": {"spec": spec}}})
    assert job["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] == -3


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"podCIDR": "10.0.0.0/24"}, ("10.0.0.0/24", ["10.0.0.0/24"])),
        ({"podCIDRs": ["10.0.0.0/24", "fd00::/64"]}, ("10.0.0.0/24", ["10.0.0.0/24", "fd00::/64"])),
        ({"podCIDR": "10.1.0.0/24", "podCIDRs": ["10.0.0.0/24"]}, ("10.1.0.0/24", ["10.1.0.0/24"])),
    ],
)
def test_one_address_range_of_a_node_and_the_list_of_them_agree(spec: dict[str, Any], expected: object) -> None:
    node = defaulted({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "spec": spec})
    assert (node["spec"]["podCIDR"], node["spec"]["podCIDRs"]) == expected
