"""Many pods that wait: what is written, looked at and kept grows with what changed, not with what there is."""

import gc
import tracemalloc

import pytest

from skysail.batch.engine import Engine
from skysail.batch.model.specs import PodGroupSpec
from skysail.batch.session import Session
from tests.batch.lab import SEEDS, START, Lab

ROUNDS = 150 if len(SEEDS) <= 10 else 2_000
"""Five pods each."""


@pytest.fixture
def looked_at(monkeypatch):
    """How many jobs were validated."""
    seen = []
    original = Session.validate

    def counted(self, job):
        seen.append(job.key)
        return original(self, job)

    monkeypatch.setattr(Session, "validate", counted)
    return seen


def test_c20_eight_thousand_pods_and_a_node_that_helps_none_of_them():
    lab = Lab()
    lab.nodes(1)
    for number in range(8_000):
        lab.pod(f"p{number}", cpu="100")
    engine = Engine(lab.world, lab.configuration)
    assert len(engine.run_once(START).outcomes) == 8_000
    lab.nodes(1, prefix="more", cpu="1")
    cycle = engine.run_once(START + 1)
    assert len(cycle.outcomes) <= 80
    assert [engine.run_once(START + second) for second in range(2, 102)] == [None] * 100


def test_jobs_that_wait_cost_nothing_while_others_come_and_go(looked_at):
    lab = Lab()
    lab.nodes(4)
    for number in range(1_000):
        lab.world.set_group(PodGroupSpec("default", f"wait{number}", uid=f"w{number}", min_member=2, created=START))
        for member in range(2):
            lab.pod(f"wait{number}-{member}", f"wait{number}", cpu="100")
    engine = Engine(lab.world, lab.configuration)
    assert engine.run_once(START).tried == 1_000
    looked_at.clear()
    tried = 0
    for second in range(1, 21):
        lab.pod(f"small{second}", cpu="1")
        cycle = engine.run_once(START + second)
        tried += cycle.tried
        lab.play(cycle.effects)
    assert tried == 20
    assert len(looked_at) <= 40
    assert engine.run_once(START + 30) is not None
    assert engine.run_once(START + 31) is None


def test_a_pod_that_leaves_wakes_those_it_could_help_each_once(looked_at):
    lab = Lab()
    lab.nodes(1, cpu="4")
    lab.pod("runs", cpu="4")
    lab.cycle()
    for number in range(50):
        lab.pod(f"wait{number}", cpu="4")
    engine = Engine(lab.world, lab.configuration)
    engine.run_once(START)
    looked_at.clear()
    lab.delete("runs")
    cycle = engine.run_once(START + 1)
    assert cycle.tried == 50
    lab.play(cycle.effects)
    again = engine.run_once(START + 2)
    assert again is None or again.tried == 0


def rounds(lab, engine, first, number):
    for at in range(first, first + number):
        lab.gang(f"j{at}", 4, cpu="1")
        lab.pod(f"lone{at}", cpu="100")
        cycle = engine.run_once(START + 2 * at)
        lab.play(cycle.effects)
        engine.run_once(START + 2 * at + 1)
        for member in range(4):
            lab.delete(f"j{at}-{member}")
        lab.delete(f"lone{at}")
        lab.world.remove_group(f"default/j{at}")
        lab.bound.clear()


def test_c20_memory_does_not_grow_with_what_came_and_went():
    """After the first few, rounds of pods that come, run and go add less than a twentieth of what 500 pods take."""
    lab = Lab()
    lab.nodes(10)
    engine = Engine(lab.world, lab.configuration)
    tracemalloc.start()
    try:
        rounds(lab, engine, 0, 50)
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        rounds(lab, engine, 50, ROUNDS)
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
        for number in range(500):
            lab.pod(f"load{number}", cpu="1")
        load = tracemalloc.get_traced_memory()[0] - before - grown
    finally:
        tracemalloc.stop()
    assert grown < load / 20
    world = lab.world
    kept = [
        world.distrust,
        world.protected,
        world.evicting,
        world.claims,
        world.bundles,
        world.heads.get("default", {}),
    ]
    assert [len(each) for each in kept] == [0] * len(kept)
    assert len(world.jobs) == 500


def test_a_running_pod_is_three_objects_for_the_collector_to_go_through():
    """The task, what is derived of the pod, and the cluster cache's account; the rest of a gang is shared."""
    lab = Lab()
    lab.nodes(10, cpu="100")
    engine = Engine(lab.world, lab.configuration)
    lab.gang("warm", 1, cpu="1")
    lab.play(engine.run_once(START).effects)
    engine.run_once(START + 1)
    gc.collect()
    before = len(gc.get_objects())
    for number in range(20):
        lab.gang(f"job{number}", 20, cpu="1")
    lab.play(engine.run_once(START + 2).effects)
    lab.bound.clear()
    engine.run_once(START + 3)
    gc.collect()
    assert lab.count("job19") == 20
    assert len(gc.get_objects()) - before < 4 * 400
