"""Nodes with promised pods are asked together where that is the same, and one by one where it is not."""

import os
import random

import pytest

from skysail.scheduler.cache.pod_info import PodInfo
from skysail.scheduler.framework.evaluation import PlainEvaluator
from skysail.scheduler.framework.nominated import refusals_with_nominated_pods, status_with
from skysail.scheduler.scenario import build_framework, build_world, resolve_profiles
from skysail.testing import affinity, away_from, make_node, make_pod

SEEDS = range(int(os.environ.get("SOAK_SEEDS", "10")))


def pod_of(rng, name, **more):
    labels = {"app": rng.choice(("a", "b"))}
    wants = {"affinity": affinity(away=[away_from({"app": rng.choice(("a", "b"))})])} if rng.random() < 0.2 else {}
    ports = {"host_ports": (8080,)} if rng.random() < 0.2 else {}
    return make_pod(name, cpu=f"{rng.choice((100, 600, 900))}m", labels=labels, **wants, **ports, **more)


@pytest.mark.parametrize("seed", SEEDS)
def test_together_or_one_by_one_is_the_same(seed):
    rng = random.Random(seed)
    world = build_world((), {})
    for number in range(12):
        world.cache.add_node(make_node(f"n{number}", cpu="1"))
    for number in range(rng.randint(0, 8)):
        world.cache.add_pod(pod_of(rng, f"bound{number}", uid=f"b{number}", node=f"n{rng.randrange(12)}"))
    world.cache.update_snapshot(world.current)
    for number in range(rng.randint(0, 15)):
        promised = pod_of(rng, f"promised{number}", uid=f"p{number}", priority=rng.choice((0, 5, 10)))
        world.nominator.add(promised, f"n{rng.randrange(14)}")
    framework = build_framework(resolve_profiles(None, world.gates)[0], world)
    pod = pod_of(rng, "tested", uid="tested", priority=rng.choice((0, 5, 10)))
    table = world.current.table
    evaluator = PlainEvaluator(framework, table, PodInfo(pod))
    evaluator.pre_filter()
    one_by_one = {}
    for name, promised in world.nominator.by_node.items():
        others = [PodInfo(each) for each in promised.values() if each.spec.priority >= pod.spec.priority]
        if others and name in table.rows:
            status = status_with(framework, evaluator.state, pod, table, table.rows[name], others)
            if not status.is_success:
                one_by_one[table.rows[name]] = status
    assert refusals_with_nominated_pods(framework, evaluator.state, pod, table, world.nominator) == one_by_one
