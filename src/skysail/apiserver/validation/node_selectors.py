"""Affinity: node selectors, pod affinity terms, matchLabelKeys.

Source: pkg/apis/core/validation/validation.go validateAffinity, v1.36.
"""

from collections.abc import Sequence

from skysail.api.raw import Raw
from skysail.apiserver.contract import forbidden, invalid, required
from skysail.apiserver.validation.field import Errors, at
from skysail.apiserver.validation.metadata import label_name, label_selector
from skysail.apiserver.validation.names import dns_label, dns_subdomain, label_value

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_WEIGHT = "must be in the range 1-100"


def affinity(spec: Raw, path: str) -> Errors:
    """Check a pod's affinity."""
    errors: Errors = []
    node = spec.get("nodeAffinity")
    if node is not None:
        here = f"{path}.nodeAffinity"
        if node.get(REQUIRED) is not None:
            errors += node_selector(node[REQUIRED], f"{here}.{REQUIRED}")
        for index, term in enumerate(node.get(PREFERRED) or ()):
            at_term = f"{here}.{PREFERRED}[{index}]"
            errors += _weight(term, at_term)
            errors += node_selector_term(term.get("preference") or {}, f"{at_term}.preference", check_values=False)
    for side in ("podAffinity", "podAntiAffinity"):
        if spec.get(side) is not None:
            errors += _pod_affinity(spec[side], f"{path}.{side}")
    return errors


def _weight(term: Raw, path: str) -> Errors:
    weight = term.get("weight") or 0
    return [] if 0 < weight <= 100 else [invalid(f"{path}.weight", weight, _WEIGHT)]


def node_selector(selector: Raw, path: str) -> Errors:
    """Check a node selector: at least one term."""
    terms = selector.get("nodeSelectorTerms") or ()
    if not terms:
        return [required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")]
    errors: Errors = []
    for index, term in enumerate(terms):
        errors += node_selector_term(term, f"{path}.nodeSelectorTerms[{index}]")
    return errors


def node_selector_term(term: Raw, path: str, *, check_values: bool = True) -> Errors:
    """Check one term; the values of preferred terms are not looked at."""
    errors: Errors = []
    for index, requirement in enumerate(term.get("matchExpressions") or ()):
        errors += _requirement(requirement, f"{path}.matchExpressions[{index}]", check_values)
    for index, requirement in enumerate(term.get("matchFields") or ()):
        errors += _field_requirement(requirement, f"{path}.matchFields[{index}]")
    return errors


def _requirement(requirement: Raw, path: str, check_values: bool) -> Errors:
    errors: Errors = []
    operator, values = requirement.get("operator") or "", requirement.get("values") or ()
    match operator:
        case "In" | "NotIn":
            if not values:
                errors.append(required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
        case "Exists" | "DoesNotExist":
            if values:
                detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                errors.append(forbidden(f"{path}.values", detail))
        case "Gt" | "Lt":
            if len(values) != 1:
                detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
                errors.append(required(f"{path}.values", detail))
        case _:
            errors.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))
    errors += label_name(requirement.get("key") or "", f"{path}.key")
    if check_values:
        for index, value in enumerate(values):
            errors += at(f"{path}.values[{index}]", label_value(value), value)
    return errors


def _field_requirement(requirement: Raw, path: str) -> Errors:
    errors: Errors = []
    operator, values = requirement.get("operator") or "", requirement.get("values") or ()
    if operator not in ("In", "NotIn"):
        errors.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))
    elif len(values) != 1:
        detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        errors.append(required(f"{path}.values", detail))
    key = requirement.get("key") or ""
    if key != "metadata.name":
        errors.append(invalid(f"{path}.key", key, "not a valid field selector key"))
    else:
        for index, value in enumerate(values):
            errors += at(f"{path}.values[{index}]", dns_subdomain(value), value)
    return errors


def _pod_affinity(spec: Raw, path: str) -> Errors:
    errors: Errors = []
    for index, term in enumerate(spec.get(REQUIRED) or ()):
        errors += _pod_affinity_term(term, f"{path}.{REQUIRED}[{index}]")
    for index, weighted in enumerate(spec.get(PREFERRED) or ()):
        here = f"{path}.{PREFERRED}[{index}]"
        errors += _weight(weighted, here)
        errors += _pod_affinity_term(weighted.get("podAffinityTerm") or {}, f"{here}.podAffinityTerm")
    return errors


def _pod_affinity_term(term: Raw, path: str) -> Errors:
    errors = label_selector(term.get("labelSelector"), f"{path}.labelSelector")
    errors += label_selector(term.get("namespaceSelector"), f"{path}.namespaceSelector")
    for name in term.get("namespaces") or ():
        errors += at(f"{path}.namespace", dns_label(name), name)
    errors += match_label_keys(
        path, term.get("matchLabelKeys") or (), term.get("mismatchLabelKeys") or (), term.get("labelSelector")
    )
    key = term.get("topologyKey") or ""
    if not key:
        errors.append(required(f"{path}.topologyKey", "can not be empty"))
    return errors + label_name(key, f"{path}.topologyKey")


def match_label_keys(path: str, match: Sequence[str], mismatch: Sequence[str], selector: Raw | None) -> Errors:
    """Check matchLabelKeys and mismatchLabelKeys against one another and against the selector they extend."""
    if not match and not mismatch:
        return []
    errors = _label_keys(f"{path}.matchLabelKeys", match, selector)
    errors += _label_keys(f"{path}.mismatchLabelKeys", mismatch, selector)
    if selector is not None:
        positions = {key: index for index, key in enumerate(match)}
        known = set(selector.get("matchLabels") or ())
        for expression in selector.get("matchExpressions") or ():
            key = expression.get("key") or ""
            if key in positions and key in known:
                detail = "exists in both matchLabelKeys and labelSelector"
                errors.append(invalid(f"{path}[{positions[key]}]", key, detail))
            known.add(key)
    for index, key in enumerate(match):
        if key in mismatch:
            detail = "exists in both matchLabelKeys and mismatchLabelKeys"
            errors.append(invalid(f"{path}.matchLabelKeys[{index}]", key, detail))
    return errors


def _label_keys(path: str, keys: Sequence[str], selector: Raw | None) -> Errors:
    if not keys:
        return []
    if selector is None:
        return [forbidden(path, "must not be specified when labelSelector is not set")]
    return [error for index, key in enumerate(keys) for error in label_name(key, f"{path}[{index}]")]
