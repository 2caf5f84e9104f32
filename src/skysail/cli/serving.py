"""Putting the embedded API server on a port: tokens, certificate, kubeconfig."""

import asyncio
import base64
import os
import secrets
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import yaml

from skysail.api.errors import ConfigError
from skysail.api.ports import User
from skysail.apiserver.authentication import ADMIN, read_token_file
from skysail.apiserver.certificates import make_serving_certificate
from skysail.apiserver.http import Address, Tls, serve_http
from skysail.apiserver.server import ApiServer
from skysail.cli.output import say
from skysail.simulator.clock import WallClock

HOST = "127.0.0.1"
_NAMES = (HOST, "localhost")


@dataclass(frozen=True, slots=True)
class Serving:
    """How to serve.

    Attributes:
        port: 0 takes a free one.
        tls: A fresh certificate of our own authority; False serves plain HTTP.
        token_file: Users, in kube-apiserver's CSV form; None makes one admin token.
        data_dir: Where objects are kept; None keeps them in memory.
        compaction_seconds: How often history is forgotten.
        options: Switches of the API server.
    """

    port: int
    tls: bool = True
    token_file: Path | None = None
    data_dir: Path | None = None
    compaction_seconds: float = 300.0
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Served:
    """A server that listens.

    Attributes:
        server: Also reachable in process.
        address: Where it listens.
        token: An admin's bearer token, made for this run; empty when a token file was given.
        ca: PEM of the authority to trust; empty without TLS.
    """

    server: ApiServer
    address: Address
    token: str
    ca: bytes

    def kubeconfig(self) -> str:
        """A kubeconfig, as YAML, that reaches this server as its admin."""
        cluster: dict[str, str] = {"server": self.address.url}
        if self.ca:
            cluster["certificate-authority-data"] = base64.b64encode(self.ca).decode()
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "skysail", "cluster": cluster}],
            "users": [{"name": "skysail", "user": {"token": self.token} if self.token else {}}],
            "contexts": [{"name": "skysail", "context": {"cluster": "skysail", "user": "skysail"}}],
            "current-context": "skysail",
        }
        return yaml.safe_dump(config, sort_keys=False)


@asynccontextmanager
async def serving_api(serving: Serving) -> AsyncIterator[Served]:
    """Run an API server behind HTTP until the block is left.

    Raises:
        ConfigError: The port, token file or data directory cannot be used.
    """
    clock = WallClock()
    token = "" if serving.token_file is not None else secrets.token_urlsafe(24)
    tokens: Mapping[str, User] = {token: ADMIN} if serving.token_file is None else read_token_file(serving.token_file)
    server = ApiServer(
        clock=clock,
        rng=Random(),
        data_dir=serving.data_dir,
        compaction_interval=serving.compaction_seconds,
        options=serving.options,
    )
    with TemporaryDirectory(prefix="skysail-") as directory:
        certificate = make_serving_certificate(_NAMES, clock.now()) if serving.tls else None
        tls = None
        if certificate is not None:
            tls = Tls(Path(directory, "tls.crt"), Path(directory, "tls.key"))
            tls.certificate.write_bytes(certificate.certificate)
            write_private(tls.key, certificate.key)
        async with (
            server.running(),
            serve_http(server, host=HOST, port=serving.port, tls=tls, tokens=tokens) as address,
        ):
            yield Served(server, address, token, certificate.ca if certificate is not None else b"")


async def serve_until_cancelled(serving: Serving, kubeconfig_out: Path | None = None) -> None:
    """`skysail apiserver`: serve, say where, and stay. With a token file there is no token to put into a kubeconfig."""
    async with serving_api(serving) as served:
        kubeconfig = kubeconfig_out or default_kubeconfig(served.address.port)
        with removed_at_end(kubeconfig if served.token and kubeconfig_out is None else None):
            if served.token or kubeconfig_out is not None:
                write_private(kubeconfig, served.kubeconfig().encode())
                say(f"export KUBECONFIG={kubeconfig.absolute()}")
            say(f"ready: serving on {served.address.url}")
            await asyncio.Event().wait()


@contextmanager
def removed_at_end(*files: Path | None) -> Iterator[None]:
    """These files stand for a running server: none before, none after."""
    present = [file for file in files if file is not None]
    for file in present:
        file.unlink(missing_ok=True)
    try:
        yield
    finally:
        for file in present:
            file.unlink(missing_ok=True)


def default_kubeconfig(port: int) -> Path:
    """Where a kubeconfig goes when the user names no place: their runtime directory, never their own kubeconfig."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    base = Path(runtime) if runtime and Path(runtime).is_dir() else Path.home() / ".cache"
    return base / "skysail" / f"kubeconfig-{port}"


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read, whole or not at all.

    Raises:
        ConfigError: It cannot be written; names the file.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(descriptor, "wb") as file:
            file.write(content)
        partial.replace(path)
    except OSError as error:
        with suppress(OSError):
            partial.unlink()
        raise ConfigError(f"cannot be written: {error.strerror}", file=str(path)) from error
