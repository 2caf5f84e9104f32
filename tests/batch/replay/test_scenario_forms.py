"""The forms in which a scenario may say things, and what is refused: at the door where that can be seen there."""

import pytest
import yaml

from skysail.api.errors import ConfigError
from skysail.testing.batch_replay.scenario import read_scenario

ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
API = "scheduling.skysail.io/v1alpha1"


def node(name, **more):
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, **more}


def pod(name, cpu="1", namespace="default", **labels):
    containers = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]
    spec = {"schedulerName": "sky-scheduler", "containers": containers}
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def queue(name, **spec):
    return {"apiVersion": API, "kind": "Queue", "metadata": {"name": name}, "spec": spec}


def bound(cycles):
    return {each["pod"]: each["node"] for line in cycles for each in line["binds"]}


def when(cycles, pod):
    return next(line["at"] for line in cycles if pod in [each["pod"] for each in line["binds"]])


@pytest.mark.parametrize(
    "form",
    [
        {"kind": "Pod", "name": "a"},
        {"kind": "pod", "name": "a", "namespace": "default"},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}},
        [{"kind": "pods", "name": "a"}],
        "Pod/a",
        "pod/default/a",
        {"kind": "Pod", "name": "a", "gracePeriodSeconds": 0},
    ],
    ids=str,
)
def test_what_is_deleted_is_named_in_any_form(replay, form):
    _, final = replay(nodes=1, objects=[pod("a"), pod("b")], steps=[{"at": 2, "delete": form}], run={"until": 6})
    assert final["pods"] == {"Running": 1}


@pytest.mark.parametrize(
    "form",
    [
        {"kind": "Queue", "name": "default", "patch": {"spec": {"capability": {"cpu": 4}}}},
        queue("default", capability={"cpu": 4}),
        {"kind": "Queue", "name": "default", "type": "json",
         "patch": [{"op": "replace", "path": "/spec/capability/cpu", "value": 4}]},
    ],
    ids=["patch", "manifest", "json"],
)  # fmt: skip
def test_a_change_is_a_patch_or_a_manifest(replay, form):
    objects = [queue("default", capability={"cpu": 1}), pod("a"), pod("b")]
    cycles, final = replay(nodes=1, objects=objects, steps=[{"at": 2, "patch": form}], run={"until": 6})
    assert final["pods"] == {"Running": 2}
    assert max(when(cycles, f"default/{name}") for name in "ab") >= 2


def test_a_status_in_a_patch_reaches_the_status(replay):
    steps = [{"at": 2, "patch": {"kind": "Pod", "name": "a", "patch": {"status": {"phase": "Failed"}}}}]
    cycles, final = replay(nodes=1, objects=[pod("a", "5"), pod("b", "5")], steps=steps, run={"until": 6})
    assert final["pods"] == {"Failed": 1, "Running": 1}
    assert when(cycles, "default/b") >= 2


@pytest.mark.parametrize(
    "form",
    [
        "late",
        {"name": "late", "capacity": {"cpu": 16}},
        {"name": "late", "allocatable": {"cpu": "16"}},
        node("late", status={"capacity": {"cpu": "16"}}),
        [{"metadata": {"name": "late"}, "status": {"allocatable": {"cpu": "16"}}}],
    ],
    ids=str,
)
def test_a_node_is_added_in_any_form(replay, form):
    cycles, _ = replay(objects=[pod("a", "7")], steps=[{"at": 3, "addNode": form}], run={"until": 8})
    assert bound(cycles) == {"default/a": "late"}


def test_a_cordoned_node_is_not_used_before_it_is_uncordoned(replay):
    steps = [{"at": 4, "apply": node("n", spec={"unschedulable": False})}]
    cycles, _ = replay(objects=[node("n", spec={"unschedulable": True}), pod("a")], steps=steps, run={"until": 8})
    assert when(cycles, "default/a") >= 4


def test_a_node_applied_again_changes(replay):
    steps = [{"at": 4, "apply": node("n", status={"capacity": {"cpu": "16"}})}]
    cycles, _ = replay(objects=[node("n"), pod("a", "12")], steps=steps, run={"until": 8})
    assert when(cycles, "default/a") >= 4


def test_several_acts_of_one_moment_happen_in_their_order(replay):
    steps = [{"at": 2, "addNode": "n", "apply": [pod("a"), pod("b")], "delete": "Pod/b"}]
    cycles, final = replay(steps=steps, run={"until": 6})
    assert final["pods"] == {"Running": 1}
    assert bound(cycles)["default/a"] == "n"


def test_a_list_of_objects_and_objects_that_need_others_later_in_the_file(replay):
    important = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "high"},
        "value": 9,
    }
    urgent = pod("a", namespace="team")
    urgent["spec"]["priorityClassName"] = "high"
    objects = [{"apiVersion": "v1", "kind": "List", "items": [urgent, important]}]
    cycles, _ = replay(nodes=1, objects=objects, run={"cycles": 3})
    assert bound(cycles) == {"team/a": "node-0"}


def test_without_an_end_it_runs_on_after_the_last_step(replay):
    cycles, _ = replay(nodes=1, steps=[{"at": 30, "apply": pod("a")}])
    assert when(cycles, "default/a") >= 30


@pytest.mark.parametrize(
    "match", ["late*", "default/late*", {"labels": {"app": "x"}}, {"name": "late-?", "namespace": "d*"}], ids=str
)
def test_bindings_fail_of_pods_by_name_or_label(replay, match):
    steps = [
        {"at": 1, "failBind": {"match": match, "times": 1}},
        {"at": 2, "apply": [pod("late-0", app="x"), pod("b")]},
    ]
    cycles, final = replay(nodes=2, steps=steps, run={"until": 12})
    tried = [each["pod"] for line in cycles for each in line["binds"]]
    assert (tried.count("default/late-0"), tried.count("default/b")) == (2, 1)
    assert final["pods"] == {"Running": 2}


def test_news_of_every_kind_may_be_late(replay):
    steps = [{"at": 1, "delayWatch": {"kind": "*", "seconds": 4}}, {"at": 2, "apply": pod("a")}]
    cycles, _ = replay(nodes=1, steps=steps, run={"until": 12})
    assert 6 <= when(cycles, "default/a") < 7


def test_devices_that_fail_are_there_but_not_to_be_had(replay):
    gpu = pod("a")
    gpu["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "2"}}
    steps = [{"at": 0, "setDevice": {"node": "n", "healthy": 1}}, {"at": 1, "apply": gpu},
             {"at": 5, "setDevice": {"node": "n", "device": "nvidia.com/gpu", "count": 2}}]  # fmt: skip
    objects = [node("n", status={"capacity": {"nvidia.com/gpu": "2"}})]
    cycles, _ = replay(objects=objects, steps=steps, run={"until": 8})
    assert when(cycles, "default/a") >= 5


def test_an_engine_that_is_away_for_a_while_tells_nothing(replay):
    steps = [{"at": 2, "crash": {"component": "scheduler", "seconds": 5}}, {"at": 3, "apply": pod("a")}]
    cycles, final = replay(nodes=1, steps=steps, run={"until": 12})
    assert when(cycles, "default/a") >= 7
    assert [line["at"] for line in cycles if 2.5 < line["at"] < 6.5] == []
    assert final["pods"] == {"Running": 1}


def test_kinds_of_the_scenarios_own(replay):
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "trains.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"kind": "Train", "plural": "trains"},
                 "versions": [{"name": "v1", "served": True, "storage": True,
                               "schema": {"openAPIV3Schema": ANYTHING}}]},
    }  # fmt: skip
    train = {"apiVersion": "example.com/v1", "kind": "Train", "metadata": {"name": "t"}, "spec": {}}
    cycles, _ = replay(objects=[train, definition], steps=[{"at": 1, "delete": "Train/t"}], run={"cycles": 3})
    assert len(cycles) == 3


@pytest.mark.parametrize(
    ("scenario", "words"),
    [
        ({"stepz": []}, "stepz: unknown; known are objects, objectFiles"),
        ({"steps": {"at": 1}}, "steps"),
        ({"steps": [{"at": 1, "reboot": "n"}]}, "steps[0].reboot: unknown; known are at, applyFiles, apply"),
        ({"steps": [{"at": "soon", "crash": "scheduler"}]}, "steps[0].at"),
        ({"steps": [{"at": -1, "crash": "scheduler"}]}, "steps[0].at"),
        ({"steps": [{"at": 1}]}, "steps[0]: nothing happens"),
        ({"steps": [{"at": 1, "crash": "kubelet"}]}, "steps[0].crash"),
        ({"steps": [{"at": 1, "crash": {"component": "kubelet"}}]}, "steps[0].crash.component"),
        ({"steps": [{"at": 1, "failNode": "n9"}]}, "steps[0].failNode: there is no node 'n9'"),
        ({"nodes": 1, "steps": [{"at": 1, "setDevice": {"node": "node-0"}}]}, "steps[0].setDevice.count"),
        ({"nodes": 1, "steps": [{"at": 1, "setDevice": {"node": "node-0", "counts": 3}}]}, "setDevice.counts: unknown"),
        ({"steps": [{"at": 1, "failBind": {"match": "x", "times": "two"}}]}, "steps[0].failBind.times"),
        ({"steps": [{"at": 1, "delayWatch": {"kind": "Pood", "seconds": 1}}]}, "steps[0].delayWatch.kind"),
        ({"steps": [{"at": 1, "delayWatch": {"kind": "Pod"}}]}, "seconds"),
        ({"steps": [{"at": 1, "delete": "Pod"}]}, "steps[0].delete: Kind/name"),
        ({"steps": [{"at": 1, "delete": ["Pod/a", {"kind": "Pod"}]}]}, "steps[0].delete[1]"),
        ({"steps": [{"at": 1, "patch": {"kind": "Pod", "name": "a"}}]}, "steps[0].patch"),
        ({"steps": [{"at": 1, "apply": {"apiVersion": "v1", "kind": "Pood", "metadata": {"name": "a"}}}]},
         "steps[0].apply.kind: unknown kind 'Pood'"),
        ({"objects": [{"apiVersion": "scheduling.skysail.io/v1", "kind": "Queue", "metadata": {"name": "a"}}]},
         "scheduling.skysail.io/v1alpha1"),
        ({"objects": ["Pod"]}, "objects[0]: an object is wanted"),
        ({"objects": [{"apiVersion": "v1", "kind": "Pod", "metadata": {}}]}, "objects[0].metadata.name"),
        ({"run": {"cycles": 3, "seconds": 4}}, "run"),
        ({"config": {"actions": ["allocateJobs"]}}, "actions[0]"),
        ({"steps": [{"at": 1, "applyFiles": ["none.yaml"]}]}, "none.yaml"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_what_nobody_knows_is_refused_at_the_door(tmp_path, scenario, words):
    file = tmp_path / "scenario.yaml"
    file.write_text(yaml.safe_dump(scenario))
    with pytest.raises(ConfigError) as caught:
        read_scenario(file)
    assert words in str(caught.value)
    assert str(tmp_path) in str(caught.value)


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        (
            [{"at": 1, "patch": {"kind": "Pod", "name": "nobody", "patch": {"metadata": {"labels": {}}}}}],
            "steps[0].patch",
        ),
        ([{"at": 1, "apply": pod("UPPER")}], "steps[0].apply"),
    ],
)
def test_what_the_server_refuses_is_told_with_its_place(replay, steps, words):
    with pytest.raises(ConfigError) as caught:
        replay(steps=steps, run={"cycles": 5})
    assert words in str(caught.value)


def test_an_object_of_the_start_that_the_server_refuses_is_told_with_its_place(replay):
    with pytest.raises(ConfigError) as caught:
        replay(objects=[node("n"), pod("UPPER")], run={"cycles": 5})
    assert "objects[1]" in str(caught.value)


def test_what_is_gone_already_may_be_deleted(replay):
    cycles, _ = replay(steps=[{"at": 1, "delete": "Pod/nobody"}], run={"cycles": 3})
    assert len(cycles) == 3


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("nodes: -1", "nodes"),
        ("run: {until: .inf}", "run.until"),
        ("run: {until: .nan}", "run.until"),
        ("run: {cycles: -5}", "run.cycles"),
        ("steps: [{at: .nan, crash: scheduler}]", "steps[0].at"),
        ("steps: [{at: .inf, crash: scheduler}]", "steps[0].at"),
        ("steps: [{at: 1, delayWatch: {kind: Pod, seconds: .nan}}]", "steps[0].delayWatch.seconds"),
        ("steps: [{at: 1, failBind: {match: x, times: -3}}]", "steps[0].failBind.times"),
        ("steps: [{at: 1, addNode: {name: n, capacity: {cpu: abc}}}]", "steps[0].addNode.capacity.cpu"),
        ("objects: [{apiVersion: v1, kind: Node, metadata: {name: n}, status: {capacity: {cpu: -1}}}]",
         "objects[0].status.capacity.cpu"),
        ("nodes: 1\nsteps: [{at: 1, setDevice: {node: node-0, count: -1}}]", "steps[0].setDevice.count"),
    ],
)  # fmt: skip
def test_a_figure_with_which_no_run_would_end_or_begin_is_refused_by_its_path(tmp_path, text, where):
    file = tmp_path / "scenario.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        read_scenario(file)
    assert f": {where}: " in str(caught.value)
