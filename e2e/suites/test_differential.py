"""The real kube-scheduler and ours decide the same random pods alike.

`SEEDS` and `PODS` in the environment ask for more, `FIRST_SEED` for others; every seed is printed. What may differ is
in `e2e/harness/explained.txt`.
"""

import os
import random
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import yaml

from e2e.harness.control_plane import ControlPlane
from e2e.harness.differential import Differences, Differential
from e2e.harness.explained import unexplained
from e2e.harness.random_cluster import Made, random_cluster
from e2e.harness.random_config import random_config
from e2e.harness.random_devices import device_cluster
from e2e.harness.stream import device_stream, mixed_stream
from skysail.api import kinds
from skysail.api.raw import Raw
from skysail.client.api_client import ApiClient
from tests.conformance.conftest import connect

SEEDS = int(os.environ.get("SEEDS", "2"))
FIRST = int(os.environ.get("FIRST_SEED", "0"))
PODS = int(os.environ.get("PODS", "250"))
DEVICE_PODS = int(os.environ.get("DEVICE_PODS", str(max(1, min(PODS, 200) // 2))))
CONTROLLERS = (
    "persistentvolume-binder-controller,ephemeral-volume-controller,resourceclaim-controller,"
    "garbage-collector-controller"
)
DEFAULT: Raw = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
Stream = Callable[[Differential, random.Random, int], Awaitable[None]]


def scheduler_config(control_plane: ControlPlane, config: Raw | None) -> Path:
    path = control_plane.root / "scheduler.yaml"
    here = {
        "clientConnection": {"kubeconfig": str(control_plane.kubeconfig), "qps": 1000, "burst": 2000},
        "leaderElection": {"leaderElect": False},
        "percentageOfNodesToScore": 100,
    }
    path.write_text(yaml.safe_dump((config or DEFAULT) | here))
    return path


async def both_run(
    control_plane: ControlPlane, cluster: Made, stream: Stream, seed: int, pods: int, config: Raw | None = None
) -> None:
    result = Differences()
    async with connect(control_plane.kubeconfig) as client:
        both = Differential(client, result, config)
        await both.prepare(cluster)
        control_plane.start_controller_manager(CONTROLLERS)
        control_plane.start_scheduler(scheduler_config(control_plane, config), "--vmodule=schedule_one=10")
        async with both.following():
            await wait_scheduling(client, both)
            await stream(both, random.Random(seed), pods)
    control_plane.kill("kube-scheduler")
    both.compare_scores(control_plane.root / "kube-scheduler.log")
    told = ", ".join(f"{count} {what}" for what, count in sorted(result.seen.items()))
    found, explained = unexplained(result.found)
    print(f"seed {seed}: {told}; {len(found)} differences, {explained} explained")
    assert result.seen["decided"] > pods / 2
    assert found == [], "\n".join(found[:20])


async def wait_scheduling(client: ApiClient, both: Differential) -> None:
    """Until the real one has bound its first pod."""
    spec = {"containers": [{"name": "main", "image": "x"}], "tolerations": [{"operator": "Exists"}]}
    pod = await client.create(kinds.PODS, {"metadata": {"name": "first"}, "spec": spec}, "default")
    await both.mirror.wait(lambda: any(each.spec.node_name for each in both.mirror.all(kinds.PODS)), "a first binding")
    await both.remove(pod)
    await both.settle(0.5)


@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
async def test_both_decide_alike(control_plane: ControlPlane, seed: int) -> None:
    rng = random.Random(seed)
    await both_run(control_plane, random_cluster(rng, rng.choice((12, 25, 40))), mixed_stream, seed, PODS)


@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
async def test_both_decide_alike_about_devices(control_plane: ControlPlane, seed: int) -> None:
    rng = random.Random(1_000 + seed)
    cluster = random_cluster(rng, 12)
    nodes = [body["metadata"]["name"] for kind, _, body in cluster if kind is kinds.NODES]
    await both_run(control_plane, cluster + device_cluster(rng, nodes), device_stream, seed, DEVICE_PODS)


@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
async def test_both_decide_alike_with_other_settings(control_plane: ControlPlane, seed: int) -> None:
    rng = random.Random(2_000 + seed)
    cluster, config = random_cluster(rng, rng.choice((12, 25, 40))), random_config(rng)
    await both_run(control_plane, cluster, mixed_stream, 2_000 + seed, PODS, config)
