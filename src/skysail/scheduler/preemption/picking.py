"""The choice among candidates: five criteria in order, the next asked only when the last leaves a tie.

Source: pkg/scheduler/framework/preemption/preemption.go `pickOneNodeForPreemption`, v1.36.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from operator import attrgetter

from skysail.scheduler.cache.pod_info import PodInfo
from skysail.scheduler.preemption.victims import Victims

PRIORITY_FLOOR = 1 << 31
"""Added to every victim's priority, so that each victim costs something: fewer victims nearly always win."""

NOT_STARTED = datetime.max.replace(tzinfo=UTC)
"""The start of a pod that has not started: upstream takes the present. Differs: later than a start that lies ahead."""

_priority: Callable[[PodInfo], int] = attrgetter("priority")


def best_nodes(candidates: Mapping[str, Victims]) -> list[str]:
    """The nodes left after all criteria, in the order given; several when they tie."""
    names = list(candidates)
    for criterion in (_violations, _highest_priority, _sum_of_priorities, _number, _reversed_start):
        names = _least(names, candidates, criterion)
        if len(names) <= 1:
            break
    return names


def _least(names: Sequence[str], candidates: Mapping[str, Victims], criterion: Callable[[Victims], float]) -> list[str]:
    scores = [criterion(candidates[name]) for name in names]
    least = min(scores, default=0)
    return [name for name, score in zip(names, scores, strict=True) if score == least]


def _violations(victims: Victims) -> int:
    return victims.violations


def _highest_priority(victims: Victims) -> int:
    return victims.infos[0].priority


def _sum_of_priorities(victims: Victims) -> int:
    return sum(map(_priority, victims.infos)) + PRIORITY_FLOOR * len(victims.infos)


def _number(victims: Victims) -> int:
    return len(victims.infos)


def _reversed_start(victims: Victims) -> float:
    """The later the earliest start among the most important victims, the better."""
    return -earliest_start(victims).timestamp()


def earliest_start(victims: Victims) -> datetime:
    """The earliest start among the victims of the highest priority."""
    top = max(map(_priority, victims.infos))
    return min(info.pod.status.start_time or NOT_STARTED for info in victims.infos if info.priority == top)
