"""PersistentVolumeClaims, whole and embedded.

Source: pkg/apis/core/validation/validation.go ValidatePersistentVolumeClaimSpec, v1.36.
"""

from skysail.api.quantity import parse_quantity
from skysail.api.raw import Raw
from skysail.apiserver.contract import forbidden, invalid, not_supported, required
from skysail.apiserver.validation.field import Errors, at, immutable, same
from skysail.apiserver.validation.go_form import spec_difference
from skysail.apiserver.validation.metadata import label_selector
from skysail.apiserver.validation.names import dns_subdomain, qualified_name
from skysail.apiserver.validation.resources import is_native, non_negative_amount

ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES = ("Block", "Filesystem")
_RESIZE_STATES = (
    "ControllerResizeInProgress", "ControllerResizeInfeasible", "NodeResizeInProgress", "NodeResizeInfeasible",
    "NodeResizePending",
)  # fmt: skip
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_FIXED = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"


def claim(obj: Raw) -> Errors:
    """Check a PersistentVolumeClaim."""
    return claim_spec(obj.get("spec") or {}, "spec")


def access_modes(modes: list[str], path: str) -> Errors:
    """Check a list of access modes: at least one; ReadWriteOncePod stands alone."""
    if not modes:
        return [required(path, "at least 1 access mode is required")]
    errors = [not_supported(path, mode, ACCESS_MODES) for mode in modes if mode not in ACCESS_MODES]
    if "ReadWriteOncePod" in modes and len(set(modes)) > 1:
        errors.append(forbidden(path, "may not use ReadWriteOncePod with other access modes"))
    return errors


def claim_spec(spec: Raw, path: str) -> Errors:
    """Check the spec of a claim, wherever it stands."""
    errors: Errors = []
    modes = spec.get("accessModes") or []
    errors += access_modes(modes, f"{path}.accessModes")
    errors += label_selector(spec.get("selector"), f"{path}.selector")
    storage = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if storage is None:
        errors.append(required(f"{path}.resources[storage]"))
    elif parse_quantity(str(storage)).nano <= 0:
        here = f"{path}.resources[storage]"
        errors.append(invalid(here, str(parse_quantity(str(storage))), "must be greater than zero"))
        errors += non_negative_amount(storage, here)
    for key in ("storageClassName", "volumeAttributesClassName"):
        if spec.get(key):
            errors += at(f"{path}.{key}", dns_subdomain(spec[key]), spec[key])
    mode = spec.get("volumeMode")
    if mode is not None and mode not in VOLUME_MODES:
        errors.append(not_supported(f"{path}.volumeMode", mode, VOLUME_MODES))
    return errors + _data_source(spec, path)


def _data_source(spec: Raw, path: str) -> Errors:
    errors: Errors = []
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    for key, value in (("dataSource", source), ("dataSourceRef", reference)):
        if value is None:
            continue
        here = f"{path}.{key}"
        errors += [required(f"{here}.{name}") for name in ("name", "kind") if not value.get(name)]
        group = value.get("apiGroup") or ""
        if not group and value.get("kind") != "PersistentVolumeClaim":
            detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
            errors.append(invalid(here, value.get("kind") or "", detail))
        elif group:
            errors += at(f"{here}.apiGroup", dns_subdomain(group), group)
    if source is not None and reference is not None and not reference.get("namespace"):
        keys = ("apiGroup", "kind", "name")
        if any((source.get(key) or "") != (reference.get(key) or "") for key in keys):
            errors.append(invalid(path, f"{path}.dataSource", "must match dataSourceRef"))
    return errors


def claim_update(new: Raw, old: Raw) -> Errors:
    """Check what may change in a claim: its volume once, its size when bound."""
    errors: Errors = []
    wanted, before = dict(new["spec"]), dict(old["spec"])
    if not before.get("volumeName") and wanted.get("volumeName"):
        before["volumeName"] = wanted["volumeName"]
    annotation = (old["metadata"].get("annotations") or {}).get(_CLASS_ANNOTATION)
    named_late = before.get("storageClassName") is None and wanted.get("storageClassName") is not None
    if named_late and annotation in (None, wanted["storageClassName"]):
        wanted.pop("storageClassName")
    bound = (new.get("status") or {}).get("phase") == "Bound"
    size, known = _storage(new), _storage(old)
    if bound:
        resources = dict(wanted.get("resources") or {})
        requests = dict(resources.get("requests") or {})
        if requests and known is not None:
            requests["storage"] = known
            wanted["resources"] = {**resources, "requests": requests}
        wanted["volumeAttributesClassName"] = before.get("volumeAttributesClassName")
    if not same(wanted, before):
        errors.append(forbidden("spec", f"{_FIXED}\n{spec_difference('PersistentVolumeClaimSpec', before, wanted)}"))
    if size is not None and known is not None and parse_quantity(size).nano < parse_quantity(known).nano:
        capacity = ((old.get("status") or {}).get("capacity") or {}).get("storage") or "0"
        if parse_quantity(size).nano <= parse_quantity(str(capacity)).nano:
            detail = "field can not be less than status.capacity"
            errors.append(forbidden("spec.resources.requests.storage", detail))
    return errors + immutable(new["spec"].get("volumeMode"), old["spec"].get("volumeMode"), "volumeMode")


def _storage(obj: Raw) -> str | None:
    value = ((obj["spec"].get("resources") or {}).get("requests") or {}).get("storage")
    return None if value is None else str(value)


def claim_status_update(new: Raw, old: Raw) -> Errors:
    """Check what the volume controllers report."""
    status = new.get("status") or {}
    errors = [] if (new.get("spec") or {}).get("accessModes") else [required("Spec.accessModes")]
    for name, value in (status.get("capacity") or {}).items():
        errors += _amount(value, f"status.capacity[{name}]")
    path = "status.allocatedResourceStatuses"
    for name, state in (status.get("allocatedResourceStatuses") or {}).items():
        errors += _resource_key(name, path)
        if state not in _RESIZE_STATES:
            errors.append(not_supported(path, name, _RESIZE_STATES))
    for name, value in (status.get("allocatedResources") or {}).items():
        faults = _resource_key(name, "status.allocatedResources")
        errors += faults or _amount(value, f"status.allocatedResources[{name}]")
    return errors


def _amount(value: object, path: str) -> Errors:
    quantity = parse_quantity(str(value))
    return [invalid(path, quantity.value(), "must be a valid resource quantity")] if quantity.nano < 0 else []


def _resource_key(name: str, path: str) -> Errors:
    errors = at(path, qualified_name(name), name)
    if not errors and is_native(name) and name != "storage":
        errors.append(not_supported(path, name, ("storage",)))
    return errors
