"""Nodes: taints, address ranges, amounts, and what may be set only once.

Source: pkg/apis/core/validation/validation.go ValidateNode, ValidateNodeUpdate, v1.36.
"""

import re

from skysail.api.raw import Raw
from skysail.apiserver.contract import FieldError, duplicate, forbidden, invalid, quote
from skysail.apiserver.validation.field import Errors, at, positive
from skysail.apiserver.validation.metadata import look_again
from skysail.apiserver.validation.names import cidr, dns_subdomain, max_length
from skysail.apiserver.validation.placement import taints
from skysail.apiserver.validation.resources import amount

_ONE_PER_FAMILY = "may specify no more than one CIDR for each IP family"
_NAME_LIMIT = 253
_SET_ONCE = 'node updates may not change {} except from "" to valid'
_FEATURE_WORDS = (
    "must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or "
    "MyFeature/mySubFeature), and contain only alphanumeric characters and slashes"
)
_feature_re = re.compile("[A-Z][a-zA-Z0-9]*(/[a-zA-Z][a-zA-Z0-9]*)*")


def node(obj: Raw) -> Errors:
    """Check a Node as it is created."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    errors = taints(spec.get("taints") or (), "metadata.taints")
    errors += _amounts(status)
    swap = ((status.get("nodeInfo") or {}).get("swap") or {}).get("capacity")
    errors += positive(swap, "metadata.nodeSwapStatus.capacity")
    errors += _features(status)
    ranges = spec.get("podCIDRs") or ()
    for index, value in enumerate(ranges):
        errors += at(f"spec.podCIDRs[{index}]", cidr(value), value)
    if len(ranges) > 1 and (len(ranges) > 2 or len({":" in value for value in ranges}) == 1):
        errors.append(invalid("spec.podCIDRs", ranges, _ONE_PER_FAMILY))
    return errors


def _amounts(status: Raw) -> Errors:
    errors: Errors = []
    for key in ("capacity", "allocatable"):
        for name, value in (status.get(key) or {}).items():
            errors += amount(name, value, f"status.{key}.{name}")
    return errors


def _features(status: Raw) -> Errors:
    """Check declared features: names, sorted, each once."""
    features = status.get("declaredFeatures") or ()
    errors: Errors = []
    for index, name in enumerate(features):
        here = f"status.declaredFeatures[{index}]"
        if len(name) > _NAME_LIMIT:
            errors.append(invalid(here, name, f"invalid feature name {quote(name)}: {max_length(_NAME_LIMIT)}"))
        elif not _feature_re.fullmatch(name):
            errors.append(invalid(here, name, f"invalid feature name {quote(name)}: {_FEATURE_WORDS}"))
        before = features[index - 1] if index else None
        if before == name:
            errors.append(duplicate(here, name))
        elif before is not None and before > name:
            errors.append(invalid(here, name, "list must be sorted alphabetically"))
    return errors


def node_update(new: Raw, old: Raw) -> Errors:
    """Check a change through the main endpoint; upstream looks at the new state twice."""
    return look_again(new, dns_subdomain) + node(new) + node_status_update(new, old)


def node_status_update(new: Raw, old: Raw) -> Errors:
    """Check a change through either endpoint."""
    spec, before, status = new.get("spec") or {}, old.get("spec") or {}, new.get("status") or {}
    errors = _amounts(status) + _features(status)
    seen: list[Raw] = []
    for index, address in enumerate(status.get("addresses") or ()):
        if address in seen:
            shown = {"Type": address.get("type") or "", "Address": address.get("address") or ""}
            errors.append(FieldError(f"status.addresses[{index}]", "Duplicate", shown))
        seen.append(address)
    known, wanted = before.get("podCIDRs") or (), spec.get("podCIDRs") or ()
    if known:
        changes = (
            sum(one != other for one, other in zip(known, wanted, strict=True)) if len(known) == len(wanted) else 1
        )
        errors += [forbidden("spec.podCIDRs", _SET_ONCE.format("podCIDR"))] * changes
    if before.get("providerID") and before["providerID"] != spec.get("providerID"):
        errors.append(forbidden("spec.providerID", _SET_ONCE.format("providerID")))
    errors += taints(spec.get("taints") or (), "metadata.taints")
    if (spec.get("externalID") or "") != (before.get("externalID") or ""):
        errors.append(forbidden("spec.externalID", "may not be updated"))
    return errors
