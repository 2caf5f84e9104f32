"""The real kube-scheduler and `skysail scheduler` in turn, on one real API server, with the same nodes and pods.

    python -m e2e.bench [--nodes 100 1000] [--pods 1000] [--loads basic spread anti-affinity preemption] [--rounds 3]

Prints pods/s, the scheduler's CPU seconds for 1,000 pods and its peak memory, the ratios, and beside them how many
pods/s the API server can bind when nobody decides. CPU is counted until the scheduler has nothing left to write. With
more rounds the two take turns, and the medians count.
"""

import argparse
import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import yaml

from e2e.build import missing
from e2e.harness.control_plane import ControlPlane
from e2e.harness.processes import cpu_seconds_of, end, peak_mebibytes_of, scheduler_command
from e2e.harness.workload import LANES, create_all, create_nodes, plain_node, plain_pod, wait_bound
from skysail.api.errors import Unreachable
from skysail.api.kinds import NAMESPACES, PODS, PRIORITY_CLASSES
from skysail.api.raw import Raw
from skysail.client.api_client import ApiClient
from tests.conformance.conftest import connect


def large_container() -> Raw:
    """Most of a node."""
    resources = {"requests": {"cpu": "30", "memory": "1Gi"}}
    return {"name": "main", "image": "nginx", "resources": resources}


_APP = {"matchLabels": {"app": "load"}}
LOADS: dict[str, Raw] = {
    "basic": {},
    "spread": {
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": _APP,
            }
        ]
    },
    "anti-affinity": {
        "affinity": {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": "kubernetes.io/hostname", "labelSelector": _APP}
                ]
            }
        }
    },
    "preemption": {"priorityClassName": "bench-high", "containers": [large_container()]},
}
_FEWER = {"anti-affinity": 1.0, "preemption": 0.5}
"""Loads of which a node takes one pod only: so many pods a node at most."""
_IDLE_SECONDS = 0.5
_FILLED = "filled"
_PATIENCE = 20
"""How often the server is asked to delete all pods before it is given up."""


Starter = Callable[[ControlPlane], subprocess.Popen]


@dataclass(frozen=True)
class Figures:
    """What one run came to."""

    pods_per_second: float
    cpu_seconds: float
    mebibytes: float


def main() -> None:
    """Run what was asked for and print a line a run."""
    parser = argparse.ArgumentParser(prog="python -m e2e.bench", description=__doc__)
    parser.add_argument("--nodes", type=int, nargs="*", default=[100, 1_000, 5_000])
    parser.add_argument("--pods", type=int, default=1_000)
    parser.add_argument("--loads", nargs="*", choices=LOADS, default=list(LOADS))
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    if lacking := missing():
        raise SystemExit(f"not built: {', '.join(lacking)}; run `python e2e/build.py`")
    for nodes in options.nodes:
        with tempfile.TemporaryDirectory() as folder:
            control_plane = ControlPlane(Path(folder))
            control_plane.start()
            try:
                asyncio.run(_at(control_plane, nodes, options.pods, options.loads, options.rounds))
            finally:
                control_plane.stop()


async def _at(control_plane: ControlPlane, nodes: int, pods: int, loads: list[str], rounds: int) -> None:
    async with connect(control_plane.kubeconfig) as client:
        await _prepare(client, nodes)
        _say(f"{nodes} nodes, bind only: {await _bind_only(client, pods):,.0f} pods/s")
        for load in loads:
            count = min(pods, int(nodes * _FEWER[load])) if load in _FEWER else pods
            runs: dict[Starter, list[Figures]] = {_start_real: [], _start_ours: []}
            for _ in range(rounds):
                for start, figures in runs.items():
                    if load == "preemption":
                        await _fill(client, nodes)
                    figures.append(await _run(control_plane, client, load, count, start))
            real, ours = _median(runs[_start_real]), _median(runs[_start_ours])
            _say(
                f"{nodes} nodes, {load}, {count} pods:"
                f" real {real.pods_per_second:,.0f} pods/s {real.cpu_seconds:.2f} CPU s/1,000 {real.mebibytes:.0f} MiB;"
                f" ours {ours.pods_per_second:,.0f} pods/s {ours.cpu_seconds:.2f} CPU s/1,000 {ours.mebibytes:.0f} MiB;"
                f" ratio {ours.pods_per_second / real.pods_per_second:.2f} x pods/s,"
                f" 1/{real.cpu_seconds / ours.cpu_seconds:.1f} of the CPU"
            )


def _median(runs: list[Figures]) -> Figures:
    return Figures(
        statistics.median(each.pods_per_second for each in runs),
        statistics.median(each.cpu_seconds for each in runs),
        max(each.mebibytes for each in runs),
    )


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


async def _prepare(client: ApiClient, nodes: int) -> None:
    zones = ("a", "b", "c")
    await create_nodes(client, [plain_node(f"n{number}", zone=zones[number % 3]) for number in range(nodes)])
    for name, value in (("bench-low", 1), ("bench-high", 1_000)):
        await client.create(PRIORITY_CLASSES, {"metadata": {"name": name}, "value": value})
    await client.create(NAMESPACES, {"metadata": {"name": _FILLED}})


async def _fill(client: ApiClient, nodes: int) -> None:
    """A pod of low priority on each node, most of whose room it takes."""
    spec = {"priorityClassName": "bench-low", "containers": [large_container()], "terminationGracePeriodSeconds": 0}
    await _remove_all(client, _FILLED)
    bodies = [plain_pod(f"low{number}", "nobody", nodeName=f"n{number}", **spec) for number in range(nodes)]
    await create_all(client, PODS, bodies, _FILLED)


async def _bind_only(client: ApiClient, count: int) -> float:
    names = [f"bind-{number}" for number in range(count)]
    await create_all(client, PODS, [plain_pod(name, "nobody") for name in names], "default")
    made = {pod.name: pod for pod in (await client.list_all(PODS, "default")).items}
    rest = iter(names)

    async def lane() -> None:
        for name in rest:
            await client.bind("default", name, made[name].uid, "n0")

    started = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(LANES):
            group.create_task(lane())
    seconds = time.perf_counter() - started
    await _remove_all(client)
    return count / seconds


async def _run(
    control_plane: ControlPlane,
    client: ApiClient,
    load: str,
    count: int,
    start: Callable[[ControlPlane], subprocess.Popen],
) -> Figures:
    """The scheduler starts, syncs and binds one pod; then the load comes."""
    process = start(control_plane)
    try:
        first = plain_pod("first", "bench")
        first["spec"]["containers"][0]["resources"] = {}
        await create_all(client, PODS, [first], "default")
        await wait_bound(client, "default", 1)
        await _remove_all(client)
        before = cpu_seconds_of(process.pid)
        started = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            bodies = [plain_pod(f"p{number}", "bench", **LOADS[load]) for number in range(count)]
            group.create_task(create_all(client, PODS, bodies, "default"))
            group.create_task(wait_bound(client, "default", count))
        seconds = time.perf_counter() - started
        cpu = await _cpu_when_idle(process.pid) - before
        figures = Figures(count / seconds, cpu / count * 1_000, peak_mebibytes_of(process.pid))
    finally:
        end(process)
    await _remove_all(client)  # not when interrupted: it would wait for a server that has gone, too
    return figures


async def _cpu_when_idle(pid: int) -> float:
    """Its CPU time once it has written everything."""
    used, before = cpu_seconds_of(pid), -1.0
    while used - before > 0.02:
        await asyncio.sleep(_IDLE_SECONDS)
        used, before = cpu_seconds_of(pid), used
    return used


async def _remove_all(client: ApiClient, namespace: str = "default") -> None:
    """Delete all pods; a large collection may take the server longer than a client waits."""
    for _ in range(_PATIENCE):
        try:
            if not (await client.list(PODS, namespace, limit=1)).items:
                return
            await client.delete_collection(PODS, namespace, grace_period_seconds=0)
        except Unreachable:
            await asyncio.sleep(1.0)
    raise TimeoutError(f"pods of {namespace} are still there")


def _start_ours(control_plane: ControlPlane) -> subprocess.Popen[bytes]:
    return subprocess.Popen(scheduler_command(control_plane, "bench"), stderr=subprocess.DEVNULL)


def _start_real(control_plane: ControlPlane) -> subprocess.Popen[bytes]:
    path = control_plane.root / "real.yaml"
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(control_plane.kubeconfig), "qps": 5000, "burst": 10000},
        "leaderElection": {"leaderElect": False},
        "profiles": [{"schedulerName": "bench"}],
    }
    path.write_text(yaml.safe_dump(config))
    control_plane.start_scheduler(path)
    return control_plane.processes.pop("kube-scheduler")


if __name__ == "__main__":
    main()
