"""Which evictions would break a disruption budget."""

from collections.abc import Sequence

from skysail.api.labels import Selector
from skysail.api.policy import PodDisruptionBudget
from skysail.scheduler.cache.pod_info import PodInfo


def split_by_budgets(
    pods: Sequence[PodInfo], budgets: Sequence[PodDisruptionBudget]
) -> tuple[list[PodInfo], list[PodInfo]]:
    """`(violating, others)`, both in the order given: evicting the pods in this order, who overdraws a budget?

    A pod that a budget already counts as disrupted costs it nothing. A budget with an empty selector, or one that
    cannot be read, concerns nobody.
    """
    if not budgets:
        return [], list(pods)
    rules = [(budget, selector) for budget in budgets if (selector := _selector(budget)) is not None]
    allowed = [budget.status.disruptions_allowed for budget, _ in rules]
    violating: list[PodInfo] = []
    others: list[PodInfo] = []
    for info in pods:
        metadata = info.pod.metadata
        violates = False
        if metadata.labels:
            for index, (budget, selector) in enumerate(rules):
                if budget.metadata.namespace != metadata.namespace or not selector.matches(metadata.labels):
                    continue
                if metadata.name in budget.status.disrupted_pods:
                    continue
                allowed[index] -= 1
                violates |= allowed[index] < 0
        (violating if violates else others).append(info)
    return violating, others


def _selector(budget: PodDisruptionBudget) -> Selector | None:
    try:
        selector = Selector.from_label_selector(budget.spec.selector)
    except ValueError:
        return None
    return None if selector.empty else selector
