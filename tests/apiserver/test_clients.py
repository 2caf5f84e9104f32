"""Other people's clients, unmodified, over TLS: each a script of its own that must end well.

A client that is not installed is skipped; `pip install kubernetes kubernetes_asyncio kr8s lightkube kopf` brings them.
"""

import asyncio
import importlib.util
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest

from skysail.apiserver.authentication import parse_tokens
from skysail.apiserver.certificates import make_serving_certificate
from skysail.apiserver.http import Tls, serve_http
from skysail.apiserver.server import ApiServer
from skysail.simulator.clock import WallClock

SCRIPTS = Path(__file__).parent / "clients"
CLIENTS = ("kubernetes", "kubernetes_asyncio", "kr8s", "lightkube", "kopf")
TOKENS = parse_tokens('secret,admin,1,"system:masters"')
HELM = Path(__file__).resolve().parents[2] / ".cache" / "kubectl" / "1.36" / "helm"
KUBECONFIG = """
apiVersion: v1
kind: Config
clusters: [{{name: c, cluster: {{server: "{url}", certificate-authority: "{ca}"}}}}]
users: [{{name: u, user: {{token: secret}}}}]
contexts: [{{name: x, context: {{cluster: c, user: u, namespace: default}}}}]
current-context: x
"""


@asynccontextmanager
async def kubeconfig(directory: Path) -> AsyncIterator[Path]:
    """A server over TLS, and the kubeconfig that leads to it."""
    made = make_serving_certificate(("127.0.0.1",), datetime.now(UTC))  # noqa: TID251
    files = {"ca.crt": made.ca, "tls.crt": made.certificate, "tls.key": made.key}
    for name, content in files.items():
        (directory / name).write_bytes(content)
    server = ApiServer(clock=WallClock(), rng=Random(1), tokens=TOKENS)
    tls = Tls(directory / "tls.crt", directory / "tls.key")
    async with server.running(), serve_http(server, tokens=TOKENS, tls=tls) as address:
        config = directory / "kubeconfig"
        config.write_text(KUBECONFIG.format(url=address.url, ca=directory / "ca.crt"))
        yield config


async def run(*command: str, **environment: str) -> str:
    """Run a program to its end; its output, when it ended well."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, **environment},
    )
    async with asyncio.timeout(60):
        output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()
    return output.decode()


@pytest.mark.parametrize("client", CLIENTS)
async def test_a_python_client_works_unmodified(client: str, tmp_path: Path) -> None:
    if importlib.util.find_spec(client) is None:
        pytest.skip(f"{client} is not installed")
    async with kubeconfig(tmp_path) as config:
        await run(sys.executable, str(SCRIPTS / f"with_{client}.py"), str(config), KUBECONFIG=str(config))


async def test_helm_installs_upgrades_rolls_back_and_uninstalls(tmp_path: Path) -> None:
    if not HELM.exists():
        pytest.skip("helm is not fetched")
    async with kubeconfig(tmp_path) as config:
        environment = {"KUBECONFIG": str(config), "HOME": str(tmp_path)}
        chart = str(tmp_path / "shop")
        await run(str(HELM), "create", chart, **environment)
        await run(str(HELM), "install", "shop", chart, **environment)
        await run(str(HELM), "upgrade", "shop", chart, "--set", "replicaCount=2", **environment)
        await run(str(HELM), "rollback", "shop", "1", **environment)
        assert "deployed" in await run(str(HELM), "list", **environment)
        await run(str(HELM), "uninstall", "shop", **environment)
