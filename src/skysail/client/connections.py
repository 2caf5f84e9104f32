"""HTTP/1.1 for small requests: kept-alive connections, one request at a time on each, parsed by httptools.

Writes are most of what a scheduler sends, a few hundred bytes each way; a general HTTP client spends ten times as long
on one as the exchange itself takes (see `docs/benchmarks.md`). Reads and watches, which are long, compressed or both,
stay with aiohttp.

    a connection is   idle      in `_idle`; closed when anything is heard on it, not used after `_IDLE_SECONDS`
                      busy      held by one `request`; back to idle only after a whole answer that allows it
                      closed    for all else: an answer broken off, a time-out, a cancellation, `close`

Never more than `limit` are open or being opened; who comes when none is free waits, first come, first served. Nothing
is sent twice: a connection that breaks leaves it open whether the server did what was asked.

Differs from aiohttp: no compression, no cookies, no redirects followed, no proxies; none was in use.
"""

import asyncio
import ssl
from collections import deque
from typing import Final, cast

import httptools

from skysail.api.ports import Response

_IDLE_SECONDS: Final = 15.0
"""A connection unused for longer may be about to be closed by the other end."""


class BrokenOff(OSError):
    """The connection ended before the whole answer was there, or what came is no HTTP."""


class Connection(asyncio.Protocol):
    """One connection: sends a request, collects its answer. Callbacks in lower case are httptools'."""

    def __init__(self) -> None:
        self.idle_since = 0.0
        self.is_open = False
        self.is_outdated = False
        """Whether it was opened under conditions that hold no more."""
        self.may_stay = False
        """Whether the last answer left the connection fit for another request."""
        self._answer: asyncio.Future[Response] | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._headers: list[tuple[bytes, bytes]] = []
        self._pieces: list[bytes] = []
        self._headers_complete = False

    def send(self, data: bytes) -> "asyncio.Future[Response]":
        """Send a whole request; the future holds the whole answer."""
        answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        if not self.is_open:
            answer.set_exception(BrokenOff("the server closed the connection"))
            return answer
        self.may_stay, self._answer = False, answer
        self._transport.write(data)
        return answer

    def abort(self) -> None:
        """Close at once; what was not sent is not sent."""
        self._answer = None
        if self.is_open:
            self.is_open = False
            self._transport.abort()

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is there."""
        self._transport, self.is_open = cast(asyncio.Transport, transport), True

    def data_received(self, data: bytes) -> None:
        """Something of an answer - or, when nothing was asked, the server's reason to close."""
        if self._answer is None:
            self.abort()
            return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self.fail(BrokenOff(f"not HTTP: {error}"))

    def connection_lost(self, error: Exception | None) -> None:
        """The other end closed it, or the network broke."""
        self.is_open = False
        if self._answer is None:
            return
        if error is None and self._ends_with_connection():
            self._complete(stays=False)
        else:
            why = error if isinstance(error, OSError) else BrokenOff("the server closed the connection")
            self.fail(why)

    # httptools

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header, or trailer."""
        self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        """The body comes next."""
        self._headers_complete = True

    def on_body(self, body: bytes) -> None:
        """A piece of the body, unchunked."""
        self._pieces.append(body)

    def on_message_complete(self) -> None:
        """The answer is whole; one that only announces the real one (1xx) is dropped."""
        if self._parser.get_status_code() < 200:
            self._clear()
        elif self._answer is None:  # a second answer to one request
            self.abort()
        else:
            self._complete(stays=bool(self._parser.should_keep_alive()))

    # Small things

    def _ends_with_connection(self) -> bool:
        """Whether this answer's length is given by the end of the connection only."""
        lengths = (b"content-length", b"transfer-encoding")
        return self._headers_complete and not any(name.lower() in lengths for name, _ in self._headers)

    def _complete(self, *, stays: bool) -> None:
        headers = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in self._headers)
        pieces = self._pieces
        body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        response = Response(self._parser.get_status_code(), headers, body)
        answer, self._answer = self._answer, None
        self._clear()
        self.may_stay = stays and self.is_open
        if answer is not None and not answer.done():
            answer.set_result(response)

    def fail(self, error: OSError) -> None:
        """Close, and let the request under way end with an error."""
        answer = self._answer
        self.abort()
        if answer is not None and not answer.done():
            answer.set_exception(error)

    def _clear(self) -> None:
        self._headers, self._pieces, self._headers_complete = [], [], False


class ConnectionPool:
    """Connections to one server, opened when needed: one, then half as many more at a time as there are.

    A burst of requests is thus served by a few connections, where opening one for each would cost more than the
    requests do; a slow server still gets them all within a few round trips.

    Args:
        host: Name or address.
        port: Where it listens.
        tls: How to check the server; None speaks plainly.
        server_name: The name its certificate must have; the host's when empty.
        limit: How many connections at most.
    """

    def __init__(self, host: str, port: int, tls: ssl.SSLContext | None, server_name: str, limit: int) -> None:
        self._host, self._port, self.tls, self._limit = host, port, tls, limit
        self._server_name = (server_name or host) if tls is not None else None
        self._idle: list[Connection] = []
        self._busy: set[Connection] = set()
        self._opening = 0
        self._waiting: deque[asyncio.Future[Connection | None]] = deque()
        """Each gets a connection, or None for leave to open one, which counts as being opened from then on."""
        self._closed = False

    async def request(self, data: bytes) -> Response:
        """Send one whole request and wait for the whole answer. The caller sets a time-out.

        Raises:
            OSError: No connection, or it broke off (`BrokenOff`), or the certificate is not to be trusted.
        """
        connection = self._take_idle() or await self._next()
        self._busy.add(connection)
        try:
            return await connection.send(data)
        finally:
            self._busy.discard(connection)
            self._give_back(connection)

    def use_tls(self, tls: ssl.SSLContext | None) -> None:
        """Check the server in another way from now on; requests under way go on, on connections that end with them."""
        self.tls = tls
        self._drop_idle()
        for connection in self._busy:
            connection.is_outdated = True

    def close(self) -> None:
        """Close all connections; requests under way fail."""
        self._closed = True
        self._drop_idle()
        for connection in list(self._busy):
            connection.fail(BrokenOff("the connection was closed here"))

    def _drop_idle(self) -> None:
        for connection in self._idle:
            connection.abort()
        self._idle.clear()

    def _take_idle(self) -> Connection | None:
        """The one used last, so that those beyond need grow old; connections that are of no use are let go."""
        now = asyncio.get_running_loop().time()
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open and now - connection.idle_since < _IDLE_SECONDS:
                return connection
            connection.abort()
        return None

    async def _next(self) -> Connection:
        """The next connection that is free, or a new one; first come, first served."""
        if self._may_open():
            self._opening += 1
            return await self._open()
        turn: asyncio.Future[Connection | None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            connection = await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._pass_on(turn.result())
            raise
        return connection or await self._open()

    def _may_open(self) -> bool:
        opened = len(self._busy) + len(self._idle)
        return opened + self._opening < self._limit and self._opening < max(1, opened // 2)

    async def _open(self) -> Connection:
        loop = asyncio.get_running_loop()
        try:
            _, connection = await loop.create_connection(
                Connection, self._host, self._port, ssl=self.tls, server_hostname=self._server_name
            )
        except BaseException:
            self._opening -= 1
            self._let_open()
            raise
        self._opening -= 1
        self._busy.add(connection)
        self._let_open()
        return connection

    def _give_back(self, connection: Connection) -> None:
        """What a request no longer needs: to the next in line, or to rest; what is of no use makes room."""
        if not connection.may_stay or not connection.is_open or connection.is_outdated or self._closed:
            connection.abort()
            self._let_open()
            return
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(connection)
                self._busy.add(connection)
                return
        connection.idle_since = asyncio.get_running_loop().time()
        self._idle.append(connection)

    def _let_open(self) -> None:
        """Let those in line open connections, as many as may be."""
        while self._waiting and self._may_open():
            turn = self._waiting.popleft()
            if not turn.done():
                self._opening += 1
                turn.set_result(None)

    def _pass_on(self, got: Connection | None) -> None:
        """Somebody went away with what it had just got."""
        if got is None:
            self._opening -= 1
            self._let_open()
        else:
            self._busy.discard(got)
            self._give_back(got)
