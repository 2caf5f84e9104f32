"""How fast decisions are: PreFilter to the pick, and assume, on one core. Prints one line for each case.

    python -m bench.scheduler [--nodes 5000] [--decisions 3000]      # 100 to 100,000 nodes by default

A decision is: a fresh pod object, its signature, the snapshot brought up to date, every node evaluated, the best one
picked, the pod assumed there. CPU time of this process, not wall time.
"""

import argparse
import random
import time
from collections.abc import Callable, Sequence

from skysail.api.affinity import (
    Affinity,
    PodAffinity,
    PodAffinityTerm,
    PodAntiAffinity,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from skysail.api.core import Container, Pod, PodSpec, ResourceRequirements
from skysail.api.meta import LabelSelector, ObjectMeta
from skysail.api.node import Node, NodeStatus
from skysail.scheduler.algorithm import schedule_pod
from skysail.scheduler.cache.pod_info import PodInfo
from skysail.scheduler.scenario import build_framework, build_world, resolve_profiles

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
PARTS = 5
SIZES = (100, 1_000, 5_000, 20_000, 100_000)
SPECIAL_SIZE = 5_000
Template = tuple[str, PodSpec]
"""The value of the label `app`, and the spec."""


def make_node(index: int, zones: int = 3) -> Node:
    name = f"node-{index}"
    labels = {HOST: name, ZONE: f"zone-{index % zones}"}
    allocatable = {"cpu": "64", "memory": "256Gi", "pods": "110", "ephemeral-storage": "500Gi"}
    return Node(metadata=ObjectMeta(name=name, labels=labels), status=NodeStatus(allocatable=allocatable))


def make_template(index: int) -> PodSpec:
    requests = {"cpu": f"{100 + 10 * index}m", "memory": f"{128 + 16 * index}Mi"}
    container = Container(name="c", image=f"app-{index}:1", resources=ResourceRequirements(requests=requests))
    return PodSpec(containers=(container,))


def plain(count: int) -> list[Template]:
    return [(f"app-{index}", make_template(index)) for index in range(count)]


def spread(count: int) -> list[Template]:
    return [(f"app-{index}", with_spread(make_template(index), f"app-{index}")) for index in range(count)]


def with_spread(spec: PodSpec, app: str) -> PodSpec:
    constraint = TopologySpreadConstraint(
        max_skew=1,
        topology_key=ZONE,
        when_unsatisfiable="DoNotSchedule",
        label_selector=LabelSelector(match_labels={"app": app}),
    )
    return PodSpec(containers=spec.containers, topology_spread_constraints=(constraint,))


def apart(count: int) -> list[Template]:
    return [(f"app-{index}", with_anti_affinity(make_template(index), f"app-{index}")) for index in range(count)]


def with_anti_affinity(spec: PodSpec, app: str) -> PodSpec:
    term = PodAffinityTerm(label_selector=LabelSelector(match_labels={"app": app}), topology_key=HOST)
    away = PodAntiAffinity(required_during_scheduling_ignored_during_execution=(term,))
    return PodSpec(containers=spec.containers, affinity=Affinity(pod_anti_affinity=away))


def with_preference(spec: PodSpec, app: str) -> PodSpec:
    term = PodAffinityTerm(label_selector=LabelSelector(match_labels={"app": app}), topology_key=ZONE)
    near = WeightedPodAffinityTerm(weight=10, pod_affinity_term=term)
    affinity = PodAffinity(preferred_during_scheduling_ignored_during_execution=(near,))
    return PodSpec(containers=spec.containers, affinity=Affinity(pod_affinity=affinity))


class Cluster:
    """A cache, a snapshot and the default profile."""

    def __init__(self, nodes: int) -> None:
        world = build_world((), {})
        self.framework = build_framework(resolve_profiles(None, world.gates)[0], world)
        self.cache, self.snapshot, self.rng = world.cache, world.current, random.Random(0)
        self.number = 0
        for index in range(nodes):
            self.cache.add_node(make_node(index))
        self.cache.update_snapshot(self.snapshot)

    def pod(self, template: Template) -> Pod:
        self.number += 1
        app, spec = template
        name = f"p-{self.number}"
        meta = ObjectMeta(name=name, namespace="default", uid=f"uid-{name}", labels={"app": app})
        return Pod(metadata=meta, spec=spec)

    def decide(self, template: Template, *, incremental: bool) -> None:
        info = PodInfo(self.pod(template))
        self.cache.update_snapshot(self.snapshot)
        result = schedule_pod(self.framework, self.snapshot, info, self.rng, incremental=incremental)
        self.cache.assume(info, result.node_name)

    def fill(self, templates: Sequence[Template], pods: int) -> None:
        nodes = list(self.snapshot.node_names)
        for index in range(pods):
            self.cache.assume(self.pod(templates[index % len(templates)]), nodes[index % len(nodes)])


def rate(cluster: Cluster, templates: Sequence[Template], decisions: int, *, incremental: bool) -> float:
    """Decisions a second: the best of five parts, as the machine may be busy with other things."""
    for index in range(len(templates) + 10):
        cluster.decide(templates[index % len(templates)], incremental=incremental)
    part, best = decisions // PARTS, 0.0
    for _ in range(PARTS):
        start = time.process_time()
        for index in range(part):
            cluster.decide(templates[index % len(templates)], incremental=incremental)
        best = max(best, part / (time.process_time() - start))
    return best


def carriers(nodes: int) -> Cluster:
    cluster = Cluster(nodes)
    cluster.fill(
        [(f"other-{index}", with_preference(make_template(index), f"other-{index}")) for index in range(50)], 10_000
    )
    return cluster


def preemption(nodes: int, pods_per_node: int = 30) -> tuple[float, float]:
    """Seconds of CPU for the first preemption on a full cluster, and for the next ones."""
    cluster = Cluster(nodes)
    low = PodSpec(containers=make_template(0).containers, priority=0)
    rows = list(cluster.snapshot.node_names)
    big = ResourceRequirements(requests={"cpu": "2130m", "memory": "8Gi"})
    spec = PodSpec(containers=(Container(name="c", image="x", resources=big),), priority=0)
    for index in range(nodes * pods_per_node):
        cluster.cache.assume(cluster.pod(("low", spec if index % 2 else low)), rows[index % nodes])
    for name in rows:
        cluster.cache.assume(cluster.pod(("filler", filler(cluster, name))), name)
    cluster.cache.update_snapshot(cluster.snapshot)
    wanted = PodSpec(containers=spec.containers, priority=100)
    durations = []
    for _ in range(10):
        info = PodInfo(cluster.pod(("high", wanted)))
        result = schedule_pod(cluster.framework, cluster.snapshot, info, cluster.rng)
        assert result.diagnosis is not None
        assert result.state is not None
        start = time.process_time()
        status, _ = cluster.framework.run_post_filter(result.state, info.pod, result.diagnosis)
        durations.append(time.process_time() - start)
        assert status.is_success, status
    return durations[0], sum(durations[1:]) / (len(durations) - 1)


def filler(cluster: Cluster, name: str) -> PodSpec:
    """A pod that takes nearly all CPU that is left on a node."""
    info = cluster.cache.node_info(name)
    assert info is not None
    left = info.allocatable["cpu"] - info.requested.get("cpu", 0) - 50
    container = Container(name="c", image="x", resources=ResourceRequirements(requests={"cpu": f"{left}m"}))
    return PodSpec(containers=(container,), priority=1000)


def report(case: str, value: float) -> None:
    print(f"scheduler {case}: {value:,.0f} decisions/s, {1e6 / value:.0f} us", flush=True)


def plain_cases(nodes: int, decisions: int) -> None:
    """One template and fifty; the full evaluation, which grows with the nodes, with fewer decisions."""
    for count in (1, 50):
        value = rate(Cluster(nodes), plain(count), decisions, incremental=True)
        report(f"nodes={nodes} templates={count} incremental", value)
        few = min(decisions, PARTS * max(2, 200_000 // nodes))
        report(f"nodes={nodes} templates={count} full", rate(Cluster(nodes), plain(count), few, incremental=False))


def special_cases(nodes: int, decisions: int) -> None:
    """Pods that look at other pods, and preemption."""
    special: list[tuple[str, Callable[[int], Cluster], list[Template]]] = [
        ("hard zone spread", Cluster, spread(10)),
        ("required host anti-affinity", Cluster, apart(10)),
        ("10,000 pods with affinity terms there", carriers, plain(50)),
    ]
    for case, make, templates in special:
        report(f"nodes={nodes} {case}", rate(make(nodes), templates, decisions, incremental=True))
    first, following = preemption(nodes)
    times = f"first {first * 1e3:.1f} ms, then {following * 1e3:.1f} ms"
    print(f"scheduler nodes={nodes} pods={nodes * 30} preemption: {times}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, nargs="*", default=[])
    parser.add_argument("--decisions", type=int, default=3000)
    arguments = parser.parse_args()
    for nodes in arguments.nodes or SIZES:
        plain_cases(nodes, arguments.decisions)
        if arguments.nodes or nodes == SPECIAL_SIZE:
            special_cases(nodes, arguments.decisions)


if __name__ == "__main__":
    main()
