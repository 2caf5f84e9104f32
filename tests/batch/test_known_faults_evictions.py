"""Faults that users of other schedulers reported, each as the kind it is of: who is evicted, and who is not."""

import pytest

from skysail.batch.cycle import run_once
from skysail.batch.engine import Engine
from skysail.batch.foreign.pods import MembershipReader
from skysail.batch.model.specs import Preemption
from skysail.testing.builders import HOSTNAME
from skysail.testing.placement import affinity, away_from
from tests.batch.lab import GPU, START, Lab, figures


def test_one_member_of_an_elastic_gang_leaves_for_one_pod_not_all_above_its_minimum():
    lab = Lab()
    lab.nodes(1, gpus=11)
    lab.gang("elastic", 11, 1, gpus=1)
    lab.cycle()
    lab.pod("urgent", gpus=1, priority=100)
    lab.cycle(3)
    assert (len(lab.evicted), lab.count("urgent"), lab.count("elastic")) == (1, 1, 10)


def test_two_small_members_take_the_place_of_one_large_pod():
    lab = Lab()
    lab.nodes(1, gpus=8)
    lab.pod("low", gpus=8)
    lab.cycle()
    lab.gang("high", 2, gpus=2, priority=10)
    lab.cycle(3)
    assert (lab.count("high"), len(lab.evicted)) == (2, 1)


def test_a_gang_at_its_minimum_leaves_whole_or_not_at_all():
    lab = Lab()
    lab.nodes(1, gpus=8)
    lab.gang("low", 6, gpus=1)
    lab.pod("small", gpus=2)
    lab.cycle()
    lab.pod("high", gpus=3, priority=10)
    lab.cycle(3)
    assert lab.count("high") == 1
    assert lab.count("low") in (0, 6)
    assert {name.partition("-")[0] for name, _ in lab.evicted} == {"low"}


def test_two_jobs_that_want_the_same_victim_cost_one_eviction():
    lab = Lab()
    lab.leaves_at_once = False
    lab.nodes(1, gpus=8)
    lab.pod("low", gpus=4)
    lab.run(lab.pod("system", scheduler="default-scheduler", gpus=4), "n000")
    lab.cycle()
    for name in ("one", "two"):
        lab.pod(name, gpus=4, priority=10)
    lab.cycle(5)
    assert lab.evicted == [("low", "pod:default/one")]
    lab.finish_leaving()
    lab.cycle(2)
    assert (lab.count("one"), lab.count("two"), len(lab.evicted)) == (1, 0, 1)


def test_an_unfit_first_candidate_does_not_end_the_search():
    """The first victim in order is larger than what its queue has above its share; the next one is right."""
    lab = Lab()
    lab.nodes(2, gpus=8)
    lab.queue("mine", figures=figures(deserved=8))
    lab.queue("theirs", figures=figures(deserved=8))
    lab.run(lab.pod("early", queue="theirs", gpus=4), "n000")
    lab.run(lab.pod("mine0", queue="mine", gpus=4), "n000")
    lab.world.now += 10
    lab.run(lab.pod("late-large", queue="theirs", gpus=8), "n001")
    lab.cycle()
    lab.pod("job", queue="mine", gpus=4)
    lab.cycle(3)
    assert lab.evicted == [("early", "pod:default/job")]
    assert lab.count("job") == 1


def test_a_queue_that_states_a_limit_only_may_be_reclaimed():
    lab = Lab()
    lab.nodes(1, gpus=8)
    lab.queue("mine", figures=figures(deserved=8))
    lab.queue("limited", figures=figures(capability=8))
    lab.gang("low", 8, 1, "limited", gpus=1)
    lab.cycle()
    lab.gang("job", 4, queue="mine", gpus=1)
    lab.cycle(3)
    assert (lab.count("job"), lab.count("low")) == (4, 4)


def test_a_first_job_that_cannot_be_helped_does_not_keep_the_others_from_reclaiming():
    lab = Lab()
    lab.nodes(1, gpus=8)
    lab.queue("mine", figures=figures(deserved=4, capability=4))
    lab.queue("theirs", figures=figures(deserved=0))
    lab.gang("low", 8, 1, "theirs", gpus=1)
    lab.cycle()
    lab.gang("too-large", 1, queue="mine", gpus=5)
    lab.gang("nowhere", 1, queue="mine", gpus=1, node_selector={"no": "where"})
    lab.gang("job", 2, queue="mine", gpus=1)
    lab.cycle(3)
    assert lab.count("job") == 2


def test_nobody_is_evicted_while_there_is_room():
    lab = Lab()
    lab.nodes(2, gpus=8)
    lab.queue("q", figures=figures(deserved=4, capability=16))
    lab.pod("low", queue="q", gpus=2)
    lab.cycle()
    lab.pod("high", queue="q", gpus=2, priority=1000)
    lab.cycle()
    assert (lab.evicted, lab.count("high")) == ([], 1)


def test_a_queue_above_its_share_in_what_is_short_takes_nothing_though_it_is_below_in_the_rest():
    lab = Lab()
    lab.nodes(1, gpus=8, cpu="16")
    both = figures(deserved=4) | figures(deserved=8000, resource="cpu")
    lab.queue("mine", figures=both)
    lab.queue("theirs", figures=both)
    lab.gang("mine0", 1, queue="mine", cpu="8")
    lab.gang("theirs0", 8, 1, "theirs", gpus=1, cpu="1")
    lab.cycle()
    lab.gang("job", 1, queue="mine", gpus=1, cpu="4")
    lab.cycle(3)
    assert lab.evicted == []


def test_pods_of_a_full_node_leave_when_its_pod_slots_are_what_is_short():
    lab = Lab()
    lab.nodes(1, pods="2")
    for number in range(2):
        lab.pod(f"low-{number}")
    lab.cycle()
    lab.pod("high", priority=10)
    lab.cycle(3)
    assert (len(lab.evicted), lab.count("high")) == (1, 1)


def test_who_stands_in_the_way_by_anti_affinity_leaves_though_there_is_room():
    lab = Lab()
    lab.nodes(1, gpus=8)
    lab.pod("low", labels={"app": "x"}, gpus=1)
    lab.cycle()
    lab.pod(
        "high", priority=10, gpus=1, labels={"app": "x"}, affinity=affinity(away=[away_from({"app": "x"}, HOSTNAME)])
    )
    lab.cycle(3)
    assert (lab.evicted, lab.count("high")) == ([("low", "pod:default/high")], 1)


def test_a_job_above_its_share_moves_nobody_who_is_below_theirs():
    lab = Lab()
    lab.nodes(2, gpus=8)
    lab.queue("fat", figures=figures(deserved=4))
    lab.queue("thin", figures=figures(deserved=12))
    lab.gang("fat0", 6, queue="fat", gpus=1)
    for number in range(4):
        lab.gang(f"thin{number}", 1, queue="thin", gpus=2)
    lab.cycle()
    lab.gang("fat1", 1, queue="fat", gpus=6)
    lab.cycle(5)
    assert lab.evicted == []


@pytest.mark.parametrize("kind", ["preempt", "reclaim"])
def test_who_may_be_taken_only_later_is_taken_then_with_nothing_else_happening(kind):
    lab = Lab()
    lab.nodes(1, gpus=8)
    lab.queue("mine", figures=figures(deserved=8), preempt_min_runtime_seconds=60.0)
    lab.queue("theirs", figures=figures(deserved=0), reclaim_min_runtime_seconds=60.0)
    for number in range(4):
        lab.gang(f"low{number}", 1, queue="mine" if kind == "preempt" else "theirs", gpus=2)
    lab.cycle()
    lab.gang("high", 1, queue="mine", gpus=2, priority=10)
    engine = Engine(lab.world, lab.configuration)
    taken = []
    for second in range(1, 100):
        cycle = engine.run_once(START + second)
        if cycle is not None:
            taken += [second] * len(cycle.effects.evictions)
            lab.play(cycle.effects)
    assert taken == [60]
    assert lab.count("high") == 1


def test_a_pod_that_is_protected_at_first_is_taken_when_that_is_over():
    lab = Lab(membership=MembershipReader())
    lab.nodes(1, gpus=8)
    lab.pod("low", gpus=8, annotations={"godel.bytedance.com/protection-duration-from-preemption": "60"})
    lab.cycle()
    lab.pod("high", gpus=8, priority=10)
    engine, taken = Engine(lab.world, lab.configuration), []
    for second in range(1, 100):
        cycle = engine.run_once(START + second)
        if cycle is not None:
            taken += [second] * len(cycle.effects.evictions)
            lab.play(cycle.effects)
    assert taken == [60]


def test_members_above_a_gangs_minimum_have_no_minimum_of_run_time():
    lab = Lab()
    lab.nodes(1, gpus=8)
    lab.queue("q", preempt_min_runtime_seconds=60.0)
    lab.gang("low", 4, 2, "q", gpus=2)
    lab.cycle()
    lab.gang("high", 1, queue="q", gpus=2, priority=10)
    lab.gang("higher", 3, queue="q", gpus=2, priority=20)
    lab.cycle(3)
    assert (lab.count("high"), lab.count("higher"), lab.count("low")) == (1, 0, 3)


def test_a_queue_that_closes_is_emptied_and_one_that_holds_is_not():
    lab = Lab()
    lab.nodes(1, gpus=8)
    lab.queue("org")
    lab.queue("team", parent="org")
    lab.queue("other")
    lab.gang("job", 4, queue="team", gpus=1)
    lab.gang("rest", 2, queue="other", gpus=1)
    lab.cycle()
    lab.queue("org", state="Closed")
    lab.cycle(2)
    assert lab.evicted == []
    lab.queue("org", state="Closing")
    lab.recreate = True
    lab.cycle(2)
    assert sorted(name for name, _ in lab.evicted) == [f"job-{number}" for number in range(4)]
    assert (lab.code("job"), lab.count("rest")) == ("QueueClosed", 2)
    lab.queue("org")
    lab.cycle()
    assert lab.count("job") == 4


def test_a_budget_that_refuses_a_closing_queue_is_asked_again_later():
    lab = Lab()
    lab.nodes(1, gpus=8)
    lab.queue("team")
    lab.pod("job", queue="team", gpus=1)
    lab.cycle()
    lab.queue("team", state="Closing")
    engine, asked = Engine(lab.world, lab.configuration), []
    for second in range(100):
        cycle = engine.run_once(START + second)
        for task in cycle.effects.drained if cycle is not None else ():
            asked.append(second)
            lab.world.eviction_failed(task)
    assert asked == [0, 30, 60, 90]


def test_of_two_borrowers_the_lower_one_leaves_and_no_other():
    lab = Lab()
    lab.recreate = True
    lab.nodes(2, gpus=4)
    lab.queue("team-a", figures=figures(deserved=0))
    lab.queue("team-b", figures=figures(deserved=0))
    lab.queue("team-c", figures=figures(deserved=4))
    lab.gang("high", 1, queue="team-a", gpus=4, priority=100)
    lab.gang("low", 1, queue="team-b", gpus=4)
    lab.cycle()
    lab.gang("owner", 1, queue="team-c", gpus=4, priority=50)
    lab.cycle(20)
    assert lab.evicted == [("low-0", "default/owner")]
    assert (lab.count("owner"), lab.count("high")) == (1, 1)


def test_a_job_too_large_in_the_same_queue_keeps_no_other_from_borrowing_by_priority():
    lab = Lab()
    lab.nodes(1, gpus=8)
    lab.queue("cohort", figures=figures(capability=8))
    lab.queue("placeholder", parent="cohort", figures=figures(deserved=8))
    by_priority = Preemption(priority_threshold=50)
    for name in ("two", "three"):
        lab.queue(name, parent="cohort", figures=figures(deserved=0), preemption=by_priority)
    lab.gang("too-large", 1, queue="two", gpus=9, priority=100)
    lab.gang("low", 1, queue="three", gpus=8)
    lab.cycle()
    assert lab.count("low") == 1
    lab.gang("high", 1, queue="two", gpus=8, priority=100)
    lab.cycle(5)
    assert (lab.count("high"), lab.evicted) == (1, [("low-0", "default/high")])


def test_smaller_groups_take_their_half_though_larger_ones_wait_in_vain_before_them():
    lab = Lab()
    lab.recreate = True
    lab.nodes(1, gpus=8)
    for name in ("one", "two"):
        lab.queue(name)
    for number in range(4):
        lab.gang(f"g{number}", 2, queue="one", gpus=1)
    lab.cycle()
    for size in (6, 5, 4, 3):
        lab.gang(f"of{size}", size, queue="two", gpus=1)
        lab.cycle(3)
    lab.cycle(30)
    assert (lab.count("of6"), lab.count("of5"), lab.count("of4")) == (0, 0, 4)
    assert len(lab.evicted) == 4
    assert len({name for name, _ in lab.evicted}) == 4


def test_a_pod_whose_binding_is_always_refused_keeps_no_other_from_its_room():
    lab = Lab()
    lab.nodes(1, gpus=8)
    lab.pod("doomed", gpus=8, priority=100)
    lab.pod("other", gpus=8)
    for _ in range(10):
        session = run_once(lab.world, lab.configuration)
        for batch in session.effects.binds:
            if batch.job.name == "default/doomed":
                for task in list(batch.tasks):
                    lab.world.bind_failed(task, "denied by a webhook")
                batch.tasks.clear()
        lab.play(session.effects)
        lab.world.now += 1
        if lab.count("other"):
            break
    assert lab.count("other") == 1


def test_what_ended_holds_nothing_though_its_group_and_pods_are_still_there():
    lab = Lab()
    lab.nodes(1, gpus=8)
    lab.queue("q", figures=figures(capability=8))
    lab.gang("first", 4, queue="q", gpus=2, group={"min_resources": {GPU: 8}})
    lab.cycle()
    lab.gang("second", 4, queue="q", gpus=2)
    lab.cycle()
    assert lab.count("second") == 0
    for number in range(4):
        lab.finish(f"first-{number}", "Succeeded" if number else "Failed")
    lab.cycle()
    assert lab.count("second") == 4
