"""What may change in the addresses of a Service: a second one may come and go.

Source: pkg/apis/core/validation/validation.go validateUpgradeDowngradeClusterIPs, v1.36.
"""

from skysail.api.raw import Raw
from skysail.apiserver.contract import forbidden, invalid
from skysail.apiserver.validation.field import Errors, at
from skysail.apiserver.validation.names import qualified_name

_FIXED = "may not change once set"
_RELEASING = "must be set to 'SingleStack' when releasing the secondary {}"


def cluster_ips_update(new: Raw, old: Raw, both_headless: bool) -> Errors:
    """Check the change of cluster addresses."""
    ips, before = new.get("clusterIPs") or [], old.get("clusterIPs") or []
    path = "spec.clusterIPs"
    if both_headless:
        return []
    if len(ips) == len(before):
        changed = [index for index, ip in enumerate(before) if ip != ips[index]]
        return [invalid(f"{path}[{index}]", ips, _FIXED) for index in changed]
    errors: Errors = []
    if not ips:
        errors.append(invalid(f"{path}[0]", ips or None, "primary clusterIP can not be unset"))
    if ips and before and ips[0] != before[0]:
        errors.append(invalid(f"{path}[0]", ips, _FIXED))
    if len(before) > len(ips) == 1:
        errors += _single_stack(new, "clusterIP")
    return errors


def _single_stack(spec: Raw, what: str) -> Errors:
    policy = spec.get("ipFamilyPolicy")
    if policy == "SingleStack":
        return []
    return [invalid("spec.ipFamilyPolicy", policy, _RELEASING.format(what))]


def families_update(new: Raw, old: Raw) -> Errors:
    """Check the change of address families."""
    families, before = new.get("ipFamilies") or [], old.get("ipFamilies") or []
    path = "spec.ipFamilies[0]"
    if len(families) == len(before):
        changed = sum(one != other for one, other in zip(families, before, strict=True))
        return [invalid(path, families, _FIXED)] * changed
    errors: Errors = []
    if len(before) > len(families) and not new.get("clusterIPs"):
        errors.append(invalid(path, families or None, "primary ipFamily can not be unset"))
    if families and before and families[0] != before[0]:
        errors.append(invalid(path, new.get("clusterIPs"), _FIXED))
    if len(before) > len(families) == 1:
        errors += _single_stack(new, "ipFamily")
    return errors


def load_balancer_class(spec: Raw, old: Raw | None) -> Errors:
    """Check the class of a load balancer, and (with `old`) that it stays."""
    name, path = spec.get("loadBalancerClass"), "spec.loadBalancerClass"
    errors: Errors = []
    before = old or {}
    stays = spec.get("type") == before.get("type") == "LoadBalancer"
    if stays and name != before.get("loadBalancerClass"):
        errors.append(invalid(path, name, _FIXED))
    if name is None:
        return errors
    if spec.get("type") == "LoadBalancer":
        return errors + at(path, qualified_name(name), name)
    return [*errors, forbidden(path, "may only be used when `type` is 'LoadBalancer'")]
