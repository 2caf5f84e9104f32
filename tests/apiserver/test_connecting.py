"""exec, attach, port-forward, log and proxy: nothing runs here, and the object they are named after stays as it is."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from skysail.simulator.clock import LoopClock, run_virtual
from tests.apiserver.calls import PODS, Caller, serving

Raw = dict[str, Any]
SPEC = {"containers": [{"name": "c", "image": "i:1"}]}
NODES, SERVICES = "/api/v1/nodes", "/api/v1/namespaces/default/services"
CONNECTIONS = [
    *[f"{PODS}/p/{name}" for name in ("exec", "attach", "portforward", "log", "proxy", "proxy/metrics")],
    *[f"{SERVICES}/{name}/proxy" for name in ("s", "s:80", "http:s:80")],
    f"{NODES}/n/proxy",
    f"{NODES}/n/proxy/healthz",
]
PARENTS = [f"{PODS}/p", f"{SERVICES}/s", f"{NODES}/n"]


def virtual(test: Callable[[Caller], Awaitable[None]]) -> None:
    async def main(clock: LoopClock) -> None:
        async with serving(clock) as caller:
            await caller.post(NODES, {"metadata": {"name": "n"}})
            await caller.post(PODS, {"metadata": {"name": "p"}, "spec": {**SPEC, "nodeName": "n"}})
            await caller.post(PODS, {"metadata": {"name": "waiting"}, "spec": SPEC})
            await caller.post(SERVICES, {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}})
            await test(caller)

    run_virtual(main)


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
def test_a_connection_never_touches_the_object_it_is_named_after(method: str) -> None:
    async def test(caller: Caller) -> None:
        before = [await caller.get(parent) for parent in PARENTS]
        body = {"metadata": {"name": "p", "labels": {"a": "b"}}, "spec": SPEC}
        for path in CONNECTIONS:
            response = await caller.send(method, path, body if method != "GET" else None)
            assert response.status in (405, 500), path
            assert [await caller.get(parent) for parent in PARENTS] == before

    virtual(test)


@pytest.mark.parametrize(
    ("method", "path", "status", "words"),
    [
        ("POST", f"{PODS}/p/exec", 500, "error dialing backend: no kubelet on node n"),
        ("GET", f"{PODS}/p/log", 500, "error dialing backend: no kubelet on node n"),
        ("POST", f"{PODS}/waiting/exec", 400, "pod waiting does not have a host assigned"),
        ("POST", f"{PODS}/nobody/exec", 404, 'pods "nobody" not found'),
        ("GET", f"{SERVICES}/http:s:80/proxy", 500, "error trying to reach service s"),
        ("GET", f"{NODES}/n/proxy/metrics", 500, "no kubelet on node n"),
    ],
)
def test_a_connection_that_cannot_be_made_says_why(method: str, path: str, status: int, words: str) -> None:
    async def test(caller: Caller) -> None:
        refused = await caller.refused(method, path)
        assert refused[0] == status
        assert words in refused[1]

    virtual(test)


def test_the_log_of_a_pod_without_a_node_is_empty() -> None:
    async def test(caller: Caller) -> None:
        response = await caller.send("GET", f"{PODS}/waiting/log")
        assert (response.status, response.body) == (200, b"")

    virtual(test)
