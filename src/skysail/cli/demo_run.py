"""Running the demo: the cluster, the manifests, and waiting until nothing is left to do."""

import asyncio
import sys
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from random import Random

from skysail.api.apps import Deployment
from skysail.api.core import Pod
from skysail.api.errors import ConfigError, SkysailError
from skysail.api.kinds import DEPLOYMENTS
from skysail.api.node import Node
from skysail.cli.manifests import create_all, read_manifests
from skysail.cli.serving import Serving, serving_api
from skysail.informer.handlers import Handlers
from skysail.simulator.clock import WallClock
from skysail.simulator.cluster import LocalCluster
from skysail.simulator.hollow import HollowNode, numbered_nodes
from skysail.simulator.settling import pending_reason

POOL = "skysail.io/pool"
_CAPACITY = {"cpu": "8", "memory": "32Gi", "pods": "110"}
_LIMIT_SECONDS = 120.0
_BATCH_EVERY = 10


class DemoFailed(SkysailError):
    """The demo did not settle in time."""


@dataclass(frozen=True, slots=True)
class DemoResult:
    """What the demo came to.

    Attributes:
        nodes: As cached at the end.
        pods: As cached at the end.
        seconds: From the first manifest sent to the last pod settled.
    """

    nodes: tuple[Node, ...]
    pods: tuple[Pod, ...]
    seconds: float

    @property
    def explained(self) -> bool:
        """Whether every pod runs or has a reason why not."""
        return all(is_running(pod) or pending_reason(pod) for pod in self.pods)


def is_running(pod: Pod) -> bool:
    """Whether a pod runs, or has run to its end."""
    return pod.status.phase in ("Running", "Succeeded")


def demo_nodes(count: int) -> list[HollowNode]:
    """Nodes of two pools: every tenth (at least one, if there are two) is a tainted batch node."""
    taint = {"key": "skysail.io/batch", "effect": "NoSchedule"}
    made = []
    for number, node in enumerate(numbered_nodes(count)):
        batch = count > 1 and number % _BATCH_EVERY == min(count, _BATCH_EVERY) - 1
        labels = {POOL: "batch" if batch else "general"}
        made.append(HollowNode(node.name, node.zone, _CAPACITY, labels, [taint] if batch else []))
    return made


def manifest_files() -> list[Path]:
    """The demo's manifests: inside an installed package, or beside the sources.

    Raises:
        ConfigError: They are in neither place.
    """
    package = Path(str(files("skysail")))
    for folder in (package / "examples" / "demo", package.parents[1] / "examples" / "demo"):
        if found := sorted(folder.glob("*.yaml")):
            return found
    raise ConfigError("the demo's manifests are missing from this installation", file="examples/demo")


async def run_demo(nodes: int, rng: Random, *, quiet: bool) -> DemoResult:
    """Run the demo to its end on a server of its own.

    Args:
        nodes: How many hollow nodes.
        rng: Names, ties, time-outs.
        quiet: Say nothing while it runs.

    Raises:
        DemoFailed: Something neither runs nor is explained after two minutes.
    """
    clock = WallClock()
    say = _silent if quiet else _say
    async with serving_api(Serving(port=0)) as served:
        say(f"control plane on {served.address.url}")
        cluster = LocalCluster(served.server, demo_nodes(nodes), clock=clock, rng=rng)
        watch = _Settling(cluster)
        async with cluster.running():
            await cluster.wait_nodes_ready()
            say(f"{nodes} hollow nodes are Ready")
            started = clock.monotonic()
            for file in manifest_files():
                count = await create_all(cluster.client, read_manifests(file), file)
                say(f"applied {file.name}: {count} objects")
            await watch.wait(quiet=quiet)
            seconds = clock.monotonic() - started
            return DemoResult(cluster.nodes, cluster.pods, seconds)


class _Settling:
    """Waits until every Deployment has its pods and every pod runs or is explained."""

    def __init__(self, cluster: LocalCluster) -> None:
        self._cluster = cluster
        self._changed = asyncio.Event()
        self._deployments = cluster.informers.informer(DEPLOYMENTS)
        handlers: Handlers[Pod] = Handlers(add=self._note, update=self._note_update, delete=self._note)
        cluster.informers.pods().add_handler(handlers, name="demo")
        watching: Handlers[Deployment] = Handlers(add=self._note, update=self._note_update, delete=self._note)
        self._deployments.add_handler(watching, name="demo")

    def _note(self, _obj: object, *_more: object) -> None:
        self._changed.set()

    def _note_update(self, _old: object, _new: object, *_more: object) -> None:
        self._changed.set()

    def _is_settled(self) -> bool:
        deployments = list(self._deployments.lister.list())
        pods = self._cluster.pods
        return (
            bool(deployments)
            and all(_has_its_pods(deployment) for deployment in deployments)
            and all(is_running(pod) or pending_reason(pod) for pod in pods)
        )

    async def wait(self, *, quiet: bool) -> None:
        try:
            async with asyncio.timeout(_LIMIT_SECONDS):
                with _Progress(quiet) as progress:
                    while not self._is_settled():
                        await self._changed.wait()
                        self._changed.clear()
                        progress.show(self._cluster.pods)
                        await asyncio.sleep(0.02)  # let a burst of changes arrive before looking again
        except TimeoutError as error:
            raise DemoFailed(f"not settled after {_LIMIT_SECONDS:.0f} s") from error


def _has_its_pods(deployment: Deployment) -> bool:
    status, wanted = deployment.status, deployment.spec.replicas
    return status.observed_generation >= deployment.metadata.generation and status.replicas == wanted


class _Progress:
    """A live bar on a terminal; nothing elsewhere."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet or not sys.stderr.isatty()

    def __enter__(self) -> "_Progress":
        if not self._quiet:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._bar.start()
            self._task = self._bar.add_task("pods running", total=None)
        return self

    def show(self, pods: tuple[Pod, ...]) -> None:
        if not self._quiet:
            self._bar.update(self._task, completed=sum(1 for pod in pods if is_running(pod)), total=len(pods))

    def __exit__(self, *_exception: object) -> None:
        if not self._quiet:
            self._bar.stop()


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")


def _silent(_line: str) -> None:
    return
