"""ResourceQuotas.

Source: pkg/apis/core/validation/validation.go ValidateResourceQuota, v1.36.
"""

from collections.abc import Collection, Mapping

from skysail.api.raw import Raw
from skysail.apiserver.contract import invalid, required
from skysail.apiserver.validation.field import IMMUTABLE, Errors
from skysail.apiserver.validation.resources import amount, is_standard_quota_name, quota_resource_name

_POD_AMOUNTS = frozenset(
    ("pods", "cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory")
)  # fmt: skip
_CLAIM_AMOUNTS = frozenset(("persistentvolumeclaims", "requests.storage"))
_SCOPES: Mapping[str, Collection[str]] = {
    "Terminating": _POD_AMOUNTS, "NotTerminating": _POD_AMOUNTS, "BestEffort": ("pods",),
    "NotBestEffort": _POD_AMOUNTS, "PriorityClass": _POD_AMOUNTS, "CrossNamespacePodAffinity": _POD_AMOUNTS,
    "VolumeAttributesClass": _CLAIM_AMOUNTS,
}  # fmt: skip
"""The scopes there are, and which plain resources each can count."""
_EXISTS_ONLY = ("BestEffort", "NotBestEffort", "Terminating", "NotTerminating", "CrossNamespacePodAffinity")
_CONFLICTS = (("BestEffort", "NotBestEffort"), ("NotTerminating", "Terminating"))
_EXISTS_WORDS = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
    "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)


def resource_quota(obj: Raw) -> Errors:
    """Check a new ResourceQuota."""
    return _spec(obj.get("spec") or {}) + _amounts(obj.get("status") or {}, "status")


def resource_quota_update(new: Raw, old: Raw) -> Errors:
    """Check a changed ResourceQuota: its scopes stay."""
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    errors = _spec(spec)
    if set(spec.get("scopes") or ()) != set(before.get("scopes") or ()):
        errors.append(invalid("spec.scopes", spec.get("scopes"), IMMUTABLE))
    return errors


def resource_quota_status_update(new: Raw, old: Raw) -> Errors:
    """Check what the quota controller reports."""
    return _amounts(new.get("status") or {}, "status")


def _amounts(block: Raw, path: str) -> Errors:
    errors: Errors = []
    for key in ("hard", "used"):
        for name, value in (block.get(key) or {}).items():
            here = f"{path}.{key}[{name}]"
            errors += quota_resource_name(name, here) + amount(name, value, here)
    return errors


def _spec(spec: Raw) -> Errors:
    errors = _amounts({"hard": spec.get("hard")}, "spec")
    plain = sorted(name for name in spec.get("hard") or () if is_standard_quota_name(name))
    scopes = spec.get("scopes") or []
    for scope in scopes:
        if scope not in _SCOPES:
            errors.append(invalid("spec.scopes", scopes, "unsupported scope"))
        errors += [
            invalid("spec.scopes", scopes, "unsupported scope applied to resource")
            for name in plain
            if name not in _SCOPES.get(scope, plain)
        ]
    errors += _conflicts(scopes, "spec.scopes", scopes)
    selector = spec.get("scopeSelector")
    if selector is not None:
        errors += _selector(selector, plain, scopes)
    return errors


def _conflicts(named: Collection[str], path: str, scopes: list[str] | None) -> Errors:
    return [
        invalid(path, scopes or None, "conflicting scopes")
        for pair in _CONFLICTS
        if all(scope in named for scope in pair)
    ]


def _selector(selector: Raw, plain: Collection[str], scopes: list[str]) -> Errors:
    path = "spec.scopeSelector.matchExpressions"
    items = selector.get("matchExpressions") or ()
    errors: Errors = []
    for item in items:
        scope = item.get("scopeName") or ""
        if scope not in _SCOPES:
            errors.append(invalid(f"{path}.scopeName", scope, "unsupported scope"))
        shown = {"MatchExpressions": [_go_form(each) for each in items]}
        errors += [
            invalid(path, shown, "unsupported scope applied to resource")
            for name in plain
            if name not in _SCOPES.get(scope, plain)
        ]
        errors += _operator(item, scope, path)
    return errors + _conflicts([item.get("scopeName") or "" for item in items], path, scopes)


def _go_form(item: Raw) -> Raw:
    return {
        "ScopeName": item.get("scopeName") or "",
        "Operator": item.get("operator") or "",
        "Values": item.get("values") or None,
    }


def _operator(item: Raw, scope: str, path: str) -> Errors:
    operator, values = item.get("operator") or "", item.get("values") or []
    errors: Errors = []
    if scope in _EXISTS_ONLY and operator != "Exists":
        errors.append(invalid(f"{path}.operator", operator, _EXISTS_WORDS))
    match operator:
        case "In" | "NotIn":
            if not values:
                detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
                errors.append(required(f"{path}.values", detail))
        case "Exists" | "DoesNotExist":
            if values:
                detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
                errors.append(invalid(f"{path}.values", values, detail))
        case _:
            errors.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))
    return errors
