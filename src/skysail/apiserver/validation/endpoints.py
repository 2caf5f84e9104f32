"""Endpoints and EndpointSlices.

Source: pkg/apis/core/validation/validation.go ValidateEndpoints, pkg/apis/discovery/validation/validation.go, v1.36.
"""

from collections.abc import Sequence

from skysail.api.raw import Raw
from skysail.apiserver.contract import duplicate, invalid, not_supported, required
from skysail.apiserver.validation.addresses import canonical_address, domain, service_address, special_address
from skysail.apiserver.validation.field import Errors, at, immutable, same, too_many
from skysail.apiserver.validation.metadata import labels, look_again
from skysail.apiserver.validation.names import dns_label, dns_subdomain, label_value, port_number, qualified_name
from skysail.apiserver.validation.services import PROTOCOLS, protocol

_ADDRESS_TYPES = ("FQDN", "IPv4", "IPv6")
_MOST_ENDPOINTS, _MOST_ADDRESSES, _MOST_PORTS, _MOST_HINTS, _MOST_LABELS = 1000, 100, 20000, 8, 16


def endpoints(obj: Raw) -> Errors:
    """Check Endpoints."""
    errors: Errors = []
    for index, subset in enumerate(obj.get("subsets") or ()):
        path = f"subsets[{index}]"
        ready, waiting, ports = (subset.get(key) or () for key in ("addresses", "notReadyAddresses", "ports"))
        if not ready and not waiting:
            errors.append(required(path, "must specify `addresses` or `notReadyAddresses`"))
        for key, items in (("addresses", ready), ("notReadyAddresses", waiting)):
            for place, item in enumerate(items):
                errors += _address(item, f"{path}.{key}[{place}]")
        for place, port in enumerate(ports):
            errors += _port(port, len(ports) > 1, f"{path}.ports[{place}]")
    return errors


def endpoints_update(new: Raw, old: Raw) -> Errors:
    """Check changed Endpoints; subsets that stayed are taken as they are."""
    errors = look_again(new, dns_subdomain)
    return errors if same(new.get("subsets"), old.get("subsets")) else errors + endpoints(new)


def _address(item: Raw, path: str) -> Errors:
    ip, host, node = item.get("ip") or "", item.get("hostname"), item.get("nodeName")
    errors = service_address(ip, f"{path}.ip")
    if host:
        errors += at(f"{path}.hostname", dns_label(host), host)
    if node is not None:
        errors += at(f"{path}.nodeName", dns_subdomain(node), node)
    return errors + special_address(ip, f"{path}.ip")


def _port(port: Raw, named: bool, path: str) -> Errors:
    name, number, app = port.get("name"), port.get("port") or 0, port.get("appProtocol")
    errors: Errors = []
    if name:
        errors += at(f"{path}.name", dns_label(name), name)
    elif named:
        errors.append(required(f"{path}.name"))
    errors += at(f"{path}.port", port_number(number), number) + protocol(port, f"{path}.protocol")
    if app is not None:
        errors += at(f"{path}.appProtocol", qualified_name(app), app)
    return errors


def endpoint_slice(obj: Raw) -> Errors:
    """Check an EndpointSlice."""
    return _slice_head(obj) + _slice_endpoints(obj)


def endpoint_slice_update(new: Raw, old: Raw) -> Errors:
    """Check a changed EndpointSlice; endpoints that stayed are taken as they are."""
    errors = _slice_head(new)
    if not same(new.get("endpoints"), old.get("endpoints")):
        errors += _slice_endpoints(new)
    return errors + immutable(new.get("addressType") or "", old.get("addressType") or "", "addressType")


def _slice_head(obj: Raw) -> Errors:
    kind, ports = obj.get("addressType") or "", obj.get("ports") or ()
    errors: Errors = []
    if kind not in _ADDRESS_TYPES:
        errors.append(not_supported("addressType", kind, _ADDRESS_TYPES) if kind else required("addressType"))
    if len(ports) > _MOST_PORTS:
        return [*errors, too_many("ports", len(ports), _MOST_PORTS)]
    names: set[str] = set()
    for index, port in enumerate(ports):
        path, name, app = f"ports[{index}]", port.get("name") or "", port.get("appProtocol")
        if name:
            errors += at(f"{path}.name", dns_label(name), name)
        if name in names:
            errors.append(duplicate(f"{path}.name", name))
        names.add(name)
        value = port.get("protocol")
        if value is None:
            errors.append(required(f"{path}.protocol"))
        elif value not in PROTOCOLS:
            errors.append(not_supported(f"{path}.protocol", value, PROTOCOLS))
        if app is not None:
            errors += at(f"{path}.appProtocol", qualified_name(app), app)
    return errors


def _slice_endpoints(obj: Raw) -> Errors:
    items = obj.get("endpoints") or ()
    if len(items) > _MOST_ENDPOINTS:
        return [too_many("endpoints", len(items), _MOST_ENDPOINTS)]
    errors: Errors = []
    for index, item in enumerate(items):
        path, node, topology = f"endpoints[{index}]", item.get("nodeName"), item.get("deprecatedTopology") or {}
        errors += _slice_addresses(item.get("addresses") or (), obj.get("addressType") or "", f"{path}.addresses")
        if node is not None:
            errors += at(f"{path}.nodeName", dns_subdomain(node), node)
        if len(topology) > _MOST_LABELS:
            errors.append(too_many(f"{path}.deprecatedTopology", len(topology), _MOST_LABELS))
        errors += labels(topology, f"{path}.deprecatedTopology")
        if item.get("hostname") is not None:
            errors += at(f"{path}.hostname", dns_label(item["hostname"]), item["hostname"])
        if item.get("hints") is not None:
            errors += _hints(item["hints"], f"{path}.hints")
    return errors


def _slice_addresses(addresses: Sequence[str], kind: str, path: str) -> Errors:
    errors: Errors = []
    if not addresses:
        errors.append(required(path, "must contain at least 1 address"))
    elif len(addresses) > _MOST_ADDRESSES:
        errors.append(too_many(path, len(addresses), _MOST_ADDRESSES))
    for index, value in enumerate(addresses):
        here = f"{path}[{index}]"
        if kind == "FQDN":
            errors += domain(value, here)
        elif kind in ("IPv4", "IPv6"):
            faults = service_address(value, here) if kind == "IPv4" else canonical_address(value, here)
            if not faults and (":" in value) != (kind == "IPv6"):
                faults.append(invalid(path, value, f"must be an {kind} address"))
                faults += special_address(value, here)
            elif not faults:
                faults = special_address(value, here)
            errors += faults
    return errors


def _hints(hints: Raw, path: str) -> Errors:
    errors: Errors = []
    for key, check in (("forZones", label_value), ("forNodes", dns_subdomain)):
        items = hints.get(key) or ()
        if len(items) > _MOST_HINTS:
            return [*errors, too_many(f"{path}.{key}", len(items), _MOST_HINTS)]
        seen: set[str] = set()
        for index, item in enumerate(items):
            here, name = f"{path}.{key}[{index}].name", item.get("name") or ""
            if name in seen:
                errors.append(duplicate(here, name))
            seen.add(name)
            errors += at(here, check(name), name)
    return errors
