"""Kinds of the smaller groups: autoscaling, storage, RBAC, networking, discovery, DRA, admission, flow control.

Source: pkg/apis/<group>/v1/defaults.go, v1.36.
"""

from collections.abc import Callable, Iterable

from skysail.api.raw import Raw
from skysail.apiserver.strategies.defaults.quantities import canonical, resource_list

_RBAC = "rbac.authorization.k8s.io"


def _absent(spec: Raw, key: str, value: object) -> None:
    if spec.get(key) is None:
        spec[key] = value


def _part(obj: Raw, key: str) -> Raw:
    part: Raw | None = obj.get(key)
    if part is None:
        part = obj[key] = {}
    return part


def priority_class(obj: Raw) -> None:
    """Preempts unless told otherwise; the value is always shown."""
    _absent(obj, "preemptionPolicy", "PreemptLowerPriority")
    _absent(obj, "value", 0)


def lease(obj: Raw) -> None:
    """The spec is always shown."""
    _part(obj, "spec")


def pod_disruption_budget(obj: Raw) -> None:
    """Counts are always shown."""
    _part(obj, "spec")
    status = _part(obj, "status")
    for key in ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"):
        _absent(status, key, 0)


def storage_class(obj: Raw) -> None:
    """Deletes released volumes, binds at once."""
    _absent(obj, "reclaimPolicy", "Delete")
    _absent(obj, "volumeBindingMode", "Immediate")


def csi_driver(obj: Raw) -> None:
    """What a driver needs unless it says otherwise."""
    spec = _part(obj, "spec")
    _absent(spec, "attachRequired", True)
    for key in ("podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"):
        _absent(spec, key, False)
    _absent(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType")
    if not spec.get("volumeLifecycleModes"):
        spec["volumeLifecycleModes"] = ["Persistent"]


def csi_storage_capacity(obj: Raw) -> None:
    """Amounts get their stored form."""
    for key in ("capacity", "maximumVolumeSize"):
        if obj.get(key) is not None:
            obj[key] = canonical(obj[key])


def autoscaler(obj: Raw) -> None:
    """A HorizontalPodAutoscaler looks at CPU, aims for 80 %, and keeps one replica."""
    spec = _part(obj, "spec")
    _absent(spec, "minReplicas", 1)
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    behavior = spec.get("behavior")
    if behavior is not None:
        behavior["scaleUp"] = {**_scale_up(), **_given(behavior.get("scaleUp"))}
        behavior["scaleDown"] = {**_scale_down(), **_given(behavior.get("scaleDown"))}
    status = _part(obj, "status")
    _absent(status, "desiredReplicas", 0)
    status.setdefault("currentMetrics", None)


def _given(rules: Raw | None) -> Raw:
    return {key: value for key, value in (rules or {}).items() if value is not None}


def _scale_up() -> Raw:
    policies = [
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ]
    return {"stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": policies}


def _scale_down() -> Raw:
    return {"selectPolicy": "Max", "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}]}


def role_binding(obj: Raw) -> None:
    """References and subjects of RBAC speak of RBAC's own group."""
    reference = _part(obj, "roleRef")
    if not reference.get("apiGroup"):
        reference["apiGroup"] = _RBAC
    for subject in obj.get("subjects") or ():
        if not subject.get("apiGroup") and subject.get("kind") in ("User", "Group"):
            subject["apiGroup"] = _RBAC


def role(obj: Raw) -> None:
    """Rules are always shown, even when there are none."""
    obj.setdefault("rules", None)


def network_policy(obj: Raw) -> None:
    """Ingress always counts, egress when it is mentioned; ports are TCP."""
    spec = _part(obj, "spec")
    _absent(spec, "podSelector", {})
    for rule in (*(spec.get("ingress") or ()), *(spec.get("egress") or ())):
        for port in rule.get("ports") or ():
            if port.get("protocol") is None:
                port["protocol"] = "TCP"
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]


def ingress_class(obj: Raw) -> None:
    """Parameters are cluster-wide."""
    parameters = _part(obj, "spec").get("parameters")
    if parameters is not None:
        _absent(parameters, "scope", "Cluster")


def ingress(obj: Raw) -> None:
    """The status always shows its load balancer."""
    _part(obj, "spec")
    _part(_part(obj, "status"), "loadBalancer")


def endpoint_slice(obj: Raw) -> None:
    """Ports have a name and a protocol; the lists are always shown."""
    for port in obj.get("ports") or ():
        _absent(port, "name", "")
        _absent(port, "protocol", "TCP")
    for key in ("endpoints", "ports"):
        obj.setdefault(key, None)


def resource_claim(obj: Raw) -> None:
    """A request for devices asks for one of them."""
    device_claim(_part(obj, "spec"))
    _part(obj, "status")


def resource_claim_template(obj: Raw) -> None:
    """As the claims made from it."""
    spec = _part(obj, "spec")
    device_claim(_part(spec, "spec"))


def device_claim(spec: Raw) -> None:
    """Defaults of a claim's spec, wherever it is embedded."""
    devices = _part(spec, "devices")
    for request in devices.get("requests") or ():
        if request.get("exactly") is not None:
            _allocation(request["exactly"])
        for alternative in request.get("firstAvailable") or ():
            _allocation(alternative)


def _allocation(request: Raw) -> None:
    if not request.get("allocationMode"):
        request["allocationMode"] = "ExactCount"
    if request["allocationMode"] == "ExactCount" and not request.get("count"):
        request["count"] = 1
    for toleration in request.get("tolerations") or ():
        if not toleration.get("operator"):
            toleration["operator"] = "Equal"


def runtime_class(obj: Raw) -> None:
    """Amounts get their stored form."""
    resource_list((obj.get("overhead") or {}).get("podFixed"))


def with_status(obj: Raw) -> None:
    """Spec and status are always shown."""
    _part(obj, "spec")
    _part(obj, "status")


def with_spec(obj: Raw) -> None:
    """The spec is always shown."""
    _part(obj, "spec")


def webhooks(mutating: bool) -> Callable[[Raw], None]:
    """Defaults of webhook configurations."""

    def apply(obj: Raw) -> None:
        for hook in obj.get("webhooks") or ():
            _absent(hook, "failurePolicy", "Fail")
            _matching(hook)
            _absent(hook, "timeoutSeconds", 10)
            if mutating:
                _absent(hook, "reinvocationPolicy", "Never")
            service = (hook.get("clientConfig") or {}).get("service")
            if service is not None:
                _absent(service, "port", 443)
            _scopes(hook.get("rules") or ())

    return apply


def _matching(holder: Raw) -> None:
    _absent(holder, "matchPolicy", "Equivalent")
    _absent(holder, "namespaceSelector", {})
    _absent(holder, "objectSelector", {})


def _scopes(rules: Iterable[Raw]) -> None:
    for rule in rules:
        _absent(rule, "scope", "*")


def admission_policy(obj: Raw) -> None:
    """Defaults of ValidatingAdmissionPolicy and MutatingAdmissionPolicy."""
    spec = _part(obj, "spec")
    _absent(spec, "failurePolicy", "Fail")
    constraints = spec.get("matchConstraints")
    if constraints is not None:
        _matching(constraints)
        _scopes([*(constraints.get("resourceRules") or ()), *(constraints.get("excludeResourceRules") or ())])


def admission_policy_binding(obj: Raw) -> None:
    """Defaults of the bindings of admission policies."""
    matching = _part(obj, "spec").get("matchResources")
    if matching is not None:
        _matching(matching)
        _scopes([*(matching.get("resourceRules") or ()), *(matching.get("excludeResourceRules") or ())])


def flow_schema(obj: Raw) -> None:
    """Matches late."""
    spec = _part(obj, "spec")
    if not spec.get("matchingPrecedence"):
        spec["matchingPrecedence"] = 1000
    _part(obj, "status")


def priority_level(obj: Raw) -> None:
    """Shares, queues and their lengths."""
    spec = _part(obj, "spec")
    exempt, limited = spec.get("exempt"), spec.get("limited")
    if exempt is not None:
        _absent(exempt, "nominalConcurrencyShares", 0)
        _absent(exempt, "lendablePercent", 0)
    if limited is not None:
        _absent(limited, "nominalConcurrencyShares", 30)
        _absent(limited, "lendablePercent", 0)
        queuing = (limited.get("limitResponse") or {}).get("queuing")
        if queuing is not None:
            for key, value in (("handSize", 8), ("queues", 64), ("queueLengthLimit", 50)):
                if not queuing.get(key):
                    queuing[key] = value
    _part(obj, "status")
