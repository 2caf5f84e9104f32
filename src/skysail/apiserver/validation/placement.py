"""What else decides where a pod may run: tolerations, taints, gates, topology spread.

Source: pkg/apis/core/validation/validation.go, v1.36 (feature gates at their defaults).
"""

from collections.abc import Sequence

from skysail.api.raw import Raw
from skysail.apiserver.contract import FieldError, duplicate, forbidden, invalid, not_supported, required
from skysail.apiserver.validation.field import Errors, at
from skysail.apiserver.validation.metadata import label_name, label_selector
from skysail.apiserver.validation.names import label_value, qualified_name
from skysail.apiserver.validation.node_selectors import match_label_keys

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_ACTIONS = ("DoNotSchedule", "ScheduleAnyway")
_POLICIES = ("Honor", "Ignore")


def tolerations(items: Sequence[Raw], path: str) -> Errors:
    """Check the tolerations of a pod."""
    errors: Errors = []
    for index, item in enumerate(items):
        errors += _toleration(item, f"{path}[{index}]")
    return errors


def _toleration(item: Raw, path: str) -> Errors:
    errors: Errors = []
    key, operator = item.get("key") or "", item.get("operator") or ""
    value, effect = item.get("value") or "", item.get("effect") or ""
    if key:
        errors += label_name(key, f"{path}.key")
    elif operator != "Exists":
        detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        errors.append(invalid(f"{path}.operator", operator, detail))
    if item.get("tolerationSeconds") is not None and effect != "NoExecute":
        detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        errors.append(invalid(f"{path}.effect", effect, detail))
    match operator:
        case "" | "Equal":
            messages = label_value(value)
            if messages:
                errors.append(invalid(f"{path}.operator", value, ";".join(messages)))
        case "Exists":
            if value:
                errors.append(invalid(f"{path}.operator", value, "value must be empty when `operator` is 'Exists'"))
        case "Lt" | "Gt":
            errors.append(not_supported(f"{path}.operator", operator, ("Equal", "Exists", "Lt", "Gt")))
        case _:
            errors.append(not_supported(f"{path}.operator", operator, ("Equal", "Exists")))
    if effect and effect not in _EFFECTS:
        errors.append(not_supported(f"{path}.effect", effect, _EFFECTS))
    return errors


def only_added_tolerations(new: Sequence[Raw], old: Sequence[Raw], path: str) -> Errors:
    """Tolerations may be added to a pod, and their seconds may change; nothing else."""
    kept = [_without_seconds(item) for item in new]
    if any(_without_seconds(item) not in kept for item in old):
        return [forbidden(path, "existing toleration can not be modified except its tolerationSeconds")]
    return tolerations(new, path)


def _without_seconds(item: Raw) -> Raw:
    return {key: value for key, value in item.items() if key != "tolerationSeconds" and value}


def taints(items: Sequence[Raw], path: str) -> Errors:
    """Check the taints of a node: no two of one key and effect."""
    errors: Errors = []
    seen: set[tuple[str, str]] = set()
    for index, item in enumerate(items):
        here = f"{path}[{index}]"
        key, value, effect = item.get("key") or "", item.get("value") or "", item.get("effect") or ""
        errors += at(f"{here}.key", qualified_name(key), key)
        messages = label_value(value)
        if messages:
            errors.append(invalid(f"{here}.value", value, ";".join(messages)))
        if not effect:
            errors.append(required(f"{here}.effect"))
        elif effect not in _EFFECTS:
            errors.append(not_supported(f"{here}.effect", effect, _EFFECTS))
        if (key, effect) in seen:
            shown = {"Key": key, "Value": value, "Effect": effect, "TimeAdded": item.get("timeAdded")}
            errors.append(FieldError(here, "Duplicate", shown, "taints must be unique by key and effect pair"))
        seen.add((key, effect))
    return errors


def scheduling_gates(gates: Sequence[Raw], path: str) -> Errors:
    """Check the gates of a pod: qualified names, each once."""
    errors: Errors = []
    seen: set[str] = set()
    for index, gate in enumerate(gates):
        name, here = gate.get("name") or "", f"{path}[{index}]"
        errors += at(here, qualified_name(name), name)
        if name in seen:
            errors.append(duplicate(here, name))
        seen.add(name)
    return errors


def only_removed_gates(new: Sequence[Raw], old: Sequence[Raw], path: str) -> Errors:
    """Gates may be taken off a pod, never put on."""
    known = {gate.get("name") for gate in old}
    positions = {gate.get("name") or "": index for index, gate in enumerate(new)}
    return [
        forbidden(f"{path}[{index}].name", f"only deletion is allowed, but found new scheduling gate '{name}'")
        for name, index in positions.items()
        if name not in known
    ]


def topology_spread(constraints: Sequence[Raw], path: str) -> Errors:
    """Check topology spread constraints: no two of one key and one action."""
    errors: Errors = []
    for index, item in enumerate(constraints):
        here = f"{path}[{index}]"
        skew, key, action = item.get("maxSkew") or 0, item.get("topologyKey") or "", item.get("whenUnsatisfiable") or ""
        if skew <= 0:
            errors.append(invalid(f"{here}.maxSkew", skew, "must be greater than zero"))
        if not key:
            errors.append(required(f"{here}.topologyKey", "can not be empty"))
        if action not in _ACTIONS:
            errors.append(not_supported(f"{here}.whenUnsatisfiable", action, _ACTIONS))
        if any(
            (other.get("topologyKey") or "", other.get("whenUnsatisfiable") or "") == (key, action)
            for other in constraints[index + 1 :]
        ):
            errors.append(duplicate(f"{here}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}"))
        errors += _min_domains(item.get("minDomains"), action, f"{here}.minDomains")
        for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            policy = item.get(name)
            if policy is not None and policy not in _POLICIES:
                errors.append(not_supported(f"{here}.{name}", policy, _POLICIES))
        errors += match_label_keys(here, item.get("matchLabelKeys") or (), (), item.get("labelSelector"))
        errors += label_selector(item.get("labelSelector"), f"{here}.labelSelector")
    return errors


def _min_domains(value: int | None, action: str, path: str) -> Errors:
    if value is None:
        return []
    errors = [invalid(path, value, "must be greater than zero")] if value <= 0 else []
    if action != "DoNotSchedule":
        detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
        errors.append(invalid(path, value, detail))
    return errors
