"""From a path and a method to what is meant: a resource, in a namespace, by name, its subresource, and the verb.

    /api/v1/namespaces/shop/pods/web/status   GET  ->  get pods/status "web" in "shop"
    /apis/apps/v1/deployments                 GET  ->  list (or watch) deployments everywhere
    /api/v1/watch/namespaces/shop/pods        GET  ->  watch, the old spelling

Source: apiserver/pkg/endpoints/request/requestinfo.go, v1.36.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from skysail.apiserver.contract import ResourceInfo
from skysail.apiserver.schema import Schema
from skysail.apiserver.status import method_not_allowed, not_found, unknown_resource

_NAMESPACE_SUBRESOURCES = ("status", "finalize")
_ITEM_VERBS = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_COLLECTION_VERBS = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}
_SUBRESOURCE_VERBS = {"GET": "get", "PUT": "update", "PATCH": "patch", "POST": "create", "DELETE": "delete"}


@dataclass(frozen=True, slots=True)
class Target:
    """What a request is about.

    Attributes:
        verb: get list create update patch delete deletecollection.
        watch: The old `/watch/` spelling was used.
    """

    resource: ResourceInfo
    verb: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    watch: bool = False


def route(schema: Schema, method: str, path: str) -> Target | None:
    """Find the resource a path names.

    Returns:
        None when no API answers under this path at all.

    Raises:
        NotFound: The group version is known, the resource is not.
        MethodNotAllowed: The resource does not know this verb.
    """
    parts = path.strip("/").split("/")
    if parts[0] == "api":
        group, version, rest = "", parts[1] if len(parts) > 1 else "", parts[2:]
    elif parts[0] == "apis" and len(parts) > 2:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    if not rest or not all(rest):
        return None
    watch = rest[0] == "watch" and len(rest) > 1
    target = _target(schema, group, version, rest[1:] if watch else rest)
    if target is None:
        if not any(resource.group == group for resource in schema.resources):
            return None
        raise unknown_resource()
    resource, namespace, name, subresource = target
    return Target(resource, _verb(resource, method, name, subresource), namespace, name, subresource, watch)


def _target(
    schema: Schema, group: str, version: str, parts: Sequence[str]
) -> tuple[ResourceInfo, str, str, str] | None:
    namespace = ""
    if parts[0] == "namespaces" and len(parts) > 2 and parts[2] not in _NAMESPACE_SUBRESOURCES:
        namespace, parts = parts[1], parts[2:]
    resource = schema.resource(group, version, parts[0])
    if resource is None or (len(parts) > 3 and parts[2] != "proxy") or (namespace and not resource.namespaced):
        return None
    name, subresource = (*parts[1:], "", "")[:2]
    if subresource and subresource not in resource.subresources:
        if resource.custom:
            raise not_found(resource.group_resource, name)
        return None
    if name and resource.namespaced and not namespace:
        return None
    return resource, namespace, name, subresource


def _verb(resource: ResourceInfo, method: str, name: str, subresource: str) -> str:
    if subresource:
        verb, allowed = _SUBRESOURCE_VERBS.get(method, ""), resource.subresources[subresource].verbs
    else:
        verb, allowed = (_ITEM_VERBS if name else _COLLECTION_VERBS).get(method, ""), resource.verbs
    if verb not in allowed:
        raise method_not_allowed()
    return verb
