"""What people do with kubectl, done by kubectl v1.36 over TLS on a cluster of hollow nodes."""

import json
import subprocess
from collections.abc import Callable

import pytest

from tests.e2e.running import KUBECTL, Running

pytestmark = pytest.mark.kubectl

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
        - {name: nginx, image: "nginx:1.26", resources: {requests: {cpu: 100m, memory: 64Mi}}}
"""
Kubectl = Callable[..., str]


@pytest.fixture
def web(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=WEB)
    kubectl("rollout", "status", "deployment/web", "--timeout=60s", timeout=90)


def pod_names(kubectl: Kubectl, *args: str) -> set[str]:
    return set(kubectl("get", "pods", "-o", "name", *args).split())


def test_apply_makes_a_deployment_available(kubectl: Kubectl, web: None) -> None:
    assert "3/3" in kubectl("get", "deployment", "web")
    assert "unchanged" in kubectl("apply", "-f", "-", stdin=WEB)
    assert "configured" in kubectl("apply", "-f", "-", stdin=WEB.replace("replicas: 3", "replicas: 4"))


def test_server_side_apply_takes_ownership(kubectl: Kubectl) -> None:
    assert "serverside-applied" in kubectl("apply", "--server-side", "-f", "-", stdin=WEB)
    live = json.loads(kubectl("get", "deployment", "web", "-o", "json", "--show-managed-fields"))
    assert any(entry["operation"] == "Apply" for entry in live["metadata"]["managedFields"])


def test_get_prints_columns_wide_and_yaml(kubectl: Kubectl, web: None) -> None:
    header, *rows = kubectl("get", "pods").splitlines()
    assert header.split() == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert all(row.split()[1:3] == ["1/1", "Running"] for row in rows)
    assert len(rows) == 3
    assert "NODE" in kubectl("get", "pods", "-o", "wide").splitlines()[0].split()
    assert "image: nginx:1.26" in kubectl("get", "deployment", "web", "-o", "yaml")


def test_get_watch_streams_new_objects(up: Running, namespace: str, kubectl: Kubectl) -> None:
    watch = subprocess.Popen(
        [str(KUBECTL), "-n", namespace, "get", "configmaps", "-w", "-o", "name"],
        stdout=subprocess.PIPE,
        text=True,
        env={"HOME": str(up.home), "KUBECONFIG": str(up.kubeconfig)},
    )
    assert watch.stdout is not None
    try:
        kubectl("create", "-f", "-", stdin='{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"seen"}}')
        assert watch.stdout.readline().strip() == "configmap/seen"
    finally:
        watch.kill()
        watch.communicate()


def test_describe_shows_events_of_a_pod(kubectl: Kubectl, web: None) -> None:
    pod = min(pod_names(kubectl))
    text = kubectl("describe", pod)
    assert "Successfully assigned" in text
    assert "Controlled By:  ReplicaSet/web-" in text


def test_describe_node_lists_its_pods(up: Running, kubectl: Kubectl, web: None) -> None:
    pod = json.loads(kubectl("get", min(pod_names(kubectl)), "-o", "json"))
    text = up.kubectl("describe", "node", pod["spec"]["nodeName"])
    assert pod["metadata"]["name"] in text
    assert "Allocated resources" in text


def test_scale_up_and_down(kubectl: Kubectl, web: None) -> None:
    kubectl("scale", "deployment/web", "--replicas=5")
    kubectl("rollout", "status", "deployment/web", "--timeout=60s", timeout=90)
    assert len(pod_names(kubectl)) == 5
    kubectl("scale", "deployment/web", "--current-replicas=5", "--replicas=1")
    kubectl("wait", "deployment/web", "--for=jsonpath={.status.replicas}=1", "--timeout=60s", timeout=90)


def test_rollout_restart_and_undo(kubectl: Kubectl, web: None) -> None:
    kubectl("set", "image", "deployment/web", "nginx=nginx:1.27")
    kubectl("rollout", "status", "deployment/web", "--timeout=60s", timeout=90)
    assert "nginx:1.27" in kubectl("get", "pods", "-o", "jsonpath={.items[*].spec.containers[0].image}")
    kubectl("rollout", "undo", "deployment/web")
    kubectl("rollout", "status", "deployment/web", "--timeout=60s", timeout=90)
    assert kubectl("get", "deployment", "web", "-o", "jsonpath={.spec.template.spec.containers[0].image}") == (
        "nginx:1.26"
    )
    kubectl("rollout", "restart", "deployment/web")
    kubectl("rollout", "status", "deployment/web", "--timeout=60s", timeout=90)
    history = kubectl("rollout", "history", "deployment/web")
    assert [line.split()[0] for line in history.splitlines()[2:] if line.strip()] == ["2", "3", "4"]


def test_label_and_annotate(kubectl: Kubectl, web: None) -> None:
    kubectl("label", "deployment", "web", "tier=front")
    assert "deployment.apps/web" in kubectl("get", "deployments", "-l", "tier=front", "-o", "name")
    kubectl("label", "deployment", "web", "tier-")
    assert kubectl("get", "deployments", "-l", "tier=front", "-o", "name") == ""
    kubectl("annotate", "deployment", "web", "note=hello")
    assert "note: hello" in kubectl("get", "deployment", "web", "-o", "yaml")


def test_taint_keeps_new_pods_away(up: Running, kubectl: Kubectl) -> None:
    up.kubectl("taint", "nodes", "--all", "test.io/closed=yes:NoSchedule")
    try:
        kubectl("apply", "-f", "-", stdin=WEB.replace("replicas: 3", "replicas: 1"))
        kubectl("wait", "pod", "-l", "app=web", "--for=condition=PodScheduled=false", "--timeout=60s", timeout=90)
        message = kubectl(
            "get", "pods", "-o", 'jsonpath={.items[0].status.conditions[?(@.type=="PodScheduled")].message}'
        )
        assert message.startswith("0/5 nodes are available: 5 node(s) had untolerated taint(s).")
    finally:
        up.kubectl("taint", "nodes", "--all", "test.io/closed-")
    kubectl("rollout", "status", "deployment/web", "--timeout=60s", timeout=90)


def test_drain_moves_pods_elsewhere(up: Running, kubectl: Kubectl, web: None) -> None:
    node = kubectl("get", "pods", "-o", "jsonpath={.items[0].spec.nodeName}")
    try:
        up.kubectl(
            "drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=60s", timeout=90
        )
        assert "SchedulingDisabled" in up.kubectl("get", "node", node)
        kubectl("rollout", "status", "deployment/web", "--timeout=60s", timeout=90)
        assert node not in kubectl("get", "pods", "-o", "jsonpath={.items[*].spec.nodeName}").split()
    finally:
        up.kubectl("uncordon", node)


def test_delete_in_background_takes_the_pods_along(kubectl: Kubectl, web: None) -> None:
    kubectl("delete", "deployment", "web")
    kubectl("wait", "pod", "-l", "app=web", "--for=delete", "--timeout=60s", timeout=90)
    assert kubectl("get", "replicasets", "-o", "name") == ""


def test_delete_in_foreground_waits_for_the_pods(kubectl: Kubectl, web: None) -> None:
    kubectl("delete", "deployment", "web", "--cascade=foreground")
    assert kubectl("get", "replicasets,pods", "-o", "name") == ""


def test_delete_orphan_leaves_the_pods(kubectl: Kubectl, web: None) -> None:
    kubectl("delete", "deployment", "web", "--cascade=orphan")
    [replica_set] = kubectl("get", "replicasets", "-o", "json").split('"items"')[1:2]
    assert '"ownerReferences"' not in replica_set
    assert len(pod_names(kubectl)) == 3


def test_malformed_manifests_are_refused_by_name(kubectl: Kubectl) -> None:
    unknown = kubectl("apply", "-f", "-", stdin=WEB.replace("replicas: 3", "replcas: 3"), check=False)
    assert 'unknown field "spec.replcas"' in unknown
    quantity = kubectl("apply", "-f", "-", stdin=WEB.replace("cpu: 100m", "cpu: lots"), check=False)
    assert "quantities must match the regular expression" in quantity
    assert kubectl("get", "deployments", "-o", "name") == ""
