"""ResourceClaims, their templates, DeviceClasses and ResourceSlices.

Source: pkg/apis/resource/validation/validation.go, v1.36.
Differs: CEL expressions are not compiled here, and counters, binding conditions and configurations are not looked into.
"""

from collections.abc import Callable, Mapping, Sequence

from skysail.api.raw import Raw
from skysail.apiserver.contract import duplicate, forbidden, invalid, not_supported, required, too_long
from skysail.apiserver.validation.field import Errors, at, immutable, same, too_many
from skysail.apiserver.validation.go_form import go_form
from skysail.apiserver.validation.metadata import look_again
from skysail.apiserver.validation.names import dns_label, dns_subdomain
from skysail.apiserver.validation.node_selectors import node_selector
from skysail.apiserver.validation.resources import is_extended
from skysail.apiserver.validation.volumes import csi_driver_name

_MOST_REQUESTS, _MOST_SELECTORS, _MOST_SUBREQUESTS, _MOST_CONSUMERS, _MOST_DEVICES = 32, 32, 8, 256, 128
_LONGEST_POOL, _LONGEST_EXPRESSION = 253, 10 * 1024
_ONE_KIND = "exactly one of `exactly` or `firstAvailable` is required"
_REFERENCE = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)  # fmt: skip
_ONE_PLACE = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
_SEVERAL = "{}, but multiple fields are set"
_MODES = ("All", "ExactCount")
_VALUES = ("bool", "int", "string", "version", "bools", "ints", "strings", "versions")
Names = Mapping[str, Sequence[str]]


def resource_claim(obj: Raw) -> Errors:
    """Check a new ResourceClaim."""
    return _device_claim((obj.get("spec") or {}).get("devices") or {}, "spec.devices")


def resource_claim_template(obj: Raw) -> Errors:
    """Check a new ResourceClaimTemplate."""
    spec = (obj.get("spec") or {}).get("spec") or {}
    return _device_claim(spec.get("devices") or {}, "spec.spec.devices")


def _device_claim(claim: Raw, path: str) -> Errors:
    requests = claim.get("requests") or ()
    names = _request_names(claim)
    errors = _unique(requests, f"{path}.requests", _MOST_REQUESTS, "name")
    for index, request in enumerate(requests):
        errors += _request(request, f"{path}.requests[{index}]")
    for index, constraint in enumerate(claim.get("constraints") or ()):
        here = f"{path}.constraints[{index}]"
        errors += _references(constraint.get("requests") or (), names, f"{here}.requests")
        if constraint.get("matchAttribute") is None and constraint.get("distinctAttribute") is None:
            errors.append(required(f"{here}.matchAttribute"))
    for index, config in enumerate(claim.get("config") or ()):
        here = f"{path}.config[{index}]"
        errors += _references(config.get("requests") or (), names, f"{here}.requests")
        errors += _configuration(config, here)
    return errors


def _request_names(claim: Raw) -> Names:
    return {
        request.get("name") or "": [item.get("name") or "" for item in request.get("firstAvailable") or ()]
        for request in claim.get("requests") or ()
    }


def _unique(items: Sequence[Raw], path: str, most: int, key: str) -> Errors:
    errors = [too_many(path, len(items), most)] if len(items) > most else []
    seen: set[str] = set()
    for index, item in enumerate(items):
        name = item.get(key) or ""
        if name in seen:
            errors.append(duplicate(f"{path}[{index}]", name))
        seen.add(name)
    return errors


def _request(request: Raw, path: str) -> Errors:
    name, exactly, choices = request.get("name") or "", request.get("exactly"), request.get("firstAvailable") or ()
    errors = at(f"{path}.name", dns_label(name), name)
    if exactly is None and not choices:
        return [*errors, required(path, _ONE_KIND)]
    if exactly is not None and choices:
        return [*errors, invalid(path, None, _SEVERAL.format(_ONE_KIND))]
    if exactly is not None:
        return errors + _device_request(exactly, f"{path}.exactly")
    errors += _unique(choices, f"{path}.firstAvailable", _MOST_SUBREQUESTS, "name")
    for index, choice in enumerate(choices):
        here, own = f"{path}.firstAvailable[{index}]", choice.get("name") or ""
        errors += at(f"{here}.name", dns_label(own), own) + _device_request(choice, here)
    return errors


def _device_request(request: Raw, path: str) -> Errors:
    name, mode, count = request.get("deviceClassName") or "", request.get("allocationMode"), request.get("count") or 0
    here = f"{path}.deviceClassName"
    errors = at(here, dns_subdomain(name), name) if name else [required(here)]
    errors += _selectors(request.get("selectors") or (), f"{path}.selectors")
    if mode == "All" and count:
        errors.append(invalid(f"{path}.count", count, "must not be specified when allocationMode is 'All'"))
    elif mode == "ExactCount" and count <= 0:
        errors.append(invalid(f"{path}.count", count, "must be greater than zero"))
    elif mode not in _MODES:
        errors.append(not_supported(f"{path}.allocationMode", mode or "", _MODES))
    return errors


def _selectors(items: Sequence[Raw], path: str) -> Errors:
    errors = [too_many(path, len(items), _MOST_SELECTORS)] if len(items) > _MOST_SELECTORS else []
    for index, item in enumerate(items):
        here, cel = f"{path}[{index}].cel", item.get("cel")
        if cel is None:
            errors.append(required(here))
        elif len((cel.get("expression") or "").encode()) > _LONGEST_EXPRESSION:
            errors.append(too_long(f"{here}.expression", _LONGEST_EXPRESSION))
    return errors


def _references(items: Sequence[str], names: Names, path: str) -> Errors:
    errors: Errors = []
    for index, item in enumerate(items):
        here = f"{path}[{index}]"
        errors += _reference(item, names, here)
        if item in items[:index]:
            errors.append(duplicate(here, item))
    return errors


def _reference(name: str, names: Names, path: str) -> Errors:
    head, *rest = name.split("/")
    if len(rest) > 1:
        return [invalid(path, name, _REFERENCE)]
    errors = [error for part in (head, *rest) for error in at(path, dns_label(part), part)]
    if head not in names or (rest and rest[0] not in names[head]):
        errors.append(invalid(path, name, _REFERENCE))
    return errors


def _configuration(config: Raw, path: str) -> Errors:
    opaque = config.get("opaque")
    if opaque is None:
        return [required(f"{path}.opaque")]
    errors = csi_driver_name(opaque.get("driver") or "", f"{path}.opaque.driver")
    return errors if opaque.get("parameters") is not None else [*errors, required(f"{path}.opaque.parameters")]


def _spec_is_fixed(form: str) -> Callable[[Raw, Raw], Errors]:
    def check(new: Raw, old: Raw) -> Errors:
        if same(new.get("spec"), old.get("spec")):
            return []
        return immutable(go_form(form, new.get("spec")), None, "spec")

    return check


resource_claim_template_update = _spec_is_fixed("ResourceClaimTemplateSpec")
_claim_is_fixed = _spec_is_fixed("ResourceClaimSpec")


def resource_claim_update(new: Raw, old: Raw) -> Errors:
    """Check that what a claim asks for stays."""
    return look_again(new, dns_subdomain) + _claim_is_fixed(new, old)


def resource_claim_status_update(new: Raw, old: Raw) -> Errors:
    """Check what the scheduler and drivers note: an allocation comes and goes as a whole, around its users."""
    status, before = new.get("status") or {}, old.get("status") or {}
    users, path = status.get("reservedFor") or (), "status.reservedFor"
    errors = _unique(users, path, _MOST_CONSUMERS, "uid")
    for index, user in enumerate(users):
        errors += [required(f"{path}[{index}].{key}") for key in ("resource", "name", "uid") if not user.get(key)]
    allocation, known = status.get("allocation"), before.get("allocation")
    if users and allocation is None:
        errors.append(forbidden(path, "may not be specified when `allocated` is not set"))
    elif new["metadata"].get("deletionTimestamp") and any(
        user not in (before.get("reservedFor") or ()) for user in users
    ):
        detail = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
        errors.append(forbidden(path, detail))
    if allocation is None:
        return errors
    if known is not None:
        if not same(allocation, known):
            errors += immutable(go_form("AllocationResult", allocation), None, "status.allocation")
        return errors
    names = _request_names((new.get("spec") or {}).get("devices") or {})
    for index, result in enumerate((allocation.get("devices") or {}).get("results") or ()):
        errors += _result(result, names, f"status.allocation.devices.results[{index}]")
    if allocation.get("nodeSelector") is not None:
        errors += node_selector(allocation["nodeSelector"], "status.allocation.nodeSelector")
    return errors


def _result(result: Raw, names: Names, path: str) -> Errors:
    device = result.get("device") or ""
    errors = _reference(result.get("request") or "", names, f"{path}.request")
    errors += csi_driver_name(result.get("driver") or "", f"{path}.driver")
    errors += _pool_name(result.get("pool") or "", f"{path}.pool")
    return errors + at(f"{path}.device", dns_label(device), device)


def _pool_name(name: str, path: str) -> Errors:
    if not name:
        return [required(path)]
    errors = [too_long(path, _LONGEST_POOL)] if len(name) > _LONGEST_POOL else []
    return errors + [error for part in name.split("/") for error in at(path, dns_subdomain(part), part)]


def device_class(obj: Raw) -> Errors:
    """Check a DeviceClass."""
    spec = obj.get("spec") or {}
    errors = _selectors(spec.get("selectors") or (), "spec.selectors")
    for index, config in enumerate(spec.get("config") or ()):
        errors += _configuration(config, f"spec.config[{index}]")
    name = spec.get("extendedResourceName")
    if name is not None and not is_extended(name):
        errors.append(invalid("spec.extendedResourceName", name, "must be a valid extended resource name"))
    return errors


def resource_slice(obj: Raw) -> Errors:
    """Check a ResourceSlice."""
    spec = obj.get("spec") or {}
    pool, devices = spec.get("pool") or {}, spec.get("devices") or ()
    errors = csi_driver_name(spec.get("driver") or "", "spec.driver") + _pool(pool) + _place(spec)
    if spec.get("sharedCounters") is not None and spec.get("devices") is not None:
        errors.append(invalid("spec", "", "only one of `sharedCounters` or `devices` is allowed"))
    errors += _unique(devices, "spec.devices", _MOST_DEVICES, "name")
    for index, device in enumerate(devices):
        path, name = f"spec.devices[{index}]", device.get("name") or ""
        errors += at(f"{path}.name", dns_label(name), name)
        for key, attribute in (device.get("attributes") or {}).items():
            here, given = f"{path}.attributes[{key}]", [part for part in _VALUES if attribute.get(part) is not None]
            if not given:
                errors.append(required(here, "exactly one value must be specified"))
            elif len(given) > 1:
                errors.append(invalid(here, attribute, "exactly one value must be specified"))
    return errors


def _pool(pool: Raw) -> Errors:
    count, generation = pool.get("resourceSliceCount") or 0, pool.get("generation") or 0
    errors = _pool_name(pool.get("name") or "", "spec.pool.name")
    if count <= 0:
        errors.append(invalid("spec.pool.resourceSliceCount", count, "must be greater than zero"))
    if generation < 0:
        errors.append(invalid("spec.pool.generation", generation, "must be greater than or equal to zero"))
    return errors


def _place(spec: Raw) -> Errors:
    """Check that a slice says in one way which nodes reach its devices."""
    errors: Errors = []
    given: list[str] = []
    name, selector = spec.get("nodeName"), spec.get("nodeSelector")
    if name:
        given.append("`nodeName`")
        errors += at("spec.nodeName", dns_subdomain(name), name)
    elif name is not None:
        errors.append(invalid("spec.nodeName", name, "must be either unset or set to a non-empty string"))
    if selector is not None:
        given.append("`nodeSelector`")
        errors += node_selector(selector, "spec.nodeSelector")
        terms = selector.get("nodeSelectorTerms") or []
        if len(terms) != 1:
            shown = go_form("[]NodeSelectorTerm", terms or None)
            here = "spec.nodeSelector.nodeSelectorTerms"
            errors.append(invalid(here, shown, "must have exactly one node selector term"))
    for key in ("allNodes", "perDeviceNodeSelection"):
        if spec.get(key):
            given.append(f"`{key}`")
        elif spec.get(key) is not None:
            errors.append(invalid(f"spec.{key}", False, "must be either unset or set to true"))
    if not given:
        errors.append(required("spec", _ONE_PLACE))
    elif len(given) > 1:
        errors.append(invalid("spec", f"{{{', '.join(given)}}}", _SEVERAL.format(_ONE_PLACE)))
    return errors


def resource_slice_update(new: Raw, old: Raw) -> Errors:
    """Check that a slice stays with its driver, pool and node."""
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    wanted, known = ((block.get("pool") or {}).get("name") or "" for block in (spec, before))
    errors = immutable(wanted, known, "spec.pool.name")
    errors += immutable(spec.get("driver") or "", before.get("driver") or "", "spec.driver")
    return errors + immutable(spec.get("nodeName"), before.get("nodeName"), "spec.nodeName")
