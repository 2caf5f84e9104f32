"""What is owed to other systems' objects: our status in their words."""

from datetime import UTC, datetime

from skysail.api.meta import Condition
from skysail.batch.foreign import coscheduling, elastic, kai, kueue_status, upstream, volcano
from skysail.batch.kinds.parts import OutcomeRecord
from skysail.batch.kinds.pod_group import PodGroupStatus
from skysail.batch.kinds.queue import QueueStatus
from skysail.batch.model.specs import Figures, QueueSpec

SINCE = datetime(2026, 1, 1, tzinfo=UTC)
WAITING = PodGroupStatus(
    phase="Inqueue",
    pending=3,
    occupied_by="Job/ns/train",
    conditions=(
        Condition(
            type="Unschedulable", status="True", reason="NotEnough", message="2 of 3 fit", last_transition_time=SINCE
        ),
        Condition(
            type="PodGroupScheduled", status="False", reason="Unschedulable", message="2 of 3 fit",
            last_transition_time=SINCE,
        ),
    ),
    scheduling_conditions=(
        OutcomeRecord(code="QuotaExceeded", message="2 of 3 fit", details={"queue": "a"}, since=SINCE),
    ),
)  # fmt: skip
RUNNING = PodGroupStatus(phase="Running", running=3, occupied_by="Job/ns/train")


def test_volcano():
    status = volcano.group_status(WAITING)
    assert status["phase"] == "Inqueue"
    (condition,) = status["conditions"]
    assert (condition["type"], condition["reason"], condition["lastTransitionTime"]) == (
        "Unschedulable", "NotEnoughResources", "2026-01-01T00:00:00Z",
    )  # fmt: skip
    assert volcano.queue_status(QueueStatus(pending=1, running=2, allocated={"cpu": "3"})) == {
        "pending": 1, "inqueue": 0, "running": 2, "completed": 0, "unknown": 0, "allocated": {"cpu": "3"},
    }  # fmt: skip


def test_kai():
    (condition,) = kai.group_status(WAITING)["schedulingConditions"]
    assert condition["type"] == "UnschedulableOnNodePool"
    assert condition["reasons"][0]["reason"] == "OverLimit"
    assert condition["reasons"][0]["details"] == {"queueDetails": {"name": "a"}}
    assert kai.queue_status(QueueStatus(child_queues=("b",)))["childQueues"] == ["b"]


def test_coscheduling():
    assert coscheduling.group_status(WAITING)["phase"] == "Scheduling"
    assert coscheduling.group_status(RUNNING) == {
        "phase": "Running", "occupiedBy": "Job/ns/train", "running": 3, "succeeded": 0, "failed": 0,
    }  # fmt: skip
    assert coscheduling.group_status(PodGroupStatus(phase="Completed", failed=1))["phase"] == "Failed"


def test_upstream():
    (condition,) = upstream.group_status(WAITING)["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == (
        "PodGroupScheduled", "False", "Unschedulable",
    )  # fmt: skip


def test_kueue():
    spec = QueueSpec("a", figures={("default-flavor", "cpu"): Figures(deserved=4000)})
    status = kueue_status.cluster_queue_status(
        QueueStatus(pending=1, inqueue=1, running=2), {("default-flavor", "cpu"): 5500}, spec
    )
    assert (status["pendingWorkloads"], status["admittedWorkloads"]) == (2, 2)
    assert status["flavorsUsage"] == [
        {"name": "default-flavor", "resources": [{"name": "cpu", "total": "5500m", "borrowed": "1500m"}]}
    ]


def test_elastic_quota():
    spec = QueueSpec("a", figures={("*", "cpu"): Figures(deserved=4000)})
    assert elastic.quota_status(QueueStatus(allocated={"cpu": "3", "memory": "1"}), spec) == {"used": {"cpu": "3"}}
