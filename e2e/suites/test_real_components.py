"""The embedded server under the real kube-scheduler and kube-controller-manager: rollout, garbage, preemption."""

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.build import folder
from e2e.harness.workload import create_nodes, plain_node, plain_pod
from skysail.api.kinds import DEPLOYMENTS, PODS, PRIORITY_CLASSES, REPLICASETS
from tests.conformance.conftest import connect
from tests.conformance.objects import deployment
from tests.conformance.waiting import wait_until
from tests.e2e.running import start_apiserver, stop


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Path]:
    """`skysail apiserver` with the real components on it; its kubeconfig."""
    running = start_apiserver(tmp_path)
    processes = []
    for name in ("kube-scheduler", "kube-controller-manager"):
        with (tmp_path / f"{name}.log").open("wb") as log:
            command = [str(folder() / name), f"--kubeconfig={running.kubeconfig}", "--secure-port=0"]
            processes.append(subprocess.Popen([*command, "--leader-elect=false"], stdout=log, stderr=log))
    yield running.kubeconfig
    for process in processes:
        process.terminate()
    for process in processes:
        process.wait(30)
    stop(running)


async def test_a_rollout_and_its_garbage(served: Path) -> None:
    async with connect(served) as client:
        await create_nodes(client, [plain_node(f"n{number}") for number in range(3)])
        await client.create(DEPLOYMENTS, deployment("web", 4), "default")
        pods = await wait_until(
            client, PODS, "default", lambda pods: len(pods) == 4 and all(pod.spec.node_name for pod in pods), seconds=60
        )
        for pod in pods:
            ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
            await client.patch(PODS, pod.name, "default", {"status": ready}, subresource="status")
        await wait_until(
            client, DEPLOYMENTS, "default", lambda found: found[0].status.available_replicas == 4, seconds=60
        )
        await client.delete(DEPLOYMENTS, "web", "default", propagation="Background")
        await wait_until(client, REPLICASETS, "default", lambda found: not found, seconds=60)
        await wait_until(
            client, PODS, "default", lambda pods: all(pod.metadata.deletion_timestamp for pod in pods), seconds=60
        )


async def test_a_preemption(served: Path) -> None:
    async with connect(served) as client:
        await create_nodes(client, [plain_node("only", cpu="1")])
        await client.create(PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 1000})
        low = plain_pod("low", "default-scheduler")
        low["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "800m"
        await client.create(PODS, low, "default")
        await wait_until(client, PODS, "default", lambda pods: bool(pods and pods[0].spec.node_name), seconds=60)
        high = plain_pod("high", "default-scheduler", priorityClassName="high")
        high["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "800m"
        await client.create(PODS, high, "default")

        def victim_leaves(pods: list) -> bool:
            return any(pod.name == "low" and pod.metadata.deletion_timestamp for pod in pods)

        pods = await wait_until(client, PODS, "default", victim_leaves, seconds=60)
        victim = next(pod for pod in pods if pod.name == "low")
        assert "DisruptionTarget" in [condition.type for condition in victim.status.conditions]
        await client.delete(PODS, "low", "default", grace_period_seconds=0)
        async with asyncio.timeout(60):
            await wait_until(
                client, PODS, "default", lambda pods: [pod.spec.node_name for pod in pods] == ["only"], seconds=60
            )
