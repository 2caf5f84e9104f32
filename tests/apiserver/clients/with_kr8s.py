"""kr8s: discovery with trailing slashes, merge patches, whoami by TokenReview."""

import sys

import kr8s
from kr8s.objects import Deployment, Pod

api = kr8s.api(kubeconfig=sys.argv[1])
assert api.whoami() == "admin"
pod = Pod(
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p1", "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    },
    api=api,
)
pod.create()
pod.label({"z": "1"})
assert [each.labels["z"] for each in api.get("pods", namespace="default")] == ["1"]
assert next((kind, each.name) for kind, each in api.watch("pods", namespace="default")) == ("ADDED", "p1")
pod.delete()
assert not pod.exists()

template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
deployment = Deployment(
    {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d1", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template},
    },
    api=api,
)
deployment.create()
deployment.patch({"spec": {"replicas": 2}})
deployment.refresh()
assert deployment.spec.replicas == 2
