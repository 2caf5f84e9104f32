"""Projected volumes: several sources in one directory.

Source: pkg/apis/core/validation/validation.go validateProjectionSources, v1.36.
"""

from skysail.api.raw import Raw
from skysail.apiserver.contract import forbidden, invalid, not_supported, required
from skysail.apiserver.validation.downward import downward_file
from skysail.apiserver.validation.field import Errors
from skysail.apiserver.validation.metadata import label_selector
from skysail.apiserver.validation.paths import file_mode, local_non_reserved

_KEY_TYPES = ("RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519")
_CONFLICT = "conflicting duplicate paths"


def projected(spec: Raw, path: str) -> Errors:
    """Check all sources; no two may write the same file."""
    errors = file_mode(spec.get("defaultMode"), f"{path}.defaultMode")
    taken: set[str] = set()
    for index, source in enumerate(spec.get("sources") or ()):
        here = f"{path}.sources[{index}]"
        kinds = [key for key in source if source[key] is not None]
        for key in ("secret", "configMap"):
            if source.get(key) is not None:
                errors += _keys(source[key], f"{here}.{key}", path, taken)
        for item in (source.get("downwardAPI") or {}).get("items") or ():
            errors += downward_file(item, f"{here}.downwardAPI")
            errors += _take(item.get("path") or "", item.get("path") or "", path, taken)
        if source.get("serviceAccountToken") is not None:
            errors += _token(source["serviceAccountToken"], f"{here}.serviceAccountToken", path)
        if source.get("clusterTrustBundle") is not None:
            errors += _trust_bundle(source["clusterTrustBundle"], f"{here}.clusterTrustBundle", path, taken)
        if source.get("podCertificate") is not None:
            errors += _certificate(source["podCertificate"], f"{here}.podCertificate", path, taken)
        if len(kinds) > 1:
            errors.append(forbidden(here, "may not specify more than 1 volume type per source"))
    return errors


def _take(value: str, shown: str, path: str, taken: set[str]) -> Errors:
    if not value:
        return []
    if value in taken:
        return [invalid(path, shown, _CONFLICT)]
    taken.add(value)
    return []


def _keys(spec: Raw, here: str, path: str, taken: set[str]) -> Errors:
    name = spec.get("name") or ""
    errors = [] if name else [required(f"{here}.name")]
    for index, item in enumerate(spec.get("items") or ()):
        at_item = f"{here}.items[{index}]"
        errors += [required(f"{at_item}.{key}") for key in ("key", "path") if not item.get(key)]
        errors += local_non_reserved(item.get("path") or "", f"{at_item}.path")
        errors += file_mode(item.get("mode"), f"{at_item}.mode")
        errors += _take(item.get("path") or "", name, path, taken)
    return errors


def _token(spec: Raw, here: str, path: str) -> Errors:
    errors: Errors = []
    seconds = spec.get("expirationSeconds") or 0
    if seconds < 600:
        detail = "may not specify a duration less than 10 minutes"
        errors.append(invalid(f"{here}.expirationSeconds", seconds, detail))
    if seconds > 1 << 32:
        detail = "may not specify a duration larger than 2^32 seconds"
        errors.append(invalid(f"{here}.expirationSeconds", seconds, detail))
    if not spec.get("path"):
        errors.append(required(f"{path}.path"))
    else:
        errors += local_non_reserved(spec["path"], f"{path}.path")
    return errors


def _trust_bundle(spec: Raw, here: str, path: str, taken: set[str]) -> Errors:
    errors: Errors = []
    name, signer = spec.get("name"), spec.get("signerName")
    if name is not None and signer is not None:
        errors.append(invalid(here, spec, "only one of name and signerName may be used"))
    elif name is not None:
        if not name:
            errors.append(required(f"{here}.name", "must be a valid object name"))
        if spec.get("labelSelector") is not None:
            detail = "labelSelector must be unset if name is specified"
            errors.append(invalid(f"{here}.labelSelector", spec["labelSelector"], detail))
    elif signer is not None:
        if not signer:
            errors.append(required(f"{here}.signerName", "must be a valid signer name"))
        errors += label_selector(spec.get("labelSelector"), f"{here}.labelSelector")
    else:
        errors.append(required(here, "either name or signerName must be specified"))
    value = spec.get("path") or ""
    if not value:
        errors.append(required(f"{here}.path"))
    return errors + local_non_reserved(value, f"{here}.path") + _take(value, value, path, taken)


def _certificate(spec: Raw, here: str, path: str, taken: set[str]) -> Errors:
    errors: Errors = []
    if spec.get("keyType") not in _KEY_TYPES:
        errors.append(not_supported(f"{here}.keyType", spec.get("keyType") or "", _KEY_TYPES))
    seconds = spec.get("maxExpirationSeconds")
    if seconds is not None and seconds < 3600:
        detail = "if provided, maxExpirationSeconds must be >= 3600"
        errors.append(invalid(f"{here}.maxExpirationSeconds", seconds, detail))
    paths = [key for key in ("credentialBundlePath", "keyPath", "certificateChainPath") if spec.get(key)]
    for key in paths:
        errors += local_non_reserved(spec[key], f"{here}.{key}") + _take(spec[key], spec[key], path, taken)
    if not paths:
        detail = "specify at least one of credentialBundlePath, keyPath, and certificateChainPath"
        errors.append(required(here, detail))
    return errors
