"""Which evictions would break a disruption budget.

Source: pkg/scheduler/framework/plugins/defaultpreemption `filterPodsWithPDBViolation`, v1.36.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from skysail.api.labels import Selector
from skysail.api.policy import PodDisruptionBudget
from skysail.scheduler.cache.pod_info import PodInfo

Rule = tuple[PodDisruptionBudget, Selector]


class Budgets:
    """The budgets of a cluster, for one search.

    A pod meets only the budgets of its namespace, and their selectors are read when the first pod meets them: a large
    cluster has a budget for each of its applications, and a search looks at the pods of hundreds of nodes.

    Args:
        budgets: As they stand. One with an empty selector, or with one that cannot be read, concerns nobody.
    """

    def __init__(self, budgets: Iterable[PodDisruptionBudget] = ()) -> None:
        self._unread: defaultdict[str, list[PodDisruptionBudget]] = defaultdict(list)
        for budget in budgets:
            self._unread[budget.metadata.namespace].append(budget)
        self._rules: dict[str, list[Rule]] = {}

    def __bool__(self) -> bool:
        return bool(self._unread)

    def split(self, pods: Sequence[PodInfo]) -> tuple[list[PodInfo], list[PodInfo]]:
        """`(violating, others)`, both in the order given: evicting the pods in this order, who overdraws a budget?

        A pod that a budget already counts as disrupted costs it nothing.
        """
        allowed: dict[str, list[int]] = {}
        violating: list[PodInfo] = []
        others: list[PodInfo] = []
        for info in pods:
            metadata = info.pod.metadata
            violates = False
            if metadata.labels and metadata.namespace in self._unread:
                rules = self._rules_in(metadata.namespace)
                left = allowed.get(metadata.namespace)
                if left is None:
                    left = [budget.status.disruptions_allowed for budget, _ in rules]
                    allowed[metadata.namespace] = left
                for index, (budget, selector) in enumerate(rules):
                    if selector.matches(metadata.labels) and metadata.name not in budget.status.disrupted_pods:
                        left[index] -= 1
                        violates |= left[index] < 0
            (violating if violates else others).append(info)
        return violating, others

    def _rules_in(self, namespace: str) -> list[Rule]:
        rules = self._rules.get(namespace)
        if rules is None:
            read = [(budget, _selector(budget)) for budget in self._unread[namespace]]
            rules = self._rules[namespace] = [(budget, each) for budget, each in read if each is not None]
        return rules


def _selector(budget: PodDisruptionBudget) -> Selector | None:
    try:
        selector = Selector.from_label_selector(budget.spec.selector)
    except ValueError:
        return None
    return None if selector.empty else selector
