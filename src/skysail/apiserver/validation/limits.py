"""LimitRanges.

Source: pkg/apis/core/validation/validation.go ValidateLimitRange, v1.36.
"""

from collections.abc import Mapping

from skysail.api.quantity import Quantity, parse_quantity
from skysail.api.raw import Raw
from skysail.apiserver.contract import duplicate, forbidden, invalid, required
from skysail.apiserver.validation.field import Errors, at
from skysail.apiserver.validation.metadata import look_again
from skysail.apiserver.validation.names import dns_subdomain, qualified_name
from skysail.apiserver.validation.resources import container_resource_name, may_overcommit, resource_name

_TYPES = ("Pod", "Container", "PersistentVolumeClaim")
_NOT_FOR_PODS = "may not be specified when `type` is 'Pod'"
_SIDES = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
_BELOW: tuple[tuple[str, str, str, bool, str], ...] = (
    ("min", "max", "min", False, "min value {} is greater than max value {}"),
    ("min", "defaultRequest", "defaultRequest", True, "min value {} is greater than default request value {}"),
    ("defaultRequest", "max", "defaultRequest", False, "default request value {} is greater than max value {}"),
    (
        "defaultRequest", "default", "defaultRequest", False,
        "default request value {} is greater than default limit value {}",
    ),
    ("min", "default", "default", False, "min value {} is greater than default value {}"),
    ("default", "max", "default", True, "default value {} is greater than max value {}"),
)  # fmt: skip
"""Which side may not exceed which, where that is reported, whether the greater one is shown, and the words."""


def limit_range(obj: Raw) -> Errors:
    """Check a LimitRange."""
    errors: Errors = []
    seen: set[str] = set()
    for index, limit in enumerate((obj.get("spec") or {}).get("limits") or ()):
        path, kind = f"spec.limits[{index}]", limit.get("type") or ""
        errors += _type(kind, f"{path}.type")
        if kind in seen:
            errors.append(duplicate(f"{path}.type", kind))
        seen.add(kind)
        errors += _limit(limit, kind, path)
    return errors


def limit_range_update(new: Raw, old: Raw) -> Errors:
    """Check a changed LimitRange."""
    return look_again(new, dns_subdomain) + limit_range(new)


def _type(kind: str, path: str) -> Errors:
    errors = at(path, qualified_name(kind), kind)
    if not errors and "/" not in kind and kind not in _TYPES:
        errors.append(invalid(path, kind, "must be a standard limit type or fully qualified"))
    return errors


def _limit(limit: Raw, kind: str, path: str) -> Errors:
    check = container_resource_name if kind in ("Pod", "Container") else resource_name
    errors: Errors = []
    amounts: dict[str, dict[str, Quantity]] = {}
    for side in _SIDES:
        values: Mapping[str, object] = limit.get(side) or {}
        if kind == "Pod" and side in ("default", "defaultRequest"):
            if values:
                errors.append(forbidden(f"{path}.{side}", _NOT_FOR_PODS))
            continue
        if side == "maxLimitRequestRatio" and kind == "PersistentVolumeClaim":
            errors += _storage_bounds(limit, path)
        for name in values:
            errors += check(name, f"{path}.{side}[{name}]")
        amounts[side] = {name: parse_quantity(str(value)) for name, value in values.items()}
    for name in sorted({name for side in amounts.values() for name in side}):
        errors += _compare(name, {side: values[name] for side, values in amounts.items() if name in values}, path)
    return errors


def _storage_bounds(limit: Raw, path: str) -> Errors:
    if any("storage" in (limit.get(side) or {}) for side in ("min", "max")):
        return []
    detail = "either minimum or maximum storage value is required, but neither was provided"
    return [required(f"{path}.limits", detail)]


def _compare(name: str, amounts: Mapping[str, Quantity], path: str) -> Errors:
    errors: Errors = []
    for low, high, place, shows_high, words in _BELOW:
        if low in amounts and high in amounts and amounts[low].nano > amounts[high].nano:
            shown = amounts[high] if shows_high else amounts[low]
            detail = words.format(amounts[low], amounts[high])
            errors.append(invalid(f"{path}.{place}[{name}]", str(shown), detail))
    errors += _ratio(name, amounts, path)
    default, request = amounts.get("default"), amounts.get("defaultRequest")
    if not may_overcommit(name) and default and request and default.nano != request.nano:
        detail = f"default value {default} must equal to defaultRequest value {request} in {name}"
        errors.append(invalid(f"{path}.defaultRequest[{name}]", str(request), detail))
    return errors


def _ratio(name: str, amounts: Mapping[str, Quantity], path: str) -> Errors:
    ratio, low, high = amounts.get("maxLimitRequestRatio"), amounts.get("min"), amounts.get("max")
    if ratio is None:
        return []
    here = f"{path}.maxLimitRequestRatio[{name}]"
    errors: Errors = []
    if ratio.nano < 10**9:
        errors.append(invalid(here, str(ratio), f"ratio {ratio} is less than 1"))
    if low is not None and high is not None:
        most = high.nano / low.nano if low.nano else float("inf")
        if ratio.nano / 10**9 > most:
            errors.append(invalid(here, str(ratio), f"ratio {ratio} is greater than max/min = {most:f}"))
    return errors
