"""The algorithm as the scheduling cycle asks it: which profile, how far to look, where to begin.

Source: pkg/scheduler/schedule_one.go (findNodesThatFitPod, nextStartNodeIndex), v1.36.
"""

import random
from typing import Protocol

from skysail.scheduler.algorithm import ScheduleResult, SearchLimit, schedule_pod
from skysail.scheduler.cache.pod_info import PodInfo
from skysail.scheduler.cache.snapshot import Snapshot
from skysail.scheduler.framework.handle import Nominations
from skysail.scheduler.framework.runner import Framework
from skysail.scheduler.framework.sampling import num_feasible_nodes


class Decider(Protocol):
    """Chooses a node for a pod, in memory and at once."""

    def decide(self, pod_info: PodInfo, snapshot: Snapshot) -> ScheduleResult:
        """The node, or why not."""
        ...


class ProfileDecider:
    """Decides for one profile.

    Args:
        framework: The profile's plugins.
        percentage: `percentageOfNodesToScore`; None looks at every node.
        rotation: Where the last limited search of any profile ended; shared by all.
        nominations: Who was promised which node.
        rng: Breaks ties.
    """

    def __init__(
        self,
        framework: Framework,
        percentage: int | None,
        rotation: "Rotation",
        nominations: Nominations,
        rng: random.Random,
    ) -> None:
        self._framework, self._percentage, self._rotation = framework, percentage, rotation
        self._nominations, self._rng = nominations, rng

    def decide(self, pod_info: PodInfo, snapshot: Snapshot) -> ScheduleResult:
        """The node, or why not."""
        limit, count = None, len(snapshot)
        if self._percentage is not None:
            limit = SearchLimit(num_feasible_nodes(self._percentage, count), self._rotation.start % count)
        result = schedule_pod(
            self._framework, snapshot, pod_info, self._rng, nominations=self._nominations, limit=limit
        )
        if limit is not None:
            self._rotation.start = (limit.start + result.evaluated_nodes) % count
        return result


class Rotation:
    """Where the next limited search begins, so that all nodes get their turn."""

    def __init__(self) -> None:
        self.start = 0
