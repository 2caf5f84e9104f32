"""Holds conversations with extenders over the network. Shell, not core.

One transport for each `urlPrefix`, with its TLS. `parallelism` bounds how many calls are under way. A call that gets no
answer in time, or none at all, is a reply with an error: what becomes of it the thinking side decides.
"""

import asyncio
import base64
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Final, TypeVar

import msgspec

from skysail.api.core import Pod
from skysail.api.errors import ConfigError, Unreachable
from skysail.api.node import Node
from skysail.api.ports import Clock, Request, Transport
from skysail.client.api_client import ApiClient
from skysail.client.config import ServerConfig
from skysail.client.credentials import ClientCertificate, StaticCredentials
from skysail.scheduler.config.types import Extender, ExtenderTLSConfig
from skysail.scheduler.extenders.chain import ExtenderChain
from skysail.scheduler.extenders.messages import objects_in, with_whole_objects
from skysail.scheduler.extenders.wholes import WholeObjects
from skysail.scheduler.framework.conversation import Call, Conversation, Reply
from skysail.scheduler.framework.status import Status

_log = logging.getLogger(__name__)
T = TypeVar("T")

SLOW_SECONDS: Final = 1.0
_HEADERS: Final = {"content-type": "application/json", "accept": "application/json"}

TransportMaker = Callable[[ServerConfig], Transport]


class ExtenderTalk:
    """Talks to the extenders of a configuration. Make it inside the running loop.

    Args:
        extenders: As configured.
        client: Reads whole objects.
        clock: Measures calls.
        rng: For informers.
        parallelism: How many calls at a time.
        transport: Makes a transport to one extender; HTTP by default.

    Raises:
        ConfigError: A URL or a certificate cannot be used, or the TLS of one `urlPrefix` is set in two ways.
    """

    def __init__(
        self,
        extenders: Sequence[Extender],
        client: ApiClient,
        clock: Clock,
        rng: Random,
        parallelism: int,
        transport: TransportMaker | None = None,
    ) -> None:
        self.chain = ExtenderChain(extenders)
        self._clock, self._turn = clock, asyncio.Semaphore(parallelism)
        make = transport or _http(clock)
        self._transports: dict[str, Transport] = {
            prefix: make(server) for prefix, server in server_configs(extenders).items()
        }
        needs_nodes = [
            each for each in extenders if not each.node_cache_capable and (each.filter_verb or each.prioritize_verb)
        ]
        needs_victims = [each for each in extenders if not each.node_cache_capable and each.preempt_verb]
        self._wholes = WholeObjects(client, clock, rng, nodes=bool(needs_nodes), assigned=bool(needs_victims))

    async def run(self) -> None:
        """Keep whole objects at hand until cancelled; then close the connections."""
        try:
            await self._wholes.run()
        finally:
            for transport in self._transports.values():
                await transport.close()

    async def wait_synced(self) -> None:
        """Wait until the objects are at hand."""
        await self._wholes.wait_synced()

    async def hold(self, conversation: Conversation[T]) -> T:
        """Hold a conversation to its end."""
        try:
            calls = next(conversation)
            while True:
                calls = conversation.send(await self._ask_all(calls))
        except StopIteration as end:
            result: T = end.value
            return result

    async def bind(self, pod: Pod, node_name: str) -> Status | None:
        """Let an extender bind the pod; None when none of them binds it."""
        return await self.hold(self.chain.bind(pod, node_name))

    async def _ask_all(self, calls: Sequence[Call]) -> Sequence[Reply]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._ask(call)) for call in calls]
        return [task.result() for task in tasks]

    async def _ask(self, call: Call) -> Reply:
        start = self._clock.monotonic()
        whole = {id(each): await self._wholes.read(each) for each in objects_in(call.body)}

        def replace(each: Pod | Node) -> object:
            return whole[id(each)]

        body = msgspec.json.encode(with_whole_objects(call.body, replace))
        request = Request("POST", f"/{call.verb}", headers=_HEADERS, body=body, timeout_seconds=call.timeout_seconds)
        try:
            async with self._turn, asyncio.timeout(call.timeout_seconds):
                response = await self._transports[call.callee].request(request)
        except TimeoutError:
            reply = Reply(error=f'Post "{call.url}": no answer within {call.timeout_seconds:g} s')
        except Unreachable as error:
            reply = Reply(error=f'Post "{call.url}": {error}')
        else:
            reply = Reply(response.status, response.body)
        seconds = self._clock.monotonic() - start
        if reply.error or reply.status != 200 or seconds > SLOW_SECONDS:
            _log.warning(
                "extender is slow or broken",
                extra={"extender": call.callee, "verb": call.verb, "seconds": round(seconds, 3),
                       "status": reply.status, "error": reply.error},
            )  # fmt: skip
        return Reply(reply.status, reply.body, reply.error, seconds)


def _http(clock: Clock) -> TransportMaker:
    """Imported only where extenders are configured: an HTTP client takes a quarter of a second to load."""
    from skysail.client.http import HttpTransport

    return lambda server: HttpTransport(server, clock=clock)


def server_configs(extenders: Sequence[Extender]) -> dict[str, ServerConfig]:
    """How to reach the extenders, by `urlPrefix`.

    Args:
        extenders: As configured.

    Raises:
        ConfigError: A file cannot be read, or the TLS of one `urlPrefix` is set in two ways.
    """
    first: dict[str, int] = {}
    for index, extender in enumerate(extenders):
        other = first.setdefault(extender.url_prefix, index)
        if _tls(extender) != _tls(extenders[other]):
            message = f"differs from that of extenders[{other}], whose urlPrefix is the same"
            raise ConfigError(message, path=f"extenders[{index}].tlsConfig")
    return {prefix: _server_config(extenders[index], f"extenders[{index}]") for prefix, index in first.items()}


def _tls(extender: Extender) -> tuple[bool, ExtenderTLSConfig]:
    return extender.enable_https, extender.tls_config or ExtenderTLSConfig()


def _server_config(extender: Extender, path: str) -> ServerConfig:
    tls = extender.tls_config or ExtenderTLSConfig()
    place = f"{path}.tlsConfig"
    ca = _bytes(tls.ca_data, tls.ca_file, f"{place}.caFile")
    certificate = _bytes(tls.cert_data, tls.cert_file, f"{place}.certFile")
    key = _bytes(tls.key_data, tls.key_file, f"{place}.keyFile")
    if bool(certificate) != bool(key):
        raise ConfigError("a certificate and its key are needed together", path=place)
    shown = ClientCertificate(certificate, key) if certificate else None
    return ServerConfig(
        extender.url_prefix,
        ca_data=ca,
        insecure=tls.insecure or (extender.enable_https and not ca),
        tls_server_name=tls.server_name,
        credentials=StaticCredentials(certificate=shown),
        source=path,
    )


def _bytes(data: str, file: str, path: str) -> bytes:
    if data:
        return _decoded(data, path)
    try:
        return Path(file).read_bytes() if file else b""
    except OSError as error:
        raise ConfigError(f"cannot be read: {error}", path=path) from error


def _decoded(data: str, path: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except ValueError as error:
        raise ConfigError(f"not base64: {error}", path=path) from error
