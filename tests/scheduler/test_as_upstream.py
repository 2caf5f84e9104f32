"""Rules that no recorded decision shows: each was put to the real scheduling framework of v1.36."""

from itertools import permutations
from typing import Any

from skysail.scheduler.explain import explain_scenario

Raw = dict[str, Any]
HOST = "kubernetes.io/hostname"


def node(name: str, labels: Raw | None = None, **allocatable: str) -> Raw:
    room = {"cpu": "4", "memory": "8Gi", "pods": "110"} | {
        key.replace("_", "-"): each for key, each in allocatable.items()
    }
    metadata = {"name": name, "labels": {HOST: name} | (labels or {})}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": {"allocatable": room}}


def pod(name: str = "p", requests: Raw | None = None, labels: Raw | None = None, **spec: Any) -> Raw:
    container = {"name": "c", "image": "img", "resources": {"requests": requests or {}}}
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", "labels": labels or {}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container], **spec}}


def decide(pod: Raw, *objects: Raw, **scenario: Any) -> Raw:
    return explain_scenario({"id": "x", "objects": list(objects), "pod": pod, **scenario})


def preferred(operator: str) -> Raw:
    selector = {"matchExpressions": [{"key": "a", "operator": operator}]}
    return {"weight": 1, "podAffinityTerm": {"labelSelector": selector, "topologyKey": HOST}}


def test_terms_that_cannot_be_read_are_named_by_the_list_they_stand_in():
    why = "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty"
    near = {"preferredDuringSchedulingIgnoredDuringExecution": [preferred("In")]}
    found = decide(pod(affinity={"podAffinity": near}), node("n0"))
    assert found["prefilter"]["reasons"] == [f"parsing pod: preferredAffinityTerms: {why}"]
    both = decide(pod(affinity={"podAffinity": near, "podAntiAffinity": near}), node("n0"))
    told = f"parsing pod: [preferredAffinityTerms: {why}, preferredAntiAffinityTerms: {why}]"
    assert both["prefilter"]["reasons"] == [told]


def test_one_list_of_terms_that_cannot_be_read_leaves_the_others_of_an_existing_pod():
    away = {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": HOST}
        ]
    }
    near = {"preferredDuringSchedulingIgnoredDuringExecution": [preferred("In")]}
    shy = pod("shy", nodeName="n0", affinity={"podAffinity": near, "podAntiAffinity": away})
    assert decide(pod(labels={"app": "web"}), node("n0"), node("n1"), shy)["feasible"] == ["n1"]


def claim(name: str, **status: Any) -> Raw:
    request = {"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}}
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    spec = {"devices": {"requests": [request]}}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": metadata, "spec": spec, **status}


def test_a_claim_is_only_let_go_where_the_plugin_was_asked():
    """Explaining asks every plugin about every node; what it remembers of that must not reach PostFilter."""
    elsewhere = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n9"]}]}]}
    result = {"request": "r", "driver": "d", "pool": "p", "device": "x"}
    allocated = claim("c", status={"allocation": {"devices": {"results": [result]}, "nodeSelector": elsewhere}})
    wanted = pod(requests={"cpu": "9"}, resourceClaims=[{"name": "c", "resourceClaimName": "c"}])
    found = decide(wanted, node("n0"), allocated)
    assert found["preemption"]["reasons"][0] == "still not schedulable"
    assert [each["plugin"] for each in found["also_failing"]["n0"]] == ["DynamicResources"]


def fit_scores(strategy: str, weights: dict[str, int], wanted: Raw, room: Raw) -> list[int]:
    resources = [{"name": name, "weight": weight} for name, weight in weights.items()]
    args = {"scoringStrategy": {"type": strategy, "resources": resources}}
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {"schedulerName": "default-scheduler", "pluginConfig": [{"name": "NodeResourcesFit", "args": args}]}
        ],
    }
    found = decide(pod(requests=wanted), node("n0", **room), node("n1", **room), config=config)
    return found["scores"]["NodeResourcesFit"]["raw"]


def test_resources_are_scored_whatever_their_order():
    """Their lines in the node table need not adjoin, nor ascend, even where the first and the last look as if."""
    wanted = {"cpu": "2", "memory": "2Gi", "ephemeral-storage": "1Gi", "example.com/a": "1"}
    room = {"ephemeral_storage": "10Gi", "example.com/a": "4"}
    used = {"cpu": 50, "memory": 25, "ephemeral-storage": 10, "example.com/a": 25}
    for names in permutations(used):
        for count in range(1, len(names) + 1):
            weights = {name: place + 1 for place, name in enumerate(names[:count])}
            expected = sum(used[name] * weight for name, weight in weights.items()) // sum(weights.values())
            assert fit_scores("MostAllocated", weights, wanted, room) == [expected, expected], names[:count]
