"""NetworkPolicies, Ingresses and IngressClasses.

Source: pkg/apis/networking/validation/validation.go, v1.36.
"""

import ipaddress
from collections.abc import Collection

from skysail.api.raw import Raw
from skysail.apiserver.contract import forbidden, invalid, not_supported, required, too_long
from skysail.apiserver.validation.addresses import service_address
from skysail.apiserver.validation.field import Errors, at, immutable
from skysail.apiserver.validation.metadata import label_selector, look_again
from skysail.apiserver.validation.names import (
    cidr,
    dns_label,
    dns_subdomain,
    http_path,
    parse_ip,
    path_segment,
    port_name,
    port_number,
    regex_error,
    wildcard_subdomain,
)  # fmt: skip

_PROTOCOLS = ("TCP", "UDP", "SCTP")
_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
_BAD_PARTS, _BAD_ENDS = ("//", "/./", "/../", "%2f", "%2F"), ("/..", "/.")
_LONGEST_CONTROLLER = 250
_HTTP_PATH = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_CLASS_ANNOTATION = "kubernetes.io/ingress.class"
_NOT_AN_IP = "must be a DNS name, not an IP address"


def network_policy(obj: Raw) -> Errors:
    """Check a NetworkPolicy."""
    return _policy(obj.get("spec") or {}, ())


def network_policy_update(new: Raw, old: Raw) -> Errors:
    """Check a changed NetworkPolicy; address ranges that were there are taken as they are."""
    blocks = [peer.get("ipBlock") or {} for _, peer in _peers(old.get("spec") or {})]
    known = {value for block in blocks for value in (block.get("cidr"), *(block.get("except") or ()))}
    return _policy(new.get("spec") or {}, known)


def _peers(spec: Raw) -> list[tuple[str, Raw]]:
    return [
        (f"spec.{side}[{index}].{key}[{place}]", peer)
        for side, key in (("ingress", "from"), ("egress", "to"))
        for index, rule in enumerate(spec.get(side) or ())
        for place, peer in enumerate(rule.get(key) or ())
    ]


def _policy(spec: Raw, known: Collection[str]) -> Errors:
    errors = label_selector(spec.get("podSelector"), "spec.podSelector")
    peers = _peers(spec)
    for side in ("ingress", "egress"):
        for index, rule in enumerate(spec.get(side) or ()):
            here = f"spec.{side}[{index}]"
            for place, port in enumerate(rule.get("ports") or ()):
                errors += _policy_port(port, f"{here}.ports[{place}]")
            for path, peer in peers:
                if path.startswith(f"{here}."):
                    errors += _peer(peer, path, known)
    kinds = spec.get("policyTypes") or []
    if len(kinds) > 2:
        return [*errors, invalid("spec.policyTypes", kinds, "may not specify more than two policyTypes")]
    types = ("Ingress", "Egress")
    return errors + [
        not_supported(f"spec.policyTypes[{index}]", kind, types)
        for index, kind in enumerate(kinds)
        if kind not in types
    ]


def _policy_port(item: Raw, path: str) -> Errors:
    protocol, port, end = item.get("protocol"), item.get("port"), item.get("endPort")
    errors: Errors = []
    if protocol is not None and protocol not in _PROTOCOLS:
        errors.append(not_supported(f"{path}.protocol", protocol, _PROTOCOLS))
    if isinstance(port, int):
        errors += at(f"{path}.port", port_number(port), port)
        if end is not None and end < port:
            errors.append(invalid(f"{path}.endPort", port, "must be greater than or equal to `port`"))
        if end is not None:
            errors += at(f"{path}.endPort", port_number(end), end)
        return errors
    if end is not None:
        why = "not specified" if port is None else "non-numeric"
        errors.append(invalid(f"{path}.endPort", end, f"may not be specified when `port` is {why}"))
    if port is not None:
        errors += at(f"{path}.port", port_name(port), port)
    return errors


def _peer(peer: Raw, path: str, known: Collection[str]) -> Errors:
    present = [key for key in ("podSelector", "namespaceSelector", "ipBlock") if peer.get(key) is not None]
    errors: Errors = []
    for key in present:
        here = f"{path}.{key}"
        errors += _ip_block(peer[key], here, known) if key == "ipBlock" else label_selector(peer[key], here)
    if not present:
        errors.append(required(path, "must specify a peer"))
    elif len(present) > 1 and "ipBlock" in present:
        errors.append(forbidden(path, "may not specify both ipBlock and another peer"))
    return errors


def _ip_block(block: Raw, path: str, known: Collection[str]) -> Errors:
    value = block.get("cidr") or ""
    if not value:
        return [required(f"{path}.cidr")]
    errors = [] if value in known else at(f"{path}.cidr", cidr(value), value)
    network = _network(value)
    if network is None:
        return errors
    for index, text in enumerate(block.get("except") or ()):
        here = f"{path}.except[{index}]"
        errors += [] if text in known else at(here, cidr(text), text)
        hole = _network(text)
        if hole is None:
            continue
        inside = hole.network_address in network and network.prefixlen < hole.prefixlen
        if not inside:
            errors.append(invalid(here, text, "must be a strict subset of `cidr`"))
    return errors


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    address, _, length = text.partition("/")
    parsed = parse_ip(address)
    if parsed is None or not length.isdigit() or int(length) > parsed.max_prefixlen:
        return None
    return ipaddress.ip_network(f"{parsed}/{int(length)}", strict=False)


def ingress(obj: Raw) -> Errors:
    """Check a new Ingress."""
    errors = _ingress(obj.get("spec") or {})
    annotation = (obj["metadata"].get("annotations") or {}).get(_CLASS_ANNOTATION)
    name = (obj.get("spec") or {}).get("ingressClassName")
    if annotation is not None and name is not None and annotation != name:
        detail = "must match `ingressClassName` when both are specified"
        errors.append(invalid(f"annotations.{_CLASS_ANNOTATION}", annotation, detail))
    return errors


def ingress_update(new: Raw, old: Raw) -> Errors:
    """Check a changed Ingress."""
    return look_again(new, dns_subdomain) + _ingress(new.get("spec") or {})


def _ingress(spec: Raw) -> Errors:
    rules, backend = spec.get("rules") or (), spec.get("defaultBackend")
    errors: Errors = []
    if not rules and backend is None:
        errors.append(invalid("spec", None, "either `defaultBackend` or `rules` must be specified"))
    if backend is not None:
        errors += _backend(backend, "spec.defaultBackend")
    for index, rule in enumerate(rules):
        errors += _rule(rule, f"spec.rules[{index}]")
    for index, item in enumerate(spec.get("tls") or ()):
        path, secret = f"spec.tls[{index}]", item.get("secretName") or ""
        for place, host in enumerate(item.get("hosts") or ()):
            errors += _host(host, f"{path}.hosts[{place}]")
        if secret:
            errors += at(f"{path}.secretName", dns_subdomain(secret), secret)
    name = spec.get("ingressClassName")
    return errors + (at("spec.ingressClassName", dns_subdomain(name), name) if name is not None else [])


def _host(host: str, path: str) -> Errors:
    return at(path, wildcard_subdomain(host) if "*" in host else dns_subdomain(host), host)


def _rule(rule: Raw, path: str) -> Errors:
    host, http = rule.get("host") or "", rule.get("http")
    errors: Errors = []
    if host:
        if parse_ip(host) is not None:
            errors.append(invalid(f"{path}.host", host, _NOT_AN_IP))
        errors += _host(host, f"{path}.host")
    if http is None:
        return errors
    paths = http.get("paths") or ()
    if not paths:
        errors.append(required(f"{path}.http.paths"))
    for index, item in enumerate(paths):
        errors += _path(item, f"{path}.http.paths[{index}]")
    return errors


def _path(item: Raw, path: str) -> Errors:
    kind, value, here = item.get("pathType"), item.get("path") or "", f"{path}.path"
    if kind is None:
        return [required(f"{path}.pathType", "pathType must be specified")]
    errors: Errors = []
    if kind not in _PATH_TYPES:
        errors.append(not_supported(f"{path}.pathType", kind, _PATH_TYPES))
    elif not value.startswith("/") and (value or kind != "ImplementationSpecific"):
        errors.append(invalid(here, value, "must be an absolute path"))
    if kind in ("Exact", "Prefix") and value:
        errors += [invalid(here, value, f"must not contain '{part}'") for part in _BAD_PARTS if part in value]
        errors += [invalid(here, value, f"cannot end with '{end}'") for end in _BAD_ENDS if value.endswith(end)]
    return errors + _backend(item.get("backend") or {}, f"{path}.backend")


def _backend(backend: Raw, path: str) -> Errors:
    resource, service = backend.get("resource"), backend.get("service")
    if resource is not None and service is not None:
        return [invalid(path, "", "cannot set both resource and service backends")]
    if resource is not None:
        return _reference(resource, f"{path}.resource")
    if service is None:
        return [invalid(path, "", "resource or service backend is required")]
    name, port = service.get("name") or "", service.get("port") or {}
    here = f"{path}.service"
    errors = at(f"{here}.name", dns_label(name), name) if name else [required(f"{here}.name")]
    word, number = port.get("name") or "", port.get("number") or 0
    if word and number:
        errors.append(invalid(path, "", "cannot set both port name & port number"))
    elif word:
        errors += at(f"{here}.port.name", port_name(word), word)
    elif number:
        errors += at(f"{here}.port.number", port_number(number), number)
    else:
        errors.append(required(path, "port name or number is required"))
    return errors


def _reference(reference: Raw, path: str) -> Errors:
    group = reference.get("apiGroup")
    errors = at(f"{path}.apiGroup", dns_subdomain(group), group) if group is not None else []
    for key in ("kind", "name"):
        value = reference.get(key) or ""
        errors += at(f"{path}.{key}", path_segment(value), value) if value else [required(f"{path}.{key}")]
    return errors


def ingress_status_update(new: Raw, old: Raw) -> Errors:
    """Check what a controller reports of its load balancers."""
    known = [item.get("ip") for item in _points(old)]
    errors: Errors = []
    for index, item in enumerate(_points(new)):
        path, ip, host = f"status.loadBalancer.ingress[{index}]", item.get("ip"), item.get("hostname")
        if ip:
            errors += service_address(ip, f"{path}.ip", known)
        if host:
            errors += at(f"{path}.hostname", dns_subdomain(host), host)
            if parse_ip(host) is not None:
                errors.append(invalid(f"{path}.hostname", host, _NOT_AN_IP))
    return errors


def _points(obj: Raw) -> list[Raw]:
    points: list[Raw] = ((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or []
    return points


def ingress_class(obj: Raw) -> Errors:
    """Check an IngressClass."""
    spec = obj.get("spec") or {}
    controller = spec.get("controller") or ""
    errors: Errors = []
    if len(controller) > _LONGEST_CONTROLLER:
        errors.append(too_long("spec.controller", _LONGEST_CONTROLLER))
    errors += domain_prefixed_path(controller, "spec.controller")
    parameters = spec.get("parameters")
    return errors + (_parameters(parameters, "spec.parameters") if parameters is not None else [])


def domain_prefixed_path(value: str, path: str) -> Errors:
    """Check a name like `acme.io/foo`."""
    if not value:
        return [required(path)]
    host, slash, rest = value.partition("/")
    if not slash or not host or not rest:
        return [invalid(path, value, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    errors = at(path, dns_subdomain(host), host)
    if not http_path(rest):
        errors.append(invalid(path, rest, regex_error("Invalid path", _HTTP_PATH)))
    return errors


def _parameters(parameters: Raw, path: str) -> Errors:
    scope, namespace, scopes = parameters.get("scope"), parameters.get("namespace"), ("Cluster", "Namespace")
    errors = _reference(parameters, path)
    if scope is None:
        return [*errors, required(f"{path}.scope")]
    if scope not in scopes:
        return [*errors, not_supported(f"{path}.scope", scope, scopes)]
    here = f"{path}.namespace"
    if scope == "Namespace" and namespace is None:
        errors.append(required(here, "`parameters.scope` is set to 'Namespace'"))
    elif scope == "Namespace":
        errors += at(here, dns_label(namespace), namespace)
    elif namespace is not None:
        errors.append(forbidden(here, "`parameters.scope` is set to 'Cluster'"))
    return errors


def ingress_class_update(new: Raw, old: Raw) -> Errors:
    """Check a changed IngressClass: its controller stays."""
    wanted, before = ((obj.get("spec") or {}).get("controller") or "" for obj in (new, old))
    return immutable(wanted, before, "spec.controller") + look_again(new, dns_subdomain) + ingress_class(new)
