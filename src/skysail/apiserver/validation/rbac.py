"""Roles and the bindings of them.

Source: pkg/apis/rbac/validation/validation.go, v1.36.
"""

from skysail.api.raw import Raw
from skysail.apiserver.contract import invalid, not_supported, required
from skysail.apiserver.validation.field import Errors, at
from skysail.apiserver.validation.metadata import label_selector, look_again
from skysail.apiserver.validation.names import dns_subdomain, path_segment

GROUP = "rbac.authorization.k8s.io"
_KINDS = ("ServiceAccount", "User", "Group")
_BOTH = "rules cannot apply to both regular resources and non-resource URLs"


def role(obj: Raw) -> Errors:
    """Check a Role."""
    return _rules(obj, namespaced=True)


def cluster_role(obj: Raw) -> Errors:
    """Check a ClusterRole."""
    errors = _rules(obj, namespaced=False)
    rule, path = obj.get("aggregationRule"), "aggregationRule.clusterRoleSelectors"
    if rule is None:
        return errors
    selectors = rule.get("clusterRoleSelectors") or ()
    if not selectors:
        errors.append(required(path, "at least one clusterRoleSelector required if aggregationRule is non-nil"))
    for index, selector in enumerate(selectors):
        errors += label_selector(selector, f"{path}[{index}]")
    return errors


def _rules(obj: Raw, *, namespaced: bool) -> Errors:
    errors: Errors = []
    for index, rule in enumerate(obj.get("rules") or ()):
        path, urls = f"rules[{index}]", rule.get("nonResourceURLs") or []
        if not rule.get("verbs"):
            errors.append(required(f"{path}.verbs", "verbs must contain at least one value"))
        if urls:
            here = f"{path}.nonResourceURLs"
            if namespaced:
                errors.append(invalid(here, urls, "namespaced rules cannot apply to non-resource URLs"))
            if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
                errors.append(invalid(here, urls, _BOTH))
            continue
        if not rule.get("apiGroups"):
            errors.append(required(f"{path}.apiGroups", "resource rules must supply at least one api group"))
        if not rule.get("resources"):
            errors.append(required(f"{path}.resources", "resource rules must supply at least one resource"))
    return errors


def role_update(new: Raw, old: Raw) -> Errors:
    """Check a changed Role."""
    return look_again(new, path_segment) + role(new)


def cluster_role_update(new: Raw, old: Raw) -> Errors:
    """Check a changed ClusterRole."""
    return look_again(new, path_segment) + cluster_role(new)


def role_binding(obj: Raw) -> Errors:
    """Check a RoleBinding."""
    return _binding(obj, ("Role", "ClusterRole"), namespaced=True)


def cluster_role_binding(obj: Raw) -> Errors:
    """Check a ClusterRoleBinding."""
    return _binding(obj, ("ClusterRole",), namespaced=False)


def _binding(obj: Raw, kinds: tuple[str, ...], *, namespaced: bool) -> Errors:
    reference = obj.get("roleRef") or {}
    group, kind, name = (reference.get(key) or "" for key in ("apiGroup", "kind", "name"))
    errors: Errors = []
    if group != GROUP:
        errors.append(not_supported("roleRef.apiGroup", group, (GROUP,)))
    if kind not in kinds:
        errors.append(not_supported("roleRef.kind", kind, kinds))
    errors += at("roleRef.name", path_segment(name), name) if name else [required("roleRef.name")]
    for index, subject in enumerate(obj.get("subjects") or ()):
        errors += _subject(subject, f"subjects[{index}]", namespaced)
    return errors


def _subject(subject: Raw, path: str, namespaced: bool) -> Errors:
    name, kind, group = (subject.get(key) or "" for key in ("name", "kind", "apiGroup"))
    errors = [] if name else [required(f"{path}.name")]
    if kind == "ServiceAccount":
        if name:
            errors += at(f"{path}.name", dns_subdomain(name), name)
        if group:
            errors.append(not_supported(f"{path}.apiGroup", group, ("",)))
        if not namespaced and not subject.get("namespace"):
            errors.append(required(f"{path}.namespace"))
    elif kind not in _KINDS:
        errors.append(not_supported(f"{path}.kind", kind, _KINDS))
    elif group != GROUP:
        errors.append(not_supported(f"{path}.apiGroup", group, (GROUP,)))
    return errors


def role_binding_update(new: Raw, old: Raw) -> Errors:
    """Check a changed RoleBinding: its role stays."""
    return look_again(new, path_segment) + role_binding(new) + _same_role(new, old)


def cluster_role_binding_update(new: Raw, old: Raw) -> Errors:
    """Check a changed ClusterRoleBinding: its role stays."""
    return look_again(new, path_segment) + cluster_role_binding(new) + _same_role(new, old)


def _same_role(new: Raw, old: Raw) -> Errors:
    wanted, before = (
        {go: (obj.get("roleRef") or {}).get(wire) or "" for go, wire in
         (("APIGroup", "apiGroup"), ("Kind", "kind"), ("Name", "name"))}
        for obj in (new, old)
    )  # fmt: skip
    return [] if wanted == before else [invalid("roleRef", wanted, "cannot change roleRef")]
