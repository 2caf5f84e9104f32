"""Which pods' ends make a Job fail or succeed.

Source: pkg/apis/batch/validation/validation.go validatePodFailurePolicy, validateSuccessPolicy, v1.36.
"""

from collections.abc import Collection
from itertools import pairwise

from skysail.api.raw import Raw
from skysail.apiserver.contract import OMITTED, FieldError, duplicate, invalid, not_supported, quote, required
from skysail.apiserver.validation.field import Errors, at, non_negative, too_many
from skysail.apiserver.validation.names import qualified_name

_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")


def _choices(values: Collection[str]) -> str:
    return f"valid values: [{' '.join(quote(value) for value in values)}]"


def failure_policy(spec: Raw, path: str) -> Errors:
    """Check which failures of pods mean what for the Job."""
    rules = spec["podFailurePolicy"].get("rules") or ()
    errors = [too_many(f"{path}.rules", len(rules), 20)] if len(rules) > 20 else []
    pod = (spec.get("template") or {}).get("spec") or {}
    names = {item.get("name") for key in ("containers", "initContainers") for item in pod.get(key) or ()}
    for index, rule in enumerate(rules):
        errors += _failure_rule(rule, spec, names, f"{path}.rules[{index}]")
    return errors


def _failure_rule(rule: Raw, spec: Raw, names: Collection[object], path: str) -> Errors:
    errors: Errors = []
    action = rule.get("action") or ""
    if not action:
        errors.append(required(f"{path}.action", _choices(_ACTIONS)))
    elif action == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
        errors.append(invalid(f"{path}.action", action, "requires the backoffLimitPerIndex to be set"))
    elif action not in _ACTIONS:
        errors.append(not_supported(f"{path}.action", action, _ACTIONS))
    codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions") or ()
    if codes is not None:
        errors += _exit_codes(codes, names, f"{path}.onExitCodes")
    if len(conditions) > 20:
        errors.append(too_many(f"{path}.onPodConditions", len(conditions), 20))
    for index, pattern in enumerate(conditions):
        here, status = f"{path}.onPodConditions[{index}]", pattern.get("status") or ""
        errors += at(f"{here}.type", qualified_name(pattern.get("type") or ""), pattern.get("type") or "")
        known = ("False", "True", "Unknown")
        if not status:
            errors.append(required(f"{here}.status", _choices(known)))
        elif status not in known:
            errors.append(not_supported(f"{here}.status", status, known))
    if codes is not None and conditions:
        errors.append(
            FieldError(path, "Invalid", OMITTED, "specifying both OnExitCodes and OnPodConditions is not supported")
        )
    if codes is None and not conditions:
        errors.append(
            FieldError(path, "Invalid", OMITTED, "specifying one of OnExitCodes and OnPodConditions is required")
        )
    return errors


def _exit_codes(spec: Raw, names: Collection[object], path: str) -> Errors:
    errors: Errors = []
    operator, values = spec.get("operator") or "", spec.get("values") or []
    if not operator:
        errors.append(required(f"{path}.operator", _choices(("In", "NotIn"))))
    elif operator not in ("In", "NotIn"):
        errors.append(not_supported(f"{path}.operator", operator, ("In", "NotIn")))
    name = spec.get("containerName")
    if name is not None and name not in names:
        detail = "must be one of the container or initContainer names in the pod template"
        errors.append(invalid(f"{path}.containerName", name, detail))
    if not values:
        errors.append(invalid(f"{path}.values", values or None, "at least one value is required"))
    elif len(values) > 255:
        errors.append(too_many(f"{path}.values", len(values), 255))
    for index, value in enumerate(values):
        if operator == "In" and value == 0:
            errors.append(invalid(f"{path}.values[{index}]", value, "must not be 0 for the In operator"))
        if value in values[:index]:
            errors.append(duplicate(f"{path}.values[{index}]", value))
    if any(left > right for left, right in pairwise(values)):
        errors.append(invalid(f"{path}.values", values, "must be ordered"))
    return errors


def success_policy(spec: Raw, path: str) -> Errors:
    """Check which successes are enough."""
    rules = spec["successPolicy"].get("rules") or ()
    if spec.get("completionMode") != "Indexed":
        shown = {
            "Rules": [
                {"SucceededIndexes": r.get("succeededIndexes"), "SucceededCount": r.get("succeededCount")}
                for r in rules
            ]
            or None
        }
        return [invalid(path, shown, "requires indexed completion mode")]
    errors: Errors = []
    if not rules:
        detail = "at least one rules must be specified when the successPolicy is specified"
        errors.append(required(f"{path}.rules", detail))
    if len(rules) > 20:
        errors.append(too_many(f"{path}.rules", len(rules), 20))
    for index, rule in enumerate(rules):
        errors += _success_rule(rule, spec.get("completions") or 0, f"{path}.rules[{index}]")
    return errors


def _success_rule(rule: Raw, completions: int, path: str) -> Errors:
    errors: Errors = []
    count, indexes = rule.get("succeededCount"), rule.get("succeededIndexes")
    if count is None and indexes is None:
        errors.append(required(path, "at least one of succeededCount or succeededIndexes must be specified"))
    total = 0
    if indexes is not None:
        total, fault = parse_indexes(indexes, completions)
        if fault:
            detail = f"error parsing succeededIndexes: {fault}"
            errors.append(invalid(f"{path}.succeededIndexes", indexes, detail))
    if count is not None:
        here = f"{path}.succeededCount"
        errors += non_negative(count, here)
        if count > completions:
            detail = f"must be less than or equal to {completions} (the number of specified completions)"
            errors.append(invalid(here, count, detail))
        if indexes is not None and count > total:
            words = "the number of indexes in the specified succeededIndexes field"
            errors.append(invalid(here, count, f"must be less than or equal to {total} ({words})"))
    return errors


def parse_indexes(text: str, completions: int) -> tuple[int, str]:
    """How many indexes a text like `1,3-5` names, and what is wrong with it."""
    total, last = 0, -1
    for part in text.split(",") if text else ():
        bounds = part.split("-")
        if len(bounds) > 2:
            rule = "an index interval can have at most two parts separated by '-'"
            return 0, f'the fragment "{part}" violates the requirement that {rule}'
        numbers = []
        for bound in bounds:
            if not bound.isascii() or not bound.isdigit():
                return 0, f'cannot convert string to integer for index: "{bound}"'
            numbers.append(int(bound))
            if numbers[-1] >= completions:
                return 0, f'too large index: "{bound}"'
        first, end = numbers[0], numbers[-1]
        if last >= first:
            return 0, f"non-increasing order, previous: {last}, current: {first}"
        if len(numbers) == 2 and first >= end:
            return 0, f"non-increasing order, previous: {first}, current: {end}"
        total, last = total + end - first + 1, end
    return total, ""
