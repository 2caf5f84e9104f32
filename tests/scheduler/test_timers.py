import asyncio

from skysail.scheduler.timers import FlushTimers
from skysail.simulator.clock import run_virtual, settle


class Queue:
    """Counts flushes."""

    def __init__(self) -> None:
        self.backoff_count = self.sleeping_count = 0
        self.flushed, self.woken = [], []

    def flush_backoff_completed(self, now):
        self.flushed.append(now)
        return 0

    def flush_unschedulable_leftover(self, now):
        self.woken.append(now)
        return 0


def test_while_nobody_waits_the_timers_rest():
    timers, queue = FlushTimers(lambda: 0.0), Queue()
    timers.attach(queue)
    assert timers.flush(5.3) is None


def test_backoffs_are_flushed_at_whole_seconds():
    timers, queue = FlushTimers(lambda: 0.0), Queue()
    timers.attach(queue)
    queue.backoff_count = 1
    assert round(timers.flush(5.25), 6) == 0.75


def test_sleepers_are_looked_at_every_half_minute():
    timers, queue = FlushTimers(lambda: 0.0), Queue()
    timers.attach(queue)
    queue.sleeping_count = 1
    assert timers.flush(10.0) == 30.0
    assert queue.woken == []
    assert timers.flush(40.0) == 30.0
    assert queue.woken == [40.0]


def test_a_pod_that_begins_to_wait_wakes_the_timers():
    async def main(clock):
        timers, queue = FlushTimers(clock.monotonic), Queue()
        timers.attach(queue)
        async with asyncio.TaskGroup() as group:
            task = group.create_task(timers.run())
            await settle()
            assert len(queue.flushed) == 1
            queue.backoff_count = 1
            timers.wake()
            await settle(within=3.0)
            assert len(queue.flushed) >= 4
            queue.backoff_count = 0
            await settle(within=2.0)
            before = len(queue.flushed)
            await settle(within=100.0)
            assert len(queue.flushed) == before
            task.cancel()

    run_virtual(main)
