"""The choice among candidates: five criteria in order, the next asked only when the last leaves a tie.

Source: pkg/scheduler/framework/preemption/preemption.go `pickOneNodeForPreemption`, v1.36.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from skysail.scheduler.cache.node_info import start_of
from skysail.scheduler.preemption.victims import Victims

PRIORITY_FLOOR = 1 << 31
"""Added to every victim's priority, so that each victim costs something: fewer victims nearly always win."""


def best_nodes(candidates: Mapping[str, Victims]) -> list[str]:
    """The nodes left after all criteria, in the order given; several when they tie."""
    names = list(candidates)
    for criterion in (_violations, _highest_priority, _sum_of_priorities, _number, _reversed_start):
        names = _least(names, candidates, criterion)
        if len(names) <= 1:
            break
    return names


def _least(names: Sequence[str], candidates: Mapping[str, Victims], criterion: Callable[[Victims], float]) -> list[str]:
    scores = {name: criterion(candidates[name]) for name in names}
    least = min(scores.values(), default=0)
    return [name for name in names if scores[name] == least]


def _violations(victims: Victims) -> int:
    return victims.violations


def _highest_priority(victims: Victims) -> int:
    return victims.priorities[0]


def _sum_of_priorities(victims: Victims) -> int:
    return sum(victims.priorities) + PRIORITY_FLOOR * len(victims.priorities)


def _number(victims: Victims) -> int:
    return len(victims.pods)


def _reversed_start(victims: Victims) -> float:
    """The later the earliest start among the most important victims, the better."""
    return -earliest_start(victims).timestamp()


def earliest_start(victims: Victims) -> datetime:
    """The earliest start among the victims of the highest priority."""
    top = max(victims.priorities)
    return min(start_of(pod) for pod, each in zip(victims.pods, victims.priorities, strict=True) if each == top)
