"""How fast the batch engine decides: gangs over many nodes, one large gang, and cycles in which little happens.

    python -m bench.batch [--nodes 5000] [--gangs 100] [--size 100]

CPU time of this process. A cycle is `Engine.steps`, all of them: snapshot, plugins, every action, outcomes; without the
API. The longest stretch is what the event loop waits for at most: the longest time between two pauses of a cycle.
"""

import argparse
import gc
import time
from collections.abc import Callable
from datetime import UTC, datetime

import msgspec

from skysail.api.core import Pod
from skysail.batch.config import default_configuration
from skysail.batch.effects import Effects
from skysail.batch.engine import Cycle, Engine
from skysail.batch.kinds.parts import SCHEDULER_NAME
from skysail.batch.membership import POD_GROUP, QUEUE
from skysail.batch.model.resources import ANY
from skysail.batch.model.specs import Figures, PodGroupSpec, QueueSpec
from skysail.batch.world import World
from skysail.testing.builders import make_node, make_pod

START = 1_800_000_000.0
CREATED = datetime.fromtimestamp(START, UTC)


class Cluster:
    """A world and its engine."""

    def __init__(self, nodes: int) -> None:
        self.world = World()
        self.world.now = self.now = START
        self.engine = Engine(self.world, default_configuration())
        self.longest, self.tried = 0.0, 0
        for number in range(nodes):
            self.world.set_node(make_node(f"node-{number:05}", zone=f"z{number % 3}", cpu="64", memory="256Gi"))

    def gang(self, name: str, size: int, cpu: str = "1", memory: str = "1Gi", queue: str = "") -> None:
        self.world.set_group(PodGroupSpec("default", name, uid=name, queue=queue, min_member=size, created=START))
        for number in range(size):
            self.world.set_pod(
                make_pod(
                    f"{name}-{number}", uid=f"{name}-{number}", labels={POD_GROUP: name}, cpu=cpu, memory=memory,
                    scheduler=SCHEDULER_NAME, created=CREATED,
                )
            )  # fmt: skip

    def cycle(self) -> Effects | None:
        self.now += 1.0
        steps, begun, self.longest, self.tried = self.engine.steps(self.now), time.process_time(), 0.0, 0
        while True:
            try:
                next(steps)
            except StopIteration as end:
                cycle: Cycle | None = end.value
                break
            now = time.process_time()
            begun, self.longest = now, max(self.longest, now - begun)
        self.longest = max(self.longest, time.process_time() - begun)
        if cycle is None:
            return None
        self.tried = cycle.tried
        return cycle.effects

    def confirm(self, effects: Effects | None) -> list[Pod]:
        """The watch shows what was bound."""
        pods = []
        for batch in effects.binds if effects is not None else ():
            for task in list(batch.tasks):
                pods.append(bound(task.pod, task.node))
                self.world.set_pod(pods[-1])
        return pods


def bound(pod: Pod, node: str) -> Pod:
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node))


def timed(what: str, action: Callable[[], object], repeat: int = 1) -> object:
    start = time.process_time()
    for _ in range(repeat):
        result = action()
    print(f"batch {what}: {1000 * (time.process_time() - start) / repeat:,.3f} ms", flush=True)
    return result


def timed_cycle(cluster: Cluster, what: str) -> Effects | None:
    """One cycle, with its longest stretch and how many jobs it tried."""
    effects = timed(what, cluster.cycle)
    print(f"batch   longest stretch {1000 * cluster.longest:,.3f} ms, {cluster.tried} jobs tried", flush=True)
    return effects  # type: ignore[return-value]


def first_cycle(nodes: int, gangs: int, size: int) -> Cluster:
    cluster = Cluster(nodes)
    for number in range(gangs):
        cluster.gang(f"gang-{number}", size)
    cluster.confirm(timed_cycle(cluster, f"nodes={nodes} gangs={gangs} x {size} first full cycle"))
    timed_cycle(cluster, f"nodes={nodes} cycle that confirms {gangs * size} bindings")
    return cluster


def held_back(cluster: Cluster, jobs: int, size: int) -> None:
    """Many jobs that wait: what one more job, or one node that helps nobody, then costs."""
    for number in range(jobs):
        cluster.gang(f"waiting-{number}", size, cpu="65")
    timed_cycle(cluster, f"first cycle with {jobs * size} pods in {jobs} jobs that do not fit")
    cluster.gang("one-more", 1)
    cluster.confirm(timed_cycle(cluster, "cycle for one more job while these wait"))
    timed_cycle(cluster, "cycle that confirms it")
    cluster.world.set_node(make_node("small", cpu="1"))
    timed_cycle(cluster, "cycle after a node came that helps nobody")
    timed("idle cycle while these wait", cluster.cycle, 1000)


def reclaiming(nodes: int) -> None:
    """A full cluster of borrowers' single pods, and a gang that takes back its share."""
    cluster = Cluster(nodes)
    for name, deserved in (("owner", 64_000 * nodes), ("borrower", 0)):
        cluster.world.set_queue(QueueSpec(name, figures={(ANY, "cpu"): Figures(deserved=deserved)}))
    for number in range(4 * nodes):
        pod = make_pod(
            f"low-{number}", uid=f"low-{number}", labels={QUEUE: "borrower"}, cpu="16", scheduler=SCHEDULER_NAME,
            created=CREATED,
        )  # fmt: skip
        cluster.world.set_pod(bound(pod, f"node-{number % nodes:05}"))
    cluster.cycle()
    cluster.gang("wide", 20, cpu="64", queue="owner")
    timed_cycle(cluster, f"nodes={nodes} a gang of 20 whole nodes takes them back from {4 * nodes} pods")


def starving(nodes: int, jobs: int) -> float:
    """A cluster full of two queues' pods, one of which borrows, and a line of jobs of different shapes; CPU seconds."""
    cluster = Cluster(nodes)
    for name, deserved in (("owner", 16_000 * nodes), ("borrower", 32_000 * nodes)):
        cluster.world.set_queue(QueueSpec(name, figures={(ANY, "cpu"): Figures(deserved=deserved)}))
    for number in range(4 * nodes):
        pod = make_pod(
            f"low-{number}", uid=f"low-{number}", labels={QUEUE: ("owner", "borrower")[number % 2]}, cpu="16",
            scheduler=SCHEDULER_NAME, created=CREATED,
        )  # fmt: skip
        cluster.world.set_pod(bound(pod, f"node-{number % nodes:05}"))
    cluster.cycle()
    for number in range(jobs):
        cluster.gang(f"wide-{number}", 2 + number, cpu="20", queue=("borrower", "owner")[number % 2])
    gc.collect()
    gc.freeze()  # as the process does once it is synced
    start = time.process_time()
    timed_cycle(cluster, f"nodes={nodes} {jobs} starving jobs of different shapes")
    first = time.process_time() - start
    cluster.world.remove_pod(f"low-{4 * nodes - 1}")
    start = time.process_time()
    timed_cycle(cluster, "cycle once a pod of nobody's ended")
    print(f"batch   {(time.process_time() - start) / first:.2f} of the first cycle", flush=True)
    return first


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--gangs", type=int, default=100)
    parser.add_argument("--size", type=int, default=100)
    parser.add_argument("--waiting", type=int, default=5000, help="jobs of ten pods that wait")
    arguments = parser.parse_args()
    cluster = first_cycle(arguments.nodes, arguments.gangs, arguments.size)
    cluster.gang("large", 1000)
    cluster.confirm(timed_cycle(cluster, "one gang of 1,000"))
    timed_cycle(cluster, "cycle that confirms it")
    timed("idle cycle", cluster.cycle, 1000)
    held_back(cluster, arguments.waiting, 10)
    reclaiming(arguments.nodes // 10)
    once, twice = (starving(arguments.nodes // 10, jobs) for jobs in (100, 200))
    print(f"batch twice as many starving jobs cost {twice / once:.2f} times as much", flush=True)


if __name__ == "__main__":
    main()
