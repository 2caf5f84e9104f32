"""A watcher that does not read: the server gives it up, history goes on, and it catches up all the same."""

import asyncio
import re
import signal
from collections.abc import Iterator

from e2e.harness.control_plane import ControlPlane
from e2e.harness.disturbed import PODS_A_NODE, assert_all_come_to_be_bound, make_nodes
from e2e.harness.processes import our_scheduler
from e2e.harness.workload import create_all, plain_pod, wait_bound
from skysail.api.kinds import PODS
from skysail.api.raw import Raw
from skysail.client.api_client import ApiClient
from tests.conformance.conftest import connect

NAME = "sky-deaf"
COUNT = 1_000
HALF = COUNT // 2
LARGE = "x" * 60_000
"""Pods so large that what is not read soon fills every buffer on the way."""


def large_pods(numbers: range) -> Iterator[Raw]:
    for number in numbers:
        pod = plain_pod(f"p{number}", NAME)
        pod["metadata"]["annotations"] = {"ballast": LARGE}
        yield pod


async def watchers_given_up(client: ApiClient) -> float:
    metrics = (await client.read_path("/metrics")).decode()
    found = re.findall(r'^apiserver_terminated_watchers_total\{.*resource="pods".*\} (\S+)$', metrics, re.MULTILINE)
    return sum(map(float, found))


async def wait_given_up(client: ApiClient) -> None:
    """Wait until the server has given up a watcher of pods."""
    async with asyncio.timeout(30):
        while not await watchers_given_up(client):  # noqa: ASYNC110 - nothing else tells
            await asyncio.sleep(0.5)


async def test_a_watcher_that_does_not_read_is_given_up_and_catches_up(control_plane: ControlPlane) -> None:
    async with connect(control_plane.kubeconfig) as client:
        await make_nodes(client, COUNT // PODS_A_NODE)
        with our_scheduler(control_plane, NAME) as process:
            await create_all(client, PODS, large_pods(range(HALF)), "default")
            async with asyncio.timeout(60):
                await wait_bound(client, "default", HALF)
            process.send_signal(signal.SIGSTOP)
            try:
                await create_all(client, PODS, large_pods(range(HALF, COUNT)), "default")
                await wait_given_up(client)
                control_plane.compact()
            finally:
                process.send_signal(signal.SIGCONT)
            await assert_all_come_to_be_bound(client, COUNT)
