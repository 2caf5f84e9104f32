"""A custom resource for tests: Gadgets, with status, scale, a default and a selectable field."""

from typing import Any


def definition(**changes: Any) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {"size": {"type": "integer"}, "color": {"type": "string", "default": "red"}},
            },
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
    }
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {
            "status": {},
            "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.seen"},
        },
        "selectableFields": [{"jsonPath": ".spec.color"}],
    }
    spec: dict[str, Any] = {
        "group": "gold.example.com",
        "scope": "Namespaced",
        "names": {"plural": "gadgets", "kind": "Gadget", "shortNames": ["ga"]},
        "versions": [version],
    }
    spec.update(changes)
    return {"metadata": {"name": f"{spec['names'].get('plural')}.{spec['group']}"}, "spec": spec}


VERSION = definition()["spec"]["versions"][0]
