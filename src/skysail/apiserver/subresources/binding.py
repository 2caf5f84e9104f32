"""`pods/NAME/binding` and `bindings`: a scheduler puts a pod on a node.

Source: pkg/registry/core/pod/storage/storage.go BindingREST, v1.36.
"""

from skysail.api.errors import BadRequest
from skysail.api.raw import Raw
from skysail.apiserver.contract import (
    Answer,
    GroupResource,
    Registry,
    RequestContext,
    not_supported,
    required,
)
from skysail.apiserver.status import conflict, plain_error
from skysail.apiserver.subresources.actions import PlainAction
from skysail.apiserver.subresources.pod_conditions import set_condition

PODS = GroupResource("", "pods")
_BINDING = GroupResource("", "pods/binding")
SUCCESS: Raw = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


class BindingAction(PlainAction):
    """Assigns a node, once; the node need not exist."""

    body_kind = ("", "v1", "Binding")

    def create(self, body: Raw, registry: Registry, ctx: RequestContext) -> Answer:
        """Bind the pod that the URL or, for `bindings`, the body names.

        Raises:
            BadRequest: URL and body disagree.
            Conflict: Already bound, gated, being deleted, or another pod than the binding was made for.
            NotFound: No such pod.
        """
        meta = body.get("metadata") or {}
        name = ctx.name or meta.get("name") or ""
        if name != (meta.get("name") or ""):
            raise BadRequest("name in URL does not match name in Binding object")
        target = body.get("target") or {}
        _check(target)

        def bind(pod: Raw) -> None:
            _preconditions(pod, meta)
            _free(pod)
            pod["spec"]["nodeName"] = target["name"]
            pod.get("status", {}).pop("nominatedNodeName", None)
            for key in ("annotations", "labels"):
                if meta.get(key):
                    pod["metadata"][key] = {**(pod["metadata"].get(key) or {}), **meta[key]}
            set_condition(pod, "PodScheduled", "True", ctx.now)

        registry.update(PODS, ctx.namespace, name, bind, ctx, validate=False)
        return Answer(201, dict(SUCCESS))


def _check(target: Raw) -> None:
    errors = []
    if target.get("kind") and target["kind"] != "Node":
        errors.append(not_supported("target.kind", target["kind"], ("Node", "<empty>")))
    if not target.get("name"):
        errors.append(required("target.name"))
    if errors:
        texts = [str(error) for error in errors]
        raise plain_error(texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")


def _preconditions(pod: Raw, meta: Raw) -> None:
    for key, what in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        wanted, there = meta.get(key), pod["metadata"].get(key)
        if wanted and wanted != there:
            name, namespace = pod["metadata"]["name"], pod["metadata"].get("namespace", "")
            raise conflict(
                PODS,
                name,
                f"StorageError: invalid object, Code: 4, Key: /registry/pods/{namespace}/{name}, ResourceVersion: 0, "
                f"AdditionalErrorMsg: Precondition failed: {what} in precondition: {wanted}, "
                f"{what} in object meta: {there}",
            )


def _free(pod: Raw) -> None:
    name, spec = pod["metadata"]["name"], pod["spec"]
    why = ""
    if pod["metadata"].get("deletionTimestamp"):
        why = f"pod {name} is being deleted, cannot be assigned to a host"
    elif spec.get("nodeName"):
        why = f'pod {name} is already assigned to node "{spec["nodeName"]}"'
    elif spec.get("schedulingGates"):
        why = f"pod {name} has non-empty .spec.schedulingGates"
    if why:
        raise conflict(_BINDING, name, why)
