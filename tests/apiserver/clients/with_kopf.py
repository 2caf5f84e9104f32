"""A small kopf operator: handlers for creation, change and deletion of a custom resource, with kopf's finalizer."""

import asyncio
import sys
from typing import Any

import kopf
from kubernetes import client, config

GROUP, VERSION, PLURAL = "gold.example.com", "v1", "gadgets"
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"{PLURAL}.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"plural": PLURAL, "kind": "Gadget"},
        "versions": [
            {
                "name": VERSION,
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {"type": "object", "properties": {"size": {"type": "integer"}}},
                            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                        },
                    }
                },
            }
        ],
    },
}


@kopf.on.create(GROUP, VERSION, PLURAL)
def made(spec: Any, patch: Any, **_: Any) -> None:
    patch.status["seen"] = spec["size"]


@kopf.on.update(GROUP, VERSION, PLURAL, field="spec.size")
def changed(new: int, patch: Any, **_: Any) -> None:
    patch.status["seen"] = new


@kopf.on.delete(GROUP, VERSION, PLURAL)
def gone(**_: Any) -> None:
    pass


def gadgets(method: str, *args: Any) -> Any:
    api = client.CustomObjectsApi()
    return getattr(api, f"{method}_namespaced_custom_object")(GROUP, VERSION, "default", PLURAL, *args)


def is_established() -> bool:
    found = client.ApiextensionsV1Api().read_custom_resource_definition(f"{PLURAL}.{GROUP}")
    return any(each.type == "Established" and each.status == "True" for each in found.status.conditions or ())


async def until(condition: Any) -> None:
    async with asyncio.timeout(30):
        while not await asyncio.to_thread(condition):  # noqa: ASYNC110 - another process changes it
            await asyncio.sleep(0.05)


async def main() -> None:
    client.ApiextensionsV1Api().create_custom_resource_definition(DEFINITION)
    await until(is_established)
    stop, ready = asyncio.Event(), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        operator = kopf.operator(
            standalone=True, clusterwide=True, stop_flag=stop, ready_flag=ready, registry=kopf.get_default_registry()
        )
        group.create_task(operator)
        await ready.wait()
        await asyncio.to_thread(
            gadgets,
            "create",
            {"apiVersion": f"{GROUP}/{VERSION}", "kind": "Gadget", "metadata": {"name": "g"}, "spec": {"size": 3}},
        )
        await until(lambda: gadgets("get", "g").get("status", {}).get("seen") == 3)
        assert gadgets("get", "g")["metadata"]["finalizers"] == ["kopf.zalando.org/KopfFinalizerMarker"]
        await asyncio.to_thread(gadgets, "patch", "g", {"spec": {"size": 7}})
        await until(lambda: gadgets("get", "g")["status"]["seen"] == 7)
        await asyncio.to_thread(gadgets, "delete", "g")
        await until(lambda: gadgets("list")["items"] == [])
        stop.set()


config.load_kube_config(sys.argv[1])
asyncio.run(main())
