"""Other systems' objects, shaped as in their documentation, as the engine's records."""

import pytest
import yaml

from skysail.batch.foreign import coscheduling, elastic, kai, kueue, upstream, volcano
from skysail.batch.foreign.registry import GROUP_KINDS, QUEUE_KINDS, read_group, read_queues, served
from skysail.batch.model.resources import ANY, UNLIMITED
from skysail.batch.model.specs import Figures, FlavorSpec

GPU = "nvidia.com/gpu"


def objects(text):
    return list(yaml.safe_load_all(text))


def test_a_volcano_queue():
    (raw,) = objects("""
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: research}
spec:
  weight: 3
  priority: 5
  reclaimable: false
  parent: eng
  capability: {cpu: 8, memory: 16Gi}
  deserved: {cpu: "4"}
  guarantee: {resource: {cpu: 2}}
  dequeueStrategy: fifo
status: {state: Closed}
""")
    read = volcano.read_queues([raw]).queues["research"]
    assert (read.weight, read.priority, read.parent, read.reclaimable) == (3, 5, "eng", False)
    assert (read.state, read.dequeue) == ("Closed", "fifo")
    assert read.figures == {
        (ANY, "cpu"): Figures(2000, 4000, 8000),
        (ANY, "memory"): Figures(capability=16 << 30),
    }


def test_a_volcano_pod_group():
    (raw,) = objects("""
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: pg1, namespace: ml, annotations: {volcano.sh/preemptable: "false"}}
spec:
  minMember: 3
  minTaskMember: {master: 1, worker: 2}
  minResources: {cpu: "3", memory: 2048Mi}
  priorityClassName: high-prority
  queue: research
  networkTopology: {mode: soft, highestTierAllowed: 2}
  subGroupPolicy:
  - {name: task, subGroupSize: 2, minSubGroups: 1, labelSelector: {matchLabels: {role: worker}}}
""")
    read, problems = volcano.read_group(raw, {"high-prority": 7}.get)
    assert problems == []
    assert (read.key, read.queue, read.min_member, read.priority, read.preemptible) == (
        "ml/pg1",
        "research",
        3,
        7,
        False,
    )
    assert read.min_resources == {"cpu": 3000, "memory": 2 << 30}
    assert (read.zone.required, read.zone.preferred) == (False, True)
    assert (read.sub_groups[0].min_member, read.sub_groups[0].selector.matches({"role": "worker"})) == (2, True)


KUEUE = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: default-flavor}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: spot}
spec: {nodeLabels: {instance-type: spot}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: team-a-cq}
spec:
  cohortName: team-ab
  namespaceSelector: {}
  queueingStrategy: StrictFIFO
  preemption: {reclaimWithinCohort: Any, withinClusterQueue: LowerPriority}
  fairSharing: {weight: 2}
  resourceGroups:
  - coveredResources: [cpu, memory]
    flavors:
    - name: default-flavor
      resources:
      - {name: cpu, nominalQuota: 9, borrowingLimit: 3, lendingLimit: 1}
      - {name: memory, nominalQuota: 36Gi}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: team-b-cq}
spec:
  cohort: team-ab
  stopPolicy: Hold
  resourceGroups:
  - coveredResources: [cpu]
    flavors:
    - {name: spot, resources: [{name: cpu, nominalQuota: "4"}]}
    - {name: default-flavor, resources: [{name: cpu, nominalQuota: 2}]}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: user-queue, namespace: team-a}
spec: {clusterQueue: team-a-cq}
"""


def kueue_objects(text=KUEUE):
    raws = objects(text)
    kinds = {
        "ClusterQueue": "clusterqueues",
        "Cohort": "cohorts",
        "LocalQueue": "localqueues",
        "ResourceFlavor": "resourceflavors",
    }
    found = {}
    for raw in raws:
        found.setdefault(f"{kinds[raw['kind']]}.kueue.x-k8s.io", []).append(raw)
    return found


def test_kueue_cluster_queues_share_a_cohort():
    found = read_queues(kueue_objects()).records
    assert found.problems == []
    a, b, cohort = (found.queues[name] for name in ("team-a-cq", "team-b-cq", "cohort:team-ab"))
    assert (a.parent, a.dequeue, a.weight, b.weight) == ("cohort:team-ab", "fifo", 2, 1)
    assert a.figures["default-flavor", "cpu"] == Figures(8000, 9000, 12000)
    assert a.figures["default-flavor", "memory"] == Figures(None, 36 << 30, None)
    assert (a.preemption.from_others, b.preemption.from_others) == ("Any", "Never")
    assert (b.flavors, b.state) == (("spot", "default-flavor"), "Closed")
    assert cohort.figures["default-flavor", "cpu"] == Figures(None, 11000, 11000)
    assert found.flavors["spot"] == FlavorSpec("spot", {"instance-type": "spot"})
    assert found.job_queues["team-a/user-queue"].queue == "team-a-cq"


def test_a_cluster_queue_without_a_cohort_borrows_from_nobody():
    text = KUEUE.replace("  cohortName: team-ab\n", "")
    read = read_queues(kueue_objects(text)).records.queues["team-a-cq"]
    assert read.parent == "root"
    assert read.figures["default-flavor", "memory"].capability == 36 << 30


def test_cohorts_form_a_tree_and_add_their_own_quota():
    text = (
        KUEUE
        + """
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: Cohort
metadata: {name: team-ab}
spec:
  parentName: org
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: spot, resources: [{name: cpu, nominalQuota: 6}]}]
"""
    )
    found = read_queues(kueue_objects(text)).records.queues
    assert found["cohort:team-ab"].parent == "cohort:org"
    assert found["cohort:team-ab"].figures["spot", "cpu"] == Figures(None, 10000, None)
    assert found["cohort:org"].figures["spot", "cpu"] == Figures(None, 10000, 10000)


def test_cohorts_in_a_circle_do_not_hang():
    text = """
{apiVersion: kueue.x-k8s.io/v1beta2, kind: Cohort, metadata: {name: a}, spec: {parentName: b}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: Cohort, metadata: {name: b}, spec: {parentName: a}}
"""
    assert set(read_queues(kueue_objects(text)).records.queues) == {"cohort:a", "cohort:b"}


def test_a_missing_flavor_is_said():
    text = KUEUE.replace("metadata: {name: spot}", "metadata: {name: other}")
    assert "spot" in read_queues(kueue_objects(text)).records.problems[0].message


def test_fractional_weights_keep_their_proportion():
    text = KUEUE.replace("{weight: 2}", "{weight: 0.5}")
    queues = read_queues(kueue_objects(text)).records.queues
    assert (queues["team-a-cq"].weight, queues["team-b-cq"].weight) == (500, 1000)


def test_kai_queues():
    raws = objects("""
apiVersion: scheduling.run.ai/v2
kind: Queue
metadata: {name: department-1}
spec:
  resources:
    cpu: {quota: -1, limit: -1, overQuotaWeight: 1}
    gpu: {quota: 4, limit: 8, overQuotaWeight: 2}
    memory: {quota: 100, limit: -1}
---
apiVersion: scheduling.run.ai/v2
kind: Queue
metadata: {name: team-a}
spec: {parentQueue: department-1, priority: 200, reclaimMinRuntime: 10m}
""")
    found = kai.read_queues(raws).queues
    assert found["department-1"].figures == {
        (ANY, "cpu"): Figures(None, UNLIMITED, None, 1),
        (ANY, "memory"): Figures(None, 100_000_000, None, 0),
        (ANY, GPU): Figures(None, 4, 8, 2),
    }
    team = found["team-a"]
    assert (team.parent, team.priority, team.reclaim_min_runtime_seconds) == ("department-1", 200, 600.0)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"preemptibility": "non-preemptible"}, False),
        ({"preemptibility": "preemptible", "priorityClassName": "build"}, True),
        ({"priorityClassName": "build"}, False),
        ({"priorityClassName": "train"}, True),
    ],
)
def test_kai_says_by_word_or_by_priority_what_may_be_evicted(spec, expected):
    raw = {"metadata": {"name": "g", "namespace": "n"}, "spec": spec}
    read, _ = kai.read_group(raw, {"build": 100, "train": 50}.get)
    assert read.preemptible is expected


def test_a_kai_pod_group_with_sub_groups():
    raw = {
        "metadata": {"name": "g", "namespace": "n"},
        "spec": {
            "minMember": 3, "queue": "team-a",
            "topologyConstraint": {"topology": "t", "preferredTopologyLevel": "rack"},
            "subGroups": [{"name": "decode", "minMember": 2}, {"name": "prefill", "minMember": 1, "parent": "decode"}],
        },
    }  # fmt: skip
    read, _ = kai.read_group(raw)
    assert [(each.name, each.min_member, each.parent) for each in read.sub_groups] == [
        ("decode", 2, ""), ("prefill", 1, "decode"),
    ]  # fmt: skip
    assert (read.zone.preferred, read.zone.level) == (True, "rack")


def test_an_elastic_quota_is_for_its_namespace():
    raw = {"metadata": {"name": "quota1", "namespace": "team"}, "spec": {"max": {"cpu": 6}, "min": {"cpu": 4}}}
    found = elastic.read_quotas([raw])
    assert found.namespaces == {"team": "team/quota1"}
    assert found.records.queues["team/quota1"].figures == {(ANY, "cpu"): Figures(None, 4000, 6000)}


def test_koordinators_elastic_quota_has_parent_weight_and_may_not_be_lent():
    raw = {
        "metadata": {
            "name": "child", "namespace": "kube-system",
            "labels": {
                "quota.scheduling.koordinator.sh/parent": "top",
                "quota.scheduling.koordinator.sh/allow-lent-resource": "false",
            },
            "annotations": {"quota.scheduling.koordinator.sh/shared-weight": '{"cpu": 60}'},
        },
        "spec": {"max": {"cpu": 60}, "min": {"cpu": 40}},
    }  # fmt: skip
    found = elastic.read_quotas([raw])
    assert found.namespaces == {}
    assert found.records.queues["child"].parent == "top"
    assert found.records.queues["child"].figures == {(ANY, "cpu"): Figures(40000, 40000, 60000, 60000)}


def test_a_coscheduling_pod_group():
    raw = {
        "metadata": {"name": "nginx", "namespace": "default"},
        "spec": {"scheduleTimeoutSeconds": 10, "minMember": 3, "minResources": {"cpu": 3}},
    }
    read, _ = coscheduling.read_group(raw)
    assert (read.min_member, read.schedule_timeout_seconds, read.min_resources) == (3, 10.0, {"cpu": 3000})


def test_upstream_pod_groups_and_workloads():
    policy = {"gang": {"minCount": 4}}
    raw = {
        "metadata": {"name": "g", "namespace": "n"},
        "spec": {
            "schedulingPolicy": policy, "schedulingConstraints": {"topology": [{"key": "rack"}]},
            "disruptionMode": "PodGroup", "priority": 9,
        },
    }  # fmt: skip
    read, _ = upstream.read_group(raw)
    assert (read.min_member, read.disruption_mode, read.priority, read.zone.level) == (4, "PodGroup", 9, "rack")
    basic, _ = upstream.read_group({"metadata": {"name": "b"}, "spec": {"schedulingPolicy": {"basic": {}}}})
    assert basic.min_member == 0
    workload = {
        "metadata": {"name": "w", "namespace": "n"},
        "spec": {"podGroupTemplates": [{"name": "workers", "schedulingPolicy": policy}]},
    }
    groups, problems = upstream.workload_groups(workload)
    assert ([group.key for group in groups], problems) == (["n/w-workers"], [])


@pytest.mark.parametrize("kind", [kinds[0] for kinds in GROUP_KINDS], ids=lambda kind: kind.resource)
def test_a_malformed_gang_is_a_problem_and_no_exception(kind):
    raw = {"kind": "PodGroup", "metadata": {"name": "g", "namespace": "n"}, "spec": "nonsense"}
    read, problems = read_group(kind, raw)
    assert read is None
    assert problems[0].about == "PodGroup n/g"


@pytest.mark.parametrize("kinds", QUEUE_KINDS, ids=lambda kinds: kinds[0].resource)
def test_a_malformed_queue_is_a_problem_and_the_others_still_count(kinds):
    good = {"metadata": {"name": "ok", "namespace": "n"}, "spec": {}}
    found = read_queues({kinds[0].resource: [{"metadata": {"name": "bad"}, "spec": [1]}, good]}).records
    assert len(found.problems) == 1
    assert found.queues or found.job_queues or found.flavors


def test_of_several_versions_the_newest_served_is_watched():
    resources = {("kueue.x-k8s.io/v1beta1", "clusterqueues"), ("scheduling.volcano.sh/v1beta1", "queues")}
    assert [kind.resource for kind in served(QUEUE_KINDS, resources)] == [
        "queues.scheduling.volcano.sh", "clusterqueues.kueue.x-k8s.io",
    ]  # fmt: skip
    both = resources | {("kueue.x-k8s.io/v1beta2", "clusterqueues")}
    assert served(QUEUE_KINDS, both)[1].version == "v1beta2"


def test_kueues_objects_need_no_others():
    assert kueue.read_queues(kueue.KueueObjects()).queues == {}


def test_a_flavor_without_labels_leaves_nodes_to_those_that_name_them():
    from skysail.batch.flavors import Flavors
    from skysail.testing.builders import make_node

    flavors = Flavors()
    flavors.set_node(make_node("plain"))
    flavors.set_node(make_node("cheap", labels={"instance-type": "spot"}))
    flavors.set_specs(read_queues(kueue_objects()).records.flavors.values())
    assert (flavors.of("plain"), flavors.of("cheap")) == ("default-flavor", "spot")
