"""When slots are given back, and come again: as their Quota says, whoever leads and whatever happened meanwhile."""

from dataclasses import replace
from datetime import UTC, datetime

import msgspec
import pytest

from skysail.api.meta import ObjectMeta
from skysail.batch.controllers.standing import quota_status
from skysail.batch.cycle import run_once
from skysail.batch.engine import Engine
from skysail.batch.foreign.koordinator import read_reservation
from skysail.batch.kinds import Quota
from skysail.batch.kinds import quota as kinds
from skysail.batch.kinds.quota import QuotaStatus, ReleasePolicy, SlotStatus
from skysail.batch.kinds.reading import read_quota
from tests.batch.lab import START, Lab

HOUR = 3600.0
IDLE = ReleasePolicy("Idle", "10s")
FINISH = ReleasePolicy("OnJobFinish")
RESTARTS = pytest.mark.parametrize("when", ["no restart", "restart", "take-over"])


def at(seconds):
    """A moment after the start."""
    return datetime.fromtimestamp(START + seconds, UTC)


class Slots:
    """A Quota as its object says it, and the process that leads."""

    def __init__(self, nodes=1, **spec):
        self.spec = kinds.QuotaSpec(queue="q", resources={"cpu": 1}, **spec)
        self.lab = self.process(nodes)
        self.lab.world.set_quota(self.said())

    @property
    def quota(self):
        """The object; its status is what the last process wrote."""
        metadata = ObjectMeta(namespace="default", name="many", uid="many", creation_timestamp=at(0))
        return Quota(metadata=metadata, spec=self.spec, status=getattr(self, "status", QuotaStatus()))

    def said(self):
        return read_quota(self.quota)[0]

    def process(self, nodes=1):
        lab = Lab()
        lab.nodes(nodes)
        lab.queue("q")
        return lab

    def say(self, **spec):
        """Somebody edits the Quota."""
        self.write()
        self.spec = msgspec.structs.replace(self.spec, **spec)
        self.lab.world.set_quota(self.said())

    def write(self):
        world = self.lab.world
        slots = sorted(world.slots.values(), key=lambda slot: slot.index)
        names = {uid: task.key for uid, task in world.tasks.items()}
        self.status = quota_status(slots, names, {}, QuotaStatus(), world.now)

    def restart(self, when, *ended, seconds=0.0):
        """The process goes on, or another one leads, which was started now or watched since the beginning."""
        if when == "no restart":
            self.lab.world.now += seconds
            for name in ended:
                self.lab.delete(name)
            return
        self.write()
        before, self.lab = self.lab.world, self.process()
        self.lab.world.now = before.now + seconds
        said = self.said()
        self.lab.world.set_quota(replace(said, node={}, released={}, used=frozenset()) if when == "take-over" else said)
        for task in before.tasks.values():
            if task.pod.name not in ended:
                self.lab.world.set_pod(task.pod)
        self.lab.world.place_slots({said.key: said})

    def phases(self):
        return [slot.phase for slot in sorted(self.lab.world.slots.values(), key=lambda slot: slot.index)]

    def bound(self, monkeypatch):
        """Every node a slot is given from now on."""
        given, world = [], self.lab.world
        stand = world.stand
        monkeypatch.setattr(world, "stand", lambda slot, node: (given.append(node), stand(slot, node)))
        return given


@RESTARTS
def test_a_slot_that_was_given_back_is_not_bound_again(when):
    slots = Slots(count=2, release_policy=FINISH)
    slots.lab.pod("p", queue="q", cpu="1")
    slots.lab.cycle()
    slots.lab.finish("p")
    slots.lab.cycle()
    slots.restart(when)
    slots.lab.cycle(2)
    assert sorted(slots.phases()) == ["Bound", "Releasing"]


@RESTARTS
@pytest.mark.parametrize("later", [None, at(3 * HOUR)])
@pytest.mark.parametrize("policy", [ReleasePolicy(), ReleasePolicy("Idle", "10h"), FINISH])
def test_a_quota_whose_end_is_moved_is_bound_again(when, later, policy):
    slots = Slots(count=2, expires=at(HOUR), release_policy=policy)
    slots.lab.cycle()
    slots.lab.world.now = START + HOUR
    slots.lab.cycle()
    assert slots.phases() == ["Releasing", "Releasing"]
    slots.restart(when)
    slots.say(expires=later)
    slots.lab.cycle()
    assert slots.phases() == ["Bound", "Bound"]


@RESTARTS
@pytest.mark.parametrize("far", [False, True])
def test_a_quota_whose_end_is_moved_while_no_process_runs_is_bound_again_if_it_is_still_to_come(when, far):
    slots = Slots(expires=at(HOUR))
    slots.lab.world.now = START + HOUR
    slots.lab.cycle()
    slots.write()
    slots.spec = msgspec.structs.replace(slots.spec, expires=at(9 * HOUR if far else 2 * HOUR))
    if when == "no restart":
        slots.lab.world.now += HOUR
        slots.lab.world.set_quota(slots.said())
    else:
        slots.restart(when, seconds=HOUR)
    slots.lab.cycle()
    assert slots.phases() == ["Bound" if far else "Releasing"]


@RESTARTS
@pytest.mark.parametrize(
    ("spec", "other", "phase"),
    [
        ({"allocate_once": True}, {"expires": at(9 * HOUR)}, "Releasing"),
        ({"allocate_once": True}, {"allocate_once": False}, "Bound"),
        ({"release_policy": FINISH}, {"release_policy": ReleasePolicy()}, "Bound"),
        ({"release_policy": FINISH}, {"allocate_once": True, "release_policy": ReleasePolicy()}, "Releasing"),
        ({"release_policy": IDLE}, {"expires": at(9 * HOUR)}, "Releasing"),
        ({"release_policy": IDLE}, {"release_policy": ReleasePolicy()}, "Bound"),
        ({"release_policy": IDLE}, {"release_policy": ReleasePolicy(), "expires": at(1)}, "Releasing"),
    ],
)
def test_a_slot_that_was_given_back_stays_so_as_long_as_its_reason_holds(when, spec, other, phase):
    slots = Slots(**{"expires": at(HOUR), **spec})
    slots.lab.pod("p", queue="q", cpu="1")
    slots.lab.cycle()
    slots.lab.finish("p")
    slots.lab.cycle(seconds=20.0)
    slots.lab.cycle()
    assert slots.phases() == ["Releasing"]
    slots.restart(when)
    slots.say(**other)
    slots.lab.cycle()
    assert slots.phases() == [phase]


@RESTARTS
@pytest.mark.parametrize("ends", ["while a process runs", "while none runs"])
@pytest.mark.parametrize("spec", [{"allocate_once": True}, {"release_policy": FINISH}], ids=["once", "one job"])
def test_a_slot_for_one_use_is_not_used_again(when, ends, spec):
    slots = Slots(**spec)
    slots.lab.pod("p", queue="q", cpu="1")
    slots.lab.cycle()
    if ends == "while a process runs":
        slots.lab.delete("p")
        slots.restart(when)
    else:
        slots.restart(when, "p")
    slots.lab.cycle()
    assert slots.phases() == ["Releasing"]
    slots.lab.pod("next", queue="q", cpu="1")
    slots.lab.cycle()
    assert slots.phases() == ["Releasing"]
    assert slots.lab.world.tasks["uid-next"].slot is None


@RESTARTS
def test_a_gang_goes_on_to_sit_in_its_slot_for_one_use(when):
    slots = Slots(allocate_once=True)
    slots.lab.gang("job", 2, queue="q", cpu="400m")
    slots.lab.cycle()
    slots.restart(when)
    slots.lab.group("job", 2, "q")
    slots.lab.cycle()
    (slot,) = slots.lab.world.slots.values()
    assert (slot.phase, sorted(slot.holders)) == ("Bound", ["uid-job-0", "uid-job-1"])


def test_what_is_to_be_known_of_a_slot_for_one_use_is_written_when_it_is_first_used():
    slots = Slots(allocate_once=True)
    slots.lab.cycle()
    slots.lab.pod("p", queue="q", cpu="1")
    effects = run_once(slots.lab.world, slots.lab.configuration).effects
    assert [slot.is_spent for slot in effects.slots] == [True]


def test_a_binding_that_fails_uses_no_slot_up():
    slots = Slots(allocate_once=True)
    slots.lab.pod("p", queue="q", cpu="1")
    run_once(slots.lab.world, slots.lab.configuration)
    slots.lab.world.bind_failed(slots.lab.world.tasks["uid-p"], "refused", blames_node=False)
    slots.lab.cycle()
    assert slots.phases() == ["Bound"]
    assert list(next(iter(slots.lab.world.slots.values())).holders) == ["uid-p"]


def test_a_reservation_that_had_an_owner_is_not_used_again():
    raw = {
        "apiVersion": "scheduling.koordinator.sh/v1alpha1",
        "kind": "Reservation",
        "metadata": {"name": "r", "uid": "r"},
        "spec": {"template": {"spec": {"containers": [{"resources": {"requests": {"cpu": "1"}}}]}}, "ttl": "0"},
        "status": {"phase": "Available", "nodeName": "n000", "currentOwners": [{"namespace": "default", "name": "p"}]},
    }
    lab = Lab()
    lab.nodes(1)
    spec, _ = read_reservation(raw)
    lab.world.set_quota(spec)
    lab.cycle()
    assert [slot.phase for slot in lab.world.slots.values()] == ["Releasing"]


@RESTARTS
def test_a_quota_that_expired_before_it_had_a_node_never_gets_one(when, monkeypatch):
    slots = Slots(nodes=0, expires=at(HOUR))
    slots.lab.cycle()
    slots.restart(when, seconds=HOUR)
    given = slots.bound(monkeypatch)
    slots.lab.pod("p", queue="q", cpu="1")
    slots.lab.cycle(2)
    slots.lab.nodes(2)
    slots.lab.cycle(2)
    assert (given, slots.phases(), slots.lab.count("p")) == ([], ["Releasing"], 1)


def test_that_a_quota_expired_before_it_had_a_node_is_said_though_nothing_else_happens():
    slots = Slots(nodes=0, expires=at(HOUR))
    engine = Engine(slots.lab.world, slots.lab.configuration, check=True)
    engine.run_once(START)
    assert engine.run_once(START + 60) is None
    assert [slot.phase for slot in engine.run_once(START + HOUR).effects.released] == ["Releasing"]
    assert engine.run_once(START + HOUR + 60) is None


@RESTARTS
def test_nothing_more_is_put_into_a_slot_whose_time_is_over(when):
    slots = Slots(expires=at(HOUR))
    slots.lab.pod("first", queue="q", cpu="400m")
    slots.lab.cycle()
    slots.lab.world.now = START + HOUR
    slots.lab.pod("second", queue="q", cpu="400m")
    slots.lab.cycle()
    assert (slots.phases(), slots.lab.count("second")) == (["Bound"], 1)
    assert slots.lab.world.tasks["uid-second"].slot is None
    slots.restart(when)
    slots.lab.cycle()
    assert {name: task.slot is None for name, task in slots.lab.world.tasks.items()} == {
        "uid-first": False,
        "uid-second": True,
    }
    slots.lab.delete("first")
    slots.lab.cycle()
    assert slots.phases() == ["Releasing"]


def test_a_job_that_waits_for_a_quota_that_expires_goes_without():
    slots = Slots(node_selector={"none": "such"}, expires=at(HOUR))
    slots.lab.pod("p", queue="q", cpu="1")
    slots.lab.cycle()
    assert slots.lab.code("p") == "WaitingQuotaBind"
    slots.lab.world.now = START + HOUR
    slots.lab.cycle()
    assert slots.lab.count("p") == 1


@pytest.mark.parametrize(("policy", "phase"), [(ReleasePolicy(), "Bound"), (IDLE, "Releasing"), (FINISH, "Releasing")])
def test_a_status_that_does_not_say_why_a_slot_was_given_back_is_taken_for_what_its_policy_would_do(policy, phase):
    slots = Slots(release_policy=policy)
    slots.status = QuotaStatus(slots=(SlotStatus(0, "Releasing"),))
    slots.lab = slots.process()
    slots.lab.world.set_quota(slots.said())
    slots.lab.cycle()
    assert slots.phases() == [phase]


def test_a_slot_whose_status_does_not_say_since_when_it_is_bound_gets_no_moment_of_ours():
    slots = Slots()
    slots.status = QuotaStatus(slots=(SlotStatus(0, "Bound", "n000"),))
    slots.lab = slots.process()
    slots.lab.world.set_quota(slots.said())
    (slot,) = slots.lab.world.slots.values()
    assert (slot.node, slot.bound_time) == ("n000", None)
