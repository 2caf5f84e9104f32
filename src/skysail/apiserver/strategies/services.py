"""Services: cluster addresses and node ports.

Source: pkg/registry/core/service/storage, v1.36.
Differs: addresses and ports are found by looking at the other Services instead of a bitmap of their own, so nothing can
    leak, and the search starts at a place drawn from the request's random generator.
"""

import ipaddress
from collections.abc import Sequence

from skysail.api.errors import Invalid, Status
from skysail.api.raw import Raw
from skysail.apiserver.contract import FieldError, GroupResource, RequestContext, invalid
from skysail.apiserver.status import invalid_object
from skysail.apiserver.strategies.generic import GenericStrategy, keep

SERVICES = GroupResource("", "services")
DEFAULT_RANGE = "10.0.0.0/24"
NODE_PORTS = range(30000, 32768)


class ServiceStrategy(GenericStrategy):
    """Gives a Service its addresses when it is created, and new ones when its type changes."""

    def prepare_create(self, obj: Raw, ctx: RequestContext) -> None:
        """Blank status, IP families, cluster address, node ports."""
        super().prepare_create(obj, ctx)
        obj["status"] = {"loadBalancer": {}}
        allocate(obj, None, ctx)

    def prepare_update(self, new: Raw, old: Raw, ctx: RequestContext) -> None:
        """Keep the status and what was allocated, as far as the type still needs it."""
        keep(new, old, "status")
        self.count_generation(new, old)
        _drop_with_type(new["spec"], old["spec"])
        _patch_allocated(new["spec"], old["spec"])
        allocate(new, old, ctx)


def _drop_with_type(new: Raw, old: Raw) -> None:
    """What belonged to the old type goes, unless the request changed it on purpose."""
    if old.get("type") == new.get("type"):
        return
    if new["type"] == "ExternalName":
        for key in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            if new.get(key) == old.get(key):
                new.pop(key, None)
    if old["type"] in ("NodePort", "LoadBalancer") and new["type"] in ("ClusterIP", "ExternalName"):
        before = [port.get("nodePort") for port in old.get("ports") or ()]
        after = [port.get("nodePort") for port in new.get("ports") or ()]
        if before == after:
            for port in new.get("ports") or ():
                port.pop("nodePort", None)
        if new.get("externalTrafficPolicy") == old.get("externalTrafficPolicy") and not new.get("externalIPs"):
            new.pop("externalTrafficPolicy", None)
    if old["type"] == "LoadBalancer":
        if new.get("healthCheckNodePort") == old.get("healthCheckNodePort"):
            new.pop("healthCheckNodePort", None)
        for key in ("allocateLoadBalancerNodePorts", "loadBalancerClass"):
            if new.get(key) == old.get(key):
                new.pop(key, None)


def _patch_allocated(new: Raw, old: Raw) -> None:
    """A PUT that leaves out allocated values keeps them."""
    needs = ("ClusterIP", "NodePort", "LoadBalancer")
    if new["type"] in needs and old["type"] in needs and not new.get("clusterIP") and old.get("clusterIP"):
        new["clusterIP"] = old["clusterIP"]
        new["clusterIPs"] = list(old.get("clusterIPs") or [old["clusterIP"]])
    if new["type"] in ("NodePort", "LoadBalancer") and old["type"] in ("NodePort", "LoadBalancer"):
        known = {(port.get("protocol"), port.get("port")): port.get("nodePort") for port in old.get("ports") or ()}
        taken = {port.get("nodePort") for port in new.get("ports") or ()}
        for port in new.get("ports") or ():
            before = known.get((port.get("protocol"), port.get("port")))
            if not port.get("nodePort") and before and before not in taken:
                port["nodePort"] = before
                taken.add(before)
    if new.get("healthCheckNodePort") is None and needs_health_port(new) and old.get("healthCheckNodePort"):
        new["healthCheckNodePort"] = old["healthCheckNodePort"]


def needs_health_port(spec: Raw) -> bool:
    """Whether a load balancer needs a port to ask about local endpoints."""
    return bool(spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local")


def allocate(obj: Raw, old: Raw | None, ctx: RequestContext) -> None:
    """Fill in IP families, cluster addresses and node ports that are still missing.

    Raises:
        Invalid: A named address or port is taken or out of range.
    """
    spec = obj["spec"]
    if spec["type"] == "ExternalName":
        return
    _families(spec)
    if spec.get("clusterIP") and not spec.get("clusterIPs"):
        spec["clusterIPs"] = [spec["clusterIP"]]
    elif spec.get("clusterIPs") and not spec.get("clusterIP"):
        spec["clusterIP"] = spec["clusterIPs"][0]
    others = _Others(obj, ctx)
    if spec.get("clusterIP") != "None":
        _cluster_ip(obj, old, others, ctx)
    if spec["type"] in ("NodePort", "LoadBalancer") and spec.get("allocateLoadBalancerNodePorts") is not False:
        _node_ports(obj, others, ctx)
    else:
        for port in spec.get("ports") or ():
            if port.get("nodePort") == 0:
                port.pop("nodePort")
    if needs_health_port(spec) and not spec.get("healthCheckNodePort"):
        spec["healthCheckNodePort"] = others.free_port(ctx, set())


def _families(spec: Raw) -> None:
    headless_without_selector = spec.get("clusterIP") == "None" and not spec.get("selector")
    addresses = spec.get("clusterIPs") or ([spec["clusterIP"]] if spec.get("clusterIP") else [])
    if not spec.get("ipFamilyPolicy"):
        two = headless_without_selector or len(addresses) == 2 or len(spec.get("ipFamilies") or ()) == 2
        spec["ipFamilyPolicy"] = "RequireDualStack" if two else "SingleStack"
    if not spec.get("ipFamilies"):
        spec["ipFamilies"] = ["IPv4", "IPv6"] if headless_without_selector else ["IPv4"]
    if not headless_without_selector and spec["ipFamilyPolicy"] == "PreferDualStack":
        spec["ipFamilies"] = spec["ipFamilies"][:1]


class _Others:
    """What the other Services hold."""

    def __init__(self, obj: Raw, ctx: RequestContext) -> None:
        self.addresses: set[str] = set()
        self.ports: set[tuple[str, int]] = set()
        meta = obj["metadata"]
        for other in ctx.reader.list(SERVICES):
            if (other["metadata"]["name"], other["metadata"]["namespace"]) == (
                meta.get("name"), meta.get("namespace") or ctx.namespace,
            ):  # fmt: skip
                continue
            spec = other.get("spec") or {}
            self.addresses.update(ip for ip in spec.get("clusterIPs") or () if ip != "None")
            for port in spec.get("ports") or ():
                if port.get("nodePort"):
                    self.ports.add((port.get("protocol") or "TCP", port["nodePort"]))
            if spec.get("healthCheckNodePort"):
                self.ports.add(("TCP", spec["healthCheckNodePort"]))

    def free_port(self, ctx: RequestContext, taken: set[int]) -> int:
        """A node port nobody holds."""
        used = {port for _, port in self.ports} | taken
        start = ctx.rng.randrange(len(NODE_PORTS))
        for step in range(len(NODE_PORTS)):
            port = NODE_PORTS[(start + step) % len(NODE_PORTS)]
            if port not in used:
                return port
        raise Invalid(Status(message="range is full", reason="Invalid", code=422))


def _cluster_ip(obj: Raw, old: Raw | None, others: _Others, ctx: RequestContext) -> None:
    spec = obj["spec"]
    network = ipaddress.ip_network(ctx.options.get("service-cidr") or DEFAULT_RANGE)
    wanted = spec.get("clusterIP")
    if wanted:
        if old is None or old["spec"].get("clusterIP") != wanted:
            fault = _refusal(wanted, network, others)
            if fault:
                raise invalid_object("", "Service", obj["metadata"].get("name") or "", [fault])
        return
    size = network.num_addresses
    start = ctx.rng.randrange(size)
    for step in range(size):
        address = network[(start + step) % size]
        if address in (network.network_address, network.broadcast_address, network[1]):
            continue
        if str(address) not in others.addresses:
            spec["clusterIP"] = str(address)
            spec["clusterIPs"] = [str(address)]
            return
    raise Invalid(
        Status(message="failed to allocate IP: range is full", reason="Invalid", code=422),
    )


def _refusal(wanted: str, network: ipaddress.IPv4Network | ipaddress.IPv6Network, others: _Others) -> FieldError | None:
    words = "failed to allocate IP {}: {}"
    try:
        inside = ipaddress.ip_address(wanted) in network
    except ValueError:
        return None
    shown = [wanted]
    if not inside:
        text = f"the provided IP ({wanted}) is not in the valid range. The range of valid IPs is {network}"
        return invalid("spec.clusterIPs", shown, words.format(wanted, text))
    if wanted in others.addresses:
        return invalid("spec.clusterIPs", shown, words.format(wanted, "provided IP is already allocated"))
    return None


def _node_ports(obj: Raw, others: _Others, ctx: RequestContext) -> None:
    ports: Sequence[Raw] = obj["spec"].get("ports") or ()
    taken = {port["nodePort"] for port in ports if port.get("nodePort")}
    for index, port in enumerate(ports):
        wanted = port.get("nodePort")
        path = f"spec.ports[{index}].nodePort"
        name = obj["metadata"].get("name") or ""
        if not wanted:
            port["nodePort"] = _shared(ports, port) or others.free_port(ctx, taken)
            taken.add(port["nodePort"])
        elif wanted not in NODE_PORTS:
            text = "provided port is not in the valid range. The range of valid ports is 30000-32767"
            raise invalid_object("", "Service", name, [invalid(path, wanted, text)])
        elif (port.get("protocol") or "TCP", wanted) in others.ports:
            raise invalid_object("", "Service", name, [invalid(path, wanted, "provided port is already allocated")])


def _shared(ports: Sequence[Raw], port: Raw) -> int | None:
    """The same port over another protocol gets the same node port."""
    for other in ports:
        same_port = other is not port and other.get("port") == port.get("port")
        if same_port and other.get("nodePort") and other.get("protocol") != port.get("protocol"):
            return int(other["nodePort"])
    return None
