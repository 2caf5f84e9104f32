"""Capacity promised to a job while its victims leave.

A claim is written to the job's status before the first eviction, honoured after a restart, and ends: by the job's tasks
being bound, by its deadline, or because it can no longer be kept. While it lives its tasks stand in the cluster cache
as assumed pods, so that nobody else is given the room, and in the ledger's `claimed` column.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Claim:
    """One promise.

    Attributes:
        id: Names it in logs, events and statuses; rises.
        job: The beneficiary's key.
        placement: Node name by task uid.
        victims: `namespace/name` by uid of the pods that leave.
        deadline: Seconds on the world's clock at which it ends.
        reason: `reclaim` or `preempt`; `repair` for one without victims (`skysail.batch.repair`).
    """

    id: str
    job: str
    placement: Mapping[str, str]
    victims: Mapping[str, str]
    deadline: float
    reason: str = "reclaim"

    @property
    def capacity(self) -> Mapping[str, int]:
        """How many tasks wait for each node."""
        count: dict[str, int] = {}
        for node in self.placement.values():
            count[node] = count.get(node, 0) + 1
        return count
