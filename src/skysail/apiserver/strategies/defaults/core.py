"""Services, nodes, namespaces, volumes, configuration: the core group without its pods.

Source: pkg/apis/core/v1/defaults.go, v1.36.
"""

import base64
from collections.abc import Mapping

from skysail.api.raw import Raw
from skysail.apiserver.strategies.defaults.quantities import amounts, requirements, resource_list
from skysail.apiserver.strategies.defaults.volumes import claim_spec, source

_NODE_INFO = (
    "machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion", "kubeletVersion",
    "kubeProxyVersion", "operatingSystem", "architecture",
)  # fmt: skip
_AFFINITY_TIMEOUT = 10800


def _part(obj: Raw, key: str) -> Raw:
    part: Raw | None = obj.get(key)
    if part is None:
        part = obj[key] = {}
    return part


def service(obj: Raw) -> None:
    """Defaults of a Service; addresses and ports are allocated later."""
    spec = _part(obj, "spec")
    if not spec.get("sessionAffinity"):
        spec["sessionAffinity"] = "None"
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP":
        client = (spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}
        if client.get("timeoutSeconds") is None:
            spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": _AFFINITY_TIMEOUT}}
    if not spec.get("type"):
        spec["type"] = "ClusterIP"
    kind = spec["type"]
    for port in spec.get("ports") or ():
        if not port.get("protocol"):
            port["protocol"] = "TCP"
        if not port.get("targetPort") and port.get("port") is not None:
            port["targetPort"] = port["port"]
    external = kind in ("NodePort", "LoadBalancer") or (kind == "ClusterIP" and spec.get("externalIPs"))
    if external and not spec.get("externalTrafficPolicy"):
        spec["externalTrafficPolicy"] = "Cluster"
    if spec.get("internalTrafficPolicy") is None and kind in ("NodePort", "LoadBalancer", "ClusterIP"):
        spec["internalTrafficPolicy"] = "Cluster"
    if kind == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is None:
        spec["allocateLoadBalancerNodePorts"] = True
    balancer = _part(_part(obj, "status"), "loadBalancer")
    if kind == "LoadBalancer":
        for ingress in balancer.get("ingress") or ():
            if ingress.get("ip") and ingress.get("ipMode") is None:
                ingress["ipMode"] = "VIP"


def namespace(obj: Raw) -> None:
    """A namespace carries its own name as a label, and is Active until told otherwise."""
    metadata = _part(obj, "metadata")
    name = metadata.get("name")
    if name:
        labels = metadata.get("labels")
        if labels is None:
            labels = metadata["labels"] = {}
        labels["kubernetes.io/metadata.name"] = name
    _part(obj, "spec")
    status = _part(obj, "status")
    if not status.get("phase"):
        status["phase"] = "Active"


def node(obj: Raw) -> None:
    """Allocatable defaults to capacity; the report's fixed parts are always shown; the address ranges agree."""
    spec = _part(obj, "spec")
    one, ranges = spec.get("podCIDR"), spec.get("podCIDRs")
    if one and (not ranges or ranges[0] != one):
        spec["podCIDRs"] = [one]
    elif ranges:
        spec["podCIDR"] = ranges[0]
    status = _part(obj, "status")
    resource_list(status.get("capacity"))
    if not status.get("allocatable") and status.get("capacity"):
        status["allocatable"] = dict(status["capacity"])
    resource_list(status.get("allocatable"))
    endpoint = _part(_part(status, "daemonEndpoints"), "kubeletEndpoint")
    if endpoint.get("Port") is None:
        endpoint["Port"] = 0
    info = _part(status, "nodeInfo")
    for key in _NODE_INFO:
        if info.get(key) is None:
            info[key] = ""


def persistent_volume(obj: Raw) -> None:
    """Defaults of a PersistentVolume."""
    spec, status = _part(obj, "spec"), _part(obj, "status")
    if not status.get("phase"):
        status["phase"] = "Pending"
    if not spec.get("persistentVolumeReclaimPolicy"):
        spec["persistentVolumeReclaimPolicy"] = "Retain"
    if spec.get("volumeMode") is None:
        spec["volumeMode"] = "Filesystem"
    resource_list(spec.get("capacity"))
    source(spec)


def persistent_volume_claim(obj: Raw) -> None:
    """Defaults of a PersistentVolumeClaim."""
    status = _part(obj, "status")
    if not status.get("phase"):
        status["phase"] = "Pending"
    claim_spec(_part(obj, "spec"))
    resource_list(status.get("capacity"))
    resource_list(status.get("allocatedResources"))


def secret(obj: Raw) -> None:
    """An untyped Secret is Opaque; plain texts become data."""
    plain = obj.pop("stringData", None)
    if plain:
        encoded = {key: base64.b64encode((text or "").encode()).decode() for key, text in plain.items()}
        obj["data"] = {**(obj.get("data") or {}), **encoded}
    if not obj.get("type"):
        obj["type"] = "Opaque"


def endpoints(obj: Raw) -> None:
    """Ports are TCP unless told otherwise."""
    for subset in obj.get("subsets") or ():
        for port in subset.get("ports") or ():
            if not port.get("protocol"):
                port["protocol"] = "TCP"


def limit_range(obj: Raw) -> None:
    """Default limits come from the maximum, default requests from the default limit, then from the minimum."""
    for item in _part(obj, "spec").get("limits") or ():
        for key in ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio"):
            resource_list(item.get(key))
        if item.get("type") != "Container":
            continue
        default: Raw = item.get("default") or {}
        request: Raw = item.get("defaultRequest") or {}
        default = {**_missing(item.get("max"), default), **default}
        request = {**_missing(default, request), **request}
        request = {**_missing(item.get("min"), request), **request}
        item["default"], item["defaultRequest"] = default, request
        for key in ("default", "defaultRequest"):
            if not item[key]:
                del item[key]


def _missing(source_list: Mapping[str, object] | None, present: Mapping[str, object]) -> Raw:
    return {name: amount for name, amount in (source_list or {}).items() if name not in present}


def resource_quota(obj: Raw) -> None:
    """Amounts get their stored form."""
    resource_list(_part(obj, "spec").get("hard"))
    status = _part(obj, "status")
    resource_list(status.get("hard"))
    resource_list(status.get("used"))


def event(obj: Raw) -> None:
    """The parts of an Event that are always shown."""
    _part(obj, "involvedObject")
    _part(obj, "source")
    for key in ("firstTimestamp", "lastTimestamp", "eventTime"):
        obj.setdefault(key, None)
    obj.setdefault("reportingComponent", "")
    obj.setdefault("reportingInstance", "")


def claim_requirements(spec: Raw) -> None:
    """Amounts of a `resources` block get their stored form."""
    if spec.get("resources"):
        requirements(spec["resources"])
        amounts(spec["resources"].get("limits"))
