"""The HTTP front: uvicorn with httptools, and a thin ASGI application that turns requests into `handle` and back.

    async with server.running(), serve_http(server, port=0, tokens=tokens) as address:
        print(address.url)

HTTP/1.1, with TLS when a certificate is given. Bodies are limited; watch streams are flushed at every change; leaving
the block ends open watches within a second.
"""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import uvicorn

from skysail.api.errors import ConfigError
from skysail.api.ports import Request, Response, User
from skysail.apiserver.authentication import TokenAuthenticator
from skysail.apiserver.background import in_background
from skysail.apiserver.front import answer
from skysail.apiserver.server import BODY_LIMIT, ApiServer
from skysail.apiserver.status import failure_response, too_large

_GRACE_SECONDS = 1
_SEND_SECONDS = 60
_BACKLOG = 1024
_LATIN = "latin-1"

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Tls:
    """Files of a server certificate and its key, PEM."""

    certificate: Path
    key: Path


@dataclass(frozen=True, slots=True)
class Address:
    """Where the server listens."""

    host: str
    port: int
    tls: bool

    @property
    def url(self) -> str:
        """`https://127.0.0.1:6443`."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}"


class Application:
    """The ASGI application in front of one API server."""

    def __init__(self, server: ApiServer, authenticator: TokenAuthenticator) -> None:
        self._server, self._authenticator = server, authenticator

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request."""
        headers = {name.decode(_LATIN): value.decode(_LATIN) for name, value in scope["headers"]}
        body = await _read_body(receive, headers)
        if body is None:
            await _send_whole(failure_response(too_large(BODY_LIMIT)), send)
            return
        query = scope["query_string"]
        request = Request(
            method=scope["method"],
            path=scope["path"],
            query=tuple(parse_qsl(query.decode(_LATIN), keep_blank_values=True)) if query else (),
            headers=headers,
            body=body,
        )
        response = await answer(self._server, self._authenticator, request)
        if response.stream is None:
            await _send_whole(response, send)
        else:
            await _send_stream(response, response.stream, receive, send)


async def _read_body(receive: Receive, headers: Mapping[str, str]) -> bytes | None:
    """The whole body, or None when it is over the limit."""
    length = headers.get("content-length", "")
    if length.isdigit() and int(length) > BODY_LIMIT:
        return None
    message = await receive()
    body: bytes = message.get("body", b"")
    if not message.get("more_body"):
        return body
    chunks, size = [body], len(body)
    while message.get("more_body"):
        message = await receive()
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > BODY_LIMIT:
            return None
        chunks.append(chunk)
    return b"".join(chunks)


def _encoded(response: Response) -> list[tuple[bytes, bytes]]:
    return [(name.lower().encode(_LATIN), value.encode(_LATIN, "replace")) for name, value in response.headers]


async def _send_whole(response: Response, send: Send) -> None:
    headers = _encoded(response)
    if response.status != 304:
        headers.append((b"content-length", str(len(response.body)).encode()))
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": response.body})


async def _send_stream(response: Response, stream: AsyncIterator[bytes], receive: Receive, send: Send) -> None:
    """Send a watch chunk by chunk, until it ends, the client goes, or takes nothing for a minute."""
    await send({"type": "http.response.start", "status": response.status, "headers": _encoded(response)})
    # An empty first chunk makes the answer's head leave at once: a watch may have nothing to say for long.
    await send({"type": "http.response.body", "body": b"", "more_body": True})

    stuck = False

    async def pump() -> None:
        nonlocal stuck
        try:
            async for chunk in stream:
                async with asyncio.timeout(_SEND_SECONDS):
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
        except TimeoutError:
            stuck = True

    async with asyncio.TaskGroup() as group:
        pumping = group.create_task(pump(), name="watch")
        leaving = group.create_task(_wait_disconnected(receive), name="watch-disconnect")
        await asyncio.wait((pumping, leaving), return_when=asyncio.FIRST_COMPLETED)
        pumping.cancel()
        leaving.cancel()
    if not stuck:
        await send({"type": "http.response.body", "body": b""})


async def _wait_disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class _Server(uvicorn.Server):
    """uvicorn that leaves signals to the program, and says when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening, self.ended = asyncio.Event(), asyncio.Event()

    async def run_to_end(self, sockets: list[socket.socket]) -> None:
        try:
            await self.serve(sockets=sockets)
        finally:
            self.ended.set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        giving_up = asyncio.get_running_loop().call_later(_GRACE_SECONDS, self._drop_connections)
        try:
            await super().shutdown(sockets)
        finally:
            giving_up.cancel()

    def _drop_connections(self) -> None:
        """A client that takes nothing more would keep its answer waiting; for a lost connection uvicorn ends it."""
        for connection in list(self.server_state.connections):
            connection.transport.abort()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextlib.asynccontextmanager
async def serve_http(
    server: ApiServer,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    tls: Tls | None = None,
    tokens: Mapping[str, User] | None = None,
) -> AsyncIterator[Address]:
    """Serve a running `ApiServer` over HTTP until the block is left.

    Args:
        server: Running.
        host: Address to listen on.
        port: 0 takes a free one.
        tls: Certificate and key; None serves plain HTTP.
        tokens: Bearer tokens and their users; None lets everybody in as admin.

    Raises:
        ConfigError: The port cannot be had, or the certificate cannot be read.
    """
    config = uvicorn.Config(
        Application(server, TokenAuthenticator(tokens)),
        http="httptools",
        loop="none",
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        log_level="error",  # a client's bad request is answered; it asks nothing of who runs the server
        access_log=False,
        server_header=False,
        ssl_certfile=str(tls.certificate) if tls else None,
        ssl_keyfile=str(tls.key) if tls else None,
        timeout_graceful_shutdown=5 * _GRACE_SECONDS,
        h11_max_incomplete_event_size=None,
    )
    try:
        config.load()
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"cannot use the certificate: {error}", file=str(tls.certificate) if tls else "") from error
    listener = _listen(host, port)
    front = _Server(config)
    bound = listener.getsockname()[1]
    async with in_background({"apiserver-http": front.run_to_end([listener])}):
        await front.listening.wait()
        try:
            yield Address(host, bound, tls is not None)
        finally:
            server.watches.stop()
            front.should_exit = True
            await front.ended.wait()
            listener.close()


def _listen(host: str, port: int) -> socket.socket:
    # The protocol is named because asyncio switches Nagle's algorithm off only for sockets that say they are TCP; an
    # answer leaves in two writes, and would otherwise wait 40 ms for the client's acknowledgement.
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise ConfigError(f"cannot listen on {host}:{port}: {error.strerror or error}") from error
    listener.setblocking(False)
    return listener
