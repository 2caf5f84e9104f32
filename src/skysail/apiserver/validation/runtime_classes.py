"""RuntimeClasses.

Source: pkg/apis/node/validation/validation.go, v1.36.
"""

from skysail.api.raw import Raw
from skysail.apiserver.contract import FieldError, required
from skysail.apiserver.validation.field import Errors, at, immutable
from skysail.apiserver.validation.metadata import labels
from skysail.apiserver.validation.names import dns_label
from skysail.apiserver.validation.placement import tolerations
from skysail.apiserver.validation.resources import requirements


def runtime_class(obj: Raw) -> Errors:
    """Check a new RuntimeClass."""
    handler, overhead, scheduling = obj.get("handler") or "", obj.get("overhead"), obj.get("scheduling")
    errors = at("handler", dns_label(handler), handler) if handler else [required("handler")]
    if overhead is not None:
        errors += requirements({"limits": overhead.get("podFixed") or {}}, "overhead")
    if scheduling is None:
        return errors
    errors += labels(scheduling.get("nodeSelector") or {}, "scheduling.nodeSelector")
    items = scheduling.get("tolerations") or ()
    errors += tolerations(items, "scheduling.tolerations")
    seen: set[tuple[str, ...]] = set()
    for index, item in enumerate(items):
        key = tuple(item.get(part) or "" for part in ("key", "operator", "value", "effect"))
        if key in seen:
            shown = dict(zip(("Key", "Operator", "Value", "Effect"), key, strict=True))
            shown["TolerationSeconds"] = item.get("tolerationSeconds")
            errors.append(FieldError(f"scheduling.tolerations[{index}]", "Duplicate", shown))
        seen.add(key)
    return errors


def runtime_class_update(new: Raw, old: Raw) -> Errors:
    """Check that the handler stays."""
    return immutable(new.get("handler") or "", old.get("handler") or "", "handler")
