"""A watch that is left while much of it is unread leaves no socket behind, though its server goes on sending."""

import asyncio
import os

from aiohttp import web

from skysail.api.ports import Request
from tests.client.test_http import connected, listening
from tests.client.test_rotation import World


def sockets() -> int:
    """Sockets of this process."""
    found = 0
    for each in os.listdir("/proc/self/fd"):
        try:
            found += os.readlink(f"/proc/self/fd/{each}").startswith("socket:")
        except OSError:
            continue
    return found


async def test_an_abandoned_watch_over_tls_leaves_no_socket(tmp_path):
    async def flood(http):
        response = web.StreamResponse()
        await response.prepare(http)
        while True:
            await response.write(b"x" * 100_000 + b"\n")

    world = World(tmp_path)
    async with listening(flood, world.serving()) as url:
        before = sockets()
        async with connected(url, ca_data=world.authority[0]) as transport:
            for _ in range(3):
                watch = transport.stream(Request("GET", "/watch"))
                await anext(watch)
                await asyncio.sleep(0.05)  # the flood fills every buffer on the way
                await watch.aclose()
        await asyncio.sleep(0.05)
        assert sockets() == before
