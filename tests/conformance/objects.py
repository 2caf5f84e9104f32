"""Manifests that the conformance tests create."""

from skysail.api.raw import Raw


def config_map(name: str, **data: str) -> Raw:
    return {"metadata": {"name": name}, "data": data}


def pod(name: str, cpu: str = "100m", **spec: object) -> Raw:
    container = {"name": "main", "image": "nginx", "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}
    return {"metadata": {"name": name, "labels": {"app": name}}, "spec": {"containers": [container], **spec}}


def node(name: str, cpu: str = "8", **labels: str) -> Raw:
    room = {"cpu": cpu, "memory": "32Gi", "pods": "110"}
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
        "status": {"capacity": room, "allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def deployment(name: str, replicas: int, image: str = "nginx:1", **spec: object) -> Raw:
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "main", "image": image, "resources": {"requests": {"cpu": "10m"}}}]},
    }
    return {
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template, **spec,
        },
    }  # fmt: skip
