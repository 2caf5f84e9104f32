"""Slots of Quotas and the pods that sit in them: what stands on a node is counted once, whoever asks."""

from dataclasses import replace
from datetime import UTC, datetime

import msgspec
import pytest

from skysail.batch.copying import copy_world
from skysail.batch.devices import ledger_of
from skysail.batch.engine import Engine
from skysail.batch.kinds.parts import SCHEDULER_NAME
from skysail.batch.model.specs import FlavorSpec, QuotaSpec
from skysail.testing.builders import make_container
from tests.batch.lab import ANY, GPU, START, Lab


def slotted(count, resources, *, nodes=1, **capacity):
    """A lab whose queue has slots, bound already."""
    lab = Lab()
    lab.nodes(nodes, **capacity)
    lab.queue("q")
    lab.world.set_quota(QuotaSpec("default", "many", "q", resources, uid="many", count=count))
    lab.refused = []
    play = lab.play

    def carry(effects):
        """Bind what may still be bound, as the shell does."""
        for batch in effects.binds:
            lost = [task for task in batch.tasks if not lab.world.may_still_bind(task)]
            lab.refused += [task.pod.name for task in lost]
            batch.tasks[:] = [task for task in batch.tasks if task not in lost]
            for task in lost:
                lab.world.bind_failed(task)
        play(effects)

    lab.play = carry
    lab.cycle()
    return lab


def taken(lab, node="n000"):
    """What is accounted to a node."""
    account = lab.world.cache.node_info(node)
    return {"pods": len(account.pods), **{name: amount for name, amount in account.requested.items() if amount}}


@pytest.mark.parametrize("cpu", ["100m", "50m"], ids=["all of a slot", "part of a slot"])
def test_slots_that_fill_their_node_to_its_last_pod_take_pods(cpu):
    lab = slotted(10, {"cpu": 100}, pods="10")
    for number in range(10):
        lab.pod(f"p{number}", queue="q", cpu=cpu)
    lab.cycle(2)
    assert (lab.refused, len(lab.bound)) == ([], 10)


def test_a_quota_named_as_another_ones_slot_has_slots_of_its_own():
    lab = slotted(2, {"cpu": 100})
    lab.world.set_quota(QuotaSpec("default", "many-1", "q", {"cpu": 100}, uid="other", count=1))
    lab.cycle()
    assert sorted(slot.spec.name for slot in lab.world.slots.values()) == ["many", "many", "many-1"]
    assert taken(lab)["cpu"] == 300


def test_a_gang_fills_the_slots_of_a_full_node():
    lab = slotted(10, {"cpu": 100}, pods="10")
    lab.gang("job", 10, queue="q", cpu="50m")
    lab.cycle()
    assert (lab.refused, lab.count("job")) == ([], 10)


def test_a_slot_takes_a_second_pod_only_where_the_node_has_a_place_for_it():
    lab = slotted(2, {"cpu": 100}, pods="3")
    for number in range(4):
        lab.pod(f"p{number}", queue="q", cpu="50m")
    lab.cycle(2)
    assert (lab.refused, len(lab.bound)) == ([], 3)
    lab.finish("p0")
    lab.cycle()
    assert (lab.refused, len(lab.bound)) == ([], 4)


def test_a_node_with_slots_holds_as_much_as_without():
    """All that holders leave of a node's slots keeps one place for a pod, however many the slots are."""
    lab = slotted(10, {"cpu": 100}, pods="20")
    lab.gang("job", 10, queue="q", cpu="60m")
    lab.cycle()
    assert taken(lab) == {"pods": 11, "cpu": 1000}
    lab.queue("bare")
    for number in range(10):
        lab.pod(f"p{number}", queue="bare", cpu="50m")
    lab.cycle()
    assert len(lab.bound) == 19
    lab.pod("last", queue="q", cpu="40m")
    lab.cycle()
    assert (lab.refused, lab.count("last")) == ([], 1)


def test_what_a_slot_holds_is_never_more_than_its_size():
    lab = slotted(2, {"cpu": 4000, GPU: 4, "memory": 8 << 30}, gpus=8)
    held = {"cpu": 8000, GPU: 8, "memory": 16 << 30}
    assert taken(lab) == {"pods": 2, **held}
    lab.gang("job", 3, queue="q", gpus=2, requests={"cpu": "1", "memory": "1Gi"})
    lab.cycle()
    assert {name: taken(lab)[name] for name in held} == held
    lab.finish("job-0")
    lab.cycle()
    assert {name: taken(lab)[name] for name in held} == held
    lab.finish("job-1")
    lab.finish("job-2")
    lab.cycle()
    assert taken(lab) == {"pods": 2, **held}
    lab.world.remove_quota("default/many")
    assert taken(lab) == {"pods": 0}


def test_pods_with_one_host_port_sit_in_slots_of_different_nodes():
    lab = slotted(4, {"cpu": 1000}, nodes=2, cpu="2")
    ports = [make_container(requests={"cpu": "1"}, host_ports=[8080])]
    for number in range(3):
        lab.pod(f"p{number}", queue="q", containers=ports)
    lab.cycle()
    assert (lab.refused, sorted(node for _, node in lab.bound)) == ([], ["n000", "n001"])


def test_a_job_stays_away_from_slots_of_a_node_that_refused_it():
    lab = slotted(2, {"cpu": 1000}, nodes=2, cpu="1")
    lab.pod("p", queue="q", cpu="1")
    play = lab.play

    def refuse(effects):
        for batch in effects.binds:
            for task in [task for task in batch.tasks if task.node == "n000"]:
                batch.tasks.remove(task)
                lab.refused.append(task.pod.name)
                lab.world.bind_failed(task, "refused")
        play(effects)

    lab.play = refuse
    lab.cycle(3)
    assert (lab.refused, lab.bound) == (["p"], [("p", "n001")])


def test_pods_of_a_node_that_is_gone_leave_their_slots():
    lab = slotted(1, {"cpu": 1000}, nodes=2, cpu="1")
    lab.pod("p", queue="q", cpu="1")
    lab.cycle()
    lab.world.remove_node("n000")
    lab.cycle()
    (slot,) = lab.world.slots.values()
    assert (slot.node, dict(slot.holders), taken(lab, "n001")) == ("n001", {}, {"pods": 1, "cpu": 1000})
    assert lab.world.ledger.amount("q", 0, (ANY, "cpu")) == 2000
    lab.delete("p")
    lab.cycle()
    assert taken(lab, "n001") == {"pods": 1, "cpu": 1000}


def test_a_commit_that_fails_leaves_slots_as_they_were():
    lab = slotted(2, {"cpu": 1000})
    before = taken(lab)
    lab.gang("job", 2, queue="q", cpu="600m")
    assume = lab.world.assume

    def refuse(task, node):
        if task.pod.name == "job-1":
            raise ValueError("accounted for already")
        assume(task, node)

    lab.world.assume = refuse
    lab.cycle()
    assert (lab.bound, taken(lab)) == ([], before)
    lab.world.assume = assume
    lab.cycle(10)
    assert lab.count("job") == 2


def test_pods_that_run_are_found_in_slots_made_before_them_only():
    """What a process sees that starts while they run; a pod's new words make it a new task, too."""
    lab = slotted(2, {"cpu": 1000})
    lab.gang("job", 2, queue="q", cpu="600m")
    lab.cycle()
    elder = lab.pod("elder", queue="q", cpu="600m")
    lab.run(elder, "n000")
    again = Lab()
    again.nodes(1)
    again.queue("q")
    nodes = {slot.index: slot.node for slot in lab.world.slots.values()}
    again.group("job", 2, "q")
    made = START + 2.5
    again.world.set_quota(replace(lab.world.quotas["default/many"], node=nodes, created=made))
    for uid, started in (("uid-elder", made - 1), ("uid-job-0", made + 1), ("uid-job-1", made + 1)):
        pod = lab.world.tasks[uid].pod
        status = msgspec.structs.replace(pod.status, start_time=datetime.fromtimestamp(started, UTC))
        again.world.set_pod(msgspec.structs.replace(pod, status=status))
    again.cycle()
    assert taken(again) == taken(lab) == {"pods": 4, "cpu": 2600}
    assert again.world.tasks["uid-elder"].slot is None
    assert again.world.ledger == lab.world.ledger
    pod = again.world.tasks["uid-job-0"].pod
    labels = {**pod.metadata.labels, "scheduling.skysail.io/role": "worker"}
    metadata = msgspec.structs.replace(pod.metadata, labels=labels)
    again.world.set_pod(msgspec.structs.replace(pod, metadata=metadata))
    again.cycle()
    assert taken(again) == {"pods": 4, "cpu": 2600}
    twin = copy_world(again.world)
    assert twin.problems() == []
    assert {uid: task.slot.key for uid, task in twin.tasks.items() if task.slot} == {
        uid: task.slot.key for uid, task in again.world.tasks.items() if task.slot
    }


def test_a_slot_whose_time_is_over_is_given_back_though_nothing_else_happens():
    lab = slotted(1, {"cpu": 1000})
    spec = replace(lab.world.quotas["default/many"], expires=START + 100)
    lab.world.set_quota(spec)
    engine = Engine(lab.world, lab.configuration, check=True)
    engine.run_once(START + 50)
    assert engine.run_once(START + 60) is None
    assert [slot.key for slot in engine.run_once(START + 100).effects.released] == [spec.key]
    assert taken(lab) == {"pods": 0}


@pytest.mark.parametrize("devices", [2, 3])
def test_a_part_of_a_device_is_none_of_those_that_slots_hold(devices):
    lab = slotted(2, {"cpu": 1000, GPU: 1}, gpus=devices)
    lab.pod("share", queue="q", cpu="500m", annotations={"gpu-fraction": "0.5"})
    lab.cycle()
    for number in range(2):
        lab.pod(f"whole{number}", queue="q", cpu="500m", gpus=1)
    lab.cycle(2)
    whole = [("whole0", "n000"), ("whole1", "n000")]
    assert lab.bound == (whole if devices == 2 else [("share", "n000"), *whole])
    assert ledger_of(lab.world.cache.node_info("n000")).free == 0
    assert lab.code("share") == ("NoQuotaSlot" if devices == 2 else None)


@pytest.mark.parametrize("refused", ["job-1", "job-2"])
def test_a_commit_of_which_a_part_fails_leaves_the_room_that_the_others_leave(refused):
    lab = slotted(3, {"cpu": 1000})
    lab.gang("job", 3, 1, queue="q", cpu="600m")
    assume = lab.world.assume

    def refuse(task, node):
        if task.pod.name == refused:
            raise ValueError("accounted for already")
        assume(task, node)

    lab.world.assume = refuse
    lab.cycle()
    assert lab.count("job") == 2
    assert taken(lab) == {"pods": 4, "cpu": 3000}


@pytest.mark.parametrize(("count", "later"), [(1, 2), (2, 1)])
def test_a_quota_that_grows_or_shrinks_keeps_its_first_slot_and_who_sits_there(count, later):
    lab = slotted(count, {"cpu": 1000})
    lab.pod("p", queue="q", cpu="1")
    lab.cycle()
    spec = lab.world.quotas["default/many"]
    lab.world.set_quota(replace(spec, count=later, node={0: "n000"}))
    lab.cycle()
    first, *_ = sorted(lab.world.slots.values(), key=lambda slot: slot.index)
    assert (first.node, list(first.holders)) == ("n000", ["uid-p"])
    assert [lab.world.slots[slot.key] is slot for slot in lab.world.slots.values()] == [True] * later
    assert taken(lab)["cpu"] == 1000 * later


def test_a_quota_made_again_by_the_same_name_has_slots_nobody_used():
    lab = slotted(1, {"cpu": 1000})
    lab.pod("p", queue="q", cpu="1")
    lab.cycle()
    spec = lab.world.quotas["default/many"]
    lab.world.set_quota(replace(spec, uid="another", created=START + 10))
    lab.cycle()
    (slot,) = lab.world.slots.values()
    assert (slot.node, dict(slot.holders), slot.was_used) == ("n000", {}, False)
    assert taken(lab) == {"pods": 2, "cpu": 2000}


def test_a_gang_in_a_slot_for_once_is_found_there_whole():
    lab = slotted(1, {"cpu": 1000})
    spec = replace(lab.world.quotas["default/many"], allocate_once=True)
    lab.world.set_quota(spec)
    lab.gang("job", 2, queue="q", cpu="400m")
    lab.cycle()
    lab.pod("other", queue="q", cpu="100m")
    lab.cycle()
    assert lab.world.tasks["uid-other"].slot is None
    again = Lab()
    again.nodes(1)
    again.queue("q")
    again.group("job", 2, "q")
    again.world.set_quota(replace(spec, node={0: "n000"}))
    for task in lab.world.tasks.values():
        again.world.set_pod(task.pod)
    again.cycle()
    assert (taken(again), again.world.ledger) == (taken(lab), lab.world.ledger)


@pytest.mark.parametrize("scheduler", [SCHEDULER_NAME, "default-scheduler"])
def test_what_is_told_of_before_its_node_is_charged_to_the_nodes_flavor(scheduler):
    lab = Lab()
    lab.queue("q")
    lab.world.set_flavors([FlavorSpec("large", {"size": "large"})])
    lab.world.set_quota(QuotaSpec("default", "many", "q", {"cpu": 1000}, uid="many", count=2, node={0: "n000"}))
    pod = lab.pod("p", queue="bare", cpu="1", scheduler=scheduler)
    lab.run(pod, "n000")
    lab.nodes(1, labels={"size": "large"})
    lab.cycle()
    assert lab.world.ledger.amount("q", 0, ("large", "cpu")) == 2000
    lab.delete("p")
    assert [amount for key, amount in lab.world.foreign_use.items() if amount] == []
    lab.world.remove_quota("default/many")
    lab.cycle()
    assert lab.world.ledger.entries() == {}


def test_a_copy_has_slots_where_they_are_and_not_where_they_were_said_to_be():
    lab = Lab()
    lab.nodes(2, cpu="1")
    lab.queue("q")
    spec = QuotaSpec("default", "many", "q", {"cpu": 1000}, uid="many", count=2, node={0: "n000", 1: "n001"})
    lab.world.set_quota(replace(spec, expires=START + 100))
    lab.world.remove_node("n000")
    twin = copy_world(lab.world)
    assert twin.ledger == lab.world.ledger
    assert [slot.node for slot in twin.slots.values()] == ["", "n001"]
    lab.world.now = START + 100
    lab.cycle()
    twin = copy_world(lab.world)
    assert twin.ledger == lab.world.ledger
    assert [slot.phase for slot in twin.slots.values()] == [slot.phase for slot in lab.world.slots.values()]


def test_who_runs_beside_a_full_slot_of_its_queue_sits_there_once_there_is_room():
    """It came to the queue while it ran; a process that starts then would find it there."""
    lab = slotted(1, {"cpu": 1000})
    lab.pod("p", queue="q", cpu="1")
    lab.cycle()
    lab.queue("bare")
    pod = lab.pod("other", queue="bare", cpu="1")
    lab.cycle()
    metadata = msgspec.structs.replace(pod.metadata, labels={"scheduling.skysail.io/queue": "q"})
    lab.world.set_pod(msgspec.structs.replace(lab.world.tasks[pod.uid].pod, metadata=metadata))
    assert lab.world.ledger.amount("q", 0, (ANY, "cpu")) == 2000
    lab.delete("p")
    lab.cycle()
    assert lab.world.ledger.amount("q", 0, (ANY, "cpu")) == 1000
    assert taken(lab) == {"pods": 1, "cpu": 1000}


@pytest.mark.parametrize(
    "spec", [{"queue": "r"}, {"owners": frozenset({"default/none"})}, {"resources": {"cpu": 500}}], ids=str
)
def test_who_may_sit_in_a_slot_no_longer_is_charged_by_itself(spec):
    lab = slotted(1, {"cpu": 1000})
    lab.queue("r")
    lab.pod("p", queue="q", cpu="1")
    lab.cycle()
    lab.world.set_quota(replace(lab.world.quotas["default/many"], **spec))
    lab.cycle()
    (slot,) = lab.world.slots.values()
    assert (dict(slot.holders), lab.world.tasks["uid-p"].slot) == ({}, None)
    assert lab.world.ledger.amount(slot.spec.queue, 0, (ANY, "cpu")) == slot.size["cpu"] + 1000 * (
        slot.spec.queue == "q"
    )
    assert lab.world.ledger.amount("q", 0, (ANY, "cpu")) >= 1000


def test_a_pod_that_grows_out_of_its_slot_is_charged_by_itself():
    lab = slotted(1, {"cpu": 1000})
    lab.pod("p", queue="q", cpu="1")
    lab.cycle()
    pod = lab.world.tasks["uid-p"].pod
    spec = msgspec.structs.replace(pod.spec, containers=(make_container(requests={"cpu": "2"}),))
    lab.world.set_pod(msgspec.structs.replace(pod, spec=spec))
    lab.cycle()
    assert lab.world.ledger.amount("q", 0, (ANY, "cpu")) == 3000
    assert taken(lab) == {"pods": 2, "cpu": 3000}
