"""Opened to the network, the scheduler answers over TLS, and only whoever shows the token; over a real socket."""

import asyncio
import random
import ssl
from pathlib import Path

import aiohttp

from skysail.apiserver.certificates import make_serving_certificate
from skysail.apiserver.server import ApiServer
from skysail.scheduler.serving import ServingOptions, serving_scheduler
from skysail.simulator.clock import WallClock
from tests.scheduler.world import World


def test_with_a_certificate_and_a_token_it_answers_over_tls_and_only_who_shows_the_token(tmp_path: Path) -> None:
    async def main() -> None:
        clock = WallClock()
        made = make_serving_certificate(("127.0.0.1",), clock.now())
        (tmp_path / "tls.crt").write_bytes(made.certificate)
        (tmp_path / "tls.key").write_bytes(made.key)
        trusting = ssl.create_default_context(cadata=made.ca.decode())
        options = ServingOptions("127.0.0.1", 0, tmp_path / "tls.crt", tmp_path / "tls.key", "secret")
        async with asyncio.TaskGroup() as group:
            world = World(ApiServer(clock=clock, rng=random.Random(0)), clock, group)
            async with serving_scheduler(world.scheduler(), options) as url, aiohttp.ClientSession() as session:
                assert url.startswith("https://127.0.0.1:")
                answers = {}
                for name, headers in (("nobody", {}), ("us", {"authorization": "Bearer secret"})):
                    for path in ("/livez", "/metrics"):
                        async with session.get(f"{url}{path}", ssl=trusting, headers=headers) as response:
                            answers[name, path] = response.status
        assert answers == {
            ("nobody", "/livez"): 200, ("nobody", "/metrics"): 401, ("us", "/livez"): 200, ("us", "/metrics"): 200,
        }  # fmt: skip

    asyncio.run(main())
