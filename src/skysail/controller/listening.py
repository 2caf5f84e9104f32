"""An ASGI application answered by uvicorn inside a running program, which keeps its signals and its event loop."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

import uvicorn
from starlette.applications import Starlette

from skysail.api.errors import ConfigError

LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")
_GRACE_SECONDS: Final = 2


class _Server(uvicorn.Server):
    """uvicorn that leaves signals to the program, and says when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextlib.asynccontextmanager
async def serving(
    application: Starlette,
    address: str,
    port: int,
    certificate: Path | None = None,
    key: Path | None = None,
    *,
    port_option: str = "port",
    certificate_option: str = "certificate",
) -> AsyncIterator[str]:
    """Answer until the block is left; gives the URL.

    Args:
        application: What answers.
        address: An address of this machine.
        port: 0 takes a free one.
        certificate: PEM file; with `key`, TLS.
        key: PEM file.
        port_option: What errors call the port.
        certificate_option: What errors call the certificate.

    Raises:
        ConfigError: The port cannot be had, or the certificate cannot be read.
    """
    config = uvicorn.Config(
        application, loop="none", ws="none", lifespan="off", log_config=None,
        access_log=False, server_header=False, timeout_graceful_shutdown=_GRACE_SECONDS,
        ssl_certfile=str(certificate) if certificate else None, ssl_keyfile=str(key) if key else None,
    )  # fmt: skip
    try:
        config.load()
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"cannot use the certificate: {error}", path=certificate_option) from error
    listener = _listen(address, port, port_option)
    server = _Server(config)
    async with asyncio.TaskGroup() as group:
        group.create_task(server.serve(sockets=[listener]), name="http")
        await server.listening.wait()
        scheme = "https" if certificate else "http"
        try:
            yield f"{scheme}://{address}:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True


def _listen(address: str, port: int, option: str) -> socket.socket:
    listener = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
    except OSError as error:
        listener.close()
        raise ConfigError(f"cannot listen on {address}:{port}: {error.strerror or error}", path=option) from error
    listener.setblocking(False)
    return listener
