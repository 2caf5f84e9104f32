"""Namespaces: their own finalizers and their phase.

Source: pkg/apis/core/validation/validation.go ValidateNamespace, v1.36.
"""

from skysail.api.raw import Raw
from skysail.apiserver.contract import invalid
from skysail.apiserver.validation.field import Errors, at
from skysail.apiserver.validation.metadata import core_finalizer, look_again
from skysail.apiserver.validation.names import dns_label, qualified_name


def finalizer(name: str, path: str) -> Errors:
    """Check one entry of `spec.finalizers`."""
    return at(path, qualified_name(name), name) + core_finalizer(name, path)


def namespace(obj: Raw) -> Errors:
    """Check a Namespace."""
    names = (obj.get("spec") or {}).get("finalizers") or ()
    return [error for name in names for error in finalizer(name, "spec.finalizers")]


def namespace_update(new: Raw, old: Raw) -> Errors:
    """Check a changed Namespace."""
    return look_again(new, dns_label) + namespace(new)


def namespace_status_update(new: Raw, old: Raw) -> Errors:
    """The phase follows from whether the namespace is being deleted."""
    phase = (new.get("status") or {}).get("phase") or ""
    deleted = bool(new["metadata"].get("deletionTimestamp"))
    if phase == ("Terminating" if deleted else "Active"):
        return []
    expected, state = ("Terminating", "not empty") if deleted else ("Active", "empty")
    return [invalid("status.Phase", phase, f"may only be '{expected}' if `deletionTimestamp` is {state}")]
