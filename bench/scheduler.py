"""How fast decisions are: PreFilter to the pick, and assume, on one core. Prints one line for each case.

    python -m bench.scheduler [--nodes 5000] [--decisions 3000]

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
from skysail.scheduler.cache.cluster_cache import ClusterCache
from skysail.scheduler.cache.pod_info import PodInfo
from skysail.scheduler.cache.snapshot import Snapshot
from skysail.scheduler.scenario import build_framework, build_world, resolve_profiles

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
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
        self.cache, self.snapshot, self.rng = ClusterCache(), Snapshot(), random.Random(0)
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
    """Decisions a second."""
    for index in range(len(templates) + 10):
        cluster.decide(templates[index % len(templates)], incremental=incremental)
    start = time.process_time()
    for index in range(decisions):
        cluster.decide(templates[index % len(templates)], incremental=incremental)
    return decisions / (time.process_time() - start)


def carriers(nodes: int) -> Cluster:
    cluster = Cluster(nodes)
    cluster.fill(
        [(f"other-{index}", with_preference(make_template(index), f"other-{index}")) for index in range(50)], 10_000
    )
    return cluster


def report(case: str, value: float) -> None:
    print(f"scheduler {case}: {value:,.0f} decisions/s, {1e6 / value:.0f} us")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, nargs="*", default=[5000])
    parser.add_argument("--decisions", type=int, default=3000)
    arguments = parser.parse_args()
    for nodes in arguments.nodes:
        for count in (1, 50):
            for incremental in (True, False):
                form = "incremental" if incremental else "full"
                value = rate(Cluster(nodes), plain(count), arguments.decisions, incremental=incremental)
                report(f"nodes={nodes} templates={count} {form}", value)
        special: list[tuple[str, Callable[[int], Cluster], list[Template]]] = [
            ("hard zone spread", Cluster, spread(10)),
            ("required host anti-affinity", Cluster, apart(10)),
            ("10,000 pods with affinity terms there", carriers, plain(50)),
        ]
        for case, make, templates in special:
            value = rate(make(nodes), templates, arguments.decisions, incremental=True)
            report(f"nodes={nodes} {case}", value)


if __name__ == "__main__":
    main()
