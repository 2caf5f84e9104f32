"""`namespaces/NAME/finalize` and `certificatesigningrequests/NAME/approval`.

Source: pkg/registry/core/namespace/strategy.go, pkg/registry/certificates/certificates/strategy.go, v1.36.
"""

from collections.abc import Sequence

from skysail.api.raw import Raw
from skysail.apiserver.contract import FieldError, RequestContext
from skysail.apiserver.strategies.generic import keep
from skysail.apiserver.subresources.pod_conditions import timestamp
from skysail.apiserver.subresources.status import READ_WRITE, StatusView
from skysail.apiserver.validation.certificates import signing_request_approval_update
from skysail.apiserver.validation.namespaces import finalizer

_DECISIONS = ("Approved", "Denied")


class FinalizeView:
    """The only way to take `spec.finalizers` off a namespace."""

    body_kind: tuple[str, str, str] | None = None
    verbs = frozenset({"update"})

    def read(self, parent: Raw, ctx: RequestContext) -> Raw:
        """The namespace."""
        return parent

    def write(self, body: Raw, parent: Raw, ctx: RequestContext) -> Raw:
        """The body, with the stored status."""
        keep(body, parent, "status")
        if not (body.get("spec") or {}).get("finalizers"):
            body["spec"] = {key: value for key, value in (body.get("spec") or {}).items() if key != "finalizers"}
        return body

    def validate(self, body: Raw, new: Raw, old: Raw, ctx: RequestContext) -> Sequence[FieldError]:
        """The form of the finalizers."""
        return [
            error
            for index, name in enumerate((new.get("spec") or {}).get("finalizers") or ())
            for error in finalizer(name, f"spec.finalizers[{index}]")
        ]


def _with_times(body: Raw, parent: Raw, ctx: RequestContext) -> list[Raw]:
    """The body's conditions, those without times given some."""
    conditions: list[Raw] = (body.get("status") or {}).get("conditions") or []
    now = timestamp(ctx.now)
    known = {item.get("type"): item for item in (parent.get("status") or {}).get("conditions") or ()}
    for condition in conditions:
        before = known.get(condition.get("type"), {})
        if not condition.get("lastUpdateTime"):
            condition["lastUpdateTime"] = now
        if not condition.get("lastTransitionTime"):
            unchanged = before.get("status") == condition.get("status")
            condition["lastTransitionTime"] = before.get("lastTransitionTime") if unchanged else now
    return conditions


class ApprovalView:
    """Approves or denies a certificate signing request."""

    body_kind: tuple[str, str, str] | None = None
    verbs = READ_WRITE

    def read(self, parent: Raw, ctx: RequestContext) -> Raw:
        """The request."""
        return parent

    def write(self, body: Raw, parent: Raw, ctx: RequestContext) -> Raw:
        """The stored request with the body's conditions; the rest of the status stays."""
        conditions = _with_times(body, parent, ctx)
        keep(body, parent, "spec")
        status = dict(parent.get("status") or {})
        if conditions:
            status["conditions"] = conditions
        else:
            status.pop("conditions", None)
        body["status"] = status
        return body

    def validate(self, body: Raw, new: Raw, old: Raw, ctx: RequestContext) -> Sequence[FieldError]:
        """A decision stays a decision."""
        return signing_request_approval_update(new, old)


class SigningStatusView(StatusView):
    """What a signer reports: the certificate, or that it failed."""

    def write(self, body: Raw, parent: Raw, ctx: RequestContext) -> Raw:
        """As usual; decisions that were made are put back as they were."""
        body = super().write(body, parent, ctx)
        decided = {item.get("type"): item for item in (parent.get("status") or {}).get("conditions") or ()}
        conditions = _with_times(body, parent, ctx)
        for index, item in enumerate(conditions):
            if item.get("type") in _DECISIONS and item.get("type") in decided:
                conditions[index] = decided[item["type"]]
        return body
