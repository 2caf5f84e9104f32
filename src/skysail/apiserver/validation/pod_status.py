"""What a kubelet, a scheduler or a controller may report of a pod.

Source: pkg/apis/core/validation/validation.go ValidatePodStatusUpdate, v1.36.
"""

from collections.abc import Sequence

from skysail.api.raw import Raw
from skysail.apiserver.contract import duplicate, forbidden, invalid
from skysail.apiserver.validation.field import Errors, at, immutable
from skysail.apiserver.validation.names import dns_subdomain, ip_address, parse_ip, qualified_name
from skysail.apiserver.validation.pod_update import annotation_changes

_SYSTEM_CONDITIONS = ("PodScheduled", "Ready", "Initialized")
_NON_NEGATIVE = "must be a non-negative integer"


def pod_status_update(new: Raw, old: Raw) -> Errors:
    """Check the change of a pod's status."""
    errors = annotation_changes(new, old)
    status, before, spec = new.get("status") or {}, old.get("status") or {}, old["spec"]
    for index, condition in enumerate(status.get("conditions") or ()):
        errors += _condition(condition, f"status.conditions[{index}]")
    errors += _nominated(status.get("nominatedNodeName") or "", before, spec)
    if (status.get("observedGeneration") or 0) < 0:
        errors.append(invalid("status.observedGeneration", status["observedGeneration"], _NON_NEGATIVE))
    errors += immutable(status.get("qosClass") or "", before.get("qosClass") or "", "status.qosClass")
    for key, containers in (
        ("containerStatuses", spec.get("containers") or ()),
        ("initContainerStatuses", spec.get("initContainers") or ()),
    ):
        errors += _transitions(status.get(key) or (), before.get(key) or (), f"status.{key}", spec, containers)
    key = "ephemeralContainerStatuses"
    errors += _transitions(status.get(key) or (), before.get(key) or (), f"status.{key}", None, ())
    errors += _claims(status.get("resourceClaimStatuses") or (), spec, "status.resourceClaimStatuses")
    return errors + _pod_ips(status, before) + _host_ips(status, before)


def _condition(condition: Raw, path: str) -> Errors:
    errors: Errors = []
    if (condition.get("observedGeneration") or 0) < 0:
        errors.append(invalid(f"{path}.observedGeneration", condition["observedGeneration"], _NON_NEGATIVE))
    kind = condition.get("type") or ""
    if kind not in _SYSTEM_CONDITIONS:
        errors += at(f"{path}.Type", qualified_name(kind), kind)
    return errors


def _nominated(name: str, before: Raw, spec: Raw) -> Errors:
    path = "status.nominatedNodeName"
    if not name or name == (before.get("nominatedNodeName") or ""):
        return []
    errors = at(path, dns_subdomain(name), name)
    if spec.get("nodeName"):
        errors.append(forbidden(path, "may not be set on pods that are already bound to a node"))
    return errors


def _transitions(
    new: Sequence[Raw], old: Sequence[Raw], path: str, spec: Raw | None, containers: Sequence[Raw]
) -> Errors:
    """A container that has ended may only come back when its pod would restart it."""
    errors: Errors = []
    if spec is not None and _restarts_all(spec):
        return errors
    for index, before in enumerate(old):
        ended = (before.get("state") or {}).get("terminated")
        if ended is None:
            continue
        after = next((item for item in new if item.get("name") == before.get("name")), None)
        if after is None or (after.get("state") or {}).get("terminated") is not None:
            continue
        container = next((item for item in containers if item.get("name") == before.get("name")), None)
        if container is None or spec is None or not _restarts(container, spec, ended.get("exitCode") or 0):
            errors.append(forbidden(f"{path}[{index}].state", "may not be transitioned to non-terminated state"))
    return errors


def _restarts_all(spec: Raw) -> bool:
    return any(
        rule.get("action") == "RestartAllContainers"
        for key in ("initContainers", "containers")
        for container in spec.get(key) or ()
        for rule in container.get("restartPolicyRules") or ()
    )


def _restarts(container: Raw, spec: Raw, code: int) -> bool:
    """Whether a container that ended with `code` is started again: by a rule, its own policy, or its pod's."""
    for rule in container.get("restartPolicyRules") or ():
        codes = rule.get("exitCodes")
        if codes is not None and ((code in (codes.get("values") or ())) == (codes.get("operator") == "In")):
            return bool(rule.get("action") == "Restart")
    policy = container.get("restartPolicy") or spec.get("restartPolicy")
    return bool(policy == "Always" or (policy == "OnFailure" and code != 0))


def _claims(statuses: Sequence[Raw], spec: Raw, path: str) -> Errors:
    errors: Errors = []
    known = {claim.get("name") for claim in spec.get("resourceClaims") or ()}
    seen: set[str] = set()
    for index, item in enumerate(statuses):
        here, name = f"{path}[{index}]", item.get("name") or ""
        if name not in known:
            detail = "must match the name of an entry in `spec.resourceClaims`"
            errors.append(invalid(f"{here}.name", name, detail))
        if name in seen:
            errors.append(duplicate(f"{here}.name", name))
        seen.add(name)
        claim = item.get("resourceClaimName")
        if claim is not None:
            errors += at(f"{here}.resourceClaimName", dns_subdomain(claim), claim)
    return errors


def _pod_ips(status: Raw, before: Raw) -> Errors:
    items = status.get("podIPs") or []
    return _addresses(items, before.get("podIPs") or (), "status.podIPs")


def _host_ips(status: Raw, before: Raw) -> Errors:
    items = status.get("hostIPs") or []
    if not items:
        return []
    errors: Errors = []
    first = items[0].get("ip") or ""
    if first != (status.get("hostIP") or ""):
        errors.append(invalid("status.hostIPs[0].ip", first, "must be equal to `hostIP`"))
    return errors + _addresses(items, before.get("hostIPs") or (), "status.hostIPs")


def _addresses(items: Sequence[Raw], before: Sequence[Raw], path: str) -> Errors:
    known = {item.get("ip") for item in before}
    errors: Errors = []
    for index, item in enumerate(items):
        ip = item.get("ip") or ""
        if ip not in known:
            errors += at(f"{path}[{index}]", ip_address(ip), ip)
    if len(items) > 1:
        versions = {address.version for item in items if (address := parse_ip(item.get("ip") or "")) is not None}
        if len(items) > 2 or len(versions) != 2:
            shown = [{"IP": item.get("ip") or ""} for item in items]
            errors.append(invalid(path, shown, "may specify no more than one IP for each IP family"))
    return errors
