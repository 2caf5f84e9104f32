"""The HTTP front over real sockets: tokens, TLS, limits, streams that flush, and a clean end."""

import asyncio
import io
import json
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import aiohttp
import pytest

from skysail.api.errors import ConfigError
from skysail.apiserver.authentication import parse_tokens
from skysail.apiserver.certificates import make_serving_certificate
from skysail.apiserver.http import Address, Tls, serve_http
from skysail.apiserver.server import BODY_LIMIT, ApiServer
from skysail.simulator.clock import WallClock

TOKENS = parse_tokens('secret,admin,1,"system:masters"')
MAPS = "/api/v1/namespaces/default/configmaps"


@asynccontextmanager
async def listening(**options: Any) -> AsyncIterator[tuple[ApiServer, Address]]:
    server = ApiServer(clock=WallClock(), rng=Random(1))
    async with server.running(), serve_http(server, tokens=TOKENS, **options) as address:
        yield server, address


def client(address: Address, token: str = "secret", **options: Any) -> aiohttp.ClientSession:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return aiohttp.ClientSession(address.url, headers=headers, timeout=aiohttp.ClientTimeout(total=20), **options)


async def create(session: aiohttp.ClientSession, metadata: dict[str, Any]) -> None:
    async with session.post(MAPS, json={"metadata": metadata}) as response:
        assert response.status == 201


async def test_an_object_is_created_and_read() -> None:
    async with listening() as (_, address), client(address) as session:
        async with session.post(MAPS, json={"metadata": {"name": "a"}, "data": {"k": "ü"}}) as response:
            assert response.status == 201
        async with session.get(f"{MAPS}/a") as response:
            assert (await response.json())["data"] == {"k": "ü"}
            assert response.headers["Cache-Control"] == "no-cache, private"


@pytest.mark.parametrize("token", ["", "wrong"])
async def test_without_a_known_token_it_is_401(token: str) -> None:
    async with listening() as (_, address), client(address, token) as session, session.get(MAPS) as response:
        assert response.status == 401
        assert (await response.json())["reason"] == "Unauthorized"


async def test_escapes_in_paths_and_queries_are_decoded() -> None:
    async with listening() as (_, address), client(address) as session:
        await create(session, {"name": "a", "labels": {"x": "1"}})
        async with session.get(f"{MAPS}?labelSelector=x%20in%20%281%2C2%29") as response:
            assert len((await response.json())["items"]) == 1


async def test_a_watch_flushes_its_head_and_every_event() -> None:
    async with listening() as (server, address), client(address) as session:
        query = {"watch": "1", "resourceVersion": str(server.store.visible)}
        async with session.get(MAPS, params=query) as response:
            assert response.status == 200
            assert response.headers["Transfer-Encoding"] == "chunked"
            for name in ("a", "b"):
                await create(session, {"name": name})
                event = json.loads(await response.content.readline())
                assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", name)


async def test_a_client_that_goes_away_ends_its_watch() -> None:
    async with listening() as (server, address), client(address) as session:
        response = await session.get(MAPS, params={"watch": "1"})
        await _until(lambda: server.watches.count == 1)
        response.close()
        await _until(lambda: server.watches.count == 0)


async def test_leaving_ends_open_watches_cleanly() -> None:
    async with AsyncExitStack() as stack:
        async with listening() as (server, address):
            session = await stack.enter_async_context(client(address))
            response = await stack.enter_async_context(session.get(MAPS, params={"watch": "1"}))
            await _until(lambda: server.watches.count == 1)
        assert await response.content.read() == b""


async def test_leaving_drops_a_client_that_reads_nothing_without_a_word(caplog: pytest.LogCaptureFixture) -> None:
    head = f"GET {MAPS}?watch=1&resourceVersion=0 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer secret\r\n\r\n"
    async with AsyncExitStack() as front:
        server, address = await front.enter_async_context(listening())
        _, writer = await asyncio.open_connection(address.host, address.port, limit=1)
        writer.write(head.encode())
        await _until(lambda: server.watches.count == 1)
        async with client(address) as session:
            for number in range(12):
                body = {"metadata": {"name": f"big-{number}"}, "data": {"k": "x" * 900_000}}
                async with session.post(MAPS, json=body) as response:
                    assert response.status == 201
        async with asyncio.timeout(5):
            await front.aclose()
    writer.close()
    assert caplog.records == []


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_body_over_the_limit_is_413(chunked: bool) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(40):
            yield b" " * (BODY_LIMIT // 32)

    async with listening() as (server, address), client(address) as session:
        body: Any = pieces() if chunked else io.BytesIO(b" " * (BODY_LIMIT + 1))
        try:
            async with session.post(MAPS, data=body) as response:
                assert response.status == 413
        except aiohttp.ClientOSError:
            pass  # the server may close before it has read all
        assert server.store.count(next(r for r in server.store.resources() if r.resource == "namespaces")) == 4


async def test_tls_with_a_certificate_of_our_own(tmp_path: Path) -> None:
    made = make_serving_certificate(("127.0.0.1", "localhost"), datetime.now(UTC))  # noqa: TID251
    tls = Tls(tmp_path / "tls.crt", tmp_path / "tls.key")
    tls.certificate.write_bytes(made.certificate)
    tls.key.write_bytes(made.key)
    trust = ssl.create_default_context(cadata=made.ca.decode())
    async with listening(tls=tls) as (_, address):
        assert address.url.startswith("https://127.0.0.1:")
        async with client(address) as session, session.get("/version", ssl=trust) as response:
            assert (await response.json())["gitVersion"].startswith("v1.36")


async def test_a_certificate_that_is_none_is_refused_by_name(tmp_path: Path) -> None:
    broken = tmp_path / "tls.crt"
    broken.write_text("nonsense")
    with pytest.raises(ConfigError, match=r"tls\.crt"):
        async with listening(tls=Tls(broken, broken)):
            pass


async def test_a_port_in_use_is_refused_by_number() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"cannot listen on 127.0.0.1:{port}"):
            async with listening(port=port):
                pass


async def test_health_is_text() -> None:
    async with listening() as (_, address), client(address) as session, session.get("/readyz") as response:
        assert (response.status, await response.text()) == (200, "ok")


async def _until(condition: Any) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - nobody tells when a socket has been noticed
            await asyncio.sleep(0)
