"""What a request is about, read off its path: the words faults are aimed with.

>>> call_of(Request("PATCH", "/apis/apps/v1/namespaces/default/deployments/web/status"))
Call(verb='patch', resource='deployments', namespace='default', name='web', subresource='status')
"""

from dataclasses import dataclass

from skysail.api.ports import Request

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch"}


@dataclass(frozen=True, slots=True)
class Call:
    """One request in Kubernetes' words.

    Attributes:
        verb: get, list, watch, create, update, patch, delete, deletecollection.
        resource: Plural name; empty for paths that are no resource.
        namespace: Empty for cluster-scoped resources and lists over all namespaces.
        name: Empty for collections.
        subresource: `status`, `binding`, ...
    """

    verb: str
    resource: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def is_write(self) -> bool:
        """Whether it may change something."""
        return self.verb not in ("get", "list", "watch")

    def __str__(self) -> str:
        what = f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        return f"{self.verb} {what} {'/'.join(part for part in (self.namespace, self.name) if part)}".rstrip()


def call_of(request: Request) -> Call:
    """What a request asks for."""
    parts = request.path.strip("/").split("/")
    parts = parts[2:] if parts[0] == "api" else parts[3:] if parts[0] == "apis" else []
    namespace = ""
    if len(parts) > 2 and parts[0] == "namespaces" and parts[2] not in ("status", "finalize"):
        namespace, parts = parts[1], parts[2:]
    resource, name, subresource = (*parts, "", "", "")[:3]
    return Call(_verb(request, name), resource, namespace, name, subresource)


def _verb(request: Request, name: str) -> str:
    if request.method == "GET":
        watching = any(key == "watch" and value in ("true", "1") for key, value in request.query)
        return "watch" if watching else "get" if name else "list"
    if request.method == "DELETE":
        return "delete" if name else "deletecollection"
    return _VERBS.get(request.method, request.method.lower())
