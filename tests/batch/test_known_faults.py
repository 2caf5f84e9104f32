"""Faults that users of other schedulers reported, each as the kind it is of: promises, lines, groups, placement."""

import msgspec
import pytest

from skysail.batch.model.specs import FlavorSpec, Preemption
from skysail.testing.builders import HOSTNAME, make_node, taint
from skysail.testing.placement import affinity, away_from, near
from tests.batch.lab import GPU, Lab, figures


def apart(name):
    """Required anti-affinity on hosts against pods of this app."""
    return affinity(away=[away_from({"app": name}, HOSTNAME)])


def together(name):
    """Required affinity on hosts to pods of this app."""
    return affinity(near=[near({"app": name}, HOSTNAME)])


# -- promises ------------------------------------------------------------------------------------------------------


def preempting():
    """A pod waits for one node's pod to leave."""
    lab = Lab()
    lab.leaves_at_once = False
    lab.nodes(1, gpus=8)
    lab.pod("low", gpus=8)
    lab.cycle()
    lab.pod("high", gpus=8, priority=10)
    lab.cycle()
    assert lab.code("high") == "WaitingVictims"
    return lab


@pytest.mark.parametrize("change", ["cordoned", "tainted", "relabelled"])
def test_a_promise_on_a_node_that_no_longer_takes_the_pod_is_not_kept(change):
    lab = Lab()
    lab.leaves_at_once = False
    lab.nodes(1, gpus=8, labels={"pool": "a"})
    lab.pod("low", gpus=8)
    lab.cycle()
    lab.pod("high", gpus=8, priority=10, node_selector={"pool": "a"})
    lab.cycle()
    said = {
        "cordoned": {"labels": {"pool": "a"}, "unschedulable": True},
        "tainted": {"labels": {"pool": "a"}, "taints": [taint("gone:NoSchedule")]},
        "relabelled": {"labels": {"pool": "b"}},
    }[change]
    lab.world.set_node(make_node("n000", cpu="64", memory="256Gi", pods="110", capacity={GPU: "8"}, **said))
    lab.finish_leaving()
    lab.cycle(2)
    assert ("high", "n000") not in lab.bound
    assert lab.code("high") == "NoNode"
    assert lab.world.claims == {}
    lab.nodes(1, prefix="other", gpus=8, labels={"pool": "a"})
    lab.cycle()
    assert lab.node_of("high") == "other000"


def test_a_beneficiary_that_is_gone_leaves_its_room_to_others():
    lab = preempting()
    lab.delete("high")
    lab.finish_leaving()
    lab.pod("next", gpus=8)
    lab.cycle()
    assert lab.count("next") == 1


def test_who_was_promised_room_takes_what_comes_free_elsewhere_first():
    lab = preempting()
    lab.nodes(1, prefix="new", gpus=8)
    lab.cycle()
    assert lab.count("high") == 1
    assert lab.node_of("high") == "new000"
    assert lab.world.claims == {}
    lab.pod("next", gpus=8)
    lab.finish_leaving()
    lab.cycle()
    assert lab.count("next") == 1


def test_a_victim_that_never_leaves_holds_nobody_for_ever():
    lab = preempting()
    lab.cycle(400)
    assert lab.world.claims == {}
    assert lab.code("high") in ("NoNode", "NotEnough")
    assert [name for name, _ in lab.evicted] == ["low"]
    lab.nodes(1, prefix="new", gpus=8)
    lab.cycle()
    assert lab.count("high") == 1


def test_a_higher_job_that_comes_later_does_not_take_a_promise_but_gets_its_own():
    lab = preempting()
    lab.nodes(1, prefix="b", gpus=4)
    lab.pod("low2", gpus=4)
    lab.cycle()
    lab.pod("higher", gpus=4, priority=100)
    lab.cycle()
    assert lab.code("higher") == "WaitingVictims"
    lab.finish_leaving()
    lab.cycle(2)
    assert (lab.count("high"), lab.count("higher")) == (1, 1)


# -- heads, flavors, borrowing -------------------------------------------------------------------------------------


def test_a_head_of_a_strict_line_keeps_no_other_queue_from_borrowing_what_it_cannot_use():
    lab = Lab()
    lab.nodes(1, gpus=8)
    lab.queue("cohort", figures=figures(capability=8))
    lab.queue("guaranteed", parent="cohort", dequeue="fifo", figures=figures(deserved=8))
    lab.queue("effort", parent="cohort", figures=figures(deserved=0))
    lab.gang("g1", 1, queue="guaranteed", gpus=4)
    lab.cycle()
    lab.gang("g2", 1, queue="guaranteed", gpus=8)
    lab.gang("e1", 1, queue="effort", gpus=4)
    lab.cycle()
    assert (lab.count("g1"), lab.count("g2"), lab.count("e1")) == (1, 0, 1)


def test_within_its_share_a_job_goes_before_an_older_one_that_borrows():
    lab = Lab()
    lab.nodes(1, gpus=8)
    lab.queue("one", figures=figures(deserved=2))
    lab.queue("two", figures=figures(deserved=6))
    lab.gang("o1", 1, queue="one", gpus=2)
    lab.cycle()
    lab.gang("older", 1, queue="one", gpus=6)
    lab.gang("within", 1, queue="two", gpus=6)
    lab.cycle()
    assert (lab.count("within"), lab.count("older")) == (1, 0)


def test_a_full_first_flavor_is_followed_by_the_next():
    lab = Lab()
    lab.nodes(1, prefix="x", cpu="4", labels={"arch": "x86"})
    lab.nodes(1, prefix="a", cpu="4", labels={"arch": "arm"})
    lab.world.set_flavors([FlavorSpec("x86", {"arch": "x86"}), FlavorSpec("arm", {"arch": "arm"})])
    cpu = figures(2000, 2000, resource="cpu", flavor="x86") | figures(2000, 4000, resource="cpu", flavor="arm")
    lab.queue("q", flavors=("x86", "arm"), figures=cpu)
    for number in range(4):
        lab.gang(f"j{number}", 1, queue="q", cpu="2")
    lab.cycle()
    assert sorted(lab.node_of(f"j{number}-0") for number in range(4)) == ["", "a000", "a000", "x000"]


def test_an_elastic_job_that_wants_more_holds_up_nobody():
    lab = Lab()
    lab.nodes(1, gpus=9)
    lab.queue("q", dequeue="fifo", figures=figures(capability=9))
    lab.gang("wide", 10, 1, "q", gpus=2)
    lab.cycle()
    lab.gang("small", 1, queue="q", gpus=1)
    lab.cycle()
    assert (lab.count("wide"), lab.count("small")) == (4, 1)


def test_a_driver_of_another_queue_gets_in_when_executors_fill_the_cluster():
    lab = Lab()
    lab.nodes(2, cpu="8")
    for name in ("test1", "test2"):
        lab.queue(name, weight=50)
    lab.gang("driver1", 1, queue="test1", cpu="1")
    lab.gang("executors1", 15, 1, "test1", cpu="1")
    lab.cycle()
    lab.gang("driver2", 1, queue="test2", cpu="1")
    lab.cycle(3)
    assert lab.count("driver2") == 1
    assert len(lab.evicted) == 1


# -- groups that change --------------------------------------------------------------------------------------------


def test_a_minimum_that_is_lowered_wakes_the_gang_and_one_that_is_raised_evicts_nobody():
    lab = Lab()
    lab.nodes(1, gpus=4)
    lab.gang("job", 3, 5, gpus=1)
    lab.cycle()
    assert lab.code("job") == "MembersMissing"
    lab.group("job", 3)
    lab.cycle()
    assert lab.count("job") == 3
    lab.group("job", 4)
    lab.cycle(3)
    assert (lab.count("job"), lab.code("job"), lab.evicted) == (3, None, [])


@pytest.mark.parametrize("change", [{"minimum": 4}, {"preemptible": True}, {"priority": 1}])
def test_who_found_no_victims_looks_again_when_a_running_job_may_give_some(change):
    lab = Lab()
    lab.slots(8)
    before = {"minimum": 8, "priority": 9 if "priority" in change else 1, "preemptible": "priority" in change}
    lab.gang("runs", 8, 8, group={key: before[key] for key in ("priority", "preemptible")})
    lab.cycle()
    lab.gang("urgent", 4, group={"priority": 5})
    lab.cycle(2)
    assert (lab.count("runs"), lab.code("urgent")) == (8, "NotEnough")
    after = before | {"preemptible": True} | change
    lab.group("runs", after["minimum"], priority=after["priority"], preemptible=after["preemptible"])
    lab.cycle(3)
    assert (lab.count("urgent"), lab.count("runs")) == (4, 4 if "minimum" in change else 0)


def test_a_promise_that_no_longer_is_enough_gives_its_room_back_in_the_same_cycle():
    lab = Lab()
    lab.leaves_at_once = False
    lab.slots(5)
    lab.gang("low", 5, 1, group={"priority": 1})
    lab.cycle()
    lab.gang("urgent", 5, 3, group={"priority": 9})
    lab.cycle()
    assert len(lab.evicted) == 3
    lab.group("urgent", 5, priority=9)
    lab.finish_leaving()
    lab.cycle()
    assert (len(lab.evicted), lab.code("urgent")) == (5, "WaitingVictims")
    lab.finish_leaving()
    lab.cycle(2)
    assert lab.count("urgent") == 5


@pytest.mark.parametrize("best_effort", [{"weight": 0}, {"figures": figures(0)}])
def test_who_is_entitled_to_nothing_is_not_started_just_to_be_taken_back(best_effort):
    lab = Lab()
    lab.queue("a-none", **best_effort)
    lab.queue("entitled", figures=figures(1))
    lab.pod("first", gpus=1, queue="a-none")
    lab.pod("later", gpus=1, queue="entitled")
    lab.cycle()
    lab.nodes(1, gpus=1)
    lab.cycle(3)
    assert [name for name, _ in lab.bound] == ["later"]
    assert lab.evicted == []


def test_a_promise_that_ends_leaves_its_room_to_whoever_waits():
    lab = Lab()
    lab.leaves_at_once = False
    lab.slots(3)
    lab.gang("low", 3, 1, group={"priority": 1})
    lab.cycle()
    lab.gang("urgent", 2, 2, group={"priority": 9})
    lab.cycle()
    lab.gang("other", 2)
    lab.group("urgent", 3, priority=9)
    lab.finish_leaving()
    lab.cycle(2)
    assert lab.count("other") == 2


@pytest.mark.parametrize("queue", ["default", "spot", "above"])
def test_who_took_room_in_the_cycle_in_which_another_looked_for_victims_is_a_victim_once_bound(queue):
    lab = Lab()
    lab.slots(4)
    lab.queue("own", figures=figures(4000, resource="pods"))
    lab.queue("spot", type="Spot")
    lab.queue("above", figures=figures(0, resource="pods"))
    lab.gang("runs", 2, queue=queue)
    lab.cycle()
    lab.gang("urgent", 4, queue=queue if queue == "default" else "own", group={"priority": 9})
    lab.pod("passes", queue=queue)
    lab.cycle(3)
    assert lab.count("urgent") == 4


def test_a_group_that_vanishes_while_it_waits_says_so_and_runs_when_it_is_back():
    lab = Lab()
    lab.gang("job", 2, gpus=1)
    lab.cycle()
    lab.world.remove_group("default/job")
    lab.cycle()
    assert lab.code("job") == "PodGroupMissing"
    lab.group("job", 2)
    lab.nodes(1, gpus=2)
    lab.cycle()
    assert lab.count("job") == 2


def test_running_pods_move_with_their_group_to_another_queue():
    lab = Lab()
    lab.nodes(1, gpus=8)
    lab.queue("a", figures=figures(capability=4))
    lab.queue("b", figures=figures(capability=8))
    lab.gang("job", 4, queue="a", gpus=1)
    lab.cycle()
    lab.group("job", 4, "b")
    lab.gang("next", 4, queue="a", gpus=1)
    lab.cycle()
    assert (lab.count("job"), lab.count("next")) == (4, 4)


# -- placement -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("nodes", "runs"), [(3, 0), (4, 4)])
def test_members_that_must_be_apart_start_together_or_not_at_all(nodes, runs):
    lab = Lab()
    lab.nodes(nodes, gpus=8)
    lab.gang("job", 4, gpus=1, labels={"app": "job"}, affinity=apart("job"))
    lab.cycle(2)
    assert lab.count("job") == runs
    assert len({lab.node_of(f"job-{number}") for number in range(4)} - {""}) == runs


def test_members_that_must_be_together_find_the_one_node_that_holds_all():
    lab = Lab()
    lab.nodes(3, gpus=3)
    lab.nodes(1, prefix="z", gpus=4)
    lab.gang("job", 4, gpus=1, labels={"app": "job"}, affinity=together("job"))
    lab.cycle(2)
    assert {lab.node_of(f"job-{number}") for number in range(4)} == {"z000"}


def test_what_no_node_offers_is_said_and_evicts_nobody():
    lab = Lab()
    lab.nodes(1, gpus=8)
    lab.queue("a", figures=figures(deserved=8))
    lab.queue("b", figures=figures(deserved=0))
    lab.gang("low", 8, 1, "b", gpus=1)
    lab.cycle()
    lab.gang("job", 1, queue="a", requests={"example.com/fpga": "1"})
    lab.cycle(3)
    assert (lab.code("job"), lab.evicted) == ("NoNode", [])


def test_a_pod_bound_by_hand_counts_and_a_second_object_of_its_name_is_another():
    lab = Lab()
    lab.nodes(1, gpus=8)
    pod = lab.pod("by-hand", gpus=7)
    lab.run(pod, "n000")
    lab.pod("waits", gpus=2)
    lab.cycle()
    assert lab.code("waits") == "NoNode"
    lab.delete("by-hand")
    again = msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, uid="another"))
    lab.world.set_pod(again)
    lab.cycle(2)
    assert lab.world.tasks["another"].node == "n000"
    assert lab.code("waits") == "NoNode"
    assert [name for name, _ in lab.bound] == ["by-hand"]


def test_preemption_is_off_where_a_queue_says_so():
    lab = Lab()
    lab.nodes(1, gpus=8)
    lab.queue("q", preemption=Preemption(within_queue="Never"))
    lab.pod("low", queue="q", gpus=8)
    lab.cycle()
    lab.pod("high", queue="q", gpus=8, priority=10)
    lab.cycle(3)
    assert lab.evicted == []
