"""What kube-apiserver refuses is refused in its words: one line per rule.

Texts are those of pkg/apis/*/validation at v1.36; the recorded ones are in tests/golden/apiserver besides.
"""

from typing import Any

import pytest

from skysail.apiserver.strategies import for_resource

Raw = dict[str, Any]
POD: Raw = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
TEMPLATE: Raw = {"metadata": {"labels": {"a": "b"}}, **POD}
SELECTED: Raw = {"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}}
JOB: Raw = {"spec": {"template": {"spec": {"restartPolicy": "Never", **POD["spec"]}}, "manualSelector": True}}
JOB["spec"] |= {"selector": {"matchLabels": {"a": "b"}}}
JOB["spec"]["template"]["metadata"] = {"labels": {"a": "b"}}
SERVICE: Raw = {"spec": {"ports": [{"port": 80}]}}
VOLUME: Raw = {
    "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
}  # fmt: skip
CLAIM: Raw = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
SCALER: Raw = {
    "apiVersion": "autoscaling/v2",
    "spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}},
}
CRON: Raw = {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": JOB["spec"]["template"]}}}}
REQUEST: Raw = {"name": "gpu", "exactly": {"deviceClassName": "gpus"}}
SLICE: Raw = {"driver": "d.example.com", "pool": {"name": "p", "resourceSliceCount": 1}, "nodeName": "n"}
BASES: dict[str, tuple[str, Raw]] = {
    "resourceclaims": ("resource.k8s.io", {"spec": {"devices": {"requests": [REQUEST]}}}),
    "resourceslices": ("resource.k8s.io", {"spec": SLICE}),
    "runtimeclasses": ("node.k8s.io", {"handler": "h"}),
    "pods": ("", POD), "deployments": ("apps", SELECTED), "statefulsets": ("apps", SELECTED),
    "daemonsets": ("apps", SELECTED), "jobs": ("batch", JOB), "cronjobs": ("batch", CRON), "services": ("", SERVICE),
    "persistentvolumes": ("", VOLUME), "persistentvolumeclaims": ("", CLAIM), "nodes": ("", {}), "configmaps": ("", {}),
    "secrets": ("", {}), "leases": ("coordination.k8s.io", {"spec": {}}), "limitranges": ("", {"spec": {"limits": []}}),
    "resourcequotas": ("", {"spec": {}}), "poddisruptionbudgets": ("policy", {"spec": {}}),
    "horizontalpodautoscalers": ("autoscaling", SCALER), "priorityclasses": ("scheduling.k8s.io", {"value": 1}),
    "storageclasses": ("storage.k8s.io", {"provisioner": "a/b"}),
    "roles": ("rbac.authorization.k8s.io", {"rules": []}),
    "clusterrolebindings": ("rbac.authorization.k8s.io", {"roleRef": {"kind": "ClusterRole", "name": "r"}}),
    "networkpolicies": ("networking.k8s.io", {"spec": {"podSelector": {}}}),
    "ingresses": ("networking.k8s.io", {"spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 1}}}}}),
    "endpointslices": ("discovery.k8s.io", {"addressType": "IPv4", "endpoints": []}),
    "namespaces": ("", {}),
}  # fmt: skip


def merged(base: Any, change: Any) -> Any:
    """A merge patch; lists are replaced."""
    if not isinstance(base, dict) or not isinstance(change, dict):
        return change
    kept = {key: value for key, value in base.items() if key not in change}
    return kept | {key: merged(base.get(key), value) for key, value in change.items() if value is not None}


def made(resource: str, change: Raw) -> tuple[Any, Raw]:
    group, base = BASES[resource]
    strategy = for_resource(group, resource)
    obj = merged({"metadata": {"name": "x", "namespace": "default", "uid": "u"}, **base}, change)
    strategy.default(obj)
    return strategy, obj


def container(**change: Any) -> Raw:
    return {"spec": {"containers": [{"name": "c", "image": "i"} | change]}}


CASES: list[tuple[str, Raw, list[str]]] = [
    ("pods", {"spec": {"containers": []}}, ["spec.containers: Required value"]),
    ("pods", container(name=None), ["spec.containers[0].name: Required value"]),
    ("pods", container(image=""), ["spec.containers[0].image: Required value"]),
    (
        "pods",
        container(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}),
        ['spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1'],
    ),
    (
        "pods",
        container(volumeMounts=[{"name": "v", "mountPath": "/a"}]),
        ['spec.containers[0].volumeMounts[0].name: Not found: "v"'],
    ),
    (
        "pods",
        {"spec": {"restartPolicy": "Sometimes"}},
        ['spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"'],
    ),
    (
        "pods",
        {"spec": {"schedulingGates": [{"name": "g"}, {"name": "g"}]}},
        ['spec.schedulingGates[1]: Duplicate value: "g"'],
    ),
    (
        "pods",
        {"spec": {"nodeName": "n", "schedulingGates": [{"name": "g"}]}},
        ["spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared"],
    ),
    ("deployments", {"spec": {"replicas": -1}}, [
        "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
    ]),
    ("deployments", {"spec": {"template": {"metadata": {"labels": {"a": "c"}}}}}, [
        'spec.template.metadata.labels: Invalid value: {"a":"c"}: `selector` does not match template `labels`',
    ]),
    ("deployments", {"spec": {"progressDeadlineSeconds": 5, "minReadySeconds": 5}}, [
        "spec.progressDeadlineSeconds: Invalid value: 5: must be greater than minReadySeconds",
    ]),
    ("statefulsets", {"spec": {"podManagementPolicy": "Odd"}}, [
        "spec.podManagementPolicy: Invalid value: \"Odd\": must be 'OrderedReady' or 'Parallel'",
    ]),
    ("daemonsets", {"spec": {"updateStrategy": {"rollingUpdate": {"maxUnavailable": 0}}}}, [
        "spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0",
    ]),
    ("jobs", {"spec": {"completionMode": "Indexed", "parallelism": 2}}, [
        "spec.completions: Required value: when completion mode is Indexed",
    ]),
    ("jobs", {"spec": {"backoffLimitPerIndex": 1}}, [
        "spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode",
    ]),
    ("jobs", {"spec": {"podFailurePolicy": {"rules": [{"action": "Ignore"}]}}}, [
        "spec.podFailurePolicy.rules[0]: Invalid value: "
        "specifying one of OnExitCodes and OnPodConditions is required",
    ]),
    ("jobs", {"spec": {"managedBy": "me"}}, [
        'spec.managedBy: Invalid value: "me": must be a domain-prefixed path (such as "acme.io/foo")',
    ]),
    ("cronjobs", {"spec": {"schedule": "* * *"}}, [
        'spec.schedule: Invalid value: "* * *": expected exactly 5 fields, found 3: [* * *]',
    ]),
    ("cronjobs", {"spec": {"schedule": "61 * * * *"}}, [
        'spec.schedule: Invalid value: "61 * * * *": end of range (61) above maximum (59): 61',
    ]),
    ("services", {"spec": {"ports": [{"port": 80}, {"port": 81}]}}, [
        "spec.ports[0].name: Required value", "spec.ports[1].name: Required value",
    ]),
    ("services", {"spec": {"type": "ExternalName", "ports": None}}, ["spec.externalName: Required value"]),
    ("services", {"spec": {"ports": [{"port": 80, "nodePort": 30000}]}}, [
        "spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'",
    ]),
    ("services", {"spec": {"externalIPs": ["127.0.0.1"]}}, [
        'spec.externalIPs[0]: Invalid value: "127.0.0.1": may not be in the loopback range (127.0.0.0/8, ::1/128)',
    ]),
    ("persistentvolumes", {"spec": {"hostPath": None}}, ["spec: Required value: must specify a volume type"]),
    ("persistentvolumes", {"spec": {"hostPath": None, "local": {"path": "/x"}}}, [
        "spec.nodeAffinity: Required value: Local volume requires node affinity",
    ]),
    ("persistentvolumes", {"spec": {"nfs": {"server": "s", "path": "/p"}}}, [
        "spec.nfs: Forbidden: may not specify more than 1 volume type",
    ]),
    ("persistentvolumeclaims", {"spec": {"accessModes": None}}, [
        "spec.accessModes: Required value: at least 1 access mode is required",
    ]),
    ("persistentvolumeclaims", {"spec": {"resources": {"requests": {"storage": "0"}}}}, [
        'spec.resources[storage]: Invalid value: "0": must be greater than zero',
    ]),
    ("nodes", {"spec": {"taints": [{"key": "k", "effect": "Odd"}]}}, [
        'metadata.taints[0].effect: Unsupported value: "Odd": '
        'supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"',
    ]),
    ("nodes", {"spec": {"podCIDRs": ["10.0.0.1/24"]}}, [
        'spec.podCIDRs[0]: Invalid value: "10.0.0.1/24": must not have bits set beyond the prefix length',
    ]),
    ("configmaps", {"data": {"k": "v" * (1024 * 1024 + 1)}}, [": Too long: may not be more than 1048576 bytes"]),
    ("configmaps", {"data": {"..": "v"}}, ["data[..]: Invalid value: \"..\": must not be '..'"]),
    ("secrets", {"type": "kubernetes.io/tls"}, [
        "data[tls.crt]: Required value", "data[tls.key]: Required value",
    ]),
    ("secrets", {"type": "kubernetes.io/dockercfg", "data": {".dockercfg": "bm9wZQ=="}}, [
        'data[.dockercfg]: Invalid value: "<secret contents redacted>": '
        "invalid character 'n' looking for beginning of value",
    ]),
    ("leases", {"spec": {"leaseTransitions": -1}}, [
        "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0",
    ]),
    ("limitranges", {"spec": {"limits": [{"type": "Container", "min": {"cpu": "2"}, "max": {"cpu": "1"}}]}}, [
        'spec.limits[0].min[cpu]: Invalid value: "2": min value 2 is greater than max value 1',
        'spec.limits[0].defaultRequest[cpu]: Invalid value: "1": min value 2 is greater than default request value 1',
        'spec.limits[0].default[cpu]: Invalid value: "2": min value 2 is greater than default value 1',
    ]),
    ("limitranges", {"spec": {"limits": [{"type": "PersistentVolumeClaim"}]}}, [
        "spec.limits[0].limits: Required value: "
        "either minimum or maximum storage value is required, but neither was provided",
    ]),
    ("resourcequotas", {"spec": {"hard": {"nonsense": "1"}}}, [
        'spec.hard[nonsense]: Invalid value: "nonsense": must be a standard resource type or fully qualified',
        'spec.hard[nonsense]: Invalid value: "nonsense": must be a standard resource for quota',
    ]),
    ("resourcequotas", {"spec": {"hard": {"services": "1"}, "scopes": ["BestEffort", "NotBestEffort"]}}, [
        'spec.scopes: Invalid value: ["BestEffort","NotBestEffort"]: unsupported scope applied to resource',
        'spec.scopes: Invalid value: ["BestEffort","NotBestEffort"]: unsupported scope applied to resource',
        'spec.scopes: Invalid value: ["BestEffort","NotBestEffort"]: conflicting scopes',
    ]),
    ("poddisruptionbudgets", {"spec": {"minAvailable": "101%"}}, [
        'spec.minAvailable: Invalid value: "101%": must not be greater than 100%',
    ]),
    ("horizontalpodautoscalers", {"spec": {"maxReplicas": None}}, [
        "spec.maxReplicas: Required value: must be set and greater than 0",
        "spec.maxReplicas: Invalid value: 0: must be greater than or equal to `minReplicas`",
    ]),
    ("horizontalpodautoscalers", {"spec": {"scaleTargetRef": {"apiVersion": None}}}, [
        'spec.scaleTargetRef.apiVersion: Invalid value: "": apiVersion must specify API group',
    ]),
    ("priorityclasses", {"value": 1_000_000_001}, [
        "value: Forbidden: maximum allowed value of a user defined priority is 1000000000",
    ]),
    ("priorityclasses", {"metadata": {"name": "system-x"}}, [
        "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. "
        "error: system-x is not a known system priority class",
    ]),
    ("storageclasses", {"volumeBindingMode": "Later"}, [
        'volumeBindingMode: Unsupported value: "Later": supported values: "Immediate", "WaitForFirstConsumer"',
    ]),
    ("roles", {"rules": [{"verbs": ["get"]}]}, [
        "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
        "rules[0].resources: Required value: resource rules must supply at least one resource",
    ]),
    ("clusterrolebindings", {"subjects": [{"kind": "ServiceAccount", "name": "s"}]}, [
        "subjects[0].namespace: Required value",
    ]),
    ("networkpolicies", {"spec": {"ingress": [{"from": [{}]}]}}, [
        "spec.ingress[0].from[0]: Required value: must specify a peer",
    ]),
    ("ingresses", {"spec": {"rules": [{"host": "1.2.3.4"}]}}, [
        'spec.rules[0].host: Invalid value: "1.2.3.4": must be a DNS name, not an IP address',
    ]),
    ("endpointslices", {"endpoints": [{"addresses": ["fd00::1"]}]}, [
        'endpoints[0].addresses: Invalid value: "fd00::1": must be an IPv4 address',
    ]),
    ("namespaces", {"spec": {"finalizers": ["plain"]}}, [
        'spec.finalizers: Invalid value: "plain": name is neither a standard finalizer name nor is it fully qualified',
    ]),
]  # fmt: skip


CASES += [
    ("resourceclaims", {"spec": {"devices": {"requests": [REQUEST, REQUEST]}}}, [
        'spec.devices.requests[1]: Duplicate value: "gpu"',
    ]),
    ("resourceclaims", {"spec": {"devices": {"requests": [{"name": "x"}]}}}, [
        "spec.devices.requests[0]: Required value: exactly one of `exactly` or `firstAvailable` is required",
    ]),
    ("resourceclaims", {"spec": {"devices": {"constraints": [{"requests": ["other"], "matchAttribute": "a/b"}]}}}, [
        'spec.devices.constraints[0].requests[0]: Invalid value: "other": must be the name of a request in the claim '
        "or the name of a request and a subrequest separated by '/'",
    ]),
    ("resourceslices", {"spec": {"allNodes": True}}, [
        'spec: Invalid value: "{`nodeName`, `allNodes`}": exactly one of `nodeName`, `nodeSelector`, `allNodes`, '
        "`perDeviceNodeSelection` is required, but multiple fields are set",
    ]),
    ("runtimeclasses", {"handler": ""}, ["handler: Required value"]),
]  # fmt: skip


@pytest.mark.parametrize(("resource", "change", "expected"), CASES)
def test_a_broken_rule_is_named_in_upstreams_words(resource: str, change: Raw, expected: list[str]) -> None:
    strategy, obj = made(resource, change)
    assert [str(error) for error in strategy.validate_create(obj)] == expected


@pytest.mark.parametrize("resource", BASES)
def test_a_plain_object_breaks_no_rule_new_or_unchanged(resource: str) -> None:
    strategy, obj = made(resource, {})
    assert list(strategy.validate_create(obj)) == []
    obj["metadata"]["resourceVersion"] = "1"
    assert list(strategy.validate_update(obj, obj)) == []


UPDATES: list[tuple[str, Raw, Raw, list[str]]] = [
    ("services", {"spec": {"clusterIP": "10.0.0.5", "clusterIPs": ["10.0.0.5"]}}, {
        "spec": {"clusterIP": "10.0.0.6", "clusterIPs": ["10.0.0.6"]}
    }, ['spec.clusterIPs[0]: Invalid value: ["10.0.0.6"]: may not change once set']),
    ("configmaps", {"immutable": True, "data": {"a": "b"}}, {"data": {"a": "c"}}, [
        "data: Forbidden: field is immutable when `immutable` is set",
    ]),
    ("secrets", {"type": "a/b"}, {"type": "c/d"}, ['type: Invalid value: "c/d": field is immutable']),
    ("storageclasses", {}, {"provisioner": "c/d"}, ['provisioner: Invalid value: "c/d": field is immutable']),
    ("priorityclasses", {}, {"value": 2}, ["value: Forbidden: may not be changed in an update."]),
    ("clusterrolebindings", {}, {"roleRef": {"name": "other"}}, [
        'roleRef: Invalid value: {"APIGroup":"rbac.authorization.k8s.io","Kind":"ClusterRole","Name":"other"}: '
        "cannot change roleRef",
    ]),
    ("statefulsets", {}, {"spec": {"serviceName": "other"}}, [
        "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
        "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' "
        "are forbidden",
    ]),
    ("jobs", {}, {"spec": {"completions": 3}}, ["spec.completions: Invalid value: 3: field is immutable"]),
    ("nodes", {"spec": {"providerID": "a"}}, {"spec": {"providerID": "b"}}, [
        'spec.providerID: Forbidden: node updates may not change providerID except from "" to valid',
    ]),
    ("resourceclaims", {}, {"spec": {"devices": {"requests": []}}}, [
        'spec: Invalid value: {"Devices":{"Requests":[],"Constraints":null,"Config":null}}: field is immutable',
    ]),
    ("resourcequotas", {"spec": {"scopes": ["BestEffort"]}}, {"spec": {"scopes": []}}, [
        "spec.scopes: Invalid value: []: field is immutable",
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("resource", "before", "change", "expected"), UPDATES)
def test_what_may_not_change_is_named(resource: str, before: Raw, change: Raw, expected: list[str]) -> None:
    strategy, old = made(resource, before)
    _, new = made(resource, merged(before, change))
    assert [str(error) for error in strategy.validate_update(new, old)] == expected


def test_what_of_a_suspended_job_may_change() -> None:
    where = {"spec": {"template": {"spec": {"nodeSelector": {"zone": "a"}}}}}
    strategy, suspended = made("jobs", {"spec": {"suspend": True}})
    _, moved = made("jobs", merged({"spec": {"suspend": True}}, where))
    assert strategy.validate_update(moved, suspended) == []
    _, running = made("jobs", {})
    _, moved = made("jobs", where)
    assert [error.field for error in strategy.validate_update(moved, running)] == ["spec.template"]


def test_a_claim_grows_when_bound_and_never_shrinks() -> None:
    strategy, old = made("persistentvolumeclaims", {"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}})
    for size, fields in (("2Gi", []), ("512Mi", ["spec.resources.requests.storage"])):
        _, new = made(
            "persistentvolumeclaims",
            {"status": old["status"], "spec": {"resources": {"requests": {"storage": size}}}},
        )
        assert [error.field for error in strategy.validate_update(new, old)] == fields
