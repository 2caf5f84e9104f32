"""The same tests on any server: embedded by default, the real control plane with `SKYSAIL_SERVER=real`.

`SKYSAIL_SERVER=v1.34.4` takes the real API server of that version, if it was built (`e2e/build.py`).
Each test gets a namespace of its own and talks through a kubeconfig over HTTPS, as in a real cluster.
"""

import os
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio

from skysail.api.kinds import NAMESPACES, NODES
from skysail.client import kubeconfig
from skysail.client.api_client import ApiClient
from skysail.client.http import HttpTransport
from skysail.controllers.registry import all_controllers
from skysail.simulator.clock import WallClock
from skysail.simulator.hollow import HollowNode, HollowNodes
from tests.e2e.running import start_apiserver, stop

CLOCK = WallClock()
HOSTS = ("load-a", "load-b", "load-c")
"""The hollow nodes of the cluster that `api` reaches."""


@asynccontextmanager
async def connect(config: Path, component: str = "conformance") -> AsyncIterator[ApiClient]:
    """A client of its own, as another process would have."""
    transport = HttpTransport(kubeconfig.load(str(config)), clock=CLOCK)
    try:
        yield ApiClient(transport, user_agent=component, clock=CLOCK, rng=random.Random(7))
    finally:
        await transport.close()


@pytest.fixture(scope="session")
def config(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The kubeconfig of the server that the tests run on."""
    root = tmp_path_factory.mktemp("server")
    server = os.environ.get("SKYSAIL_SERVER", "embedded")
    if server != "embedded":
        from e2e.harness.control_plane import ControlPlane

        control_plane = ControlPlane(root, version="" if server == "real" else server)
        try:
            control_plane.start()
            yield control_plane.kubeconfig
        finally:
            control_plane.stop()
    else:
        running = start_apiserver(root)
        yield running.kubeconfig
        stop(running)


@pytest.fixture
async def client(config: Path) -> AsyncIterator[ApiClient]:
    """An admin's client."""
    async with connect(config) as client:
        yield client


@pytest.fixture
async def namespace(client: ApiClient) -> AsyncIterator[str]:
    """A namespace of the test's own; its pods are gone at the end, whoever runs or does not run controllers."""
    made = await client.create(NAMESPACES, {"metadata": {"generateName": "conformance-"}})
    yield made.name
    await client.delete(NAMESPACES, made.name)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def api(config: Path) -> AsyncIterator[ApiClient]:
    """A client of a cluster that works: controllers, a scheduler and three hollow nodes, for a whole module."""
    from tests.conformance.components import running_controllers, running_scheduler

    hollow = HollowNodes([HollowNode(name) for name in HOSTS])
    async with (
        connect(config) as client,
        running_controllers(config, [*all_controllers(), hollow]),
        running_scheduler(config),
    ):
        await hollow.wait_registered()
        yield client
        for name in HOSTS:
            await client.delete(NODES, name)


@pytest_asyncio.fixture(loop_scope="module")
async def space(api: ApiClient) -> AsyncIterator[str]:
    """A namespace of the test's own."""
    made = await api.create(NAMESPACES, {"metadata": {"generateName": "workloads-"}})
    yield made.name
    await api.delete(NAMESPACES, made.name)
