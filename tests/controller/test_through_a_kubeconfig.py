"""The same controller, unchanged, through HTTPS and a kubeconfig: on a real event loop, against the embedded server."""

import asyncio
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import aiohttp
import pytest
import yaml
from examples.controllers.config_mirror import MIRROR, MIRRORS, ConfigMirror
from examples.controllers.ttl_cleaner import TtlCleaner

from skysail.api.errors import ConfigError, NotFound
from skysail.api.kinds import CONFIGMAPS, LEASES, NAMESPACES
from skysail.apiserver.authentication import ADMIN
from skysail.apiserver.http import serve_http
from skysail.apiserver.server import ApiServer
from skysail.cli.run_controllers import run_manager
from skysail.cli.serving import Serving, serving_api
from skysail.client.api_client import ApiClient
from skysail.client.http import HttpTransport
from skysail.client.kubeconfig import load
from skysail.informer import InformerFactory, ReflectorSettings
from skysail.simulator.clock import WallClock

EXAMPLE = Path(__file__).parents[2] / "examples/controllers/ttl_cleaner.py"


class Reached:
    """A served API server, a kubeconfig for it, and a client of the test's own."""

    def __init__(self, served, file, client):
        self.served, self.file, self.client = served, file, client

    async def until(self, condition):
        """Wait for something the controllers do; they are woken by watches, so this is milliseconds."""
        async with asyncio.timeout(20):
            holds = await condition()
            while not holds:
                await asyncio.sleep(0.01)
                holds = await condition()


@asynccontextmanager
async def served_cluster(tmp_path):
    async with serving_api(Serving(port=0)) as served:
        file = tmp_path / "kubeconfig"
        file.write_text(served.kubeconfig())
        transport = HttpTransport(load(str(file)), clock=WallClock())
        try:
            yield Reached(served, file, ApiClient(transport, user_agent="test", clock=WallClock(), rng=Random(1)))
        finally:
            await transport.close()


async def test_a_controller_works_through_a_kubeconfig_leads_and_ends_in_order(tmp_path):
    async with served_cluster(tmp_path) as reached, asyncio.TaskGroup() as group:
        controllers = (ConfigMirror(),)
        task = group.create_task(
            run_manager(controllers, "mirror", str(reached.file), ("mirror", "default"), 0, workers=2)
        )
        meta = {"name": "team", "labels": {MIRRORS: "true"}}
        await reached.client.create(NAMESPACES, {"metadata": meta})
        source = {"metadata": {"name": "motd", "labels": {MIRROR: "true"}}, "data": {"text": "hello"}}
        await reached.client.create(CONFIGMAPS, source, "default")

        async def mirrored():
            try:
                return (await reached.client.get(CONFIGMAPS, "motd", "team")).data == {"text": "hello"}
            except NotFound:
                return False

        await reached.until(mirrored)
        assert (await reached.client.get(LEASES, "mirror", "default")).spec.holder_identity
        task.cancel()
        await asyncio.wait({task})
        assert not (await reached.client.get(LEASES, "mirror", "default")).spec.holder_identity


async def test_health_and_metrics_answer_beside_it(tmp_path, unused_tcp_port):
    async with served_cluster(tmp_path) as reached, asyncio.TaskGroup() as group:
        task = group.create_task(run_manager((TtlCleaner(),), "ttl", str(reached.file), None, unused_tcp_port))
        async with aiohttp.ClientSession() as session:

            async def ready():
                try:
                    async with session.get(f"http://127.0.0.1:{unused_tcp_port}/readyz") as response:
                        return response.status == 200
                except aiohttp.ClientError:
                    return False

            await reached.until(ready)
            async with session.get(f"http://127.0.0.1:{unused_tcp_port}/metrics") as response:
                assert "workqueue_depth" in await response.text()
        task.cancel()


async def test_an_informer_goes_on_when_its_token_is_rotated(tmp_path):
    """The old token stops working; the file holds a new one; no restart, no lost change."""
    clock, rng = WallClock(), Random(1)
    tokens = {"old": ADMIN}
    server = ApiServer(clock=clock, rng=rng)
    async with server.running(), serve_http(server, tokens=tokens) as address:
        token_file = tmp_path / "token"
        token_file.write_text("old")
        file = tmp_path / "kubeconfig"
        file.write_text(kubeconfig_with_token_file(address.url, token_file))
        transport = HttpTransport(load(str(file)), clock=clock)
        client = ApiClient(transport, user_agent="rotating", clock=clock, rng=rng)
        patience = ReflectorSettings(min_watch_seconds=1, max_watch_seconds=1)
        async with InformerFactory(client, clock=clock, rng=rng, settings=patience) as informers:
            config_maps = informers.informer(CONFIGMAPS, "default")
            await informers.wait_for_sync()
            tokens.clear()
            tokens["new"] = ADMIN
            token_file.write_text("new")
            made = await client.create(CONFIGMAPS, {"metadata": {"name": "after"}}, "default")
            async with asyncio.timeout(20):
                await config_maps.wait_for_version(made.metadata.resource_version)
            assert config_maps.lister.named("after", "default") is not None
        await transport.close()


def kubeconfig_with_token_file(url, token_file):
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": {"server": url}}],
            "users": [{"name": "u", "user": {"tokenFile": str(token_file)}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
    )


def test_a_wrong_kubeconfig_ends_in_one_line(tmp_path):
    missing = tmp_path / "nope"
    command = [sys.executable, str(EXAMPLE), "--kubeconfig", str(missing)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert str(missing) in done.stderr
    assert "Traceback" not in done.stderr


def test_a_missing_context_is_named(tmp_path):
    file = tmp_path / "kubeconfig"
    file.write_text("apiVersion: v1\nkind: Config\n")
    with pytest.raises(ConfigError):
        asyncio.run(run_manager((TtlCleaner(),), "x", str(file), None, 0, context="nowhere"))
