"""Complaints about waiting: with no reason, without being able to ask, behind a head, in vain."""

import random
from dataclasses import replace

import pytest

from skysail.batch.engine import Engine
from skysail.batch.model.specs import FlavorSpec, JobQueueSpec, PodGroupSpec, ZoneWish
from skysail.batch.what_if import simulate
from tests.batch.lab import ANY, GPU, SEEDS, START, Lab, figures


def test_c01_every_waiting_unit_says_why_and_runs_when_the_cause_is_gone():
    lab = Lab()
    lab.nodes(2, gpus=8)
    lab.queue("open")
    lab.queue("closed", state="Closed")
    lab.queue("small", figures=figures(capability=4))
    lab.queue("line", dequeue="fifo")
    lab.gang("filler", 2, queue="open", gpus=7)
    lab.cycle()
    lab.pod("orphan", "absent")
    lab.group("partial", 4)
    for number in range(3):
        lab.pod(f"partial-{number}", "partial")
    lab.pod("shut", queue="closed")
    lab.gang("never", 1, queue="small", gpus=5)
    lab.gang("full1", 1, queue="small", gpus=1)
    lab.gang("nowhere", 1, node_selector={"gpu": "b300"})
    lab.gang("wide", 4, gpus=1, group={"zone": ZoneWish(required=True)})
    lab.pod("gated", gates=["wait"])
    lab.pod("lost", queue="missing")
    lab.gang("head", 4, queue="line", gpus=2)
    lab.gang("second", 1, queue="line", gpus=8)
    lab.cycle(2)
    expected = {
        "absent": ("PodGroupMissing", {"group": "default/absent"}),
        "partial": ("MembersMissing", {"have": 3, "need": 4}),
        "shut": ("QueueClosed", {"queue": "closed"}),
        "never": ("ExceedsMax", {"queue": "small", "resource": GPU, "ask": 5, "limit": 4}),
        "nowhere": ("NoNode", {"task": "default/nowhere-0"}),
        "wide": ("NoTopology", {"level": "zone", "best_fit": 0, "need": 4}),
        "gated": ("WaitingGate", {"gated": 1, "gates": "wait"}),
        "lost": ("QueueMissing", {"queue": "missing"}),
        "head": ("NotEnough", {"have": 0, "need": 4}),
        "second": ("NotHead", {"head": "default/head"}),
    }
    assert {name: (lab.code(name), lab.numbers(name)) for name in expected} == expected
    assert all(lab.job(name).outcome.message and lab.job(name).outcome.next_events for name in expected)
    lab.nodes(1, prefix="zoned", gpus=16, labels={"zone": "a", "gpu": "b300"})
    lab.group("absent", 1)
    lab.pod("partial-3", "partial")
    lab.queue("closed")
    lab.queue("small", figures=figures(capability=8))
    lab.queue("missing")
    lab.pod("gated")
    lab.nodes(2, prefix="more", gpus=8)
    lab.cycle(3)
    assert {name: lab.code(name) for name in expected} == dict.fromkeys(expected)


def test_c01_volatile_figures_do_not_change_what_is_written():
    lab = Lab()
    lab.pod("large", node_selector={"no": "where"})
    for number in range(5):
        lab.nodes(1, prefix=f"n{number}")
        lab.cycle()
    changed = [session for session in lab.sessions if "pod:default/large" in session.outcomes]
    assert len(changed) == 1
    assert lab.job("large").outcome.detail["nodes"] == {"node(s) didn't match Pod's node affinity/selector": 5}


def random_lab(rng):
    lab = Lab()
    for number in range(rng.randint(1, 4)):
        lab.nodes(1, prefix=f"n{number}-", gpus=rng.choice([2, 4, 8]))
    for name in "ab":
        lab.queue(name, figures=figures(deserved=rng.randint(0, 12), capability=rng.choice([None, 12, 16])))
    for number in range(rng.randint(0, 6)):
        size = rng.randint(1, 4)
        lab.gang(f"j{number}", size, rng.randint(1, size), rng.choice("ab"), gpus=rng.choice([1, 2]))
        lab.cycle()
    return lab


@pytest.mark.parametrize("seed", SEEDS)
def test_c02_a_simulation_says_what_one_cycle_then_does(seed):
    rng = random.Random(seed)
    lab = random_lab(rng)
    size, gpus, queue = rng.randint(1, 8), rng.choice([1, 2, 4]), rng.choice("ab")
    group = PodGroupSpec("default", "new", uid="new", queue=queue, min_member=size, created=START + 999)
    probe = Lab()
    probe._created = 500
    pods = [probe.pod(f"new-{number}", "new", gpus) for number in range(size)]
    before = lab.world.ledger.entries(), dict(lab.world.sleepers.awake), lab.world.changes
    answer = simulate(lab.world, lab.configuration, pods, group)
    assert (lab.world.ledger.entries(), dict(lab.world.sleepers.awake), lab.world.changes) == before

    def submit(number, lab):
        lab.world.set_group(replace(group, min_member=min(number, group.min_member)))
        for pod in pods[:number]:
            lab.world.set_pod(pod)
        bound, evicted = len(lab.bound), len(lab.evicted)
        lab.cycle()
        claim = lab.job("new").claim
        placed = dict(lab.bound[bound:]) | (
            {lab.world.tasks[uid].pod.name: node for uid, node in claim.placement.items()} if claim else {}
        )
        placed = {name: node for name, node in placed.items() if name.startswith("new-")}
        victims = [name for name, beneficiary in lab.evicted[evicted:] if beneficiary == "default/new"]
        return placed, victims

    if answer.largest is not None:
        again = random_lab(random.Random(seed))
        placed, _ = submit(answer.largest, again) if answer.largest else ({}, [])
        assert len(placed) == answer.largest
        more = random_lab(random.Random(seed))
        assert submit(answer.largest + 1, more)[0] == {}
    placed, victims = submit(size, lab)
    assert placed == dict(answer.placement)
    assert victims == [key.partition("/")[2] for key in answer.victims]
    assert bool(placed) == answer.fits


def test_c12_a_head_that_can_never_fit_blocks_nobody_and_is_tried_once():
    lab = Lab()
    lab.nodes(1, gpus=8)
    lab.queue("q", dequeue="fifo", figures=figures(capability=8))
    lab.gang("never", 1, queue="q", gpus=9)
    lab.gang("second", 1, queue="q", gpus=2)
    lab.cycle()
    assert (lab.code("never"), lab.count("second")) == ("ExceedsMax", 1)
    lab.gang("large", 1, queue="q", gpus=8)
    lab.cycle(100)
    assert (lab.job("never").attempts, lab.job("large").attempts) == (1, 1)
    lab.delete("second-0")
    lab.cycle()
    assert (lab.job("never").attempts, lab.job("large").attempts) == (1, 2)
    assert lab.count("large") == 1


def test_c12_no_cycle_runs_while_nothing_changes():
    lab = Lab()
    lab.nodes(1, gpus=8)
    lab.gang("large", 2, gpus=8)
    engine = Engine(lab.world, lab.configuration, check=True)
    assert engine.run_once(START) is not None
    assert [engine.run_once(START + second) for second in range(1, 100)] == [None] * 99
    lab.nodes(1, prefix="more", gpus=8)
    cycle = engine.run_once(START + 100)
    assert [task.pod.name for task in cycle.effects.binds[0].tasks] == ["large-0", "large-1"]


def whole_node_jobs(lab, first, count, seconds):
    for number in range(first, first + count):
        lab.gang(f"small{number}", 1, gpus=8, group={"maximum_execution_seconds": seconds})


@pytest.mark.parametrize("known", [True, False])
def test_c17_a_large_job_is_not_passed_for_ever(known):
    lab = Lab()
    lab.nodes(8, gpus=8)
    lab.queue("default", backfill="EASY", pass_over_limit=6)
    minute, started, passed = 60.0, {}, 0
    for now in range(60):
        whole_node_jobs(lab, now, 1, 600.0 if known else None)
        if now == 5:
            large = {"maximum_execution_seconds": 600.0} if known else {}
            lab.gang("large", 8, gpus=8, group=large)
        before = len(lab.bound)
        lab.cycle(seconds=minute)
        if now > 5:
            passed += sum(name.startswith("small") for name, _ in lab.bound[before:])
        if now >= 5 and lab.count("large"):
            break
        for job, at in [(job, started.setdefault(job.key, now)) for job in lab.world.jobs.values() if job.is_running()]:
            if at + 10 <= now + 1:
                lab.finish(f"{job.spec.name}-0")
    assert lab.count("large") == 8
    assert now <= 15 if known else passed <= 6


def test_c17_a_head_blocks_only_those_that_need_what_it_lacks():
    lab = Lab()
    lab.nodes(1, prefix="b3-", gpus=8, labels={"gpu": "b300"})
    lab.nodes(1, prefix="b2-", gpus=8, labels={"gpu": "b200"})
    lab.world.set_flavors([FlavorSpec("b300", {"gpu": "b300"}), FlavorSpec("b200", {"gpu": "b200"})])
    lab.queue("q", dequeue="fifo")
    b300, b200 = {"node_selector": {"gpu": "b300"}}, {"node_selector": {"gpu": "b200"}}
    lab.gang("busy", 1, queue="q", gpus=8, **b300)
    lab.cycle()
    lab.gang("head", 1, queue="q", gpus=8, **b300)
    lab.gang("behind", 1, queue="q", gpus=1, **b300)
    lab.gang("first", 1, queue="q", gpus=8, **b200)
    lab.gang("later", 1, queue="q", gpus=1, **b200)
    lab.cycle()
    assert lab.count("first") == 1
    assert [lab.code(name) for name in ("head", "behind", "later")] == ["NoNode", "NotHead", "NoNode"]
    lab.delete("first-0")
    lab.cycle()
    assert lab.count("later") == 1


def test_c17_those_behind_a_head_go_once_it_was_promised_room():
    lab = Lab()
    lab.leaves_at_once = False
    lab.nodes(2, gpus=4)
    lab.queue("q", dequeue="fifo")
    lab.gang("high", 1, queue="q", gpus=3, priority=5)
    lab.gang("low", 1, queue="q", gpus=2)
    lab.cycle()
    lab.gang("head", 1, queue="q", gpus=4, priority=5)
    lab.gang("behind", 1, queue="q", gpus=1)
    lab.cycle(2)
    assert (lab.code("head"), lab.count("behind")) == ("WaitingVictims", 1)
    lab.finish_leaving()
    lab.cycle(2)
    assert lab.count("head") == 1
    assert lab.world.heads.get("q", {}) == {}


def test_a_line_keeps_its_order_whatever_the_priorities():
    lab = Lab()
    lab.nodes(1, gpus=2)
    lab.queue("q", dequeue="fifo")
    lab.world.set_job_queue(JobQueueSpec("default", "line", "q"))
    lab.gang("one", 1, queue="", gpus=2, group={"job_queue": "line"})
    lab.gang("two", 1, queue="", gpus=2, group={"job_queue": "line"}, priority=100)
    lab.cycle()
    assert (lab.count("one"), lab.count("two")) == (1, 0)
    assert ANY
