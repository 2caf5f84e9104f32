"""What the typed client promises, on a real wire."""

import pytest

from skysail.api.errors import AlreadyExists, Conflict, Invalid, NotFound, TooManyRequests
from skysail.api.kinds import CONFIGMAPS, DEPLOYMENTS, NODES, POD_DISRUPTION_BUDGETS, PODS
from skysail.api.meta import format_time
from skysail.client.api_client import ApiClient
from skysail.client.bodies import JSON, STRATEGIC
from tests.conformance.objects import config_map, deployment, node, pod


async def test_what_was_created_can_be_read_and_is_there_only_once(client: ApiClient, namespace: str) -> None:
    made = await client.create(CONFIGMAPS, config_map("a", key="value"), namespace)
    read = await client.get(CONFIGMAPS, "a", namespace)
    assert (read.uid, read.data) == (made.uid, {"key": "value"})
    with pytest.raises(AlreadyExists, match=r"create configmaps .*: configmaps \"a\" already exists"):
        await client.create(CONFIGMAPS, config_map("a"), namespace)


async def test_what_is_not_there_is_not_found_by_name(client: ApiClient, namespace: str) -> None:
    with pytest.raises(NotFound, match=f'get configmaps {namespace}/absent: configmaps "absent" not found'):
        await client.get(CONFIGMAPS, "absent", namespace)


async def test_a_dry_run_leaves_nothing(client: ApiClient, namespace: str) -> None:
    await client.create(CONFIGMAPS, config_map("dry"), namespace, dry_run=True)
    assert (await client.list(CONFIGMAPS, namespace, field_selector="metadata.name=dry")).items == ()


async def test_pages_make_up_the_whole_list(client: ApiClient, namespace: str) -> None:
    for number in range(7):
        await client.create(CONFIGMAPS, config_map(f"c{number}"), namespace)
    page = await client.list(CONFIGMAPS, namespace, limit=3)
    assert (len(page.items), bool(page.continue_token)) == (3, True)
    whole = await client.list_all(CONFIGMAPS, namespace)
    assert {f"c{number}" for number in range(7)} <= {each.name for each in whole.items}


async def test_a_watch_tells_what_came_changed_and_went(client: ApiClient, namespace: str) -> None:
    version = (await client.list(CONFIGMAPS, namespace)).resource_version
    await client.create(CONFIGMAPS, config_map("w", key="1"), namespace)
    await client.patch(CONFIGMAPS, "w", namespace, {"data": {"key": "2"}})
    await client.delete(CONFIGMAPS, "w", namespace)
    seen = []
    async for event in client.watch(
        CONFIGMAPS, namespace, resource_version=version, field_selector="metadata.name=w", allow_bookmarks=False
    ):
        seen.append((event.type, event.object.data.get("key")))
        if event.type == "DELETED":
            break
    assert seen == [("ADDED", "1"), ("MODIFIED", "2"), ("DELETED", "2")]


async def test_a_streamed_initial_list_ends_with_its_bookmark(client: ApiClient, namespace: str) -> None:
    await client.create(CONFIGMAPS, config_map("first"), namespace)
    types = []
    async for event in client.watch(CONFIGMAPS, namespace, send_initial_events=True):
        types.append(event.type)
        if event.object.metadata.annotations.get("k8s.io/initial-events-end") == "true":
            break
    assert types[-1] == "BOOKMARK"
    assert set(types[:-1]) == {"ADDED"}


async def test_a_stale_writer_is_told_of_the_conflict(client: ApiClient, namespace: str) -> None:
    old = await client.create(CONFIGMAPS, config_map("s", key="1"), namespace)
    await client.patch(CONFIGMAPS, "s", namespace, {"data": {"key": "2"}})
    stale = {"metadata": {"name": "s", "resourceVersion": old.metadata.resource_version}, "data": {"key": "3"}}
    with pytest.raises(Conflict, match="the object has been modified"):
        await client.update(CONFIGMAPS, stale, namespace)


async def test_a_delete_with_another_uid_is_refused(client: ApiClient, namespace: str) -> None:
    await client.create(CONFIGMAPS, config_map("u"), namespace)
    with pytest.raises(Conflict):
        await client.delete(CONFIGMAPS, "u", namespace, uid="another")
    await client.delete(CONFIGMAPS, "u", namespace)


async def test_patches_of_all_kinds(client: ApiClient, namespace: str) -> None:
    await client.create(DEPLOYMENTS, deployment("p", 1), namespace)
    await client.patch(DEPLOYMENTS, "p", namespace, {"metadata": {"labels": {"merge": "yes"}}})
    json_patch = [{"op": "add", "path": "/metadata/labels/json", "value": "yes"}]
    await client.patch(DEPLOYMENTS, "p", namespace, json_patch, patch_type=JSON)
    container = {"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "side:1"}]}}}}
    patched = await client.patch(DEPLOYMENTS, "p", namespace, container, patch_type=STRATEGIC)
    assert {"merge": "yes", "json": "yes"}.items() <= dict(patched.metadata.labels).items()
    assert b'"name":"main"' in bytes(patched.spec.template)
    assert b'"name":"side"' in bytes(patched.spec.template)


async def test_apply_owns_its_fields(client: ApiClient, namespace: str) -> None:
    applied = {"metadata": {"name": "o", "namespace": namespace}, "data": {"a": "1"}}
    await client.apply(CONFIGMAPS, applied, field_manager="one")
    with pytest.raises(Conflict, match='conflict with "one"'):
        await client.apply(CONFIGMAPS, {**applied, "data": {"a": "2"}}, field_manager="two")
    forced = await client.apply(CONFIGMAPS, {**applied, "data": {"a": "2"}}, field_manager="two", force=True)
    assert forced.data == {"a": "2"}


async def test_an_invalid_object_names_its_fields(client: ApiClient, namespace: str) -> None:
    with pytest.raises(Invalid) as caught:
        await client.create(PODS, {"metadata": {"name": "bad"}, "spec": {"containers": []}}, namespace)
    assert caught.value.status.details is not None
    assert "spec.containers" in [cause.field for cause in caught.value.status.details.causes]


async def test_scale_reads_and_writes_replicas_alone(client: ApiClient, namespace: str) -> None:
    await client.create(DEPLOYMENTS, deployment("scaled", 1), namespace)
    await client.scale(DEPLOYMENTS, "scaled", namespace, 3)
    assert (await client.get(DEPLOYMENTS, "scaled", namespace)).spec.replicas == 3
    assert (await client.get_scale(DEPLOYMENTS, "scaled", namespace)).spec.replicas == 3


async def test_a_pod_is_bound_once(client: ApiClient, namespace: str) -> None:
    made = await client.create(PODS, pod("b"), namespace)
    await client.bind(namespace, "b", made.uid, "some-node")
    bound = await client.get(PODS, "b", namespace)
    assert bound.spec.node_name == "some-node"
    with pytest.raises(Conflict, match="already assigned to node"):
        await client.bind(namespace, "b", made.uid, "another-node")
    await client.delete(PODS, "b", namespace, grace_period_seconds=0)


async def test_a_budget_holds_an_eviction_back(client: ApiClient, namespace: str) -> None:
    budget = {
        "metadata": {"name": "all"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "e"}}},
    }
    await client.create(POD_DISRUPTION_BUDGETS, budget, namespace)
    made = await client.create(PODS, pod("e"), namespace)
    await client.bind(namespace, "e", made.uid, "some-node")
    condition = {"type": "Ready", "status": "True"}
    status = {"status": {"phase": "Running", "conditions": [condition]}}
    await client.patch(PODS, "e", namespace, status, subresource="status")
    with pytest.raises(TooManyRequests, match="violate the pod's disruption budget"):
        await client.evict(namespace, "e")
    await client.delete(PODS, "e", namespace, grace_period_seconds=0)


async def test_status_is_written_apart_from_the_spec(client: ApiClient) -> None:
    made = await client.create(NODES, node("conformance-status"))
    patch = {"spec": {"unschedulable": True}, "status": {"phase": "Running"}}
    after = await client.patch(NODES, made.name, "", patch, subresource="status")
    assert (after.spec.unschedulable, after.status.phase) == (False, "Running")
    await client.delete(NODES, made.name)


async def test_times_are_written_in_whole_seconds(client: ApiClient, namespace: str) -> None:
    made = await client.create(CONFIGMAPS, config_map("t"), namespace)
    assert made.metadata.creation_timestamp is not None
    assert format_time(made.metadata.creation_timestamp).endswith("Z")
    assert made.metadata.creation_timestamp.microsecond == 0
