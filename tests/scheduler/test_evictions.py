"""Preemption at work on the embedded API server, in virtual time."""

import asyncio

from skysail.api.errors import InternalError, Unreachable
from skysail.api.kinds import PODS, PRIORITY_CLASSES
from skysail.client.inprocess import InProcessTransport
from skysail.simulator.clock import settle
from tests.scheduler.world import ADMIN, FaultyTransport, World, in_world


async def important(world: World) -> None:
    metadata = {"name": "important"}
    await world.client.create(
        PRIORITY_CLASSES,
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": metadata, "value": 1000},
    )


async def end(world: World, name: str) -> None:
    """What a kubelet does when the grace period is over."""
    await world.client.delete(PODS, name, "default", grace_period_seconds=0)


@in_world
async def test_an_important_pod_evicts_a_lesser_one_and_takes_its_place(world: World):
    await world.node("n1")
    await important(world)
    async with world.running(world.scheduler()):
        await world.pod("low", cpu="3")
        await settle()
        await world.pod("high", cpu="3", priorityClassName="important")
        await settle()
        low, high = [await world.client.get(PODS, name, "default") for name in ("low", "high")]
        assert low.metadata.deletion_timestamp is not None
        told = next(each for each in low.status.conditions if each.type == "DisruptionTarget")
        assert (told.status, told.reason) == ("True", "PreemptionByScheduler")
        assert told.message == "default-scheduler: preempting to accommodate a higher priority pod"
        assert (high.status.nominated_node_name, high.spec.node_name) == ("n1", "")
        assert ("Normal", "Preempted", f"Preempted by pod {high.uid} on node n1") in await world.events("low")
        await end(world, "low")
        await settle(within=20.0)
        assert await world.node_of("high") == "n1"


@in_world
async def test_while_its_victim_ends_the_preemptor_evicts_nobody_else(world: World):
    await world.node("n1")
    await world.node("n2")
    await important(world)
    async with world.running(world.scheduler()):
        await world.pod("low-1", cpu="3")
        await world.pod("low-2", cpu="3")
        await settle()
        await world.pod("high", cpu="3", priorityClassName="important")
        await settle(within=25.0)
        pods = [await world.client.get(PODS, name, "default") for name in ("low-1", "low-2")]
        assert sum(pod.metadata.deletion_timestamp is not None for pod in pods) == 1


@in_world
async def test_a_failed_eviction_is_tried_again(world: World):
    await world.node("n1")
    await important(world)
    transport = FaultyTransport(InProcessTransport(world.server, ADMIN))
    failures = []

    def fault(request):
        if request.method == "DELETE" and len(failures) < 2:
            failures.append(request.path)
            raise Unreachable("cut")

    transport.fault = fault
    async with world.running(world.scheduler(transport=transport)):
        await world.pod("low", cpu="3")
        await settle()
        await world.pod("high", cpu="3", priorityClassName="important")
        await settle(within=60.0)
        assert len(failures) == 2
        assert (await world.client.get(PODS, "low", "default")).metadata.deletion_timestamp is not None


@in_world
async def test_a_preemptor_waits_for_its_first_victim_also_before_the_server_has_heard_of_its_nomination(world: World):
    for node in ("n1", "n2"):
        await world.node(node)
    await important(world)
    transport = FaultyTransport(InProcessTransport(world.server, ADMIN))
    deleted = []

    def fault(request):
        if request.method == "DELETE":
            deleted.append(request.path)
            if len(deleted) == 2:
                raise Unreachable("cut")
        if request.path.endswith("/high/status"):
            raise Unreachable("cut")

    transport.fault = fault
    async with world.running(world.scheduler(transport=transport)):
        for number in range(4):
            await world.pod(f"low-{number}", cpu="2")
        await settle()
        await world.pod("high", cpu="3", priorityClassName="important")
        await settle(within=5.0)
        pods = [await world.client.get(PODS, f"low-{number}", "default") for number in range(4)]
        assert len({pod.spec.node_name for pod in pods if pod.metadata.deletion_timestamp is not None}) == 1
        assert sum(pod.metadata.deletion_timestamp is not None for pod in pods) == 1


@in_world
async def test_a_nomination_that_arrives_late_does_not_count_when_another_was_made_since(world: World):
    """The first choice fails, the second goes well; the server hears of the first when the second is long made."""
    for number in range(4):
        await world.node(f"n{number}")
    await important(world)
    transport = FaultyTransport(InProcessTransport(world.server, ADMIN))
    deleted, scheduler = [], world.scheduler(transport=transport)

    async def late():
        await asyncio.sleep(10.0)

    def fault(request):
        if request.method == "DELETE":
            deleted.append(request.path)
            if len(deleted) in (1, 3):
                raise InternalError("not well")
        return late() if request.path.endswith("/high/status") else None

    transport.fault = fault
    async with world.running(scheduler):
        for number in range(8):
            await world.pod(f"low-{number}", cpu="2")
        await settle()
        high = await world.pod("high", cpu="3", priorityClassName="important")
        heard = []
        for _ in range(4):
            await settle(within=10.0)
            pods = (await world.client.list_all(PODS, "default")).items
            chosen = {pod.spec.node_name for pod in pods if pod.metadata.deletion_timestamp is not None}
            assert chosen == {scheduler.queue.nominator.node_of(high)}
            heard.append((await world.client.get(PODS, "high", "default")).status.nominated_node_name)
        assert {heard[-1]} == chosen
        assert any(node not in ("", *chosen) for node in heard), "the first choice was not another"


@in_world
async def test_the_server_hears_of_a_nomination_at_the_next_attempt_if_it_did_not_at_the_first(world: World):
    await world.node("n1")
    await important(world)
    transport = FaultyTransport(InProcessTransport(world.server, ADMIN))
    failures = []

    def fault(request):
        if request.path.endswith("/high/status") and not failures:
            failures.append(request.path)
            raise InternalError("not well")

    transport.fault = fault
    async with world.running(world.scheduler(transport=transport)):
        await world.pod("low", cpu="3")
        await world.pod("small", cpu="500m")
        await settle()
        await world.pod("high", cpu="3", priorityClassName="important")
        await settle(within=3.0)
        assert len(failures) == 1
        assert (await world.client.get(PODS, "high", "default")).status.nominated_node_name == ""
        await end(world, "small")
        await settle(within=5.0)
        assert (await world.client.get(PODS, "high", "default")).status.nominated_node_name == "n1"
