"""The search for victims: the quick form equals the general one, and candidates are kept as upstream keeps them."""

import os
import random
import tracemalloc
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from skysail.api.core import Container, ContainerStatus, Pod, PodCondition, PodSpec, PodStatus, ResourceRequirements
from skysail.api.labels import Selector
from skysail.api.meta import LabelSelector, ObjectMeta
from skysail.api.node import Node, NodeSpec, NodeStatus, Taint
from skysail.api.policy import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from skysail.scheduler.algorithm import diagnose, find_feasible
from skysail.scheduler.cache.cluster_cache import ClusterCache
from skysail.scheduler.cache.pod_info import PodInfo
from skysail.scheduler.cache.snapshot import Snapshot
from skysail.scheduler.framework.diagnosis import Diagnosis
from skysail.scheduler.framework.runner import Framework
from skysail.scheduler.framework.status import Code, Status
from skysail.scheduler.preemption import budgets
from skysail.scheduler.preemption.budgets import Budgets
from skysail.scheduler.preemption.candidates import find_candidates, gather, potential_rows
from skysail.scheduler.preemption.picking import best_nodes
from skysail.scheduler.preemption.victims import Search
from skysail.scheduler.scenario import build_framework, build_world, resolve_profiles

SEEDS = range(int(os.environ.get("SOAK_SEEDS", "10")))
START = datetime(2026, 1, 1, tzinfo=UTC)
LEAST, MOST = -(2**31), 2**31 - 1
STARTS = (
    None,
    START,
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(1969, 12, 31, tzinfo=UTC),
    datetime.max.replace(tzinfo=UTC),
)
PRIORITIES: tuple[tuple[int | None, ...], ...] = (
    (0, 1, 2, 3, 4),
    (None, 0, 1),
    (0,),
    (LEAST, LEAST + 1),
    (LEAST, LEAST + 1, -1, None, 1, 1000, MOST - 1, MOST),
)
APPS = ({}, {"app": "x"}, {"app": "y"}, {"app": "x", "tier": "1"})
SELECTORS = (
    None,
    LabelSelector(),
    LabelSelector(match_labels={"app": "x"}),
    LabelSelector(match_labels={"app": "y"}),
    LabelSelector(match_labels={"tier": "1"}),
    LabelSelector(match_labels={"app": "no label value!"}),
)


def random_requests(rng: random.Random) -> dict[str, str]:
    offers = {
        "cpu": (0.8, ["0", "1m", "100m", "500m", "1", "1500m", "250u"]),
        "memory": (0.8, ["0", "1", "64Mi", "512Mi", "1e9", "100m"]),
        "ephemeral-storage": (0.1, ["0", "1Gi"]),
        "example.com/gpu": (0.2, ["0", "1", "2"]),
        "hugepages-2Mi": (0.1, ["2Mi"]),
        "unaccounted": (0.1, ["5"]),
    }
    return {name: rng.choice(amounts) for name, (share, amounts) in offers.items() if rng.random() < share}


def random_containers(rng: random.Random, prefix: str, numbers: Sequence[int]) -> tuple[Container, ...]:
    def requirements() -> ResourceRequirements | None:
        return ResourceRequirements(requests=random_requests(rng)) if rng.random() < 0.9 else None

    return tuple(
        Container(
            name=f"{prefix}{number}",
            resources=requirements(),
            restart_policy=rng.choice(["", "Always"]) if prefix == "init" else "",
        )
        for number in range(rng.choice(numbers))
    )


def random_pod(rng: random.Random, number: int, priorities: Sequence[int | None]) -> Pod:
    """With all that changes what a pod counts as: sidecars, overhead, requests of the whole pod, resizes under way."""
    containers = random_containers(rng, "main", (0, 1, 1, 1, 2, 3))
    spec = PodSpec(
        containers=containers,
        init_containers=random_containers(rng, "init", (0, 0, 0, 0, 1, 2)),
        priority=rng.choice(priorities),
        overhead={"cpu": "50m"} if rng.random() < 0.1 else {},
        resources=ResourceRequirements(requests={"cpu": rng.choice("12")}) if rng.random() < 0.1 else None,
    )
    resizes = containers if rng.random() < 0.1 else ()
    status = PodStatus(
        start_time=rng.choice((*STARTS, START + timedelta(seconds=rng.randrange(4)))),
        container_statuses=tuple(
            ContainerStatus(
                name=each.name,
                resources=ResourceRequirements(requests=random_requests(rng)),
                allocated_resources=random_requests(rng),
            )
            for each in resizes
        ),
        conditions=(PodCondition(type="PodResizePending", reason="Infeasible"),) if rng.random() < 0.05 else (),
    )
    metadata = ObjectMeta(
        name=f"p{number}",
        namespace=rng.choice("ab"),
        uid=f"u{number}",
        labels=rng.choice(APPS),
        deletion_timestamp=START if rng.random() < 0.1 else None,
    )
    return Pod(metadata=metadata, spec=spec, status=status)


def random_node(rng: random.Random, name: str) -> Node:
    """Also one that offers less than its pods ask for, none of something, no room for pods, or takes no pods."""
    allocatable = {
        "cpu": rng.choice(["0", "500m", "1", "2", "4"]),
        "memory": rng.choice(["0", "1", "2Gi", "3Gi"]),
        "pods": rng.choice(["0", "1", "4", "10", "30"]),
        "example.com/gpu": rng.choice(["0", "1", "4"]),
        "ephemeral-storage": "5Gi",
        "hugepages-2Mi": "8Mi",
    }
    for resource in list(allocatable)[3:]:
        if rng.random() < 0.4:
            del allocatable[resource]
    taints = (Taint(key="k", effect=rng.choice(["NoSchedule", "NoExecute"])),) if rng.random() < 0.15 else ()
    return Node(
        metadata=ObjectMeta(name=name),
        spec=NodeSpec(taints=taints, unschedulable=rng.random() < 0.1),
        status=NodeStatus(allocatable=allocatable if rng.random() < 0.95 else {}),
    )


def random_budget(rng: random.Random, number: int) -> PodDisruptionBudget:
    """Overlapping others, empty, broken, overdrawn, or already counting pods as disrupted."""
    disrupted = {f"p{rng.randrange(90)}": START for _ in range(rng.choice([0, 0, 10, 40]))}
    return PodDisruptionBudget(
        metadata=ObjectMeta(name=f"b{number}", namespace=rng.choice("ab")),
        spec=PodDisruptionBudgetSpec(selector=rng.choice(SELECTORS)),
        status=PodDisruptionBudgetStatus(disruptions_allowed=rng.choice([-1, 0, 0, 1, 2, 5]), disrupted_pods=disrupted),
    )


class Cluster:
    """Nodes `n0`, `n1`, ... with pods on them, and the default profile."""

    def __init__(self, nodes: Sequence[Node], pods: Mapping[str, Sequence[Pod]]) -> None:
        world = build_world((), {})
        self.framework: Framework = build_framework(resolve_profiles(None, world.gates)[0], world)
        self.cache, self.snapshot = ClusterCache(), Snapshot()
        for node in nodes:
            self.cache.add_node(node)
        for name, there in pods.items():
            for pod in there:
                self.cache.assume(pod, name)
        self.cache.update_snapshot(self.snapshot)

    def search(
        self, pod: Pod, limits: Sequence[PodDisruptionBudget] = (), promised: dict[str, list[PodInfo]] | None = None
    ) -> tuple[Search, list[int]]:
        """A search for this pod, and the rows where evicting may help."""
        attempt = find_feasible(self.framework, self.snapshot, PodInfo(pod))
        search = Search(self.framework, self.snapshot.table, attempt.state, pod, Budgets(limits), promised or {})
        rows = potential_rows(search, diagnosis := diagnose(attempt))
        assert rows == [self.snapshot.table.rows[name] for name in diagnosis.nodes_with_code(Code.UNSCHEDULABLE, ())]
        return search, rows


def change_something(rng: random.Random, cluster: Cluster, number: int, priorities: Sequence[int | None]) -> None:
    """A pod comes or goes or a node changes, so that what was remembered is out of date."""
    name = rng.choice([info.name for info in cluster.cache.node_infos()])
    info = cluster.cache.node_info(name)
    what = rng.random()
    if what < 0.3:
        cluster.cache.update_node(random_node(rng, name))
    elif what < 0.6 and info is not None and info.pods:
        cluster.cache.forget(rng.choice(sorted(info.pods)))
    else:
        cluster.cache.assume(random_pod(rng, number, priorities), name)
    cluster.cache.update_snapshot(cluster.snapshot)


@pytest.mark.parametrize("seed", SEEDS)
def test_arithmetic_finds_the_victims_that_running_the_filters_finds(seed: int) -> None:
    rng = random.Random(seed)
    names = [f"n{index}" for index in range(rng.choice([1, 2, 6, 12]))]
    priorities = PRIORITIES[seed % len(PRIORITIES)]
    there: dict[str, list[Pod]] = {name: [] for name in names}
    crowded = rng.choice([0.0, 0.0, 0.7])
    for number in range(rng.choice([30, 90, 200])):
        name = names[0] if rng.random() < crowded else rng.choice(names)
        there[name].append(random_pod(rng, number, priorities))
    cluster = Cluster([random_node(rng, name) for name in names], there)
    for number in range(1000, 1030):
        pod = random_pod(rng, number, rng.choice(PRIORITIES))
        promised = {
            name: [PodInfo(random_pod(rng, rng.randrange(2000, 9000), priorities)) for _ in range(rng.randrange(1, 4))]
            for name in (*names, "gone")
            if rng.random() < 0.3
        }
        limits = [random_budget(rng, each) for each in range(rng.choice([0, 0, 1, 3, 6]))]
        search, rows = cluster.search(pod, limits, rng.choice([{}, promised]))
        if rng.random() < 0.5:
            rows = sorted(cluster.snapshot.table.rows.values())  # also those that no eviction opens
        offset, wanted = rng.randrange(max(len(rows), 1)), rng.choice([0, 1, 2, 100])
        quick, plain = (find_candidates(search, rows, offset, wanted, quick=quick) for quick in (True, False))
        assert list(quick.victims.items()) == list(plain.victims.items())
        assert (list(quick.failures.items()), quick.errors) == (list(plain.failures.items()), plain.errors)
        assert best_nodes(quick.victims) == best_nodes(plain.victims)
        change_something(rng, cluster, number, priorities)


def plain_node(name: str) -> Node:
    return Node(metadata=ObjectMeta(name=name), status=NodeStatus(allocatable={"cpu": "2", "pods": "10"}))


def plain_pod(name: str, cpu: str, priority: int, labels: Mapping[str, str] | None = None) -> Pod:
    container = Container(resources=ResourceRequirements(requests={"cpu": cpu}))
    return Pod(
        metadata=ObjectMeta(name=name, namespace="a", uid=name, labels=labels or {}),
        spec=PodSpec(containers=(container,), priority=priority),
        status=PodStatus(start_time=START),
    )


NOBODY_GOES = PodDisruptionBudget(
    metadata=ObjectMeta(name="none", namespace="a"),
    spec=PodDisruptionBudgetSpec(selector=LabelSelector(match_labels={"app": "x"})),
)


@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize(
    ("wanted", "found"), [(0, []), (1, ["n4", "n0"]), (2, ["n4", "n0", "n1"]), (9, ["n4", "n0", "n1", "n2", "n3"])]
)
def test_of_candidates_that_break_a_budget_no_more_are_kept_than_are_wanted(
    quick: bool, wanted: int, found: list[str]
) -> None:
    """Upstream's list of them is as long as the number of candidates that are wanted."""
    names = [f"n{index}" for index in range(5)]
    there = {name: [plain_pod(f"on-{name}", "2", 0, {"app": "x" if name != "n4" else "y"})] for name in names}
    search, rows = Cluster(list(map(plain_node, names)), there).search(plain_pod("new", "1", 1), [NOBODY_GOES])
    assert list(find_candidates(search, rows, 0, wanted, quick=quick).victims) == found


@pytest.mark.parametrize("quick", [True, False])
def test_a_pod_of_the_least_priority_makes_room_for_the_next_higher_one(quick: bool) -> None:
    there = {"n0": [plain_pod("low", "2", LEAST)], "n1": [plain_pod("equal", "2", LEAST + 1)]}
    search, rows = Cluster([plain_node("n0"), plain_node("n1")], there).search(plain_pod("new", "1", LEAST + 1))
    found = find_candidates(search, rows, 0, 9, quick=quick)
    assert {name: [pod.name for pod in each.pods] for name, each in found.victims.items()} == {"n0": ["low"]}
    assert list(found.failures) == ["n1"]


@pytest.mark.parametrize("quick", [True, False])
def test_nodes_where_evicting_fails_alike_share_one_status(quick: bool) -> None:
    names = [f"n{index}" for index in range(20)]
    there = {name: [plain_pod(f"high-{name}", "1500m", 9), plain_pod(f"low-{name}", "100m", 0)] for name in names}
    search, rows = Cluster(list(map(plain_node, names)), there).search(plain_pod("new", "1", 1))
    failures = find_candidates(search, rows, 0, 9, quick=quick).failures
    assert sorted(failures) == sorted(names)
    assert [(status.reasons, count) for status, count in failures.counts()] == [(("Insufficient cpu",), 20)]
    assert len({id(status) for status in failures.values()}) == 1


def test_one_crowded_node_does_not_make_the_search_on_all_others_as_large() -> None:
    names = [f"n{index}" for index in range(300)]
    there = {name: [plain_pod(f"on-{name}", "2", 0)] for name in names}
    there["n7"] += [plain_pod(f"p{number}", "0", 0) for number in range(3000)]
    search, rows = Cluster(list(map(plain_node, names)), there).search(plain_pod("new", "1", 1))
    tracemalloc.start()
    found = find_candidates(search, rows, 0, len(rows))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert list(found.victims) == names
    assert [pod.name for pod in found.victims["n7"].pods] == ["on-n7", *(f"p{number}" for number in range(9, 3000))]
    assert peak < 300 * 3000 * 8, "not even one number for each node and each of the pods of the largest"


@pytest.mark.parametrize("quick", [True, False])
def test_budgets_are_read_once_in_a_search_and_only_where_pods_meet_them(
    quick: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many applications elsewhere have one, and however many nodes are looked at."""
    read = list[str]()
    plain_selector = budgets._selector

    def counted(budget: PodDisruptionBudget) -> Selector | None:
        read.append(budget.metadata.namespace)
        return plain_selector(budget)

    monkeypatch.setattr(budgets, "_selector", counted)
    names = [f"n{index}" for index in range(20)]
    there = {name: [plain_pod(f"on-{name}", "2", 0, {"app": "x"})] for name in names}
    elsewhere = [
        msgspec.structs.replace(NOBODY_GOES, metadata=ObjectMeta(name="none", namespace=f"b{number}"))
        for number in range(50)
    ]
    cluster = Cluster(list(map(plain_node, names)), there)
    search, rows = cluster.search(plain_pod("new", "1", 1), [*elsewhere, NOBODY_GOES])
    found = find_candidates(search, rows, 0, len(rows), quick=quick)
    assert {each.violations for each in found.victims.values()} == {1}
    assert read == ["a"]


def test_more_refusals_than_sixteen_bits_count_are_all_counted() -> None:
    number = (1 << 16) + 10
    statuses = [Status.unschedulable(f"reason {index}" if index < number - 5 else "last") for index in range(number)]
    failures = gather([f"n{index}" for index in range(number)], statuses)
    assert len(failures) == number
    assert failures[f"n{number - 1}"].message == "last"
    assert Diagnosis(number, failures).reasons()["last"] == 5
