"""The node ports of a Service.

Source: pkg/registry/core/service/storage/alloc.go, v1.36.
"""

from collections.abc import Sequence

from skysail.api.raw import Raw
from skysail.apiserver.contract import RequestContext, invalid
from skysail.apiserver.status import internal_error, invalid_object
from skysail.apiserver.strategies.service_taken import Taken

_NODE_PORT_TYPES = ("NodePort", "LoadBalancer")


def needs_node_port(spec: Raw) -> bool:
    """Whether nodes listen for the Service."""
    return spec.get("type") in _NODE_PORT_TYPES


def _gets_node_ports(spec: Raw) -> bool:
    """Whether node ports are found for ports that name none."""
    kind = spec.get("type")
    return kind == "NodePort" or (kind == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is not False)


def needs_health_port(spec: Raw) -> bool:
    """Whether a load balancer needs a port to ask about local endpoints."""
    return bool(spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local")


def allocate_ports(obj: Raw, old: Raw | None, taken: Taken, ctx: RequestContext) -> None:
    """Fill in the node ports that are still missing, and the health check's.

    Raises:
        InternalError: The range is used up.
        Invalid: A named port cannot be had.
    """
    spec, before = obj["spec"], (old or {}).get("spec") or {}
    held = {port.get("nodePort") for port in before.get("ports") or ()}
    ports: Sequence[Raw] = spec.get("ports") or ()
    given = {port["nodePort"] for port in ports if port.get("nodePort")}
    for index, port in enumerate(ports):
        if not needs_node_port(spec):
            if port.get("nodePort") == 0:
                port.pop("nodePort")
            continue
        wanted = port.get("nodePort")
        if wanted:
            if wanted not in held and wanted not in {other.get("nodePort") for other in ports[:index]}:
                _reserve(obj, index, wanted, taken)
        elif _gets_node_ports(spec):
            port["nodePort"] = (_shared(ports, port) if old is None else None) or _any(taken, given)
            given.add(port["nodePort"])
    _health_port(obj, before, taken, given)


def _reserve(obj: Raw, index: int, wanted: int, taken: Taken) -> None:
    fault = taken.port_fault(wanted)
    if fault:
        error = invalid(f"spec.ports[{index}].nodePort", wanted, fault)
        raise invalid_object("", "Service", obj["metadata"].get("name") or "", [error])


def _any(taken: Taken, given: set[int]) -> int:
    port = taken.free_port(given)
    if port is None:
        raise internal_error("failed to allocate a nodePort: range is full")
    return port


def _shared(ports: Sequence[Raw], port: Raw) -> int | None:
    """The same port over another protocol gets the same node port."""
    for other in ports:
        if other is not port and other.get("port") == port.get("port") and other.get("nodePort"):
            return int(other["nodePort"])
    return None


def _health_port(obj: Raw, before: Raw, taken: Taken, given: set[int]) -> None:
    spec = obj["spec"]
    if not needs_health_port(spec) or needs_health_port(before):
        return
    wanted = spec.get("healthCheckNodePort")
    if not wanted:
        spec["healthCheckNodePort"] = _any(taken, given)
        return
    fault = taken.port_fault(wanted)
    if fault:
        raise internal_error(f"failed to allocate requested HealthCheck NodePort {wanted}: {fault}")
