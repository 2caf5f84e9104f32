"""Which gang a pod belongs to by its owners, and what that gang's object says."""

import msgspec
import pytest

from skysail.api.core import Pod
from skysail.batch.controllers.grouping import IMPLICIT, NOTHING, minimum, plan_group, role_sizes, wanted_spec
from skysail.batch.controllers.kueue_jobs import is_to_be_started
from skysail.batch.controllers.owners import OwnerMembershipReader, top_owner
from skysail.batch.kinds import PodGroup


def pod(name="p", owner=None, labels=None, annotations=None, scheduler="sky-scheduler"):
    metadata = {"name": name, "namespace": "ns", "uid": name, "labels": labels or {}, "annotations": annotations or {}}
    if owner:
        kind, owner_name = owner
        reference = {"apiVersion": "batch/v1", "kind": kind, "name": owner_name, "uid": "u", "controller": True}
        metadata["ownerReferences"] = [reference]
    return msgspec.convert({"metadata": metadata, "spec": {"schedulerName": scheduler}}, Pod)


@pytest.mark.parametrize(
    ("owner", "labels", "group"),
    [
        (("Job", "train"), {}, "job-train"),
        (("ReplicaSet", "web-5d9c"), {"pod-template-hash": "5d9c"}, "deployment-web"),
        (("ReplicaSet", "web"), {}, "replicaset-web"),
        (("StatefulSet", "db"), {}, "statefulset-db"),
        (("PyTorchJob", "bert"), {}, "pytorchjob-bert"),
        (("Job", "js-w-0"), {"jobset.sigs.k8s.io/jobset-name": "js"}, "jobset-js"),
        (
            ("StatefulSet", "x"),
            {"leaderworkerset.sigs.k8s.io/name": "vllm", "leaderworkerset.sigs.k8s.io/group-index": "2"},
            "lws-vllm-2",
        ),
    ],
)
def test_the_gang_is_named_for_the_top_owner(owner, labels, group):
    assert top_owner(pod(owner=owner, labels=labels)).group == group
    assert OwnerMembershipReader()(pod(owner=owner, labels=labels)).group == f"ns/{group}"


def test_a_rollout_makes_no_second_gang():
    old = pod(owner=("ReplicaSet", "web-1"), labels={"pod-template-hash": "1"})
    new = pod(owner=("ReplicaSet", "web-2"), labels={"pod-template-hash": "2"})
    assert top_owner(old).group == top_owner(new).group


def test_a_pod_that_nobody_owns_stands_alone():
    assert top_owner(pod()) is None
    assert OwnerMembershipReader()(pod()).group == ""


def test_a_named_gang_wins_over_the_owner():
    named = pod(owner=("Job", "train"), labels={"scheduling.skysail.io/pod-group": "mine"})
    assert OwnerMembershipReader()(named).group == "ns/mine"


@pytest.mark.parametrize(
    ("kind", "spec", "expected"),
    [
        ("Job", {"parallelism": 8}, 8),
        ("Job", {"parallelism": 8, "completions": 3}, 3),
        ("Job", {}, 1),
        ("Deployment", {"replicas": 9}, 1),
        ("PyTorchJob", {"pytorchReplicaSpecs": {"Master": {"replicas": 1}, "Worker": {"replicas": 3}}}, 4),
        ("MPIJob", {"runPolicy": {"schedulingPolicy": {"minAvailable": 2}}, "mpiReplicaSpecs": {"Worker": {}}}, 2),
        (
            "JobSet",
            {"replicatedJobs": [{"name": "w", "replicas": 2, "template": {"spec": {"parallelism": 4}}}]},
            8,
        ),
        ("LeaderWorkerSet", {"leaderWorkerTemplate": {"size": 5}}, 5),
    ],
)  # fmt: skip
def test_the_minimum_by_kind(kind, spec, expected):
    member = pod(owner=(kind, "x"))
    assert minimum(member, top_owner(member), {"spec": spec}) == expected


def test_an_annotation_on_owner_or_pod_says_the_minimum():
    said = {"scheduling.skysail.io/min-member": "2"}
    member = pod(owner=("Job", "x"))
    assert minimum(member, top_owner(member), {"metadata": {"annotations": said}, "spec": {"parallelism": 8}}) == 2
    assert minimum(pod(owner=("Job", "x"), annotations=said), top_owner(member), {"spec": {"parallelism": 8}}) == 2


def test_roles_of_a_training_job_are_counted_each():
    owner = {"spec": {"pytorchReplicaSpecs": {"Master": {"replicas": 1}, "Worker": {"replicas": 3}}}}
    member = pod(owner=("PyTorchJob", "bert"), labels={"training.kubeflow.org/replica-type": "worker"})
    assert role_sizes(owner) == {"master": 1, "worker": 3}
    assert wanted_spec(member, top_owner(member), owner)["minTaskMember"] == {"master": 1, "worker": 3}
    assert OwnerMembershipReader()(member).role == "worker"


def test_the_gang_takes_over_what_owner_and_pods_say():
    member = pod(
        owner=("Job", "x"),
        annotations={
            "volcano.sh/network-topology-mode": "hard", "volcano.sh/network-topology-highest-tier": "2",
            "kai.scheduler/preemptibility": "non-preemptible",
        },
    )  # fmt: skip
    owner = {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "user-queue"}}, "spec": {"activeDeadlineSeconds": 60}}
    spec = wanted_spec(member, top_owner(member), owner)
    assert spec["jobQueue"] == "user-queue"
    assert spec["networkTopology"] == {"mode": "hard", "highestTierAllowed": 2}
    assert (spec["preemptibility"], spec["maximumExecutionTime"]) == ("NonPreemptible", 60)


OWNER = {"metadata": {"uid": "owner-uid"}, "spec": {"parallelism": 3}}


def implicit(minimum):
    raw = {
        "metadata": {"name": "job-x", "namespace": "ns", "labels": {IMPLICIT: "true"}},
        "spec": {"minMember": minimum},
    }
    return msgspec.convert(raw, PodGroup)


def test_a_missing_object_is_made_and_goes_with_its_owner():
    member = pod(owner=("Job", "x"))
    made = plan_group("job-x", None, [member], top_owner(member), OWNER).create
    assert made["spec"]["minMember"] == 3
    assert made["metadata"]["ownerReferences"][0]["uid"] == "owner-uid"
    assert made["metadata"]["labels"] == {IMPLICIT: "true"}


def test_an_object_is_changed_only_when_its_minimum_is_another():
    member = pod(owner=("Job", "x"))
    assert plan_group("job-x", implicit(3), [member], top_owner(member), OWNER) == NOTHING
    assert plan_group("job-x", implicit(2), [member], top_owner(member), OWNER).patch["spec"]["minMember"] == 3


def test_what_somebody_wrote_is_never_touched():
    own = msgspec.convert({"metadata": {"name": "job-x", "namespace": "ns"}, "spec": {"minMember": 9}}, PodGroup)
    member = pod(owner=("Job", "x"))
    assert plan_group("job-x", own, [member], top_owner(member), OWNER) == NOTHING


def test_a_gang_of_bare_pods_is_made_by_their_count_and_removed_with_the_last():
    words = {"kueue.x-k8s.io/pod-group-name": "g", "kueue.x-k8s.io/pod-group-total-count": "2"}
    made = plan_group("g", None, [pod(annotations=words)], None, None).create
    assert (made["spec"]["minMember"], "ownerReferences" in made["metadata"]) == (2, False)
    assert plan_group("g", implicit(2), [], None, None).delete


def test_only_jobs_of_a_kueue_queue_that_we_schedule_are_started():
    from skysail.api.batch import Job

    def job(labels, suspend, scheduler):
        raw = {
            "metadata": {"name": "j", "labels": labels},
            "spec": {"suspend": suspend, "template": {"spec": {"schedulerName": scheduler}}},
        }
        return msgspec.json.decode(msgspec.json.encode(raw), type=Job)

    queue = {"kueue.x-k8s.io/queue-name": "q"}
    assert is_to_be_started(job(queue, True, "sky-scheduler"), "sky-scheduler")
    assert not is_to_be_started(job(queue, False, "sky-scheduler"), "sky-scheduler")
    assert not is_to_be_started(job(queue, True, "default-scheduler"), "sky-scheduler")
    assert not is_to_be_started(job({}, True, "sky-scheduler"), "sky-scheduler")
