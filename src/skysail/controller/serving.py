"""What operators and Prometheus ask a running manager, over HTTP.

    /livez /healthz /readyz      is it alive, is it ready; `?verbose` lists the checks, `?exclude=NAME` leaves one out
    /metrics                     Prometheus text

On loopback it answers everybody. Opened wider, `/metrics` must be guarded by a token; health checks never are.
"""

import contextlib
import hmac
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from skysail.api.errors import ConfigError
from skysail.controller.listening import LOOPBACK, serving
from skysail.controller.manager import Manager


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
        if self.address not in LOOPBACK and not self.token:
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


@contextlib.asynccontextmanager
async def serving_manager(manager: Manager, options: ServingOptions) -> AsyncIterator[str]:
    """Answer until the block is left; gives the URL.

    Raises:
        ConfigError: The port cannot be had, or the certificate cannot be read.
    """
    application = manager_application(manager, options.token)
    async with serving(
        application, options.address, options.port, options.certificate, options.key, port_option="--health-port"
    ) as url:
        yield url
