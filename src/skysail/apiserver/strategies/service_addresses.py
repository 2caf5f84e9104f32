"""The families and cluster addresses of a Service, on a cluster of one family.

Source: pkg/registry/core/service/storage/alloc.go, v1.36.
"""

from skysail.api.raw import Raw
from skysail.apiserver.contract import RequestContext, invalid
from skysail.apiserver.status import internal_error, invalid_object
from skysail.apiserver.strategies.service_taken import Taken
from skysail.apiserver.validation.field import Errors
from skysail.apiserver.validation.services import related_fields

_POLICY, _IPS, _FAMILIES = "spec.ipFamilyPolicy", "spec.clusterIPs", "spec.ipFamilies"
_NEEDS_TWO = "must be 'RequireDualStack' or 'PreferDualStack' when multiple {} are specified"
_RELEASE = "must be 'SingleStack' to release the secondary {}"


def allocate_addresses(obj: Raw, old: Raw | None, taken: Taken, ctx: RequestContext) -> None:
    """Fill in the families and the cluster address of a Service.

    Raises:
        InternalError: The range is used up.
        Invalid: The fields contradict one another, or the address cannot be had.
    """
    spec = obj["spec"]
    if spec.get("type") == "ExternalName":
        return
    before: Raw = (old or {}).get("spec") or {}
    family = f"IPv{taken.network.version}"
    if not spec.get("ipFamilyPolicy"):
        spec["ipFamilyPolicy"] = before.get("ipFamilyPolicy") or _default_policy(spec)
    _refuse(obj, related_fields(spec, before.get("clusterIPs") or ()))
    if old is not None:
        _refuse(obj, _released(spec, before))
    _refuse(obj, _too_many(spec) + _infer_families(spec, family))
    if _is_bare(spec):
        _bare_families(spec, family)
    else:
        _refuse(obj, _unknown_families(spec, family))
        spec["ipFamilies"] = spec.get("ipFamilies") or [family]
    if spec.get("clusterIPs") == ["None"]:
        return
    if old is None or before.get("type") == "ExternalName":
        _allocate(obj, taken)


def _refuse(obj: Raw, errors: Errors) -> None:
    if errors:
        raise invalid_object("", "Service", obj["metadata"].get("name") or "", errors)


def _is_bare(spec: Raw) -> bool:
    """Headless, and without a selector: its endpoints come from elsewhere and may be of any family."""
    return spec.get("clusterIP") == "None" and not spec.get("selector")


def _default_policy(spec: Raw) -> str:
    return "RequireDualStack" if _is_bare(spec) else "SingleStack"


def _released(spec: Raw, before: Raw) -> Errors:
    """Giving up the second address or family is said by the policy."""
    errors: Errors = []
    for key, what in (("clusterIPs", "cluster IP"), ("ipFamilies", "IP family")):
        wanted, known = spec.get(key) or [], before.get(key) or []
        if spec["ipFamilyPolicy"] == "SingleStack" and wanted == known and len(wanted) > 1:
            spec[key] = wanted[:1]
        elif spec["ipFamilyPolicy"] != "SingleStack" and 0 < len(wanted) < len(known):
            errors.append(invalid(_POLICY, spec["ipFamilyPolicy"], _RELEASE.format(what)))
    return errors


def _too_many(spec: Raw) -> Errors:
    if spec["ipFamilyPolicy"] != "SingleStack":
        return []
    return [
        invalid(_POLICY, "SingleStack", _NEEDS_TWO.format(what))
        for key, what in (("clusterIPs", "cluster IPs"), ("ipFamilies", "IP families"))
        if len(spec.get(key) or ()) == 2
    ]


def _infer_families(spec: Raw, family: str) -> Errors:
    """Families follow from the addresses, where those were named."""
    errors: Errors = []
    ips = spec.get("clusterIPs") or []
    for index, ip in enumerate(ips):
        if ip == "None":
            break
        known = "IPv6" if ":" in ip else "IPv4"
        if index < len(spec.get("ipFamilies") or ()):
            continue
        if known != family:
            errors.append(invalid(f"{_IPS}[{index}]", ips, f"{known} is not configured on this cluster"))
        else:
            spec["ipFamilies"] = [*(spec.get("ipFamilies") or ()), known]
    return errors


def _bare_families(spec: Raw, family: str) -> None:
    families = spec.get("ipFamilies") or [family]
    if len(families) < 2 and spec["ipFamilyPolicy"] != "SingleStack":
        families = [families[0], "IPv6" if families[0] == "IPv4" else "IPv4"]
    spec["ipFamilies"] = families


def _unknown_families(spec: Raw, family: str) -> Errors:
    errors: Errors = []
    if spec["ipFamilyPolicy"] == "RequireDualStack":
        detail = "this cluster is not configured for dual-stack services"
        errors.append(invalid(_POLICY, "RequireDualStack", detail))
    return errors + [
        invalid(f"{_FAMILIES}[{index}]", wanted, "not configured on this cluster")
        for index, wanted in enumerate(spec.get("ipFamilies") or ())
        if wanted != family
    ]


def _allocate(obj: Raw, taken: Taken) -> None:
    spec = obj["spec"]
    wanted = (spec.get("clusterIPs") or [""])[0]
    if wanted:
        fault = taken.address_fault(wanted)
        if fault:
            _refuse(obj, [invalid(_IPS, spec["clusterIPs"], f"failed to allocate IP {wanted}: {fault}")])
        return
    address = taken.free_address()
    if address is None:
        name = obj["metadata"].get("name") or ""
        raise internal_error(f'failed to allocate a serviceIP for Service "{name}": range is full')
    spec["clusterIP"], spec["clusterIPs"] = address, [address]
