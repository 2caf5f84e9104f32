"""The algorithm as the scheduling cycle asks it: which profile, how far to look, where to begin.

Source: pkg/scheduler/schedule_one.go (findNodesThatFitPod, nextStartNodeIndex), v1.36.
"""

import random
from typing import Protocol

from skysail.scheduler.algorithm import ScheduleResult, SearchLimit, schedule_pod
from skysail.scheduler.cache.pod_info import PodInfo
from skysail.scheduler.cache.snapshot import Snapshot
from skysail.scheduler.extenders.chain import ExtenderChain
from skysail.scheduler.extenders.deciding import schedule_asking
from skysail.scheduler.framework.conversation import Conversation
from skysail.scheduler.framework.handle import Nominations
from skysail.scheduler.framework.runner import Framework
from skysail.scheduler.framework.sampling import num_feasible_nodes


class Decider(Protocol):
    """Chooses a node for a pod, in memory and at once."""

    def decide(self, pod_info: PodInfo, snapshot: Snapshot) -> ScheduleResult:
        """The node, or why not."""
        ...

    def decide_asking(
        self, pod_info: PodInfo, snapshot: Snapshot, chain: ExtenderChain
    ) -> Conversation[ScheduleResult]:
        """`decide`, with extenders."""
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
        limit = self._limit(snapshot)
        result = schedule_pod(
            self._framework, snapshot, pod_info, self._rng, nominations=self._nominations, limit=limit
        )
        return self._rotated(result, snapshot, limit)

    def decide_asking(
        self, pod_info: PodInfo, snapshot: Snapshot, chain: ExtenderChain
    ) -> Conversation[ScheduleResult]:
        """`decide`, with extenders."""
        limit = self._limit(snapshot)
        result = yield from schedule_asking(
            self._framework, snapshot, pod_info, self._rng, chain, nominations=self._nominations, limit=limit
        )
        return self._rotated(result, snapshot, limit)

    def _limit(self, snapshot: Snapshot) -> SearchLimit | None:
        if self._percentage is None:
            return None
        count = len(snapshot)
        return SearchLimit(num_feasible_nodes(self._percentage, count), self._rotation.start % count)

    def _rotated(self, result: ScheduleResult, snapshot: Snapshot, limit: SearchLimit | None) -> ScheduleResult:
        if limit is not None:
            result.limit = limit
            self._rotation.start = (limit.start + result.evaluated_nodes) % len(snapshot)
        return result


class Rotation:
    """Where the next limited search begins, so that all nodes get their turn."""

    def __init__(self) -> None:
        self.start = 0
