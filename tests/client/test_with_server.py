"""The client against the embedded API server itself, in process and over a socket: the same answers."""

import asyncio
from contextlib import aclosing, asynccontextmanager
from random import Random

import msgspec
import pytest

from skysail.api.apps import DeploymentStatus
from skysail.api.core import Pod, PodSpec
from skysail.api.errors import AlreadyExists, Conflict, Expired, Invalid, NotFound, TooManyRequests
from skysail.api.kinds import CONFIGMAPS, DEPLOYMENTS, NODES, POD_DISRUPTION_BUDGETS, PODS, Kind
from skysail.apiserver.authentication import ADMIN
from skysail.apiserver.http import serve_http
from skysail.apiserver.server import ApiServer
from skysail.client.api_client import ApiClient
from skysail.client.bodies import JSON, STRATEGIC
from skysail.client.config import ServerConfig
from skysail.client.http import HttpTransport
from skysail.client.inprocess import InProcessTransport
from skysail.simulator.clock import WallClock
from skysail.testing import make_config_map, make_deployment, make_disruption_budget, make_node, make_pod


@asynccontextmanager
async def in_process(server):
    yield InProcessTransport(server, ADMIN)


@asynccontextmanager
async def over_http(server):
    async with serve_http(server) as address:
        transport = HttpTransport(ServerConfig(address.url), clock=WallClock())
        try:
            yield transport
        finally:
            await transport.close()


@pytest.fixture(params=[in_process, over_http], ids=["in process", "over http"])
async def client(request):
    clock = WallClock()
    async with ApiServer(clock=clock, rng=Random(1)).running() as server, request.param(server) as transport:
        yield ApiClient(transport, user_agent="test", clock=clock, rng=Random(2))


async def test_an_object_lives_from_create_to_delete(client):
    made = await client.create(PODS, make_pod("web", labels={"app": "web"}))
    assert (made.name, made.spec.scheduler_name) == ("web", "default-scheduler")
    with pytest.raises(AlreadyExists, match=r"create pods default/web: pods \"web\" already exists"):
        await client.create(PODS, make_pod("web"))
    assert (await client.get(PODS, "web", "default")).uid == made.uid
    with pytest.raises(Conflict):
        await client.delete(PODS, "web", "default", uid="another")
    await client.delete(PODS, "web", "default", uid=made.uid, grace_period_seconds=0)
    with pytest.raises(NotFound):
        await client.get(PODS, "web", "default")


async def test_a_wrong_object_is_refused_with_every_field_that_is_wrong(client):
    with pytest.raises(Invalid) as raised:
        await client.create(PODS, Pod(metadata=make_pod("UPPER").metadata, spec=PodSpec()))
    assert {cause.field for cause in raised.value.status.details.causes} >= {"metadata.name", "spec.containers"}


async def test_lists_are_selected_and_paged(client):
    for number in range(5):
        await client.create(CONFIGMAPS, make_config_map(f"c{number}"))
    await client.patch(CONFIGMAPS, "c3", "default", {"metadata": {"labels": {"pick": "me"}}})
    paged = await client.list_all(CONFIGMAPS, "default", page_size=2)
    assert [each.name for each in paged.items] == ["c0", "c1", "c2", "c3", "c4"]
    assert [each.name for each in (await client.list(CONFIGMAPS, label_selector="pick=me")).items] == ["c3"]
    assert [each.name for each in (await client.list(CONFIGMAPS, field_selector="metadata.name=c1")).items] == ["c1"]


async def test_a_watch_follows_a_list_and_can_begin_with_one(client):
    listed = await client.list(CONFIGMAPS, "default")
    made = await client.create(CONFIGMAPS, make_config_map("a", k="1"))
    await client.patch(CONFIGMAPS, "a", "default", {"data": {"k": "2"}})
    await client.delete(CONFIGMAPS, "a", "default")
    async with aclosing(client.watch(CONFIGMAPS, "default", resource_version=listed.resource_version)) as events:
        seen = [await anext(events) for _ in range(3)]
    assert [(each.type, each.object.data["k"]) for each in seen] == [
        ("ADDED", "1"),
        ("MODIFIED", "2"),
        ("DELETED", "2"),
    ]
    assert seen[0].object == made
    async with aclosing(client.watch(NODES, send_initial_events=True)) as events:
        (bookmark,) = [await anext(events)]
    assert bookmark.type == "BOOKMARK"
    assert bookmark.object.metadata.annotations == {"k8s.io/initial-events-end": "true"}


async def test_a_watch_sees_what_happens_while_it_is_open(client):
    async with aclosing(client.watch(CONFIGMAPS, "default", send_initial_events=True)) as events:
        assert (await anext(events)).type == "BOOKMARK"
        async with asyncio.TaskGroup() as group:
            group.create_task(client.create(CONFIGMAPS, make_config_map("late")))
            assert (await anext(events)).object.name == "late"


async def test_every_kind_of_patch_is_understood(client):
    await client.create(CONFIGMAPS, make_config_map("a", k="1"))
    await client.patch(CONFIGMAPS, "a", "default", {"data": {"m": "2"}})
    await client.patch(CONFIGMAPS, "a", "default", {"data": {"s": "3"}}, patch_type=STRATEGIC)
    operations = [{"op": "remove", "path": "/data/k"}]
    await client.patch(CONFIGMAPS, "a", "default", operations, patch_type=JSON)
    applied = {"metadata": {"name": "a", "namespace": "default"}, "data": {"y": "4"}}
    done = await client.apply(CONFIGMAPS, applied, field_manager="me")
    assert done.data == {"m": "2", "s": "3", "y": "4"}
    with pytest.raises(Conflict, match="conflict"):
        await client.apply(CONFIGMAPS, {**applied, "data": {"m": "5"}}, field_manager="me")
    assert (await client.apply(CONFIGMAPS, {**applied, "data": {"m": "5"}}, field_manager="me", force=True)).data == {
        "m": "5",
        "s": "3",
    }


async def test_a_status_is_patched_with_its_version_when_asked(client):
    made = await client.create(DEPLOYMENTS, make_deployment("web"))
    once = msgspec.structs.replace(made, status=DeploymentStatus(replicas=1))
    twice = msgspec.structs.replace(made, status=DeploymentStatus(replicas=2))
    stored = await client.patch_status(DEPLOYMENTS, made, once, optimistic=True)
    assert stored.status.replicas == 1
    with pytest.raises(Conflict):
        await client.patch_status(DEPLOYMENTS, made, twice, optimistic=True)
    assert (await client.patch_status(DEPLOYMENTS, made, twice)).status.replicas == 2


async def test_replacing_an_old_version_is_a_conflict(client):
    raw_kind = Kind("", "v1", "ConfigMap", "configmaps", True, dict)
    old = await client.create(raw_kind, {"metadata": {"name": "a", "namespace": "default"}})
    await client.update(raw_kind, {**old, "data": {"k": "1"}})
    with pytest.raises(Conflict, match="the object has been modified"):
        await client.update(raw_kind, {**old, "data": {"k": "2"}})


async def test_a_pod_is_bound_once(client):
    await client.create(NODES, make_node("n1"))
    pod = await client.create(PODS, make_pod("web"))
    with pytest.raises(Conflict):
        await client.bind("default", "web", "another-uid", "n1")
    await client.bind("default", "web", pod.uid, "n1")
    assert (await client.get(PODS, "web", "default")).spec.node_name == "n1"
    with pytest.raises(Conflict):
        await client.bind("default", "web", pod.uid, "n2")


async def test_an_eviction_is_refused_by_a_budget_and_granted_without(client):
    await client.create(PODS, make_pod("web", labels={"app": "web"}, node="n1"))
    ready = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    await client.patch(PODS, "web", "default", ready, subresource="status")
    await client.create(POD_DISRUPTION_BUDGETS, make_disruption_budget(min_available=1))
    with pytest.raises(TooManyRequests):
        await client.evict("default", "web")
    await client.delete(POD_DISRUPTION_BUDGETS, "web", "default")
    await client.evict("default", "web", grace_period_seconds=30)
    assert (await client.get(PODS, "web", "default")).metadata.deletion_timestamp is not None


async def test_replicas_are_scaled_through_the_subresource(client):
    await client.create(DEPLOYMENTS, make_deployment("web", replicas=2))
    assert (await client.get_scale(DEPLOYMENTS, "web", "default")).spec.replicas == 2
    assert (await client.scale(DEPLOYMENTS, "web", "default", 5)).spec.replicas == 5
    assert (await client.get(DEPLOYMENTS, "web", "default")).spec.replicas == 5


async def test_a_collection_is_deleted_by_selector_and_a_dry_run_changes_nothing(client):
    for name in ("a", "b"):
        await client.create(CONFIGMAPS, {"metadata": {"name": name, "namespace": "default", "labels": {"l": name}}})
    await client.delete(CONFIGMAPS, "a", "default", dry_run=True)
    await client.create(CONFIGMAPS, make_config_map("c"), dry_run=True)
    await client.delete_collection(CONFIGMAPS, "default", label_selector="l=a")
    assert [each.name for each in (await client.list(CONFIGMAPS, "default")).items] == ["b"]


async def test_a_version_that_is_gone_is_said_to_be_expired(client):
    with pytest.raises(Expired):
        await client.list(CONFIGMAPS, limit=1, continue_token="eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhIn0")


async def test_paths_beside_the_resources_can_be_read(client):
    assert await client.read_path("/readyz") == b"ok"
    assert msgspec.json.decode(await client.read_path("/version"))["minor"].startswith("36")
