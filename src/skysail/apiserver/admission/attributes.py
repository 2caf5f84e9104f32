"""What a plugin is told about a request.

Source: k8s.io/apiserver/pkg/admission/attributes.go, errors.go, v1.36.
"""

from dataclasses import dataclass

from skysail.api.errors import Forbidden, StatusCause, StatusDetails
from skysail.api.raw import Raw
from skysail.apiserver.contract import Operation, RequestContext, ResourceInfo
from skysail.apiserver.status import forbidden_error


@dataclass(frozen=True, slots=True, eq=False)
class Attributes:
    """One request on its way into the store.

    Attributes:
        operation: CREATE, UPDATE, DELETE or CONNECT.
        resource: What kind of thing it is.
        obj: The object to be written; empty for DELETE.
        old: The stored object, if there is one.
        ctx: Who, when, where.
    """

    operation: Operation
    resource: ResourceInfo
    obj: Raw
    old: Raw | None
    ctx: RequestContext

    @property
    def namespace(self) -> str:
        """Where it happens; empty for cluster-wide kinds."""
        if not self.resource.namespaced:
            return ""
        return self.ctx.namespace or (self.obj.get("metadata") or {}).get("namespace") or ""

    @property
    def name(self) -> str:
        """The object's name, or the prefix it will get one from."""
        meta = self.obj.get("metadata") or {}
        return self.ctx.name or meta.get("name") or meta.get("generateName") or ""

    def refuse(self, why: str, cause: StatusCause | None = None) -> Forbidden:
        """The 403 that says why."""
        error = forbidden_error(self.resource.group_resource, self.name, why)
        if cause is None:
            return error
        resource = self.resource.group_resource
        details = StatusDetails(name=self.name, group=resource.group, kind=resource.resource, causes=(cause,))
        return Forbidden(error.status.message, details=details)

    def is_resource(self, group: str, resource: str, subresource: str = "") -> bool:
        """Whether the request is about this very endpoint."""
        info = self.resource
        return info.resource == resource and info.group == group and self.ctx.subresource == subresource
