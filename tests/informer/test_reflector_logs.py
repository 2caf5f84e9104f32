"""What a reflector says in the log, and that it goes on all the same."""

import asyncio

from skysail.api.errors import Forbidden, Unreachable
from skysail.simulator.clock import settle
from tests.informer.reflecting import reflecting


def test_any_other_error_starts_a_new_round_after_a_backoff(caplog):
    async def scenario(collection, store, reflector, clock):
        collection.put("a")
        await asyncio.sleep(2)
        collection.break_watches(Forbidden("no more"))
        await settle()
        assert not reflector.is_healthy
        await settle(within=3)
        assert reflector.is_healthy
        assert store.said[-1] == "replace a"
        assert reflector.value("reflector_failures_total") == 1

    reflecting(scenario)
    assert "server refuses to list or watch" in caplog.text


def complaints(caplog):
    return [record for record in caplog.records if record.levelname == "WARNING"]


def test_a_server_that_was_never_reached_is_complained_of_once(caplog):
    def unreachable(collection):
        refused = Unreachable("connection refused")
        collection.list_faults.extend([refused] * 5)
        collection.watch_faults.extend([refused] * 5)

    async def scenario(collection, store, reflector, clock):
        await asyncio.sleep(5)
        assert [each.getMessage() for each in complaints(caplog)] == ["server cannot be reached, will try again"]
        await asyncio.sleep(300)
        assert reflector.is_healthy
        assert len(complaints(caplog)) == 1

    reflecting(scenario, before=unreachable)


def test_a_server_that_is_lost_is_complained_of_once_each_time_and_a_broken_watch_is_not(caplog):
    async def scenario(collection, store, reflector, clock):
        for lost in range(1, 3):
            collection.put("a")
            await asyncio.sleep(30)
            collection.break_watches(Unreachable("connection reset"))
            await asyncio.sleep(30)
            assert len(complaints(caplog)) == lost - 1
            collection.put("a")
            await asyncio.sleep(1)
            collection.watch_faults.extend([Unreachable("connection refused")] * 4)
            collection.break_watches(Unreachable("connection reset"))
            await asyncio.sleep(300)
            assert reflector.is_healthy
            assert len(complaints(caplog)) == lost

    reflecting(scenario)


def test_a_bug_in_a_round_does_not_kill_the_reflector(caplog):
    def prepare_fails_once(collection):
        watch = collection.watch
        calls = []

        def broken(**options):
            calls.append(1)
            if len(calls) == 1:
                raise ZeroDivisionError("a bug")
            return watch(**options)

        collection.watch = broken

    async def scenario(collection, store, reflector, clock):
        await settle()
        assert not reflector.is_healthy
        await asyncio.sleep(3)
        assert reflector.is_healthy

    reflecting(scenario, before=prepare_fails_once)
    assert "a bug" in caplog.text
