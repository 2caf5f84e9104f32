"""Services: ports, addresses, what each type may have.

Source: pkg/apis/core/validation/validation.go ValidateServiceCreate, v1.36.
"""

from collections.abc import Collection, Sequence

from skysail.api.raw import Raw
from skysail.apiserver.contract import FieldError, duplicate, forbidden, invalid, not_supported, required
from skysail.apiserver.validation.addresses import service_address, special_address
from skysail.apiserver.validation.field import IMMUTABLE, Errors, at
from skysail.apiserver.validation.metadata import labels
from skysail.apiserver.validation.names import (
    cidr,
    dns_label,
    dns_subdomain,
    parse_ip,
    port_name,
    port_number,
    qualified_name,
)  # fmt: skip
from skysail.apiserver.validation.service_updates import cluster_ips_update, families_update, load_balancer_class

PROTOCOLS = ("SCTP", "TCP", "UDP")
_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_FAMILIES, _POLICIES = ("IPv4", "IPv6"), ("PreferDualStack", "RequireDualStack", "SingleStack")
_DISTRIBUTIONS = ("PreferClose", "PreferSameZone", "PreferSameNode")
_HINTS, _MODE = "service.kubernetes.io/topology-aware-hints", "service.kubernetes.io/topology-mode"
_RANGES = "service.beta.kubernetes.io/load-balancer-source-ranges"
_ONLY_BALANCED = "may only be used when `type` is 'LoadBalancer'"
_NOT_EXTERNAL = "may not be set for ExternalName services"
_LONGEST_AFFINITY = 86400


def is_headless(spec: Raw) -> bool:
    """Whether a Service has no address of its own, on purpose."""
    return (spec.get("clusterIPs") or ()) == ["None"]


def service(obj: Raw) -> Errors:
    """Check a new Service."""
    return _service(obj, {})


def service_update(new: Raw, old: Raw) -> Errors:
    """Check a changed Service: addresses and families stay."""
    spec, before = new["spec"], old["spec"]
    errors: Errors = []
    if "ExternalName" not in (spec.get("type"), before.get("type")):
        errors += cluster_ips_update(spec, before, is_headless(spec) and is_headless(before))
        if not is_headless(spec) and not is_headless(before):
            errors += families_update(spec, before)
    errors += load_balancer_class(spec, before)
    ports = {block.get("healthCheckNodePort") or 0 for block in (spec, before) if _needs_health_check(block)}
    if len(ports) > 1:
        errors.append(forbidden("spec.healthCheckNodePort", IMMUTABLE))
    return errors + _service(new, old)


def _service(obj: Raw, old: Raw) -> Errors:
    spec, before = obj.get("spec") or {}, old.get("spec") or {}
    kind, headless = spec.get("type") or "", is_headless(spec)
    annotations = obj["metadata"].get("annotations") or {}
    errors: Errors = []
    if _MODE in annotations and annotations.get(_HINTS, annotations[_MODE]) != annotations[_MODE]:
        detail = f"must match annotations[{_HINTS}] when both are specified"
        errors.append(invalid(f"metadata.annotations[{_MODE}]", annotations[_MODE], detail))
    if not spec.get("ports") and not headless and kind != "ExternalName":
        errors.append(required("spec.ports"))
    if headless and kind in ("LoadBalancer", "NodePort"):
        errors.append(invalid("spec.clusterIPs[0]", "None", f"may not be set to 'None' for {kind} services"))
    if kind == "ExternalName":
        errors += _external_name(spec)
    errors += _ports(spec)
    errors += labels(spec.get("selector") or {}, "spec.selector")
    errors += _affinity(spec)
    errors += related_fields(spec, before.get("clusterIPs") or ())
    errors += _external_ips(spec, before.get("externalIPs") or ())
    if kind not in _TYPES:
        errors.append(not_supported("spec.type", kind, _TYPES) if kind else required("spec.type"))
    errors += _port_conflicts(spec, kind)
    errors += _source_ranges(spec, annotations, before, kind)
    errors += _balancer_only(spec, kind)
    return errors + _traffic(spec, kind)


def _external_name(spec: Raw) -> Errors:
    errors = [
        forbidden(f"spec.{key}", _NOT_EXTERNAL)
        for key in ("clusterIPs", "ipFamilies", "ipFamilyPolicy")
        if spec.get(key) is not None and spec[key] != []
    ]
    name = (spec.get("externalName") or "").removesuffix(".")
    if not name:
        return [*errors, required("spec.externalName")]
    return errors + at("spec.externalName", dns_subdomain(name), name)


def _ports(spec: Raw) -> Errors:
    ports = spec.get("ports") or ()
    errors: Errors = []
    names: set[str] = set()
    for index, port in enumerate(ports):
        path, name = f"spec.ports[{index}]", port.get("name") or ""
        if len(ports) > 1 and not name:
            errors.append(required(f"{path}.name"))
        elif name:
            errors += at(f"{path}.name", dns_label(name), name)
            if name in names:
                errors.append(duplicate(f"{path}.name", name))
            names.add(name)
        errors += at(f"{path}.port", port_number(port.get("port") or 0), port.get("port") or 0)
        errors += protocol(port, f"{path}.protocol")
        errors += _port_or_name(port.get("targetPort", 0), f"{path}.targetPort")
        if port.get("appProtocol") is not None:
            errors += at(f"{path}.appProtocol", qualified_name(port["appProtocol"]), port["appProtocol"])
    return errors


def protocol(port: Raw, path: str) -> Errors:
    """Check the protocol of a port."""
    value = port.get("protocol") or ""
    if not value:
        return [required(path)]
    return [] if value in PROTOCOLS else [not_supported(path, value, PROTOCOLS)]


def _port_or_name(value: object, path: str) -> Errors:
    return at(path, port_name(value) if isinstance(value, str) else port_number(int(str(value))), value)


def _affinity(spec: Raw) -> Errors:
    kind, config = spec.get("sessionAffinity") or "", spec.get("sessionAffinityConfig")
    path = "spec.sessionAffinityConfig"
    match kind:
        case "":
            return [required("spec.sessionAffinity")]
        case "None":
            detail = "must not be set when session affinity is None"
            return [forbidden(path, detail)] if config is not None else []
        case "ClientIP":
            return _client_ip(config, path)
    return [not_supported("spec.sessionAffinity", kind, ("ClientIP", "None"))]


def _client_ip(config: Raw | None, path: str) -> Errors:
    detail = "when session affinity type is ClientIP"
    if config is None:
        return [required(path, detail)]
    if config.get("clientIP") is None:
        return [required(f"{path}.clientIP", detail)]
    timeout = config["clientIP"].get("timeoutSeconds")
    here = f"{path}.clientIP.timeoutSeconds"
    if timeout is None:
        return [required(here, detail)]
    if not 0 < timeout <= _LONGEST_AFFINITY:
        return [invalid(here, timeout, f"must be greater than 0 and less than {_LONGEST_AFFINITY}")]
    return []


def related_fields(spec: Raw, known: Collection[str]) -> Errors:
    """Check cluster addresses, families and the policy about them against one another."""
    if spec.get("type") == "ExternalName":
        return []
    ip, ips, families = spec.get("clusterIP") or "", spec.get("clusterIPs") or [], spec.get("ipFamilies") or ()
    path = "spec.clusterIPs"
    errors: Errors = []
    if ip and not ips:
        errors.append(required(path))
    elif ip and ips[0] != ip:
        errors.append(invalid(path, ips, "first value must match `clusterIP`"))
    elif ips and not ip:
        errors.append(invalid(path, ips, "must be empty when `clusterIP` is not specified"))
    for index, family in enumerate(families):
        if family not in _FAMILIES:
            errors.append(not_supported(f"spec.ipFamilies[{index}]", family, _FAMILIES))
        if family in families[:index]:
            errors.append(duplicate(f"spec.ipFamilies[{index}]", family))
    policy = spec.get("ipFamilyPolicy")
    if policy is not None and policy not in _POLICIES:
        errors.append(not_supported("spec.ipFamilyPolicy", policy, _POLICIES))
    faults: Errors = []
    for index, address in enumerate(ips):
        if index == 0 and address == "None":
            if len(ips) > 1:
                faults.append(invalid(path, ips, "'None' must be the first and only value"))
            continue
        faults += service_address(address, f"{path}[{index}]", known)
    errors += faults
    if len(ips) > 2:
        errors.append(invalid(path, ips, "may only hold up to 2 values"))
    return errors if faults else errors + _two_families(ips, families, path)


def _two_families(ips: Sequence[str], families: Sequence[str], path: str) -> Errors:
    errors: Errors = []
    if len(ips) > 1 and len({":" in ip for ip in ips}) == 1:
        errors.append(invalid(path, ips, "may specify no more than one IP for each IP family"))
    if list(ips) != ["None"]:
        for index, (ip, family) in enumerate(zip(ips, families, strict=False)):
            if family in _FAMILIES and (family == "IPv6") != (":" in ip):
                detail = f"expected an {family} value as indicated by `ipFamilies[{index}]`"
                errors.append(invalid(f"{path}[{index}]", ip, detail))
    return errors


def _external_ips(spec: Raw, known: Collection[str]) -> Errors:
    errors: Errors = []
    for index, ip in enumerate(spec.get("externalIPs") or ()):
        path = f"spec.externalIPs[{index}]"
        errors += service_address(ip, path, known) or special_address(ip, path)
    return errors


def _port_conflicts(spec: Raw, kind: str) -> Errors:
    ports = spec.get("ports") or ()
    errors: Errors = []
    if kind == "ClusterIP":
        errors += [
            forbidden(f"spec.ports[{index}].nodePort", "may not be used when `type` is 'ClusterIP'")
            for index, port in enumerate(ports)
            if port.get("nodePort")
        ]
    seen: set[tuple[str, object, object]] = set()
    for index, port in enumerate(ports):
        key = ("nodePort", port.get("protocol"), port.get("nodePort"))
        if port.get("nodePort") and key in seen:
            errors.append(duplicate(f"spec.ports[{index}].nodePort", port["nodePort"]))
        seen.add(key)
    for index, port in enumerate(ports):
        key = ("port", port.get("protocol"), port.get("port"))
        if key in seen:
            shown = {
                "Name": "", "Protocol": port.get("protocol") or "", "AppProtocol": None,
                "Port": port.get("port") or 0, "TargetPort": 0, "NodePort": 0,
            }  # fmt: skip
            errors.append(FieldError(f"spec.ports[{index}]", "Duplicate", shown))
        seen.add(key)
    return errors


def _source_ranges(spec: Raw, annotations: Raw, before: Raw, kind: str) -> Errors:
    ranges = spec.get("loadBalancerSourceRanges") or ()
    path, values = "spec.LoadBalancerSourceRanges", [value.strip() for value in ranges]
    if not ranges:
        if _RANGES not in annotations:
            return []
        path = f"metadata.annotations[{_RANGES}]"
        values = [value.strip() for value in annotations[_RANGES].split(",") if annotations[_RANGES].strip()]
    errors = [] if kind == "LoadBalancer" else [forbidden(path, _ONLY_BALANCED)]
    known = [value.strip() for value in before.get("loadBalancerSourceRanges") or ()]
    for index, value in enumerate(values):
        if value not in known:
            errors += at(f"{path}[{index}]" if ranges else path, cidr(value), value)
    return errors


def _balancer_only(spec: Raw, kind: str) -> Errors:
    allocates = spec.get("allocateLoadBalancerNodePorts")
    errors: Errors = []
    if allocates is not None and kind != "LoadBalancer":
        errors.append(forbidden("spec.allocateLoadBalancerNodePorts", _ONLY_BALANCED))
    if allocates is None and kind == "LoadBalancer":
        errors.append(required("allocateLoadBalancerNodePorts"))
    return errors + load_balancer_class(spec, None)


def _needs_health_check(spec: Raw) -> bool:
    return bool(spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local")


def _traffic(spec: Raw, kind: str) -> Errors:
    errors: Errors = []
    external, policies = spec.get("externalTrafficPolicy") or "", ("Cluster", "Local")
    accessible = kind in ("LoadBalancer", "NodePort") or (kind == "ClusterIP" and spec.get("externalIPs"))
    path = "spec.externalTrafficPolicy"
    if not accessible and external:
        errors.append(invalid(path, external, "may only be set for externally-accessible services"))
    elif accessible and external not in policies:
        errors.append(not_supported(path, external, policies) if external else required(path))
    errors += _health_check(spec)
    internal = spec.get("internalTrafficPolicy")
    if internal is None and kind in ("NodePort", "LoadBalancer", "ClusterIP"):
        errors.append(required("spec.internalTrafficPolicy"))
    elif internal is not None and internal not in policies:
        errors.append(not_supported("spec.internalTrafficPolicy", internal, policies))
    distribution = spec.get("trafficDistribution")
    if distribution is not None and distribution not in _DISTRIBUTIONS:
        errors.append(not_supported("spec.trafficDistribution", distribution, _DISTRIBUTIONS))
    return errors


def _health_check(spec: Raw) -> Errors:
    port, path = spec.get("healthCheckNodePort") or 0, "spec.healthCheckNodePort"
    if not _needs_health_check(spec):
        detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        return [invalid(path, port, detail)] if port else []
    return at(path, port_number(port), port) if port else [required(path)]


def service_status_update(new: Raw, old: Raw) -> Errors:
    """Check what a cloud reports of a load balancer."""
    balancer = (new.get("status") or {}).get("loadBalancer") or {}
    known = [item.get("ip") for item in ((old.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()]
    ingress, path = balancer.get("ingress") or (), "status.loadBalancer.ingress"
    if ingress and (new.get("spec") or {}).get("type") != "LoadBalancer":
        return [forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'")]
    return ingress_points(ingress, path, known)


def ingress_points(items: Sequence[Raw], path: str, known: Collection[str | None] = ()) -> Errors:
    """Check the addresses and names of a load balancer."""
    errors: Errors = []
    for index, item in enumerate(items):
        here, ip, host, mode = f"{path}[{index}]", item.get("ip"), item.get("hostname"), item.get("ipMode")
        if ip:
            errors += service_address(ip, f"{here}.ip", known)
        if mode is None and ip:
            errors.append(required(f"{here}.ipMode", "must be specified when `ip` is set"))
        elif mode is not None and not ip:
            errors.append(forbidden(f"{here}.ipMode", "may not be specified when `ip` is not set"))
        elif mode is not None and mode not in ("Proxy", "VIP"):
            errors.append(not_supported(f"{here}.ipMode", mode, ("Proxy", "VIP")))
        if host:
            errors += at(f"{here}.hostname", dns_subdomain(host), host)
            if parse_ip(host) is not None:
                errors.append(invalid(f"{here}.hostname", host, "must be a DNS name, not an IP address"))
    return errors
