"""When a key runs, and when it runs again."""

import asyncio

import pytest

from skysail.api.cluster import ConfigMap
from skysail.api.core import Pod
from skysail.api.errors import (
    NAMESPACE_TERMINATING,
    Conflict,
    Forbidden,
    InvariantBroken,
    Status,
    StatusCause,
    StatusDetails,
    TooManyRequests,
)
from skysail.api.kinds import CONFIGMAPS, PODS
from skysail.api.meta import ObjectMeta
from skysail.controller import RECONCILE_ID, Added, Controller, Deleted, For, Key, Result, TerminalError, Watches
from skysail.testing import make_config_map, make_pod

A, B = Key("default", "a"), Key("default", "b")


class Noting(Controller):
    """Notes when which key ran, and does what a script says."""

    name = "noting"
    watches = (For(ConfigMap, namespace="default"),)

    def __init__(self, *script):
        self.runs: list[tuple[str, float]] = []
        self.ids: list[str] = []
        self.script = list(script)

    async def reconcile(self, key):
        self.runs.append((key.name, self.clock.monotonic()))
        self.ids.append(RECONCILE_ID.get())
        step = self.script.pop(0) if self.script else None
        if isinstance(step, Exception):
            raise step
        return step

    def times(self):
        return [at for _, at in self.runs]


async def started(cluster, controller):
    await cluster.start(controller)
    controller.runs.clear()
    return controller


async def test_a_key_runs_when_its_object_appears_changes_and_goes(cluster):
    noting = await started(cluster, Noting())
    await cluster.create(make_config_map("a"))
    await cluster.advance(1)
    await cluster.client.patch(CONFIGMAPS, "a", "default", {"data": {"x": "y"}})
    await cluster.advance(1)
    await cluster.client.delete(CONFIGMAPS, "a", "default")
    await cluster.advance(1)
    assert [name for name, _ in noting.runs] == ["a", "a", "a"]
    assert noting.ids[-1] == f"noting/{len(noting.ids)}"
    assert RECONCILE_ID.get() == ""


async def test_requeue_after_runs_it_again_then(cluster):
    noting = await started(cluster, Noting(Result(requeue_after=60), Result(requeue_after=5), Result()))
    noting.enqueue(A)
    await cluster.advance(1000)
    assert noting.times() == pytest.approx([0, 60, 65])


async def test_a_failing_key_backs_off_and_starts_over_after_a_success(cluster, caplog):
    boom = ValueError("boom")
    noting = await started(cluster, Noting(boom, boom, boom, None, boom))
    noting.enqueue(A)
    await cluster.advance(10)
    assert noting.times() == pytest.approx([0, 0.005, 0.015, 0.035])
    noting.enqueue(A)
    await cluster.advance(10)
    assert noting.times()[-2:] == pytest.approx([10, 10.005])
    assert caplog.text.count("reconcile failed, will run again") == 4


async def test_a_conflict_runs_again_without_a_fuss(cluster, caplog):
    noting = await started(cluster, Noting(Conflict("stale")))
    noting.enqueue(A)
    await cluster.advance(1)
    assert len(noting.runs) == 2
    assert "reconcile failed" not in caplog.text


async def test_a_terminal_error_is_reported_and_not_tried_again(cluster, caplog):
    noting = await started(cluster, Noting(TerminalError("nonsense in spec")))
    noting.enqueue(A)
    await cluster.advance(3600)
    assert len(noting.runs) == 1
    assert "reconcile failed for good" in caplog.text


async def test_what_a_terminating_namespace_refuses_is_not_tried_again_nor_reported(cluster, caplog):
    cause = StatusCause(reason=NAMESPACE_TERMINATING)
    noting = await started(cluster, Noting(Forbidden("on its way out", details=StatusDetails(causes=(cause,)))))
    noting.enqueue(A)
    await cluster.advance(3600)
    assert len(noting.runs) == 1
    assert "reconcile failed" not in caplog.text


async def test_a_busy_server_is_left_alone_as_long_as_it_asked(cluster, caplog):
    details = StatusDetails(retry_after_seconds=7)
    busy = TooManyRequests(Status(reason="TooManyRequests", details=details))
    noting = await started(cluster, Noting(busy))
    noting.enqueue(A)
    await cluster.advance(100)
    assert noting.times() == pytest.approx([0, 7])


async def test_two_workers_never_share_a_key_and_a_change_in_work_runs_it_again(cluster):
    class Slow(Controller):
        watches = (For(ConfigMap, namespace="default"),)
        workers = 4
        running: set = set()
        seen: list = []
        most = 0

        async def reconcile(self, key):
            assert key not in self.running
            self.running.add(key)
            self.most = max(self.most, len(self.running))
            await asyncio.sleep(10)
            cached = self.lister(ConfigMap).get(key)
            self.seen.append((key.name, cached.data["n"]))
            self.running.remove(key)

    slow = Slow()
    await cluster.start(slow)
    await cluster.create(*(make_config_map(name, n="0") for name in "abcdef"))
    for number in range(1, 20):
        await cluster.advance(3)
        await cluster.client.patch(CONFIGMAPS, "a", "default", {"data": {"n": str(number)}})
    await cluster.settle()
    assert slow.most == 4
    assert [n for name, n in slow.seen if name == "a"][-1] == "19"
    assert len([n for name, n in slow.seen if name == "a"]) < 12


async def test_what_is_new_goes_before_what_was_there_at_the_start(cluster):
    await cluster.create(*(make_config_map(f"old-{number:02}") for number in range(20)))

    class Slow(Noting):
        async def reconcile(self, key):
            await super().reconcile(key)
            await asyncio.sleep(1)

    slow = Slow()
    await cluster.start(slow)
    await cluster.advance(2.5)
    await cluster.create(make_config_map("new"))
    await cluster.advance(2)
    assert [name for name, _ in slow.runs[3:4]] == ["new"]


async def test_only_the_chosen_changes_wake(cluster):
    class Grandparent(Noting):
        @property
        def watches(self):
            return (Watches(Pod, on=(Deleted,), map=lambda pod: [Key("x", pod.name)]),)

    class OnlyAdds(Noting):
        name = "adds"
        watches = (For(ConfigMap, on=(Added,), namespace="default"),)

    grandparent, adds = Grandparent(), OnlyAdds()
    await cluster.start(grandparent, adds)
    adds.runs.clear()
    await cluster.create(make_pod("p"), make_config_map("a"))
    await cluster.client.patch(CONFIGMAPS, "a", "default", {"data": {"x": "y"}})
    await cluster.advance(1)
    assert grandparent.runs == []
    assert len(adds.runs) == 1
    await cluster.client.delete(PODS, "p", "default", grace_period_seconds=0)
    await cluster.advance(1)
    assert [name for name, _ in grandparent.runs] == ["p"]
    assert len(adds.runs) == 1


async def test_a_controller_can_wait_until_it_can_read_its_own_write(cluster):
    class Writer(Noting):
        async def reconcile(self, key):
            if key == A:
                written = await self.client.create(CONFIGMAPS, {"metadata": {"name": "made"}}, "default")
                before = self.lister(ConfigMap).named("made", "default")
                seen = await self.wait_cached(written)
                self.result = before, seen, self.lister(ConfigMap).named("made", "default").name
            return await super().reconcile(key)

        def setup(self):
            self.informer(ConfigMap)

    writer = await started(cluster, Writer())
    writer.enqueue(A)
    await cluster.advance(1)
    assert writer.result == (None, True, "made")


async def test_waiting_for_a_write_the_cache_does_not_show_ends_in_time(cluster):
    noting = Noting()
    await cluster.start(noting)
    noting.lister(ConfigMap)
    await cluster.advance(1)
    future = ConfigMap(metadata=ObjectMeta(name="x", resource_version="999999"))
    assert not await noting.wait_cached(future, timeout_seconds=3)


def test_a_controller_outside_a_manager_says_so():
    with pytest.raises(InvariantBroken, match="Noting is not part of a Manager"):
        _ = Noting().client


def test_the_name_comes_from_the_class():
    class WebThingController(Noting):
        name = ""

    assert WebThingController.display_name() == "webthing"


async def test_the_last_reconcile_always_sees_the_newest_version(cluster):
    """Updates at every stage of a slow reconcile: the final one has seen the final state."""

    class Slow(Controller):
        watches = (For(ConfigMap, namespace="default"),)
        last: dict = {}

        async def reconcile(self, key):
            cached = self.lister(ConfigMap).get(key)
            await asyncio.sleep(cluster.rng.random())
            self.last[key.name] = cached.data.get("n") if cached else None

    slow = Slow()
    await cluster.start(slow)
    final = {}
    for name in "abc":
        await cluster.create(make_config_map(name, n="0"))
    for number in range(1, 60):
        name = cluster.rng.choice("abc")
        await cluster.client.patch(CONFIGMAPS, name, "default", {"data": {"n": str(number)}})
        final[name] = str(number)
        await cluster.advance(cluster.rng.random() / 2)
    await cluster.settle()
    assert {name: slow.last[name] for name in final} == final


async def test_asking_for_a_cache_nobody_filled_is_refused_and_not_answered_with_nothing(cluster, caplog):
    class Forgetful(Noting):
        async def reconcile(self, key):
            self.lister(Pod).list()

    forgetful = Forgetful()
    await cluster.start(forgetful)
    forgetful.enqueue(A)
    await cluster.advance(0.001)
    assert "asks for the cache of pods while it works: name the kind in a watch" in caplog.text


async def test_periodic_work_runs_beside_the_workers_once_the_caches_are_filled(cluster):
    await cluster.create(make_config_map("a"))

    class Periodic(Noting):
        async def run_beside(self):
            while True:
                self.seen = [each.name for each in self.lister(ConfigMap).list()], self.rng is cluster.rng
                await asyncio.sleep(60)

    periodic = Periodic()
    await cluster.start(periodic)
    await cluster.create(make_config_map("b"))
    await cluster.advance(61)
    assert periodic.seen == (["a", "b"], True)
