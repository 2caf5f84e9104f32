"""Nodes with promised pods are asked together where that is the same, and one by one where it is not."""

import os
import random

import pytest

from skysail.scheduler.cache.pod_info import PodInfo
from skysail.scheduler.framework import nominated
from skysail.scheduler.framework.evaluation import run_filters
from skysail.scheduler.framework.incremental import IncrementalEvaluator
from skysail.scheduler.framework.nominated import refusals_with_nominated_pods, status_with
from skysail.scheduler.framework.runner import Framework
from skysail.scheduler.framework.status import SUCCESS, Status
from skysail.scheduler.scenario import build_framework, build_world, resolve_profiles
from skysail.testing import affinity, away_from, make_node, make_pod

SEEDS = range(int(os.environ.get("SOAK_SEEDS", "10")))


def pod_of(rng, name, **more):
    labels = {"app": rng.choice(("a", "b"))}
    wants = {"affinity": affinity(away=[away_from({"app": rng.choice(("a", "b"))})])} if rng.random() < 0.2 else {}
    ports = {"host_ports": (8080,)} if rng.random() < 0.2 else {}
    return make_pod(name, cpu=f"{rng.choice((100, 600, 900))}m", labels=labels, **wants, **ports, **more)


def one_by_one(framework, state, pod, table, nominator):
    found = {}
    for name, promised in nominator.by_node.items():
        others = [each for each in promised.values() if each.priority >= pod.spec.priority and each.pod.uid != pod.uid]
        if others and name in table.rows:
            status = status_with(framework, state, pod, table, table.rows[name], others)
            if not status.is_success:
                found[table.rows[name]] = status
    return found


def change(rng, world, step):
    """A pod comes or goes, a Node changes, a promise is made or taken back."""
    node = f"n{rng.randrange(12)}"
    what = rng.randrange(5)
    if what == 0:
        world.cache.add_pod(pod_of(rng, f"later{step}", uid=f"l{step}", node=node))
    elif what == 1 and (info := world.cache.node_info(node)) is not None and info.pods:
        world.cache.remove_pod(rng.choice(list(info.pods)))
    elif what == 2:
        world.cache.update_node(make_node(node, cpu=rng.choice(("1", "2"))))
    elif what == 3:
        world.nominator.add(pod_of(rng, f"p{step}", uid=f"p{step % 15}", priority=rng.choice((0, 5, 10))), node)
    else:
        world.nominator.remove(make_pod("gone", uid=f"p{rng.randrange(15)}"))
    world.cache.update_snapshot(world.current)


@pytest.mark.parametrize("seed", SEEDS)
def test_together_remembered_or_one_by_one_is_the_same(seed):
    rng = random.Random(seed)
    world = build_world((), {})
    for number in range(12):
        world.cache.add_node(make_node(f"n{number}", cpu="1"))
    for number in range(rng.randint(0, 8)):
        world.cache.add_pod(pod_of(rng, f"bound{number}", uid=f"b{number}", node=f"n{rng.randrange(12)}"))
    for number in range(rng.randint(0, 15)):
        promised = pod_of(rng, f"promised{number}", uid=f"p{number}", priority=rng.choice((0, 5, 10)))
        world.nominator.add(promised, f"n{rng.randrange(14)}")
    world.cache.update_snapshot(world.current)
    framework = build_framework(resolve_profiles(None, world.gates)[0], world)
    pods = [pod_of(rng, f"tested{each}", uid=f"p{each}", priority=rng.choice((0, 5, 10))) for each in range(4)]
    for step in range(30):
        pod, table = rng.choice(pods), world.current.table
        evaluator = IncrementalEvaluator(framework, table, PodInfo(pod))
        evaluator.pre_filter()
        wanted = one_by_one(framework, evaluator.state, pod, table, world.nominator)
        assert refusals_of(framework, evaluator, pod, table, world.nominator) == wanted
        change(rng, world, step)


def test_rows_that_did_not_change_are_not_asked_again(monkeypatch):
    world = build_world((), {})
    for number in range(6):
        world.cache.add_node(make_node(f"n{number}", cpu="1"))
        world.nominator.add(make_pod(f"promised{number}", uid=f"p{number}", cpu="800m", priority=5), f"n{number}")
    world.cache.update_snapshot(world.current)
    framework = build_framework(resolve_profiles(None, world.gates)[0], world)
    asked = []
    monkeypatch.setattr(nominated, "run_filters", lambda *given: asked.append(len(given[-1])) or run_filters(*given))
    pod, table = make_pod("tested", uid="tested", cpu="500m", priority=5), world.current.table
    for act in (
        lambda: None,
        lambda: None,
        lambda: world.cache.add_pod(make_pod("bound", uid="b", node="n3")),
        lambda: world.nominator.remove(make_pod("gone", uid="p1")),
        lambda: world.nominator.add(make_pod("promised1", uid="p1", cpu="800m", priority=5), "n2"),
    ):
        act()
        world.cache.update_snapshot(world.current)
        evaluator = IncrementalEvaluator(framework, table, PodInfo(pod))
        evaluator.pre_filter()
        refusals_of(framework, evaluator, pod, table, world.nominator)
    assert asked == [6, 1, 1]


class Moody:
    """A plugin of somebody else's, which may read anything."""

    name = "Moody"
    mood = "good"

    def filter(self, state, pod, node):
        return Status.unschedulable("bad mood") if self.mood == "bad" else SUCCESS


def test_answers_of_plugins_that_read_more_than_the_row_are_not_remembered():
    world = build_world((), {})
    world.cache.add_node(make_node("n0", cpu="1"))
    world.nominator.add(make_pod("promised", uid="p", priority=5), "n0")
    world.cache.update_snapshot(world.current)
    framework = Framework("default-scheduler", {"filter": [moody := Moody()]}, {})
    pod, table, refusals = make_pod("tested", uid="tested", priority=5), world.current.table, []
    for moody.mood in ("good", "bad", "good"):
        evaluator = IncrementalEvaluator(framework, table, PodInfo(pod))
        evaluator.pre_filter()
        refusals.append(len(refusals_of(framework, evaluator, pod, table, world.nominator)))
    assert refusals == [0, 1, 0]


def refusals_of(framework, evaluator, pod, table, nominator):
    return refusals_with_nominated_pods(framework, evaluator.state, pod, table, nominator, evaluator.with_nominated)
