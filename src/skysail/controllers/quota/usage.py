"""What a quota counts: pods by what they ask for, claims by their size, the rest by their number.

Source: pkg/quota/v1/evaluator/core, pkg/controller/resourcequota, v1.36.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime

import msgspec

from skysail.api.core import Container, Pod, PodSpec, ResourceRequirements
from skysail.api.quantity import Quantity, parse_quantity
from skysail.api.raw import Raw
from skysail.api.resources import request_quantities
from skysail.controllers.pods import is_terminal

Usage = dict[str, Quantity]

_ONE, _ZERO = Quantity.of(1), Quantity.of(0)
_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_NODE_PORT_TYPES = ("NodePort", "LoadBalancer")
_STORAGE_CLASS = ".storageclass.storage.k8s.io/"
POD_NAMES = ("pods", "count/pods", *_COMPUTE)
COUNTED = ("configmaps", "secrets", "resourcequotas", "replicationcontrollers")


def is_of_pods(name: str) -> bool:
    """Whether a quota's name is for something that pods use."""
    if name in POD_NAMES or name.startswith(("limits.", "hugepages-")):
        return True
    return name.startswith("requests.") and name != "requests.storage"


def is_of_claims(name: str) -> bool:
    """Whether a quota's name is for something that volume claims use."""
    return name in ("persistentvolumeclaims", "requests.storage") or _STORAGE_CLASS in name


def is_of_services(name: str) -> bool:
    """Whether a quota's name is for something that services use."""
    return name == "services" or name.startswith("services.")


def counted_resource(name: str) -> str:
    """`deployments.apps` for `count/deployments.apps` or `configmaps`; empty for names that are no mere count."""
    if name.startswith("count/") and name != "count/pods":
        return name.removeprefix("count/")
    return name if name in COUNTED else ""


def used(hard: Iterable[str], *parts: Usage) -> dict[str, str]:
    """The use of everything that a quota limits, in wire form."""
    total: Usage = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total[name] + amount if name in total else amount
    return {name: str(total.get(name, _ZERO)) for name in hard}


def pods_usage(pods: Iterable[Pod], quota_spec: Raw, now: datetime) -> Usage:
    """What the pods within a quota's scopes use, together."""
    total: Usage = {}
    for pod in pods:
        if in_scope(quota_spec, pod):
            for name, amount in pod_usage(pod, now).items():
                total[name] = total[name] + amount if name in total else amount
    return total


def pod_usage(pod: Pod, now: datetime) -> Usage:
    """What one pod uses; one that has ended, or should long have gone, only counts as an object."""
    usage: Usage = {"count/pods": _ONE}
    if is_terminal(pod) or _is_overdue(pod, now):
        return usage
    usage["pods"] = _ONE
    for name, amount in request_quantities(pod).items():
        if name in _COMPUTE or name.startswith("hugepages-"):
            usage[name] = usage[f"requests.{name}"] = amount
        elif "/" in name:
            usage[f"requests.{name}"] = amount
    for name, amount in request_quantities(_with_limits_as_requests(pod), use_status=False).items():
        if name in _COMPUTE:
            usage[f"limits.{name}"] = amount
    return usage


def _is_overdue(pod: Pod, now: datetime) -> bool:
    """Whether its deletion is stuck, say on a lost node: its owner must be able to replace it within the quota."""
    deleted_at, grace = pod.metadata.deletion_timestamp, pod.metadata.deletion_grace_period_seconds
    return deleted_at is not None and grace is not None and (now - deleted_at).total_seconds() > grace


def _with_limits_as_requests(pod: Pod) -> Pod:
    """The same pod asking for its limits, so that they are added up by the same rules."""
    spec = msgspec.structs.replace(
        pod.spec,
        containers=tuple(map(_limits, pod.spec.containers)),
        init_containers=tuple(map(_limits, pod.spec.init_containers)),
        resources=_swap(pod.spec.resources),
    )
    return msgspec.structs.replace(pod, spec=spec)


def _limits(container: Container) -> Container:
    return msgspec.structs.replace(container, resources=_swap(container.resources))


def _swap(resources: ResourceRequirements | None) -> ResourceRequirements | None:
    return None if resources is None else ResourceRequirements(requests=resources.limits)


def in_scope(quota_spec: Raw, pod: Pod) -> bool:
    """Whether a quota's scopes take in a pod."""
    requirements = [{"scopeName": scope, "operator": "Exists"} for scope in quota_spec.get("scopes") or ()]
    requirements += (quota_spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    return all(_matches(requirement, pod) for requirement in requirements)


def _matches(requirement: Raw, pod: Pod) -> bool:
    match requirement.get("scopeName"):
        case "Terminating":
            return pod.spec.active_deadline_seconds is not None
        case "NotTerminating":
            return pod.spec.active_deadline_seconds is None
        case "BestEffort":
            return pod.status.qos_class == "BestEffort"
        case "NotBestEffort":
            return pod.status.qos_class != "BestEffort"
        case "PriorityClass":
            return _matches_class(requirement, pod.spec.priority_class_name)
        case "CrossNamespacePodAffinity":
            return _crosses_namespaces(pod.spec)
    return False


def _matches_class(requirement: Mapping[str, object], name: str) -> bool:
    values = requirement.get("values") or ()
    listed = isinstance(values, list) and name in values
    return {"Exists": bool(name), "DoesNotExist": not name, "In": listed, "NotIn": not listed}.get(
        str(requirement.get("operator")), False
    )


def _crosses_namespaces(spec: PodSpec) -> bool:
    if spec.affinity is None:
        return False
    terms = [
        term
        for side in (spec.affinity.pod_affinity, spec.affinity.pod_anti_affinity)
        if side is not None
        for term in (
            *side.required_during_scheduling_ignored_during_execution,
            *(item.pod_affinity_term for item in side.preferred_during_scheduling_ignored_during_execution),
        )
    ]
    return any(term is not None and (term.namespaces or term.namespace_selector is not None) for term in terms)


def claim_usage(claim: Raw) -> Usage:
    """What one volume claim uses, also under its storage class."""
    spec = claim.get("spec") or {}
    usage: Usage = {"persistentvolumeclaims": _ONE}
    size = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if size is not None:
        usage["requests.storage"] = parse_quantity(str(size))
    annotations = claim["metadata"].get("annotations") or {}
    name = spec.get("storageClassName") or annotations.get("volume.beta.kubernetes.io/storage-class")
    if name:
        usage |= {f"{name}{_STORAGE_CLASS}{resource}": amount for resource, amount in list(usage.items())}
    return usage


def service_usage(service: Raw) -> Usage:
    """What one service uses."""
    spec = service.get("spec") or {}
    ports = spec.get("ports") or ()
    if spec.get("allocateLoadBalancerNodePorts") is False:
        ports = [port for port in ports if port.get("nodePort")]
    balanced = spec.get("type") == "LoadBalancer"
    return {
        "services": _ONE,
        "services.nodeports": Quantity.of(len(ports)) if spec.get("type") in _NODE_PORT_TYPES else _ZERO,
        "services.loadbalancers": _ONE if balanced else _ZERO,
    }
