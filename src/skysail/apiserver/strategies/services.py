"""Services: what is allocated for them, kept, and dropped when their type changes.

Source: pkg/registry/core/service/storage/storage.go, pkg/registry/core/service/strategy.go, v1.36.
"""

from skysail.api.raw import Raw
from skysail.apiserver.contract import RequestContext
from skysail.apiserver.strategies.generic import GenericStrategy, keep
from skysail.apiserver.strategies.service_addresses import allocate_addresses
from skysail.apiserver.strategies.service_ports import allocate_ports, needs_health_port, needs_node_port
from skysail.apiserver.strategies.service_taken import Taken


class ServiceStrategy(GenericStrategy):
    """Gives a Service its addresses when it is created, and new ones when its type changes."""

    def prepare_create(self, obj: Raw, ctx: RequestContext) -> None:
        """Blank status, IP families, cluster address, node ports."""
        super().prepare_create(obj, ctx)
        obj["status"] = {"loadBalancer": {}}
        spec = obj["spec"]
        if spec.get("clusterIP") and not spec.get("clusterIPs"):
            spec["clusterIPs"] = [spec["clusterIP"]]
        taken = Taken(obj, ctx)
        allocate_addresses(obj, None, taken, ctx)
        allocate_ports(obj, None, taken, ctx)

    def prepare_update(self, new: Raw, old: Raw, ctx: RequestContext) -> None:
        """Keep the status and what was allocated, as far as the type still needs it."""
        keep(new, old, "status")
        self.count_generation(new, old)
        _keep_allocated(new["spec"], old["spec"])
        _keep_in_step(new["spec"], old["spec"])
        taken = Taken(new, ctx)
        allocate_addresses(new, old, taken, ctx)
        allocate_ports(new, old, taken, ctx)
        _drop_with_type(new["spec"], old["spec"])
        if new["spec"].get("type") != "LoadBalancer" and new.get("status"):
            new["status"] = {**new["status"], "loadBalancer": {}}


def _keep_allocated(new: Raw, old: Raw) -> None:
    """An update that leaves out allocated values keeps them."""
    if "ExternalName" not in (new.get("type"), old.get("type")):
        for key in ("clusterIP", "clusterIPs"):
            if not new.get(key) and old.get(key):
                new[key] = old[key]
    if needs_node_port(new) and needs_node_port(old):
        known = {port.get("name") or "": port.get("nodePort") for port in old.get("ports") or ()}
        stay = {port.get("nodePort") for port in new.get("ports") or ()} & set(known.values())
        for port in new.get("ports") or ():
            before = known.get(port.get("name") or "")
            if not port.get("nodePort") and before and before not in stay:
                port["nodePort"] = before
    if needs_health_port(new) and needs_health_port(old) and not new.get("healthCheckNodePort"):
        keep(new, old, "healthCheckNodePort")


def _keep_in_step(new: Raw, old: Raw) -> None:
    """The one address and the list of them follow each other, as far as the client meant them to."""
    one, before = new.get("clusterIP") or "", old.get("clusterIP") or ""
    ips, known = new.get("clusterIPs") or [], old.get("clusterIPs") or []
    if known and not ips and one == before:
        new["clusterIPs"] = known
    if one == before or ips != known:
        return
    if one:
        new["clusterIPs"] = [one]
    else:
        new.pop("clusterIPs", None)


def _drop_with_type(new: Raw, old: Raw) -> None:
    """What belonged to the old type goes, unless the request changed it on purpose."""
    if new.get("type") == "ExternalName" != old.get("type"):
        if _same(new, old, "clusterIP", "clusterIPs"):
            _drop(new, "clusterIP", "clusterIPs")
        for key in ("ipFamilies", "ipFamilyPolicy"):
            if _same(new, old, key):
                _drop(new, key)
    if needs_node_port(old) and not needs_node_port(new) and _node_ports(new) <= _node_ports(old):
        for port in new.get("ports") or ():
            port.pop("nodePort", None)
    if needs_health_port(old) and not needs_health_port(new) and _same(new, old, "healthCheckNodePort"):
        _drop(new, "healthCheckNodePort")
    if old.get("type") == "LoadBalancer" != new.get("type"):
        for key in ("allocateLoadBalancerNodePorts", "loadBalancerClass"):
            if _same(new, old, key):
                _drop(new, key)
    if _reached_from_outside(old) and not _reached_from_outside(new) and _same(new, old, "externalTrafficPolicy"):
        _drop(new, "externalTrafficPolicy")


def _same(new: Raw, old: Raw, *keys: str) -> bool:
    return all(new.get(key) == old.get(key) for key in keys)


def _drop(spec: Raw, *keys: str) -> None:
    for key in keys:
        spec.pop(key, None)


def _node_ports(spec: Raw) -> set[int]:
    return {port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort")}


def _reached_from_outside(spec: Raw) -> bool:
    return needs_node_port(spec) or bool(spec.get("type") == "ClusterIP" and spec.get("externalIPs"))
