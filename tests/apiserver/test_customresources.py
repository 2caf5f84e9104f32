"""The life of definitions and of custom objects in the server."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from skysail.simulator.clock import LoopClock, run_virtual
from tests.apiserver.calls import Caller, serving
from tests.apiserver.gadgets import VERSION, definition

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GADGETS = "/apis/gold.example.com/v1/namespaces/default/gadgets"


def virtual(test: Callable[[Caller], Awaitable[None]]) -> None:
    async def main(clock: LoopClock) -> None:
        async with serving(clock) as caller:
            await test(caller)

    run_virtual(main)


async def establish(caller: Caller, **changes: Any) -> None:
    await caller.post(DEFINITIONS, definition(**changes))
    await asyncio.sleep(1)


def gadget(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": spec}


def test_status_and_scale_are_endpoints_of_their_own() -> None:
    async def test(caller: Caller) -> None:
        await establish(caller)
        made = await caller.post(GADGETS, {**gadget("a", size=3), "status": {"seen": 9}})
        assert "status" not in made
        changed = await caller.merge(f"{GADGETS}/a/status", {"spec": {"size": 8}, "status": {"seen": 2}})
        assert (changed["spec"]["size"], changed["status"], changed["metadata"]["generation"]) == (3, {"seen": 2}, 1)
        scale = await caller.merge(f"{GADGETS}/a/scale", {"spec": {"replicas": 5}})
        assert (scale["kind"], scale["spec"], scale["status"]) == ("Scale", {"replicas": 5}, {"replicas": 2})
        after = await caller.get(f"{GADGETS}/a")
        assert (after["spec"]["size"], after["metadata"]["generation"]) == (5, 2)
        refused = await caller.send(
            "PATCH",
            f"{GADGETS}/a/scale",
            {"spec": {"replicas": -1}},
            headers={"content-type": "application/merge-patch+json"},
        )
        assert refused.status == 422

    virtual(test)


def test_selectable_fields_select() -> None:
    async def test(caller: Caller) -> None:
        await establish(caller)
        await caller.post(GADGETS, gadget("a", color="blue"))
        await caller.post(GADGETS, gadget("b"))
        found = await caller.get(GADGETS, fieldSelector="spec.color=red")
        assert [item["metadata"]["name"] for item in found["items"]] == ["b"]

    virtual(test)


def test_several_versions_show_one_object() -> None:
    async def test(caller: Caller) -> None:
        older = {**VERSION, "name": "v1alpha1", "storage": False}
        await establish(caller, versions=[VERSION, older])
        path = GADGETS.replace("/v1/", "/v1alpha1/")
        await caller.post(path, gadget("a", size=1))
        assert (await caller.get(f"{GADGETS}/a"))["apiVersion"] == "gold.example.com/v1"
        assert (await caller.get(f"{path}/a"))["apiVersion"] == "gold.example.com/v1alpha1"
        items = (await caller.get(path))["items"]
        assert [item["apiVersion"] for item in items] == ["gold.example.com/v1alpha1"]

    virtual(test)


def test_a_withdrawn_version_is_gone_and_the_others_stay() -> None:
    async def test(caller: Caller) -> None:
        older = {**VERSION, "name": "v1alpha1", "storage": False}
        await establish(caller, versions=[VERSION, older])
        await caller.merge(f"{DEFINITIONS}/gadgets.gold.example.com", {"spec": {"versions": [VERSION]}})
        await asyncio.sleep(1)
        assert (await caller.send("GET", GADGETS)).status == 200
        assert (await caller.send("GET", GADGETS.replace("/v1/", "/v1alpha1/"))).status == 404

    virtual(test)


def test_names_in_use_are_not_accepted_until_they_are_free() -> None:
    async def test(caller: Caller) -> None:
        await establish(caller)
        names = {"plural": "widgets", "kind": "Widget", "shortNames": ["ga"]}
        await establish(caller, names=names)
        path = f"{DEFINITIONS}/widgets.gold.example.com"
        conditions = {each["type"]: each for each in (await caller.get(path))["status"]["conditions"]}
        assert conditions["NamesAccepted"]["reason"] == "ShortNamesConflict"
        assert conditions["Established"]["status"] == "False"
        await caller.send("DELETE", f"{DEFINITIONS}/gadgets.gold.example.com")
        await asyncio.sleep(1)
        conditions = {each["type"]: each for each in (await caller.get(path))["status"]["conditions"]}
        assert {each["status"] for each in conditions.values()} == {"True"}

    virtual(test)


def test_a_deleted_definition_waits_for_instances_with_finalizers() -> None:
    async def test(caller: Caller) -> None:
        await establish(caller)
        held = gadget("held")
        held["metadata"]["finalizers"] = ["example.com/x"]
        await caller.post(GADGETS, held)
        await caller.post(GADGETS, gadget("free"))
        await caller.send("DELETE", f"{DEFINITIONS}/gadgets.gold.example.com")
        await asyncio.sleep(5)
        assert [item["metadata"]["name"] for item in (await caller.get(GADGETS))["items"]] == ["held"]
        definition = await caller.get(f"{DEFINITIONS}/gadgets.gold.example.com")
        reasons = {each["type"]: each["reason"] for each in definition["status"]["conditions"]}
        assert reasons["Terminating"] == "InstanceDeletionInProgress"
        refused = await caller.refused("POST", GADGETS, gadget("late"))
        assert refused == (405, "create not allowed while custom resource definition is terminating")
        await caller.merge(f"{GADGETS}/held", {"metadata": {"finalizers": None}})
        await asyncio.sleep(5)
        assert (await caller.send("GET", f"{DEFINITIONS}/gadgets.gold.example.com")).status == 404
        assert (await caller.send("GET", GADGETS)).status == 404

    virtual(test)


def test_what_was_broken_before_may_stay_as_it_is() -> None:
    async def test(caller: Caller) -> None:
        await establish(caller)
        await caller.post(GADGETS, gadget("a", size=50))
        stricter = json.loads(json.dumps(VERSION))
        stricter["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["size"]["maximum"] = 10
        await caller.merge(f"{DEFINITIONS}/gadgets.gold.example.com", {"spec": {"versions": [stricter]}})
        await asyncio.sleep(1)
        await caller.merge(f"{GADGETS}/a", {"spec": {"color": "blue"}})
        headers = {"content-type": "application/merge-patch+json"}
        assert (await caller.send("PATCH", f"{GADGETS}/a", {"spec": {"size": 60}}, headers=headers)).status == 422

    virtual(test)


@pytest.mark.parametrize(
    ("body", "content_type", "status"),
    [
        (b"{", "application/json", 400),
        (b"[]", "application/json", 400),
        (b'{"metadata": []}', "application/json", 400),
        (b'{"metadata": {"name": "a"}}', "application/vnd.kubernetes.protobuf", 415),
        (b"metadata: {name: a}\nspec: {size: 1}\n", "application/yaml", 201),
        (b"metadata: {name: a, name: b}\n", "application/yaml", 201),
        (b"a: [", "application/yaml", 400),
    ],
)
def test_bodies_of_custom_objects_are_json_or_yaml(body: bytes, content_type: str, status: int) -> None:
    async def test(caller: Caller) -> None:
        await establish(caller)
        response = await caller.send("POST", GADGETS, body, headers={"content-type": content_type})
        assert response.status == status, response.body

    virtual(test)
