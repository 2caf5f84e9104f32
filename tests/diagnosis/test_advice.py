"""What would help, as an on-call engineer asks: each cause has its sentence, and each sentence is true."""

import msgspec
import pytest

from skysail.api.batch import Job
from skysail.api.kinds import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from skysail.batch.kinds import PodGroup, Queue
from skysail.diagnosis.jobs import why_job
from skysail.diagnosis.snapshot import Snapshot
from skysail.diagnosis.unknown import why_unknown
from skysail.diagnosis.what_if import simulate
from skysail.testing.builders import make_node, make_pod

NOW = 1_800_000_000.0


def queue(name, **spec):
    return msgspec.convert({"metadata": {"name": name, "uid": name}, "spec": spec}, Queue)


def group(name, **spec):
    return msgspec.convert({"metadata": {"name": name, "namespace": "default", "uid": name}, "spec": spec}, PodGroup)


def pods(name, count, of="", cpu="1", node="", labels=None, **more):
    words = {"scheduling.skysail.io/pod-group": of or name} | (labels or {})
    return [
        make_pod(
            f"{name}-{number}", uid=f"{name}-{number}", labels=words, requests={"cpu": cpu}, scheduler="sky-scheduler",
            node=node, phase="Running" if node else "Pending", **more,
        )
        for number in range(count)
    ]  # fmt: skip


def snapshot(**more):
    nodes = [make_node(f"n{number}", cpu="4", memory="8Gi", pods="110") for number in range(2)]
    return Snapshot(now=NOW, **({"nodes": nodes} | more))


def test_a_gang_larger_than_the_cluster_needs_nodes_for_the_rest():
    found = why_job(snapshot(groups=[group("g", minMember=10)], pods=pods("g", 10)), "default/g")
    assert found.helps == ("empty, all nodes would hold 8 of 10 such pods: nodes for 2 more are needed",)


def test_a_gang_that_fits_an_empty_cluster_waits_for_others():
    what = snapshot(groups=[group("g", minMember=6), group("h")], pods=[*pods("g", 6), *pods("h", 4, node="n0")])
    assert why_job(what, "default/g").helps == ("nodes could hold it once others end, or with more nodes",)


def test_a_selector_no_node_has_is_named():
    what = snapshot(groups=[group("g")], pods=pods("g", 1, node_selector={"disk": "ssd"}))
    (found,) = why_job(what, "default/g").helps
    assert found == "no node could hold default/g-0 even empty: it needs 1 cpu, label disk=ssd"


def test_a_missing_queue_is_guessed():
    what = snapshot(queues=[queue("team-a"), queue("x")], groups=[group("g", queue="tem-a")], pods=pods("g", 1))
    assert why_job(what, "default/g").helps == ("there is a queue team-a",)


def test_a_misspelt_label_is_told_even_of_a_job_that_runs():
    words = {"scheduling.skysail.io/queu": "a"}
    found = why_job(snapshot(groups=[group("g")], pods=pods("g", 1, node="n0", labels=words)), "default/g")
    assert found.helps == ("label scheduling.skysail.io/queu is not known: scheduling.skysail.io/queue may be meant",)


def test_what_is_known_is_not_taken_for_misspelt():
    words = {"kueue.x-k8s.io/queue-name": "lq", "app.kubernetes.io/name": "x", "batch.kubernetes.io/job-name": "y"}
    found = why_job(snapshot(groups=[group("g")], pods=pods("g", 1, labels=words)), "default/g")
    assert [each for each in found.helps if "not known" in each] == []


def test_members_that_are_missing_are_counted():
    found = why_job(snapshot(groups=[group("g", minMember=4)], pods=pods("g", 3)), "default/g")
    assert found.helps == ("1 more pods must be made, or minMember be lowered to 3",)


def test_a_queue_in_use_names_who_holds_it_and_what_is_short():
    what = snapshot(
        queues=[queue("a", capability={"cpu": 4})],
        groups=[group("run", queue="a"), group("wait", queue="a", minMember=3)],
        pods=[*pods("run", 2, node="n0"), *pods("wait", 3)],
    )
    found = why_job(what, "default/wait")
    assert found.message == "asks for 3 cpu: queue a uses 2 of 4"
    assert found.helps == (
        "1 cpu less in use in queue a (held by default/run)", "or a capability of 5 cpu for it",
    )  # fmt: skip


def test_what_a_queue_never_holds_says_how_much_it_could():
    what = snapshot(
        queues=[queue("a", capability={"cpu": 2})], groups=[group("g", queue="a", minMember=3)], pods=pods("g", 3)
    )
    assert why_job(what, "default/g").helps == (
        "queue a must be allowed 3 cpu or more (capability)", "a minimum of 2 would be within what it may hold",
    )  # fmt: skip


def test_a_closed_queue_is_named():
    what = snapshot(queues=[queue("a", stopPolicy="Hold")], groups=[group("g", queue="a")], pods=pods("g", 1))
    assert why_job(what, "default/g").helps == ("queue a must be opened",)


def test_a_misspelt_group_is_guessed_and_found_by_the_owner():
    owned = pods("train", 1, of="bret")[0]
    raw = msgspec.json.decode(msgspec.json.encode(owned))
    raw["metadata"]["ownerReferences"] = [
        {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "u", "controller": True}
    ]
    what = snapshot(groups=[group("bert")], pods=[msgspec.convert(raw, type(owned))])
    found = why_job(what, "default/train")
    assert (found.code, found.helps) == ("PodGroupMissing", ("there is a PodGroup default/bert",))


def job(name, *, suspend=False):
    raw = {"metadata": {"name": name, "namespace": "default"}, "spec": {"suspend": suspend, "template": {}}}
    return msgspec.json.decode(msgspec.json.encode(raw), type=Job)


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ({"jobs": [job("train", suspend=True)]}, "is suspended"),
        ({"jobs": [job("train")]}, "could not make them"),
        ({}, "there is no Job of that name"),
        ({"pods": [make_pod("train", uid="x")]}, "default-scheduler"),
    ],
)
def test_a_job_without_pods_says_why_it_has_none(what, words):
    assert words in why_unknown(snapshot(**what), "default/train")


def volumes(phase):
    claim = {
        "metadata": {"name": "c", "namespace": "default", "uid": "c"},
        "spec": {"volumeName": "v", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        "status": {"phase": phase},
    }
    claim["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    volume = {
        "metadata": {"name": "v", "uid": "v"},
        "spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"},
                 "claimRef": {"name": "c", "namespace": "default", "uid": "c"}},
    }  # fmt: skip
    return {
        kind.resource: [msgspec.convert(raw, kind.struct)]
        for kind, raw in ((PERSISTENT_VOLUME_CLAIMS, claim), (PERSISTENT_VOLUMES, volume))
    }


@pytest.mark.parametrize(("others", "code"), [({}, "VolumesNotReady"), (volumes("Bound"), "")])
def test_volumes_are_looked_at(others, code):
    raw = msgspec.json.decode(msgspec.json.encode(pods("g", 1)[0]))
    raw["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]
    pod = msgspec.convert(raw, type(pods("g", 1)[0]))
    assert why_job(snapshot(groups=[group("g")], pods=[pod], others=others), "default/g").code == code


def test_queues_that_choose_by_labels_of_namespaces_are_asked_with_them():
    chosen = queue("a", namespaceSelector={"matchLabels": {"team": "a"}})
    what = {"queues": [chosen], "groups": [group("g", queue="a")], "pods": pods("g", 1)}
    assert why_job(snapshot(**what), "default/g").code == "QueueClosed"
    assert why_job(snapshot(**what, namespaces={"default": {"team": "a"}}), "default/g").code == ""


CONTAINER = {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": 1}}}]}
TEMPLATE = {"spec": CONTAINER}


@pytest.mark.parametrize(
    ("kind", "api", "spec", "count"),
    [
        ("Job", "batch.volcano.sh/v1alpha1", {"minAvailable": 3, "tasks": [
            {"name": "master", "replicas": 1, "template": TEMPLATE},
            {"name": "worker", "replicas": 2, "template": TEMPLATE}]}, 3),
        ("RayCluster", "ray.io/v1", {"headGroupSpec": {"template": TEMPLATE},
                                     "workerGroupSpecs": [{"groupName": "w", "replicas": 2, "template": TEMPLATE}]}, 3),
        ("LeaderWorkerSet", "leaderworkerset.x-k8s.io/v1",
         {"leaderWorkerTemplate": {"size": 4, "workerTemplate": TEMPLATE}}, 4),
        ("CronJob", "batch/v1", {"jobTemplate": {"spec": {"parallelism": 2, "template": TEMPLATE}}}, 2),
    ],
)  # fmt: skip
def test_what_other_controllers_would_make_is_simulated(kind, api, spec, count):
    (found,) = simulate(snapshot(), [{"apiVersion": api, "kind": kind, "metadata": {"name": "x"}, "spec": spec}])
    assert (found.answer.fits, len(found.answer.placement)) == (True, count)


def test_a_refused_simulation_says_what_would_help():
    spec = {"parallelism": 12, "completions": 12, "template": TEMPLATE}
    manifest = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "x"}, "spec": spec}
    (found,) = simulate(snapshot(), [manifest])
    assert found.helps == ("empty, all nodes would hold 8 of 12 such pods: nodes for 4 more are needed",)
