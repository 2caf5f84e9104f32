"""Watches: what is seen, when they end, and what a slow reader gets."""

import asyncio
from random import Random
from typing import Any

from skysail.api.fields import FieldSelector
from skysail.api.labels import Selector
from skysail.apiserver.contract import GroupResource
from skysail.apiserver.forms import MetadataForm
from skysail.apiserver.requests import Query, list_options
from skysail.apiserver.store import Store
from skysail.apiserver.streams import Watches, plan_watch
from skysail.apiserver.watching import Matcher, Watcher
from skysail.simulator.clock import LoopClock, run_virtual
from tests.apiserver.calls import MAPS, Caller, serving

RESOURCE = GroupResource("", "configmaps")


def config_map(name: str, **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": labels}}


def document(name: str, **labels: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "labels": labels}
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata}


def matcher(namespace: str = "", labels: str = "", fields: str = "") -> Matcher:
    return Matcher(namespace, Selector.parse(labels), FieldSelector.parse(fields))


def test_a_watcher_that_does_not_keep_up_overflows_and_gets_nothing_more() -> None:
    store, woken = Store(), []
    watcher = Watcher(matcher(), 0, lambda: woken.append(True), limit=2)
    store.subscribe(RESOURCE, watcher)
    for name in "abcd":
        store.put(RESOURCE, document(name), {})
    assert watcher.overflowed
    assert watcher.take() == ()
    assert len(woken) == 2


def test_a_watcher_is_woken_once_until_it_has_taken() -> None:
    store, woken = Store(), []
    watcher = Watcher(matcher(), 0, lambda: woken.append(True))
    store.subscribe(RESOURCE, watcher)
    for name in "abc":
        store.put(RESOURCE, document(name), {})
    assert len(woken) == 1
    assert [kind for kind, _ in watcher.take()] == ["ADDED"] * 3
    store.put(RESOURCE, document("a", x="y"), {})
    assert len(woken) == 2


def test_selectors_look_at_labels_fields_name_and_namespace() -> None:
    record = Store().put(RESOURCE, document("a", app="x"), {"spec.nodeName": "n"})
    assert matcher("default", "app=x", "metadata.name=a,spec.nodeName!=m").matches(record)
    assert not matcher("other").matches(record)
    assert not matcher(labels="app!=x").matches(record)
    assert not matcher(fields="spec.nodeName=m").matches(record)
    assert not matcher(fields="metadata.namespace=other").matches(record)


def virtual(test: Any) -> Any:
    async def main(clock: LoopClock) -> None:
        async with serving(clock) as caller:
            await test(caller)

    return run_virtual(main)


def test_entering_is_added_and_leaving_is_deleted_with_the_old_object() -> None:
    async def test(caller: Caller) -> None:
        watch = await caller.watch(MAPS, labelSelector="app=x", resourceVersion=str(caller.server.store.visible))
        await caller.post(MAPS, config_map("a", app="y"))
        await caller.merge(f"{MAPS}/a", {"metadata": {"labels": {"app": "x"}}})
        left = await caller.merge(f"{MAPS}/a", {"metadata": {"labels": {"app": "z"}}})
        assert await watch.take(1) == [("ADDED", "a")]
        event = await watch.next()
        assert event["type"] == "DELETED"
        assert event["object"]["metadata"]["labels"] == {"app": "x"}
        assert event["object"]["metadata"]["resourceVersion"] == left["metadata"]["resourceVersion"]

    virtual(test)


def test_the_initial_events_end_with_a_bookmark_and_live_events_follow() -> None:
    async def test(caller: Caller) -> None:
        for name in ("b", "a"):
            await caller.post(MAPS, config_map(name))
        watch = await caller.watch(
            MAPS, sendInitialEvents="true", resourceVersionMatch="NotOlderThan", allowWatchBookmarks="True"
        )
        assert await watch.take(2) == [("ADDED", "a"), ("ADDED", "b")]
        bookmark = await watch.next()
        assert bookmark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
        await caller.post(MAPS, config_map("c"))
        assert await watch.take(1) == [("ADDED", "c")]

    virtual(test)


def test_bookmarks_come_about_every_minute_and_carry_the_current_version() -> None:
    async def test(caller: Caller) -> None:
        watch = await caller.watch(MAPS, resourceVersion=str(caller.server.store.visible), allowWatchBookmarks="1")
        loop = asyncio.get_running_loop()
        started = loop.time()
        await caller.post("/api/v1/namespaces", {"metadata": {"name": "elsewhere"}})
        event = await watch.next()
        assert event["type"] == "BOOKMARK"
        assert event["object"]["metadata"]["resourceVersion"] == str(caller.server.store.visible)
        assert 30 <= loop.time() - started <= 70

    virtual(test)


def test_no_bookmarks_without_being_asked_for() -> None:
    async def test(caller: Caller) -> None:
        watch = await caller.watch(MAPS, resourceVersion=str(caller.server.store.visible))
        assert await watch.is_silent(600)

    virtual(test)


def test_a_time_out_ends_the_stream_cleanly() -> None:
    async def test(caller: Caller) -> None:
        watch = await caller.watch(MAPS, timeoutSeconds="5")
        assert await watch.rest() == []
        assert caller.server.watches.count == 0

    virtual(test)


def test_a_watch_without_a_time_out_ends_within_an_hour() -> None:
    async def test(caller: Caller) -> None:
        async with asyncio.timeout(3601):
            assert await (await caller.watch(MAPS)).rest() == []

    virtual(test)


def test_stopping_the_server_ends_open_watches() -> None:
    async def main(clock: LoopClock) -> list[Any]:
        async with asyncio.TaskGroup() as group, serving(clock) as caller:
            watch = await caller.watch(MAPS)
            reading = group.create_task(watch.rest())
            await asyncio.sleep(1)
        return reading.result()

    assert run_virtual(main) == []


def test_a_version_that_was_forgotten_is_answered_with_one_error_event() -> None:
    async def main(clock: LoopClock) -> list[Any]:
        async with serving(clock, compaction_interval=10.0) as caller:
            old = (await caller.post(MAPS, config_map("a")))["metadata"]["resourceVersion"]
            await caller.post(MAPS, config_map("b"))
            await asyncio.sleep(25)
            return await (await caller.watch(MAPS, resourceVersion=old)).rest()

    events = run_virtual(main)
    assert [(event["type"], event["object"]["reason"]) for event in events] == [("ERROR", "Expired")]


def test_a_closed_watch_is_forgotten() -> None:
    async def test(caller: Caller) -> None:
        watch = await caller.watch(MAPS)
        assert await watch.is_silent()
        assert caller.server.watches.count == 0

    virtual(test)


def test_a_reader_that_falls_behind_is_cut_off_and_may_list_again() -> None:
    async def main(clock: LoopClock) -> None:
        store = Store()
        watches = Watches(store, queue_limit=3)
        options = list_options(Query(()), watch=True)
        plan = plan_watch(RESOURCE, "", options, MetadataForm("v1"), Random(1))
        stream = watches.stream(plan)
        async with asyncio.TaskGroup() as group:
            first = group.create_task(anext(stream))
            await asyncio.sleep(1)
            store.put(RESOURCE, document("first"), {})
        assert b"first" in first.result()
        for number in range(5):
            store.put(RESOURCE, document(f"m{number}"), {})
        assert [chunk async for chunk in stream] == []
        assert watches.count == 0

    run_virtual(main)


def test_events_are_encoded_once_for_all_watchers() -> None:
    async def test(caller: Caller) -> None:
        version = str(caller.server.store.visible)
        watches = [await caller.watch(MAPS, resourceVersion=version) for _ in range(3)]
        await caller.post(MAPS, config_map("a"))
        for watch in watches:
            assert await watch.take(1) == [("ADDED", "a")]
        (change,) = caller.server.store.changes_after(RESOURCE, int(version))
        assert len(change.lines) == 1

    virtual(test)


def test_a_thousand_watches_get_every_event_and_leave_nothing_behind() -> None:
    async def test(caller: Caller) -> None:
        version = str(caller.server.store.visible)
        watches = [await caller.watch(MAPS, resourceVersion=version) for _ in range(1000)]
        async with asyncio.TaskGroup() as group:
            reading = [group.create_task(watch.take(3)) for watch in watches]
            for name in "abc":
                await asyncio.sleep(1)
                await caller.post(MAPS, config_map(name))
        assert {tuple(task.result()) for task in reading} == {(("ADDED", "a"), ("ADDED", "b"), ("ADDED", "c"))}
        caller.server.watches.stop()
        for watch in watches:
            assert await watch.rest() == []
        assert caller.server.watches.count == 0

    virtual(test)
