"""Why a job waits, and what would happen: both by the production engine on a snapshot."""

import msgspec
import pytest

from skysail.api.errors import ConfigError
from skysail.batch.kinds import PodGroup, Queue
from skysail.diagnosis.jobs import why_job
from skysail.diagnosis.snapshot import Snapshot, picture
from skysail.diagnosis.what_if import simulate
from skysail.testing.builders import make_node, make_pod

NOW = 1_800_000_000.0


def queue(name, **spec):
    return msgspec.convert({"metadata": {"name": name, "uid": name}, "spec": spec}, Queue)


def group(name, **spec):
    return msgspec.convert({"metadata": {"name": name, "namespace": "default", "uid": name}, "spec": spec}, PodGroup)


def pods(name, count, of="", cpu="1", node="", **more):
    labels = {"scheduling.skysail.io/pod-group": of or name}
    return [
        make_pod(
            f"{name}-{number}", uid=f"{name}-{number}", labels=labels, requests={"cpu": cpu}, scheduler="sky-scheduler",
            node=node, phase="Running" if node else "Pending", **more,
        )
        for number in range(count)
    ]  # fmt: skip


def snapshot(**more):
    nodes = [make_node(f"n{number}", cpu="4", memory="8Gi", pods="110") for number in range(2)]
    return Snapshot(now=NOW, **({"nodes": nodes} | more))


def job(name, parallelism, cpu="1", **more):
    spec = {"parallelism": parallelism, "completions": parallelism}
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    template = {"metadata": more, "spec": {"containers": [container]}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec | {"template": template}}


def test_a_gang_too_large_says_how_many_fit():
    found = why_job(snapshot(groups=[group("g", minMember=10)], pods=pods("g", 10)), "default/g")
    assert (found.code, found.numbers) == ("NotEnough", {"have": 8, "need": 10})
    assert found.members == {"Pending": 10}
    assert found.placement == {}


def test_a_quota_names_its_queue_and_what_that_holds():
    what = snapshot(
        queues=[queue("a", capability={"cpu": 4})],
        groups=[group("run", queue="a"), group("wait", queue="a", minMember=3)],
        pods=[*pods("run", 2, node="n0"), *pods("wait", 3)],
    )
    found = why_job(what, "default/wait")
    assert found.code == "QuotaExceeded"
    (standing,) = found.queues
    assert (standing.name, standing.held["cpu"], standing.limit["cpu"]) == ("a", 2000, 4000)


def test_what_would_start_says_where():
    found = why_job(snapshot(groups=[group("g", minMember=2)], pods=pods("g", 2)), "default/g")
    assert found.code == ""
    assert set(found.placement) == {"g-0", "g-1"}


def test_a_running_job_does_not_wait():
    found = why_job(snapshot(groups=[group("g")], pods=pods("g", 1, node="n0")), "default/g")
    assert (found.code, found.message) == ("", "does not wait")


def test_whom_it_would_evict_is_said():
    what = snapshot(
        queues=[queue("a", deserved={"cpu": 4}), queue("b", deserved={"cpu": 4})],
        groups=[group("borrower", queue="a"), group("owner", queue="b", minMember=4)],
        pods=[*pods("borrower", 4, node="n0"), *pods("more", 4, of="borrower", node="n1"), *pods("owner", 4)],
    )
    found = why_job(what, "default/owner")
    assert found.code == "WaitingVictims"
    assert len(found.victims) == 4


def test_who_is_before_it_is_named():
    what = snapshot(
        groups=[group("first", minMember=10), group("second", minMember=10)],
        pods=[*pods("first", 10), *pods("second", 10)],
    )
    assert why_job(what, "default/second").ahead == ("default/first",)


@pytest.mark.parametrize("name", ["default/train", "job/default/train", "Job/default/train", "default/job-train"])
def test_a_job_is_found_by_its_owner(name):
    owned = make_pod("train-x", uid="x", requests={"cpu": "1"}, scheduler="sky-scheduler", phase="Pending")
    reference = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "u", "controller": True}
    raw = msgspec.json.decode(msgspec.json.encode(owned))
    raw["metadata"]["ownerReferences"] = [reference]
    owned = msgspec.convert(raw, type(owned))
    assert why_job(snapshot(pods=[owned]), name).code == "PodGroupMissing"


def test_a_job_nobody_knows_is_none():
    assert why_job(snapshot(), "default/nothing") is None


def test_a_snapshot_is_not_changed_by_questions():
    what = snapshot(groups=[group("g", minMember=2)], pods=pods("g", 2))
    assert why_job(what, "default/g") == why_job(what, "default/g")
    assert picture(what).world.problems() == []


def test_simulate_says_where_a_job_would_run():
    (found,) = simulate(snapshot(), [job("train", 3)])
    assert found.answer.fits
    assert sorted(found.answer.placement) == ["train-0", "train-1", "train-2"]


def test_simulate_says_the_largest_that_fits_and_one_more_is_refused():
    (found,) = simulate(snapshot(), [job("train", 12)])
    assert (found.answer.fits, found.answer.largest) == (False, 8)
    assert simulate(snapshot(), [job("train", 8)])[0].answer.fits
    assert not simulate(snapshot(), [job("train", 9)])[0].answer.fits


def test_simulate_takes_queues_and_gangs_out_of_the_manifests():
    manifests = [
        {"apiVersion": "scheduling.skysail.io/v1alpha1", "kind": "Queue", "metadata": {"name": "a"},
         "spec": {"capability": {"cpu": 2}}},
        job("train", 3, labels={"scheduling.skysail.io/queue": "a"}),
    ]  # fmt: skip
    (found,) = simulate(snapshot(), manifests)
    assert found.answer.outcome.code == "ExceedsMax"


def test_simulate_reads_a_training_job_of_roles():
    template = {"spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "2"}}}]}}
    manifest = {
        "apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "bert"},
        "spec": {"pytorchReplicaSpecs": {"Master": {"replicas": 1, "template": template},
                                         "Worker": {"replicas": 3, "template": template}}},
    }  # fmt: skip
    (found,) = simulate(snapshot(), [manifest])
    assert found.answer.fits
    assert sorted(found.answer.placement) == ["bert-master-0", "bert-worker-0", "bert-worker-1", "bert-worker-2"]


def test_simulate_takes_kueues_queues():
    resources = [{"name": "cpu", "nominalQuota": 2}]
    flavors = [{"name": "default-flavor", "resources": resources}]
    kueue = "kueue.x-k8s.io/v1beta2"
    manifests = [
        {"apiVersion": kueue, "kind": "ResourceFlavor", "metadata": {"name": "default-flavor"}},
        {"apiVersion": kueue, "kind": "ClusterQueue", "metadata": {"name": "cq"},
         "spec": {"namespaceSelector": {}, "resourceGroups": [{"flavors": flavors}]}},
        {"apiVersion": kueue, "kind": "LocalQueue", "metadata": {"name": "lq", "namespace": "default"},
         "spec": {"clusterQueue": "cq"}},
        job("train", 3, labels={"kueue.x-k8s.io/queue-name": "lq"}),
    ]  # fmt: skip
    (found,) = simulate(snapshot(), manifests)
    assert found.answer.outcome.code == "ExceedsMax"


def test_simulate_refuses_what_makes_no_pods_we_know_of():
    with pytest.raises(ConfigError, match="makes no pods we know of"):
        simulate(snapshot(), [{"apiVersion": "example.com/v1", "kind": "Farm", "metadata": {"name": "x"}}])
    with pytest.raises(ConfigError, match="nothing in these manifests makes pods"):
        simulate(snapshot(), [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}])


def test_simulate_passes_over_what_stands_beside_jobs_in_a_manifest():
    beside = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}},
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"}, "spec": {"ports": [{"port": 80}]}},
        {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "x"}},
    ]
    (found,) = simulate(snapshot(), [*beside, job("train", 3)])
    assert (found.name, found.answer.fits) == ("Job/default/train", True)


@pytest.mark.parametrize("holder", ["containers", "initContainers"])
def test_what_is_only_limited_is_asked_for(holder):
    manifest = job("train", 1)
    spec = manifest["spec"]["template"]["spec"]
    limited = {"name": "g", "image": "i", "resources": {"limits": {"nvidia.com/gpu": 1}, "requests": {"cpu": "1"}}}
    spec[holder] = [*spec.get(holder, ()), limited]
    (found,) = simulate(snapshot(), [manifest])
    assert found.answer.outcome.code == "NoNode"
    with_gpu = [make_node("gpu", cpu="4", memory="8Gi", pods="110", capacity={"nvidia.com/gpu": "1"})]
    assert simulate(snapshot(nodes=with_gpu), [manifest])[0].answer.placement == {"train-0": "gpu"}


def test_objects_whose_pods_name_one_gang_are_one_job():
    gang = {"apiVersion": "scheduling.skysail.io/v1alpha1", "kind": "PodGroup", "metadata": {"name": "bert"}}
    member = {"labels": {"scheduling.skysail.io/pod-group": "bert"}}
    manifests = [gang | {"spec": {"minMember": 4}}, job("master", 1, **member), job("worker", 3, **member)]
    (found,) = simulate(snapshot(), manifests)
    assert (found.name, found.answer.fits, len(found.answer.placement)) == ("PodGroup/default/bert", True, 4)
    (alone,) = simulate(snapshot(), [*manifests[:1], job("worker", 3, **member)])
    assert (alone.name, alone.answer.outcome.code) == ("Job/default/worker", "MembersMissing")


def test_simulate_goes_by_the_priority_class_a_pod_names():
    manifest = job("urgent", 8)
    manifest["spec"]["template"]["spec"]["priorityClassName"] = "high"
    urgent = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 9}
    waiting = snapshot(groups=[group("g", minMember=8)], pods=pods("g", 8))
    assert simulate(waiting, [manifest, urgent])[0].answer.fits


def test_pods_of_another_scheduler_are_not_ours():
    manifest = job("train", 1)
    manifest["spec"]["template"]["spec"]["schedulerName"] = "default-scheduler"
    (found,) = simulate(snapshot(), [manifest])
    assert found.answer.outcome.code == "NotOurs"


def test_bare_pods_are_tried_with_the_gang_they_name():
    def bare(name):
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
        metadata = {"name": name, "labels": {"scheduling.skysail.io/pod-group": "g"}}
        spec = {"schedulerName": "sky-scheduler", "containers": [container]}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}

    gang = {"apiVersion": "scheduling.skysail.io/v1alpha1", "kind": "PodGroup", "metadata": {"name": "g"}}
    (found,) = simulate(snapshot(), [gang | {"spec": {"minMember": 2}}, bare("a"), bare("b")])
    assert (found.name, found.answer.fits) == ("PodGroup/default/g", True)
    (lacking,) = simulate(snapshot(), [gang | {"spec": {"minMember": 3}}, bare("a"), bare("b")])
    assert lacking.answer.outcome.code == "MembersMissing"
