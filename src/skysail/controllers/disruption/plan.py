"""A budget's mind: how many of the selected pods should be healthy, how many are, and what is left over.

Source: pkg/controller/disruption/disruption.go, v1.36.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec

from skysail.api.core import Pod
from skysail.api.intstr import scaled_value
from skysail.api.meta import Condition, LabelSelector
from skysail.api.policy import PodDisruptionBudget, PodDisruptionBudgetStatus
from skysail.controllers.pods import is_ready, is_terminal, pod_condition

DELETION_TIMEOUT = timedelta(minutes=2)
STALE_DISRUPTION = timedelta(minutes=2)
DISRUPTION_ALLOWED = "DisruptionAllowed"
DISRUPTION_TARGET = "DisruptionTarget"


@dataclass(frozen=True, slots=True)
class Expected:
    """How many pods there should be, and how many of them healthy."""

    pods: int = 0
    healthy: int = 0


def needs_scale(budget: PodDisruptionBudget) -> bool:
    """Whether the budget counts against the sizes of what owns the pods, rather than the pods themselves."""
    return budget.spec.max_unavailable is not None or isinstance(budget.spec.min_available, str)


def expected_pods(budget: PodDisruptionBudget, selected: int, scale: int) -> Expected:
    """What the budget asks for.

    Args:
        budget: With one of its two limits set.
        selected: How many pods it selects.
        scale: The sizes of what owns these pods, together; read only when `needs_scale`.

    Raises:
        ValueError: A limit is neither a number nor a percentage.
    """
    spec = budget.spec
    if spec.max_unavailable is not None:
        return Expected(scale, max(0, scale - scaled_value(spec.max_unavailable, scale, round_up=True)))
    if isinstance(spec.min_available, int):
        return Expected(selected, spec.min_available)
    if spec.min_available is not None:
        return Expected(scale, scaled_value(spec.min_available, scale, round_up=True))
    return Expected()


@dataclass(frozen=True, slots=True)
class Disrupted:
    """Pods that somebody evicted and that are not yet seen to go.

    Attributes:
        pods: Still waited for, with the time of the eviction.
        overdue: Waited for too long: they count as healthy again.
        recheck: When the next of them is overdue.
    """

    pods: Mapping[str, datetime]
    overdue: tuple[Pod, ...] = ()
    recheck: datetime | None = None


def disrupted_pods(budget: PodDisruptionBudget, pods: Sequence[Pod], now: datetime) -> Disrupted:
    """Which evictions the budget still has to hold against its account."""
    waiting: dict[str, datetime] = {}
    overdue: list[Pod] = []
    for pod in pods:
        evicted_at = budget.status.disrupted_pods.get(pod.name)
        if evicted_at is None or pod.metadata.deletion_timestamp is not None:
            continue
        if evicted_at + DELETION_TIMEOUT < now:
            overdue.append(pod)
        else:
            waiting[pod.name] = evicted_at
    first = min(waiting.values(), default=None)
    return Disrupted(waiting, tuple(overdue), first + DELETION_TIMEOUT if first is not None else None)


def count_healthy(pods: Sequence[Pod], disrupted: Mapping[str, datetime], now: datetime) -> int:
    """How many pods are ready and neither being deleted nor just evicted."""
    return sum(
        pod.metadata.deletion_timestamp is None
        and is_ready(pod)
        and not (pod.name in disrupted and disrupted[pod.name] + DELETION_TIMEOUT > now)
        for pod in pods
    )


def budget_status(
    budget: PodDisruptionBudget, expected: Expected, healthy: int, disrupted: Mapping[str, datetime], now: datetime
) -> PodDisruptionBudgetStatus:
    """The status to report; equal to the present one when nothing has changed."""
    allowed = max(0, healthy - expected.healthy) if expected.pods > 0 else 0
    condition = Condition(
        type=DISRUPTION_ALLOWED,
        status="True" if allowed else "False",
        reason="SufficientPods" if allowed else "InsufficientPods",
        observed_generation=budget.metadata.generation,
        last_transition_time=now,
    )
    return PodDisruptionBudgetStatus(
        current_healthy=healthy,
        desired_healthy=expected.healthy,
        expected_pods=expected.pods,
        disruptions_allowed=allowed,
        disrupted_pods=disrupted,
        observed_generation=budget.metadata.generation,
        conditions=_with_condition(budget.status.conditions, condition),
    )


def failed_status(budget: PodDisruptionBudget, error: str, now: datetime) -> PodDisruptionBudgetStatus:
    """The safe answer when the budget cannot be worked out: nothing may be disrupted."""
    condition = Condition(
        type=DISRUPTION_ALLOWED,
        status="False",
        reason="SyncFailed",
        message=error,
        observed_generation=budget.status.observed_generation,
        last_transition_time=now,
    )
    conditions = _with_condition(budget.status.conditions, condition)
    return msgspec.structs.replace(budget.status, disruptions_allowed=0, conditions=conditions)


def _with_condition(conditions: tuple[Condition, ...], new: Condition) -> tuple[Condition, ...]:
    old = next((item for item in conditions if item.type == new.type), None)
    if old is None:
        return (*conditions, new)
    if old.status == new.status:
        new = msgspec.structs.replace(new, last_transition_time=old.last_transition_time)
    return tuple(new if item.type == new.type else item for item in conditions)


def stale_disruption_seconds(pod: Pod, now: datetime) -> float | None:
    """How long until the pod's DisruptionTarget mark counts as stale; None when it bears no such mark.

    A pod that was to be evicted and lives on two minutes later was not: the mark is set to False.
    """
    if pod.metadata.deletion_timestamp is not None or is_terminal(pod):
        return None
    condition = pod_condition(pod, DISRUPTION_TARGET)
    if condition is None or condition.status != "True" or condition.reason == "TerminationByKubelet":
        return None
    since = condition.last_transition_time
    return 0.0 if since is None else max(0.0, (since + STALE_DISRUPTION - now).total_seconds())


def format_selector(selector: LabelSelector | None) -> str:
    """A selector as Go prints it, for the words of events."""
    if selector is None:
        return "nil"
    labels = "".join(f"{key}: {value}," for key, value in sorted(selector.match_labels.items()))
    tests = "".join(
        f"LabelSelectorRequirement{{Key:{item.key},Operator:{item.operator},Values:[{' '.join(item.values)}],}},"
        for item in selector.match_expressions
    )
    expressions = f"MatchExpressions:[]LabelSelectorRequirement{{{tests}}}"
    return f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},{expressions},}}"
