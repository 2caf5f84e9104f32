"""The reflector against everything a server can do to it."""

import asyncio

import pytest

from skysail.api.errors import (
    Expired,
    InternalError,
    ServerTimeout,
    Status,
    StatusCause,
    StatusDetails,
    TooManyRequests,
    Unreachable,
)
from skysail.informer import ReflectorSettings
from skysail.simulator.clock import settle
from tests.informer.reflecting import reflecting

LISTS_ONLY = ReflectorSettings(use_watch_list=False)


def test_the_initial_list_is_streamed_and_the_same_stream_goes_on():
    async def scenario(collection, store, reflector, clock):
        await settle()
        collection.put("c")
        collection.bookmark()
        await settle()
        assert list(store.said) == ["replace a b", "add c", f"bookmark {collection.version}"]
        assert collection.requests == ["watch rv='' initial=True"]
        assert reflector.is_healthy

    reflecting(scenario, before=lambda collection: (collection.put("a"), collection.put("b")))


def test_a_server_without_watch_list_is_asked_once_and_then_listed():
    def old_server(collection):
        collection.knows_watch_list = False
        collection.put("a")

    async def scenario(collection, store, reflector, clock):
        await settle()
        collection.put("b")
        await settle()
        assert list(store.said) == ["replace a", "add b"]
        collection.compact()
        collection.put("c")
        collection.compact()
        collection.break_watches(Expired("gone"))
        await settle(within=5)
        assert collection.requests[:3] == [
            "watch rv='' initial=True",
            "list rv='0' limit=500 continue=''",
            "watch rv='2' initial=False",
        ]
        assert collection.count("watch rv='' initial=True") == 1

    reflecting(scenario, before=old_server)


def test_a_server_that_ignores_the_wish_for_initial_events_is_noticed_by_its_silence():
    def deaf(collection):
        collection.ignores_initial_events = True
        collection.put("a")

    async def scenario(collection, store, reflector, clock):
        await asyncio.sleep(60)
        assert list(store.said) == ["replace a"]
        assert collection.count("list") == 1

    reflecting(scenario, before=deaf)


def test_a_failed_watch_list_falls_back_to_lists_for_this_round_only():
    def failing(collection):
        collection.put("a")
        collection.watch_faults.append(InternalError("boom"))

    async def scenario(collection, store, reflector, clock):
        await settle()
        assert list(store.said) == ["replace a"]
        assert collection.count("list") == 1
        collection.break_watches(InternalError("boom"))
        await settle(within=5)
        assert collection.requests[-1] == "watch rv='2' initial=True"

    reflecting(scenario, before=failing)


def test_lists_are_paged_and_watched_from_the_version_of_the_last_page():
    def many(collection):
        for number in range(25):
            collection.put(f"p{number:02}")

    async def scenario(collection, store, reflector, clock):
        await settle()
        assert collection.requests == [
            "list rv='0' limit=10 continue=''",
            "list rv='' limit=10 continue='10'",
            "list rv='' limit=10 continue='20'",
            f"watch rv='{collection.version}' initial=False",
        ]
        assert len(store.said[0].split()) == 26

    reflecting(scenario, before=many, settings=ReflectorSettings(use_watch_list=False, page_size=10))


def test_a_continue_token_that_expires_falls_back_to_one_full_list():
    def many(collection):
        for number in range(25):
            collection.put(f"p{number:02}")
        lists = collection.list

        async def list_once_expired(*, resource_version, limit, continue_token):
            if continue_token:
                raise Expired("the provided continue parameter is too old")
            return await lists(resource_version=resource_version, limit=limit, continue_token=continue_token)

        collection.list = list_once_expired

    async def scenario(collection, store, reflector, clock):
        await settle()
        assert collection.requests[:2] == ["list rv='0' limit=10 continue=''", "list rv='0' limit=0 continue=''"]
        assert len(store.said[0].split()) == 26

    reflecting(scenario, before=many, settings=ReflectorSettings(use_watch_list=False, page_size=10))


def test_a_relist_asks_for_the_last_version_without_paging():
    async def scenario(collection, store, reflector, clock):
        collection.put("a")
        await settle()
        collection.break_watches(InternalError("boom"))
        await settle(within=3)
        assert collection.requests[2] == "list rv='2' limit=0 continue=''"

    reflecting(scenario, settings=LISTS_ONLY)


def expire_by_event(collection):
    collection.break_watches(Expired("too old resource version"))


def expire_by_status(collection):
    collection.watch_faults.append(Expired("too old resource version"))
    collection.break_watches()


@pytest.mark.parametrize("expire", [expire_by_event, expire_by_status])
def test_an_expired_version_leads_to_a_quorum_list(expire):
    async def scenario(collection, store, reflector, clock):
        collection.put("a")
        await asyncio.sleep(2)
        expire(collection)
        await settle(within=3)
        assert collection.requests[-2:] == ["list rv='' limit=500 continue=''", "watch rv='2' initial=False"]
        assert list(store.said) == ["replace a", "replace a"]

    reflecting(scenario, settings=LISTS_ONLY)


@pytest.mark.parametrize("expire", [expire_by_event, expire_by_status])
def test_an_expired_version_streams_the_most_recent_list(expire):
    async def scenario(collection, store, reflector, clock):
        collection.put("a")
        await asyncio.sleep(2)
        expire(collection)
        await settle(within=3)
        assert collection.requests[-1] == "watch rv='' initial=True"
        assert list(store.said) == ["replace a", "replace a"]

    reflecting(scenario)


TOO_LARGE = StatusDetails(causes=(StatusCause(reason="ResourceVersionTooLarge"),))


@pytest.mark.parametrize("too_large", [
    ServerTimeout(Status(reason="Timeout", details=TOO_LARGE)),
    ServerTimeout(Status(reason="Timeout", message="Too large resource version: 9, current: 2")),
    Expired("gone"),
])  # fmt: skip
def test_a_version_the_server_cannot_serve_is_listed_again_without_one_at_once(too_large):
    async def scenario(collection, store, reflector, clock):
        collection.put("a")
        await settle()
        collection.list_faults.append(too_large)
        collection.break_watches(InternalError("boom"))
        await settle(within=3)
        assert collection.requests[2:4] == ["list rv='2' limit=0 continue=''", "list rv='' limit=500 continue=''"]
        assert store.said[-1] == "replace a"

    reflecting(scenario, settings=LISTS_ONLY)


@pytest.mark.parametrize("settings", [None, LISTS_ONLY], ids=["watch list", "lists"])
def test_a_410_that_persists_backs_off(settings):
    async def scenario(collection, store, reflector, clock):
        for _ in range(500):
            collection.list_faults.append(Expired("gone"))
            collection.watch_faults.append(Expired("gone"))
        await asyncio.sleep(5)
        assert len(collection.requests) <= 15
        await asyncio.sleep(295)
        assert len(collection.requests) <= 80
        assert not reflector.is_healthy

    reflecting(scenario, settings=settings)


def test_a_watch_that_ends_in_peace_is_reopened_at_once_at_the_last_version():
    async def scenario(collection, store, reflector, clock):
        await asyncio.sleep(2)
        collection.put("a")
        collection.version = 50
        collection.bookmark()
        await settle()
        collection.break_watches()
        await settle()
        assert collection.requests[-1] == "watch rv='50' initial=False"
        collection.put("b")
        await settle()
        assert store.said[-1] == "add b"
        assert not reflector.errors

    reflecting(scenario)


def test_watches_ask_to_be_ended_after_a_random_time_of_5_to_10_minutes():
    async def scenario(collection, store, reflector, clock):
        opened = []
        watch = collection.watch

        def noted(**options):
            opened.append(options["timeout_seconds"])
            return watch(**options)

        collection.watch = noted
        for _ in range(120):
            await asyncio.sleep(60)
            collection.bookmark()
        assert len(opened) > 10
        assert all(300 <= seconds <= 600 for seconds in opened)
        assert len(set(opened)) > 5
        assert len(store.said) == 120
        assert collection.count("list") == 0

    reflecting(scenario)


def test_a_broken_connection_is_reopened_after_a_backoff_without_a_list():
    async def scenario(collection, store, reflector, clock):
        await asyncio.sleep(2)
        for _ in range(3):
            collection.watch_faults.append(Unreachable("connection refused"))
        collection.break_watches(Unreachable("reset"))
        await settle()
        assert not reflector.is_healthy
        collection.put("a")
        await asyncio.sleep(60)
        assert list(store.said) == ["replace", "add a"]
        assert collection.count("watch rv='' initial=True") == 1
        assert reflector.is_healthy
        assert len(reflector.errors) == 4

    reflecting(scenario)


def test_too_many_requests_waits_as_long_as_the_server_asked():
    async def scenario(collection, store, reflector, clock):
        await asyncio.sleep(2)
        busy = TooManyRequests(Status(reason="TooManyRequests", details=StatusDetails(retry_after_seconds=40)))
        collection.break_watches(busy)
        await asyncio.sleep(39)
        assert collection.count("watch") == 1
        await asyncio.sleep(2)
        assert collection.count("watch") == 2

    reflecting(scenario)


def test_too_many_requests_for_the_list_waits_as_long_as_the_server_asked():
    def busy(collection):
        details = StatusDetails(retry_after_seconds=25)
        collection.list_faults.append(TooManyRequests(Status(reason="TooManyRequests", details=details)))

    async def scenario(collection, store, reflector, clock):
        await asyncio.sleep(24)
        assert collection.count("list") == 1
        await asyncio.sleep(2)
        assert collection.count("list") == 2
        assert list(store.said) == ["replace"]

    reflecting(scenario, before=busy, settings=LISTS_ONLY)


def test_a_stream_that_goes_silent_is_abandoned_and_staleness_shows_it_meanwhile():
    async def scenario(collection, store, reflector, clock):
        await asyncio.sleep(2)
        collection.lose_watches()
        collection.put("a")
        await asyncio.sleep(170)
        assert reflector.staleness_seconds == pytest.approx(172)
        assert list(store.said) == ["replace"]
        await asyncio.sleep(60)
        assert store.said[-1] == "add a"
        assert reflector.staleness_seconds < 60

    reflecting(scenario)


@pytest.mark.parametrize("settings", [None, LISTS_ONLY])
def test_a_server_that_came_back_with_younger_data_is_listed_once_its_silence_is_noticed(settings):
    """It says nothing to a watch at a version that it will not reach for long."""

    async def scenario(collection, store, reflector, clock):
        for name in "abc":
            collection.put(name)
        await asyncio.sleep(2)
        collection.restore()
        collection.put("d")
        await asyncio.sleep(300)
        assert store.said[-1] == "replace d"
        collection.put("e")
        await asyncio.sleep(1)
        assert store.said[-1] == "add e"

    reflecting(scenario, settings=settings)


def test_a_watch_that_ends_at_once_and_empty_backs_off_and_lists():
    async def scenario(collection, store, reflector, clock):
        await settle()
        for _ in range(20):
            collection.break_watches()
            await settle(within=0.5)
        assert collection.count("watch") < 8
        assert reflector.value("reflector_short_watches_total") >= 1

    reflecting(scenario)


def test_lists_watches_and_events_are_counted():
    async def scenario(collection, store, reflector, clock):
        await asyncio.sleep(2)
        collection.put("a")
        collection.put("b")
        collection.break_watches()
        await settle()
        assert reflector.value("reflector_lists_total") == 1
        assert reflector.value("reflector_watches_total") == 2
        assert reflector.value("reflector_events_total") == 2

    reflecting(scenario)
