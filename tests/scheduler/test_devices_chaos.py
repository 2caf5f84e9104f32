"""Whatever goes wrong while devices are allocated, no device is given twice, and every pod that fits gets its own."""

import asyncio
import os
import random
from collections import Counter

import pytest

from skysail.api.errors import InternalError, Unreachable
from skysail.api.kinds import PODS, RESOURCE_CLAIMS
from skysail.client.inprocess import InProcessTransport
from skysail.simulator.clock import settle
from tests.scheduler.test_devices_at_work import claim, device_class, devices, pod_with
from tests.scheduler.world import ADMIN, FaultyTransport, World, in_world

SEEDS = range(int(os.environ.get("SOAK_SEEDS", "10")))
NODES, DEVICES_A_NODE, PODS_MADE = 3, 3, 8


class Faults:
    """Requests about claims, conditions and bindings that fail, come late, or whose answers are lost."""

    def __init__(self, world: World, seed: int) -> None:
        self.dice = random.Random(seed)
        self.inner = InProcessTransport(world.server, ADMIN)
        self.transport = FaultyTransport(self.inner)
        self.transport.fault = self.fault

    def fault(self, request):
        roll = self.dice.random()
        concerned = "resourceclaims" in request.path or request.path.endswith(("/binding", "/status"))
        if request.method == "GET" or not concerned or roll > 0.4:
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


async def given(world: World) -> Counter:
    claims = (await world.client.list_all(RESOURCE_CLAIMS, "default")).items
    return Counter(
        (result.pool, result.device)
        for each in claims
        if each.status.allocation is not None
        for result in each.status.allocation.devices.results
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_no_device_is_given_twice_and_every_pod_is_bound_in_the_end(seed):
    @in_world
    async def run(world: World):
        faults = Faults(world, seed)
        await device_class(world)
        for place in range(NODES):
            await world.node(f"n{place}")
            await devices(world, f"n{place}", *(f"g{each}" for each in range(DEVICES_A_NODE)))
        for part in range(2):
            async with world.running(world.scheduler(transport=faults.transport)):
                for number in range(part * PODS_MADE // 2, (part + 1) * PODS_MADE // 2):
                    await claim(world, f"c{number}")
                    await pod_with(world, f"p{number}", f"c{number}")
                    await settle(within=faults.dice.choice([0.0, 0.5, 3.0]))
                    assert all(count == 1 for count in (await given(world)).values())
        faults.transport.fault = lambda request: None
        async with world.running(world.scheduler(transport=faults.transport)):
            await settle(within=900.0)
        assert sum((await given(world)).values()) == PODS_MADE
        assert all(count == 1 for count in (await given(world)).values())
        for number in range(PODS_MADE):
            pod = await world.client.get(PODS, f"p{number}", "default")
            found = await world.client.get(RESOURCE_CLAIMS, f"c{number}", "default")
            assert pod.spec.node_name == found.status.allocation.devices.results[0].pool
            assert [each.uid for each in found.status.reserved_for] == [pod.uid]

    run()
