"""The informer as a whole, on virtual time, against a collection that does as told."""

import asyncio
import random

import pytest

from skysail.informer import FilteringHandler, Handlers, InformerStateError, Key, SharedInformer
from skysail.simulator.clock import run_virtual, settle
from tests.informer.collection import Collection, Story, pod


def informer_of(collection, clock, **options):
    return SharedInformer(collection, clock=clock, rng=random.Random(1), name="pods", **options)


def run_with_informer(scenario, **options):
    """Run `scenario(collection, informer, clock)` beside a running informer of an empty collection."""

    async def main(clock):
        collection = Collection()
        informer = informer_of(collection, clock, **options)
        async with asyncio.TaskGroup() as group:
            task = group.create_task(informer.run())
            await scenario(collection, informer, clock)
            task.cancel()

    run_virtual(main)


def test_a_handler_hears_adds_updates_and_deletes_in_order():
    async def scenario(collection, informer, clock):
        story = Story()
        informer.add_handler(story)
        await informer.wait_synced()
        collection.put("a")
        await settle()
        collection.put("a")
        await settle()
        collection.delete("a")
        await settle()
        assert story.lines == ["add a", "update a", "delete a"]
        assert len(informer.indexer) == 0

    run_with_informer(scenario)


def test_objects_of_the_first_list_are_marked_as_initial():
    async def main(clock):
        collection = Collection()
        collection.put("a")
        collection.put("b")
        informer = informer_of(collection, clock)
        story = Story()
        listener = informer.add_handler(story)
        async with asyncio.TaskGroup() as group:
            task = group.create_task(informer.run())
            await listener.wait_synced()
            assert story.lines == ["add a initial", "add b initial"]
            collection.put("c")
            await settle()
            assert story.lines[-1] == "add c"
            task.cancel()

    run_virtual(main)


def test_a_late_handler_gets_the_store_as_initial_adds_and_then_what_is_new():
    async def scenario(collection, informer, clock):
        collection.put("a")
        await settle()
        story = Story()
        listener = informer.add_handler(story)
        assert not listener.has_synced
        await listener.wait_synced()
        collection.put("b")
        await settle()
        assert story.lines == ["add a initial", "add b"]

    run_with_informer(scenario)


def test_the_store_is_synced_before_a_slow_handler_is():
    async def main(clock):
        collection = Collection()
        for name in "abc":
            collection.put(name)
        informer = informer_of(collection, clock)

        async def slowly(obj):
            await asyncio.sleep(10)

        listener = informer.add_handler(Handlers(add=slowly))
        async with asyncio.TaskGroup() as group:
            task = group.create_task(informer.run())
            await informer.wait_synced()
            await settle()
            assert informer.has_synced
            assert not listener.has_synced
            assert len(listener) == 2
            await listener.wait_synced()
            assert clock.monotonic() == pytest.approx(30)
            task.cancel()

    run_virtual(main)


def test_a_handler_that_raises_loses_that_notification_only_and_pauses_a_second(caplog):
    async def scenario(collection, informer, clock):
        heard = []

        def fail_on_a(obj):
            heard.append((obj.name, clock.monotonic()))
            if obj.name == "a":
                raise ValueError("no a, please")

        informer.add_handler(Handlers(add=fail_on_a))
        await informer.wait_synced()
        start = clock.monotonic()
        collection.put("a")
        collection.put("b")
        await settle(within=2)
        assert [(name, at - start) for name, at in heard] == [("a", 0.0), ("b", 1.0)]

    run_with_informer(scenario)
    assert "event handler failed" in caplog.text


def test_a_resync_reaches_only_the_handlers_that_asked_and_only_as_often_as_they_asked():
    async def scenario(collection, informer, clock):
        often, rarely, never = [], [], []
        informer.add_handler(Handlers(update=lambda old, new: often.append(old is new)), resync_seconds=10)
        informer.add_handler(Handlers(update=lambda old, new: rarely.append(old is new)), resync_seconds=30)
        informer.add_handler(Handlers(update=lambda old, new: never.append(old is new)))
        await informer.wait_synced()
        collection.put("a")
        await asyncio.sleep(65)
        assert (often, rarely, never) == ([True] * 6, [True] * 2, [])

    async def main(clock):
        collection = Collection()
        informer = informer_of(collection, clock)
        async with asyncio.TaskGroup() as group:
            ready = asyncio.Event()

            async def body():
                await ready.wait()
                await informer.run()

            task = group.create_task(body())

            async def start():
                ready.set()

            group.create_task(start())
            await scenario(collection, informer, clock)
            task.cancel()

    run_virtual(main)


def test_a_relist_with_the_same_version_is_not_an_update():
    async def scenario(collection, informer, clock):
        story = Story()
        informer.add_handler(story)
        await informer.wait_synced()
        collection.put("a")
        await settle()
        collection.compact()
        collection.put("b")
        collection.compact()
        from skysail.api.errors import Expired

        collection.break_watches(Expired("too old"))
        await settle(within=5)
        assert story.lines == ["add a", "add b"]

    run_with_informer(scenario)


def test_a_deletion_missed_while_disconnected_arrives_as_a_tombstone():
    async def scenario(collection, informer, clock):
        story = Story()
        informer.add_handler(story)
        collection.put("a")
        collection.put("b")
        await settle()
        collection.break_watches()
        collection.delete("a")
        collection.put("c")
        collection.compact()
        await settle(within=10)
        assert story.lines[-2:] == ["add c", "delete a missed"]
        assert set(informer.indexer.list_keys()) == set(collection.objects)

    run_with_informer(scenario)


def test_a_filtering_handler_turns_updates_that_cross_its_filter_into_adds_and_deletes():
    async def scenario(collection, informer, clock):
        story = Story()
        informer.add_handler(FilteringHandler(lambda obj: obj.spec.node_name == "n1", story))
        await informer.wait_synced()
        for node in ("", "n1", "n1", "n2"):
            collection.put("a", node=node)
            await settle()
        collection.delete("a")
        await settle()
        assert story.lines == ["add a", "update a", "delete a"]

    run_with_informer(scenario)


def test_a_removed_handler_hears_nothing_more():
    async def scenario(collection, informer, clock):
        story = Story()
        listener = informer.add_handler(story)
        await informer.wait_synced()
        collection.put("a")
        await settle()
        informer.remove_handler(listener)
        informer.remove_handler(listener)
        collection.put("b")
        await settle()
        assert story.lines == ["add a"]

    run_with_informer(scenario)


def test_a_transform_changes_what_is_cached_and_what_handlers_see():
    async def main(clock):
        collection = Collection()
        informer = informer_of(collection, clock)
        informer.set_transform(lambda obj: pod(obj.name, obj.metadata.resource_version, node="transformed"))
        async with asyncio.TaskGroup() as group:
            task = group.create_task(informer.run())
            collection.put("a")
            await informer.wait_synced()
            await settle()
            assert informer.lister.named("a", "default").spec.node_name == "transformed"
            with pytest.raises(InformerStateError):
                informer.set_transform(lambda obj: obj)
            task.cancel()

    run_virtual(main)


def test_an_index_can_be_added_while_the_informer_runs():
    async def scenario(collection, informer, clock):
        collection.put("a", node="n1")
        await settle()
        informer.add_indexes({"node": lambda obj: (obj.spec.node_name,)})
        collection.put("b", node="n1")
        await settle()
        assert [obj.name for obj in informer.lister.by_index("node", "n1")] == ["a", "b"]

    run_with_informer(scenario)


def test_wait_for_version_returns_once_the_cache_shows_it():
    async def scenario(collection, informer, clock):
        await informer.wait_synced()
        wanted = collection.version + 2
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(informer.wait_for_version(str(wanted)))
            collection.put("a")
            await settle()
            assert not waiting.done()
            collection.put("b")
            await settle()
            assert waiting.done()
            assert Key("default", "b") in informer.indexer

    run_with_informer(scenario)


def test_a_bookmark_moves_the_version_of_a_quiet_cache():
    async def scenario(collection, informer, clock):
        await informer.wait_synced()
        collection.version += 100
        collection.bookmark()
        await settle()
        assert informer.last_sync_resource_version == "101"
        await informer.wait_for_version("101")

    run_with_informer(scenario)


def test_a_stopped_informer_takes_no_handlers_and_never_runs_again():
    async def main(clock):
        informer = informer_of(Collection(), clock)
        async with asyncio.TaskGroup() as group:
            task = group.create_task(informer.run())
            await informer.wait_synced()
            task.cancel()
        assert informer.is_stopped
        with pytest.raises(InformerStateError):
            informer.add_handler(Story())
        with pytest.raises(InformerStateError):
            await informer.run()

    run_virtual(main)


def test_an_error_handler_is_told_why_the_watch_was_interrupted():
    async def main(clock):
        from skysail.api.errors import Forbidden

        collection = Collection()
        collection.watch_faults.append(Forbidden("no watch"))
        collection.list_faults.append(Forbidden("no list"))
        informer = informer_of(collection, clock)
        errors = []
        informer.set_error_handler(errors.append)
        async with asyncio.TaskGroup() as group:
            task = group.create_task(informer.run())
            await informer.wait_synced()
            task.cancel()
        assert [str(error) for error in errors] == ["no list"]

    run_virtual(main)
