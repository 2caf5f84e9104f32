"""NamespaceLifecycle: nothing new in a namespace that is absent or going away.

Source: k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle, v1.36.
"""

from skysail.api.errors import StatusCause
from skysail.apiserver.admission.attributes import Attributes
from skysail.apiserver.contract import GroupResource
from skysail.apiserver.status import not_found

NAMESPACES = GroupResource("", "namespaces")
_IMMORTAL = frozenset({"default", "kube-system", "kube-public"})
_REVIEWS = frozenset({"localsubjectaccessreviews"})


def lifecycle(a: Attributes) -> None:
    """Refuse what the namespace's state does not allow."""
    if a.resource.resource == "namespaces" and not a.resource.group:
        if a.operation == "DELETE" and a.name in _IMMORTAL:
            raise a.refuse("this namespace may not be deleted")
        return
    namespace = a.namespace
    if not namespace or a.operation == "DELETE" or a.resource.resource in _REVIEWS:
        return
    found = a.ctx.reader.get(NAMESPACES, "", namespace)
    if found is None:
        raise not_found(NAMESPACES, namespace)
    if a.operation == "CREATE" and (found.get("status") or {}).get("phase") == "Terminating":
        cause = StatusCause(
            reason="NamespaceTerminating",
            message=f"namespace {namespace} is being terminated",
            field="metadata.namespace",
        )
        raise a.refuse(f"unable to create new content in namespace {namespace} because it is being terminated", cause)
