"""Whether a label selector takes in a set of labels, on plain dictionaries.

Source: k8s.io/apimachinery/pkg/apis/meta/v1/helpers.go LabelSelectorAsSelector, v1.36.
"""

from collections.abc import Mapping

from skysail.api.raw import Raw
from skysail.apiserver.validation.metadata import label_selector


def is_readable(selector: Raw | None) -> bool:
    """Whether a selector can be evaluated at all."""
    return not label_selector(selector, "")


def selects(selector: Raw | None, labels: Mapping[str, str] | None) -> bool:
    """Whether the labels match: None matches nothing, an empty selector everything."""
    if selector is None:
        return False
    known = labels or {}
    if any(known.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    return all(_matches(item, known) for item in selector.get("matchExpressions") or ())


def _matches(expression: Raw, labels: Mapping[str, str]) -> bool:
    key, values = expression.get("key") or "", expression.get("values") or ()
    match expression.get("operator"):
        case "In":
            return key in labels and labels[key] in values
        case "NotIn":
            return key not in labels or labels[key] not in values
        case "Exists":
            return key in labels
    return key not in labels


def is_empty(selector: Raw | None) -> bool:
    """Whether a selector is there and names nothing."""
    return selector is not None and not selector.get("matchLabels") and not selector.get("matchExpressions")
