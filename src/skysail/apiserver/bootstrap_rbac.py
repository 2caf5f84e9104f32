"""The cluster roles an RBAC server starts with: enough for people to be given `view`, `edit` or `admin`, and discovery.

Differs: upstream's roles for single controllers are not made; `view`, `edit` and `admin` are written out from the table
    of resources instead of being aggregated by a controller.

Source: plugin/pkg/auth/authorizer/rbac/bootstrappolicy, v1.36.
"""

from collections.abc import Iterator, Sequence

from skysail.api.raw import Raw
from skysail.apiserver.authentication import AUTHENTICATED
from skysail.apiserver.authorization import MASTERS, RBAC_GROUP
from skysail.apiserver.contract import GroupResource
from skysail.apiserver.schema import Schema

_ROLES = GroupResource(RBAC_GROUP, "clusterroles")
_BINDINGS = GroupResource(RBAC_GROUP, "clusterrolebindings")
_UNAUTHENTICATED = "system:unauthenticated"
_READ = ["get", "list", "watch"]
_WRITE = ["create", "delete", "deletecollection", "patch", "update"]
_PUBLIC = ["/healthz", "/livez", "/readyz", "/version", "/version/"]
_DISCOVERY = ["/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*", *_PUBLIC]
_HIDDEN_FROM_VIEWERS = ("secrets", "roles", "rolebindings")
_ONLY_ADMINS = ("roles", "rolebindings", "localsubjectaccessreviews")

Wanted = tuple[GroupResource, str, Raw]


def rbac_documents(schema: Schema) -> Iterator[Wanted]:
    """Roles and bindings, as `(resource, namespace, object)`."""
    everything = [
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
        {"nonResourceURLs": ["*"], "verbs": ["*"]},
    ]
    yield _role("cluster-admin", everything)
    yield _binding("cluster-admin", MASTERS)
    yield _role("system:discovery", [{"nonResourceURLs": _DISCOVERY, "verbs": ["get"]}])
    yield _binding("system:discovery", AUTHENTICATED)
    yield _role("system:public-info-viewer", [{"nonResourceURLs": _PUBLIC, "verbs": ["get"]}])
    yield _binding("system:public-info-viewer", AUTHENTICATED, _UNAUTHENTICATED)
    reviews = ["selfsubjectaccessreviews", "selfsubjectrulesreviews"]
    basic = [
        {"apiGroups": ["authorization.k8s.io"], "resources": reviews, "verbs": ["create"]},
        {"apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"], "verbs": ["create"]},
    ]
    yield _role("system:basic-user", basic)
    yield _binding("system:basic-user", AUTHENTICATED)
    yield _role("view", _namespaced(schema, _READ, hidden=_HIDDEN_FROM_VIEWERS))
    yield _role("edit", _namespaced(schema, [*_READ, *_WRITE], hidden=_ONLY_ADMINS))
    yield _role("admin", _namespaced(schema, [*_READ, *_WRITE], hidden=()))


def _namespaced(schema: Schema, verbs: Sequence[str], hidden: Sequence[str]) -> list[Raw]:
    """A rule per group over everything that lives in namespaces."""
    groups: dict[str, list[str]] = {}
    for row in schema.builtin:
        if row.namespaced and row.resource not in hidden:
            names = groups.setdefault(row.group, [])
            names += [row.resource, *(f"{row.resource}/{name}" for name in row.subresources)]
    return [
        {"apiGroups": [group], "resources": sorted(set(names)), "verbs": list(verbs)}
        for group, names in sorted(groups.items())
    ]


def _role(name: str, rules: list[Raw]) -> Wanted:
    return _ROLES, "", {"metadata": _metadata(name), "rules": rules}


def _binding(name: str, *groups: str) -> Wanted:
    subjects = [{"kind": "Group", "apiGroup": RBAC_GROUP, "name": group} for group in groups]
    role = {"apiGroup": RBAC_GROUP, "kind": "ClusterRole", "name": name}
    return _BINDINGS, "", {"metadata": _metadata(name), "roleRef": role, "subjects": subjects}


def _metadata(name: str) -> Raw:
    return {
        "name": name,
        "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
        "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
    }
