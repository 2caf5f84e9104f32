"""Pod templates keep every field, and are told apart by what they mean."""

from typing import Any

import msgspec
import pytest

from skysail.api.kinds import DEPLOYMENTS
from skysail.controllers.templates import safe_encode, template_hash, templates_equal, whole_template

RICH: dict[str, Any] = {
    "metadata": {"labels": {"app": "web"}, "annotations": {"note": "äöü"}},
    "spec": {
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 7,
        "dnsPolicy": "None",
        "dnsConfig": {"nameservers": ["10.0.0.10"], "options": [{"name": "ndots", "value": "2"}]},
        "hostAliases": [{"ip": "10.1.1.1", "hostnames": ["db.local"]}],
        "securityContext": {
            "runAsUser": 1000,
            "fsGroup": 2000,
            "sysctls": [{"name": "net.core.somaxconn", "value": "9"}],
        },
        "readinessGates": [{"conditionType": "example.com/ready"}],
        "shareProcessNamespace": True,
        "setHostnameAsFQDN": True,
        "enableServiceLinks": False,
        "schedulerName": "default-scheduler",
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "zone",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": {"app": "web"}},
                "matchLabelKeys": ["pod-template-hash"],
            }
        ],
        "volumes": [
            {"name": "a", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
            {
                "name": "b",
                "projected": {"defaultMode": 420, "sources": [{"configMap": {"name": "c", "optional": True}}]},
            },
            {"name": "c", "csi": {"driver": "example.com", "volumeAttributes": {"k": "v"}}},
            {"name": "d", "persistentVolumeClaim": {"claimName": "d"}},
        ],
        "initContainers": [
            {
                "name": "init",
                "image": "i",
                "restartPolicy": "Always",
                "imagePullPolicy": "Always",
                "terminationMessagePath": "/dev/x",
                "terminationMessagePolicy": "File",
                "resources": {},
            },
        ],
        "containers": [
            {
                "name": "main",
                "image": "web:1",
                "command": ["run"],
                "env": [{"name": "POD", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}}],
                "envFrom": [{"prefix": "P_", "secretRef": {"name": "s", "optional": True}}],
                "lifecycle": {"preStop": {"sleep": {"seconds": 3}}},
                "livenessProbe": {
                    "grpc": {"port": 9, "service": "x"},
                    "periodSeconds": 5,
                    "timeoutSeconds": 1,
                    "successThreshold": 1,
                    "failureThreshold": 4,
                },
                "ports": [{"containerPort": 80, "protocol": "TCP", "name": "http"}],
                "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}],
                "resources": {"requests": {"cpu": "100m"}, "limits": {"cpu": "1"}},
                "securityContext": {"capabilities": {"add": ["NET_ADMIN"], "drop": ["ALL"]}},
                "stdin": True,
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "FallbackToLogsOnError",
                "imagePullPolicy": "IfNotPresent",
                "volumeDevices": [{"name": "d", "devicePath": "/dev/d"}],
                "volumeMounts": [{"name": "a", "mountPath": "/a", "subPathExpr": "$(POD)", "readOnly": True}],
                "workingDir": "/w",
            }
        ],
    },
}


def assert_contains(whole: Any, part: Any, path: str = "") -> None:
    """Fail at the first place where something of `part` is not in `whole`."""
    if isinstance(part, dict):
        for key, value in part.items():
            assert key in whole, f"{path}.{key} is lost"
            assert_contains(whole[key], value, f"{path}.{key}")
    elif isinstance(part, list):
        assert len(whole) >= len(part), path
        for number, value in enumerate(part):
            assert_contains(whole[number], value, f"{path}[{number}]")
    else:
        assert whole == part, path


async def test_every_field_of_a_template_arrives_in_the_pod(cluster):
    await cluster.start_controllers("deployment-controller", "replicaset-controller")
    body = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": RICH},
    }
    await cluster.client.create(DEPLOYMENTS, body, "default")
    await cluster.settle()
    [pod] = msgspec.json.decode(await cluster.client.read_path("/api/v1/namespaces/default/pods"))["items"]
    assert_contains(pod, RICH)


def raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ({"spec": {"containers": []}}, {"spec": {}}, True),
        ({"spec": {"nodeSelector": {}}}, {"spec": {}}, True),
        ({"spec": {"securityContext": {}}}, {"spec": {}}, False),
        ({"metadata": {"creationTimestamp": None}, "spec": {}}, {"spec": {}}, True),
        ({"metadata": {"labels": {"a": "1"}}}, {"metadata": {"labels": {"a": "2"}}}, False),
        (
            {"spec": {"containers": [{"resources": {"limits": {"cpu": "1000m"}}}]}},
            {"spec": {"containers": [{"resources": {"limits": {"cpu": 1}}}]}},
            True,
        ),
        ({"spec": {"overhead": {"cpu": "1"}}}, {"spec": {"overhead": {"cpu": "2"}}}, False),
        (
            {"spec": {"containers": [{"name": "a"}, {"name": "b"}]}},
            {"spec": {"containers": [{"name": "b"}, {"name": "a"}]}},
            False,
        ),
        ({"spec": {"hostNetwork": False}}, {"spec": {}}, False),
    ],
)
def test_templates_are_the_same_when_they_make_the_same_pods(left: Any, right: Any, same: bool) -> None:
    assert templates_equal(raw(left), raw(right)) is same
    assert not same or template_hash(raw(left)) == template_hash(raw(right))


@pytest.mark.parametrize("labels", [{}, {"a": "1"}])
def test_a_replica_sets_copy_of_a_template_is_the_same_but_for_its_hash_label(labels: dict[str, str]) -> None:
    copy, original = (
        raw({"metadata": {"labels": labels | {"pod-template-hash": "x"}}}),
        raw({"metadata": {"labels": labels}}),
    )
    assert templates_equal(copy, original)
    assert whole_template(copy) != whole_template(original)


def test_a_hash_label_that_a_template_has_of_its_own_counts_in_its_suffix() -> None:
    container = {"name": "main", "image": "x", "resources": {"requests": {"memory": "1Gi"}}}
    labels = {"app": "web", "pod-template-hash": "x"}
    assert template_hash(raw({"metadata": {"labels": labels}, "spec": {"containers": [container]}})) == "6b557cf747"


def test_a_hash_is_short_safe_and_different_after_a_collision() -> None:
    template = raw(RICH)
    hashes = {template_hash(template, count) for count in (None, 0, 1, 2)}
    assert len(hashes) >= 3
    for each in hashes:
        assert 1 <= len(each) <= 10
        assert set(each) <= set("bcdfghjklmnpqrstvwxz2456789")
    assert safe_encode("0123456789") == "456789bcdf"


def test_a_replica_sets_suffix_is_the_one_that_the_real_controller_gives_it() -> None:
    container = {
        "name": "c",
        "image": "img:2",
        "resources": {},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
    }
    spec = {
        "containers": [container],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "securityContext": {},
        "schedulerName": "default-scheduler",
    }
    assert template_hash(raw({"metadata": {"labels": {"app": "web"}}, "spec": spec})) == "559df59666"
    assert template_hash(raw(RICH)) == "5fdd9fb8bb"


def suffix_with(memory: str) -> str:
    container = {"name": "main", "image": "x", "resources": {"requests": {"memory": memory}}}
    return template_hash(raw({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}))


@pytest.mark.parametrize(
    ("quantity", "suffix"),
    [
        ("1e3", "654db5f596"),
        ("129e6", "569588c79b"),
        ("12E6", "647b769446"),
        ("1E+3", "b59447f87"),
        ("100e-3", "c9d678978"),
        ("0e3", "5f8c59f7d6"),
        ("0", "5f8c59f7d6"),
        ("+5", "96576bbd7"),
        ("-1", "5f6cb9c6db"),
        (".5", "6479b8fc55"),
        ("5.", "7ff48f864b"),
        ("00012", "5bdddf9ff6"),
        ("1.50", "99767b66f"),
        ("3000000", "6f84b596bc"),
        ("1500m", "99767b66f"),
        ("2.5G", "8499d6c85c"),
        ("123Mi", "5fdff6788c"),
        ("16Gi", "7dfbb4786c"),
        ("1E", "566564f5f8"),
    ],
)
def test_a_quantity_counts_in_a_suffix_as_it_is_spelt(quantity: str, suffix: str) -> None:
    assert suffix_with(quantity) == suffix


@pytest.mark.parametrize(
    ("quantity", "suffix"),
    [
        ("1Ei", "5c4546bb98"),
        ("900000Gi", "5f485f7f9d"),
        ("7Ei", "654789bb48"),
        ("7.5Ei", "7cf865bb57"),
        ("-1Ei", "8c566bf9f"),
        ("8Ei", "77c79566f6"),
        ("-8Ei", "5d55d48499"),
        ("16Ei", "77c79566f6"),
        ("100Ti", "58cc495d55"),
        ("10Ti", "6b8496d477"),
        ("1Pi", "664447fd46"),
        ("12Pi", "6ffc56f5d4"),
        ("12345678901Ki", "78c9cbd6c5"),
        ("123456789012Ki", "5ccdc9bb55"),
        ("0.5Gi", "597f47cf59"),
        ("0.1Mi", "778f4c7b8c"),
        ("1.123456789Gi", "68967cf79d"),
        ("999999999999999999", "657b45979d"),
        ("1000000000000000001", "7dff945f68"),
        ("1000000000000000000", "566564f5f8"),
        ("9223372036854775808", "5b8cfb4846"),
        ("-1234567890123456789", "787cd55488"),
        ("123456789012345678901234567890", "6465d59cc"),
        ("1234567890.123456789", "7b7cfdcf8c"),
        ("1234567890123456789m", "656b6ddb4c"),
        ("1234567890123456789e3", "6659db9867"),
        ("1234567890123456789012e-6", "664fff9b49"),
        ("12345678901234567891M", "7fdd96765b"),
        ("0.0000000001", "5f7cbcb94b"),
    ],
)
def test_a_quantity_of_any_length_counts_in_a_suffix_as_go_holds_it(quantity: str, suffix: str) -> None:
    """The suffixes are `ComputeHash` of kube-controller-manager 1.36.3, over the quantity as the server keeps it."""
    assert suffix_with(quantity) == suffix


@pytest.mark.parametrize(
    "quantity",
    [
        "1Ei",
        "900000Gi",
        "0.5Gi",
        "9223372036854775807",
        "1e9999",
        "1234567890123456789e999999999",
        "",
        None,
        "no quantity",
    ],
)
def test_any_quantity_has_a_suffix(quantity: str | None) -> None:
    reference = {"resource": "limits.cpu", "divisor": quantity}
    variable = {"name": "CPUS", "valueFrom": {"resourceFieldRef": reference}}
    resources = {"requests": {"memory": quantity}, "limits": {"cpu": quantity}}
    container = {"name": "main", "image": "x", "resources": resources, "env": [variable]}
    volume = {"name": "a", "emptyDir": {"sizeLimit": quantity}}
    assert template_hash(raw({"spec": {"containers": [container], "volumes": [volume]}}))
