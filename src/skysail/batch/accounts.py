"""What the world's books have in common: queues, ledger, demand, and who is awake.

The bottom of `World`, which is one account in five layers, each a page: `accounts`, `slot_book` (Quotas' slots),
`task_book` (a task's way, claims), `queue_book` (queues, lines, groups), `world` (nodes and pods).
"""

from collections.abc import Callable, Mapping
from typing import Final, Protocol

from skysail.api.core import Pod
from skysail.api.node import Node
from skysail.batch.flavors import Flavors
from skysail.batch.kinds.parts import SCHEDULER_NAME
from skysail.batch.ledger import Column, Ledger
from skysail.batch.membership import read_membership
from skysail.batch.model.claim import Claim
from skysail.batch.model.distrust import Distrust, Refused
from skysail.batch.model.job import Job, Task, TaskState
from skysail.batch.model.outcome import Event, Outcome, told
from skysail.batch.model.queue import Queue, QueueTree
from skysail.batch.model.resources import FlavorResource, ResourceVector
from skysail.batch.model.slot import Slot
from skysail.batch.model.specs import JobQueueSpec, Membership, QueueSpec, QuotaSpec
from skysail.batch.sleepers import Sleepers
from skysail.batch.usage import Usage
from skysail.batch.user_limits import User, accounts_of
from skysail.scheduler.cache.cluster_cache import ClusterCache
from skysail.scheduler.cache.snapshot import Snapshot
from skysail.scheduler.framework.handle import Handle

DEFAULT_QUEUE: Final = "default"
REMEMBERED: Final = 8192
"""How many answers are remembered that can be worked out again."""
ENDED_PHASES: Final = ("Succeeded", "Failed")
COLUMNS: Final = {
    TaskState.BINDING: Column.HELD,
    TaskState.BOUND: Column.HELD,
    TaskState.CLAIMED: Column.CLAIMED,
    TaskState.RELEASING: Column.RELEASING,
}


class VolumeReserver(Protocol):
    """Who keeps assumed volumes between a decision and its binding."""

    def unreserve(self, task: Task, node: str) -> None:
        """Give them back."""
        ...

    async def pre_bind(self, task: Task) -> str:
        """Write them; why that failed, or empty."""
        ...


class Accounts:
    """The account.

    Args:
        scheduler_name: Whose pods are ours.
        cache: Shared with the pod-at-a-time engine, which then feeds it; an own one, fed from here, when None.
        membership: Reads a pod's group, role and queue.
        seed: For dice, should any plugin need them; part of every dump.

    Attributes:
        handle: What pod plugins are lent; one without other objects when None.
        storage: Keeps volumes that were assumed; set by the storage plugin.
        now: Seconds since 1970; set by whoever steps the world.
        snapshot: The nodes as sessions see them.
        tree: The queues.
        ledger: Who holds what.
        jobs: By key.
        tasks: By pod uid.
        slots: By key.
        slots_on: Those on each node, by key; nodes without any are left out.
        sleepers: Which jobs to look at.
        claims: Live ones, by job key.
        heads: Blocked heads of each queue, with what they lack; see `actions.lines`.
        shares: What each queue was entitled to when that was last looked at, to see who may claim more now.
        borrowers: Which queue used more than its share of what then.
        foreign_use: What pods of other schedulers take of the cluster: no queue is entitled to that.
        refused: Bindings of gangs that were refused, until the gang is whole or holds nothing, by its key.
        protected: Until when a task whose eviction was refused is left alone, by uid.
        sharers: Uids of tasks that ask for a part of a device.
        relieved: Jobs that wait no longer, by key, since the last cycle told of it.
        evicting: Uids of tasks whose eviction was decided; they count as leaving before their pods say so.
        distrust: Pairs of job and node where a bind failed, and what is known of that.
    """

    def __init__(
        self,
        *,
        scheduler_name: str = SCHEDULER_NAME,
        cache: ClusterCache | None = None,
        membership: Callable[[Pod], Membership] = read_membership,
        seed: int = 0,
    ) -> None:
        self.scheduler_name, self.seed = scheduler_name, seed
        self.handle: Handle | None = None
        self.storage: VolumeReserver | None = None
        self.owns_cache = cache is None
        self.cache = cache if cache is not None else ClusterCache()
        self.snapshot = Snapshot()
        self.now = 0.0
        self.membership = membership
        self.flavors, self.ledger, self.sleepers, self.usage = Flavors(), Ledger(), Sleepers(), Usage()
        self.queue_specs: dict[str, QueueSpec] = {}
        self.tree = QueueTree([QueueSpec(DEFAULT_QUEUE)])
        self.job_queues: dict[str, JobQueueSpec] = {}
        self.quotas: dict[str, QuotaSpec] = {}
        self.jobs: dict[str, Job] = {}
        self.tasks: dict[str, Task] = {}
        self.slots: dict[str, Slot] = {}
        self.slots_on: dict[str, dict[str, Slot]] = {}
        self.claims: dict[str, Claim] = {}
        self.heads: dict[str, dict[str, frozenset[str]]] = {}
        self.relieved: dict[str, Job] = {}
        self.shares: dict[str, dict[FlavorResource, int]] = {}
        self.borrowers: frozenset[tuple[str, FlavorResource]] = frozenset()
        self.distrust: dict[tuple[str, str], Distrust] = {}
        self.wanted: dict[str, dict[str, int]] = {}
        self.bundles: dict[str, dict[str, Job]] = {}
        self.evicting: set[str] = set()
        self.protected: dict[str, float] = {}
        self.refused: dict[str, Refused] = {}
        self.sharers: set[str] = set()
        self.changes = 0
        """Rises with every change that may matter to a decision."""
        self._foreign: dict[str, tuple[str, Mapping[str, int]]] = {}
        self.foreign_use: dict[FlavorResource, int] = {}
        self._vectors: dict[tuple[int, str], tuple[object, ResourceVector]] = {}
        self._nodes: dict[str, Node] = {}
        self.claims_made = 0
        self._ended_claims: list[Claim] = []
        self._user_paths: dict[tuple[str, User], tuple[Queue, ...]] = {}
        self.namespaces: dict[str, Mapping[str, str]] = {}
        """Labels of namespaces, by name; a name that is not there has none but its name."""

    def queue_of(self, job: Job) -> Queue | None:
        """A job's queue, or None when it is not there."""
        return self.tree.get(job.queue)

    def path_of(self, queue: str) -> tuple[Queue, ...]:
        """Where a queue's use is charged; nowhere when the queue is not there."""
        found = self.tree.get(queue)
        return found.path if found is not None else ()

    def path_of_job(self, job: Job) -> tuple[Queue, ...]:
        """Where a job's use is charged: accounts of its user where the queues limit users, then the queues."""
        path = self.path_of(job.queue)
        if not any(queue.spec.limits for queue in path):
            return path
        key = job.queue, job.user
        known = self._user_paths.get(key)
        if known is None or known[-len(path) :] != path:
            if len(self._user_paths) > REMEMBERED:
                self._user_paths.clear()
            known = self._user_paths[key] = (*accounts_of(path, job.user), *path)
        return known

    def bundle_of(self, job: Job) -> list[Job]:
        """All jobs that start together with this one, itself included, by key."""
        if job.spec is None or not job.spec.bundle:
            return [job]
        return [each for _, each in sorted(self.bundles[f"{job.spec.namespace}/{job.spec.bundle}"].items())]

    def vector_of(self, request: object, flavor: str) -> ResourceVector:
        """What a request charges on nodes of a flavor, with the sums over flavors; remembered."""
        key = (id(request), flavor)
        known = self._vectors.get(key)
        if known is None or known[0] is not request:
            vector = ResourceVector.of(request, flavor).over_all_flavors()  # type: ignore[arg-type]
            if len(self._vectors) > REMEMBERED:
                self._vectors.clear()
            known = self._vectors[key] = (request, vector)
        return known[1]

    def _charge(self, task: Task) -> None:
        column = COLUMNS.get(task.state)
        if column is None or task.slot is not None:
            return
        task.charged = self.vector_of(task.request, self.flavors.of(task.node))
        self.ledger.force(self.path_of_job(task.job), task.charged, column)

    def _uncharge(self, task: Task) -> None:
        if task.charged is not None:
            self.ledger.release(self.path_of_job(task.job), task.charged, COLUMNS[task.state])
            task.charged = None

    def _count_wanted(self, task: Task, sign: int) -> None:
        self.count_wanted(task.job, task.request, sign)

    def count_wanted(self, job: Job, request: Mapping[str, int], number: int) -> None:
        """So many more (or fewer) tasks of a job wait for a place."""
        wanted = self.wanted.setdefault(job.queue, {})
        for resource, amount in request.items():
            wanted[resource] = wanted.get(resource, 0) + number * amount
        if job.queue not in self.tree and not any(wanted.values()):
            del self.wanted[job.queue]

    def settle_usage(self, now: float) -> None:
        """Count past use up to now."""
        self.usage.settle(self.tree.values(), self.ledger, self.flavors.totals, now)

    def tell(self, event: Event, about: str = "") -> None:
        """Something happened that some sleeper may wait for."""
        self.changes += 1
        self.sleepers.tell(told(event, about))

    def is_waiting(self, job: Job) -> bool:
        """Whether a job owes the world an Outcome."""
        if job.is_waiting():
            return True
        return job.spec is not None and not job.is_lone and not job.was_ready and len(job.tasks) < job.spec.min_member

    def _wake(self, job: Job) -> None:
        self.changes += 1
        if self.is_waiting(job):
            self.sleepers.wake(job.key)
            for other in self.bundle_of(job):
                if other is not job and self.is_waiting(other):
                    self.sleepers.wake(other.key)
        else:
            if job.outcome is not None:
                job.outcome = None
                self.relieved[job.key] = job
            self.sleepers.drop(job.key)
            self.leave_line(job)

    def take_relieved(self) -> dict[str, Job]:
        """Jobs that wait no longer since this was asked last, by key; those that wait again are left out."""
        found, self.relieved = self.relieved, {}
        return {key: job for key, job in found.items() if job.outcome is None}

    def leave_line(self, job: Job) -> None:
        """A job is a blocked head no longer: it was placed or promised room, or is gone; those behind it may go."""
        if self.heads.get(job.queue, {}).pop(job.key, None) is not None:
            self.tell(Event.LINE_MOVED, job.queue)

    def settle(self, job: Job, outcome: Outcome | None, before: Outcome | None) -> bool:
        """Note a job's outcome after a try and let it sleep; whether code or key numbers are others than before."""
        if outcome is None:
            job.outcome = None
            self.sleepers.drop(job.key)
            self.leave_line(job)
            return before is not None
        since = before.since if before is not None and outcome.says_the_same(before) else self.now
        job.outcome = Outcome(
            outcome.code, outcome.message, outcome.numbers, since, outcome.next_events, outcome.detail
        )
        return not outcome.says_the_same(before)
