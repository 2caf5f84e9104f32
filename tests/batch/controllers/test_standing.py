"""What statuses say of the engine's world."""

from skysail.batch.controllers.standing import group_status, job_queue_status, phase_of, queue_status, quota_status
from skysail.batch.kinds.pod_group import PodGroupStatus
from skysail.batch.kinds.queue import QueueStatus
from skysail.batch.kinds.quota import QuotaStatus
from skysail.batch.model.specs import JobQueueSpec, QuotaSpec
from skysail.batch.shares import entitlements_of
from tests.batch.lab import GPU, Lab, figures


def small():
    lab = Lab()
    lab.nodes(1, gpus=4)
    lab.queue("a", figures=figures(deserved=4, capability=8))
    return lab


def test_a_gang_goes_from_pending_to_completed():
    lab = small()
    job = lab.group("g", 2, "a")
    assert phase_of(job) == "Pending"
    lab.pod("g-0", "g", 1)
    lab.pod("g-1", "g", 1)
    assert phase_of(job) == "Inqueue"
    lab.cycle()
    assert phase_of(job) == "Running"
    lab.delete("g-0")
    assert phase_of(job) == "Unknown"
    lab.finish("g-1")
    assert phase_of(job) == "Completed"


def test_a_waiting_gang_says_so_in_everybodys_words():
    lab = small()
    job = lab.gang("g", 6, queue="a", gpus=1)
    lab.cycle()
    status = group_status(job, PodGroupStatus(), lab.world.now)
    assert (status.phase, status.pending, status.running) == ("Inqueue", 6, 0)
    found = {each.type: (each.status, each.reason) for each in status.conditions}
    assert found == {"Unschedulable": ("True", "NotEnough"), "PodGroupScheduled": ("False", "Unschedulable")}
    (record,) = status.scheduling_conditions
    assert (record.code, record.details["need"]) == ("NotEnough", 6)


def test_a_conditions_time_stays_while_it_says_the_same():
    lab = small()
    job = lab.gang("g", 6, queue="a", gpus=1)
    lab.cycle()
    first = group_status(job, PodGroupStatus(), lab.world.now)
    later = group_status(job, first, lab.world.now + 60)
    assert later.conditions == first.conditions


def test_a_running_gang_is_scheduled():
    lab = small()
    job = lab.gang("g", 2, queue="a", gpus=1)
    lab.cycle()
    status = group_status(job, PodGroupStatus(), lab.world.now)
    assert [(each.type, each.status) for each in status.conditions] == [
        ("Scheduled", "True"), ("PodGroupScheduled", "True"),
    ]  # fmt: skip
    assert (status.running, status.scheduling_conditions) == (2, ())


def test_a_queue_shows_what_it_holds_wants_and_may_hold():
    lab = small()
    lab.gang("run", 3, queue="a", gpus=1)
    lab.cycle()
    lab.gang("wait", 3, queue="a", gpus=1)
    lab.cycle()
    world = lab.world
    phases = [phase_of(lab.job("run")), phase_of(lab.job("wait"))]
    status = queue_status(world, world.tree["a"], phases, entitlements_of(world), QueueStatus(), [])
    assert (status.running, status.inqueue, status.state) == (1, 1, "Open")
    assert (status.allocated[GPU], status.requested[GPU], status.entitlement[GPU]) == ("3", "6", "4")
    assert status.share == 750


def test_a_queue_over_its_limit_and_a_wrong_one_say_so():
    lab = small()
    lab.gang("run", 4, queue="a", gpus=1)
    lab.cycle()
    lab.queue("a", figures=figures(deserved=1, capability=2), parent="nowhere")
    world = lab.world
    status = queue_status(world, world.tree["a"], (), entitlements_of(world), QueueStatus(), ["weight: is odd"])
    found = {each.type: each.message for each in status.conditions}
    assert "4 of 2" in found["OverLimit"]
    assert found["Misconfigured"] == "weight: is odd; parent 'nowhere' does not exist"


def test_a_queue_whose_entitlement_is_scaled_says_so():
    lab = small()
    lab.queue("b", figures=figures(deserved=6))
    lab.gang("x", 4, queue="a", gpus=1, minimum=1)
    lab.gang("y", 6, queue="b", gpus=1, minimum=1)
    world = lab.world
    status = queue_status(world, world.tree["b"], (), entitlements_of(world), QueueStatus(), [])
    assert [each.type for each in status.conditions] == ["EntitlementScaled"]


def test_a_line_names_its_jobs_in_order():
    lab = small()
    lab.world.set_job_queue(JobQueueSpec("default", "l", "a"))
    for name in ("first", "second"):
        lab.group(name, 6, "", job_queue="l")
        for number in range(6):
            lab.pod(f"{name}-{number}", name, 1)
    lab.cycle()
    status = job_queue_status(lab.world, "default/l", [lab.job("second"), lab.job("first")])
    assert [(each.name, each.position) for each in status.pending] == [("default/first", 1), ("default/second", 2)]
    assert status.pending[0].code == "NotEnough"


def test_a_quota_shows_where_its_slots_are_and_who_holds_them():
    lab = Lab()
    lab.nodes(1, gpus=4, labels={"zone": "z1"})
    lab.world.set_quota(QuotaSpec("default", "q", "default", {GPU: 2, "cpu": 2000}, uid="q"))
    lab.cycle()
    slots = list(lab.world.slots.values())
    zones = {"n000": "z1"}
    status = quota_status(slots, {}, zones, QuotaStatus(), lab.world.now)
    assert (status.phase, status.node_name, status.zone) == ("Bound", "n000", "z1")
    assert status.bound_time is not None
    again = quota_status(slots, {}, zones, status, lab.world.now + 9)
    assert again.bound_time == status.bound_time


def test_a_quota_names_a_few_holders_and_counts_the_others():
    """Where many sit, its status must not grow with their names; slots say who sits in each."""
    lab = Lab()
    lab.nodes(2, gpus=64)
    lab.queue("q")
    lab.world.set_quota(QuotaSpec("default", "many", "q", {GPU: 1}, uid="many", count=100))
    lab.gang("job", 100, queue="q", gpus=1)
    lab.cycle(2)
    names = {uid: task.key for uid, task in lab.world.tasks.items()}
    status = quota_status(list(lab.world.slots.values()), names, {}, QuotaStatus(), lab.world.now)
    assert sum(len(slot.holders) for slot in status.slots) == 100
    first = [slot.holders[0] for slot in status.slots[:3]]
    assert status.holder == f"{', '.join(first)} and 97 more"
