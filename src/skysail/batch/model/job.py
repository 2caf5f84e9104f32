"""A job and its tasks: a pod group with its pods, or a pod that stands alone.

A task's way:

    GATED --gates lifted--> PENDING --Allocate, commit--> BINDING --watch--> BOUND --deletion begins--> RELEASING
                               |                            | bind failed: PENDING  | ends: SUCCEEDED, FAILED  | gone
                               |--Pipeline, commit with a claim--> CLAIMED --victims gone--> BINDING

Invariant: exactly the states in `HELD` (and RELEASING) stand in the ledger's `held` (`releasing`), CLAIMED in
`claimed`; `skysail.batch.world` moves them.
"""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from typing import Final, Literal

from skysail.api.core import Pod
from skysail.batch.model.claim import Claim
from skysail.batch.model.outcome import Outcome
from skysail.batch.model.resources import PODS, ResourceVector
from skysail.batch.model.slot import Slot
from skysail.batch.model.specs import ALONE, Membership, PodGroupSpec
from skysail.scheduler.cache.pod_info import PodInfo


class TaskState(IntEnum):
    """Where a task is on its way."""

    GATED = 0
    PENDING = 1
    CLAIMED = 2
    BINDING = 3
    BOUND = 4
    RELEASING = 5
    SUCCEEDED = 6
    FAILED = 7


HELD: Final = frozenset({TaskState.BINDING, TaskState.BOUND})
READY: Final = frozenset({TaskState.BINDING, TaskState.BOUND, TaskState.SUCCEEDED})
ENDED: Final = frozenset({TaskState.SUCCEEDED, TaskState.FAILED})


Age = tuple[float, str]
Word = Literal["group", "queue", "user"]
"""What a pod may say for its job: that it needs no object, its queue or JobQueue, who submitted it."""


class Task:
    """One pod, as a part of its job.

    Attributes:
        uid: The pod's.
        age: Its place among all tasks by when it was made; whoever hears of them in whatever order agrees on that.
        info: The pod and what is derived of it.
        job: Whose it is.
        membership: What the pod says of itself.
        sub_group: The sub-group it belongs to, or empty.
        state: See above.
        node: Where it is or shall be; empty while it waits.
        request: What it asks for, `pods` included, zeros left out. Equal requests are one object.
        charged: What the ledger holds for it, so that exactly this is taken back.
        signed: Its signature as last computed, with what that depended on; whoever signs keeps it here. None once the
            pod changed.
        slot: The explicit slot it sits in.
        started: Seconds at which it was bound.
    """

    __slots__ = (
        "age", "charged", "info", "job", "membership", "node", "request", "signed", "slot", "started", "state",
        "sub_group", "uid",
    )  # fmt: skip

    def __init__(self, info: PodInfo, job: "Job", membership: Membership = ALONE) -> None:
        self.uid = info.key
        created = info.pod.metadata.creation_timestamp
        self.age: Age = (created.timestamp() if created else 0.0, self.uid)
        self.info, self.job, self.membership = info, job, membership
        self.sub_group = membership.sub_group
        self.state = TaskState.PENDING
        self.node = ""
        self.request = request_of(info)
        self.charged: ResourceVector | None = None
        self.signed: tuple[object, object, object] | None = None
        self.slot: Slot | None = None
        self.started = 0.0

    @property
    def pod(self) -> Pod:
        """The pod."""
        return self.info.pod

    @property
    def role(self) -> str:
        """Its role in the gang, or empty."""
        return self.membership.role

    @property
    def priority(self) -> int:
        """The pod's priority."""
        return self.info.pod.spec.priority or 0

    @property
    def key(self) -> str:
        """`namespace/name` of the pod."""
        return self.info.pod.key

    @property
    def order(self) -> tuple[int, float, str, str]:
        """Its place among its job's tasks: priority, age, name, uid."""
        return -self.priority, self.age[0], self.info.pod.name, self.uid

    def __repr__(self) -> str:
        return f"Task({self.key}, {self.state.name}, {self.node or '-'})"


_requests: dict[tuple[tuple[str, int], ...], Mapping[str, int]] = {}


def request_of(info: PodInfo) -> Mapping[str, int]:
    """What a pod asks for, `pods` included; equal requests are one object, so that they compare by identity."""
    key = tuple(sorted((name, amount) for name, amount in info.requests.items() if amount))
    known = _requests.get(key)
    if known is None:
        if len(_requests) > 4096:
            _requests.clear()
        known = _requests[key] = {**dict(key), PODS: 1}
    return known


class Job:
    """One scheduling unit.

    Attributes:
        key: `namespace/name` of the group, or of the lone pod behind a mark (see `lone_key`).
        spec: The group, or what stands for it; None while pods name a group that is not there.
        uid: Of the group or the pod; the last word in every order.
        tasks: By uid, in the order they came.
        queue: The name of its queue, as resolved; may name a queue that is not there.
        line: `namespace/name` of its JobQueue, or empty.
        user: Who submitted it, as its eldest pod that says so says; with the groups of that user.
        claim: What it was promised.
        outcome: Why it waits; None when it does not.
        first_seen: Seconds at which it first wanted to run.
        passed_over: How many jobs passed it while it was blocked at the head of its line.
        was_ready: Whether its minimum was ever met.
        admitted: Seconds at which its minimum was last met.
        attempts: How often it was tried.
        bind_failures: How many of its bindings failed since the last that did not.
        retry_at: Seconds before which it is not tried again.
        is_lone: Whether it is a pod without a group.
    """

    __slots__ = (
        "_elders", "admitted", "attempts", "bind_failures", "claim", "first_seen", "is_lone", "key", "line", "outcome",
        "passed_over", "queue", "retry_at", "spec", "tasks", "uid", "user", "was_ready",
    )  # fmt: skip

    def __init__(self, key: str, spec: PodGroupSpec | None, *, is_lone: bool = False, now: float = 0.0) -> None:
        self.key, self.spec, self.is_lone = key, spec, is_lone
        self.uid = spec.uid if spec is not None else ""
        self.tasks: dict[str, Task] = {}
        self._elders: dict[Word, list[Age]] = {}
        self.queue = self.line = ""
        self.user: tuple[str, tuple[str, ...]] = ("", ())
        self.claim: Claim | None = None
        self.outcome: Outcome | None = None
        self.first_seen = now
        self.passed_over = 0
        self.was_ready = False
        self.admitted = 0.0
        self.attempts = self.bind_failures = 0
        self.retry_at = 0.0

    @property
    def name(self) -> str:
        """`namespace/name` as people know it."""
        return self.spec.key if self.spec is not None else self.key

    @property
    def namespace(self) -> str:
        """Where it lives."""
        return self.key.removeprefix("pod:").partition("/")[0]

    @property
    def priority(self) -> int:
        """Of its group, or the highest of its tasks."""
        if self.spec is not None and self.spec.priority is not None:
            return self.spec.priority
        return max((task.priority for task in self.tasks.values()), default=0)

    @property
    def created(self) -> float:
        """Seconds since 1970."""
        return self.spec.created if self.spec is not None else self.first_seen

    @property
    def min_member(self) -> int:
        """How many tasks it needs at least, of any role."""
        return self.spec.min_member if self.spec is not None else 1

    def take(self, task: Task) -> None:
        """A pod is one of its tasks from now on."""
        self.tasks[task.uid] = task
        for word in _words_of(task):
            insort(self._elders.setdefault(word, []), task.age)

    def give_up(self, task: Task) -> None:
        """A pod is none of its tasks any more."""
        del self.tasks[task.uid]
        for word in _words_of(task):
            elders = self._elders[word]
            del elders[bisect_left(elders, task.age)]

    def eldest(self, word: Word) -> Task | None:
        """The eldest of its tasks that says this."""
        elders = self._elders.get(word)
        return self.tasks[elders[0][1]] if elders else None

    def in_state(self, *states: TaskState) -> list[Task]:
        """Its tasks in one of these states, in the order they came."""
        return [task for task in self.tasks.values() if task.state in states]

    def pending(self) -> list[Task]:
        """Tasks that wait for a place, in their order."""
        return sorted(self.in_state(TaskState.PENDING), key=lambda task: task.order)

    def is_waiting(self) -> bool:
        """Whether any task wants a place it does not have."""
        return any(task.state <= TaskState.CLAIMED for task in self.tasks.values())

    def is_running(self) -> bool:
        """Whether any task holds a node."""
        return any(task.state in HELD for task in self.tasks.values())

    def counts(self, states: Iterable[TaskState] = READY) -> "Counts":
        """How many tasks are in these states, by role and sub-group."""
        wanted = frozenset(states)
        counts = Counts()
        for task in self.tasks.values():
            if task.state in wanted:
                counts.add(task)
        return counts

    def __repr__(self) -> str:
        return f"Job({self.key}, {len(self.tasks)} tasks)"


def _words_of(task: Task) -> Iterator[Word]:
    said = task.membership
    if task.job.is_lone or said.implicit:
        yield "group"
    if said.queue or said.job_queue:
        yield "queue"
    if said.user or said.user_groups:
        yield "user"


class Counts:
    """How many tasks of a job are ready, or would be.

    Attributes:
        total: All.
        roles: By role.
        sub_groups: By the sub-group they belong to themselves.
    """

    __slots__ = ("roles", "sub_groups", "total")

    def __init__(self) -> None:
        self.total = 0
        self.roles: Counter[str] = Counter()
        self.sub_groups: Counter[str] = Counter()

    def add(self, task: Task, number: int = 1) -> None:
        """Count a task, or that many equal ones."""
        self.total += number
        self.roles[task.role] += number
        self.sub_groups[task.sub_group] += number

    def copy(self) -> "Counts":
        """An independent count."""
        counts = Counts()
        counts.total, counts.roles, counts.sub_groups = self.total, self.roles.copy(), self.sub_groups.copy()
        return counts


def lone_key(pod: Pod) -> str:
    """The key of a pod that is a job by itself."""
    return f"pod:{pod.key}"
