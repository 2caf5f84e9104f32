"""The server as a handler: paging, waiting for versions, limits, and that a bug fails one request only."""

import asyncio
import json
from collections.abc import Awaitable, Callable

import pytest

from skysail.apiserver.server import BODY_LIMIT
from skysail.simulator.clock import LoopClock, run_virtual
from tests.apiserver.calls import MAPS, PODS, Caller, serving


def virtual(test: Callable[[Caller], Awaitable[None]]) -> None:
    async def main(clock: LoopClock) -> None:
        async with serving(clock) as caller:
            await test(caller)

    run_virtual(main)


def test_a_fresh_server_holds_only_what_kube_apiserver_creates() -> None:
    async def test(caller: Caller) -> None:
        spaces = await caller.get("/api/v1/namespaces")
        names = [item["metadata"]["name"] for item in spaces["items"]]
        assert names == ["default", "kube-node-lease", "kube-public", "kube-system"]
        assert (await caller.get("/api/v1/namespaces/default/services/kubernetes"))["spec"]["type"] == "ClusterIP"
        assert len((await caller.get("/apis/scheduling.k8s.io/v1/priorityclasses"))["items"]) == 2
        assert sum(caller.server.store.count(resource) for resource in caller.server.store.resources()) == 7

    virtual(test)


def test_pages_show_one_state_whatever_happens_between() -> None:
    async def test(caller: Caller) -> None:
        for index in range(7):
            await caller.post(MAPS, {"metadata": {"name": f"m{index}"}})
        names, token = [], ""
        while True:
            page = await caller.get(MAPS, limit="3", **({"continue": token} if token else {}))
            names += [item["metadata"]["name"] for item in page["items"]]
            token = page["metadata"].get("continue", "")
            if not token:
                break
            await caller.post(MAPS, {"metadata": {"name": f"between{len(names)}"}})
            await caller.send("DELETE", f"{MAPS}/m6")
        assert names == [f"m{index}" for index in range(7)]

    virtual(test)


def test_a_list_at_a_version_that_comes_about_in_time_waits_for_it() -> None:
    async def test(caller: Caller) -> None:
        wanted = str(caller.server.store.visible + 1)
        async with asyncio.TaskGroup() as group:
            listing = group.create_task(caller.get(MAPS, resourceVersion=wanted))
            await asyncio.sleep(1)
            await caller.post(MAPS, {"metadata": {"name": "a"}})
        assert [item["metadata"]["name"] for item in listing.result()["items"]] == ["a"]

    virtual(test)


def test_a_version_that_does_not_come_is_refused_after_three_seconds() -> None:
    async def test(caller: Caller) -> None:
        loop = asyncio.get_running_loop()
        started = loop.time()
        response = await caller.send("GET", MAPS, resourceVersion="999999")
        assert response.status == 504
        assert response.header("Retry-After") == "1"
        assert 3 <= loop.time() - started < 3.5

    virtual(test)


def test_a_body_over_the_limit_is_413_and_nothing_is_stored() -> None:
    async def test(caller: Caller) -> None:
        body = json.dumps({"metadata": {"name": "big"}, "data": {"k": "x" * BODY_LIMIT}}).encode()
        response = await caller.send("POST", MAPS, body)
        assert (response.status, json.loads(response.body)["reason"]) == (413, "RequestEntityTooLarge")
        assert (await caller.get(MAPS))["items"] == []

    virtual(test)


def test_a_bug_fails_its_request_and_not_the_server(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*args: object) -> None:
        raise ZeroDivisionError

    async def test(caller: Caller) -> None:
        with monkeypatch.context() as patch:
            patch.setattr("skysail.apiserver.server.route", broken)
            response = await caller.send("GET", PODS)
        assert (response.status, json.loads(response.body)["reason"]) == (500, "InternalError")
        assert (await caller.send("GET", PODS)).status == 200

    virtual(test)
    assert "request failed" in caplog.text


def test_generated_names_are_tried_again_when_taken() -> None:
    async def test(caller: Caller) -> None:
        names = {
            (await caller.post(MAPS, {"metadata": {"generateName": "x-"}}))["metadata"]["name"] for _ in range(200)
        }
        assert len(names) == 200
        assert all(len(name) == 7 for name in names)

    virtual(test)


def test_deleting_a_collection_honours_selectors() -> None:
    async def test(caller: Caller) -> None:
        for name, app in (("a", "x"), ("b", "y"), ("c", "x")):
            await caller.post(MAPS, {"metadata": {"name": name, "labels": {"app": app}}})
        response = await caller.send("DELETE", MAPS, labelSelector="app=x")
        assert response.status == 200
        assert [item["metadata"]["name"] for item in (await caller.get(MAPS))["items"]] == ["b"]

    virtual(test)


def test_two_servers_with_one_seed_make_the_same_objects() -> None:
    async def main(clock: LoopClock) -> bytes:
        async with serving(clock) as caller:
            await caller.post(MAPS, {"metadata": {"generateName": "x-"}})
            return (await caller.send("GET", "/api/v1/configmaps")).body

    assert run_virtual(main) == run_virtual(main)
