# ruff: noqa: E501 - the cases are tables, one row a kind
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skysail.api.raw import Raw
from skysail.apiserver import schema
from skysail.apiserver.contract import PrinterColumn, ResourceInfo
from skysail.apiserver.decoding import normalize
from skysail.apiserver.tables import as_table
from skysail.apiserver.tables.cells import human_duration, listed
from skysail.apiserver.tables.columns import PRINTERS
from skysail.apiserver.tables.jsonpath import PathError, compile_path, find

GOLDEN = Path(__file__).parents[1] / "golden/apiserver/tables.json"
TABLE = schema.load(enable={("scheduling.k8s.io", "v1alpha2"), ("networking.k8s.io", "v1beta1")})
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def resource(group: str, plural: str, version: str = "v1") -> ResourceInfo:
    found = TABLE.resource(group, version, plural)
    assert found is not None
    return found


def recorded_tables() -> list[tuple[str, Raw]]:
    found = []
    for step in json.loads(GOLDEN.read_text())["steps"]:
        body = step.get("response", {}).get("body") or {}
        if body.get("kind") == "Table" and body.get("columnDefinitions"):
            parts = step["request"]["path"].strip("/").split("/")
            group = "" if parts[0] == "api" else parts[1]
            rest = parts[2:] if parts[0] == "api" else parts[3:]
            plural = rest[2] if len(rest) > 2 and rest[0] == "namespaces" else rest[0]
            found.append((step["step"], {"group": group, "plural": plural, "table": body}))
    return found


@pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in recorded_tables()])
def test_columns_are_the_recorded_ones(case: Raw) -> None:
    table = as_table(resource(case["group"], case["plural"]), [], "None", NOW)
    for column in (*table["columnDefinitions"], *case["table"]["columnDefinitions"]):
        column.pop("description")
    assert table["columnDefinitions"] == case["table"]["columnDefinitions"]


def cells(group: str, plural: str, obj: Raw, version: str = "v1") -> list[object]:
    info = resource(group, plural, version)
    type_info = TABLE.type_of(group, version, info.kind)
    assert type_info is not None
    made = {"metadata": {"name": "x", "creationTimestamp": "2025-12-31T23:55:00Z"}} | obj
    return as_table(info, [normalize(made, type_info)], "None", NOW)["rows"][0]["cells"]


@pytest.mark.parametrize("info", TABLE.resources, ids=lambda info: f"{info.api_version}/{info.resource}")
def test_the_emptiest_object_of_every_kind_fills_its_columns(info: ResourceInfo) -> None:
    type_info = TABLE.type_of(info.group, info.version, info.kind)
    obj: Raw = {"metadata": {"creationTimestamp": "2025-12-31T00:00:00Z"}}
    obj = normalize(obj, type_info) if type_info is not None else obj
    table = as_table(info, [obj], "Object", NOW)
    assert len(table["rows"][0]["cells"]) == len(table["columnDefinitions"])
    assert table["rows"][0]["object"] is obj


def test_every_printer_belongs_to_a_resource() -> None:
    known = {(row.group, row.resource) for row in schema.load(enable={
        ("scheduling.k8s.io", "v1alpha2"), ("coordination.k8s.io", "v1beta1"), ("certificates.k8s.io", "v1beta1"),
        ("admissionregistration.k8s.io", "v1beta1"), ("internal.apiserver.k8s.io", "v1alpha1"),
        ("resource.k8s.io", "v1beta2"),
    }).resources}  # fmt: skip
    assert set(PRINTERS) - known == {("autoscaling", "scale")}


def pod(status: Raw, **spec: object) -> list[object]:
    spec.setdefault("containers", [{"name": "c", "image": "i"}])
    return cells("", "pods", {"spec": spec, "status": status})


STATES = [
    ({"phase": "Pending"}, ("0/1", "Pending", "0")),
    ({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]},
     ("0/1", "SchedulingGated", "0")),
    ({"phase": "Running", "containerStatuses": [{"ready": True, "restartCount": 2, "state": {"running": {}}}]},
     ("1/1", "Running", "2")),
    ({"phase": "Running", "containerStatuses": [{"restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff"}},
      "lastState": {"terminated": {"finishedAt": "2025-12-31T23:00:00Z"}}}]}, ("0/1", "CrashLoopBackOff", "3 (60m ago)")),
    ({"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"exitCode": 3}}}]}, ("0/1", "ExitCode:3", "0")),
    ({"phase": "Failed", "reason": "Evicted"}, ("0/1", "Evicted", "0")),
    ({"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"exitCode": 137, "signal": 9}}}]},
     ("0/1", "Signal:9", "0")),
    ({"phase": "Succeeded", "containerStatuses": [{"state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}]},
     ("0/1", "Completed", "0")),
    ({"phase": "Pending", "initContainerStatuses": [{"name": "i", "state": {"running": {}}}]}, ("0/1", "Init:0/0", "0")),
    ({"phase": "Pending", "initContainerStatuses": [{"name": "i", "state": {"waiting": {"reason": "ErrImagePull"}}}]},
     ("0/1", "Init:ErrImagePull", "0")),
    ({"phase": "Pending", "initContainerStatuses": [{"name": "i", "state": {"terminated": {"exitCode": 1}}}]},
     ("0/1", "Init:ExitCode:1", "0")),
]  # fmt: skip


@pytest.mark.parametrize(("status", "shown"), STATES, ids=lambda value: str(value)[:40])
def test_a_pods_status_is_the_sum_of_its_parts(status: Raw, shown: tuple[str, ...]) -> None:
    assert tuple(pod(status)[1:4]) == shown


def test_a_sidecar_counts_as_a_container() -> None:
    status = {
        "phase": "Running",
        "initContainerStatuses": [{"name": "s", "ready": True, "started": True, "state": {"running": {}}, "restartCount": 1}],
        "containerStatuses": [{"ready": True, "state": {"running": {}}}],
    }  # fmt: skip
    assert pod(status, initContainers=[{"name": "s", "restartPolicy": "Always"}])[1:4] == ["2/2", "Running", "1"]


def test_wide_cells_of_a_pod() -> None:
    status = {
        "podIPs": [{"ip": "10.0.0.1"}], "nominatedNodeName": "m",
        "conditions": [{"type": "a", "status": "True"}, {"type": "b", "status": "False"}],
    }  # fmt: skip
    gates = [{"conditionType": "a"}, {"conditionType": "b"}]
    assert pod(status, nodeName="n", readinessGates=gates)[4:] == ["5m", "10.0.0.1", "n", "m", "1/2"]


def test_a_finished_pods_row_says_so() -> None:
    info = resource("", "pods")
    row = as_table(info, [{"metadata": {"name": "p"}, "status": {"phase": "Failed"}}], "Metadata", NOW, "v1beta1")[
        "rows"
    ][0]
    assert row["conditions"][0]["reason"] == "Failed"
    assert row["object"] == {
        "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1beta1", "metadata": {"name": "p"},
    }  # fmt: skip


TEMPLATE = {"spec": {"containers": [{"name": "a", "image": "i"}, {"name": "b", "image": "j"}]}}
ROWS = [
    ("apps", "deployments", {"spec": {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE},
     "status": {"readyReplicas": 1}}, ["x", "1/2", 0, 0, "5m", "a,b", "i,j", "a=b"]),
    ("apps", "replicasets", {"spec": {"replicas": 2, "selector": {}}, "status": {"replicas": 1}},
     ["x", 2, 1, 0, "5m", "", "", "<none>"]),
    ("", "replicationcontrollers", {"spec": {"replicas": 2, "selector": {"a": "b"}}},
     ["x", 2, 0, 0, "5m", "", "", "a=b"]),
    ("apps", "statefulsets", {"spec": {"replicas": 1}}, ["x", "0/1", "5m", "", ""]),
    ("apps", "daemonsets", {"spec": {"template": {"spec": {"nodeSelector": {"a": "b"}}}}},
     ["x", 0, 0, 0, 0, 0, "a=b", "5m", "", "", "<none>"]),
    ("batch", "jobs", {"spec": {"parallelism": 3}, "status": {"succeeded": 1, "startTime": "2025-12-31T23:58:00Z",
     "conditions": [{"type": "Suspended", "status": "True"}]}},
     ["x", "Suspended", "1/1 of 3", "2m", "5m", "", "", "<none>"]),
    ("batch", "cronjobs", {"spec": {"schedule": "* * * * *", "suspend": False}},
     ["x", "* * * * *", "<none>", "False", 0, "<none>", "5m", "", "", "<none>"]),
    ("", "services", {"spec": {"type": "NodePort", "clusterIP": "1.1.1.1", "clusterIPs": ["1.1.1.1"],
     "ports": [{"port": 80, "nodePort": 30000, "protocol": "TCP"}], "selector": {"a": "b"}}},
     ["x", "NodePort", "1.1.1.1", "<none>", "80:30000/TCP", "5m", "a=b"]),
    ("", "services", {"spec": {"type": "LoadBalancer"}}, ["x", "LoadBalancer", "<none>", "<pending>", "<none>", "5m", "<none>"]),
    ("", "nodes", {"metadata": {"name": "n", "labels": {"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "db"}},
     "spec": {"unschedulable": True}, "status": {"conditions": [{"type": "Ready", "status": "True"}],
     "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}], "nodeInfo": {"kernelVersion": "6", "architecture": "arm"}}},
     ["n", "Ready,SchedulingDisabled", "db,worker", "<unknown>", "", "10.0.0.1", "<none>", "<unknown>", "6 (arm)", "<unknown>"]),
    ("", "events", {"involvedObject": {"kind": "Pod", "name": "p"}, "source": {"component": "s", "host": "h"}, "type": "Normal",
     "reason": "r", "message": " m\n", "lastTimestamp": "2025-12-31T23:59:00Z", "count": 4},
     ["60s", "Normal", "r", "pod/p", "", "s, h", "m", "<unknown>", 4, "x"]),
    ("", "persistentvolumeclaims", {"spec": {"volumeName": "v", "storageClassName": "c"},
     "status": {"phase": "Bound", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}},
     ["x", "Bound", "v", "1Gi", "RWO", "c", "<unset>", "5m", "<unset>"]),
    ("", "persistentvolumes", {"spec": {"capacity": {"storage": "1Gi"}, "claimRef": {"namespace": "n", "name": "c"},
     "accessModes": ["ReadWriteMany", "ReadOnlyMany"], "persistentVolumeReclaimPolicy": "Retain"}},
     ["x", "1Gi", "ROX,RWX", "Retain", "", "n/c", "", "<unset>", "", "5m", "<unset>"]),
    ("storage.k8s.io", "storageclasses", {"metadata": {"name": "s", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
     "provisioner": "p"}, ["s (default)", "p", "Delete", "Immediate", False, "<unknown>"]),
    ("policy", "poddisruptionbudgets", {"spec": {"minAvailable": "50%"}, "status": {"disruptionsAllowed": 2}},
     ["x", "50%", "N/A", 2, "5m"]),
    ("", "endpoints", {"subsets": [{"addresses": [{"ip": "1.1.1.1"}, {"ip": "::1"}], "ports": [{"port": 80}, {"port": 81}]}]},
     ["x", "1.1.1.1:80,[::1]:80,1.1.1.1:81 + 1 more...", "5m"]),
    ("networking.k8s.io", "ingresses", {"spec": {"rules": [{"host": h} for h in "abcd"], "tls": [{}]}},
     ["x", "<none>", "a,b,c + 1 more...", "", "80, 443", "5m"]),
    ("rbac.authorization.k8s.io", "rolebindings", {"roleRef": {"kind": "Role", "name": "r"},
     "subjects": [{"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "s", "namespace": "n"}]},
     ["x", "Role/r", "5m", "u", "", "n/s"]),
    ("", "resourcequotas", {"status": {"hard": {"pods": "2", "limits.cpu": "1"}, "used": {"pods": "1"}}},
     ["x", "pods: 1/2", "limits.cpu: 0/1", "5m"]),
    ("autoscaling", "horizontalpodautoscalers", {"spec": {"scaleTargetRef": {"kind": "Deployment", "name": "d"}, "maxReplicas": 3,
     "targetCPUUtilizationPercentage": 50}}, ["x", "Deployment/d", "cpu: <unknown>/50%", "<unset>", 3, 0, "5m"]),
    ("certificates.k8s.io", "certificatesigningrequests", {"spec": {"signerName": "s", "username": "u", "expirationSeconds": 3600},
     "status": {"conditions": [{"type": "Approved"}], "certificate": "YQ=="}}, ["x", "5m", "s", "u", "60m", "Approved,Issued"]),
    ("resource.k8s.io", "resourceclaims", {"status": {"allocation": {}, "reservedFor": [{"resource": "pods"}]}},
     ["x", "allocated,reserved", "5m"]),
    ("", "limitranges", {}, ["x", "2025-12-31T23:55:00Z"]),
    ("coordination.k8s.io", "leases", {"spec": {"holderIdentity": "h"}}, ["x", "h", "5m"]),
    ("scheduling.k8s.io", "priorityclasses", {"value": 5, "preemptionPolicy": "Never"}, ["x", 5, False, "5m", "Never"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("group", "plural", "obj", "row"), ROWS, ids=lambda value: value if isinstance(value, str) else ""
)
def test_rows_of_common_kinds(group: str, plural: str, obj: Raw, row: list[object]) -> None:
    assert cells(group, plural, obj) == row


def test_metrics_of_an_autoscaler() -> None:
    metrics = [
        {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}},
        {"type": "Pods", "pods": {"metric": {"name": "q"}, "target": {"type": "AverageValue", "averageValue": "3"}}},
        {"type": "External", "external": {"metric": {"name": "q"}, "target": {"type": "Value", "value": "5"}}},
    ]
    current = [{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 40}}}]
    spec = {"scaleTargetRef": {}, "maxReplicas": 1, "metrics": metrics}
    row = cells("autoscaling", "horizontalpodautoscalers", {"spec": spec, "status": {"currentMetrics": current}}, "v2")
    assert row[2] == "cpu: 40%/80%, <unknown>/3 + 1 more..."


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-5, "<invalid>"), (-1, "0s"), (0, "0s"), (119, "119s"), (120, "2m"), (330, "5m30s"), (600, "10m"),
        (10799, "179m"), (10800, "3h"), (12000, "3h20m"), (8 * 3600, "8h"), (48 * 3600, "2d"), (50 * 3600, "2d2h"),
        (8 * 86400, "8d"), (800 * 86400, "2y70d"), (365 * 86400 * 9, "9y"),
    ],
)  # fmt: skip
def test_ages_are_told_in_two_units_at_most(seconds: int, shown: str) -> None:
    assert human_duration(timedelta(seconds=seconds)) == shown


@given(st.lists(st.text("abc", min_size=1), max_size=6))
def test_lists_are_cut_after_three(items: list[str]) -> None:
    shown = listed(items)
    assert shown.startswith(",".join(items[:3]))
    assert ("more..." in shown) == (len(items) > 3)


WIDGET = ResourceInfo(
    "x.io", "v1", "widgets", "Widget", True, custom=True,
    printer_columns=(
        PrinterColumn("Size", "integer", ".spec.size"), PrinterColumn("Ready", "string", '.status.conditions[?(@.type=="Ready")].status'),
        PrinterColumn("Hosts", "string", ".spec.hosts[*]"), PrinterColumn("First", "string", ".spec.hosts[0]", priority=1),
        PrinterColumn("On", "boolean", ".spec.on"), PrinterColumn("Since", "date", ".spec.since"), PrinterColumn("All", "string", ".spec.m"),
    ),
)  # fmt: skip


def test_custom_resources_show_their_own_columns() -> None:
    obj = {
        "metadata": {"name": "w"},
        "spec": {"size": 3, "hosts": ["a", "b"], "on": True, "since": "2025-12-31T23:59:59Z", "m": {"b": 1, "a": [2]}},
        "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Odd", "status": "False"}]},
    }
    table = as_table(WIDGET, [obj, {"metadata": {"name": "v"}}], "None", NOW)
    assert [column["name"] for column in table["columnDefinitions"]][:3] == ["Name", "Size", "Ready"]
    assert table["rows"][0]["cells"] == ["w", 3, "True", "a,b", "a", True, "1s", '{"a":[2],"b":1}']
    assert table["rows"][1]["cells"] == ["v", None, None, None, None, None, None, None]


def test_paths_lead_through_quoted_and_escaped_names() -> None:
    obj = {"metadata": {"labels": {"a.b/c": "1", "x y": "2"}}}
    assert find(r".metadata.labels.a\.b/c", obj) == ["1"]
    assert find(".metadata.labels['x y']", obj) == ["2"]
    assert find('{$.metadata.labels["x y"]}', obj) == ["2"]
    assert find(".metadata.nothing.at.all", obj) == []
    with pytest.raises(PathError, match="unrecognized character"):
        compile_path("..spec")
