"""The downward API: fields and resources of the pod itself, in files and variables.

Source: pkg/apis/core/validation/validation.go validateObjectFieldSelector,
    validateContainerResourceFieldSelector, v1.36.
"""

import re
from collections.abc import Collection

from skysail.api.quantity import parse_quantity
from skysail.api.raw import Raw
from skysail.apiserver.contract import invalid, not_supported, required
from skysail.apiserver.validation.field import Errors, at
from skysail.apiserver.validation.names import qualified_name
from skysail.apiserver.validation.paths import file_mode, local_non_reserved

ENV_FIELDS = (
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName", "status.hostIP",
    "status.hostIPs", "status.podIP", "status.podIPs",
)  # fmt: skip
FILE_FIELDS = ("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid")
_RESOURCES = (
    "limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu", "requests.ephemeral-storage",
    "requests.memory",
)  # fmt: skip
_HUGE = ("limits.hugepages-", "requests.hugepages-")
_KNOWN = frozenset(
    {
        "metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid",
        "spec.nodeName", "spec.restartPolicy", "spec.serviceAccountName", "spec.schedulerName", "status.phase",
        "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs", "spec.host",
    }
)  # fmt: skip
_SUBSCRIPT = re.compile(r"(.+?)\['(.*)'\]")
_SIZES = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
_SIZE_WORDS = f"only divisor's values {', '.join(_SIZES)} are supported with the {{}} resource"


def field_selector(reference: Raw, allowed: Collection[str], path: str) -> Errors:
    """Check a reference to a field of the pod."""
    version, field = reference.get("apiVersion") or "", reference.get("fieldPath") or ""
    if not version:
        return [required(f"{path}.apiVersion")]
    if not field:
        return [required(f"{path}.fieldPath")]
    subscripted = _SUBSCRIPT.fullmatch(field)
    if subscripted is not None:
        base, key = subscripted.groups()
        if version == "v1" and base == "metadata.annotations":
            return at(path, qualified_name(key.lower()), key.lower())
        if version == "v1" and base == "metadata.labels":
            return at(path, qualified_name(key), key)
    fault = ""
    if version != "v1":
        fault = f"unsupported pod version: {version}"
    elif subscripted is not None:
        fault = f'field label "{subscripted[1]}" does not support subscript'
    elif field not in _KNOWN:
        fault = f"field label not supported: {field}"
    if fault:
        return [invalid(f"{path}.fieldPath", field, f"error converting fieldPath: {fault}")]
    if field not in allowed:
        return [not_supported(f"{path}.fieldPath", field, sorted(allowed))]
    return []


def resource_selector(reference: Raw, path: str, *, in_file: bool) -> Errors:
    """Check a reference to a limit or request of a container."""
    errors: Errors = []
    resource = reference.get("resource") or ""
    if in_file and not reference.get("containerName"):
        errors.append(required(f"{path}.containerName"))
    elif not resource:
        errors.append(required(f"{path}.resource"))
    elif resource not in _RESOURCES and not resource.startswith(_HUGE):
        errors.append(not_supported(f"{path}.resource", resource, _RESOURCES))
    return errors + _divisor(resource, reference.get("divisor") or "0", path)


def _divisor(resource: str, text: object, path: str) -> Errors:
    divisor = parse_quantity(str(text))
    if not divisor.nano:
        return []
    detail = ""
    if resource in ("limits.cpu", "requests.cpu"):
        if str(divisor) not in ("1m", "1"):
            detail = "only divisor's values 1m and 1 are supported with the cpu resource"
    elif str(divisor) not in _SIZES:
        if resource.endswith(".memory"):
            detail = _SIZE_WORDS.format("memory")
        elif resource.endswith(".ephemeral-storage"):
            detail = _SIZE_WORDS.format("local ephemeral storage")
        elif resource.startswith(_HUGE):
            detail = _SIZE_WORDS.format("hugepages")
    return [invalid(f"{path}.divisor", resource, detail)] if detail else []


def downward_file(item: Raw, path: str) -> Errors:
    """Check one file of a downward volume."""
    errors = [] if item.get("path") else [required(f"{path}.path")]
    errors += local_non_reserved(item.get("path") or "", f"{path}.path")
    reference, resource = item.get("fieldRef"), item.get("resourceFieldRef")
    if reference is not None:
        errors += field_selector(reference, FILE_FIELDS, f"{path}.fieldRef")
        if resource is not None:
            detail = "fieldRef and resourceFieldRef can not be specified simultaneously"
            errors.append(invalid(path, "resource", detail))
    elif resource is not None:
        errors += resource_selector(resource, f"{path}.resourceFieldRef", in_file=True)
    else:
        errors.append(required(path, "one of fieldRef and resourceFieldRef is required"))
    return errors + file_mode(item.get("mode"), f"{path}.mode")
