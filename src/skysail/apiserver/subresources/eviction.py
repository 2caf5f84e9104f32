"""`pods/NAME/eviction`: delete a pod if its disruption budget allows.

Source: pkg/registry/core/pod/storage/eviction.go, v1.36.
"""

import msgspec

from skysail.api.errors import ApiError, BadRequest, Status, StatusCause, StatusDetails, TooManyRequests
from skysail.api.labels import Selector
from skysail.api.meta import LabelSelector
from skysail.api.raw import Raw
from skysail.apiserver.contract import Answer, DeleteOptions, GroupResource, Registry, RequestContext, invalid
from skysail.apiserver.status import conflict, forbidden_error, invalid_object, not_found, plain_error
from skysail.apiserver.subresources.actions import PlainAction
from skysail.apiserver.subresources.binding import PODS, SUCCESS
from skysail.apiserver.subresources.pod_conditions import set_condition, timestamp

BUDGETS = GroupResource("policy", "poddisruptionbudgets")
_BUDGET = GroupResource("policy", "poddisruptionbudget")
_REFUSED = "Cannot evict pod as it would violate the pod's disruption budget."
_MAX_DISRUPTED = 2000
_STILL_PROCESSED = "The disruption budget {} is still being processed by the server."


class EvictionAction(PlainAction):
    """Asks the budget, notes the disruption in it, then deletes the pod."""

    body_kind = ("policy", "v1", "Eviction")

    def create(self, body: Raw, registry: Registry, ctx: RequestContext) -> Answer:
        """Evict the pod of the URL.

        Raises:
            BadRequest: URL and body disagree.
            NotFound: No such pod.
            TooManyRequests: The budget refuses, or its controller has not looked at it yet.
        """
        if (body.get("metadata") or {}).get("name") != ctx.name:
            raise BadRequest("name in URL does not match name in Eviction object")
        options = body.get("deleteOptions") or {}
        if options.get("ignoreStoreReadErrorWithClusterBreakingPotential"):
            text = "can not be set for pod eviction, try after removing the option"
            path = "deleteOptions.ignoreStoreReadErrorWithClusterBreakingPotential"
            raise invalid_object("policy", "Eviction", ctx.name, [invalid(path, True, text)])
        _dry_run(options, ctx)
        pod = registry.get(PODS, ctx.namespace, ctx.name)
        if pod is None:
            raise not_found(PODS, ctx.name)
        if not _ignores_budget(pod):
            self._ask_budget(pod, registry, ctx)
        _delete(options, registry, ctx)
        return Answer(201, dict(SUCCESS))

    def _ask_budget(self, pod: Raw, registry: Registry, ctx: RequestContext) -> None:
        budgets = [budget for budget in registry.list(BUDGETS, ctx.namespace) if _covers(budget, pod)]
        if len(budgets) > 1:
            raise plain_error(
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
            )
        if not budgets:
            return
        budget = budgets[0]
        if not is_ready(pod):
            policy = (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy")
            status = budget.get("status") or {}
            desired = status.get("desiredHealthy") or 0
            if policy == "AlwaysAllow" or ((status.get("currentHealthy") or 0) >= desired and desired > 0):
                return

        def note(current: Raw) -> None:
            decrement(current, ctx.name, ctx)

        registry.update(
            BUDGETS,
            ctx.namespace,
            budget["metadata"]["name"],
            note,
            ctx,
            validate=False,
            manager="kube-apiserver",
            subresource="status",
        )


def _dry_run(options: Raw, ctx: RequestContext) -> None:
    if options.get("dryRun"):
        ctx.dry_run = True


def _ignores_budget(pod: Raw) -> bool:
    """Finished, never started, or going already: no disruption."""
    phase = (pod.get("status") or {}).get("phase")
    return phase in ("Succeeded", "Failed", "Pending") or bool(pod["metadata"].get("deletionTimestamp"))


def _covers(budget: Raw, pod: Raw) -> bool:
    selector = (budget.get("spec") or {}).get("selector")
    if selector is None:
        return False
    try:
        parsed = Selector.from_label_selector(msgspec.convert(selector, LabelSelector))
    except ValueError:
        return False
    return parsed.matches(pod["metadata"].get("labels") or {})


def is_ready(pod: Raw) -> bool:
    """Whether the pod reports Ready."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(item.get("type") == "Ready" and item.get("status") == "True" for item in conditions)


def decrement(budget: Raw, pod_name: str, ctx: RequestContext) -> None:
    """Take one disruption from the budget.

    Raises:
        TooManyRequests: There is none to take.
    """
    name, status = budget["metadata"]["name"], budget.setdefault("status", {})
    if (status.get("observedGeneration") or 0) < (budget["metadata"].get("generation") or 0):
        raise _too_many(_STILL_PROCESSED.format(name), retry_after=10)
    allowed = status.get("disruptionsAllowed") or 0
    if allowed < 0:
        raise forbidden_error(_BUDGET, name, "pdb disruptions allowed is negative")
    if len(status.get("disruptedPods") or {}) > _MAX_DISRUPTED:
        text = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise forbidden_error(_BUDGET, name, text)
    if allowed == 0:
        raise _too_many(_why_not(name, status))
    status["disruptionsAllowed"] = allowed - 1
    if allowed == 1:
        _no_more_allowed(budget, ctx)
    status["disruptedPods"] = {**(status.get("disruptedPods") or {}), pod_name: timestamp(ctx.now)}


def _too_many(message: str, retry_after: int = 0) -> ApiError:
    cause = StatusCause(reason="DisruptionBudget", message=message)
    details = StatusDetails(causes=(cause,), retry_after_seconds=retry_after)
    return TooManyRequests(Status(message=_REFUSED, reason="TooManyRequests", code=429, details=details))


def _why_not(name: str, status: Raw) -> str:
    nothing: Raw = {}
    condition = next((c for c in status.get("conditions") or () if c.get("type") == "DisruptionAllowed"), nothing)
    refused, text = condition.get("status") == "False", condition.get("message") or ""
    desired, current = status.get("desiredHealthy") or 0, status.get("currentHealthy") or 0
    if refused and text and condition.get("reason") == "SyncFailed":
        return f"The disruption budget {name} does not allow evicting pods currently because it failed sync: {text}"
    if current <= desired:
        return f"The disruption budget {name} needs {desired} healthy pods and has {current} currently"
    if refused and text:
        return (
            f"The disruption budget {name} does not allow evicting pods currently ({condition.get('reason')}): {text}"
        )
    return f"The disruption budget {name} does not allow evicting pods currently"


def _no_more_allowed(budget: Raw, ctx: RequestContext) -> None:
    conditions: list[Raw] = list(budget["status"].get("conditions") or ())
    known = next((index for index, c in enumerate(conditions) if c.get("type") == "DisruptionAllowed"), None)
    before = conditions[known] if known is not None else {}
    time = before.get("lastTransitionTime") if before.get("status") == "False" else timestamp(ctx.now)
    condition: Raw = {
        "type": "DisruptionAllowed", "status": "False", "lastTransitionTime": time,
        "reason": "InsufficientPods", "message": "",
    }  # fmt: skip
    generation = budget["status"].get("observedGeneration")
    if generation:
        condition["observedGeneration"] = generation
    if known is None:
        conditions.append(condition)
    else:
        conditions[known] = condition
    budget["status"]["conditions"] = conditions


def _delete(options: Raw, registry: Registry, ctx: RequestContext) -> None:
    wanted = options.get("preconditions") or {}
    version = wanted.get("resourceVersion") or ""
    if not ctx.dry_run:

        def mark(pod: Raw) -> None:
            _preconditions(pod, wanted)
            set_condition(
                pod, "DisruptionTarget", "True", ctx.now, reason="EvictionByEvictionAPI",
                message="Eviction API: evicting",
            )  # fmt: skip

        pod = registry.update(PODS, ctx.namespace, ctx.name, mark, ctx, validate=False)
        version = pod["metadata"]["resourceVersion"] if version else ""
    deletion = DeleteOptions(
        grace_period_seconds=options.get("gracePeriodSeconds"),
        propagation=options.get("propagationPolicy") or ("Orphan" if options.get("orphanDependents") else ""),
        uid=wanted.get("uid") or "",
        resource_version=version,
    )
    registry.delete(PODS, ctx.namespace, ctx.name, deletion, ctx)


def _preconditions(pod: Raw, wanted: Raw) -> None:
    meta = pod["metadata"]
    if wanted.get("uid") and wanted["uid"] != meta["uid"]:
        why = f"the UID in the precondition ({wanted['uid']}) does not match the UID in record ({meta['uid']})."
        raise conflict(
            GroupResource("", "Pod"), meta["name"], f"{why} The object might have been deleted and then recreated"
        )
    if wanted.get("resourceVersion") and wanted["resourceVersion"] != meta["resourceVersion"]:
        why = (
            f"the ResourceVersion in the precondition ({wanted['resourceVersion']}) does not match the ResourceVersion "
            f"in record ({meta['resourceVersion']}). The object might have been modified"
        )
        raise conflict(GroupResource("", "Pod"), meta["name"], why)
