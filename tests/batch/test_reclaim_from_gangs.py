"""Gangs that run by borrowing alone do not keep what is their lender's."""

import pytest

from skysail.batch.model.outcome import Event
from skysail.batch.model.specs import FlavorSpec
from skysail.batch.statement import Statement
from tests.batch.lab import SEEDS, Lab, figures


def lent(minimum=8, **spec):
    """Two queues entitled to 64 of 128; a gang of one holds all of it."""
    lab = Lab()
    lab.recreate = True
    lab.nodes(8, gpus=16)
    lab.queue("vision", figures=figures(deserved=64), **spec)
    lab.queue("speech", figures=figures(deserved=64), **spec)
    lab.gang("big", 8, minimum, "vision", gpus=16)
    lab.cycle()
    return lab


def held(lab, queue):
    return sum(task.request.get("nvidia.com/gpu", 0) for task in lab.world.tasks.values()
               if task.node and task.job.queue == queue)  # fmt: skip


@pytest.mark.parametrize("jobs", [1, 3, 8, 12])
def test_an_owner_takes_back_what_a_gang_larger_than_its_queue_borrowed(jobs):
    lab = lent()
    for number in range(jobs):
        lab.gang(f"small-{number}", 1, queue="speech", gpus=8)
    lab.cycle(30)
    assert held(lab, "speech") == 8 * jobs
    assert len(lab.evicted) == 8
    lab.cycle(30)
    assert len(lab.evicted) == 8


@pytest.mark.parametrize("levels", [1, 2])
def test_the_same_below_cohorts(levels):
    lab = Lab()
    lab.recreate = True
    lab.nodes(8, gpus=16)
    for name in ("vision", "speech"):
        parent = "root"
        for level in range(levels):
            lab.queue(f"{name}-{level}", parent=parent, figures=figures(deserved=64))
            parent = f"{name}-{level}"
        lab.queue(name, parent=parent, figures=figures(deserved=64))
    lab.gang("big", 8, queue="vision", gpus=16)
    lab.cycle()
    lab.gang("small", 1, queue="speech", gpus=8)
    lab.cycle(10)
    assert (lab.count("small"), len(lab.evicted)) == (1, 8)


def test_the_other_resources_of_such_a_gang_do_not_keep_it():
    lab = Lab()
    lab.recreate = True
    lab.nodes(8, gpus=16, cpu="64")
    for name in ("vision", "speech"):
        lab.queue(name, figures=figures(deserved=64) | figures(256000, resource="cpu"))
    lab.gang("big", 8, queue="vision", gpus=16, cpu="30")
    lab.cycle()
    lab.gang("small", 1, queue="speech", gpus=8, cpu="1")
    lab.cycle(10)
    assert (lab.count("small"), len(lab.evicted)) == (1, 8)


def test_the_same_for_shares_by_flavor():
    lab = Lab()
    lab.recreate = True
    lab.world.set_flavors([FlavorSpec("x86", {"arch": "x86"}), FlavorSpec("arm", {"arch": "arm"})])
    for arch in ("x86", "arm"):
        lab.nodes(4, prefix=arch, cpu="16", labels={"arch": arch})
    for name in ("vision", "speech"):
        both = (figures(32000, resource="cpu", flavor=flavor) for flavor in ("x86", "arm"))
        lab.queue(name, figures=next(both) | next(both))
    lab.gang("big", 8, queue="vision", cpu="16")
    lab.cycle()
    lab.gang("small", 1, queue="speech", cpu="8")
    lab.cycle(10)
    assert (lab.count("small"), len(lab.evicted)) == (1, 8)


def test_a_guarantee_is_kept():
    lab = Lab()
    lab.recreate = True
    lab.nodes(8, gpus=16)
    lab.queue("vision", figures=figures(deserved=64, guarantee=64))
    lab.queue("speech", figures=figures(deserved=64))
    lab.gang("big", 8, queue="vision", gpus=16)
    lab.cycle()
    lab.gang("small", 1, queue="speech", gpus=8)
    lab.cycle(10)
    assert lab.evicted == []
    assert lab.job("small").outcome.message.endswith(
        "; queue vision is guaranteed 64 nvidia.com/gpu and would be left 0, so it keeps default/big"
    )
    assert (lab.numbers("small")["keptBy"], lab.numbers("small")["guarantee"]) == ("vision", 64)


def test_a_guarantee_that_comes_later_is_told_once():
    lab = two_gangs()
    lab.gang("small", 1, queue="speech", gpus=8)
    lab.cycle()
    assert "guarante" not in lab.job("small").outcome.message
    lab.queue("vision", figures=figures(deserved=64, guarantee=56))
    assert lab.job("small") in lab.cycle().outcomes.values()
    said = lab.job("small").outcome
    assert said.message.endswith(
        "; queue vision is guaranteed 56 nvidia.com/gpu and would be left 48, so it keeps default/two, default/one"
    )
    lab.world.tell(Event.VICTIMS_CHANGED)
    session = lab.cycle()
    assert (session.tried, session.outcomes) == ({"default/small": None}, {})
    assert lab.job("small").outcome == said


def test_a_guarantee_is_no_reason_where_the_job_would_find_no_room_anyway():
    lab = Lab()
    lab.nodes(4, gpus=16)
    lab.queue("vision", figures=figures(deserved=32, guarantee=32))
    lab.queue("speech", figures=figures(deserved=32))
    lab.gang("big", 4, queue="vision", gpus=16)
    lab.cycle()
    lab.gang("wide", 1, queue="speech", gpus=17)
    lab.cycle()
    assert "guarante" not in lab.job("wide").outcome.message


def test_the_gang_comes_back_by_borrowing_only():
    lab = lent()
    lab.gang("small", 1, queue="speech", gpus=8)
    lab.cycle(20)
    assert (lab.count("small"), held(lab, "vision")) == (1, 0)
    lab.finish("small-0")
    lab.cycle(3)
    assert held(lab, "vision") == 128


def test_an_elastic_gang_shrinks_first():
    lab = lent(minimum=2)
    for number in range(8):
        lab.gang(f"small-{number}", 1, queue="speech", gpus=8)
    lab.cycle(20)
    assert (held(lab, "vision"), held(lab, "speech"), len(lab.evicted)) == (64, 64, 4)


def test_a_gang_within_its_entitlement_stays():
    lab = lent(minimum=4)
    lab.gang("wide", 5, queue="speech", gpus=16)
    lab.cycle(10)
    assert lab.evicted == []


@pytest.mark.parametrize(("waiting", "left"), [(1, 16), (4, 64)])
def test_jobs_behind_such_a_gang_do_not_keep_it_from_an_owner_who_needs_more(waiting, left):
    lab = lent()
    for number in range(waiting):
        lab.gang(f"behind-{number}", 1, queue="vision", gpus=16)
    for number in range(8):
        lab.gang(f"small-{number}", 1, queue="speech", gpus=8)
    lab.cycle(30)
    assert (held(lab, "vision"), held(lab, "speech"), len(lab.evicted)) == (left, 64, 8)


def two_gangs():
    """Two gangs of 48: either would be within an entitlement of 64, and the queue would have 16 less than it is due."""
    lab = Lab()
    lab.recreate = True
    lab.nodes(6, gpus=16)
    lab.queue("vision", figures=figures(deserved=64))
    lab.queue("speech", figures=figures(deserved=32))
    for name in ("one", "two"):
        lab.gang(name, 3, queue="vision", gpus=16)
    lab.cycle()
    return lab


@pytest.mark.parametrize("between", [0, 5])
def test_jobs_that_get_more_together_than_the_other_queue_would_lack_take_it_together(between):
    lab = two_gangs()
    for number in range(4):
        lab.gang(f"small-{number}", 1, queue="speech", gpus=8)
        for _ in range(between):
            lab.cycle()
    lab.cycle(30)
    assert (held(lab, "vision"), held(lab, "speech"), len(lab.evicted)) == (48, 32, 3)


def test_many_small_jobs_take_it_together():
    lab = lent()
    for number in range(4):
        lab.gang(f"behind-{number}", 1, queue="vision", gpus=16)
    for number in range(64):
        lab.gang(f"small-{number}", 1, queue="speech", gpus=1)
    lab.cycle(10)
    assert (held(lab, "vision"), held(lab, "speech"), len(lab.evicted)) == (64, 64, 8)


def test_who_keeps_borrowed_room_is_said_to_who_waits_for_it():
    lab = two_gangs()
    lab.gang("small", 1, queue="speech", gpus=8)
    lab.cycle(3)
    assert lab.evicted == []
    assert lab.job("small").outcome.message.endswith(
        "; queue vision holds 8 nvidia.com/gpu above its entitlement and keeps it, for without default/two "
        "it would lack more of its entitlement than queue speech gets"
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_gangs_above_their_queue_go_quiet(seed):
    import random

    dice = random.Random(seed)
    lab = Lab(seed=seed)
    lab.recreate = True
    lab.nodes(dice.randint(2, 4), gpus=8)
    queues = [f"q{number}" for number in range(dice.randint(2, 4))]
    for name in queues:
        lab.queue(name, figures=figures(deserved=dice.choice([0, 4, 8, 12])))
    for number in range(dice.randint(4, 14)):
        size = dice.choice([1, 1, 2, 6, 10, 16])
        lab.gang(
            f"j{number}", size, dice.randint(max(1, size - 2), size), dice.choice(queues), gpus=dice.choice([1, 2])
        )
        if dice.random() < 0.6:
            lab.cycle()
    lab.cycle(50)
    before = len(lab.evicted)
    lab.cycle(20)
    assert len(lab.evicted) == before


@pytest.mark.parametrize(("gpus", "queues"), [(16, 1), (48, 3), (96, 6)])
def test_of_many_queues_with_guarantees_those_are_named_that_would_have_to_give_and_only_a_few(
    gpus, queues, monkeypatch
):
    lab = Lab()
    lab.nodes(32, gpus=16)
    for number in range(32):
        lab.queue(f"q{number:02}", figures=figures(deserved=8, guarantee=8))
        lab.gang(f"big{number:02}", 1, queue=f"q{number:02}", gpus=16)
    lab.queue("speech", figures=figures(deserved=256))
    lab.cycle()
    simulated, evict = [], Statement.evict

    def counted(self, job, tasks, reason="reclaim"):
        simulated.append(job.key)
        return evict(self, job, tasks, reason)

    monkeypatch.setattr(Statement, "evict", counted)
    lab.gang("small", gpus // 16, queue="speech", gpus=16)
    lab.cycle()
    assert lab.job("small").outcome.message.count("is guaranteed") == min(queues, 3)
    more = f"; and {queues - 3} more queues do so"
    assert lab.job("small").outcome.message.endswith(more) == (queues > 3)
    assert len(simulated) <= 2 * queues
