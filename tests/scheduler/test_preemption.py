"""Preemption: the choice among candidates as recorded, and the quick search equal to the general one."""

import json
import os
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from skysail.api.core import Container, Pod, PodSpec, PodStatus, ResourceRequirements
from skysail.api.meta import LabelSelector, ObjectMeta
from skysail.api.node import Node, NodeStatus
from skysail.api.policy import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from skysail.scheduler.algorithm import diagnose, find_feasible
from skysail.scheduler.cache.cluster_cache import ClusterCache
from skysail.scheduler.cache.pod_info import PodInfo, importance_of
from skysail.scheduler.cache.snapshot import Snapshot
from skysail.scheduler.framework.status import Code
from skysail.scheduler.preemption.candidates import find_candidates, potential_rows
from skysail.scheduler.preemption.picking import best_nodes
from skysail.scheduler.preemption.victims import Search, Victims
from skysail.scheduler.scenario import build_framework, build_world, resolve_profiles

FUNCTIONS = Path(__file__).parents[1] / "golden/scheduler/functions"
SEEDS = range(int(os.environ.get("SOAK_SEEDS", "10")))
START = datetime(2026, 1, 1, tzinfo=UTC)


def victim(raw: dict[str, object]) -> Pod:
    return Pod(
        metadata=ObjectMeta(name=str(raw["Name"])),
        spec=PodSpec(priority=raw["Priority"]),  # type: ignore[arg-type]
        status=PodStatus(start_time=datetime.fromisoformat(str(raw["Start"]))),
    )


def test_the_best_nodes_are_the_recorded_ones() -> None:
    for vector in json.loads((FUNCTIONS / "pick_one_node.json").read_text()):
        candidates = {
            name: Victims(tuple(PodInfo(victim(pod)) for pod in entry["Pods"]), entry["PDB"])
            for name, entry in vector["input"].items()
        }
        assert sorted(best_nodes(candidates)) == vector["output"]["best"]


def random_pod(rng: random.Random, number: int, top: int) -> Pod:
    requests = {"cpu": rng.choice(["100m", "500m", "1", "0"]), "memory": rng.choice(["64Mi", "512Mi"])}
    if rng.random() < 0.3:
        requests["example.com/gpu"] = rng.choice(["1", "2"])
    if rng.random() < 0.2:
        requests = {}
    container = Container(resources=ResourceRequirements(requests=requests))
    started = rng.choice([None, START, START + timedelta(seconds=number), START + timedelta(seconds=rng.randrange(5))])
    return Pod(
        metadata=ObjectMeta(name=f"p{number}", namespace="a", uid=f"u{number}", labels={"app": rng.choice("xy")}),
        spec=PodSpec(containers=(container,), priority=rng.randrange(top)),
        status=PodStatus(start_time=started),
    )


def test_priority_comes_before_start_and_a_pod_that_has_not_started_comes_last_of_its_equals() -> None:
    starts = [START, START + timedelta(seconds=1), datetime(2105, 12, 31, tzinfo=UTC), None]
    priorities = [2**31 - 1, 2_000_001_000, 1, 0, -1, -(2**31) + 1]
    numbers = [importance_of(priority, start) for priority in priorities for start in starts]
    assert numbers == sorted(numbers)
    assert len(set(numbers)) == len(numbers)
    assert [~(number >> 32) for number in numbers] == [each for each in priorities for _ in starts]
    assert all(-(2**63) <= number < 2**63 for number in numbers)


def budget(rng: random.Random, app: str) -> PodDisruptionBudget:
    return PodDisruptionBudget(
        metadata=ObjectMeta(name=app, namespace="a"),
        spec=PodDisruptionBudgetSpec(selector=LabelSelector(match_labels={"app": app})),
        status=PodDisruptionBudgetStatus(disruptions_allowed=rng.randrange(3)),
    )


def change_a_node(rng: random.Random, cache: ClusterCache, number: int) -> None:
    """A pod comes or goes, so that what was remembered of its node is out of date."""
    name = f"n{rng.randrange(6)}"
    info = cache.node_info(name)
    if info is not None and info.pods and rng.random() < 0.5:
        cache.forget(rng.choice(sorted(info.pods)))
    else:
        cache.assume(random_pod(rng, number + 2000, 5), name)


@pytest.mark.parametrize("seed", SEEDS)
def test_arithmetic_finds_the_victims_that_running_the_filters_finds(seed: int) -> None:
    rng = random.Random(seed)
    world = build_world((), {})
    framework = build_framework(resolve_profiles(None, world.gates)[0], world)
    cache, snapshot = ClusterCache(), Snapshot()
    for index in range(6):
        allocatable = {"cpu": rng.choice(["1", "2"]), "memory": "2Gi", "pods": rng.choice(["4", "10"])}
        if rng.random() < 0.7:
            allocatable["example.com/gpu"] = "4"
        cache.add_node(Node(metadata=ObjectMeta(name=f"n{index}"), status=NodeStatus(allocatable=allocatable)))
    for number in range(80):
        cache.assume(random_pod(rng, number, 5), f"n{rng.randrange(6)}")
    cache.update_snapshot(snapshot)
    compared = 0
    for number in range(100, 120):
        pod = random_pod(rng, number, 8)
        attempt = find_feasible(framework, snapshot, PodInfo(pod))
        if attempt.feasible:
            continue
        promised = {"n0": [PodInfo(random_pod(rng, number + 1000, 9))]} if rng.random() < 0.5 else {}
        budgets = rng.choice([[], [budget(rng, "x"), budget(rng, "y")]])
        search = Search(framework, snapshot.table, attempt.state, pod, budgets, promised)
        rows = potential_rows(search, diagnosis := diagnose(attempt))
        assert rows == [snapshot.table.rows[name] for name in diagnosis.nodes_with_code(Code.UNSCHEDULABLE, ())]
        offset, wanted = rng.randrange(max(len(rows), 1)), rng.choice([1, 2, 100])
        quick, plain = (find_candidates(search, rows, offset, wanted, quick=quick) for quick in (True, False))
        assert list(quick.victims.items()) == list(plain.victims.items())
        assert (quick.failures, quick.errors) == (plain.failures, plain.errors)
        assert best_nodes(quick.victims) == best_nodes(plain.victims)
        compared += len(rows)
        change_a_node(rng, cache, number)
        cache.update_snapshot(snapshot)
    assert compared
