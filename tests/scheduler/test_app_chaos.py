"""Whatever goes wrong in whatever order, in the end every pod that fits is bound, once, and all accounts agree."""

import asyncio
import os
import random

import pytest

from skysail.api.errors import InternalError, NotFound, Unreachable
from skysail.api.kinds import NODES, PODS
from skysail.client.inprocess import InProcessTransport
from skysail.simulator.clock import settle
from tests.scheduler.world import ADMIN, FaultyTransport, World, in_world

SEEDS = range(int(os.environ.get("SOAK_SEEDS", "10")))
STEPS = 60


class Chaos:
    """One seeded history."""

    def __init__(self, world: World, seed: int) -> None:
        self.world, self.dice = world, random.Random(seed)
        self.transport = FaultyTransport(InProcessTransport(world.server, ADMIN))
        self.inner = InProcessTransport(world.server, ADMIN)
        self.pods, self.nodes, self.made = [], [], 0
        self.seen: dict[str, set[str]] = {}

    async def follow(self) -> None:
        async for event in self.world.client.watch(PODS, resource_version="0"):
            if event.type != "BOOKMARK" and event.object.spec.node_name:
                self.seen.setdefault(event.object.uid, set()).add(event.object.spec.node_name)

    def fault(self, request):
        roll = self.dice.random()
        if not request.path.endswith(("/binding", "/status")) or roll > 0.4:
            return None
        if roll < 0.1:
            raise Unreachable("reset")
        if roll < 0.2:
            raise InternalError("the server is not well")
        return self.lose_answer(request) if roll < 0.3 else self.late()

    async def lose_answer(self, request):
        await self.inner.request(request)
        raise Unreachable("answer lost")

    async def late(self):
        await asyncio.sleep(self.dice.random() * 5)

    async def step(self) -> None:
        await self.dice.choice([self.add_pod, self.add_pod, self.add_pod, self.add_node, self.delete_pod,
                                self.delete_node, self.cordon, self.ungate, self.wait])()  # fmt: skip

    async def add_pod(self) -> None:
        self.made += 1
        gates = [{"name": "g"}] if self.dice.random() < 0.2 else []
        cpu = self.dice.choice(["100m", "500m", "1500m"])
        await self.world.pod(f"p{self.made}", cpu=cpu, schedulingGates=gates)
        self.pods.append(f"p{self.made}")

    async def add_node(self) -> None:
        self.made += 1
        await self.world.node(f"n{self.made}", cpu="2")
        self.nodes.append(f"n{self.made}")

    async def delete_pod(self) -> None:
        if self.pods:
            name = self.pods.pop(self.dice.randrange(len(self.pods)))
            await self.world.client.delete(PODS, name, "default", grace_period_seconds=0)

    async def delete_node(self) -> None:
        if len(self.nodes) > 1:
            await self.world.client.delete(NODES, self.nodes.pop(self.dice.randrange(len(self.nodes))))

    async def cordon(self) -> None:
        if self.nodes:
            unschedulable = self.dice.random() < 0.5 or None
            await self.world.client.patch(
                NODES, self.dice.choice(self.nodes), "", {"spec": {"unschedulable": unschedulable}}
            )

    async def ungate(self) -> None:
        if self.pods:
            try:
                await self.world.client.patch(
                    PODS, self.dice.choice(self.pods), "default", {"spec": {"schedulingGates": None}}
                )
            except NotFound:
                return

    async def wait(self) -> None:
        await settle(within=self.dice.choice([0.0, 0.5, 3.0, 30.0]))

    async def heal(self) -> None:
        """Faults end, gates open, nodes take pods again, and there is room for all."""
        self.transport.fault = lambda request: None
        for name in self.nodes:
            await self.world.client.patch(NODES, name, "", {"spec": {"unschedulable": None}})
        await self.world.node("roomy", cpu="1000")
        for name in self.pods:
            await self.world.client.patch(PODS, name, "default", {"spec": {"schedulingGates": None}})
        await settle(within=700.0)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_pod_that_fits_is_bound_once_in_the_end(seed):
    @in_world
    async def run(world: World):
        chaos = Chaos(world, seed)
        following = world.group.create_task(chaos.follow())
        for _ in range(3):
            await chaos.add_node()
        chaos.transport.fault = chaos.fault
        for _ in range(3):
            async with world.running(scheduler := world.scheduler(transport=chaos.transport)):
                for _ in range(STEPS // 3):
                    await chaos.step()
                    scheduler.queue.validate()
        async with world.running(scheduler := world.scheduler(transport=chaos.transport)):
            await chaos.heal()
            assert not scheduler.compare_caches()
            scheduler.queue.validate()
            statistics = scheduler.queue.statistics()
            assert (len(scheduler.queue), statistics.in_flight, statistics.in_flight_events) == (0, 0, 0)
            assert scheduler.cache.statistics().assumed_pods == 0
        for name in chaos.pods:
            assert await world.node_of(name), name
        assert all(len(nodes) == 1 for nodes in chaos.seen.values())
        following.cancel()

    run()
