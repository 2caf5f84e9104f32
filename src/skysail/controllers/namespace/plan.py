"""A terminating namespace's mind: what remains, what is reported of it, and when to try again.

Source: pkg/controller/namespace/deletion, v1.36.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import msgspec

from skysail.api.cluster import Namespace, NamespaceCondition, NamespaceStatus
from skysail.api.core import Pod
from skysail.api.meta import ObjectMeta
from skysail.controllers.pods import is_terminal

FINALIZER = "kubernetes"
GRACE_SECONDS = 5.0
FINALIZER_ESTIMATE_SECONDS = 15

_ALL_WELL: Mapping[str, tuple[str, str]] = {
    "NamespaceDeletionDiscoveryFailure": ("ResourcesDiscovered", "All resources successfully discovered"),
    "NamespaceDeletionGroupVersionParsingFailure": (
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    "NamespaceDeletionContentFailure": (
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    "NamespaceContentRemaining": ("ContentRemoved", "All content successfully removed"),
    "NamespaceFinalizersRemaining": ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
}
"""The conditions in the order they are written, with what they say when nothing is wrong."""


@dataclass(frozen=True, slots=True)
class Remains:
    """What was found of one resource after everything had been told to go.

    Attributes:
        resource: `plural.group`; the dot stands for the core group, too.
        count: How many objects are still there.
        finalizers: How many of them each finalizer holds.
        estimate_seconds: How long that may take; 0 when nothing is left.
    """

    resource: str
    count: int = 0
    finalizers: Mapping[str, int] = field(default_factory=dict)
    estimate_seconds: int = 0


def remains_of(resource: str, items: Sequence[ObjectMeta], grace_estimate: int) -> Remains:
    """Sum up the objects that are left; pods in their grace period take as long as that."""
    if not items:
        return Remains(resource)
    finalizers = Counter(name for item in items for name in item.finalizers)
    estimate = grace_estimate or (FINALIZER_ESTIMATE_SECONDS if finalizers else 0)
    return Remains(resource, len(items), finalizers, estimate)


def unexpected_remains(found: Remains) -> bool:
    """Objects left that neither a grace period nor a finalizer explains."""
    return found.count > 0 and not found.finalizers and found.estimate_seconds == 0


def pod_grace_estimate(pods: Iterable[Pod], deleted_at: datetime, now: datetime) -> int:
    """The longest grace period among pods that have not ended; 0 once that much time has passed."""
    grace = max(
        (pod.spec.termination_grace_period_seconds or 0 for pod in pods if not is_terminal(pod)),
        default=0,
    )
    return 0 if now - deleted_at >= timedelta(seconds=grace) else grace


def deletion_status(
    namespace: Namespace, found: Sequence[Remains], errors: Mapping[str, Sequence[str]], now: datetime
) -> NamespaceStatus:
    """The status with its five conditions; unchanged where nothing new is to be said.

    Args:
        namespace: As read.
        found: What is left, resource by resource; empty while pods hold everything else up.
        errors: What went wrong: messages under `discovery` and `content`.
        now: For the conditions' times.
    """
    status = namespace.status
    for condition_type, (reason, message) in _ALL_WELL.items():
        bad = _bad_condition(condition_type, found, errors)
        new = NamespaceCondition(
            type=condition_type,
            status="True" if bad else "False",
            reason=bad[0] if bad else reason,
            message=bad[1] if bad else message,
            last_transition_time=now,
        )
        status = _with_condition(status, new)
    return status


def _bad_condition(
    condition_type: str, found: Sequence[Remains], errors: Mapping[str, Sequence[str]]
) -> tuple[str, str] | None:
    match condition_type:
        case "NamespaceDeletionDiscoveryFailure" if messages := errors.get("discovery"):
            return "DiscoveryFailed", messages[0]
        case "NamespaceDeletionContentFailure" if messages := errors.get("content"):
            words = ", ".join(sorted(messages))
            return "ContentDeletionFailed", f"Failed to delete all resource types, {len(messages)} remaining: {words}"
        case "NamespaceContentRemaining":
            left = sorted(f"{item.resource} has {item.count} resource instances" for item in found if item.count)
            return ("SomeResourcesRemain", f"Some resources are remaining: {', '.join(left)}") if left else None
        case "NamespaceFinalizersRemaining":
            held: Counter[str] = Counter()
            for item in found:
                held.update(item.finalizers)
            names = sorted(f"{name} in {count} resource instances" for name, count in held.items())
            words = f"Some content in the namespace has finalizers remaining: {', '.join(names)}"
            return ("SomeFinalizersRemain", words) if names else None
    return None


def _with_condition(status: NamespaceStatus, new: NamespaceCondition) -> NamespaceStatus:
    conditions = list(status.conditions)
    for index, old in enumerate(conditions):
        if old.type != new.type:
            continue
        if (old.status, old.reason, old.message) == (new.status, new.reason, new.message):
            return status
        if old.status == new.status:
            new = msgspec.structs.replace(new, last_transition_time=old.last_transition_time)
        conditions[index] = new
        break
    else:
        conditions.append(new)
    return msgspec.structs.replace(status, conditions=tuple(conditions))


def retry_seconds(estimate: int) -> float:
    """When to look again at a namespace that is not yet empty."""
    return estimate // 2 + 1.0
