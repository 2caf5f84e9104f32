"""PodDisruptionBudgets.

Source: pkg/apis/policy/validation/validation.go, v1.36.
"""

from skysail.api.raw import Raw
from skysail.apiserver.contract import invalid, not_supported
from skysail.apiserver.validation.apps import at_most_all, int_or_percent
from skysail.apiserver.validation.conditions import conditions
from skysail.apiserver.validation.field import Errors, non_negative
from skysail.apiserver.validation.metadata import label_selector

_POLICIES = ("AlwaysAllow", "IfHealthyBudget")


def pod_disruption_budget(obj: Raw) -> Errors:
    """Check a PodDisruptionBudget."""
    spec = obj.get("spec") or {}
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    errors: Errors = []
    if least is not None and most is not None:
        shown = {
            "MinAvailable": least,
            "Selector": spec.get("selector"),
            "MaxUnavailable": most,
            "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
        }
        errors.append(invalid("spec", shown, "minAvailable and maxUnavailable cannot be both set"))
    for key, value in (("minAvailable", least), ("maxUnavailable", most)):
        if value is not None:
            errors += int_or_percent(value, f"spec.{key}") + at_most_all(value, f"spec.{key}")
    errors += label_selector(spec.get("selector"), "spec.selector")
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy is not None and policy not in _POLICIES:
        errors.append(not_supported("spec.unhealthyPodEvictionPolicy", policy, _POLICIES))
    return errors


def budget_status_update(new: Raw, old: Raw) -> Errors:
    """Check what the disruption controller reports."""
    status = new.get("status") or {}
    errors = conditions(status.get("conditions") or (), "status.conditions")
    for key in ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"):
        errors += non_negative(status.get(key), f"status.{key}")
    return errors
