"""Device claims from the pod to the allocation, on the embedded server."""

import asyncio

import msgspec
import pytest

from skysail.api.kinds import DEVICE_CLASSES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from skysail.api.ports import Request, Response
from skysail.client.inprocess import InProcessTransport
from skysail.scheduler.devices.cel import environment as cel_environment
from skysail.simulator.clock import settle
from tests.scheduler.world import ADMIN, FaultyTransport, World, in_world

DRIVER = "gpu.example.com"


async def device_class(world: World, name: str = "gpu", **spec) -> None:
    selectors = [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}]
    body = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name}}
    await world.client.create(DEVICE_CLASSES, {**body, "spec": {"selectors": selectors, **spec}})


async def devices(world: World, node: str, *names: str, **more) -> None:
    spec = {
        "driver": DRIVER, "nodeName": node, "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": name, **more} for name in names],
    }  # fmt: skip
    body = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": f"{node}-gpu"}}
    await world.client.create(RESOURCE_SLICES, {**body, "spec": spec})


async def claim(world: World, name: str, count: int = 1) -> None:
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count}
    body = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": name}}
    spec = {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}
    await world.client.create(RESOURCE_CLAIMS, {**body, "spec": spec}, "default")


async def pod_with(world: World, name: str, *claims: str):
    return await world.pod(name, resourceClaims=[{"name": each, "resourceClaimName": each} for each in claims])


async def report(world: World, name: str, device: str, condition: str) -> None:
    """Say of an allocated device that a condition is true, as its driver would."""
    true = {"type": condition, "status": "True", "reason": "Seen", "message": ""}
    true["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    status = {"devices": [{"driver": DRIVER, "pool": "n", "device": device, "conditions": [true]}]}
    await world.client.patch(RESOURCE_CLAIMS, name, "default", {"status": status}, subresource="status")


async def allocated(world: World, name: str) -> list[str]:
    status = (await world.client.get(RESOURCE_CLAIMS, name, "default")).status
    return [each.device for each in status.allocation.devices.results] if status.allocation else []


async def reserved(world: World, name: str) -> list[str]:
    status = (await world.client.get(RESOURCE_CLAIMS, name, "default")).status
    return [each.name for each in status.reserved_for]


@in_world
async def test_a_pod_goes_where_its_devices_are_and_they_are_written_before_it_is_bound(world):
    await device_class(world)
    await world.node("bare")
    await world.node("rich")
    await devices(world, "rich", "a", "b")
    await claim(world, "c")
    async with world.running(world.scheduler()):
        await pod_with(world, "p", "c")
        await settle()
        assert await world.node_of("p") == "rich"
        assert await allocated(world, "c") == ["a"]
        assert await reserved(world, "c") == ["p"]
        found = await world.client.get(RESOURCE_CLAIMS, "c", "default")
        assert found.metadata.finalizers == ("resource.kubernetes.io/delete-protection",)
        assert found.status.allocation.allocation_timestamp is not None


@in_world
async def test_two_pods_are_never_given_the_same_device(world):
    await device_class(world)
    await world.node("n")
    await devices(world, "n", "a", "b")
    for name in ("c1", "c2", "c3"):
        await claim(world, name)
    async with world.running(world.scheduler()):
        for name in ("1", "2", "3"):
            await pod_with(world, f"p{name}", f"c{name}")
        await settle()
        given = [device for name in ("c1", "c2", "c3") for device in await allocated(world, name)]
        assert sorted(given) == ["a", "b"]
        nodes = [await world.node_of(name) for name in ("p1", "p2", "p3")]
        assert sorted(nodes) == ["", "n", "n"]
        waiting = f"p{nodes.index('') + 1}"
        condition = await world.condition(waiting)
        assert condition == ("False", "Unschedulable", "0/1 nodes are available: 1 cannot allocate all claims.")


@in_world
async def test_pods_share_a_claim_that_is_allocated(world):
    await device_class(world)
    await world.node("n")
    await devices(world, "n", "a")
    await claim(world, "c")
    async with world.running(world.scheduler()):
        await pod_with(world, "p1", "c")
        await pod_with(world, "p2", "c")
        await asyncio.sleep(30)
        assert [await world.node_of(name) for name in ("p1", "p2")] == ["n", "n"]
        assert sorted(await reserved(world, "c")) == ["p1", "p2"]


@in_world
async def test_a_pod_waits_for_its_claim_and_for_devices_to_appear(world):
    await device_class(world)
    await world.node("n")
    async with world.running(world.scheduler()):
        await pod_with(world, "p", "c")
        await settle()
        assert await world.node_of("p") == ""
        await claim(world, "c")
        await asyncio.sleep(20)
        assert await world.node_of("p") == ""
        await devices(world, "n", "a")
        await asyncio.sleep(20)
        assert await world.node_of("p") == "n"


@in_world
async def test_devices_are_given_back_when_the_pod_cannot_be_bound(world):
    await device_class(world)
    await world.node("n")
    await devices(world, "n", "a")
    await claim(world, "c")
    transport = FaultyTransport(InProcessTransport(world.server, ADMIN))
    refusals = 1

    def refuse_binding(request: Request) -> Response | None:
        nonlocal refusals
        if not request.path.endswith("/binding") or not refusals:
            return None
        refusals -= 1
        body = {"kind": "Status", "status": "Failure", "code": 500, "reason": "InternalError", "message": "no"}
        return Response(500, {"content-type": "application/json"}, msgspec.json.encode(body))

    transport.fault = refuse_binding
    async with world.running(world.scheduler(transport=transport)):
        await pod_with(world, "p", "c")
        await settle()
        assert refusals == 0
        assert await reserved(world, "c") == []
        await asyncio.sleep(20)
        assert await world.node_of("p") == "n"
        assert await reserved(world, "c") == ["p"]


@in_world
async def test_an_extended_resource_is_answered_by_a_claim_of_the_scheduler(world):
    await device_class(world, extendedResourceName="example.com/gpu")
    await world.node("n")
    await devices(world, "n", "a", "b")
    amounts = {"cpu": "100m", "example.com/gpu": "2"}
    container = {"name": "c", "image": "i:1", "resources": {"requests": amounts, "limits": {"example.com/gpu": "2"}}}
    async with world.running(world.scheduler()):
        await world.pod("p", containers=[container])
        await asyncio.sleep(10)
        assert await world.node_of("p") == "n"
        made = (await world.client.list_all(RESOURCE_CLAIMS, "default")).items
        assert [each.metadata.generate_name for each in made] == ["p-extended-resources-"]
        assert await allocated(world, made[0].name) == ["a", "b"]
        status = (await world.client.get(PODS, "p", "default")).status.extended_resource_claim_status
        assert status.resource_claim_name == made[0].name
        assert [each.request_name for each in status.request_mappings] == ["container-0-request-1"]


@in_world
async def test_a_claim_left_over_from_an_earlier_attempt_is_deleted_and_made_anew(world):
    await device_class(world, extendedResourceName="example.com/gpu")
    await world.node("n")
    await devices(world, "n", "a")
    amounts = {"cpu": "100m", "example.com/gpu": "1"}
    container = {"name": "c", "image": "i:1", "resources": {"requests": amounts, "limits": {"example.com/gpu": "1"}}}
    pod = await world.pod("p", containers=[container])
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": pod.uid, "controller": True}
    annotations = {"resource.kubernetes.io/extended-resource-claim": "true"}
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    old = {
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
        "metadata": {"name": "old", "annotations": annotations, "ownerReferences": [owner]},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}},
    }  # fmt: skip
    await world.client.create(RESOURCE_CLAIMS, old, "default")
    async with world.running(world.scheduler()):
        await asyncio.sleep(20)
        assert (await world.client.list_all(RESOURCE_CLAIMS, "default")).items == ()
        await asyncio.sleep(400)  # a deletion wakes nobody, as upstream: the pod's turn comes by itself
        assert await world.node_of("p") == "n"
        made = (await world.client.list_all(RESOURCE_CLAIMS, "default")).items
        assert [each.metadata.generate_name for each in made] == ["p-extended-resources-"]


@in_world
async def test_binding_waits_until_a_device_is_prepared(world):
    await device_class(world)
    await world.node("n")
    await devices(world, "n", "a", bindsToNode=True, bindingConditions=["ready"], bindingFailureConditions=["broken"])
    await claim(world, "c")
    async with world.running(world.scheduler()):
        await pod_with(world, "p", "c")
        await asyncio.sleep(60)
        assert await world.node_of("p") == ""
        assert await allocated(world, "c") == ["a"]
        await report(world, "c", "a", "ready")
        await asyncio.sleep(10)
        assert await world.node_of("p") == "n"


@in_world
async def test_a_device_that_cannot_be_prepared_is_given_up_for_another(world):
    await device_class(world)
    await world.node("n")
    await devices(
        world, "n", "a", "b", bindsToNode=True, bindingConditions=["ready"], bindingFailureConditions=["broken"]
    )
    await claim(world, "c")
    async with world.running(world.scheduler()):
        await pod_with(world, "p", "c")
        await asyncio.sleep(10)
        assert await allocated(world, "c") == ["a"]
        await report(world, "c", "a", "broken")
        await asyncio.sleep(60)
        found = await world.client.get(RESOURCE_CLAIMS, "c", "default")
        assert found.status.devices == ()
        assert found.status.allocation is not None


@in_world
async def test_without_the_cel_library_only_pods_with_claims_are_refused(world):
    await device_class(world)
    await world.node("n")
    await devices(world, "n", "a")
    await claim(world, "c")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(__import__("sys").modules, "cel_expr_python", None)
        cel_environment._checker.cache_clear()
        cel_environment._runner.cache_clear()
        async with world.running(world.scheduler()):
            await pod_with(world, "p", "c")
            await world.pod("plain")
            await settle()
            assert await world.node_of("plain") == "n"
            assert await world.node_of("p") == ""
            assert "install skysail[cel]" in (await world.condition("p"))[2]
    cel_environment._checker.cache_clear()
    cel_environment._runner.cache_clear()
