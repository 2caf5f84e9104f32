import asyncio
import threading
from datetime import UTC, datetime, timedelta

import pytest

from skysail.simulator import clock as clock_module
from skysail.simulator.clock import (
    Deadlock,
    Livelock,
    LoopClock,
    NotInVirtualTime,
    WallClock,
    run_virtual,
    settle,
)


def test_a_day_passes_without_waiting():
    async def main(clock):
        before = clock.now()
        await asyncio.sleep(86_400)
        return clock.now() - before, clock.monotonic()

    assert run_virtual(main) == (timedelta(days=1), 86_400.0)


def test_the_clock_starts_where_told_and_speaks_utc():
    start = datetime.fromisoformat("2030-06-01T02:00:00+02:00")

    async def main(clock):
        await asyncio.sleep(1.5)
        return clock.now()

    assert run_virtual(main, start=start) == datetime(2030, 6, 1, 0, 0, 1, 500_000, tzinfo=UTC)
    with pytest.raises(ValueError, match="time zone"):
        run_virtual(main, start=datetime(2030, 1, 1))  # noqa: DTZ001


def test_time_stands_still_while_anything_can_run():
    async def main(clock):
        for _ in range(1_000):
            await asyncio.sleep(0)
        return clock.monotonic()

    assert run_virtual(main) == 0.0


def test_timers_of_one_instant_fire_in_the_order_they_were_made():
    async def main():
        loop, fired = asyncio.get_running_loop(), []
        for number in range(50):
            loop.call_at(7.0, fired.append, number)
        await asyncio.sleep(8)
        return fired

    assert run_virtual(main()) == list(range(50))


@pytest.mark.parametrize("base", [0.0, 3e7, 3e9])
def test_timers_fire_however_large_the_clock_has_grown(base):
    async def main(clock):
        await asyncio.sleep(base)
        await asyncio.sleep(1e-9)
        await asyncio.sleep(0.1)
        return clock.monotonic()

    assert run_virtual(main) == pytest.approx(base + 0.1)


def test_a_cancelled_timer_does_not_pull_the_clock_forward():
    async def main(clock):
        async with asyncio.timeout(3_600):
            await asyncio.sleep(1)
        for _ in range(300):
            asyncio.get_running_loop().call_later(7_200, print).cancel()
        await asyncio.sleep(10)
        return clock.monotonic()

    assert run_virtual(main) == 11.0


def test_timeouts_expire_in_virtual_time():
    async def main(clock):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(300):
                await asyncio.Event().wait()
        return clock.monotonic()

    assert run_virtual(main) == 300.0


def test_the_same_program_repeats_exactly():
    async def main(clock):
        log = []

        async def worker(number):
            for turn in range(5):
                await asyncio.sleep((number * 7 + turn * 3) % 4)
                log.append((clock.monotonic(), number, turn))

        async with asyncio.TaskGroup() as group:
            for number in range(6):
                group.create_task(worker(number))
        return log

    assert run_virtual(main) == run_virtual(main)


def test_a_deadlock_names_the_tasks_that_wait():
    async def wait_for_ever():
        await asyncio.Event().wait()

    async def main():
        async with asyncio.TaskGroup() as group:
            group.create_task(wait_for_ever(), name="the-lost-one")

    with pytest.raises(Deadlock, match=r"the-lost-one: .*wait_for_ever, waiting at .*test_clock\.py:\d+"):
        run_virtual(main())


def test_an_instant_that_never_ends_is_reported(monkeypatch):
    monkeypatch.setattr(clock_module, "MAX_TURNS_PER_INSTANT", 1_000)

    async def spin():
        while True:  # noqa: ASYNC110 - this is the fault
            await asyncio.sleep(0)

    with pytest.raises(Livelock, match="spin"):
        run_virtual(spin())


def test_many_turns_are_fine_as_long_as_time_moves(monkeypatch):
    monkeypatch.setattr(clock_module, "MAX_TURNS_PER_INSTANT", 10)

    async def tick():
        for _ in range(100):
            await asyncio.sleep(1)

    run_virtual(tick())


@pytest.mark.parametrize(
    "use",
    [
        lambda loop: asyncio.to_thread(print),
        lambda loop: asyncio.open_connection("127.0.0.1", 1),
        lambda loop: asyncio.create_subprocess_exec("true"),
        lambda loop: loop.create_server(asyncio.Protocol, "127.0.0.1", 0),
        lambda loop: loop.getaddrinfo("localhost", 1),
    ],
    ids=["thread", "socket", "subprocess", "server", "resolver"],
)
def test_the_outside_world_is_refused_with_a_clear_error(use):
    async def main():
        await use(asyncio.get_running_loop())

    with pytest.raises(NotInVirtualTime, match="do not exist in virtual time"):
        run_virtual(main())


def test_settle_ends_when_nothing_is_left_at_this_instant():
    async def main(clock):
        steps = []

        async def chain(event):
            for number in range(5):
                await asyncio.sleep(0)
                steps.append(number)
            await event.wait()

        event = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(chain(event))
            asyncio.get_running_loop().call_later(0.001, event.set)
            await settle()
            assert (steps, clock.monotonic(), event.is_set()) == ([0, 1, 2, 3, 4], 0.0, False)

    run_virtual(main)


def test_settle_lets_timers_fire_up_to_its_horizon_and_not_beyond():
    async def main(clock):
        loop, fired = asyncio.get_running_loop(), []
        for when in (1.0, 5.0, 5.1):
            loop.call_at(when, fired.append, when)
        await settle(5)
        return fired, clock.monotonic()

    assert run_virtual(main) == ([1.0, 5.0], 5.0)


def test_settle_needs_no_timer_and_may_be_abandoned():
    async def main():
        await settle(60)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await settle(10)
        await settle()

    run_virtual(main())


async def test_a_real_loop_cannot_settle():
    with pytest.raises(TypeError, match="VirtualTimeLoop"):
        await settle()


async def test_a_loop_clock_follows_a_real_loop():
    loop = asyncio.get_running_loop()
    clock = LoopClock(loop, datetime(2026, 1, 1, tzinfo=UTC))
    before = clock.monotonic()
    await asyncio.sleep(0)
    assert before <= clock.monotonic() <= loop.time()
    assert clock.now() >= datetime(2026, 1, 1, tzinfo=UTC)


def test_the_wall_clock_is_aware_and_never_goes_back():
    clock = WallClock()
    first = clock.monotonic()
    assert clock.monotonic() >= first
    assert clock.now().tzinfo is UTC


def test_an_error_in_the_program_comes_out_and_cancels_the_rest():
    cancelled = threading.Event()

    async def victim():
        try:
            await asyncio.sleep(1e9)
        finally:
            cancelled.set()

    async def main():
        async with asyncio.TaskGroup() as group:
            group.create_task(victim())
            await asyncio.sleep(1)
            raise KeyError("boom")

    with pytest.raises(ExceptionGroup) as raised:
        run_virtual(main())
    assert raised.group_contains(KeyError)
    assert cancelled.is_set()
