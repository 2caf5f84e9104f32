"""`/scale`: how many replicas, in one shape for every kind that has replicas.

Source: pkg/registry/apps/deployment/storage/storage.go ScaleREST, v1.36.
"""

from collections.abc import Callable, Sequence

import msgspec

from skysail.api.labels import Selector
from skysail.api.meta import LabelSelector
from skysail.api.raw import Raw
from skysail.apiserver.contract import FieldError, GroupResource, RequestContext
from skysail.apiserver.status import conflict, invalid_object
from skysail.apiserver.subresources.status import READ_WRITE
from skysail.apiserver.validation.field import non_negative

_META = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def selector_text(selector: Raw | None) -> str:
    """A label selector as one line: `app=web,tier in (a,b)`."""
    if selector is None:
        return "<nothing>"
    return str(Selector.from_label_selector(msgspec.convert(selector, LabelSelector)))


def equality_text(selector: Raw | None) -> str:
    """The plain map of a ReplicationController as one line, keys in order."""
    return ",".join(f"{key}={value}" for key, value in sorted((selector or {}).items()))


class ScaleView:
    """Shows `spec.replicas` and takes it.

    Args:
        selector: Prints the parent's selector.
    """

    body_kind: tuple[str, str, str] | None = ("autoscaling", "v1", "Scale")
    verbs = READ_WRITE

    def __init__(self, selector: Callable[[Raw | None], str] = selector_text) -> None:
        self._selector = selector

    def read(self, parent: Raw, ctx: RequestContext) -> Raw:
        """The Scale of an object."""
        meta, spec = parent["metadata"], parent.get("spec") or {}
        replicas = spec.get("replicas") or 0
        status: Raw = {"replicas": (parent.get("status") or {}).get("replicas") or 0}
        text = self._selector(spec.get("selector"))
        if text:
            status["selector"] = text
        return {
            "kind": "Scale",
            "apiVersion": "autoscaling/v1",
            "metadata": {key: meta[key] for key in _META if key in meta},
            "spec": {"replicas": replicas} if replicas else {},
            "status": status,
        }

    def write(self, body: Raw, parent: Raw, ctx: RequestContext) -> Raw:
        """The object with the Scale's number of replicas.

        Raises:
            Invalid: The Scale breaks a rule; it is refused under its own name.
            Conflict: The Scale was made for another object of that name.
        """
        meta = parent["metadata"]
        replicas = (body.get("spec") or {}).get("replicas") or 0
        errors = non_negative(replicas, "spec.replicas")
        if errors:
            raise invalid_object("autoscaling", "Scale", meta["name"], errors)
        uid = (body.get("metadata") or {}).get("uid")
        if uid and uid != meta.get("uid"):
            resource = GroupResource(ctx.resource.group, f"{ctx.resource.resource}/scale")
            why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {meta.get('uid')}"
            raise conflict(resource, meta["name"], why)
        if (parent["spec"].get("replicas") or 0) != replicas:
            meta["generation"] = (meta.get("generation") or 0) + 1
        parent["spec"]["replicas"] = replicas
        return parent

    def validate(self, body: Raw, new: Raw, old: Raw, ctx: RequestContext) -> Sequence[FieldError]:
        """Nothing beyond what `write` refuses."""
        return ()
