"""HorizontalPodAutoscalers, in the form of autoscaling/v2.

Source: pkg/apis/autoscaling/validation/validation.go, v1.36.
"""

from skysail.api.quantity import parse_quantity
from skysail.api.raw import Raw
from skysail.apiserver.contract import forbidden, invalid, not_supported, required
from skysail.apiserver.validation.field import Errors, at, non_negative
from skysail.apiserver.validation.names import dns_label, path_segment
from skysail.apiserver.validation.resources import container_resource_name, non_negative_amount

_TYPES = ("ContainerResource", "External", "Object", "Pods", "Resource")
_FIELDS = ("object", "external", "pods", "resource", "containerResource")
_SELECT = ("Disabled", "Max", "Min")
_LONGEST_PERIOD, _LONGEST_WINDOW = 1800, 3600
_ONLY_ONE = "must populate the given metric source only"


def autoscaler(obj: Raw) -> Errors:
    """Check a new HorizontalPodAutoscaler."""
    spec = obj.get("spec") or {}
    return _autoscaler(spec, _group_fault(spec))


def autoscaler_update(new: Raw, old: Raw) -> Errors:
    """Check a changed one; the group of a target that stayed is taken as it is."""
    spec = new.get("spec") or {}
    targets = [(block.get("spec") or {}).get("scaleTargetRef") or {} for block in (new, old)]
    stayed = all(targets[0].get(key) == targets[1].get(key) for key in ("apiVersion", "kind"))
    return _autoscaler(spec, [] if stayed else _group_fault(spec))


def _group_fault(spec: Raw) -> Errors:
    target = spec.get("scaleTargetRef") or {}
    empty_group = target.get("kind") == "ReplicationController"
    return _version(target.get("apiVersion") or "", "spec.scaleTargetRef.apiVersion", empty_group=empty_group)


def _autoscaler(spec: Raw, group_fault: Errors) -> Errors:
    least, most = spec.get("minReplicas"), spec.get("maxReplicas") or 0
    errors: Errors = []
    if least is not None and least < 1:
        errors.append(invalid("spec.minReplicas", least, "must be greater than or equal to 1"))
    if most == 0:
        errors.append(required("spec.maxReplicas", "must be set and greater than 0"))
    elif most < 0:
        errors.append(invalid("spec.maxReplicas", most, "must be greater than or equal to 1"))
    if least is not None and most < least:
        errors.append(invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`"))
    errors += _reference(spec.get("scaleTargetRef") or {}, "spec.scaleTargetRef") + group_fault
    metrics = spec.get("metrics") or ()
    for index, metric in enumerate(metrics):
        errors += _metric(metric, f"spec.metrics[{index}]")
    if least == 0 and not any(metric.get("type") in ("Object", "External") for metric in metrics):
        detail = "must specify at least one Object or External metric to support scaling to zero replicas"
        errors.append(forbidden("spec.metrics", detail))
    for key in ("scaleUp", "scaleDown"):
        rules = (spec.get("behavior") or {}).get(key)
        if rules is not None:
            errors += _scaling_rules(rules, f"spec.behavior.{key}")
    return errors


def _reference(reference: Raw, path: str) -> Errors:
    errors: Errors = []
    for key in ("kind", "name"):
        value = reference.get(key) or ""
        errors += at(f"{path}.{key}", path_segment(value), value) if value else [required(f"{path}.{key}")]
    return errors


def _version(version: str, path: str, *, empty_group: bool) -> Errors:
    if version.count("/") > 1:
        return [invalid(path, version, f"unexpected GroupVersion string: {version}")]
    if "/" not in version and not empty_group:
        return [invalid(path, version, "apiVersion must specify API group")]
    return []


def _metric(metric: Raw, path: str) -> Errors:
    kind = metric.get("type") or ""
    errors = [] if kind else [required(f"{path}.type", "must specify a metric source type")]
    if kind not in _TYPES:
        errors.append(not_supported(f"{path}.type", kind, _TYPES))
    present = [key for key in _FIELDS if metric.get(key) is not None]
    if present:
        errors += _source(present[0], metric[present[0]], f"{path}.{present[0]}")
    expected = kind[:1].lower() + kind[1:] if kind in _TYPES else ""
    if expected and expected not in present:
        errors.append(required(f"{path}.{expected}", "must populate information for the given metric source"))
    elif not expected:
        errors.append(not_supported(f"{path}.type", kind, _TYPES))
    if len(present) != 1:
        errors += [forbidden(f"{path}.{key}", _ONLY_ONE) for key in sorted(present) if key != expected]
    return errors


def _source(key: str, source: Raw, path: str) -> Errors:
    target = source.get("target") or {}
    value, average, share = (target.get(part) for part in ("value", "averageValue", "averageUtilization"))
    here = f"{path}.target"
    errors: Errors = []
    if key in ("object", "external", "pods"):
        if key == "object":
            about = source.get("describedObject") or {}
            errors += _reference(about, f"{path}.describedObject")
            errors += _version(about.get("apiVersion") or "", f"{path}.describedObject.apiVersion", empty_group=True)
        errors += _identifier(source.get("metric") or {}, f"{path}.metric") + _target(target, here)
    else:
        errors += _resource(key, source, path) + _target(target, here)
    match key:
        case "object" if value is None and average is None:
            errors.append(required(f"{here}.averageValue", "must set either a target value or averageValue"))
        case "external" if value is None and average is None:
            detail = "must set either a target value for metric or a per-pod target"
            errors.append(required(f"{here}.averageValue", detail))
        case "external" if value is not None and average is not None:
            detail = "may not set both a target value for metric and a per-pod target"
            errors.append(forbidden(f"{here}.value", detail))
        case "pods" if average is None:
            errors.append(required(f"{here}.averageValue", "must specify a positive target averageValue"))
        case "resource" | "containerResource" if share is None and average is None:
            detail = "must set either a target raw value or a target utilization"
            errors.append(required(f"{here}.averageUtilization", detail))
        case "resource" | "containerResource" if share is not None and average is not None:
            detail = "may not set both a target raw value and a target utilization"
            errors.append(forbidden(f"{here}.averageValue", detail))
    return errors


def _resource(key: str, source: Raw, path: str) -> Errors:
    name, container = source.get("name") or "", source.get("container") or ""
    errors = [] if name else [required(f"{path}.name", "must specify a resource name")]
    if key == "containerResource":
        if name:
            errors += container_resource_name(name, f"{path}.name")
        here = f"{path}.container"
        errors += at(here, dns_label(container), container) if container else [
            required(here, "must specify a container")
        ]  # fmt: skip
    return errors


def _identifier(metric: Raw, path: str) -> Errors:
    name = metric.get("name") or ""
    if not name:
        return [required(f"{path}.name", "must specify a metric name")]
    return at(f"{path}.name", path_segment(name), name)


def _target(target: Raw, path: str) -> Errors:
    kind = target.get("type") or ""
    errors = [] if kind else [required(f"{path}.type", "must specify a metric target type")]
    if kind not in ("Utilization", "Value", "AverageValue"):
        errors.append(invalid(f"{path}.type", kind, "must be either Utilization, Value, or AverageValue"))
    for key in ("value", "averageValue"):
        amount = target.get(key)
        if amount is not None and parse_quantity(str(amount)).nano <= 0:
            errors.append(invalid(f"{path}.{key}", str(parse_quantity(str(amount))), "must be positive"))
    share = target.get("averageUtilization")
    if share is not None and share < 1:
        errors.append(invalid(f"{path}.averageUtilization", share, "must be greater than 0"))
    return errors


def _scaling_rules(rules: Raw, path: str) -> Errors:
    window, choice, policies = (rules.get(k) for k in ("stabilizationWindowSeconds", "selectPolicy", "policies"))
    here = f"{path}.stabilizationWindowSeconds"
    errors: Errors = []
    if window is not None and window < 0:
        errors.append(invalid(here, window, "must be greater than or equal to zero"))
    if window is not None and window > _LONGEST_WINDOW:
        errors.append(invalid(here, window, f"must be less than or equal to {_LONGEST_WINDOW}"))
    if choice is not None and choice not in _SELECT:
        errors.append(not_supported(f"{path}.selectPolicy", choice, _SELECT))
    if not policies:
        errors.append(required(f"{path}.policies", "must specify at least one Policy"))
    for index, policy in enumerate(policies or ()):
        errors += _scaling_policy(policy, f"{path}.policies[{index}]")
    tolerance = rules.get("tolerance")
    return errors + (non_negative_amount(tolerance, f"{path}.tolerance") if tolerance is not None else [])


def _scaling_policy(policy: Raw, path: str) -> Errors:
    kind, value, period = policy.get("type") or "", policy.get("value") or 0, policy.get("periodSeconds") or 0
    errors = [] if kind in ("Pods", "Percent") else [not_supported(f"{path}.type", kind, ("Percent", "Pods"))]
    if value <= 0:
        errors.append(invalid(f"{path}.value", value, "must be greater than zero"))
    if period <= 0:
        errors.append(invalid(f"{path}.periodSeconds", period, "must be greater than zero"))
    if period > _LONGEST_PERIOD:
        detail = f"must be less than or equal to {_LONGEST_PERIOD}"
        errors.append(invalid(f"{path}.periodSeconds", period, detail))
    return errors


def autoscaler_status_update(new: Raw, old: Raw) -> Errors:
    """Check what the autoscaler reports."""
    status = new.get("status") or {}
    errors = non_negative(status.get("currentReplicas"), "status.currentReplicas")
    return errors + non_negative(status.get("desiredReplicas"), "status.desiredReplicas")
