"""PriorityClasses.

Source: pkg/apis/scheduling/validation/validation.go, pkg/apis/scheduling/v1/helpers.go, v1.36.
"""

from collections.abc import Mapping

from skysail.api.raw import Raw
from skysail.apiserver.contract import forbidden, not_supported
from skysail.apiserver.validation.field import Errors, immutable

HIGHEST_USER_PRIORITY = 1_000_000_000
SYSTEM_CLASSES: Mapping[str, int] = {
    "system-node-critical": 2 * HIGHEST_USER_PRIORITY + 1000,
    "system-cluster-critical": 2 * HIGHEST_USER_PRIORITY,
}
_PREFIX = "system-"
_POLICIES = ("PreemptLowerPriority", "Never")


def priority_class(obj: Raw) -> Errors:
    """Check a new PriorityClass."""
    name, value = obj["metadata"].get("name") or "", obj.get("value") or 0
    errors: Errors = []
    if name.startswith(_PREFIX):
        fault = _system_fault(name, value, bool(obj.get("globalDefault")))
        if fault:
            detail = f"priority class names with '{_PREFIX}' prefix are reserved for system use only. error: {fault}"
            errors.append(forbidden("metadata.name", detail))
    elif value > HIGHEST_USER_PRIORITY:
        detail = f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"
        errors.append(forbidden("value", detail))
    policy = obj.get("preemptionPolicy")
    if policy is not None and policy not in _POLICIES:
        errors.append(not_supported("preemptionPolicy", policy, _POLICIES))
    return errors


def _system_fault(name: str, value: int, is_default: bool) -> str:
    if name not in SYSTEM_CLASSES:
        return f"{name} is not a known system priority class"
    if value != SYSTEM_CLASSES[name]:
        return f"value of {name} PriorityClass must be {SYSTEM_CLASSES[name]}"
    return f"globalDefault of {name} PriorityClass must be false" if is_default else ""


def priority_class_update(new: Raw, old: Raw) -> Errors:
    """Check that what decides about pods stays."""
    errors: Errors = []
    if (new.get("value") or 0) != (old.get("value") or 0):
        errors.append(forbidden("value", "may not be changed in an update."))
    return errors + immutable(new.get("preemptionPolicy"), old.get("preemptionPolicy"), "preemptionPolicy")
