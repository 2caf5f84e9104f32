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
    """Bindings of one job, in order.

    Attributes:
        job: Whose.
        tasks: Which.
        kept: The claim they come of, to be erased once they are bound.
    """

    job: Job
    tasks: list[Task]
    kept: Claim | None = None


@dataclass(slots=True)
class Effects:
    """All of one cycle.

    Attributes:
        binds: Batches, in the order they were decided.
        slots: Slots that were bound, or are for one use and now have it.
        released: Slots that were given back.
        claims: Claims to write, before `evictions`.
        ended: Claims that ended without being kept: to be erased where they stand written.
        evictions: Pods to evict, each after its claim is written.
        drained: Pods to evict because their queue is closing.
        let_go: Pods to evict because their gang could not be made whole.
    """

    binds: list[BindBatch] = field(default_factory=list)
    slots: list[Slot] = field(default_factory=list)
    released: list[Slot] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    ended: list[Claim] = field(default_factory=list)
    evictions: list[Eviction] = field(default_factory=list)
    drained: list[Task] = field(default_factory=list)
    let_go: list[Task] = field(default_factory=list)
