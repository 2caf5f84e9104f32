"""The transport over HTTP, TLS verified, one pool of connections for each kind of traffic.

Reads and watches are aiohttp's; writes, small and many, go over `connections`.

Lease renewals and events travel in lanes of their own, so that a thousand binds cannot make a leader lose its lease or
hide what happened; watches have a lane without limit, because each holds its connection for good.

aiohttp's exceptions end here: callers see `Unreachable` and `ApiError` only.
"""

import asyncio
import re
import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from enum import Enum
from urllib.parse import SplitResult, quote, urlencode, urlsplit

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from skysail.api.errors import ConfigError, Unreachable, error_from_response
from skysail.api.ports import Clock, Request, Response
from skysail.client.config import ServerConfig
from skysail.client.connections import ConnectionPool
from skysail.client.credentials import ClientCertificate, Credential
from skysail.client.deadlines import DEFAULT_TIMEOUT_SECONDS
from skysail.client.lines import split_lines
from skysail.client.rotation import Rotated, authorities_in

_PATH_CHARACTERS = "/:@!$&'()*+,;=~"
_EVENTS = re.compile(r"/(?:api/v1|apis/events\.k8s\.io/[^/]+)(?:/namespaces/[^/]+)?/events(?:/|$)")
_PLAIN = re.compile(r"[A-Za-z0-9_.~/:@!$&'()*+,;=-]+")
_PREPARED = 64
_KEEPALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 45_000}
"""TCP options: seconds of silence before it asks, seconds between asking, how often; milliseconds without an answer."""
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def open_socket(address: aiohttp.AddrInfoType) -> socket.socket:
    """A socket that notices within 45 s that its other end is gone, where the system can be told so.

    Without it a connection whose peer vanished without a word looks like a quiet one for minutes. Go's HTTP/2 asks the
    other end after 30 s of silence and gives up 15 s later; HTTP/1.1 leaves the asking to TCP.
    """
    family, kind, protocol, *_ = address
    made = socket.socket(family=family, type=kind, proto=protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE.items():
        if (option := getattr(socket, name, None)) is not None:
            made.setsockopt(socket.IPPROTO_TCP, option, value)
    return made


class Lane(Enum):
    """A pool of connections, and how many it may open."""

    MAIN = 64
    EVENTS = 4
    LEASES = 2
    WATCHES = 0  # without limit


def lane_of(request: Request) -> Lane:
    """The lane a plain request travels in, by what it is about."""
    if request.path.startswith("/apis/coordination.k8s.io/"):
        return Lane.LEASES
    return Lane.EVENTS if _EVENTS.match(request.path) else Lane.MAIN


class HttpTransport:
    """A `Transport` onto a server across the network. Make it inside the running loop that uses it.

    Args:
        config: Where the server is and who we are.
        clock: Tells when credentials expire.

    Raises:
        ConfigError: The URL or the certificates cannot be used.
    """

    def __init__(self, config: ServerConfig, *, clock: Clock) -> None:
        self._config, self._clock = config, clock
        self._base = config.server.rstrip("/")
        split = _split(config)
        encoding = "identity" if split.hostname in _LOOPBACK else "gzip"
        self._headers = [*config.headers, ("accept-encoding", encoding)]
        self._prepared: dict[int, tuple[Mapping[str, str], Credential, CIMultiDict[str]]] = {}
        base = URL(self._base, encoded=True)
        self._scheme, self._authority, self._root = base.scheme, base.raw_authority, base.raw_path.rstrip("/")
        self._encrypted = split.scheme == "https"
        self._host, self._port = split.hostname or "", split.port or (443 if self._encrypted else 80)
        self._certificate: ClientCertificate | None = None
        self._authorities = _authorities(config)
        self._trusted, self._distrust = config.ca_data, False
        self._tls = self._tls_for(None)
        self._lanes: dict[Lane, aiohttp.ClientSession] = {}
        self._pools: dict[Lane, ConnectionPool] = {}
        self._heads: dict[int, tuple[Mapping[str, str], Credential, bytes]] = {}
        self._closed = False

    async def request(self, request: Request) -> Response:
        """Send one request and read the whole answer, whatever its status.

        Raises:
            Unreachable: No answer came: refused, reset, timed out, or the server's certificate is not to be trusted.
        """
        credential = await self._config.credentials.current(self._clock)
        response = await self._exchange(request, credential)
        if response.status == 401 and (renewed := await self._renew(credential)):
            return await self._exchange(request, renewed)
        return response

    async def stream(self, request: Request) -> AsyncIterator[bytes]:
        """Open a watch and yield its lines until the server ends it.

        Raises:
            ApiError: The server refused the watch.
            Unreachable: The connection failed or broke off, or the watch fell silent.
        """
        credential = await self._config.credentials.current(self._clock)
        response = await self._open(request, credential)
        if response.status == 401 and (renewed := await self._renew(credential)):
            response.close()
            response = await self._open(request, renewed)
        try:
            if response.status >= 400:
                raise error_from_response(
                    response.status, await self._refusal(request, response), f"watch {request.path}"
                )
            async with aclosing(split_lines(response.content.iter_any(), request)) as lines:
                async for line in lines:
                    yield line
        except (aiohttp.ClientError, OSError) as error:
            raise self._unreachable(request, error) from error
        finally:
            _abandon(response)

    async def close(self) -> None:
        """Close all connections; open watches end."""
        self._closed = True
        await self._close_lanes()

    async def _renew(self, rejected: Credential) -> Credential | None:
        """Another credential, if there can be one."""
        if not rejected.renewable:
            return None
        renewed = await self._config.credentials.current(self._clock, rejected)
        return None if renewed is rejected else renewed

    async def _exchange(self, request: Request, credential: Credential) -> Response:
        seconds = request.timeout_seconds or DEFAULT_TIMEOUT_SECONDS
        try:
            async with asyncio.timeout(seconds):
                if request.method != "GET":
                    return await self._write(request, credential)
                response = await self._send(request, lane_of(request), credential)
                try:
                    body = await response.read()
                finally:
                    response.release()
        except TimeoutError as error:
            raise self._unreachable(request, f"no answer within {seconds:g} s") from error
        except (aiohttp.ClientError, OSError) as error:
            raise self._unreachable(request, error) from error
        return Response(response.status, tuple(response.headers.items()), body)

    async def _open(self, request: Request, credential: Credential) -> aiohttp.ClientResponse:
        async with self._translated(request):
            return await self._send(request, Lane.WATCHES, credential)

    async def _refusal(self, request: Request, response: aiohttp.ClientResponse) -> bytes:
        async with self._translated(request):
            return await response.read()

    @asynccontextmanager
    async def _translated(self, request: Request) -> AsyncIterator[None]:
        """The request's time-out, and aiohttp's exceptions made ours; plain requests do without the context."""
        seconds = request.timeout_seconds or DEFAULT_TIMEOUT_SECONDS
        try:
            async with asyncio.timeout(seconds):
                yield
        except TimeoutError as error:
            raise self._unreachable(request, f"no answer within {seconds:g} s") from error
        except (aiohttp.ClientError, OSError) as error:
            raise self._unreachable(request, error) from error

    async def _send(self, request: Request, lane: Lane, credential: Credential) -> aiohttp.ClientResponse:
        self._look_at_authorities()
        session = self._lanes.get(lane)
        if session is None or self._closed or credential.certificate is not self._certificate:
            session = await self._session(lane, credential)
        return await session.request(
            request.method,
            self._url(request),
            headers=self._headers_of(request, credential),
            data=request.body or None,
            allow_redirects=False,
            server_hostname=self._config.tls_server_name or None,
            ssl=self._tls,
        )

    def _look_at_authorities(self) -> None:
        """Trust whom the file names by now: requests under way go on, others get new connections."""
        if self._authorities is None:
            return
        trusted = self._authorities.current(self._clock, again=self._distrust)
        self._distrust = False
        if trusted is not self._trusted:
            self._trusted = trusted
            self._tls = self._tls_for(self._certificate)
            for pool in self._pools.values():
                pool.use_tls(self._tls if isinstance(self._tls, ssl.SSLContext) else None)

    async def _write(self, request: Request, credential: Credential) -> Response:
        """Send a request whose question and answer are small."""
        self._look_at_authorities()
        lane = lane_of(request)
        pool = self._pools.get(lane)
        if pool is None or self._closed or credential.certificate is not self._certificate:
            pool = await self._pool(lane, credential)
        start = f"{request.method} {self._target(request)} HTTP/1.1\r\n".encode("ascii")
        length = b"content-length: %d\r\n\r\n" % len(request.body)
        return await pool.request(b"".join((start, self._head_of(request, credential), length, request.body)))

    def _head_of(self, request: Request, credential: Credential) -> bytes:
        """The lines of the headers, as `_headers_of` has them, without what is only for this request."""
        known = self._heads.get(id(request.headers))
        if known is not None and known[0] is request.headers and known[1] is credential:
            return known[2]
        named = [*self._headers_of(request, credential).items()]
        headers = [("host", self._authority), *((name, value) for name, value in named if name != "accept-encoding")]
        if any("\r" in value or "\n" in value for _, value in headers):
            raise ConfigError("a header has a line break in it", file=self._config.source, path="headers")
        head = "".join(f"{name}: {value}\r\n" for name, value in headers).encode()
        if len(self._heads) >= _PREPARED:
            self._heads.clear()
        self._heads[id(request.headers)] = (request.headers, credential, head)
        return head

    async def _pool(self, lane: Lane, credential: Credential) -> ConnectionPool:
        await self._as(credential)
        pool = self._pools.get(lane)
        if pool is None:
            tls = self._tls if isinstance(self._tls, ssl.SSLContext) else None
            pool = ConnectionPool(self._host, self._port, tls, self._config.tls_server_name, lane.value)
            self._pools[lane] = pool
        return pool

    def _headers_of(self, request: Request, credential: Credential) -> CIMultiDict[str]:
        """The request's headers and ours, made once for each mapping that callers use again and again."""
        known = self._prepared.get(id(request.headers))
        if known is not None and known[0] is request.headers and known[1] is credential:
            return known[2]
        headers = CIMultiDict([*request.headers.items(), *self._headers])
        if credential.authorization:
            headers.add("authorization", credential.authorization)
        if len(self._prepared) >= _PREPARED:
            self._prepared.clear()
        self._prepared[id(request.headers)] = (request.headers, credential, headers)
        return headers

    def _target(self, request: Request) -> str:
        path = request.path
        if not path.isascii() or not _PLAIN.fullmatch(path):
            path = quote(path, safe=_PATH_CHARACTERS)
        path = self._root + path
        return f"{path}?{urlencode(request.query)}" if request.query else path

    def _url(self, request: Request) -> URL:
        path, _, query = self._target(request).partition("?")
        return URL.build(scheme=self._scheme, authority=self._authority, path=path, query_string=query, encoded=True)

    async def _as(self, credential: Credential) -> None:
        """Show who we are from now on; what was opened as somebody else must not be used again."""
        if self._closed:
            raise Unreachable(f"{self._base}: the transport is closed")
        if credential.certificate != self._certificate:
            await self._close_lanes()
            self._tls, self._certificate = self._tls_for(credential.certificate), credential.certificate

    async def _session(self, lane: Lane, credential: Credential) -> aiohttp.ClientSession:
        await self._as(credential)
        session = self._lanes.get(lane)
        if session is None:
            connector = aiohttp.TCPConnector(limit=lane.value, socket_factory=open_socket)
            session = self._lanes[lane] = aiohttp.ClientSession(
                connector=connector,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=DEFAULT_TIMEOUT_SECONDS),
                cookie_jar=aiohttp.DummyCookieJar(),
                skip_auto_headers=("Content-Type",),
            )
        return session

    async def _close_lanes(self) -> None:
        lanes, self._lanes = self._lanes, {}
        pools, self._pools = self._pools, {}
        for pool in pools.values():
            pool.close()
        await asyncio.sleep(0)  # closed sockets leave the loop in its next turn
        for session in lanes.values():
            await session.close()

    def _tls_for(self, certificate: ClientCertificate | None) -> ssl.SSLContext | bool:
        """What TLS is to check and to show.

        Raises:
            ConfigError: A certificate or key cannot be read.
        """
        if not self._encrypted:
            return True
        config = self._config
        try:
            context = ssl.create_default_context(cadata=self._trusted.decode() if self._trusted else None)
        except (ssl.SSLError, UnicodeDecodeError, ValueError) as error:
            raise ConfigError(
                f"no PEM certificates: {error}", file=config.source, path="certificate-authority"
            ) from error
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # Python 3.13 sets it; clusters' own authorities often fail it
        if config.insecure:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if certificate is not None:
            try:
                certificate.load_into(context)
            except (ssl.SSLError, ValueError) as error:
                message = f"no PEM certificate with its key: {error}"
                raise ConfigError(message, file=config.source, path="client-certificate") from error
        return context

    def _unreachable(self, request: Request, why: object) -> Unreachable:
        self._distrust = self._distrust or isinstance(why, ssl.SSLCertVerificationError)
        if isinstance(why, aiohttp.ClientConnectorError):
            why = why.os_error  # the text of the error itself names a Python object
        text = str(why) or type(why).__name__
        return Unreachable(f"{request.method} {self._base}{request.path}: {text}")


def _abandon(response: aiohttp.ClientResponse) -> None:
    """Close a watch's connection at once: TLS's farewell would wait for events that nobody reads any more."""
    transport = response.connection.transport if response.connection is not None else None
    response.close()
    if transport is not None:
        transport.abort()


def _authorities(config: ServerConfig) -> Rotated[bytes] | None:
    """Whom to trust, as far as that stands in a file."""
    file = config.ca_file
    if file is None:
        return None
    return Rotated(lambda: authorities_in(file, config.source), config.ca_data)


def _split(config: ServerConfig) -> SplitResult:
    """The parts of the server's URL: scheme and host are there, the port is a number."""
    wrong = ConfigError(f"not the URL of a server: {config.server!r}", file=config.source, path="server")
    try:
        split = urlsplit(config.server)
        _ = split.port
    except ValueError as error:
        raise wrong from error
    if split.scheme not in ("http", "https") or not split.hostname:
        raise wrong
    return split
