"""The queue to await on, in virtual time."""

import asyncio

import pytest

from skysail.simulator.clock import run_virtual, settle
from skysail.workqueue import AsyncWorkQueue, ItemExponentialLimiter, QueueShutDown


def in_virtual_time(scenario):
    async def main(clock):
        await scenario(AsyncWorkQueue(clock, limiter=ItemExponentialLimiter()), clock)

    run_virtual(main)


def test_a_waiting_worker_gets_what_is_added():
    async def scenario(queue, clock):
        async with asyncio.TaskGroup() as group:
            worker = group.create_task(queue.get())
            await settle()
            assert not worker.done()
            queue.add("a")
        assert worker.result() == "a"

    in_virtual_time(scenario)


def test_a_delayed_item_wakes_a_worker_exactly_when_it_is_due():
    async def scenario(queue, clock):
        queue.add_after("late", 20)
        queue.add_after("early", 5)
        queue.add_after("early", 7)
        assert queue.delayed() == 2
        assert await queue.get() == "early"
        assert clock.monotonic() == pytest.approx(5)
        assert await queue.get() == "late"
        assert clock.monotonic() == pytest.approx(20)

    in_virtual_time(scenario)


def test_many_workers_share_the_items_and_never_one_item():
    async def scenario(queue, clock):
        in_work, seen = set(), []

        async def work():
            while True:
                try:
                    item = await queue.get()
                except QueueShutDown:
                    return
                assert item not in in_work
                in_work.add(item)
                await asyncio.sleep(1)
                in_work.remove(item)
                seen.append(item)
                queue.done(item)

        async with asyncio.TaskGroup() as group:
            for _ in range(4):
                group.create_task(work())
            for turn in range(3):
                for item in range(8):
                    queue.add(item)
                await asyncio.sleep(0.5 + turn)
            await queue.shut_down_with_drain()
        assert sorted(set(seen)) == list(range(8))
        assert len(seen) <= 24

    in_virtual_time(scenario)


def test_a_cancelled_worker_passes_its_wake_up_on():
    async def scenario(queue, clock):
        async with asyncio.TaskGroup() as group:
            first, second = group.create_task(queue.get()), group.create_task(queue.get())
            await settle()
            queue.add("a")
            first.cancel()
        assert second.result() == "a"

    in_virtual_time(scenario)


def test_shut_down_ends_waiting_workers_after_what_waits_is_handed_out():
    async def scenario(queue, clock):
        queue.add("a")
        queue.shut_down()
        assert await queue.get() == "a"
        with pytest.raises(QueueShutDown):
            await queue.get()

    in_virtual_time(scenario)


def test_drain_waits_for_the_worker():
    async def scenario(queue, clock):
        queue.add("a")
        item = await queue.get()
        async with asyncio.TaskGroup() as group:
            draining = group.create_task(queue.shut_down_with_drain())
            await asyncio.sleep(3)
            assert not draining.done()
            queue.done(item)
        assert queue.shutting_down

    in_virtual_time(scenario)


def test_rate_limited_items_come_back_after_growing_delays():
    async def scenario(queue, clock):
        times = []
        for _ in range(3):
            queue.add_rate_limited("a")
            item = await queue.get()
            times.append(clock.monotonic())
            queue.done(item)
        assert times == pytest.approx([0.005, 0.015, 0.035])
        assert queue.num_requeues("a") == 3
        queue.forget("a")
        assert queue.num_requeues("a") == 0

    in_virtual_time(scenario)
