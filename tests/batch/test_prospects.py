"""The quick tests before the search for victims: they say no only where the search would, and spare it."""

import random
from collections import Counter

import pytest

from skysail.batch.actions import reclaim
from skysail.batch.cycle import cycle_steps
from skysail.batch.model.specs import Preemption, ZoneWish
from skysail.batch.pausing import Pause
from skysail.batch.plugins.gang import Gang
from skysail.batch.prospects import Relief
from skysail.batch.registrar import Registrar
from skysail.batch.statement import Statement
from skysail.testing.builders import make_pod
from tests.batch.lab import SEEDS, Lab, figures

POLICIES = ("LowerPriority", "LowerOrNewerEqualPriority", "Never")


def full_search(monkeypatch):
    """Every job's victims are looked for anew, and every answer comes of a simulation."""
    monkeypatch.setattr(reclaim, "is_hopeless", lambda *arguments: False)
    monkeypatch.setattr(Relief, "could_fit", lambda self, leaving: True)
    monkeypatch.setattr(Registrar, "kind_of_beneficiary", lambda self, job: None)


def some_queue(dice, lab, name, parent="root"):
    lab.queue(
        name,
        parent=parent,
        type="Spot" if dice.random() < 0.15 else "Quota",
        priority=dice.randrange(2),
        reclaimable=dice.random() < 0.9,
        figures=figures(
            deserved=dice.choice((None, 0, 2, 4, 8)),
            capability=dice.choice((None, None, 6, 12)),
            guarantee=dice.choice((None, None, 1)),
        )
        | (figures(deserved=dice.choice((None, 16_000, 64_000)), resource="cpu") if dice.random() < 0.4 else {}),
        preemption=Preemption(
            within_queue=dice.choice(POLICIES),
            from_others=dice.choice(("Any", "Any", "LowerPriority", "Never")),
            within_quota=dice.choice(("Never", "Never", "LowerQueuePriority")),
            priority_threshold=dice.choice((None, None, None, 1)),
        ),
    )


def some_jobs(dice, lab, prefix, number, queues):
    for at in range(number):
        size = dice.choice((1, 1, 2, 3, 5))
        spec = {"priority": dice.randrange(3)}
        if dice.random() < 0.2:
            spec["zone"] = ZoneWish(required=dice.random() < 0.5, preferred=True)
        if dice.random() < 0.2:
            spec["disruption_mode"] = "PodGroup"
        pods = {"gpus": dice.choice((0, 1, 1, 2, 4, 8)), "cpu": dice.choice(("1", "8", "24"))}
        if dice.random() < 0.2:
            pods["node_selector"] = {"model": dice.choice("xy")}
        if dice.random() < 0.1:
            pods["preemption_policy"] = "Never"
        lab.gang(f"{prefix}{at}", size, dice.randint(1, size), dice.choice(queues), group=spec, **pods)


def played(seed):
    """What happens in a cluster that is full, as one record."""
    dice = random.Random(seed)
    lab = Lab(seed=seed)
    for number in range(dice.randint(2, 6)):
        zone, model = "ab"[number % 2], "xy"[number // 2 % 2]
        lab.nodes(1, f"n{number}", gpus=8, cpu="32", labels={"zone": zone, "model": model})
    queues = []
    for number in range(dice.randint(1, 3)):
        some_queue(dice, lab, f"q{number}")
        children = [f"q{number}-{child}" for child in range(dice.choice((0, 0, 2)))]
        for child in children:
            some_queue(dice, lab, child, f"q{number}")
        queues += children or [f"q{number}"]
    some_jobs(dice, lab, "first", 12, queues)
    lab.cycle(2)
    some_jobs(dice, lab, "late", 12, queues)
    lab.cycle(3)
    for name in [task.pod.name for task in lab.world.tasks.values() if task.node and dice.random() < 0.15]:
        lab.delete(name)
    lab.cycle(3)
    outcomes = {
        job.key: (job.outcome.code, dict(job.outcome.numbers), job.outcome.detail.get("candidates"))
        for job in lab.world.jobs.values()
        if job.outcome is not None
    }
    claims = [each for session in lab.sessions for each in session.effects.claims]
    promised = [(claim.job, dict(claim.placement), dict(claim.victims), claim.reason) for claim in claims]
    return lab.bound, lab.evicted, promised, outcomes


@pytest.mark.parametrize("seed", [seed * 100 + more for seed in SEEDS for more in range(10)])
def test_the_quick_tests_change_no_decision(seed, monkeypatch):
    quick = played(seed)
    full_search(monkeypatch)
    assert quick == played(seed)


@pytest.fixture
def work(monkeypatch):
    """How many evictions were simulated, and of how many tasks plugins were asked whether they may be taken."""
    done = Counter()

    def evict(self, job, tasks, reason="reclaim", original=Statement.evict):
        done["evictions"] += len(tasks)
        return original(self, job, tasks, reason)

    def evictable(self, job, candidates, original=Gang.evictable):
        done["asked"] += len(candidates)
        return original(self, job, candidates)

    monkeypatch.setattr(Statement, "evict", evict)
    monkeypatch.setattr(Gang, "evictable", evictable)
    return done


def full_cluster(nodes, per_node, owner, borrower):
    """Nodes full of pods of one GPU each, that lie alternately in two queues entitled to so much."""
    lab = Lab()
    lab.nodes(nodes, gpus=per_node)
    lab.queue("owner", figures=figures(deserved=owner))
    lab.queue("borrower", figures=figures(deserved=borrower))
    for number in range(nodes * per_node):
        pod = lab.pod(f"runs{number}", gpus=1, queue=("owner", "borrower")[number % 2])
        lab.run(pod, f"n{number // per_node:03}")
    lab.cycle()
    return lab


def test_starving_jobs_of_many_shapes_cost_no_simulation_while_nobody_borrows(work):
    lab = full_cluster(20, 8, owner=80, borrower=80)
    for number in range(60):
        lab.gang(f"wants{number}", 1 + number // 3, queue=("owner", "borrower")[number % 2], gpus=1 + number % 3)
    lab.cycle()
    assert {lab.code(f"wants{number}") for number in range(60)} == {"NotEnough", "NoNode"}
    assert work == {"asked": 160}


def test_when_a_pod_ends_those_who_starve_are_told_apart_again_without_a_simulation(work):
    lab = full_cluster(20, 8, owner=80, borrower=80)
    for number in range(60):
        lab.gang(f"wants{number}", 2 + number // 3, queue=("owner", "borrower")[number % 2], gpus=1 + number % 3)
    lab.cycle()
    work.clear()
    lab.delete("runs7")
    assert len(lab.cycle().tried) >= 50
    assert work == {"asked": 159}


def test_one_who_is_taken_does_not_make_all_others_asked_about_again(work):
    lab = full_cluster(20, 8, owner=160, borrower=0)
    for number in range(20):
        lab.gang(f"wants{number}", 1, queue="owner", gpus=1 + number % 3)
    lab.cycle()
    assert len(lab.evicted) == sum(1 + number % 3 for number in range(20))
    assert work["asked"] <= 80 + 80 + len(lab.evicted)


def test_places_that_need_room_made_before_them_do_not_go_first():
    # a third pod of a node makes a second place only when two left for the first; one of each node would help nobody
    lab = Lab()
    lab.nodes(6, gpus=8)
    lab.queue("owner", figures=figures(deserved=12))
    lab.queue("borrower", figures=figures(deserved=36))
    for number in range(24):
        lab.run(lab.pod(f"runs{number}", gpus=2, queue="borrower"), f"n{number % 6:03}")
    lab.gang("wide", 3, queue="owner", gpus=3)
    lab.cycle(4)
    assert (lab.count("wide"), len(lab.evicted)) == (3, 5)


def test_what_the_other_engine_does_while_victims_are_evicted_in_simulation_is_not_missed():
    lab = full_cluster(20, 8, owner=160, borrower=0)
    lab.gang("wide", 60, queue="owner", gpus=1)
    running, within = cycle_steps(lab.world, lab.configuration), 0
    while True:
        try:
            pause = next(running)
        except StopIteration as end:
            session = end.value
            break
        if pause is Pause.WITHIN:
            other = make_pod(f"other{within}", uid=f"other{within}", cpu="100m", node=f"n{within % 20:03}")
            lab.world.cache.add_pod(other)
            within += 1
    table = session.nodes.table
    assert within > 3
    assert len(session.effects.evictions) == 60
    assert all(table.info(row) is lab.world.cache.node_info(name) for name, row in table.rows.items())
