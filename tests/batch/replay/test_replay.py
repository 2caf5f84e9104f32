"""Scenarios: what is refused, what a line says, and that a run repeats exactly."""

import pytest
import yaml

from skysail.api.errors import ConfigError
from skysail.testing.batch_replay.scenario import read_scenario

API = "scheduling.skysail.io/v1alpha1"


def node(name, cpu="4"):
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {"capacity": {"cpu": cpu}}}


def queue(name, **spec):
    return {"apiVersion": API, "kind": "Queue", "metadata": {"name": name}, "spec": spec}


def group(name, **spec):
    return {"apiVersion": API, "kind": "PodGroup", "metadata": {"name": name}, "spec": spec}


def pod(name, of="", cpu="1"):
    labels = {"scheduling.skysail.io/pod-group": of} if of else {}
    containers = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]
    spec = {"schedulerName": "sky-scheduler", "containers": containers}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec}


RECLAIM = {
    "objects": [
        node("n0"), node("n1"), queue("a", deserved={"cpu": 4}), queue("b", deserved={"cpu": 4}),
        group("g", queue="a"), pod("p0", "g", "3"), pod("p1", "g", "3"),
    ],
    "steps": [{"at": 3, "apply": [group("h", queue="b"), pod("q0", "h", "3")]}],
}  # fmt: skip


def test_a_line_a_cycle_and_a_final_one(replay):
    cycles, final = replay(**RECLAIM, run={"cycles": 12})
    assert [line["cycle"] for line in cycles] == list(range(1, 13))
    assert cycles[0]["binds"] == [{"pod": "default/p0", "node": "n0"}, {"pod": "default/p1", "node": "n1"}]
    (reclaim,) = [line for line in cycles if line["evictions"]]
    assert reclaim["evictions"] == [{"pod": "default/p1", "for": "default/h"}]
    assert reclaim["claims"][0]["victims"] == ["default/p1"]
    assert reclaim["outcomes"]["default/h"]["code"] == "WaitingVictims"
    assert cycles[-1]["outcomes"] == {}
    assert cycles[-1]["writes"] == 0
    assert final["pods"] == {"Running": 2}
    assert final["queues"]["b"]["held"] == {"cpu": 3000, "pods": 1}
    assert final["ledger_equals_rebuild"] is True


def test_the_same_file_and_seed_give_the_same_lines(replay):
    assert replay(**RECLAIM, run={"cycles": 8}) == replay(**RECLAIM, run={"cycles": 8})


def test_a_crash_between_eviction_and_binding_loses_no_claim(replay):
    steps = [*RECLAIM["steps"], {"at": 3.03, "crash": "scheduler"}]
    cycles, final = replay(objects=RECLAIM["objects"], steps=steps, run={"until": 15})
    evictions = [each for line in cycles for each in line["evictions"]]
    assert [each["pod"] for each in evictions].count("default/p1") <= 2
    assert final["queues"]["b"]["held"] == {"cpu": 3000, "pods": 1}
    assert final["ledger_equals_rebuild"] is True


def test_a_refused_binding_is_tried_again(replay):
    steps = [{"at": 2, "failBind": {"match": "late*", "times": 1}}, {"at": 3, "apply": pod("late-0")}]
    cycles, final = replay(objects=[node("n0"), node("n1")], steps=steps, run={"until": 15})
    assert len([each for line in cycles for each in line["binds"]]) == 2
    assert final["pods"] == {"Running": 1}


def test_late_news_delays_the_decision(replay):
    steps = [{"at": 1, "delayWatch": {"kind": "Pod", "seconds": 5}}, {"at": 2, "apply": pod("p")}]
    cycles, _ = replay(objects=[node("n0")], steps=steps, run={"until": 12})
    (bound,) = [line["at"] for line in cycles if line["binds"]]
    assert 7 <= bound < 8


def test_a_new_node_and_new_devices_wake_who_waits(replay):
    steps = [
        {"at": 3, "addNode": {"name": "n1", "capacity": {"cpu": 8}}},
        {"at": 5, "setDevice": {"node": "n1", "resource": "nvidia.com/gpu", "count": 1}},
    ]
    gpu = pod("gpu")
    gpu["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": 1}}
    cycles, _ = replay(objects=[node("n0"), pod("large", cpu="8"), gpu], steps=steps, run={"until": 10})
    assert {code["code"] for code in cycles[0]["outcomes"].values()} == {"NoNode"}
    when = {each["pod"]: line["at"] for line in cycles for each in line["binds"]}
    assert 3 <= when["default/large"] < 4
    assert 5 <= when["default/gpu"] < 6


def test_objects_are_patched_and_deleted(replay):
    steps = [
        {"at": 2, "patch": {"kind": "Queue", "name": "a", "patch": {"spec": {"capability": {"cpu": 4}}}}},
        {"at": 4, "delete": {"kind": "Pod", "name": "p0"}},
    ]
    objects = [node("n0"), queue("a", capability={"cpu": 1}), group("g", queue="a"), pod("p0", "g"), pod("p1", "g")]
    cycles, final = replay(objects=objects, steps=steps, run={"until": 8})
    assert len(cycles[0]["binds"]) == 1
    assert final["pods"] == {"Running": 1}


def test_a_silent_nodes_pods_are_replaced_by_nobody_but_the_ledger_stays_true(replay):
    steps = [{"at": 2, "failNode": "n0"}, {"at": 60, "recoverNode": "n0"}]
    _, final = replay(objects=[node("n0"), pod("p")], steps=steps, run={"until": 90})
    assert final["ledger_equals_rebuild"] is True


@pytest.mark.parametrize(
    ("scenario", "words"),
    [
        ({"objekts": []}, "objekts"),
        ({"steps": [{"at": 1}]}, "steps[0]"),
        ({"steps": [{"at": 1, "crash": "kubelet"}]}, "steps[0].crash"),
        ({"steps": [{"at": 1, "failBind": {"matches": "x"}}]}, "matches"),
        ({"steps": [{"at": 1, "delete": {"kind": "Nothing", "name": "x"}}]}, "Nothing"),
        ({"objects": [{"kind": "Pod"}]}, "objects[0]"),
        ({"run": {}}, "run"),
        ({"run": {"cycles": 1, "until": 2}}, "run"),
        ({"objectFiles": ["none.yaml"]}, "none.yaml"),
    ],
)
def test_what_a_scenario_does_not_know_is_refused_with_its_place(tmp_path, scenario, words):
    file = tmp_path / "scenario.yaml"
    file.write_text(yaml.safe_dump(scenario))
    with pytest.raises(ConfigError) as caught:
        read_scenario(file)
    assert words in str(caught.value)
