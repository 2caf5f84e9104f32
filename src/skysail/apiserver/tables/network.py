"""The rows of services and of what leads to them.

Source: pkg/printers/internalversion/printers.go, v1.36.
"""

from collections.abc import Sequence
from datetime import datetime

from skysail.api.raw import Raw
from skysail.apiserver.tables.cells import NONE, age, labels_text, listed, part, selector_text

Row = Sequence[object]


def service_cells(obj: Raw, now: datetime) -> Row:
    """Name, Type, Cluster-IP, External-IP, Port(s), Age; Selector."""
    spec = part(obj, "spec")
    addresses = spec.get("clusterIPs") or [spec.get("clusterIP") or NONE]
    ports = ",".join(_port(port) for port in spec.get("ports") or ())
    return [
        obj["metadata"]["name"], spec.get("type", ""), addresses[0], _external(obj), ports or NONE, age(obj, now),
        labels_text(spec.get("selector")),
    ]  # fmt: skip


def _port(port: Raw) -> str:
    node = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port.get('port', 0)}{node}/{port.get('protocol', '')}"


def _external(obj: Raw) -> str:
    spec = part(obj, "spec")
    given = spec.get("externalIPs") or []
    kind = spec.get("type")
    if kind in ("ClusterIP", "NodePort"):
        return ",".join(given) or NONE
    if kind == "LoadBalancer":
        # The server prints Tables as wide, so nothing is cut off.
        balancers = balancer_addresses(obj)
        return ",".join([*([balancers] if balancers else []), *given]) or "<pending>"
    return str(spec.get("externalName", "")) if kind == "ExternalName" else "<unknown>"


def balancer_addresses(obj: Raw) -> str:
    """The addresses of a load balancer, sorted."""
    ingress = part(obj, "status", "loadBalancer").get("ingress") or ()
    return ",".join(sorted({entry.get("ip") or entry.get("hostname") for entry in ingress} - {None, ""}))


def ingress_cells(obj: Raw, now: datetime) -> Row:
    """Name, Class, Hosts, Address, Ports, Age."""
    spec = part(obj, "spec")
    rules: Sequence[Raw] = spec.get("rules") or ()
    hosts = [rule["host"] for rule in rules[:3] if rule.get("host")]
    more = f" + {len(rules) - 3} more..." if len(hosts) == 3 and len(rules) > 3 else ""
    return [
        obj["metadata"]["name"], spec.get("ingressClassName") or NONE, ",".join(hosts) + more if hosts else "*",
        balancer_addresses(obj), "80, 443" if spec.get("tls") else "80", age(obj, now),
    ]  # fmt: skip


def ingress_class_cells(obj: Raw, now: datetime) -> Row:
    """Name, Controller, Parameters, Age."""
    name = obj["metadata"]["name"]
    if part(obj, "metadata", "annotations").get("ingressclass.kubernetes.io/is-default-class") == "true":
        name += " (default)"
    given = part(obj, "spec").get("parameters")
    parameters = NONE
    if given is not None:
        group = f".{given['apiGroup']}" if given.get("apiGroup") is not None else ""
        parameters = f"{given.get('kind', '')}{group}/{given.get('name', '')}"
    return [name, part(obj, "spec").get("controller", ""), parameters, age(obj, now)]


def endpoints_cells(obj: Raw, now: datetime) -> Row:
    """Name, Endpoints, Age."""
    subsets: Sequence[Raw] = obj.get("subsets") or ()
    found = [
        _host_port(address.get("ip", ""), port) for subset in subsets
        for port in subset.get("ports") or [None] for address in subset.get("addresses") or ()
    ]  # fmt: skip
    return [obj["metadata"]["name"], listed(found, empty="") if subsets else NONE, age(obj, now)]


def _host_port(host: str, port: Raw | None) -> str:
    if port is None:
        return host
    return f"[{host}]:{port.get('port', 0)}" if ":" in host else f"{host}:{port.get('port', 0)}"


def endpoint_slice_cells(obj: Raw, now: datetime) -> Row:
    """Name, AddressType, Ports, Endpoints, Age."""
    ports = [
        str(port["port"]) if port.get("port") is not None else (port.get("name") or "*")
        for port in obj.get("ports") or ()
    ]
    addresses = [address for endpoint in obj.get("endpoints") or () for address in endpoint.get("addresses") or ()]
    return [obj["metadata"]["name"], obj.get("addressType", ""), listed(ports), listed(addresses), age(obj, now)]


def network_policy_cells(obj: Raw, now: datetime) -> Row:
    """Name, Pod-Selector, Age."""
    return [obj["metadata"]["name"], selector_text(part(obj, "spec", "podSelector")), age(obj, now)]


def ip_address_cells(obj: Raw, _: datetime) -> Row:
    """Name, ParentRef."""
    ref = part(obj, "spec").get("parentRef")
    parent = NONE
    if ref is not None:
        group = f".{ref['group']}" if ref.get("group") else ""
        namespace = f"/{ref['namespace']}" if ref.get("namespace") else ""
        parent = f"{ref.get('resource', '')}{group}".lower() + f"{namespace}/{ref.get('name', '')}"
    return [obj["metadata"]["name"], parent]


def service_cidr_cells(obj: Raw, now: datetime) -> Row:
    """Name, CIDRs, Age."""
    return [obj["metadata"]["name"], ",".join(part(obj, "spec").get("cidrs") or ()), age(obj, now)]
