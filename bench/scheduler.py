"""How fast decisions are: PreFilter to the pick, and assume, on one core. Prints one line for each case.

    python bench/scheduler.py [--nodes 5000] [--decisions 3000]

A decision is: a fresh pod object, its signature, the snapshot brought up to date, every node evaluated, the best one
picked, the pod assumed there. CPU time of this process, not wall time.
"""

import argparse
import random
import time
from collections.abc import Sequence

from skysail.api.core import Container, Pod, PodSpec, ResourceRequirements
from skysail.api.meta import ObjectMeta
from skysail.api.node import Node, NodeStatus
from skysail.scheduler.algorithm import schedule_pod
from skysail.scheduler.cache.cluster_cache import ClusterCache
from skysail.scheduler.cache.pod_info import PodInfo
from skysail.scheduler.cache.snapshot import Snapshot
from skysail.scheduler.scenario import build_framework, build_world, resolve_profiles


def make_node(index: int, zones: int = 3) -> Node:
    name = f"node-{index}"
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"zone-{index % zones}"}
    allocatable = {"cpu": "64", "memory": "256Gi", "pods": "110", "ephemeral-storage": "500Gi"}
    return Node(metadata=ObjectMeta(name=name, labels=labels), status=NodeStatus(allocatable=allocatable))


def make_template(index: int) -> PodSpec:
    requests = {"cpu": f"{100 + 10 * index}m", "memory": f"{128 + 16 * index}Mi"}
    container = Container(name="c", image=f"app-{index}:1", resources=ResourceRequirements(requests=requests))
    return PodSpec(containers=(container,))


def run(nodes: int, templates: Sequence[PodSpec], decisions: int, *, incremental: bool) -> float:
    """Decisions a second."""
    world = build_world((), {})
    framework = build_framework(resolve_profiles(None, world.gates)[0], world)
    cache, snapshot, rng = ClusterCache(), Snapshot(), random.Random(0)
    for index in range(nodes):
        cache.add_node(make_node(index))
    cache.update_snapshot(snapshot)
    warm_up = len(templates) + 10
    start = 0.0
    for number in range(decisions + warm_up):
        if number == warm_up:
            start = time.process_time()
        meta = ObjectMeta(name=f"p-{number}", namespace="default", uid=f"uid-{number}", labels={"app": "web"})
        pod = Pod(metadata=meta, spec=templates[number % len(templates)])
        cache.update_snapshot(snapshot)
        info = PodInfo(pod)
        result = schedule_pod(framework, snapshot, info, rng, incremental=incremental)
        cache.assume(info, result.node_name)
    return decisions / (time.process_time() - start)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, nargs="*", default=[5000])
    parser.add_argument("--decisions", type=int, default=3000)
    arguments = parser.parse_args()
    for nodes in arguments.nodes:
        for templates in (1, 50):
            specs = [make_template(index) for index in range(templates)]
            for incremental in (True, False):
                rate = run(nodes, specs, arguments.decisions, incremental=incremental)
                form = f"templates={templates} {'incremental' if incremental else 'full'}"
                print(f"scheduler nodes={nodes} {form}: {rate:,.0f} decisions/s, {1e6 / rate:.0f} us")


if __name__ == "__main__":
    main()
