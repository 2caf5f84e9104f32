"""Amounts of resources: names, signs, whole numbers, requests against limits.

Source: pkg/apis/core/validation/validation.go validateResourceRequirements, pkg/apis/core/helper, v1.36.
"""

from collections.abc import Callable, Collection
from functools import lru_cache

from skysail.api.quantity import Quantity, parse_quantity
from skysail.api.raw import Raw
from skysail.apiserver.contract import FieldError, duplicate, forbidden, invalid, not_supported, required
from skysail.apiserver.validation.amounts import aggregate
from skysail.apiserver.validation.field import NEGATIVE, Errors, at
from skysail.apiserver.validation.names import dns_label, qualified_name

_CONTAINER = frozenset({"cpu", "memory", "ephemeral-storage"})
_INTEGER = frozenset(
    {
        "pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps",
        "persistentvolumeclaims", "services.nodeports", "services.loadbalancers",
    }
)  # fmt: skip
_STANDARD = _CONTAINER | _INTEGER | {
    "storage", "requests.cpu", "requests.memory", "requests.ephemeral-storage", "requests.storage", "limits.cpu",
    "limits.memory", "limits.ephemeral-storage",
}  # fmt: skip
_STANDARD_QUOTA = _STANDARD - {"storage"}
_POD_LEVEL = ("cpu", "hugepages-", "memory")
_HUGE = "hugepages-"
_QUOTA_HUGE = "requests.hugepages-"
NameCheck = Callable[[str, str], Errors]


def is_native(name: str) -> bool:
    """Whether a resource is Kubernetes' own."""
    return "/" not in name or "kubernetes.io/" in name


def is_extended(name: str) -> bool:
    """Whether a resource is somebody's own, as `example.com/gpu`."""
    return not is_native(name) and not name.startswith("requests.") and not qualified_name(f"requests.{name}")


def may_overcommit(name: str) -> bool:
    """Whether requests may differ from limits."""
    return is_native(name) and not name.startswith(_HUGE)


def is_whole(name: str) -> bool:
    """Whether only whole numbers make sense."""
    return name in _INTEGER or is_extended(name)


def is_standard_quota_name(name: str) -> bool:
    """Whether a plain name may stand in a quota."""
    return name in _STANDARD_QUOTA or name.startswith((_HUGE, _QUOTA_HUGE))


def resource_name(name: str, path: str) -> Errors:
    """Check the name of any resource."""
    errors = at(path, qualified_name(name), name)
    if not errors and "/" not in name and name not in _STANDARD and not name.startswith((_HUGE, _QUOTA_HUGE)):
        errors.append(invalid(path, name, "must be a standard resource type or fully qualified"))
    return errors


def container_resource_name(name: str, path: str) -> Errors:
    """Check the name of a resource that a container asks for."""
    if name in _CONTAINER:
        return []
    errors = resource_name(name, path)
    if "/" not in name:
        if not name.startswith(_HUGE):
            errors.append(invalid(path, name, "must be a standard resource for containers"))
    elif not is_native(name) and not is_extended(name):
        errors.append(invalid(path, name, "doesn't follow extended resource name standard"))
    return errors


def pod_resource_name(name: str, path: str) -> Errors:
    """Check the name of a resource at the pod's own level."""
    errors = resource_name(name, path)
    if not errors and name not in ("cpu", "memory") and not name.startswith(_HUGE):
        errors.append(not_supported(path, name, _POD_LEVEL))
    return errors


def quota_resource_name(name: str, path: str) -> Errors:
    """Check a name in a ResourceQuota."""
    errors = resource_name(name, path)
    if "/" not in name and not is_standard_quota_name(name):
        errors.append(invalid(path, name, "must be a standard resource for quota"))
    return errors


def amount(name: str, value: object, path: str) -> Errors:
    """Check one amount of a resource: not negative, whole where only whole ones exist."""
    shown, faults = _amount_faults(name, str(value))
    return [invalid(path, shown, fault) for fault in faults]


@lru_cache(maxsize=4096)
def _amount_faults(name: str, value: str) -> tuple[str, tuple[str, ...]]:
    """The amount in its canonical form, and what is wrong with it; the same few pass by again and again."""
    quantity = parse_quantity(value)
    faults = [NEGATIVE] if quantity.nano < 0 else []
    if quantity.milli_value() % 1000 and is_whole(name):
        faults.append("must be an integer")
    return str(quantity), tuple(faults)


def non_negative_amount(value: object, path: str) -> Errors:
    """An amount may not be below zero."""
    quantity = parse_quantity(str(value))
    return [invalid(path, str(quantity), NEGATIVE)] if quantity.nano < 0 else []


def requirements(
    block: Raw, path: str, *, name_check: NameCheck = container_resource_name, claims: Collection[str] = ()
) -> Errors:
    """Check a `resources` block.

    Args:
        block: limits, requests, claims.
        path: Where it stands.
        name_check: Which resources may be named.
        claims: Names of the pod's resource claims.
    """
    errors: Errors = []
    limits, requests = block.get("limits") or {}, block.get("requests") or {}
    for name, value in limits.items():
        here = f"{path}.limits[{name}]"
        errors += name_check(name, here) + amount(name, value, here) + _huge_page(name, value, here)
    for name, value in requests.items():
        here = f"{path}.requests[{name}]"
        errors += name_check(name, here) + amount(name, value, here)
        errors += _against_limit(name, value, limits, path) + _huge_page(name, value, here)
    names = limits.keys() | requests.keys()
    if any(name.startswith(_HUGE) for name in names) and not names & {"cpu", "memory"}:
        errors.append(forbidden(path, "HugePages require cpu or memory"))
    if block.get("claims"):
        errors += _claims(block["claims"], claims, f"{path}.claims")
    return errors


def _against_limit(name: str, value: object, limits: Raw, path: str) -> Errors:
    if name not in limits:
        if may_overcommit(name):
            return []
        return [required(f"{path}.limits", "Limit must be set for non overcommitable resources")]
    request, limit = parse_quantity(str(value)), parse_quantity(str(limits[name]))
    if request.nano != limit.nano and not may_overcommit(name):
        return [invalid(f"{path}.requests", str(request), f"must be equal to {name} limit of {limit}")]
    if request.nano > limit.nano:
        return [invalid(f"{path}.requests", str(request), f"must be less than or equal to {name} limit of {limit}")]
    return []


def _huge_page(name: str, value: object, path: str) -> Errors:
    if not name.startswith(_HUGE):
        return []
    quantity = parse_quantity(str(value))
    try:
        page = parse_quantity(name.removeprefix(_HUGE))
    except ValueError:
        page = Quantity(0)
    if page.nano > 0 and quantity.value() % page.value() == 0:
        return []
    return [invalid(path, str(quantity), f"{quantity} is not positive integer multiple of {name}")]


def _claims(claims: list[Raw], known: Collection[str], path: str) -> Errors:
    errors: Errors = []
    names: list[str] = []
    for index, claim in enumerate(claims):
        here, name, request = f"{path}[{index}]", claim.get("name") or "", claim.get("request") or ""
        if not name:
            errors.append(required(here))
            continue
        key = f"{name}/{request}" if request else name
        if name in names:
            errors.append(duplicate(here, name))
        else:
            if request:
                errors += at(f"{here}.request", dns_label(request), request)
            if key in names:
                errors.append(duplicate(here, key))
            elif not request:
                errors += [duplicate(here, name) for other in names if other.partition("/")[0] == name]
            names.append(key)
        if name not in known:
            detail = "must be one of the names in pod.spec.resourceClaims"
            detail += f": {', '.join(sorted(known))}" if known else " which is empty"
            errors.append(FieldError(here, "NotFound", name, detail))
    return errors


def consistent_with_containers(spec: Raw, path: str) -> Errors:
    """Amounts at the pod's own level must have room for those of its containers."""
    errors: Errors = []
    block = spec["resources"]
    requests, limits = block.get("requests") or {}, block.get("limits") or {}
    for name, total in aggregate(spec, "requests").items():
        if name in requests and total.nano > parse_quantity(str(requests[name])).nano:
            detail = f"must be greater than or equal to aggregate container requests of {total}"
            errors.append(invalid(f"{path}.requests[{name}]", str(requests[name]), detail))
    for name, total in aggregate(spec, "limits").items():
        if name.startswith(_HUGE) and name in limits and total.nano > parse_quantity(str(limits[name])).nano:
            detail = f"must be greater than or equal to aggregate container limits of {total}"
            errors.append(invalid(f"{path}.limits[{name}]", str(limits[name]), detail))
    for index, container in enumerate(spec.get("containers") or ()):
        for name, value in ((container.get("resources") or {}).get("limits") or {}).items():
            if name in limits and parse_quantity(str(value)).nano > parse_quantity(str(limits[name])).nano:
                detail = f"must be less than or equal to pod limits of {limits[name]}"
                errors.append(invalid(f"{path}.containers[{index}][{name}].limits", str(value), detail))
    return errors
