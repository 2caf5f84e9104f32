"""Processes that die at night, in the middle of 2,000 pods: every pod is bound once, whoever dies."""

import subprocess

from e2e.harness.control_plane import ControlPlane
from e2e.harness.disturbed import assert_all_are_bound_once, loaded, off_the_loop
from e2e.harness.processes import cpu_seconds_of, our_scheduler, scheduler_command
from skysail.api.kinds import NODES

NAME = "sky-chaos"


async def test_our_scheduler_dies_and_another_takes_over(control_plane: ControlPlane) -> None:
    async with loaded(control_plane, NAME) as client:
        replicas = start_two(scheduler_command(control_plane, NAME, elect=True))
        try:
            await assert_all_are_bound_once(client, off_the_loop(lambda: kill_leader(replicas)))
        finally:
            for replica in replicas:
                replica.kill()
                replica.wait()


def start_two(command: list[str]) -> list[subprocess.Popen[bytes]]:
    return [subprocess.Popen(command, stderr=subprocess.DEVNULL) for _ in range(2)]


def kill_leader(replicas: list[subprocess.Popen[bytes]]) -> None:
    """Kill the replica that has used most CPU: the one that schedules."""
    max(replicas, key=lambda replica: cpu_seconds_of(replica.pid)).kill()


async def test_kube_apiserver_dies_and_comes_back(control_plane: ControlPlane) -> None:
    def restart() -> None:
        control_plane.kill("kube-apiserver")
        control_plane.start_apiserver()

    async with loaded(control_plane, NAME) as client:
        with our_scheduler(control_plane, NAME):
            await assert_all_are_bound_once(client, off_the_loop(restart))


async def test_etcd_dies_and_comes_back(control_plane: ControlPlane) -> None:
    def restart() -> None:
        control_plane.kill("etcd")
        control_plane.start_etcd()

    async with loaded(control_plane, NAME) as client:
        with our_scheduler(control_plane, NAME):
            await assert_all_are_bound_once(client, off_the_loop(restart))


async def test_history_is_compacted_under_the_watches(control_plane: ControlPlane) -> None:
    def compact_and_restart() -> None:
        control_plane.compact()
        control_plane.kill("kube-apiserver")  # its watch cache would hide the compaction
        control_plane.start_apiserver()

    async with loaded(control_plane, NAME) as client:
        with our_scheduler(control_plane, NAME):
            await assert_all_are_bound_once(client, off_the_loop(compact_and_restart))


async def test_a_node_goes_while_pods_are_bound_to_it(control_plane: ControlPlane) -> None:
    async with loaded(control_plane, NAME, spare_nodes=1) as client:

        async def remove() -> None:
            await client.delete(NODES, "n0")

        with our_scheduler(control_plane, NAME):
            await assert_all_are_bound_once(client, remove)
