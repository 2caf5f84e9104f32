"""Disruption budgets."""

from collections.abc import Mapping
from datetime import datetime

from skysail.api.meta import ApiObject, Condition, LabelSelector, Struct


class PodDisruptionBudgetSpec(Struct, frozen=True, gc=False):
    """How many of the selected pods must, or need not, be healthy."""

    max_unavailable: int | str | None = None
    min_available: int | str | None = None
    selector: LabelSelector | None = None
    unhealthy_pod_eviction_policy: str | None = None


class PodDisruptionBudgetStatus(Struct, frozen=True, gc=False):
    """How many may be disrupted now."""

    conditions: tuple[Condition, ...] = ()
    current_healthy: int = 0
    desired_healthy: int = 0
    disrupted_pods: Mapping[str, datetime] = {}
    disruptions_allowed: int = 0
    expected_pods: int = 0
    observed_generation: int = 0


class PodDisruptionBudget(ApiObject, frozen=True, gc=False):
    """A limit on voluntary disruption."""

    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()
