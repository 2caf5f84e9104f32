"""Complaints about gangs: partial holding, deadlock, roles, and what a failed try leaves behind."""

import random

import pytest

from skysail.batch.cycle import run_once
from skysail.batch.effects import Effects
from tests.batch.lab import SEEDS, Lab


def shuffled_members(lab, names, size, seed):
    rng = random.Random(seed)
    pods = [(name, number) for name in names for number in range(size)]
    rng.shuffle(pods)
    return pods, rng


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("names", "size"), [(("a", "b"), 100), (("a", "b", "c"), 60)])
def test_c03_gangs_never_hold_half_of_the_cluster_each(seed, names, size):
    lab = Lab()
    lab.slots(100)
    for name in names:
        lab.group(name, size)
    pods, rng = shuffled_members(lab, names, size, seed)
    while pods:
        for name, number in [pods.pop() for _ in range(min(len(pods), rng.randint(1, 50)))]:
            lab.pod(f"{name}-{number}", name)
        lab.cycle()
        assert sum(lab.count(name) > 0 for name in names) <= 1
        assert {lab.count(name) for name in names} <= {0, size}
    lab.cycle(2)
    assert sorted(lab.count(name) for name in names) == [0] * (len(names) - 1) + [size]
    assert {lab.code(name) for name in names} == {None, "NotEnough"}


def test_c04_a_bundle_of_gangs_starts_whole_or_not_at_all():
    lab = Lab()
    lab.slots(20)
    for name, bundle in (("a", "ab"), ("c", "cd"), ("b", "ab"), ("d", "cd")):
        members = frozenset(f"default/{each}" for each in bundle)
        lab.gang(name, 10, group={"bundle": bundle, "bundle_members": members})
    lab.cycle(3)
    assert sorted((lab.count("a") + lab.count("b"), lab.count("c") + lab.count("d"))) == [0, 20]


def test_c04_a_gang_with_an_impossible_member_holds_nothing_from_others():
    lab = Lab()
    lab.slots(20)
    lab.group("job", 10)
    for number in range(10):
        lab.pod(f"job-{number}", "job", node_selector={"no": "where"} if number == 9 else None)
    for number in range(20):
        lab.pod(f"single-{number}")
    lab.cycle()
    assert sum(lab.count(f"single-{number}") for number in range(20)) == 20
    assert all("claimed" not in key for key in lab.world.ledger.entries())
    assert lab.code("job") == "NoNode"


def test_c05_each_role_has_its_minimum_and_stale_roles_block_nothing():
    lab = Lab()
    lab.slots(4)
    spec = {"min_task_member": {"t1": 2, "t2": 2}}
    lab.group("job", 4, **spec)
    for number in range(6):
        lab.pod(f"t1-{number}", "job", role="t1")
    for number in range(2):
        lab.pod(f"t2-{number}", "job", role="t2")
    lab.cycle()
    assert sorted(name[:2] for name in lab.running("job")) == ["t1", "t1", "t2", "t2"]
    lab.slots(1, prefix="more")
    lab.group("job", 4, min_task_member={"t2": 2, "t3": 1})
    lab.pod("t3-0", "job", role="t3")
    lab.cycle()
    assert "t3-0" in lab.running("job")


def refuse_three_of_four(lab, times=1):
    """The bindings of the last three members of a gang of four are refused, the first is bound."""
    for _ in range(times):
        effects = run_once(lab.world, lab.configuration).effects
        for batch in effects.binds:
            for task in list(batch.tasks):
                if batch.job.name != "default/job" or task.pod.name == "job-0":
                    lab.bound.append((task.pod.name, task.node))
                    lab.run(task.pod, task.node)
                else:
                    lab.world.bind_failed(task, "forbidden")
        lab.play(Effects(let_go=effects.let_go))
        assert lab.world.problems() == []
        lab.world.now += 1


def test_c03_a_gang_of_which_bindings_were_refused_keeps_its_claim_on_room_for_the_rest():
    lab = Lab()
    lab.slots(4)
    lab.gang("job", 4)
    refuse_three_of_four(lab)
    lab.pod("other")
    lab.cycle(5)
    assert (lab.count("job"), lab.count("other")) == (1, 0)
    assert lab.code("job") == "BindFailed"
    lab.cycle(20)
    assert (lab.count("job"), lab.count("other")) == (4, 0)
    assert lab.world.claims == {}
    assert lab.world.refused == {}
    assert lab.evicted == []


@pytest.mark.parametrize("own", [0, 40])
def test_c03_a_gang_that_cannot_be_made_whole_in_time_lets_go_of_what_it_has(own):
    lab = Lab()
    lab.slots(4)
    lab.gang("job", 4, group={"schedule_timeout_seconds": own})
    limit = own or int(lab.configuration.claim_seconds)
    refuse_three_of_four(lab)
    lab.gang("other", 4)
    refuse_three_of_four(lab, limit - 5)
    assert (lab.count("job"), lab.count("other")) == (1, 0)
    refuse_three_of_four(lab, 10)
    assert [name for name, _ in lab.evicted] == ["job-0"]
    assert lab.evicted == [("job-0", "repair")]
    assert (lab.count("job"), lab.count("other")) == (0, 4)
    assert lab.world.refused == {}


def test_c03_a_gang_goes_elsewhere_at_once_where_there_is_other_room():
    lab = Lab()
    lab.slots(8)
    lab.gang("job", 4)
    refuse_three_of_four(lab)
    lab.cycle()
    assert lab.count("job") == 4
    lab.cycle()
    assert lab.sessions[-2].effects.claims == []
    assert lab.world.refused == {}


def test_c03_room_held_for_the_rest_of_a_gang_is_held_after_a_restart_too():
    lab, after = Lab(), Lab()
    lab.slots(4)
    lab.gang("job", 4, group={"schedule_timeout_seconds": 40})
    refuse_three_of_four(lab)
    (claim,) = lab.cycle().effects.claims
    after.world.now = lab.world.now
    after.slots(4)
    after.gang("job", 4, group={"schedule_timeout_seconds": 40})
    after.run(after.world.tasks["uid-job-0"].pod, lab.world.tasks["uid-job-0"].node)
    assert after.world.restore_claim(claim)
    after.pod("other")
    refuse_three_of_four(after, 60)
    assert after.evicted == [("job-0", "repair")]
    assert after.count("other") == 1
