"""Five thousand pods that fit nowhere cost nothing until an event that matters to them: counted, not timed.

Five hundred do for every day; the soak takes all of them.
"""

import os
from collections import Counter

from skysail.api.kinds import NODES, PODS
from skysail.client.inprocess import InProcessTransport
from skysail.simulator.clock import settle
from tests.scheduler.world import ADMIN, FaultyTransport, World, in_world

PODS_WAITING = 5_000 if "SOAK_SEEDS" in os.environ else 500
FIRST_TRY_SECONDS = 60.0


class Counted:
    """Everything that could cost something: calls into plugins, hints asked, pods popped, requests."""

    def __init__(self, scheduler, transport: FaultyTransport) -> None:
        self._scheduler, self._transport = scheduler, transport

    def __call__(self) -> dict[str, int]:
        metrics, statistics = self._scheduler.metrics, self._scheduler.queue.statistics()
        hints = metrics._histograms["queueing_hint_execution_duration_seconds"].values()
        return {
            "plugin calls": sum(metrics._counters["plugin_evaluation_total"].values()),
            "hints": sum(sum(series.counts) for series in hints),
            "pops": statistics.scheduling_cycle,
            "moves": sum(statistics.incoming.values()),
            "requests": len(self._transport.requests),
            "writes": len(self._transport.writes),
        }


async def pods_that_do_not_fit(world: World) -> None:
    for number in range(PODS_WAITING):
        await world.pod(f"big{number}", cpu="16")


@in_world
async def test_what_does_not_matter_to_them_costs_nothing(world: World):
    await world.node("n1")
    await world.node("n2")
    await world.pod("there", cpu="1")
    transport = FaultyTransport(InProcessTransport(world.server, ADMIN))
    async with world.running(scheduler := world.scheduler(transport=transport)):
        await pods_that_do_not_fit(world)
        await settle(within=FIRST_TRY_SECONDS)
        assert scheduler.queue.sleeping_count == PODS_WAITING
        cost = Counted(scheduler, transport)
        before = cost()
        for number in range(20):
            await world.client.patch(NODES, "n1", "", {"metadata": {"annotations": {"seen": str(number)}}})
            ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": f"2026-01-01T00:00:{number:02}Z"}
            await world.client.patch(NODES, "n2", "", {"status": {"conditions": [ready]}}, subresource="status")
            await world.client.patch(PODS, "there", "default", {"metadata": {"annotations": {"seen": str(number)}}})
        await world.pod("theirs", schedulerName="other")
        await settle(within=100.0)
        assert Counter(cost()) - Counter(before) == Counter()


@in_world
async def test_an_event_is_asked_about_once_for_each_and_wakes_only_whom_it_helps(world: World):
    await world.node("n1")
    transport = FaultyTransport(InProcessTransport(world.server, ADMIN))
    async with world.running(scheduler := world.scheduler(transport=transport)):
        await pods_that_do_not_fit(world)
        await settle(within=FIRST_TRY_SECONDS)
        cost = Counted(scheduler, transport)
        before = cost()
        await world.node("still-too-small", cpu="8")
        await settle(within=30.0)
        spent = Counter(cost()) - Counter(before)
        assert spent == Counter(hints=spent["hints"])  # nobody was tried, nothing was written
        assert PODS_WAITING <= spent["hints"] <= 3 * PODS_WAITING
        assert scheduler.queue.sleeping_count == PODS_WAITING


@in_world
async def test_after_five_minutes_all_are_tried_once_more_and_sleep_on(world: World):
    await world.node("n1")
    transport = FaultyTransport(InProcessTransport(world.server, ADMIN))
    async with world.running(scheduler := world.scheduler(transport=transport)):
        await pods_that_do_not_fit(world)
        await settle(within=FIRST_TRY_SECONDS)
        cost = Counted(scheduler, transport)
        before = cost()
        await settle(within=330.0)
        spent = Counter(cost()) - Counter(before)
        assert spent["pops"] == PODS_WAITING
        assert [
            path for _, path in transport.writes[before["writes"] :] if "/pods/" in path
        ] == []  # it says so already
