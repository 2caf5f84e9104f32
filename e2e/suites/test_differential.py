"""The real kube-scheduler and ours decide the same random pods alike.

`SEEDS` and `PODS` in the environment ask for more; every seed is printed.
"""

import os
import random
from pathlib import Path

import pytest
import yaml

from e2e.harness.control_plane import ControlPlane
from e2e.harness.differential import Differences, Differential
from e2e.harness.random_cluster import random_nodes, random_pod, services
from tests.conformance.conftest import connect

SEEDS = int(os.environ.get("SEEDS", "2"))
PODS = int(os.environ.get("PODS", "300"))
NODES = 40


def scheduler_config(control_plane: ControlPlane) -> Path:
    path = control_plane.root / "scheduler.yaml"
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(control_plane.kubeconfig), "qps": 1000, "burst": 2000},
        "leaderElection": {"leaderElect": False},
        "percentageOfNodesToScore": 100,
    }
    path.write_text(yaml.safe_dump(config))
    return path


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_both_decide_alike(control_plane: ControlPlane, seed: int) -> None:
    rng = random.Random(seed)
    result = Differences()
    async with connect(control_plane.kubeconfig) as client:
        both = Differential(client, "default")
        await both.prepare(random_nodes(rng, NODES), services())
        control_plane.start_scheduler(scheduler_config(control_plane), "-v=10")
        for number in range(PODS):
            await both.decide(random_pod(rng, number), result)
    control_plane.kill("kube-scheduler")
    both.compare_totals(control_plane.root / "kube-scheduler.log", result)
    print(f"seed {seed}: {result.pods} pods, {result.bound} bound, {len(result.found)} differences")
    assert result.found == [], "\n".join(result.found[:20])
