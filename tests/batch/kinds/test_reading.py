"""From objects to the engine's records."""

from datetime import UTC, datetime

import msgspec
import pytest

from skysail.batch.kinds import JobQueue, PodGroup, Queue, Quota
from skysail.batch.kinds.reading import Notes, QueueRecords, read_claim, read_group, read_queue, read_queues, read_quota
from skysail.batch.model.resources import ANY
from skysail.batch.model.specs import Figures, FlavorSpec, QueueSpec

GPU = "nvidia.com/gpu"


def queue(name="a", **spec):
    return msgspec.convert({"metadata": {"name": name, "uid": f"uid-{name}"}, "spec": spec}, Queue)


def group(status=None, **spec):
    metadata = {"name": "g", "namespace": "ns", "uid": "u", "creationTimestamp": "2026-01-01T00:00:10Z"}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": status or {}}, PodGroup)


def test_absent_figures_stay_absent():
    read = read_queue(queue(deserved={"cpu": "1500m"}, capability={GPU: 8}), Notes("Queue a"))
    assert read.figures == {(ANY, "cpu"): Figures(deserved=1500), (ANY, GPU): Figures(capability=8)}


def test_flavors_carry_figures_of_their_own():
    found = read_queues([
        queue("a", flavors=[{"name": "h100", "nodeSelector": {"gpu": "h100"}, "deserved": {GPU: 8}}]),
        queue("b", flavors=[{"name": "h100", "capability": {GPU: 4}}]),
    ])  # fmt: skip
    assert found.queues["a"].flavors == ("h100",)
    assert found.queues["b"].figures == {("h100", GPU): Figures(capability=4)}
    assert found.flavors == {"h100": FlavorSpec("h100", {"gpu": "h100"})}
    assert found.problems == []


def test_two_definitions_of_a_flavor_are_said():
    found = read_queues([
        queue("a", flavors=[{"name": "x", "nodeSelector": {"k": "1"}}]),
        queue("b", flavors=[{"name": "x", "nodeSelector": {"k": "2"}}]),
    ])  # fmt: skip
    assert [problem.about for problem in found.problems] == ["Queue b"]


def test_borrowing_and_lending_limits_are_other_words_for_capability_and_guarantee():
    read = read_queue(queue(deserved={GPU: 10}, borrowingLimit={GPU: 5}, lendingLimit={GPU: 4}), Notes(""))
    assert read.figures == {(ANY, GPU): Figures(6, 10, 15)}


def test_limits_that_contradict_figures_are_said_and_figures_count():
    notes = Notes("Queue a")
    read = read_queue(queue(deserved={GPU: 10}, capability={GPU: 12}, borrowingLimit={GPU: 5}), notes)
    assert read.figures == {(ANY, GPU): Figures(None, 10, 12)}
    assert "borrowingLimit" in notes.problems[0].message


@pytest.mark.parametrize(
    "spec",
    [{"deserved": {GPU: 4}, "capability": {GPU: 2}}, {"guarantee": {"resource": {GPU: 4}}, "deserved": {GPU: 2}}],
)
def test_figures_out_of_order_are_said(spec):
    notes = Notes("Queue a")
    read_queue(queue(**spec), notes)
    assert "above" in notes.problems[0].message


def test_stop_policies_preemption_and_runtimes():
    read = read_queue(
        queue(
            stopPolicy="HoldAndDrain", queueingStrategy="StrictFIFO", reclaimMinRuntime="1h30m",
            preemption={
                "withinQueue": "Never", "borrowWithinCohort": {"policy": "LowerPriority", "maxPriorityThreshold": 9},
            },
        ),
        Notes(""),
    )  # fmt: skip
    assert (read.state, read.dequeue, read.reclaim_min_runtime_seconds) == ("Closing", "fifo", 5400.0)
    assert (read.preemption.within_queue, read.preemption.priority_threshold) == ("Never", 9)


def test_a_line_may_use_kueues_word():
    line = msgspec.convert({"metadata": {"name": "l", "namespace": "ns"}, "spec": {"clusterQueue": "a"}}, JobQueue)
    assert read_queues([], [line]).job_queues["ns/l"].queue == "a"


def test_a_gang_with_roles_tree_and_topology():
    read, problems = read_group(
        group(
            minMember=4, minTaskMember={"worker": 3}, queue="a", priorityClassName="high",
            subGroups=[{"name": "s", "minMember": 2, "labelSelector": {"matchLabels": {"r": "s"}}}],
            topologyConstraint={"requiredTopologyLevel": "rack"}, maximumExecutionTime=60,
        ),
        {"high": 100}.get,
    )  # fmt: skip
    assert problems == []
    assert (read.min_member, read.min_task_member, read.priority, read.maximum_execution_seconds) == (
        4, {"worker": 3}, 100, 60.0,
    )  # fmt: skip
    assert read.sub_groups[0].selector.matches({"r": "s"})
    assert (read.zone.required, read.zone.level) == (True, "rack")
    assert read.created == datetime(2026, 1, 1, 0, 0, 10, tzinfo=UTC).timestamp()


def test_a_missing_priority_class_is_said_and_the_pods_priority_counts():
    read, problems = read_group(group(priorityClassName="none"))
    assert read.priority is None
    assert "'none'" in problems[0].message


@pytest.mark.parametrize(("mode", "required"), [("hard", True), ("soft", False)])
def test_volcanos_way_to_ask_for_topology(mode, required):
    read, _ = read_group(group(networkTopology={"mode": mode}))
    assert (read.zone.required, read.zone.preferred) == (required, not required)


def test_a_claim_survives_in_the_status():
    claim = {
        "id": "c", "reason": "reclaim", "placement": {"p": "n1"}, "victims": {"v": "ns/v"},
        "expires": "2026-01-01T00:05:00Z",
    }  # fmt: skip
    read = read_claim(group({"claim": claim}))
    assert (read.job, read.placement, read.victims) == ("ns/g", {"p": "n1"}, {"v": "ns/v"})
    assert read_claim(group()) is None


def test_a_quota_with_owners_life_and_bound_slots():
    raw = {
        "metadata": {"name": "q", "namespace": "ns", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {
            "queue": "a", "resources": {"cpu": "2", GPU: 1}, "count": 2, "ttl": "1h",
            "owners": [{"jobRef": {"name": "train"}}], "releasePolicy": {"type": "Idle", "after": "5m"},
        },
        "status": {"slots": [{"index": 1, "nodeName": "n1"}]},
    }  # fmt: skip
    read, problems = read_quota(msgspec.convert(raw, Quota))
    assert problems == []
    assert (read.resources, read.count, read.node) == ({"cpu": 2000, GPU: 1}, 2, {1: "n1"})
    assert (read.owners, read.release, read.release_after_seconds) == (frozenset({"ns/train"}), "Idle", 300.0)
    assert read.expires == read.created + 3600


def test_the_first_api_with_a_name_keeps_it():
    ours, theirs = (
        QueueRecords(queues={"a": QueueSpec("a", uid="1")}),
        QueueRecords(queues={"a": QueueSpec("a", uid="2")}),
    )
    ours.add(theirs)
    assert ours.queues["a"].uid == "1"
    assert len(ours.problems) == 1
