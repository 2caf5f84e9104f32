"""Leases and the candidates for them.

Source: pkg/apis/coordination/validation/validation.go, v1.36.
"""

import re

from skysail.api.raw import Raw
from skysail.apiserver.contract import forbidden, invalid, not_supported, required
from skysail.apiserver.validation.field import Errors, at, immutable, non_negative, positive
from skysail.apiserver.validation.names import qualified_name

_OLDEST = "OldestEmulationVersion"
_semver_re = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?")


def lease(obj: Raw) -> Errors:
    """Check a Lease."""
    spec = obj.get("spec") or {}
    errors = positive(spec.get("leaseDurationSeconds"), "spec.leaseDurationSeconds")
    errors += non_negative(spec.get("leaseTransitions"), "spec.leaseTransitions")
    if spec.get("strategy") is not None:
        errors += _strategy(spec["strategy"])
    if spec.get("preferredHolder") and not spec.get("strategy"):
        errors.append(forbidden("spec.preferredHolder", "may only be specified if `strategy` is defined"))
    return errors


def _strategy(value: str) -> Errors:
    path = "spec.strategy.strategy"
    if "/" in value:
        return at(path, qualified_name(value), value)
    return [] if value == _OLDEST else [not_supported(path, value, (_OLDEST,))]


def lease_candidate(obj: Raw) -> Errors:
    """Check a LeaseCandidate."""
    spec = obj.get("spec") or {}
    emulated, binary = spec.get("emulationVersion") or "", spec.get("binaryVersion") or ""
    errors = [] if spec.get("leaseName") else [required("spec.leaseName")]
    emulated_version, binary_version = _version(emulated), _version(binary)
    if emulated and emulated_version is None:
        errors.append(invalid("spec.emulationVersion", emulated, "must be a valid semantic version"))
    if not binary:
        errors.append(required("spec.binaryVersion"))
    elif binary_version is None:
        errors.append(invalid("spec.binaryVersion", binary, "must be a valid semantic version"))
    if binary and emulated and (binary_version or ()) < (emulated_version or ()):
        detail = "must be greater than or equal to `emulationVersion`"
        errors.append(invalid("spec.binaryVersion", binary, detail))
    strategy = spec.get("strategy") or ""
    if not strategy:
        errors.append(required("spec.strategy"))
        return errors
    if strategy == _OLDEST and not any(emulated_version or ()):
        detail = "must be specified when `strategy` is 'OldestEmulationVersion'"
        errors.append(required("spec.emulationVersion", detail))
    return errors + _strategy(strategy)


def _version(text: str) -> tuple[int, ...] | None:
    found = _semver_re.fullmatch(text)
    return tuple(int(part) for part in found.groups()) if found else None


def lease_candidate_update(new: Raw, old: Raw) -> Errors:
    """Check that a candidate stays a candidate for the same lease."""
    wanted, before = new.get("spec") or {}, old.get("spec") or {}
    return immutable(wanted.get("leaseName") or "", before.get("leaseName") or "", "spec.leaseName")
