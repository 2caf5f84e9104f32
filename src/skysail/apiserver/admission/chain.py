"""The order in which the plugins run: kube-apiserver's default set.

Differs: webhooks, admission policies, PodSecurity and the plugins that only concern an authorizer (certificate
    signing, cluster trust bundles) are not here.

Source: pkg/kubeapiserver/options/plugins.go, v1.36.
"""

from collections.abc import Callable

from skysail.api.raw import Raw
from skysail.apiserver.admission import (
    escalation,
    limit_ranger,
    namespaces,
    nodes,
    pods,
    quota,
    service_accounts,
    storage,
)
from skysail.apiserver.admission.attributes import Attributes
from skysail.apiserver.contract import Operation, RequestContext, ResourceInfo

Plugin = Callable[[Attributes], None]

_ALL: tuple[Plugin, ...] = (namespaces.lifecycle,)
_MUTATING: dict[tuple[str, str], tuple[Plugin, ...]] = {
    ("", "pods"): (
        limit_ranger.set_defaults,
        service_accounts.inject,
        pods.priority,
        pods.default_tolerations,
        pods.topology_labels,
        pods.runtime_class,
    ),
    ("", "nodes"): (nodes.taint_not_ready,),
    ("", "persistentvolumes"): (storage.protect,),
    ("", "persistentvolumeclaims"): (storage.protect, storage.default_class),
    ("networking.k8s.io", "ingresses"): (storage.default_ingress_class,),
    ("rbac.authorization.k8s.io", "roles"): (escalation.check_role,),
    ("rbac.authorization.k8s.io", "clusterroles"): (escalation.check_role,),
    ("rbac.authorization.k8s.io", "rolebindings"): (escalation.check_binding,),
    ("rbac.authorization.k8s.io", "clusterrolebindings"): (escalation.check_binding,),
}
_VALIDATING: dict[tuple[str, str], tuple[Plugin, ...]] = {
    ("", "pods"): (limit_ranger.enforce,),
    ("", "persistentvolumeclaims"): (limit_ranger.enforce, storage.check_resize),
    ("scheduling.k8s.io", "priorityclasses"): (pods.one_default_class,),
}
_LAST: tuple[Plugin, ...] = (quota.enforce,)


def admit(operation: Operation, resource: ResourceInfo, obj: Raw, old: Raw | None, ctx: RequestContext) -> None:
    """Run the plugins that may alter the object.

    Args:
        operation: CREATE, UPDATE, DELETE or CONNECT.
        resource: The kind.
        obj: The object; altered in place. Empty for DELETE.
        old: The stored object, if there is one.
        ctx: The request.

    Raises:
        Forbidden: A plugin refuses.
        NotFound: The namespace does not exist.
    """
    attributes = Attributes(operation, resource, obj, old, ctx)
    for plugin in _ALL:
        plugin(attributes)
    if operation == "DELETE":
        return
    for plugin in _MUTATING.get((resource.group, resource.resource), ()):
        plugin(attributes)


def check(operation: Operation, resource: ResourceInfo, obj: Raw, old: Raw | None, ctx: RequestContext) -> None:
    """Run the plugins that only refuse; the object is valid by now. Arguments and errors as `admit`."""
    if operation == "DELETE":
        return
    attributes = Attributes(operation, resource, obj, old, ctx)
    for plugin in _VALIDATING.get((resource.group, resource.resource), ()):
        plugin(attributes)
    for plugin in _LAST:
        plugin(attributes)
