"""Manifests that the conformance tests create."""

from typing import Any

from skysail.api.raw import Raw

RUN_SECONDS, EXIT_CODE = "skysail.io/run-seconds", "skysail.io/exit-code"


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


def job(name: str, *, run_seconds: float = 0.2, exit_code: int = 0, **spec: Any) -> dict[str, Any]:
    annotations = {RUN_SECONDS: str(run_seconds), EXIT_CODE: str(exit_code)}
    template = {
        "metadata": {"annotations": annotations},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "job"}]},
    }
    return {"metadata": {"name": name}, "spec": {"template": template, **spec}}


def workload(name: str, image: str = "app:1", **spec: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "main", "image": image}]}}
    selector = {"matchLabels": {"app": name}}
    return {"metadata": {"name": name}, "spec": {"selector": selector, "template": template, **spec}}


def with_image(image: str) -> dict[str, Any]:
    return {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}}}
