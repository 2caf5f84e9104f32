"""The official Python client: typed and dynamic calls, a watch, a binding, server-side apply."""

import sys

from kubernetes import client, config, dynamic, watch

config.load_kube_config(sys.argv[1])
core, apps = client.CoreV1Api(), client.AppsV1Api()
assert client.VersionApi().get_code().git_version.startswith("v1.36")

pod = {"metadata": {"name": "p1", "labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
core.create_namespaced_pod("default", pod)
assert [each.metadata.name for each in core.list_namespaced_pod("default", label_selector="a=b").items] == ["p1"]
core.patch_namespaced_pod("p1", "default", {"metadata": {"labels": {"x": "y"}}})
events = list(watch.Watch().stream(core.list_namespaced_pod, "default", timeout_seconds=1))
assert [(each["type"], each["object"].metadata.labels["x"]) for each in events] == [("ADDED", "y")]
target = client.V1ObjectReference(kind="Node", name="n")
binding = client.V1Binding(metadata=client.V1ObjectMeta(name="p1"), target=target)
core.create_namespaced_binding("default", binding, _preload_content=False)
assert core.read_namespaced_pod("p1", "default").spec.node_name == "n"
core.delete_namespaced_pod("p1", "default", grace_period_seconds=0)
assert core.list_namespaced_pod("default").items == []

template = client.V1PodTemplateSpec(
    metadata=client.V1ObjectMeta(labels={"q": "r"}),
    spec=client.V1PodSpec(containers=[client.V1Container(name="c", image="i")]),
)
spec = client.V1DeploymentSpec(selector=client.V1LabelSelector(match_labels={"q": "r"}), template=template)
apps.create_namespaced_deployment("default", client.V1Deployment(metadata={"name": "d1"}, spec=spec))
apps.patch_namespaced_deployment_scale("d1", "default", {"spec": {"replicas": 3}})
assert apps.read_namespaced_deployment("d1", "default").spec.replicas == 3

maps = dynamic.DynamicClient(client.ApiClient()).resources.get(api_version="v1", kind="ConfigMap")
maps.create(body={"metadata": {"name": "m1"}, "data": {"a": "b"}}, namespace="default")
applied = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m1"}, "data": {"c": "d"}}
maps.server_side_apply(body=applied, namespace="default", name="m1", field_manager="me")
assert dict(maps.get(name="m1", namespace="default").data) == {"a": "b", "c": "d"}
