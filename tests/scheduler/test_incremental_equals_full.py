"""Property: over any history of pods and nodes coming and going, the incremental evaluation decides as the full one."""

import os
import random

import pytest

from skysail.api.affinity import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PodAffinityTerm,
    PodAntiAffinity,
    PreferredSchedulingTerm,
    TopologySpreadConstraint,
)
from skysail.api.core import Container, ContainerPort, Pod, PodSpec, ResourceRequirements, Toleration
from skysail.api.meta import LabelSelector, ObjectMeta
from skysail.api.node import ContainerImage, Node, NodeSpec, NodeStatus, Taint
from skysail.scheduler.algorithm import ScheduleResult, schedule_pod
from skysail.scheduler.cache.cluster_cache import ClusterCache
from skysail.scheduler.cache.node_info import NodeInfo
from skysail.scheduler.cache.pod_info import PodInfo
from skysail.scheduler.cache.snapshot import Snapshot
from skysail.scheduler.framework.codes import Reads
from skysail.scheduler.framework.cycle_state import CycleState
from skysail.scheduler.framework.runner import Framework
from skysail.scheduler.framework.status import SUCCESS, Status
from skysail.scheduler.scenario import build_framework, build_world, resolve_profiles

ZONES = ("a", "b", "c")
SEEDS = range(int(os.environ.get("SOAK_SEEDS", "10")))


class OddNodes:
    """A simple third-party plugin, cached because it says what it reads."""

    name = "OddNodes"
    reads = Reads.ROW

    def sign(self, pod: PodInfo) -> object:
        return pod.pod.metadata.labels.get("app", "")

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        crowded = len(node.pods) % 3 == 2 and pod.metadata.labels.get("app") == "web"
        return Status.unschedulable("crowded") if crowded else SUCCESS

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> tuple[int, Status]:
        return len(node.pods), SUCCESS

    def normalize(self, state: CycleState, raw: object, low: int, high: int) -> object:
        return raw * 100 // max(high, 1)  # type: ignore[operator]


class Anything:
    """A simple third-party plugin that says nothing: asked anew at every attempt."""

    name = "Anything"

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        return Status.unschedulable("too many") if len(node.pods) > 6 else SUCCESS

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> tuple[int, Status]:
        return min(100, 10 * len(node.pods)), SUCCESS


def make_node(rng: random.Random, name: str) -> Node:
    taints = []
    if rng.random() < 0.2:
        taints.append(Taint(key="dedicated", value="x", effect=rng.choice(["NoSchedule", "PreferNoSchedule"])))
    images = (ContainerImage(names=("web:1",), size_bytes=rng.randrange(10**8, 10**9)),) if rng.random() < 0.4 else ()
    allocatable = {"cpu": rng.choice(["2", "4", "0"]), "memory": "4Gi", "pods": rng.choice(["3", "10"])}
    if rng.random() < 0.3:
        allocatable["example.com/gpu"] = "2"
    return Node(
        metadata=ObjectMeta(name=name, labels={"zone": rng.choice(ZONES), "kubernetes.io/hostname": name}),
        spec=NodeSpec(taints=tuple(taints), unschedulable=rng.random() < 0.1),
        status=NodeStatus(allocatable=allocatable, images=images),
    )


def templates(rng: random.Random) -> list[PodSpec]:
    found = []
    for _ in range(6):
        requests = {"cpu": rng.choice(["100m", "1", "0"]), "memory": rng.choice(["64Mi", "1Gi"])}
        if rng.random() < 0.2:
            requests["example.com/gpu"] = "1"
        ports = (ContainerPort(host_port=80),) if rng.random() < 0.2 else ()
        container = Container(
            image=rng.choice(["web:1", "db"]), resources=ResourceRequirements(requests=requests), ports=ports
        )
        tolerations = (Toleration(key="dedicated", operator="Exists"),) if rng.random() < 0.3 else ()
        found.append(
            PodSpec(
                containers=(container,),
                tolerations=tolerations,
                node_selector={"zone": rng.choice(ZONES)} if rng.random() < 0.3 else {},
                affinity=away_from_peers()
                if rng.random() < 0.2
                else prefer_zone(rng.choice(ZONES))
                if rng.random() < 0.4
                else None,
                topology_spread_constraints=spread_over_zones(rng) if rng.random() < 0.3 else (),
            )
        )
    return found


def prefer_zone(zone: str) -> Affinity:
    in_zone = NodeSelectorRequirement(key="zone", operator="In", values=(zone,))
    term = NodeSelectorTerm(match_expressions=(in_zone,))
    elsewhere = NodeSelectorRequirement(key="zone", operator="NotIn", values=("nowhere",))
    return Affinity(
        node_affinity=NodeAffinity(
            required_during_scheduling_ignored_during_execution=NodeSelector(
                node_selector_terms=(NodeSelectorTerm(match_expressions=(elsewhere,)),)
            ),
            preferred_during_scheduling_ignored_during_execution=(PreferredSchedulingTerm(preference=term, weight=5),),
        )
    )


def away_from_peers() -> Affinity:
    term = PodAffinityTerm(
        label_selector=LabelSelector(match_labels={"app": "web"}), topology_key="kubernetes.io/hostname"
    )
    return Affinity(pod_anti_affinity=PodAntiAffinity(required_during_scheduling_ignored_during_execution=(term,)))


def spread_over_zones(rng: random.Random) -> tuple[TopologySpreadConstraint, ...]:
    return (
        TopologySpreadConstraint(
            max_skew=1,
            topology_key="zone",
            when_unsatisfiable=rng.choice(["DoNotSchedule", "ScheduleAnyway"]),
            label_selector=LabelSelector(match_labels={"app": "db"}),
        ),
    )


def frameworks() -> list[Framework]:
    world = build_world((), {})
    default = build_framework(resolve_profiles(None, world.gates)[0], world)
    odd, anything = OddNodes(), Anything()
    points = {point: list(plugins) for point, plugins in default.points.items()}
    points["filter"] = [odd, *points["filter"][:3], anything, *points["filter"][3:]]
    points["score"] = [*points["score"], odd, anything]
    return [default, Framework("extended", points, {"OddNodes": 2})]


def cards(result: ScheduleResult) -> list[tuple[object, ...]]:
    """What is on record about the chosen node and the runner-up; idle plugins are not asked, or give nothing."""
    found = result.scoring.cards() if result.scoring is not None else ()
    return [
        (card.node_name, card.total, {name: score for name, score in card.scores.items() if any(score)})
        for card in found
    ]


@pytest.mark.parametrize("seed", SEEDS)
def test_decisions_are_equal_over_random_histories(seed: int) -> None:
    rng = random.Random(seed)
    cache, snapshot = ClusterCache(), Snapshot()
    nodes = [f"n{index}" for index in range(rng.choice([3, 12, 70]))]
    specs, placed = templates(rng), []
    profiles = frameworks()
    for name in nodes:
        cache.add_node(make_node(rng, name))
    for step in range(150):
        dice = rng.random()
        if dice < 0.08:
            cache.add_node(make_node(rng, rng.choice(nodes)))
        elif dice < 0.12:
            name = rng.choice(nodes)
            info = cache.node_info(name)
            if info is not None and info.exists:
                cache.remove_node(name)
        elif dice < 0.3 and placed:
            cache.forget(placed.pop(rng.randrange(len(placed))))
        cache.update_snapshot(snapshot)
        pod = Pod(
            metadata=ObjectMeta(name=f"p{step}", uid=f"u{step}", labels={"app": rng.choice(["web", "db"])}),
            spec=rng.choice(specs),
        )
        framework = rng.choice(profiles)
        quick = schedule_pod(framework, snapshot, PodInfo(pod), random.Random(step))
        plain = schedule_pod(framework, snapshot, PodInfo(pod), random.Random(step), incremental=False)
        assert quick.status == plain.status
        assert (quick.node_name, quick.total, quick.ties, quick.feasible_nodes) == (
            plain.node_name, plain.total, plain.ties, plain.feasible_nodes,
        )  # fmt: skip
        assert cards(quick) == cards(plain)
        if plain.diagnosis is not None and quick.diagnosis is not None:
            assert dict(quick.diagnosis.node_statuses) == dict(plain.diagnosis.node_statuses)
        if quick.status.is_success:
            cache.assume(pod, quick.node_name)
            placed.append(pod.uid)
