"""A network that is cut between our scheduler and the real API server, in ways a process cannot tell apart.

A proxy of ours cuts it everywhere; a network namespace, where one can be made, also lets packets vanish.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from e2e.harness.control_plane import ControlPlane
from e2e.harness.disturbed import (
    COUNT,
    assert_all_are_bound_once,
    assert_all_come_to_be_bound,
    loaded,
    make_nodes,
    make_pods,
    off_the_loop,
    sockets_of,
)
from e2e.harness.namespaces import namespace, reason_against
from e2e.harness.processes import our_scheduler
from e2e.harness.proxy import TcpProxy, Wire
from e2e.harness.workload import wait_bound
from tests.conformance.conftest import connect

NAME = "sky-cut"
HALF = COUNT // 2


@asynccontextmanager
async def scheduler_behind(control_plane: ControlPlane) -> AsyncIterator[tuple[TcpProxy, int]]:
    """Our scheduler, which reaches the API server through a proxy only; the proxy and the scheduler's process id."""
    async with TcpProxy(control_plane.port).listening() as proxy:
        kubeconfig = control_plane.write_kubeconfig("cut", {"token": control_plane.token}, port=proxy.port)
        with our_scheduler(control_plane, NAME, "--kubeconfig", str(kubeconfig)) as process:
            yield proxy, process.pid


async def test_connections_are_reset_and_refused_for_a_while(control_plane: ControlPlane) -> None:
    async with loaded(control_plane, NAME) as client, scheduler_behind(control_plane) as (proxy, pid):

        async def cut() -> None:
            for _ in range(3):
                proxy.set(Wire.CUT)
                await asyncio.sleep(3)
                proxy.set(Wire.WHOLE)
                await asyncio.sleep(1)

        await assert_all_are_bound_once(client, cut)
        assert sockets_of(pid) < 120, "connections are not piled up"


async def test_everything_arrives_late(control_plane: ControlPlane) -> None:
    async with loaded(control_plane, NAME) as client, scheduler_behind(control_plane) as (proxy, _):

        async def hold_back() -> None:
            proxy.set(Wire.SILENT)
            await asyncio.sleep(10)
            proxy.set(Wire.WHOLE)

        await assert_all_are_bound_once(client, hold_back)


async def test_bindings_are_carried_out_and_their_answers_never_come(control_plane: ControlPlane) -> None:
    async with loaded(control_plane, NAME) as client, scheduler_behind(control_plane) as (proxy, _):

        async def lose_answers() -> None:
            proxy.set(Wire.ANSWERLESS)
            await asyncio.sleep(32)  # longer than requests wait
            proxy.reset()
            proxy.set(Wire.WHOLE)

        await assert_all_are_bound_once(client, lose_answers)


@pytest.mark.skipif(bool(reason_against()), reason=reason_against() or "network namespaces can be made")
async def test_packets_vanish_and_the_server_forgets_the_connections(tmp_path: Path) -> None:
    """The half-open case: the server was restarted meanwhile, its farewells were lost, and a watch says nothing."""
    with namespace() as there:
        control_plane = ControlPlane(tmp_path, addresses=(there.outside,))
        try:
            control_plane.start()
            await assert_bound_across_the_cut(control_plane, there.prefix, there.outside, there.pull, there.plug)
        finally:
            control_plane.stop()


async def assert_bound_across_the_cut(control_plane: ControlPlane, prefix: list[str], host: str, pull, plug) -> None:
    def restart_unseen() -> None:
        pull()
        control_plane.kill("kube-apiserver")
        control_plane.start_apiserver()
        plug()

    kubeconfig = control_plane.write_kubeconfig("cut", {"token": control_plane.token}, host=host)
    async with connect(control_plane.kubeconfig) as client:
        await make_nodes(client, COUNT // 40)
        with our_scheduler(control_plane, NAME, "--kubeconfig", str(kubeconfig), prefix=prefix):
            await make_pods(client, NAME, range(HALF))
            await wait_bound(client, "default", HALF)
            await off_the_loop(restart_unseen)()
            await make_pods(client, NAME, range(HALF, COUNT))
            await assert_all_come_to_be_bound(client, COUNT)
