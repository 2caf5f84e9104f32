"""What operators and Prometheus ask a running manager, over HTTP.

    /livez /healthz /readyz      is it alive, is it ready; `?verbose` lists the checks, `?exclude=NAME` leaves one out
    /metrics                     Prometheus text

On loopback it answers everybody. Opened wider, `/metrics` must be guarded by a token; health checks never are.
"""

import asyncio
import contextlib
import hmac
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from skysail.api.errors import ConfigError
from skysail.controller.manager import Manager

_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_GRACE_SECONDS = 2


@dataclass(frozen=True)
class ServingOptions:
    """Where to answer.

    Attributes:
        address: An address of this machine.
        port: 0 takes a free one.
        certificate: PEM file; with `key`, TLS.
        key: PEM file.
        token: What callers of `/metrics` must show as a bearer token; empty asks for none.
    """

    address: str = "127.0.0.1"
    port: int = 8080
    certificate: Path | None = None
    key: Path | None = None
    token: str = ""

    def __post_init__(self) -> None:
        """Refuse to show metrics to everybody.

        Raises:
            ConfigError: The address is no loopback address and no token is set.
        """
        if self.address not in _LOOPBACK and not self.token:
            raise ConfigError(f"{self.address} is open to others: set a token, or use 127.0.0.1", path="address")


def manager_application(manager: Manager, token: str = "") -> Starlette:
    """The ASGI application of one manager."""

    async def metrics(request: Request) -> Response:
        shown = request.headers.get("authorization", "")
        if token and not hmac.compare_digest(shown.encode(), f"Bearer {token}".encode()):
            return PlainTextResponse("unauthorized\n", status_code=401, headers={"WWW-Authenticate": "Bearer"})
        body = generate_latest(manager.registry) if manager.registry is not None else b""
        return Response(body, media_type=CONTENT_TYPE_LATEST)

    alive, ready = _checks(manager.liveness), _checks(manager.readiness)
    routes = [Route("/livez", alive), Route("/healthz", alive), Route("/readyz", ready), Route("/metrics", metrics)]
    return Starlette(routes=routes)


def _checks(results: Callable[[], Mapping[str, str]]) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        excluded = set(request.query_params.getlist("exclude"))
        found = {name: trouble for name, trouble in results().items() if name not in excluded}
        lines = [f"[-]{name} failed: {trouble}" if trouble else f"[+]{name} ok" for name, trouble in found.items()]
        if any(found.values()):
            return PlainTextResponse("\n".join([*lines, "check failed", ""]), status_code=500)
        return PlainTextResponse("\n".join([*lines, "check passed", ""]) if "verbose" in request.query_params else "ok")

    return answer


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
async def serving_manager(manager: Manager, options: ServingOptions) -> AsyncIterator[str]:
    """Answer until the block is left; gives the URL.

    Raises:
        ConfigError: The port cannot be had, or the certificate cannot be read.
    """
    config = uvicorn.Config(
        manager_application(manager, options.token), loop="none", ws="none", lifespan="off", log_config=None,
        access_log=False, server_header=False, timeout_graceful_shutdown=_GRACE_SECONDS,
        ssl_certfile=str(options.certificate) if options.certificate else None,
        ssl_keyfile=str(options.key) if options.key else None,
    )  # fmt: skip
    try:
        config.load()
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"cannot use the certificate: {error}", path="certificate") from error
    listener = _listen(options.address, options.port)
    server = _Server(config)
    async with asyncio.TaskGroup() as group:
        group.create_task(server.serve(sockets=[listener]), name="manager http")
        await server.listening.wait()
        scheme, port = "https" if options.certificate else "http", listener.getsockname()[1]
        try:
            yield f"{scheme}://{options.address}:{port}"
        finally:
            server.should_exit = True


def _listen(address: str, port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
    except OSError as error:
        listener.close()
        raise ConfigError(f"cannot listen on {address}:{port}: {error.strerror or error}", path="port") from error
    listener.setblocking(False)
    return listener
