"""`/status`: the part of an object that controllers and kubelets write.

Source: the StatusStrategy of pkg/registry/*/strategy.go, v1.36.
"""

from collections.abc import Callable, Sequence

from skysail.api.raw import Raw
from skysail.apiserver.contract import FieldError, RequestContext
from skysail.apiserver.strategies.generic import keep
from skysail.apiserver.validation.field import Errors

READ_WRITE = frozenset({"get", "update", "patch"})


def accept(new: Raw, old: Raw) -> Errors:
    """No rules."""
    return []


class StatusView:
    """The usual status: taken from the body, the rest of the object stays, metadata may change.

    Args:
        check: Checks the new object against the old one.
        kept: Top-level keys beside `spec` that stay as they are.
        kept_metadata: Keys of metadata that stay as they are.
        own_metadata: False when nothing of the metadata may change through this endpoint.
    """

    body_kind: tuple[str, str, str] | None = None
    verbs = READ_WRITE

    def __init__(
        self,
        check: Callable[[Raw, Raw], Errors] = accept,
        *,
        kept: tuple[str, ...] = ("spec",),
        kept_metadata: tuple[str, ...] = (),
        own_metadata: bool = True,
    ) -> None:
        self._check = check
        self._kept = kept
        self._kept_metadata = kept_metadata if own_metadata else _FOR_STATUS

    def read(self, parent: Raw, ctx: RequestContext) -> Raw:
        """The whole object."""
        return parent

    def write(self, body: Raw, parent: Raw, ctx: RequestContext) -> Raw:
        """The body, with everything that is not status put back."""
        for key in self._kept:
            keep(body, parent, key)
        for key in self._kept_metadata:
            keep(body["metadata"], parent["metadata"], key)
        keep(body["metadata"], parent["metadata"], "generation")
        return body

    def validate(self, body: Raw, new: Raw, old: Raw, ctx: RequestContext) -> Sequence[FieldError]:
        """Whatever the kind says about its status."""
        return self._check(new, old)


_FOR_STATUS = ("deletionTimestamp", "labels", "annotations", "finalizers", "ownerReferences")
"""What `ResetObjectMetaForStatus` puts back."""


class PodStatusView(StatusView):
    """Pods: owners stay, quality of service stays, observed generations are not lost."""

    def write(self, body: Raw, parent: Raw, ctx: RequestContext) -> Raw:
        """As usual, and what old kubelets drop is put back."""
        body = super().write(body, parent, ctx)
        keep(body["metadata"], parent["metadata"], "ownerReferences")
        status, before = body.setdefault("status", {}), parent.get("status") or {}
        if not status.get("qosClass"):
            keep(status, before, "qosClass")
        if not status.get("observedGeneration"):
            keep(status, before, "observedGeneration")
        known: dict[str, list[int]] = {}
        for condition in before.get("conditions") or ():
            known.setdefault(condition.get("type") or "", []).append(condition.get("observedGeneration") or 0)
        for condition in status.get("conditions") or ():
            generations = known.get(condition.get("type") or "")
            generation = generations.pop(0) if generations else 0
            if not condition.get("observedGeneration") and generation:
                condition["observedGeneration"] = generation
        return body


class PersistentVolumeStatusView(StatusView):
    """PersistentVolumes: a new phase notes its time."""

    def write(self, body: Raw, parent: Raw, ctx: RequestContext) -> Raw:
        """As usual, with the time of the transition."""
        body = super().write(body, parent, ctx)
        status, before = body.setdefault("status", {}), parent.get("status") or {}
        time, known = status.get("lastPhaseTransitionTime"), before.get("lastPhaseTransitionTime")
        if status.get("phase") == before.get("phase"):
            if time is None and known is not None:
                status["lastPhaseTransitionTime"] = known
        elif time is None or time == known:
            status["lastPhaseTransitionTime"] = ctx.now.strftime("%Y-%m-%dT%H:%M:%SZ")
        return body


class NodeStatusView(StatusView):
    """Nodes: the long-gone dynamic configuration cannot come back."""

    def write(self, body: Raw, parent: Raw, ctx: RequestContext) -> Raw:
        """As usual, without `status.config`."""
        body = super().write(body, parent, ctx)
        if not (parent.get("status") or {}).get("config"):
            body.setdefault("status", {}).pop("config", None)
        return body
