"""What operators and Prometheus ask a running scheduler, over HTTP.

    /healthz /livez /readyz       is it alive, is it ready; `?verbose` lists the checks
    /metrics                      Prometheus text
    /configz                      the configuration as it runs, and the default plugins that are left out
    /debug/attempts[?pod=ns/n]    the last attempts; the last one for a pod with every node's refusal, and with every
                                  feasible node's scores, up to 1,000 of each (the others are counted)
    /debug/queue                  which pod waits where, and who refused it
    /debug/cache                  where cache and informers disagree

On loopback it answers everybody. Opened wider it must have a certificate and a token: only the health checks answer
without.
"""

import asyncio
import contextlib
import hmac
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from skysail.api.errors import ConfigError
from skysail.api.raw import Raw
from skysail.controller.listening import LOOPBACK, serving
from skysail.scheduler.app import Scheduler
from skysail.scheduler.attempts import Attempt
from skysail.scheduler.config.writing import to_document
from skysail.scheduler.replay import replay

_OPEN_PATHS: Final = ("/healthz", "/livez", "/readyz")
_SHOWN_ATTEMPTS: Final = 100

Endpoint = Callable[[Request], Response | Awaitable[Response]]


@dataclass(frozen=True)
class ServingOptions:
    """Where to answer.

    Attributes:
        address: An address of this machine.
        port: 0 takes a free one.
        certificate: PEM file; with `key`, TLS.
        key: PEM file.
        token: What callers must show as a bearer token; empty asks for none.
    """

    address: str = "127.0.0.1"
    port: int = 10259
    certificate: Path | None = None
    key: Path | None = None
    token: str = ""

    def __post_init__(self) -> None:
        """Refuse to be open to the network without protection."""
        if (self.certificate is None) != (self.key is None):
            raise ConfigError("a certificate and its key go together", path="--tls-cert-file")
        if self.address not in LOOPBACK and (self.certificate is None or not self.token):
            raise ConfigError(
                f"{self.address} is not loopback: --tls-cert-file, --tls-private-key-file and --token-file are needed",
                path="--bind-address",
            )


def scheduler_application(scheduler: Scheduler, token: str = "") -> Starlette:
    """The ASGI application.

    Args:
        scheduler: Who is asked.
        token: What callers must show; empty lets everybody in.
    """
    answers = _Answers(scheduler)

    def guarded(
        answer: Callable[[Request], Response | Awaitable[Response]],
    ) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            if token and request.url.path not in _OPEN_PATHS and not _shows(request, token):
                return PlainTextResponse("unauthorized\n", status_code=401)
            response = answer(request)
            return response if isinstance(response, Response) else await response

        return endpoint

    return Starlette(
        routes=[
            Route("/healthz", guarded(answers.live)),
            Route("/livez", guarded(answers.live)),
            Route("/readyz", guarded(answers.ready)),
            Route("/metrics", guarded(answers.metrics)),
            Route("/configz", guarded(answers.configz)),
            Route("/debug/attempts", guarded(answers.attempts)),
            Route("/debug/queue", guarded(answers.queue)),
            Route("/debug/cache", guarded(answers.cache)),
        ]
    )


def _shows(request: Request, token: str) -> bool:
    shown = request.headers.get("authorization", "")
    return hmac.compare_digest(shown.encode(), f"Bearer {token}".encode())


class _Answers:
    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def live(self, request: Request) -> Response:
        """Alive, unless a leader no longer renews its lease."""
        elector = self._scheduler.elector
        stuck = elector.health() if elector is not None else ""
        lines = ["[+]ping ok", f"[-]leaderElection failed: {stuck}" if stuck else "[+]leaderElection ok"]
        lines += [
            f"[!]plugin {call.plugin} held the loop for {call.seconds:.1f} s at {call.point}"
            for call in self._scheduler.instruments.slow_calls
        ]
        return _checks(request, lines, failed=bool(stuck))

    def ready(self, request: Request) -> Response:
        """Ready while the caches are filled and follow the server."""
        synced = self._scheduler.is_synced
        lines = ["[+]ping ok", "[+]informer-sync ok" if synced else "[-]informer-sync failed: caches are being filled"]
        health = self._scheduler.informers_health() if synced else {}
        lines += [f"[-]informer {each} failed: {fault}" for each, fault in health.items() if fault]
        lines.append("[+]leading" if self._scheduler.is_leading else "[+]standing by")
        return _checks(request, lines, failed=not synced or any(health.values()))

    def metrics(self, request: Request) -> Response:
        """Everything, for Prometheus."""
        return Response(generate_latest(self._scheduler.registry), headers={"content-type": CONTENT_TYPE_LATEST})

    def configz(self, request: Request) -> Response:
        """What runs."""
        configuration = self._scheduler.configuration
        left_out = {profile.scheduler_name: list(profile.left_out) for profile in configuration.profiles}
        return JSONResponse({"componentconfig": to_document(configuration), "pluginsNotBuilt": left_out})

    async def attempts(self, request: Request) -> Response:
        """The last attempts, or the last one for a pod with all it found out."""
        pod = request.query_params.get("pod", "")
        if pod:
            namespace, _, name = pod.rpartition("/")
            attempt = self._scheduler.attempts.last(namespace or "default", name)
            if attempt is None:
                return PlainTextResponse(f"no attempt for pod {pod} is remembered\n", status_code=404)
            raw = attempt.as_raw(nodes=True) | {"every_node": await self._every_node(attempt)}
            return Response(msgspec.json.encode(raw), media_type="application/json")
        recent = [
            attempt.as_raw() for attempt, _ in zip(self._scheduler.attempts, range(_SHOWN_ATTEMPTS), strict=False)
        ]
        return JSONResponse({"attempts": recent})

    async def _every_node(self, attempt: Attempt) -> Raw | None:
        """What every node got, worked out again in small steps; None when what the attempt saw is forgotten."""
        scheduler = self._scheduler
        infos = scheduler.snapshot.infos_at(attempt.seen)
        if infos is None:
            return None
        again = replay(
            scheduler.profiles[attempt.profile].framework, infos, attempt.pod,
            nominations=scheduler.queue.nominator, limit=attempt.limit,
        )  # fmt: skip
        while True:
            try:
                next(again)
            except StopIteration as end:
                raw: Raw = end.value
                return raw | {"as_decided": _is_as_decided(raw, attempt)}
            await asyncio.sleep(0)

    def queue(self, request: Request) -> Response:
        """Who waits where."""
        queue = self._scheduler.queue
        pods = [
            {
                "pod": info.pod.key,
                "queue": queue.part_of(info.key),
                "attempts": info.attempts,
                "unschedulable_plugins": sorted(info.unschedulable_plugins),
                "pending_plugins": sorted(info.pending_plugins),
                "gate": f"{info.gating_plugin}: {info.gating_message}" if info.gated else "",
            }
            for info in queue.pending_pods()
        ]
        return JSONResponse({"pods": pods, "in_flight": [pod.key for pod in queue.in_flight_pods]})

    def cache(self, request: Request) -> Response:
        """Where cache and informers disagree."""
        differences = self._scheduler.compare_caches()
        return JSONResponse({"consistent": not differences, **differences.as_raw()})


def _is_as_decided(raw: Raw, attempt: Attempt) -> bool:
    """Whether a replay found as many feasible nodes as the attempt, and the chosen one's total."""
    extra = attempt.scoring.extra[0] if attempt.scoring is not None else 0
    totals = {card["node"]: card["total"] for card in raw.get("scores", ())}
    counted = raw.get("feasible_nodes") == attempt.feasible
    return counted and (not totals or totals.get(attempt.node) == attempt.total - extra)


def _checks(request: Request, lines: list[str], *, failed: bool) -> Response:
    text = "\n".join(lines) + ("\ncheck failed\n" if failed else "\ncheck passed\n")
    if failed:
        return PlainTextResponse(text, status_code=500)
    return PlainTextResponse(text if "verbose" in request.query_params else "ok")


@contextlib.asynccontextmanager
async def serving_scheduler(scheduler: Scheduler, options: ServingOptions) -> AsyncIterator[str]:
    """Answer until the block is left; gives the URL.

    Raises:
        ConfigError: The port cannot be had, or the certificate cannot be read.
    """
    application = scheduler_application(scheduler, options.token)
    async with serving(
        application,
        options.address,
        options.port,
        options.certificate,
        options.key,
        port_option="--secure-port",
        certificate_option="--tls-cert-file",
    ) as url:
        yield url
