"""A day in the life of an informer whose server and connection fail at random, on virtual time.

Whatever happened, in the end the cache equals the server, and every handler was told a history that makes sense.
"""

import asyncio
import os
import random

import pytest

from skysail.api.kinds import CONFIGMAPS
from skysail.apiserver.authentication import ADMIN
from skysail.client.api_client import ApiClient
from skysail.client.inprocess import InProcessTransport
from skysail.informer import ClientSource, Scope, SharedInformer, key_of, version_of
from skysail.simulator.clock import run_virtual
from skysail.testing import Chaos, Faults
from skysail.testing.cluster import Cluster
from tests.informer.collection import Story

SEEDS = range(int(os.environ.get("SOAK_SEEDS", "10")))
OBJECTS = 2_000
HOURS = 24


class Writer:
    """Changes objects on the server, whether or not the informer can reach it."""

    def __init__(self, cluster, rng):
        transport = InProcessTransport(cluster.server, ADMIN)
        self.client = ApiClient(transport, user_agent="writer", clock=cluster.clock, rng=rng)
        self.rng = rng
        self.alive: list[str] = []
        self.made = 0

    async def create(self):
        name = f"cm-{self.made}"
        self.made += 1
        await self.client.create(CONFIGMAPS, {"metadata": {"name": name}, "data": {"n": "0"}}, "default")
        self.alive.append(name)

    async def change(self):
        index = self.rng.randrange(len(self.alive))
        name = self.alive[index]
        if self.rng.random() < 0.6:
            patch = {"data": {"n": str(self.rng.random())}}
            await self.client.patch(CONFIGMAPS, name, "default", patch)
            return
        self.alive[index] = self.alive[-1]
        self.alive.pop()
        await self.client.delete(CONFIGMAPS, name, "default")
        if self.rng.random() < 0.5:
            await self.client.create(CONFIGMAPS, {"metadata": {"name": name}}, "default")
            self.alive.append(name)
        else:
            await self.create()


async def break_something(cluster, faults: Faults, rng):
    """One random fault, for a random while."""
    seconds = rng.choice((1, 20, 200, 2000))
    match rng.randrange(7):
        case 0:
            faults.drop_watches()
        case 1:
            faults.end_watches()
        case 2:
            faults.expire_watches()
        case 3:
            faults.duplicate_events(times=5)
        case 4:
            cluster.stop_apiserver()
            await asyncio.sleep(seconds)
            cluster.start_apiserver()
        case 5:
            with faults.partition():
                await asyncio.sleep(seconds)
        case 6:
            faults.chaos = Chaos(
                refuse=0.3, lose_request=0.2, lose_answer=0.1, drop_watch=0.05, expire_watch=0.3, delay=0.2
            )
            await asyncio.sleep(seconds)
            faults.chaos = Chaos()


async def live(cluster, faults, seed):
    rng = random.Random(seed)
    writer = Writer(cluster, rng)
    for _ in range(OBJECTS):
        await writer.create()
    end = cluster.clock.monotonic() + HOURS * 3600
    async with asyncio.TaskGroup() as group:

        async def write():
            while cluster.clock.monotonic() < end:
                await asyncio.sleep(rng.expovariate(1 / 300))
                for _ in range(rng.choice((1, 1, 1, 20))):
                    await writer.change()

        async def harm():
            while cluster.clock.monotonic() < end:
                await asyncio.sleep(rng.expovariate(1 / 2000))
                await break_something(cluster, faults, rng)

        group.create_task(write())
        group.create_task(harm())


@pytest.mark.parametrize("seed", SEEDS)
def test_a_day_of_random_faults_leaves_the_cache_equal_to_the_server(seed):
    async def main(clock):
        async with Cluster(seed=seed) as cluster:
            stories = [Story(), Story()]
            informers = []

            async def run(client):
                source = ClientSource(client, Scope(CONFIGMAPS, "default"))
                informer = SharedInformer(source, clock=cluster.clock, rng=random.Random(seed), name="soak")
                informer.add_handler(stories[0])
                informer.add_handler(stories[1], resync_seconds=3600)
                informers.append(informer)
                await informer.run()

            component = await cluster.run("informer", run)
            await live(cluster, component.faults, seed)
            component.faults.clear()
            await cluster.advance(900)
            (informer,) = informers
            server = {key_of(obj): version_of(obj) for obj in (await cluster.client.list(CONFIGMAPS, "default")).items}
            assert {key_of(obj): version_of(obj) for obj in informer.indexer} == server
            for story in stories:
                assert story.faults == []
                assert story.known == server
            assert component.faults.struck > 5

    run_virtual(main)
