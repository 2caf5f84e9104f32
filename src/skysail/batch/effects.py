"""What a cycle decided and the shell shall do: bindings, slot bindings, claims and their evictions.

Order matters: a claim is written before its first eviction; bindings of one job are one ordered batch.
"""

from dataclasses import dataclass, field

from skysail.batch.model.claim import Claim
from skysail.batch.model.job import Job, Task
from skysail.batch.model.slot import Slot


@dataclass(frozen=True, slots=True)
class Eviction:
    """A pod that shall leave, and for whom."""

    task: Task
    claim: Claim


@dataclass(slots=True)
class BindBatch:
    """Bindings of one job, in order."""

    job: Job
    tasks: list[Task]


@dataclass(slots=True)
class Effects:
    """All of one cycle.

    Attributes:
        binds: Batches, in the order they were decided.
        slots: Slots that were bound.
        released: Slots that were given back.
        claims: Claims to write, before `evictions`.
        ended: Jobs whose claim ended without being kept.
        evictions: Pods to evict, each after its claim is written.
    """

    binds: list[BindBatch] = field(default_factory=list)
    slots: list[Slot] = field(default_factory=list)
    released: list[Slot] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    ended: list[Job] = field(default_factory=list)
    evictions: list[Eviction] = field(default_factory=list)
