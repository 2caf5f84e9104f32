import asyncio
from contextlib import aclosing

import pytest

from skysail.api.cluster import ConfigMap
from skysail.api.errors import Expired, InternalError, NotFound, TooManyRequests, Unreachable
from skysail.api.kinds import CONFIGMAPS, LEASES
from skysail.api.ports import Request
from skysail.testing import FOR_EVER, Action, Chaos, Crashed, Faults, make_config_map
from skysail.testing.calls import Call, call_of


@pytest.mark.parametrize(
    ("method", "path", "query", "call"),
    [
        ("GET", "/api/v1/pods", (), Call("list", "pods")),
        ("GET", "/api/v1/pods", (("watch", "true"),), Call("watch", "pods")),
        ("GET", "/api/v1/namespaces/a/pods/b", (), Call("get", "pods", "a", "b")),
        ("POST", "/api/v1/namespaces/a/pods/b/binding", (), Call("create", "pods", "a", "b", "binding")),
        ("PUT", "/api/v1/namespaces/a/finalize", (), Call("update", "namespaces", "", "a", "finalize")),
        ("DELETE", "/apis/apps/v1/namespaces/a/deployments", (), Call("deletecollection", "deployments", "a")),
        ("DELETE", "/api/v1/nodes/n", (), Call("delete", "nodes", "", "n")),
        ("GET", "/version", (), Call("list", "")),
    ],
)
def test_requests_are_told_apart_by_verb_and_resource(method, path, query, call):
    assert call_of(Request(method, path, query)) == call


async def test_a_call_fails_as_often_as_asked_and_then_works_again(cluster):
    client = cluster.connect("me")
    cluster.faults.fail(InternalError, verb="create", resource="configmaps", times=2)
    for _ in range(2):
        with pytest.raises(InternalError, match="injected by a test"):
            await client.create(CONFIGMAPS, make_config_map())
    await client.create(CONFIGMAPS, make_config_map())
    assert cluster.faults.struck == 2


async def test_only_matching_calls_fail_and_the_tests_own_client_never_does(cluster):
    client = cluster.connect("me")
    rule = cluster.faults.fail(NotFound, name="a", times=FOR_EVER)
    await client.create(CONFIGMAPS, make_config_map("b"))
    await cluster.create(make_config_map("a"))
    with pytest.raises(NotFound):
        await client.get(CONFIGMAPS, "a", "default")
    cluster.faults.take_back(rule)
    await client.get(CONFIGMAPS, "a", "default")


async def test_retry_after_reaches_the_component(cluster):
    client = cluster.connect("me")
    cluster.faults.fail(TooManyRequests, retry_after=5)
    await client.list(CONFIGMAPS)
    assert cluster.clock.monotonic() == 5.0


async def test_a_lost_request_was_never_done_and_a_lost_answer_was(cluster):
    client = cluster.connect("me")
    cluster.faults.lose_requests(verb="create")
    with pytest.raises(Unreachable):
        await client.create(CONFIGMAPS, make_config_map("a"))
    cluster.faults.lose_answers(verb="create")
    with pytest.raises(Unreachable):
        await client.create(CONFIGMAPS, make_config_map("b"))
    names = [each.name for each in await cluster.list(ConfigMap, "default")]
    assert "a" not in names
    assert "b" in names


async def test_a_delayed_call_takes_so_long_and_may_time_out(cluster):
    client = cluster.connect("me")
    cluster.faults.delay(2.5, verb="create")
    await client.create(CONFIGMAPS, make_config_map())
    assert cluster.clock.monotonic() == 2.5
    cluster.faults.delay(31, verb="create")
    with pytest.raises(Unreachable, match="no answer within 30 s"):
        await client.create(CONFIGMAPS, make_config_map("late"))


async def read(events, log):
    async with aclosing(events):
        async for event in events:
            log.append((event.type, event.object.name))


async def watched(cluster, act):
    """What a component's watch has seen when `act` is over, and how it ended (None: it goes on)."""
    log = []
    events = cluster.connect("me").watch(CONFIGMAPS, "default", resource_version=await version(cluster))
    async with asyncio.TaskGroup() as group:
        task = group.create_task(_caught(read(events, log)))
        await cluster.advance(0)
        await act()
        await cluster.advance(0)
        ended = task.done()
        task.cancel()
    return log, (task.result() if ended else None)


async def _caught(reading):
    try:
        await reading
    except (Unreachable, Expired) as error:
        return type(error)
    return "end"


async def version(cluster):
    return (await cluster.client.list(CONFIGMAPS)).resource_version


@pytest.mark.parametrize(
    ("end", "outcome"),
    [(Faults.drop_watches, Unreachable), (Faults.end_watches, "end"), (Faults.expire_watches, Expired)],
    ids=["dropped", "ended", "expired"],
)
async def test_an_open_watch_is_ended_in_each_way(cluster, end, outcome):
    async def act():
        await cluster.create(make_config_map("a"))
        await cluster.advance(0)
        assert end(cluster.faults, resource="pods") == 0
        assert end(cluster.faults, resource="configmaps") == 1

    assert await watched(cluster, act) == ([("ADDED", "a")], outcome)


async def test_events_are_lost_and_doubled(cluster):
    cluster.faults.lose_events(resource="configmaps")
    cluster.faults.duplicate_events(resource="configmaps")

    async def act():
        await cluster.create(make_config_map("a"), make_config_map("b"), make_config_map("c"))

    log, ended = await watched(cluster, act)
    assert (log, ended) == ([("ADDED", "b"), ("ADDED", "b"), ("ADDED", "c")], None)


async def test_in_a_partition_nothing_comes_through_and_afterwards_everything(cluster):
    client = cluster.connect("me")

    async def act():
        with cluster.faults.partition():
            await cluster.create(make_config_map("a"))
            with pytest.raises(Unreachable, match="no answer within 30 s"):
                await client.create(CONFIGMAPS, make_config_map("b"))

    log, ended = await watched(cluster, act)
    assert (log, ended) == ([("ADDED", "a")], None)


async def test_a_watch_cut_off_for_long_falls_silent(cluster):
    async def act():
        cluster.faults.start_partition()
        await cluster.advance(181)
        cluster.faults.heal()

    log, ended = await watched(cluster, act)
    assert (log, ended) == ([], Unreachable)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_a_component_dies_at_the_request_it_is_told_to(cluster, after):
    async def main(client):
        try:
            for number in range(5):
                await client.create(CONFIGMAPS, make_config_map(f"n{number}"))
        finally:
            with pytest.raises(Crashed):
                await client.create(CONFIGMAPS, make_config_map("last-words"))

    component = await cluster.run("victim", main)
    component.faults.crash_at(3, after=after, verb="create")
    await component.wait_ended()
    names = [each.name for each in await cluster.list(ConfigMap, "default") if each.name.startswith(("n", "last"))]
    assert names == ["n0", "n1", "n2"][: 3 if after else 2]
    assert component.has_crashed


async def test_a_rule_of_ones_own_strikes_where_it_says(cluster):
    client = cluster.connect("me")
    cluster.faults.strike_when(Action.LOSE_REQUEST, lambda call: call.name.startswith("x"))
    await cluster.create(make_config_map("x1"))
    with pytest.raises(Unreachable):
        await client.get(CONFIGMAPS, "x1", "default")


async def test_chaos_repeats_with_its_seed_and_can_be_taken_back(cluster):
    async def outcomes():
        cluster.faults.rng.seed(5)
        cluster.faults.chaos = Chaos(refuse=0.2, lose_request=0.1, lose_answer=0.1, delay=0.2)
        client, found = cluster.connect("me"), []
        for _ in range(60):
            try:
                await client.create(LEASES, {"metadata": {"generateName": "l-", "namespace": "default"}})
                found.append("ok")
            except Exception as error:
                found.append(type(error).__name__)
        return found

    first = await outcomes()
    assert {"ok", "Unreachable", "InternalError"} <= set(first)
    assert await outcomes() == first
    cluster.faults.clear()
    await cluster.connect("me").list(LEASES)
