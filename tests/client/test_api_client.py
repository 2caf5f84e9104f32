import asyncio
from random import Random

import msgspec
import pytest

from skysail.api.core import Pod, PodCondition, PodSpec, PodStatus
from skysail.api.errors import (
    AlreadyExists,
    Conflict,
    Expired,
    InternalError,
    NotFound,
    TooManyRequests,
    Unreachable,
)
from skysail.api.kinds import DEPLOYMENTS, NODES, PODS, Kind
from skysail.api.meta import ObjectMeta
from skysail.api.ports import User
from skysail.client.api_client import ApiClient
from skysail.client.bodies import APPLY, JSON, STRATEGIC
from skysail.client.inprocess import InProcessTransport
from skysail.simulator.clock import run_virtual
from tests.client.fakes import FakeServer, answer, event, refusal, watch

POD_PATH = "/api/v1/namespaces/default/pods/web"
POD = {"metadata": {"name": "web", "namespace": "default"}, "spec": {"nodeName": "n1"}}


def run(script, main):
    """Run `main(client, server, clock)` in virtual time against a scripted server."""

    async def start(clock):
        server = FakeServer()
        for call, answers in script.items():
            server.on(call, *answers) if isinstance(answers, tuple) else server.on(call, answers)
        transport = InProcessTransport(server, User("tester"))
        client = ApiClient(transport, user_agent="test", clock=clock, rng=Random(1))
        return await main(client, server, clock)

    return run_virtual(start)


def test_get_reads_a_typed_object_and_says_who_asks():
    async def main(client, server, clock):
        pod = await client.get(PODS, "web", "default", resource_version="0")
        assert pod.spec.node_name == "n1"
        assert server.last.query == (("resourceVersion", "0"),)
        assert server.last.headers["user-agent"].startswith("test skysail/")
        assert server.users[-1].name == "tester"

    run({f"GET {POD_PATH}": answer(POD)}, main)


def test_a_kind_known_only_at_run_time_reads_dictionaries():
    async def main(client, server, clock):
        assert await client.get(Kind("x.io", "v1", "Thing", "things", False, dict), "a") == {"spec": {"b": 1}}

    run({"GET /apis/x.io/v1/things/a": answer({"spec": {"b": 1}})}, main)


def test_an_error_says_verb_kind_and_name():
    async def main(client, server, clock):
        with pytest.raises(NotFound, match=r"^get pods default/web: pods \"web\" not found$") as raised:
            await client.get(PODS, "web", "default")
        assert raised.value.status.details.name == "web"

    run({f"GET {POD_PATH}": refusal(404, "NotFound", 'pods "web" not found', name="web")}, main)


def test_an_answer_that_cannot_be_read_is_the_servers_fault():
    async def main(client, server, clock):
        with pytest.raises(InternalError, match="get pods default/web: the server's answer cannot be read"):
            await client.get(PODS, "web", "default")
        with pytest.raises(InternalError, match="list nodes"):
            await client.list(NODES)

    run({f"GET {POD_PATH}": answer(b"<html>"), "GET /api/v1/nodes": answer({"items": 3})}, main)


def page(*names, token="", version="7"):
    return answer(
        {
            "metadata": {"resourceVersion": version, "continue": token},
            "items": [{"metadata": {"name": n}} for n in names],
        }
    )


def test_list_sends_what_it_is_asked_for():
    async def main(client, server, clock):
        listed = await client.list(
            PODS,
            "default",
            label_selector="a=b",
            field_selector="spec.nodeName=n",
            limit=5,
            resource_version="3",
            resource_version_match="NotOlderThan",
        )
        assert [pod.name for pod in listed.items] == ["a"]
        assert (listed.resource_version, listed.continue_token) == ("7", "more")
        assert dict(server.last.query) == {
            "labelSelector": "a=b",
            "fieldSelector": "spec.nodeName=n",
            "limit": "5",
            "resourceVersion": "3",
            "resourceVersionMatch": "NotOlderThan",
        }

    run({"GET /api/v1/namespaces/default/pods": page("a", token="more")}, main)


def test_list_all_follows_the_pages_at_the_first_ones_version():
    async def main(client, server, clock):
        listed = await client.list_all(PODS, page_size=2)
        assert [pod.name for pod in listed.items] == ["a", "b", "c"]
        assert listed.resource_version == "7"
        assert [dict(r.query).get("continue") for r in server.requests] == [None, "t"]

    run({"GET /api/v1/pods": (page("a", "b", token="t"), page("c", version="9"))}, main)


def test_list_all_asks_for_everything_when_its_token_expires():
    async def main(client, server, clock):
        assert [pod.name for pod in (await client.list_all(PODS)).items] == ["a", "b"]
        assert server.last.query == ()

    run({"GET /api/v1/pods": (page("a", token="t"), refusal(410, "Expired"), page("a", "b", version="9"))}, main)


def test_a_null_list_of_items_is_an_empty_one():
    async def main(client, server, clock):
        assert (await client.list(NODES)).items == ()

    run({"GET /api/v1/nodes": answer({"items": None, "metadata": {}})}, main)


async def collect(events):
    return [(each.type, each.object.name) async for each in events]


def test_watch_yields_typed_events_and_asks_for_bookmarks():
    async def main(client, server, clock):
        assert await collect(client.watch(PODS, "default", resource_version="5", timeout_seconds=300)) == [
            ("ADDED", "a"),
            ("MODIFIED", "a"),
            ("BOOKMARK", ""),
            ("DELETED", "a"),
        ]
        assert dict(server.last.query) == {
            "watch": "true",
            "resourceVersion": "5",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": "300",
        }

    obj = {"metadata": {"name": "a"}}
    chunks = (
        event("ADDED", obj) + event("MODIFIED", obj),
        event("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": "9"}}),
        event("DELETED", obj),
    )
    run({"GET /api/v1/namespaces/default/pods": watch(*chunks)}, main)


def test_watch_can_ask_for_the_collection_first():
    async def main(client, server, clock):
        await collect(client.watch(NODES, send_initial_events=True, allow_bookmarks=False))
        assert dict(server.last.query) == {
            "watch": "true",
            "sendInitialEvents": "true",
            "resourceVersionMatch": "NotOlderThan",
        }

    run({"GET /api/v1/nodes": watch()}, main)


@pytest.mark.parametrize("kind", [PODS, Kind("", "v1", "Pod", "pods", True, dict)], ids=["struct", "dict"])
def test_an_error_event_is_raised_as_its_error(kind):
    async def main(client, server, clock):
        with pytest.raises(Expired, match="watch pods: too old"):
            await collect(client.watch(kind))

    status = {"kind": "Status", "status": "Failure", "code": 410, "reason": "Expired", "message": "too old"}
    run({"GET /api/v1/pods": watch(event("ERROR", status))}, main)


@pytest.mark.parametrize("line", [b"nonsense\n", b'{"type":"STRANGE","object":{}}\n', b'{"type":"ADDED"}\n'])
def test_a_line_that_is_no_event_is_the_servers_fault(line):
    async def main(client, server, clock):
        with pytest.raises(InternalError, match="cannot be read"):
            await collect(client.watch(PODS))

    run({"GET /api/v1/pods": watch(line)}, main)


def test_create_writes_api_version_kind_and_the_objects_own_namespace():
    async def main(client, server, clock):
        created = await client.create(PODS, Pod(metadata=ObjectMeta(name="web", namespace="default")))
        assert created.spec.node_name == "n1"
        assert server.last_json() == {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "web", "namespace": "default"},
        }
        await client.create(PODS, {"metadata": {"name": "web"}}, "default", dry_run=True)
        assert server.last.query == (("dryRun", "All"),)
        assert server.last_json()["kind"] == "Pod"

    run({"POST /api/v1/namespaces/default/pods": answer(POD, 201)}, main)


def test_update_replaces_a_raw_object():
    async def main(client, server, clock):
        await client.update(PODS, {**POD, "apiVersion": "v1", "kind": "Pod"}, subresource="status")
        assert server.last.method == "PUT"
        assert server.last_json() == {**POD, "apiVersion": "v1", "kind": "Pod"}

    run({f"PUT {POD_PATH}/status": answer(POD)}, main)


@pytest.mark.parametrize(
    ("patch_type", "patch", "content_type"),
    [
        (None, {"a": 1}, "application/merge-patch+json"),
        (STRATEGIC, {"a": 1}, "application/strategic-merge-patch+json"),
        (JSON, [{"op": "remove", "path": "/a"}], "application/json-patch+json"),
        (APPLY, b"a: 1", "application/apply-patch+yaml"),
    ],
)
def test_patch_says_how_it_is_to_be_read(patch_type, patch, content_type):
    async def main(client, server, clock):
        options = {"patch_type": patch_type} if patch_type else {}
        await client.patch(PODS, "web", "default", patch, field_manager="me", **options)
        assert server.last.headers["content-type"] == content_type
        assert dict(server.last.query) == {"fieldManager": "me"}

    run({f"PATCH {POD_PATH}": answer(POD)}, main)


def test_apply_forces_only_when_told():
    async def main(client, server, clock):
        await client.apply(PODS, POD, field_manager="me", force=True)
        assert dict(server.last.query) == {"fieldManager": "me", "force": "true"}
        assert server.last_json()["apiVersion"] == "v1"

    run({f"PATCH {POD_PATH}": answer(POD)}, main)


OLD = Pod(
    metadata=ObjectMeta(name="web", namespace="default", uid="u1", resource_version="41"),
    spec=PodSpec(node_name="n1"),
    status=PodStatus(phase="Pending", reason="Because", conditions=(PodCondition(type="Ready", status="False"),)),
)


def test_patch_status_sends_only_the_difference_and_the_uid():
    async def main(client, server, clock):
        new = msgspec.structs.replace(OLD, status=PodStatus(phase="Running", conditions=OLD.status.conditions))
        await client.patch_status(PODS, OLD, new)
        assert server.last_json() == {"metadata": {"uid": "u1"}, "status": {"phase": "Running", "reason": None}}
        await client.patch_status(PODS, OLD, new, optimistic=True)
        assert server.last_json()["metadata"] == {"uid": "u1", "resourceVersion": "41"}

    run({f"PATCH {POD_PATH}/status": answer(POD)}, main)


def test_patch_status_sends_nothing_when_nothing_changed():
    async def main(client, server, clock):
        assert await client.patch_status(PODS, OLD, msgspec.structs.replace(OLD)) is OLD
        assert server.requests == []

    run({}, main)


def test_delete_carries_its_options():
    async def main(client, server, clock):
        await client.delete(
            PODS,
            "web",
            "default",
            propagation="Foreground",
            grace_period_seconds=0,
            uid="u",
            resource_version="3",
            dry_run=True,
        )
        assert server.last_json() == {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": "Foreground",
            "gracePeriodSeconds": 0,
            "preconditions": {"uid": "u", "resourceVersion": "3"},
            "dryRun": ["All"],
        }
        await client.delete_collection(PODS, "default", label_selector="a=b")
        assert server.last.query == (("labelSelector", "a=b"),)

    run({f"DELETE {POD_PATH}": answer({}), "DELETE /api/v1/namespaces/default/pods": answer({})}, main)


def test_bind_names_pod_uid_and_node():
    async def main(client, server, clock):
        await client.bind("default", "web", "u1", "n7")
        body = server.last_json()
        assert (body["kind"], body["target"]["name"], body["metadata"]["uid"]) == ("Binding", "n7", "u1")

    run({f"POST {POD_PATH}/binding": answer({}, 201)}, main)


def test_an_eviction_a_budget_refuses_is_not_repeated():
    async def main(client, server, clock):
        with pytest.raises(TooManyRequests, match="evict pods default/web"):
            await client.evict("default", "web", grace_period_seconds=5)
        assert server.last_json()["deleteOptions"]["gracePeriodSeconds"] == 5
        assert len(server.requests) == 1

    run({f"POST {POD_PATH}/eviction": refusal(429, "TooManyRequests", "budget", retry_after=10)}, main)


def test_scale_reads_and_writes_the_number_of_replicas():
    async def main(client, server, clock):
        assert (await client.get_scale(DEPLOYMENTS, "web", "default")).spec.replicas == 3
        await client.scale(DEPLOYMENTS, "web", "default", 5)
        assert server.last_json() == {"spec": {"replicas": 5}}

    path = "/apis/apps/v1/namespaces/default/deployments/web/scale"
    run({f"GET {path}": answer({"spec": {"replicas": 3}}), f"PATCH {path}": answer({"spec": {"replicas": 5}})}, main)


def test_a_forgotten_name_or_namespace_is_noticed_before_anything_is_sent():
    async def main(client, server, clock):
        with pytest.raises(ValueError, match="pods web: a namespace is needed"):
            await client.get(PODS, "web")
        with pytest.raises(ValueError, match="nodes: a name is needed"):
            await client.delete(NODES, "")
        assert server.requests == []

    run({}, main)


def test_any_path_can_be_read():
    async def main(client, server, clock):
        assert await client.read_path("/readyz") == b"ok"

    run({"GET /readyz": answer(b"ok")}, main)


# --- repeating ---


@pytest.mark.parametrize(
    "first",
    [
        refusal(429, "TooManyRequests", retry_after=7),
        refusal(503, "ServiceUnavailable", retry_after=7),
        refusal(429, "TooManyRequests", retryAfterSeconds=7),
    ],
    ids=["429 header", "503 header", "429 body"],
)
def test_come_back_later_is_obeyed_to_the_second(first):
    async def main(client, server, clock):
        await client.create(PODS, POD)
        assert clock.monotonic() == 7.0
        assert client.statistics().retries == 1

    run({"POST /api/v1/namespaces/default/pods": (first, answer(POD, 201))}, main)


def test_a_server_that_never_becomes_ready_is_reported_in_the_end():
    async def main(client, server, clock):
        with pytest.raises(TooManyRequests) as raised:
            await client.get(PODS, "web", "default")
        assert raised.value.retry_after_seconds == 1
        statistics = client.statistics()
        assert (statistics.requests, statistics.retries, statistics.failures) == (11, 10, 1)

    run({f"GET {POD_PATH}": refusal(429, "TooManyRequests", retry_after=1)}, main)


@pytest.mark.parametrize(
    ("response", "error"),
    [
        (refusal(409, "Conflict"), Conflict),
        (refusal(409, "AlreadyExists"), AlreadyExists),
        (refusal(409, "AlreadyExists", retryAfterSeconds=1), AlreadyExists),
        (refusal(500, "InternalError"), InternalError),
        (refusal(429, "TooManyRequests"), TooManyRequests),
        (refusal(429, "TooManyRequests", retry_after=3600), TooManyRequests),
    ],
    ids=["conflict", "exists", "generated name exists", "internal", "no time given", "too long"],
)
def test_what_a_repetition_cannot_help_is_the_callers_at_once(response, error):
    async def main(client, server, clock):
        with pytest.raises(error):
            await client.create(PODS, POD)
        assert (len(server.requests), clock.monotonic()) == (1, 0.0)

    run({"POST /api/v1/namespaces/default/pods": response}, main)


def raises_unreachable():
    raise Unreachable("gone")


def test_a_lost_connection_is_tried_again_for_reads_and_applies_only():
    async def main(client, server, clock):
        assert (await client.get(PODS, "web", "default")).name == "web"
        assert len(server.requests) == 3
        assert 0.3 <= clock.monotonic() <= 0.45
        server.on(f"PATCH {POD_PATH}", raises_unreachable, answer(POD))
        await client.apply(PODS, POD, field_manager="me")
        for call in (
            client.create(PODS, POD),
            client.update(PODS, POD),
            client.delete(PODS, "web", "default"),
            client.patch(PODS, "web", "default", {}),
        ):
            server.on("POST /api/v1/namespaces/default/pods", raises_unreachable)
            for method in ("PUT", "DELETE", "PATCH"):
                server.on(f"{method} {POD_PATH}", raises_unreachable)
            sent = len(server.requests)
            with pytest.raises(Unreachable):
                await call
            assert len(server.requests) == sent + 1

    run({f"GET {POD_PATH}": (raises_unreachable, raises_unreachable, answer(POD))}, main)


def test_every_call_has_a_time_out():
    async def never():
        await asyncio.Event().wait()

    async def main(client, server, clock):
        with pytest.raises(Unreachable, match="no answer within 30 s"):
            await client.create(PODS, POD)
        assert clock.monotonic() == 30.0

    run({"POST /api/v1/namespaces/default/pods": lambda: never()}, main)
