"""What holds for the metadata of every object, at creation and at every change.

Source: k8s.io/apimachinery/pkg/api/validation/objectmeta.go and pkg/apis/meta/v1/validation, v1.36.
"""

from collections.abc import Sequence

from skysail.api.raw import Raw
from skysail.apiserver.contract import forbidden, invalid, not_supported, quote, required, too_long
from skysail.apiserver.validation.field import Errors, at, immutable
from skysail.apiserver.validation.names import (
    NameCheck,
    dns_label,
    label_value,
    path_segment,
    path_segment_prefix,
    prefix_of,
    qualified_name,
)

ANNOTATIONS_LIMIT = 256 * 1024
_FIELD_MANAGER_LIMIT = 128
_IMMUTABLE_META = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")


def object_meta(
    meta: Raw, namespaced: bool, name_check: NameCheck | None, path: str = "metadata", *, core: bool = True
) -> Errors:
    """Check the metadata of an object to be created.

    Args:
        meta: The object's metadata.
        namespaced: Whether the kind lives in namespaces.
        name_check: What names of this kind look like; None asks only that it fits into a URL.
        path: Where the metadata stands.
        core: Whether finalizers must be standard ones or carry a domain; False for custom kinds.
    """
    errors: Errors = []
    name, prefix = meta.get("name") or "", meta.get("generateName") or ""
    if prefix:
        messages = prefix_of(name_check, prefix) if name_check else path_segment_prefix(prefix)
        errors += at(f"{path}.generateName", messages, prefix)
    if not name:
        errors.append(required(f"{path}.name", "name or generateName is required"))
    else:
        messages = name_check(name) if name_check else path_segment(name)
        if messages:
            errors += at(f"{path}.name", messages, name)
    errors += _namespace(meta, namespaced, path)
    if (meta.get("generation") or 0) < 0:
        errors.append(invalid(f"{path}.generation", meta["generation"], "must be greater than or equal to 0"))
    names = meta.get("finalizers") or ()
    errors += _common(meta, path)
    if names:
        errors += finalizers(names, f"{path}.finalizers")
        if core:
            errors += core_finalizers(names, f"{path}.finalizers")
    return errors


def _namespace(meta: Raw, namespaced: bool, path: str) -> Errors:
    namespace = meta.get("namespace") or ""
    if not namespaced:
        return [forbidden(f"{path}.namespace", "not allowed on this type")] if namespace else []
    if not namespace:
        return [required(f"{path}.namespace")]
    return at(f"{path}.namespace", dns_label(namespace), namespace)


def _common(meta: Raw, path: str) -> Errors:
    errors: Errors = []
    if meta.get("labels"):
        errors += labels(meta["labels"], f"{path}.labels")
    if meta.get("annotations"):
        errors += annotations(meta["annotations"], f"{path}.annotations")
    if meta.get("ownerReferences"):
        errors += owner_references(meta["ownerReferences"], f"{path}.ownerReferences")
    if meta.get("managedFields"):
        errors += managed_fields(meta["managedFields"], f"{path}.managedFields")
    return errors


def object_meta_update(new: Raw, old: Raw, path: str = "metadata", *, core: bool = True) -> Errors:
    """Check the change of an object's metadata.

    Upstream looks three times: at the new metadata, at the change on behalf of every kind, and at the change again on
    behalf of this kind. A fault is a cause as often as it was seen.

    Args:
        new: The new metadata.
        old: The stored one.
        path: Where the metadata stands.
        core: Whether this is a built-in kind, whose own check looks again.
    """
    names = new.get("finalizers") or ()
    common = _common(new, path)
    changed = _fixed_fields(new, old, path)
    errors = [*common, *(finalizers(names, f"{path}.finalizers") if names else ()), *changed, *common]
    if core:
        errors += [*changed, *common, *core_finalizers(names, f"{path}.finalizers")]
    return errors


def look_again(obj: Raw, name_check: NameCheck) -> Errors:
    """Check the metadata of a changed object once more, as kinds do that check the new state like a new object."""
    meta = obj["metadata"]
    return object_meta(meta, bool(meta.get("namespace")), name_check)


def _fixed_fields(new: Raw, old: Raw, path: str) -> Errors:
    errors: Errors = []
    if old.get("deletionTimestamp"):
        extra = sorted(set(new.get("finalizers") or ()) - set(old.get("finalizers") or ()))
        if extra:
            listed = ", ".join(quote(name) for name in extra)
            detail = (
                "no new finalizers can be added if the object is being deleted, "
                f"found new finalizers []string{{{listed}}}"
            )
            errors.append(forbidden(f"{path}.finalizers", detail))
    if not new.get("resourceVersion"):
        errors.append(invalid(f"{path}.resourceVersion", "", "must be specified for an update"))
    if (new.get("generation") or 0) < (old.get("generation") or 0):
        errors.append(invalid(f"{path}.generation", new.get("generation") or 0, "must not be decremented"))
    for key in _IMMUTABLE_META:
        if (new.get(key) or None) != (old.get(key) or None):
            empty = "" if key in ("name", "namespace", "uid") else None
            errors += immutable(new.get(key, empty), old.get(key, empty), f"{path}.{key}")
    return errors


def labels(values: Raw, path: str) -> Errors:
    """Check a map of labels: the keys and the values. Both are reported at the map itself."""
    errors: Errors = []
    for key in values:
        errors += at(path, qualified_name(key), key)
        value = values[key] or ""
        errors += at(path, label_value(value), value)
    return errors


def label_name(key: str, path: str) -> Errors:
    """Check one label key."""
    return at(path, qualified_name(key), key)


def annotations(values: Raw, path: str) -> Errors:
    """Check the keys of annotations (letter case is free) and their total size."""
    errors: Errors = []
    total = 0
    for key, value in values.items():
        errors += at(path, qualified_name(key.lower()), key)
        total += len(key) + len(value or "")
    if total > ANNOTATIONS_LIMIT or (total * 4 > ANNOTATIONS_LIMIT and _bytes(values) > ANNOTATIONS_LIMIT):
        errors.append(too_long(path, ANNOTATIONS_LIMIT))
    return errors


def _bytes(values: Raw) -> int:
    return sum(len(key.encode()) + len((value or "").encode()) for key, value in values.items())


def owner_references(references: Sequence[Raw], path: str) -> Errors:
    """Check the owners: complete, never an Event, at most one controller."""
    errors: Errors = []
    controller = ""
    for reference in references:
        errors += _owner_reference(reference, path)
        if reference.get("controller"):
            current = f"{reference.get('kind', '')}/{reference.get('name', '')}"
            if controller:
                shown = [_owner_form(item) for item in references]
                errors.append(
                    invalid(
                        path,
                        shown,
                        'Only one reference can have Controller set to true. Found "true" in references for '
                        f"{controller} and {current}",
                    )
                )
            else:
                controller = current
    return errors


def _owner_form(reference: Raw) -> Raw:
    shown: Raw = {key: reference.get(key) or "" for key in ("apiVersion", "kind", "name", "uid")}
    for key in ("controller", "blockOwnerDeletion"):
        if reference.get(key) is not None:
            shown[key] = reference[key]
    return shown


def _owner_reference(reference: Raw, path: str) -> Errors:
    errors: Errors = []
    version, kind = reference.get("apiVersion") or "", reference.get("kind") or ""
    if not version.rpartition("/")[2]:
        errors.append(invalid(f"{path}.apiVersion", version, "version must not be empty"))
    for key, value in (("kind", kind), ("name", reference.get("name") or ""), ("uid", reference.get("uid") or "")):
        if not value:
            errors.append(invalid(f"{path}.{key}", value, "must not be empty"))
    if version == "v1" and kind == "Event":
        errors.append(invalid(path, _owner_form(reference), "/v1, Kind=Event is disallowed from being an owner"))
    return errors


def finalizers(names: Sequence[str], path: str) -> Errors:
    """Check the form of finalizers; orphaning and foreground deletion exclude each other."""
    errors: Errors = []
    for name in names:
        errors += at(path, qualified_name(name), name)
    if "orphan" in names and "foregroundDeletion" in names:
        errors.append(invalid(path, list(names), "finalizer orphan and foregroundDeletion cannot be both set"))
    return errors


_STANDARD_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")


def core_finalizer(name: str, path: str) -> Errors:
    """Check a finalizer of a built-in kind: a standard name, or one with a domain."""
    if "/" in name or name in _STANDARD_FINALIZERS:
        return []
    return [invalid(path, name, "name is neither a standard finalizer name nor is it fully qualified")]


def core_finalizers(names: Sequence[str], path: str) -> Errors:
    """Check the finalizers of a built-in kind one by one."""
    return [error for index, name in enumerate(names) for error in core_finalizer(name, f"{path}[{index}]")]


def managed_fields(entries: Sequence[Raw], path: str) -> Errors:
    """Check the bookkeeping of field owners."""
    errors: Errors = []
    for index, entry in enumerate(entries):
        here = f"{path}[{index}]"
        if entry.get("operation") not in ("Apply", "Update"):
            errors.append(invalid(f"{here}.operation", entry.get("operation") or "", "must be `Apply` or `Update`"))
        if entry.get("fieldsType") and entry["fieldsType"] != "FieldsV1":
            errors.append(invalid(f"{here}.fieldsType", entry["fieldsType"], "must be `FieldsV1`"))
        errors += field_manager(entry.get("manager") or "", f"{here}.manager")
        if len(entry.get("subresource") or "") > 256:
            errors.append(too_long(f"{here}.subresource", 256))
    return errors


def field_manager(name: str, path: str) -> Errors:
    """Check the name of a field manager: short and printable."""
    errors: Errors = []
    if len(name.encode()) > _FIELD_MANAGER_LIMIT:
        errors.append(too_long(path, _FIELD_MANAGER_LIMIT))
    for index, char in enumerate(name):
        if not char.isprintable():
            errors.append(invalid(path, name, f"invalid character U+{ord(char):04X} (at position {index})"))
    return errors


def label_selector(selector: Raw | None, path: str) -> Errors:
    """Check a label selector (`matchLabels`, `matchExpressions`); None passes."""
    if not selector:
        return []
    errors: Errors = []
    if selector.get("matchLabels"):
        errors += labels(selector["matchLabels"], f"{path}.matchLabels")
    for index, requirement in enumerate(selector.get("matchExpressions") or ()):
        errors += label_requirement(requirement, f"{path}.matchExpressions[{index}]")
    return errors


def label_requirement(requirement: Raw, path: str) -> Errors:
    """Check one expression of a label selector."""
    errors: Errors = []
    operator, values = requirement.get("operator") or "", requirement.get("values") or ()
    if operator in ("In", "NotIn"):
        if not values:
            errors.append(required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            errors.append(
                forbidden(f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
            )
    else:
        errors.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))
    errors += label_name(requirement.get("key") or "", f"{path}.key")
    for index, value in enumerate(values):
        errors += at(f"{path}.values[{index}]", label_value(value), value)
    return errors


def condition_status(condition: Raw, path: str) -> Errors:
    """Check that a condition's status is one of the three."""
    if condition.get("status") in ("True", "False", "Unknown"):
        return []
    return [not_supported(f"{path}.status", condition.get("status") or "", ("False", "True", "Unknown"))]
