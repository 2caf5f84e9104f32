"""Complaints about eviction: in vain, back and forth, on the wrong nodes, of the wrong ones."""

import random

import pytest

from skysail.batch.model.specs import Preemption
from tests.batch.lab import GPU, SEEDS, Lab, figures


def full_cluster(**queues):
    """One node of 8 GPUs for each queue's gang of 8 single-GPU pods."""
    lab = Lab()
    lab.nodes(len(queues), gpus=8)
    for name, spec in queues.items():
        lab.queue(name, **spec)
    return lab


@pytest.mark.parametrize(
    "obstacle",
    [
        {"node_selector": {"no": "where"}},
        {"requests": {"cpu": "1000"}},
        {"gpus": 9},
        {"host_ports": [80]},
    ],
    ids=["selector", "cpu", "gpus", "port"],
)
def test_c07_no_eviction_when_the_last_member_cannot_be_placed(obstacle):
    lab = Lab()
    lab.nodes(1, gpus=8)
    lab.nodes(1, prefix="other", gpus=0)
    lab.queue("a", figures=figures(deserved=8))
    lab.queue("b", figures=figures(deserved=0))
    lab.run(lab.pod("port", scheduler="default-scheduler", host_ports=[80]), "n000")
    lab.run(lab.pod("port2", scheduler="default-scheduler", host_ports=[80]), "other000")
    for number in range(8):
        lab.pod(f"low-{number}", queue="b", gpus=1)
    lab.cycle()
    lab.group("high", 4, "a")
    for number in range(3):
        lab.pod(f"high-{number}", "high", 1)
    lab.pod("high-3", "high", **({"gpus": 1} | obstacle))
    lab.cycle(3)
    assert lab.evicted == []
    assert lab.code("high") in ("NoNode", "NotEnough")


def test_c07_no_eviction_when_an_ancestors_limit_forbids_the_beneficiary():
    lab = Lab()
    lab.nodes(2, gpus=8)
    lab.queue("parent", figures=figures(capability=8))
    lab.queue("a", parent="parent", figures=figures(deserved=8))
    lab.queue("b", figures=figures(deserved=0))
    lab.gang("keep", 8, queue="a", gpus=1)
    lab.cycle()
    lab.gang("low", 8, queue="b", gpus=1)
    lab.cycle()
    lab.gang("more", 4, queue="a", gpus=1)
    lab.cycle(3)
    assert lab.evicted == []
    assert lab.code("more") == "QuotaExceeded"


@pytest.mark.parametrize("seed", SEEDS)
def test_c07_every_eviction_has_a_claim_and_its_beneficiary_runs(seed):
    rng = random.Random(seed)
    lab = Lab()
    lab.leaves_at_once = False
    for number in range(rng.randint(2, 6)):
        lab.nodes(1, prefix=f"n{number}", gpus=rng.choice([4, 8]))
    for name in "abc":
        lab.queue(name, figures=figures(deserved=rng.randint(0, 16)))
    for number in range(12):
        size = rng.randint(1, 6)
        lab.gang(f"j{number}", size, rng.randint(1, size), rng.choice("abc"), gpus=rng.choice([1, 2]))
        session = lab.cycle()
        assert all(eviction.claim in session.effects.claims for eviction in session.effects.evictions)
        beneficiaries = {eviction.claim.job for eviction in session.effects.evictions}
        if beneficiaries:
            lab.finish_leaving()
            lab.cycle(2)
            for key in beneficiaries:
                assert lab.count(key.partition("/")[2]) >= lab.world.jobs[key].min_member


def test_c10_elastic_jobs_above_their_minimum_do_not_take_from_each_other():
    lab = Lab()
    lab.recreate = True
    lab.nodes(1, gpus=7)
    for name in "ab":
        lab.queue(name, figures=figures(deserved=3))
        lab.gang(name, 5, 1, name, gpus=1)
    lab.cycle(10)
    evictions = len(lab.evicted)
    assert evictions <= 5
    lab.cycle(100)
    assert len(lab.evicted) == evictions
    assert lab.count("a") + lab.count("b") == 7


@pytest.mark.parametrize("seed", range(max(20, len(SEEDS))))
def test_c10_random_clusters_go_quiet(seed):
    rng = random.Random(seed)
    lab = Lab()
    lab.recreate = True
    for number in range(rng.randint(1, 5)):
        lab.nodes(1, prefix=f"n{number}", gpus=rng.choice([4, 8]), cpu=str(rng.choice([16, 64])))
    queues = [f"q{number}" for number in range(rng.randint(2, 6))]
    for name in queues:
        both = figures(deserved=rng.choice([None, 0, 4, 8])) | figures(rng.choice([None, 8000, 16000]), resource="cpu")
        lab.queue(name, figures=both, type=rng.choice(["Quota"] * 4 + ["Spot"]))
    for number in range(rng.randint(3, 12)):
        size = rng.randint(1, 8)
        lab.gang(
            f"j{number}", size, rng.randint(1, size), rng.choice(queues), gpus=rng.choice([0, 1, 2]),
            cpu=str(rng.choice([1, 4])), priority=rng.choice([0, 0, 10]),
        )  # fmt: skip
        if rng.random() < 0.5:
            lab.cycle()
    lab.cycle(50)
    bound, evicted = len(lab.bound), len(lab.evicted)
    lab.cycle(20)
    assert (len(lab.bound), len(lab.evicted)) == (bound, evicted)


def test_c11_a_borrower_above_its_share_takes_nothing_from_best_effort():
    lab = Lab()
    lab.recreate = True
    lab.nodes(3, gpus=100, cpu="400", pods="400")
    lab.queue("a", figures=figures(deserved=150))
    lab.queue("b", figures=figures(deserved=150))
    lab.queue("be", figures=figures(deserved=0))
    lab.gang("a1", 5, queue="a", gpus=50)
    lab.gang("be1", 1, queue="be", gpus=50)
    lab.cycle(2)
    assert (lab.count("a1"), lab.count("be1")) == (5, 1)
    lab.gang("a2", 1, queue="a", gpus=50)
    lab.cycle(30)
    assert lab.evicted == []
    assert (lab.count("a1"), lab.count("a2"), lab.count("be1")) == (5, 0, 1)


def test_c11_a_cohort_of_eight_settles_without_evicting_anybody_twice():
    lab = Lab()
    lab.recreate = True
    lab.nodes(1, gpus=8)
    for name in "ab":
        lab.queue(name, figures=figures(deserved=4))
    for number, size in enumerate((2, 6, 5, 4, 3)):
        lab.gang(f"j{number}", size, queue="ab"[number % 2], gpus=1)
        lab.cycle(5)
    evicted = len(lab.evicted)
    lab.cycle(50)
    assert len(lab.evicted) == evicted
    assert len({name for name, _ in lab.evicted}) == evicted


def test_c16_scaled_shares_are_met_and_said_so():
    lab = Lab()
    lab.recreate = True
    lab.nodes(1, gpus=7)
    lab.queue("a", figures=figures(deserved=6))
    lab.queue("b", figures=figures(deserved=4))
    for number in range(10):
        lab.pod(f"a-{number}", queue="a", gpus=1)
    lab.cycle()
    for number in range(10):
        lab.pod(f"b-{number}", queue="b", gpus=1)
    lab.cycle(20)
    held = {name: sum(task.node != "" for task in lab.world.tasks.values() if task.job.queue == name) for name in "ab"}
    assert held == {"a": 4, "b": 3}
    codes = {job.outcome.code.value for job in lab.world.jobs.values() if job.outcome is not None}
    assert codes == {"EntitlementScaled"}


@pytest.mark.parametrize("with_bystander", [True, False])
def test_c16_a_protected_bystander_does_not_stop_reclaim(with_bystander):
    lab = Lab()
    lab.nodes(3, gpus=8)
    lab.queue("starved", figures=figures(deserved=8))
    lab.queue("greedy", figures=figures(deserved=8))
    lab.queue("protected", figures=figures(deserved=8), reclaimable=False, created=-1.0)
    if with_bystander:
        lab.gang("bystander", 8, queue="protected", gpus=1)
    else:
        lab.run(lab.pod("foreign", scheduler="default-scheduler", gpus=8), "n000")
    lab.cycle()
    for number in range(16):
        lab.pod(f"greedy-{number}", queue="greedy", gpus=1)
    lab.cycle()
    lab.gang("job", 8, queue="starved", gpus=1)
    lab.cycle(3)
    assert lab.count("job") == 8
    assert {name.partition("-")[0] for name, _ in lab.evicted} == {"greedy"}
    assert len(lab.evicted) == 8


def test_c18_a_full_cluster_is_reclaimed_in_the_first_cycle():
    lab = Lab()
    lab.leaves_at_once = False
    lab.nodes(40, gpus=8)
    lab.queue("a", figures=figures(deserved=160))
    lab.queue("b", figures=figures(deserved=160))
    for number in range(40):
        lab.gang(f"b{number}", 8, queue="b", gpus=1)
    lab.cycle()
    lab.gang("job", 20, queue="a", gpus=8)
    session = lab.cycle()
    assert len(session.effects.evictions) == 160
    assert lab.code("job") == "WaitingVictims"
    lab.finish_leaving()
    lab.cycle(2)
    assert lab.count("job") == 20


def test_c19_room_scattered_over_nodes_helps_no_large_pod():
    lab = Lab()
    lab.nodes(4, gpus=8)
    lab.queue("q")
    for node in range(4):
        for number in range(6):
            lab.run(lab.pod(f"high-{node}-{number}", queue="q", gpus=1, priority=100), f"n{node:03}")
        for number in range(2):
            lab.run(lab.pod(f"low-{node}-{number}", queue="q", gpus=1), f"n{node:03}")
    lab.pod("large", queue="q", gpus=8, priority=100)
    lab.cycle(3)
    assert lab.evicted == []
    assert lab.code("large") == "NoNode"
    lab.pod("small", queue="q", gpus=1, priority=100)
    lab.cycle(3)
    assert [beneficiary for _, beneficiary in lab.evicted] == ["pod:default/small"]
    assert lab.count("small") == 1


def test_c19_what_may_be_taken_is_taken_where_it_makes_whole_places():
    """Borrowers' pods lie on every node; a sixteenth of them may go, and two whole nodes of them are enough."""
    lab = Lab()
    lab.nodes(8, gpus=8)
    lab.queue("owner", figures=figures(deserved=64))
    lab.queue("borrower", figures=figures(deserved=0))
    for number in range(64):
        lab.run(lab.pod(f"low-{number}", queue="borrower", gpus=1), f"n00{number % 8}")
    lab.gang("wide", 2, queue="owner", gpus=8)
    lab.cycle(3)
    assert lab.count("wide") == 2
    assert len(lab.evicted) == 16
    lab.cycle(20)
    assert len(lab.evicted) == 16


def test_c19_an_elastic_job_shrinks_to_its_minimum_and_no_further():
    lab = Lab()
    lab.nodes(1, gpus=8)
    job = lab.gang("elastic", 8, 4, gpus=1)
    lab.cycle()
    first = set(lab.running("elastic"))
    assert len(first) == 8
    lab.gang("urgent", 4, gpus=1, priority=10)
    for _ in range(5):
        lab.cycle()
        assert len([task for task in job.tasks.values() if task.node]) >= 4
    assert lab.count("urgent") == 4
    assert set(lab.running("elastic")) < first


def test_spot_leaves_before_anybody_else_and_takes_from_nobody():
    lab = Lab()
    lab.nodes(2, gpus=8)
    lab.queue("spot", type="Spot")
    lab.queue("team", figures=figures(deserved=8))
    lab.queue("other", figures=figures(deserved=0))
    lab.gang("other", 8, queue="other", gpus=1)
    lab.cycle()
    for number in range(12):
        lab.pod(f"spot-{number}", queue="spot", gpus=1, priority=1000)
    lab.cycle()
    assert lab.evicted == []
    lab.gang("team", 8, queue="team", gpus=1)
    lab.cycle(3)
    assert lab.count("team") == 8
    assert {name.partition("-")[0] for name, _ in lab.evicted} == {"spot"}


def test_a_queue_that_may_not_take_from_others_does_not():
    lab = Lab()
    lab.nodes(1, gpus=8)
    lab.queue("a", figures=figures(deserved=8), preemption=Preemption(from_others="Never"))
    lab.queue("b", figures=figures(deserved=0))
    lab.gang("low", 8, 1, queue="b", gpus=1)
    lab.cycle()
    lab.gang("job", 4, queue="a", gpus=1)
    lab.cycle(3)
    assert lab.evicted == []
    assert GPU
