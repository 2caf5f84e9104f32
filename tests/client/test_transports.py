"""What both transports must do alike: one server, once called in process and once over a real socket."""

import asyncio
from contextlib import aclosing, asynccontextmanager

import pytest
from aiohttp.test_utils import TestServer

from skysail.api.errors import Expired, Forbidden, Unreachable
from skysail.api.ports import Request, User
from skysail.client.config import ServerConfig
from skysail.client.http import HttpTransport
from skysail.client.inprocess import InProcessTransport
from skysail.simulator.clock import WallClock
from tests.client.fakes import FakeServer, answer, as_application, event, for_ever, refusal, watch


@asynccontextmanager
async def in_process(server):
    transport = InProcessTransport(server, User("tester"))
    yield transport
    await transport.close()


@asynccontextmanager
async def over_http(server):
    async with TestServer(as_application(server)) as listening:
        transport = HttpTransport(ServerConfig(str(listening.make_url(""))), clock=WallClock())
        yield transport
        await transport.close()


@pytest.fixture(params=[in_process, over_http], ids=["in process", "over http"])
async def connection(request):
    """A scripted server, and a transport onto it."""
    server = FakeServer()
    async with request.param(server) as transport:
        yield server, transport


def get(path, *query, **more):
    return Request("GET", path, query, **more)


async def lines_of(transport, request):
    async with aclosing(transport.stream(request)) as lines:
        return [line async for line in lines]


async def test_a_request_arrives_as_sent_and_its_answer_comes_back(connection):
    server, transport = connection
    server.on("POST /api/v1/x", answer({"a": "ü"}, 201, (("Warning", '299 - "old"'), ("Warning", '299 - "older"'))))
    headers = {"content-type": "application/json", "user-agent": "me"}
    response = await transport.request(Request("POST", "/api/v1/x", (("b", "1"), ("b", "2")), headers, b"body"))
    assert (response.status, response.body) == (201, b'{"a":"\xc3\xbc"}')
    assert [value for name, value in response.headers if name == "Warning"] == ['299 - "old"', '299 - "older"']
    got = server.last
    assert (got.method, got.path, got.query, got.body) == ("POST", "/api/v1/x", (("b", "1"), ("b", "2")), b"body")
    assert headers.items() <= dict(got.headers).items()


@pytest.mark.parametrize("text", ["a b", "a+b&c=d", "100%", "ü/?#", "system:node:x", "a,b in (c,d)"])
async def test_any_text_survives_in_path_and_query(connection, text):
    server, transport = connection
    await transport.request(get(f"/api/{text}", ("q", text), (text, "v")))
    assert server.last.path == f"/api/{text}"
    assert server.last.query == (("q", text), (text, "v"))


async def test_a_failure_is_an_answer_for_a_plain_request(connection):
    server, transport = connection
    server.on("GET /x", refusal(409, "Conflict"))
    assert (await transport.request(get("/x"))).status == 409


async def test_a_large_body_arrives_whole(connection):
    server, transport = connection
    server.on("GET /x", answer(b"x" * 5_000_000))
    assert len((await transport.request(get("/x"))).body) == 5_000_000


async def test_a_stream_comes_line_by_line_however_its_bytes_are_cut(connection):
    server, transport = connection
    long = b"y" * 300_000
    server.on("GET /w", watch(b"one\ntw", b"o\n\nthree\n", long[:1000], long[1000:], b"\n"))
    assert await lines_of(transport, get("/w")) == [b"one", b"two", b"three", long]


async def test_a_refused_stream_raises_the_servers_error(connection):
    server, transport = connection
    server.on("GET /w", refusal(410, "Expired", "too old"))
    with pytest.raises(Expired, match="too old"):
        await lines_of(transport, get("/w"))
    server.on("GET /w", refusal(403, "Forbidden"))
    with pytest.raises(Forbidden):
        await lines_of(transport, get("/w"))


async def test_a_stream_that_breaks_off_in_a_line_is_a_lost_connection(connection):
    server, transport = connection
    server.on("GET /w", watch(b"one\n", b"tw"))
    with pytest.raises(Unreachable, match="in the middle of an event"):
        await lines_of(transport, get("/w"))


async def test_events_arrive_while_the_stream_stays_open_and_closing_it_ends_it(connection):
    server, transport = connection
    ended = asyncio.Event()

    async def until_closed():
        try:
            for _ in range(10_000):
                await asyncio.sleep(0.001)
                yield b"tick\n"
        finally:
            ended.set()

    server.on("GET /w", lambda: answer(stream=until_closed()))
    async with aclosing(transport.stream(get("/w"))) as lines:
        assert await anext(lines) == b"tick"
    async with asyncio.timeout(10):
        await ended.wait()


async def test_a_request_times_out(connection):
    server, transport = connection
    server.on("GET /x", lambda: for_ever())
    with pytest.raises(Unreachable, match=r"GET .*/x: no answer within 0\.01 s"):
        await transport.request(get("/x", timeout_seconds=0.01))


async def test_opening_a_stream_times_out(connection):
    server, transport = connection
    server.on("GET /w", lambda: for_ever())
    with pytest.raises(Unreachable, match="no answer within"):
        await lines_of(transport, get("/w", timeout_seconds=0.01))


async def test_a_silent_watch_is_given_up(connection, monkeypatch):
    server, transport = connection
    monkeypatch.setattr("skysail.client.deadlines.BOOKMARK_SECONDS", 0.02)
    server.on("GET /w", watch(event("ADDED", {}), then=for_ever))
    with pytest.raises(Unreachable, match="fallen silent"):
        await lines_of(transport, get("/w", ("allowWatchBookmarks", "true")))


async def test_a_watch_that_outlives_its_agreed_end_is_given_up(connection, monkeypatch):
    server, transport = connection
    monkeypatch.setattr("skysail.client.deadlines.GRACE_SECONDS", -0.98)
    server.on("GET /w", watch(then=for_ever))
    with pytest.raises(Unreachable, match="fallen silent"):
        await lines_of(transport, get("/w", ("timeoutSeconds", "1")))


async def test_a_closed_transport_refuses_to_work(connection):
    _, transport = connection
    await transport.close()
    await transport.close()
    with pytest.raises(Unreachable, match="closed"):
        await transport.request(get("/x"))
    with pytest.raises(Unreachable, match="closed"):
        await lines_of(transport, get("/w"))
