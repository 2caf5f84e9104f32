"""What one object costs a quota, by the quota's names for it.

Source: pkg/quota/v1/evaluator/core and k8s.io/apiserver/pkg/quota/v1/generic, v1.36.
"""

from collections.abc import Iterable, Mapping

from skysail.api.quantity import Quantity, parse_quantity
from skysail.api.raw import Raw
from skysail.apiserver.contract import GroupResource
from skysail.apiserver.validation.amounts import pod_amounts
from skysail.apiserver.validation.quality import qos_class

Usage = dict[str, Quantity]

_ONE = Quantity.of(1)
_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_PLAIN_COUNTS = frozenset({"configmaps", "secrets", "resourcequotas", "replicationcontrollers", "services"})
_NODE_PORT_TYPES = ("NodePort", "LoadBalancer")
_REQUIRED = frozenset({"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"})


def of(resource: GroupResource, obj: Raw) -> Usage:
    """Everything an object uses."""
    usage: Usage = {f"count/{resource}": _ONE}
    if resource.group:
        return usage
    if resource.resource == "pods":
        usage.update(_pod(obj))
    elif resource.resource == "persistentvolumeclaims":
        usage.update(_claim(obj))
    elif resource.resource in _PLAIN_COUNTS:
        usage[resource.resource] = _ONE
        if resource.resource == "services":
            usage.update(_service(obj))
    return usage


def _pod(pod: Raw) -> Usage:
    if (pod.get("status") or {}).get("phase") in ("Failed", "Succeeded"):
        return {}
    spec = pod.get("spec") or {}
    return {"pods": _ONE, **compute(pod_amounts(spec, "requests"), pod_amounts(spec, "limits"))}


def compute(requests: Mapping[str, Quantity], limits: Mapping[str, Quantity]) -> Usage:
    """Requests and limits under the names a quota knows them by."""
    usage: Usage = {}
    for name, amount in requests.items():
        if name in _COMPUTE or name.startswith("hugepages-"):
            usage[name] = usage[f"requests.{name}"] = amount
        elif "/" in name:
            usage[f"requests.{name}"] = amount
    for name, amount in limits.items():
        if name in _COMPUTE:
            usage[f"limits.{name}"] = amount
    return usage


def _claim(claim: Raw) -> Usage:
    spec = claim.get("spec") or {}
    usage: Usage = {"persistentvolumeclaims": _ONE}
    storage = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if storage is not None:
        usage["requests.storage"] = parse_quantity(str(storage))
    annotations = claim["metadata"].get("annotations") or {}
    name = spec.get("storageClassName") or annotations.get("volume.beta.kubernetes.io/storage-class")
    if name:
        usage[f"{name}.storageclass.storage.k8s.io/persistentvolumeclaims"] = _ONE
        if storage is not None:
            usage[f"{name}.storageclass.storage.k8s.io/requests.storage"] = usage["requests.storage"]
    return usage


def _service(service: Raw) -> Usage:
    spec = service.get("spec") or {}
    ports = len(spec.get("ports") or ())
    zero = Quantity.of(0)
    usage: Usage = {"services.nodeports": zero, "services.loadbalancers": zero}
    if spec.get("type") in _NODE_PORT_TYPES:
        if spec.get("allocateLoadBalancerNodePorts") is False:
            ports = sum(1 for port in spec.get("ports") or () if port.get("nodePort"))
        usage["services.nodeports"] = Quantity.of(ports)
    if spec.get("type") == "LoadBalancer":
        usage["services.loadbalancers"] = _ONE
    return usage


def missing_amounts(pod: Raw, hard: Iterable[str]) -> str:
    """Why a pod cannot be counted: a quota on CPU or memory asks every container to name its own."""
    required = _REQUIRED.intersection(hard)
    missing: dict[str, list[str]] = {}
    spec = pod.get("spec") or {}
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        holder = {"containers": [container]}
        known = compute(pod_amounts(holder, "requests"), pod_amounts(holder, "limits"))
        for name in required - known.keys():
            missing.setdefault(name, []).append(container.get("name") or "")
    if not missing:
        return ""
    return "must specify " + "; ".join(f"{name} for: {','.join(sorted(missing[name]))}" for name in sorted(missing))


def in_scope(quota_spec: Raw, pod: Raw) -> bool:
    """Whether a quota's scopes take in a pod."""
    requirements = [{"scopeName": scope, "operator": "Exists"} for scope in quota_spec.get("scopes") or ()]
    requirements += (quota_spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    return all(_matches(requirement, pod) for requirement in requirements)


def _matches(requirement: Raw, pod: Raw) -> bool:
    spec = pod.get("spec") or {}
    match requirement.get("scopeName"):
        case "Terminating":
            return spec.get("activeDeadlineSeconds") is not None
        case "NotTerminating":
            return spec.get("activeDeadlineSeconds") is None
        case "BestEffort":
            return qos_class(spec) == "BestEffort"
        case "NotBestEffort":
            return qos_class(spec) != "BestEffort"
        case "PriorityClass":
            return _matches_class(requirement, spec.get("priorityClassName") or "")
        case "CrossNamespacePodAffinity":
            return _crosses_namespaces(spec.get("affinity") or {})
    return False


def _matches_class(requirement: Raw, name: str) -> bool:
    values = requirement.get("values") or ()
    match requirement.get("operator"):
        case "Exists":
            return bool(name)
        case "DoesNotExist":
            return not name
        case "In":
            return name in values
        case "NotIn":
            return name not in values
    return False


def _crosses_namespaces(affinity: Raw) -> bool:
    for side in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(side) or {}
        for term in terms.get("requiredDuringSchedulingIgnoredDuringExecution") or ():
            if term.get("namespaces") or term.get("namespaceSelector") is not None:
                return True
        for weighted in terms.get("preferredDuringSchedulingIgnoredDuringExecution") or ():
            term = weighted.get("podAffinityTerm") or {}
            if term.get("namespaces") or term.get("namespaceSelector") is not None:
                return True
    return False
