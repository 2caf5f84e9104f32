"""How fast the batch engine decides: gangs over many nodes, one large gang, and cycles in which little happens.

    python -m bench.batch [--nodes 5000] [--gangs 100] [--size 100]

CPU time of this process. A cycle is `Engine.run_once`: snapshot, plugins, every action, outcomes; without the API.
"""

import argparse
import time
from collections.abc import Callable
from datetime import UTC, datetime

import msgspec

from skysail.api.core import Pod
from skysail.batch.config import default_configuration
from skysail.batch.effects import Effects
from skysail.batch.engine import Engine
from skysail.batch.membership import POD_GROUP
from skysail.batch.model.specs import PodGroupSpec
from skysail.batch.world import SCHEDULER_NAME, World
from skysail.testing.builders import make_node, make_pod

START = 1_800_000_000.0
CREATED = datetime.fromtimestamp(START, UTC)


class Cluster:
    """A world and its engine."""

    def __init__(self, nodes: int) -> None:
        self.world = World()
        self.world.now = self.now = START
        self.engine = Engine(self.world, default_configuration())
        for number in range(nodes):
            self.world.set_node(make_node(f"node-{number:05}", zone=f"z{number % 3}", cpu="64", memory="256Gi"))

    def gang(self, name: str, size: int, cpu: str = "1", memory: str = "1Gi") -> None:
        self.world.set_group(PodGroupSpec("default", name, uid=name, min_member=size, created=START))
        for number in range(size):
            self.world.set_pod(
                make_pod(
                    f"{name}-{number}", uid=f"{name}-{number}", labels={POD_GROUP: name}, cpu=cpu, memory=memory,
                    scheduler=SCHEDULER_NAME, created=CREATED,
                )
            )  # fmt: skip

    def cycle(self) -> Effects | None:
        self.now += 1.0
        cycle = self.engine.run_once(self.now)
        return cycle.effects if cycle is not None else None

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


def first_cycle(nodes: int, gangs: int, size: int) -> Cluster:
    cluster = Cluster(nodes)
    for number in range(gangs):
        cluster.gang(f"gang-{number}", size)
    what = f"nodes={nodes} gangs={gangs} x {size} first full cycle"
    cluster.confirm(timed(what, cluster.cycle))  # type: ignore[arg-type]
    timed(f"nodes={nodes} cycle that confirms {gangs * size} bindings", cluster.cycle)
    return cluster


def held_back(cluster: Cluster, jobs: int, size: int) -> None:
    """Many jobs that wait: what one more job, or one node that helps nobody, then costs."""
    for number in range(jobs):
        cluster.gang(f"waiting-{number}", size, cpu="65")
    timed(f"first cycle with {jobs * size} pods in {jobs} jobs that do not fit", cluster.cycle)
    cluster.gang("one-more", 1)
    cluster.confirm(timed("cycle for one more job while these wait", cluster.cycle))  # type: ignore[arg-type]
    timed("cycle that confirms it", cluster.cycle)
    cluster.world.set_node(make_node("small", cpu="1"))
    timed("cycle after a node came that helps nobody", cluster.cycle)
    timed("idle cycle while these wait", cluster.cycle, 1000)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--gangs", type=int, default=100)
    parser.add_argument("--size", type=int, default=100)
    parser.add_argument("--waiting", type=int, default=5000, help="jobs of ten pods that wait")
    arguments = parser.parse_args()
    cluster = first_cycle(arguments.nodes, arguments.gangs, arguments.size)
    cluster.gang("large", 1000)
    cluster.confirm(timed("one gang of 1,000", cluster.cycle))  # type: ignore[arg-type]
    timed("cycle that confirms it", cluster.cycle)
    timed("idle cycle", cluster.cycle, 1000)
    held_back(cluster, arguments.waiting, 10)


if __name__ == "__main__":
    main()
