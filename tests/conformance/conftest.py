"""The same tests on any server: embedded by default, the real control plane with `SKYSAIL_SERVER=real`.

Each test gets a namespace of its own and talks through a kubeconfig over HTTPS, as in a real cluster.
"""

import os
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from skysail.api.kinds import NAMESPACES
from skysail.client import kubeconfig
from skysail.client.api_client import ApiClient
from skysail.client.http import HttpTransport
from skysail.simulator.clock import WallClock
from tests.e2e.running import start_apiserver, stop

CLOCK = WallClock()


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
    if os.environ.get("SKYSAIL_SERVER", "embedded") == "real":
        from e2e.harness.control_plane import ControlPlane

        control_plane = ControlPlane(root)
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
