"""Reclaim where the queues share a queue above them that is full: what one gives the other takes, and it stays full."""

import pytest

from tests.batch.lab import SEEDS, Lab, figures


def cohort(lab, capability=None, *, levels=1):
    parent = "root"
    for level in range(levels):
        lab.queue(f"above-{level}", parent=parent, figures=figures(deserved=8, capability=capability))
        parent = f"above-{level}"
    for name in "ab":
        lab.queue(name, parent=parent, figures=figures(deserved=4))


@pytest.mark.parametrize("levels", [1, 2, 3])
@pytest.mark.parametrize("capability", [None, 8])
def test_a_queue_takes_back_what_its_sibling_borrowed_though_the_cohort_is_full(capability, levels):
    lab = Lab()
    lab.nodes(1, gpus=8)
    cohort(lab, capability, levels=levels)
    lab.gang("borrower", 8, 1, "a", gpus=1)
    lab.cycle()
    lab.gang("owner", 4, queue="b", gpus=1)
    lab.cycle(3)
    assert (lab.count("borrower"), lab.count("owner"), len(lab.evicted)) == (4, 4, 4)
    lab.cycle(20)
    assert len(lab.evicted) == 4


def test_nobody_takes_beyond_what_the_cohort_may_claim_of_others():
    lab = Lab()
    lab.nodes(1, gpus=8)
    lab.queue("cohort", figures=figures(deserved=4))
    lab.queue("a", parent="cohort", figures=figures(deserved=2))
    lab.queue("b", parent="cohort", figures=figures(deserved=4))
    lab.queue("others", figures=figures(deserved=4))
    lab.gang("in-a", 2, queue="a", gpus=1)
    lab.gang("borrower", 6, 1, "others", gpus=1)
    lab.cycle()
    lab.gang("in-b", 4, queue="b", gpus=1)
    lab.cycle(5)
    assert lab.count("in-b") == 0
    assert lab.evicted == []
    lab.gang("small", 2, queue="b", gpus=1)
    lab.cycle(5)
    assert (lab.count("small"), lab.count("borrower")) == (2, 4)


@pytest.mark.parametrize("seed", SEEDS)
def test_cohorts_go_quiet(seed):
    import random

    dice = random.Random(seed)
    lab = Lab(seed=seed)
    lab.nodes(2, gpus=8)
    lab.recreate = True
    names = []
    for number in range(2):
        lab.queue(f"cohort-{number}", figures=figures(deserved=dice.randint(4, 10), capability=dice.choice([None, 16])))
        for leaf in "ab":
            names.append(f"{leaf}{number}")
            lab.queue(names[-1], parent=f"cohort-{number}", figures=figures(deserved=dice.randint(0, 6)))
    for number in range(12):
        size = dice.randint(1, 5)
        lab.gang(f"job-{number}", size, dice.randint(1, size), dice.choice(names), gpus=dice.choice([1, 1, 2]))
        lab.cycle()
    lab.cycle(50)
    before = len(lab.evicted)
    lab.cycle(20)
    assert len(lab.evicted) == before


def test_a_gang_that_lost_a_member_is_made_whole_before_others_begin():
    lab = Lab()
    lab.nodes(4, gpus=1)
    lab.gang("gang", 4, gpus=1)
    lab.cycle()
    lab.delete("gang-3")
    lab.pod("stranger", gpus=1)
    lab.pod("gang-4", "gang", gpus=1)
    lab.cycle()
    assert (lab.count("gang"), lab.count("stranger")) == (4, 0)


def test_who_runs_where_the_owner_cannot_is_not_asked_in_the_place_of_who_can_help():
    lab = Lab()
    lab.nodes(2, gpus=8)
    lab.queue("fed", figures=figures(deserved=4))
    lab.queue("under", figures=figures(deserved=12))
    lab.gang("fed", 4, queue="fed", gpus=2)
    lab.cycle()
    there = {"kubernetes.io/hostname": lab.node_of("fed-0")}
    lab.gang("elsewhere", 1, queue="fed", gpus=8)
    lab.cycle()
    lab.gang("owner", 4, queue="under", gpus=1, node_selector=there)
    lab.cycle(3)
    assert (lab.count("owner"), lab.count("elsewhere"), lab.count("fed")) == (4, 1, 0)


def test_what_a_protected_queue_keeps_is_not_counted_on_twice():
    lab = Lab()
    lab.nodes(1, gpus=8)
    lab.queue("kept", reclaimable=False, figures=figures(deserved=2))
    lab.queue("lent", figures=figures(deserved=2))
    lab.queue("owner", figures=figures(deserved=4))
    lab.gang("steady", 4, 1, "kept", gpus=1)
    lab.gang("elastic", 4, 1, "lent", gpus=1)
    lab.cycle()
    lab.gang("training", 2, queue="owner", gpus=1)
    lab.cycle(3)
    assert (lab.count("steady"), lab.count("elastic"), lab.count("training")) == (4, 2, 2)
    lab.cycle(20)
    assert len(lab.evicted) == 2


def test_who_looked_in_vain_looks_again_once_another_queue_borrows():
    lab = Lab()
    lab.nodes(2, gpus=8)
    lab.queue("fed", figures=figures(deserved=4))
    lab.queue("under", figures=figures(deserved=12))
    lab.gang("fed", 4, queue="fed", gpus=2)
    lab.cycle()
    there = {"kubernetes.io/hostname": lab.node_of("fed-0")}
    lab.gang("owner", 4, queue="under", gpus=1, node_selector=there)
    lab.cycle(3)
    assert lab.evicted == []
    lab.gang("elsewhere", 1, queue="fed", gpus=8)
    lab.cycle(4)
    assert (lab.count("owner"), lab.count("elsewhere")) == (4, 1)
