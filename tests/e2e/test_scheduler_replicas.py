"""Two `skysail scheduler` processes over HTTP; the leader is killed in the middle of two thousand pods."""

import asyncio
import os
import random
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from skysail.api.coordination import LeaseSpec
from skysail.api.kinds import LEASES, NODES, PODS
from skysail.client.api_client import ApiClient
from skysail.client.http import HttpTransport
from skysail.client.kubeconfig import load
from skysail.simulator.clock import WallClock
from tests.e2e.running import SKYSAIL, start_apiserver, stop

PODS_WANTED = 2_000
CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaseDuration: 4s, renewDeadline: 3s, retryPeriod: 500ms}
"""
LEASE_SECONDS = 4


@contextmanager
def api_server(home: Path) -> Iterator[str]:
    """`skysail apiserver` in a process of its own; gives the kubeconfig."""
    command = [str(SKYSAIL), "apiserver", "--port", "0", "--insecure-http"]
    environment = {**os.environ, "HOME": str(home), "XDG_RUNTIME_DIR": str(home)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        kubeconfig = ""
        for line in process.stdout:
            found = re.search(r"KUBECONFIG=(\S+)", line)
            kubeconfig = found.group(1) if found else kubeconfig
            if line.startswith("ready"):
                break
        try:
            yield kubeconfig
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(timeout=20)


@contextmanager
def schedulers(home: Path, kubeconfig: str, count: int) -> Iterator[list["subprocess.Popen[bytes]"]]:
    """So many `skysail scheduler --leader-elect`."""
    config = home / "sky.yaml"
    config.write_text(CONFIG)
    command = [
        str(SKYSAIL), "scheduler", "--config", str(config), "--kubeconfig", kubeconfig, "--leader-elect",
        "--secure-port", "0",
    ]  # fmt: skip
    processes = [subprocess.Popen(command, stderr=subprocess.DEVNULL) for _ in range(count)]
    try:
        yield processes
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(timeout=20)


async def make_nodes(client: ApiClient) -> None:
    allocatable = {"cpu": "64", "memory": "256Gi", "pods": "500"}
    for number in range(10):
        name = f"n{number}"
        await client.create(
            NODES,
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {"allocatable": allocatable}},
        )
        await client.patch(NODES, name, "", {"spec": {"taints": None}})


async def make_pods(client: ApiClient, first: int, count: int) -> None:
    container = {"name": "c", "image": "registry.test/app:1", "resources": {"requests": {"cpu": "100m"}}}
    for number in range(first, first + count):
        pod = {"metadata": {"name": f"p{number}", "namespace": "default"}, "spec": {"containers": [container]}}
        await client.create(PODS, {"apiVersion": "v1", "kind": "Pod", **pod})


async def leader(client: ApiClient, other_than: int = 0) -> list[LeaseSpec]:
    """What the lease says once somebody else holds it, after everything it was seen to say before."""
    seen: list[LeaseSpec] = []
    while True:
        leases = await client.list(LEASES, "kube-system")
        found = [lease.spec for lease in leases.items if lease.metadata.name == "kube-scheduler"]
        if found and found[0].holder_identity:
            seen.append(found[0])
            if pid_of(found[0]) != other_than:
                return seen
        await asyncio.sleep(0.1)


def pid_of(lease: LeaseSpec) -> int:
    """The process that holds the lease; its id is in the identity."""
    return int((lease.holder_identity or "").rsplit("_", 2)[1])


def assert_taken_over_when_it_had_run_out(before: LeaseSpec, after: LeaseSpec) -> None:
    """By what both wrote: the dead one's last sign of life, and when the other took the lease."""
    assert before.lease_duration_seconds == LEASE_SECONDS
    last_sign, taken = datetime.fromisoformat(before.renew_time or ""), datetime.fromisoformat(after.acquire_time or "")
    assert taken - last_sign >= timedelta(seconds=LEASE_SECONDS)
    assert after.lease_transitions == (before.lease_transitions or 0) + 1


class Bindings:
    """Follows all pods and notes every node a pod was ever seen on."""

    def __init__(self) -> None:
        self.nodes: dict[str, set[str]] = {}
        self._changed = asyncio.Event()

    async def follow(self, client: ApiClient) -> None:
        async for event in client.watch(PODS, resource_version="0"):
            if event.type != "BOOKMARK" and event.object.spec.node_name:
                self.nodes.setdefault(event.object.uid, set()).add(event.object.spec.node_name)
                self._changed.set()

    async def wait_bound(self, count: int) -> None:
        async with asyncio.timeout(90):
            while len(self.nodes) < count:
                self._changed.clear()
                await self._changed.wait()


async def kill_the_leader_in_the_middle(kubeconfig: str) -> Bindings:
    clock = WallClock()
    transport = HttpTransport(load(kubeconfig), clock=clock)
    client = ApiClient(transport, user_agent="test", clock=clock, rng=random.Random(1))
    bindings = Bindings()
    await make_nodes(client)
    async with asyncio.TaskGroup() as group:
        following = group.create_task(bindings.follow(client))
        killed = pid_of((await leader(client))[-1])
        quarter = PODS_WANTED // 4
        makers = [group.create_task(make_pods(client, first * quarter, quarter)) for first in range(4)]
        await bindings.wait_bound(quarter)
        os.kill(killed, signal.SIGKILL)
        *_, last, taken = await leader(client, other_than=killed)
        assert_taken_over_when_it_had_run_out(last, taken)
        await asyncio.wait(makers)
        await bindings.wait_bound(PODS_WANTED)
        following.cancel()
    await transport.close()
    return bindings


POD = """\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {containers: [{name: c, image: "registry.test/app:1", resources: {requests: {cpu: 100m}}}]}
"""


async def make_nodes_through(kubeconfig: str) -> None:
    clock = WallClock()
    transport = HttpTransport(load(kubeconfig), clock=clock)
    await make_nodes(ApiClient(transport, user_agent="test", clock=clock, rng=random.Random(1)))
    await transport.close()


@pytest.mark.kubectl
def test_a_pod_that_kubectl_creates_is_bound_by_a_scheduler_that_knows_the_server_by_its_kubeconfig(tmp_path):
    running = start_apiserver(tmp_path)
    try:
        with schedulers(tmp_path, str(running.kubeconfig), 1):
            asyncio.run(make_nodes_through(str(running.kubeconfig)))
            running.kubectl("create", "-f", "-", stdin=POD)
            running.wait("--for=condition=PodScheduled", "pod/web")
            node = running.kubectl("get", "pod", "web", "-o", "jsonpath={.spec.nodeName}")
            assert node in {f"n{number}" for number in range(10)}
    finally:
        stop(running)


def test_when_the_leader_is_killed_every_pod_is_still_bound_exactly_once(tmp_path):
    with api_server(tmp_path) as kubeconfig, schedulers(tmp_path, kubeconfig, 2):
        bindings = asyncio.run(kill_the_leader_in_the_middle(kubeconfig))
    assert len(bindings.nodes) == PODS_WANTED
    assert all(len(nodes) == 1 for nodes in bindings.nodes.values())
