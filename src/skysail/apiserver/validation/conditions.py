"""Conditions of the common form (`metav1.Condition`).

Source: k8s.io/apimachinery/pkg/apis/meta/v1/validation/validation.go ValidateConditions, v1.36.
"""

import re
from collections.abc import Sequence

from skysail.api.raw import Raw
from skysail.apiserver.contract import duplicate, invalid, not_supported, required, too_long
from skysail.apiserver.validation.field import Errors
from skysail.apiserver.validation.metadata import label_name
from skysail.apiserver.validation.names import regex_error

_REASON = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_REASON_WORDS = (
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric "
    "characters or '_,:', and must end with an alphanumeric character or '_'"
)
_REASON_LIMIT, _MESSAGE_LIMIT = 1024, 32 * 1024
_reason_re = re.compile(_REASON)


def conditions(items: Sequence[Raw], path: str) -> Errors:
    """Check a list of conditions: each type once."""
    errors: Errors = []
    seen: set[str] = set()
    for index, item in enumerate(items):
        here, kind = f"{path}[{index}]", item.get("type") or ""
        if kind in seen:
            errors.append(duplicate(f"{here}.type", kind))
        seen.add(kind)
        errors += _condition(item, here)
    return errors


def _condition(item: Raw, path: str) -> Errors:
    errors = label_name(item.get("type") or "", f"{path}.type")
    if item.get("status") not in ("True", "False", "Unknown"):
        errors.append(not_supported(f"{path}.status", item.get("status") or "", ("False", "True", "Unknown")))
    generation = item.get("observedGeneration") or 0
    if generation < 0:
        errors.append(invalid(f"{path}.observedGeneration", generation, "must be greater than or equal to zero"))
    if not item.get("lastTransitionTime"):
        errors.append(required(f"{path}.lastTransitionTime"))
    reason = item.get("reason") or ""
    if not reason:
        errors.append(required(f"{path}.reason"))
    elif not _reason_re.fullmatch(reason):
        detail = regex_error(
            _REASON_WORDS, _REASON, "my_name", "MY_NAME", "MyName", "ReasonA,ReasonB", "ReasonA:ReasonB"
        )
        errors.append(invalid(f"{path}.reason", reason, detail))
    if len(reason) > _REASON_LIMIT:
        errors.append(too_long(f"{path}.reason", _REASON_LIMIT))
    if len(item.get("message") or "") > _MESSAGE_LIMIT:
        errors.append(too_long(f"{path}.message", _MESSAGE_LIMIT))
    return errors
