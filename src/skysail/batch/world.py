"""The cluster as the batch engine knows it: jobs, queues, slots and the ledger, over the shared cluster cache.

Readers of API objects feed it (`set_...`, `remove_...`); sessions decide over it; between sessions only what was
committed stays. Invariants, checked by `problems`:
- the ledger equals `rebuilt_ledger()`;
- a task that holds or was promised a node is in the cluster cache, on that node;
- a job with something that waits is awake, or asleep with an Outcome.

It has no clock: whoever steps it sets `now`, in seconds since 1970. Missing objects are no errors: a job whose queue or
group is not there waits, and says so.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, Protocol

from skysail.api.core import Pod
from skysail.api.node import Node
from skysail.api.resources import resource_amounts
from skysail.batch.devices import share_of
from skysail.batch.flavors import Flavors
from skysail.batch.ledger import Column, Ledger
from skysail.batch.membership import read_membership
from skysail.batch.model.claim import Claim
from skysail.batch.model.job import ENDED, HELD, Job, Task, TaskState, lone_key, request_of
from skysail.batch.model.outcome import Event, Outcome, told
from skysail.batch.model.queue import Queue, QueueTree
from skysail.batch.model.resources import FlavorResource, ResourceVector
from skysail.batch.model.slot import Slot
from skysail.batch.model.specs import FlavorSpec, JobQueueSpec, Membership, PodGroupSpec, QueueSpec, QuotaSpec
from skysail.batch.sleepers import Sleepers
from skysail.batch.slot_room import placeholder
from skysail.batch.usage import Usage
from skysail.scheduler.cache.cluster_cache import ClusterCache
from skysail.scheduler.cache.pod_info import PodInfo
from skysail.scheduler.cache.snapshot import Snapshot
from skysail.scheduler.framework.handle import Handle

SCHEDULER_NAME: Final = "sky-scheduler"
DEFAULT_QUEUE: Final = "default"
ENDED_PHASES: Final = ("Succeeded", "Failed")
_COLUMNS: Final = {
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


class World:
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
        sleepers: Which jobs to look at.
        claims: Live ones, by job key.
        heads: Blocked heads of each queue, with what they lack; see `actions.lines`.
        shares: What each queue was entitled to when that was last looked at, to see who may claim more now.
        foreign_use: What pods of other schedulers take of the cluster: no queue is entitled to that.
        sharers: Uids of tasks that ask for a part of a device.
        evicting: Uids of tasks whose eviction was decided; they count as leaving before their pods say so.
        distrust: Pairs of job and node where a bind failed, with the node's generation then.
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
        self.claims: dict[str, Claim] = {}
        self.heads: dict[str, list[tuple[str, frozenset[str]]]] = {}
        self.shares: dict[str, dict[FlavorResource, int]] = {}
        self.distrust: dict[tuple[str, str], int] = {}
        self.wanted: dict[str, dict[str, int]] = {}
        self.bundles: dict[str, dict[str, Job]] = {}
        self.evicting: set[str] = set()
        self.sharers: set[str] = set()
        self.changes = 0
        """Rises with every change that may matter to a decision."""
        self._foreign: dict[str, tuple[str, Mapping[str, int]]] = {}
        self.foreign_use: dict[FlavorResource, int] = {}
        self._vectors: dict[tuple[int, str], tuple[object, ResourceVector]] = {}
        self._nodes: dict[str, Node] = {}
        self.claims_made = 0

    # -- nodes -----------------------------------------------------------------------------------------------------

    def set_node(self, node: Node) -> None:
        """A node came or changed."""
        name = node.metadata.name
        before = self._nodes.get(name)
        self._nodes[name] = node
        if self.owns_cache:
            self.cache.add_node(node)
        if self.flavors.set_node(node) and before is not None:
            self._recharge()
        if before is None:
            self._tell_new_node(node)
        elif _matters(before) != _matters(node):
            self.tell(Event.NODE_CHANGED)

    def _tell_new_node(self, node: Node) -> None:
        """Wake those of whom a new node could hold at least one task; to the others it is no news."""
        offered = resource_amounts(node.status.allocatable)
        self.changes += 1
        for key in self.sleepers.waiting_for(told(Event.NODE_ADDED)):
            requests = {id(task.request): task.request for task in self.jobs[key].tasks.values()}
            if any(all(offered.get(name, 0) >= amount for name, amount in each.items()) for each in requests.values()):
                self.sleepers.wake(key)

    def remove_node(self, name: str) -> None:
        """A node is gone; its pods are so only when they say it."""
        if self._nodes.pop(name, None) is None:
            return
        if self.owns_cache:
            self.cache.remove_node(name)
        self.flavors.remove_node(name)
        self._recharge()
        self.changes += 1
        for job in [self.jobs[key] for key, claim in self.claims.items() if name in claim.placement.values()]:
            self.end_claim(job)
        for slot in self.slots.values():
            if slot.node == name:
                self.unbind_slot(slot)

    def nodes(self) -> Iterator[Node]:
        """All nodes, in the order they came."""
        return iter(self._nodes.values())

    def set_flavors(self, specs: Iterable[FlavorSpec]) -> None:
        """Other flavors are defined now."""
        self.flavors.set_specs(specs)
        self._recharge()
        self.tell(Event.NODE_CHANGED)

    # -- queues ----------------------------------------------------------------------------------------------------

    def set_queue(self, spec: QueueSpec) -> None:
        """A queue came or changed."""
        if self.queue_specs.get(spec.name) != spec:
            self.queue_specs[spec.name] = spec
            self._regrow()

    def remove_queue(self, name: str) -> None:
        """A queue is gone; its jobs wait for it."""
        if self.queue_specs.pop(name, None) is not None:
            self._regrow()

    def replace_queues(
        self, queues: Mapping[str, QueueSpec], lines: Mapping[str, JobQueueSpec], flavors: Iterable[FlavorSpec]
    ) -> None:
        """All queues, lines and flavors there are; what is not among them is gone."""
        wanted = tuple(sorted(flavors, key=lambda spec: spec.name))
        if wanted != self.flavors.specs():
            self.set_flavors(wanted)
        if dict(queues) != self.queue_specs:
            self.queue_specs = dict(queues)
            self._regrow()
        if dict(lines) != self.job_queues:
            self.job_queues = dict(lines)
            self._requeue()

    def set_job_queue(self, spec: JobQueueSpec) -> None:
        """A line came or changed."""
        self.job_queues[f"{spec.namespace}/{spec.name}"] = spec
        self._requeue()

    def remove_job_queue(self, namespace: str, name: str) -> None:
        """A line is gone."""
        if self.job_queues.pop(f"{namespace}/{name}", None) is not None:
            self._requeue()

    def queue_of(self, job: Job) -> Queue | None:
        """A job's queue, or None when it is not there."""
        return self.tree.get(job.queue)

    def path_of(self, queue: str) -> tuple[Queue, ...]:
        """Where a queue's use is charged; nowhere when the queue is not there."""
        found = self.tree.get(queue)
        return found.path if found is not None else ()

    def _regrow(self) -> None:
        specs = dict(self.queue_specs)
        specs.setdefault(DEFAULT_QUEUE, QueueSpec(DEFAULT_QUEUE))
        before = self.tree
        self.tree = QueueTree(specs.values())
        self._recharge()
        self.heads.clear()
        for name in {*before, *self.tree}:
            self.tell(Event.QUEUE_CHANGED, name)
        self.tell(Event.QUEUE_CHANGED)

    def _requeue(self) -> None:
        for job in self.jobs.values():
            self._place_in_queue(job)
        self._recharge()
        self.tell(Event.QUEUE_CHANGED)

    # -- groups ----------------------------------------------------------------------------------------------------

    def set_group(self, spec: PodGroupSpec) -> None:
        """A group came or changed."""
        job = self.jobs.get(spec.key)
        if job is None:
            job = self.jobs[spec.key] = Job(spec.key, spec, now=self.now)
        elif job.spec == spec:
            return
        self._leave_bundle(job)
        job.spec, job.uid = spec, spec.uid or spec.key
        self._join_bundle(job)
        for task in job.tasks.values():
            task.sub_group = self._sub_group_of(task, job)
        self._requeue_job(job)
        self._wake(job)

    def remove_group(self, key: str) -> None:
        """A group is gone; its pods wait for it, or run on."""
        job = self.jobs.get(key)
        if job is None or job.is_lone:
            return
        if job.claim is not None:
            self.end_claim(job)
        self._leave_bundle(job)
        job.spec = None
        self._wake(job)
        self._drop_if_empty(job)

    def _join_bundle(self, job: Job) -> None:
        if job.spec is not None and job.spec.bundle:
            self.bundles.setdefault(f"{job.spec.namespace}/{job.spec.bundle}", {})[job.key] = job

    def _leave_bundle(self, job: Job) -> None:
        if job.spec is not None and job.spec.bundle:
            members = self.bundles.get(f"{job.spec.namespace}/{job.spec.bundle}", {})
            members.pop(job.key, None)

    def bundle_of(self, job: Job) -> list[Job]:
        """All jobs that start together with this one, itself included, by key."""
        if job.spec is None or not job.spec.bundle:
            return [job]
        return [each for _, each in sorted(self.bundles[f"{job.spec.namespace}/{job.spec.bundle}"].items())]

    # -- pods ------------------------------------------------------------------------------------------------------

    def set_pod(self, pod: Pod) -> None:
        """A pod came or changed, ours or another scheduler's."""
        uid, ended = pod.metadata.uid, pod.status.phase in ENDED_PHASES
        if self.owns_cache:
            self._feed_cache(pod, ended=ended)
        if pod.spec.scheduler_name != self.scheduler_name:
            self._set_foreign(pod, ended=ended)
            return
        task = self.tasks.get(uid)
        membership = self.membership(pod)
        if task is not None and task.membership != membership:
            self._drop_task(task)
            task = None
        if not pod.spec.node_name and (pod.metadata.deletion_timestamp is not None):
            if task is not None:
                self._drop_task(task)
            return
        if task is None:
            task = self._add_task(pod, membership)
            self._wake(task.job)
        elif task.info.pod is not pod:
            info = PodInfo(pod)
            if task.state is TaskState.PENDING and info.requests != task.info.requests:
                self._count_wanted(task, -1)
                task.info = info
                task.request = Task(info, task.job).request
                self._count_wanted(task, 1)
                self._wake(task.job)
            else:
                task.info = info
        self._observe(task, pod, ended=ended)

    def remove_pod(self, uid: str) -> None:
        """A pod is gone."""
        task = self.tasks.get(uid)
        if self.owns_cache or (task is not None and task.state in (TaskState.BINDING, TaskState.CLAIMED)):
            self.cache.remove_pod(uid)
        self._drop_foreign(uid)
        if task is not None:
            self._drop_task(task)

    def _feed_cache(self, pod: Pod, *, ended: bool) -> None:
        if not pod.spec.node_name:
            return
        if ended:
            self.cache.remove_pod(pod.metadata.uid)
        else:
            self.cache.add_pod(pod)

    def _set_foreign(self, pod: Pod, *, ended: bool) -> None:
        uid = pod.metadata.uid
        if uid in self.tasks:
            self._drop_task(self.tasks[uid])
        if pod.spec.node_name and not ended:
            if uid not in self._foreign:
                self._foreign[uid] = (pod.spec.node_name, request_of(PodInfo(pod)))
                self._count_foreign(uid, 1)
                self.changes += 1
        else:
            self._drop_foreign(uid)

    def _drop_foreign(self, uid: str) -> None:
        if uid in self._foreign:
            self._count_foreign(uid, -1)
            del self._foreign[uid]
            self.tell(Event.POD_GONE)

    def _count_foreign(self, uid: str, sign: int) -> None:
        node, request = self._foreign[uid]
        for key, amount in self.vector_of(request, self.flavors.of(node)).items():
            self.foreign_use[key] = self.foreign_use.get(key, 0) + sign * amount

    def _add_task(self, pod: Pod, membership: Membership) -> Task:
        key = membership.group or lone_key(pod)
        job = self.jobs.get(key)
        if job is None:
            job = self.jobs[key] = Job(
                key, self._implied_spec(pod, membership), is_lone=not membership.group, now=self.now
            )
            job.uid = job.spec.uid if job.spec is not None else key
            self._join_bundle(job)
        task = Task(PodInfo(pod), job, membership)
        task.sub_group = self._sub_group_of(task, job)
        task.state = TaskState.GATED
        job.tasks[task.uid] = self.tasks[task.uid] = task
        if share_of(pod) is not None:
            self.sharers.add(task.uid)
        if not job.queue or membership.queue or membership.job_queue:
            self._requeue_job(job)
        return task

    def _implied_spec(self, pod: Pod, membership: Membership) -> PodGroupSpec | None:
        """The group of a pod that needs no object for it: a lone pod, or a gang that exists by annotation."""
        if membership.group and not membership.implicit:
            return None
        namespace, _, name = (membership.group or pod.key).rpartition("/")
        created = pod.metadata.creation_timestamp
        return PodGroupSpec(
            namespace=namespace,
            name=name,
            uid=pod.metadata.uid,
            queue=membership.queue,
            job_queue=membership.job_queue,
            min_member=membership.min_member if membership.group else 1,
            created=created.timestamp() if created is not None else self.now,
            preemptible=membership.preemptible is not False,
            bundle=min(membership.bundle, default=""),
            bundle_members=membership.bundle,
            match_policy=membership.match_policy,
        )

    @staticmethod
    def _sub_group_of(task: Task, job: Job) -> str:
        if task.membership.sub_group or job.spec is None:
            return task.membership.sub_group
        labels = task.pod.metadata.labels
        for group in job.spec.sub_groups:
            if group.selector is not None and group.selector.matches(labels):
                return group.name
        return ""

    def _observe(self, task: Task, pod: Pod, *, ended: bool) -> None:
        """Bring a task's state to what its pod says."""
        if ended:
            self.move(task, TaskState.SUCCEEDED if pod.status.phase == "Succeeded" else TaskState.FAILED, task.node)
        elif pod.spec.node_name:
            leaving = pod.metadata.deletion_timestamp is not None or task.uid in self.evicting
            self.move(task, TaskState.RELEASING if leaving else TaskState.BOUND, pod.spec.node_name)
        elif pod.spec.scheduling_gates:
            self.move(task, TaskState.GATED, "")
        elif task.state is TaskState.GATED:
            self.move(task, TaskState.PENDING, "")

    def _drop_task(self, task: Task) -> None:
        job = task.job
        if task.state is TaskState.CLAIMED:
            self.end_claim(job)
        if task.state is TaskState.BINDING:
            self._unreserve(task)
        if task.state is TaskState.BINDING and self.cache.is_assumed(task.uid):
            self.cache.forget(task.uid)
        self.move(task, TaskState.FAILED, task.node)
        self._leave_slot(task)
        del job.tasks[task.uid]
        del self.tasks[task.uid]
        self.evicting.discard(task.uid)
        self.sharers.discard(task.uid)
        self._wake(job)
        self._drop_if_empty(job)

    def _drop_if_empty(self, job: Job) -> None:
        if job.tasks or (job.spec is not None and not job.is_lone and not self._is_implied(job)):
            return
        self._leave_bundle(job)
        self.sleepers.drop(job.key)
        self._forget_head(job)
        for pair in [pair for pair in self.distrust if pair[0] == job.key]:
            del self.distrust[pair]
        del self.jobs[job.key]

    @staticmethod
    def _is_implied(job: Job) -> bool:
        """Whether the group exists only by what its pods say."""
        return job.spec is not None and bool(job.spec.bundle_members)

    # -- one task's way --------------------------------------------------------------------------------------------

    def move(self, task: Task, state: TaskState, node: str) -> None:
        """Bring a task to another state; ledger, demand and sleepers follow."""
        before, was_at = task.state, task.node
        if before is state and was_at == node:
            return
        self.changes += 1
        self._uncharge(task)
        if before is TaskState.PENDING:
            self._count_wanted(task, -1)
        task.state, task.node = state, node if state not in (TaskState.PENDING, TaskState.GATED) else ""
        if state is TaskState.PENDING:
            self._count_wanted(task, 1)
            self._wake(task.job)
        self._charge(task)
        if state is TaskState.BOUND and before is not TaskState.BOUND:
            task.started = self.now
        if state in ENDED or state is TaskState.GATED:
            self._leave_slot(task)
        if was_at and before in _COLUMNS and state not in _COLUMNS:
            self._tell_room(task.job)

    def _tell_room(self, job: Job) -> None:
        self.tell(Event.POD_GONE)
        for queue in self.path_of(job.queue):
            self.tell(Event.QUEUE_USE_FELL, queue.name)
        if self.is_waiting(job):
            self._wake(job)

    def vector_of(self, request: object, flavor: str) -> ResourceVector:
        """What a request charges on nodes of a flavor, with the sums over flavors; remembered."""
        key = (id(request), flavor)
        known = self._vectors.get(key)
        if known is None or known[0] is not request:
            vector = ResourceVector.of(request, flavor).over_all_flavors()  # type: ignore[arg-type]
            if len(self._vectors) > 8192:
                self._vectors.clear()
            known = self._vectors[key] = (request, vector)
        return known[1]

    def _charge(self, task: Task) -> None:
        column = _COLUMNS.get(task.state)
        if column is None or task.slot is not None:
            return
        task.charged = self.vector_of(task.request, self.flavors.of(task.node))
        self.ledger.force(self.path_of(task.job.queue), task.charged, column)

    def _uncharge(self, task: Task) -> None:
        if task.charged is not None:
            self.ledger.release(self.path_of(task.job.queue), task.charged, _COLUMNS[task.state])
            task.charged = None

    def _count_wanted(self, task: Task, sign: int) -> None:
        self.count_wanted(task.job, task.request, sign)

    def count_wanted(self, job: Job, request: Mapping[str, int], number: int) -> None:
        """So many more (or fewer) tasks of a job wait for a place."""
        wanted = self.wanted.setdefault(job.queue, {})
        for resource, amount in request.items():
            wanted[resource] = wanted.get(resource, 0) + number * amount

    # -- what sessions commit --------------------------------------------------------------------------------------

    def assume(self, task: Task, node: str) -> None:
        """Account for a task on a node in the shared cache.

        Raises:
            CacheError: The pod is accounted for already.
        """
        self.cache.assume(task.info, node)

    def unassume(self, task: Task) -> None:
        """Take that back; nothing happens when the watch has confirmed it."""
        if self.cache.is_assumed(task.uid):
            self.cache.forget(task.uid)

    def _unreserve(self, task: Task) -> None:
        if self.storage is not None:
            self.storage.unreserve(task, task.node)

    def may_still_bind(self, task: Task) -> bool:
        """Whether the task is still meant for its node, and the node, by what is accounted to it now, holds it."""
        if self.tasks.get(task.uid) is not task or task.state is not TaskState.BINDING:
            return False
        account = self.cache.node_info(task.node)
        if account is None or not account.exists or not self.cache.is_assumed(task.uid):
            return False
        offered = account.allocatable
        return len(account.pods) <= offered.get("pods", 0) and all(
            account.requested.get(name, 0) <= offered.get(name, 0) for name in task.info.requests
        )

    def bind_failed(self, task: Task, why: str = "") -> None:
        """A binding was refused: the task waits again, and its job stays away from the node until that changes."""
        if task.uid not in self.tasks or task.state is not TaskState.BINDING:
            return
        node = task.node
        self.unassume(task)
        self._unreserve(task)
        self._leave_slot(task)
        self.move(task, TaskState.PENDING, "")
        account = self.cache.node_info(node)
        if account is not None:
            self.distrust[task.job.key, node] = account.generation

    def eviction_failed(self, task: Task) -> None:
        """An eviction was refused: the task stays, and the claim that needed it ends."""
        self.evicting.discard(task.uid)
        if task.uid in self.tasks and task.state is TaskState.RELEASING:
            self.move(task, TaskState.BOUND, task.node)
        for job in [self.jobs[key] for key, claim in self.claims.items() if task.uid in claim.victims]:
            self.end_claim(job)

    def is_distrusted(self, job: Job, node: str) -> bool:
        """Whether a bind of this job failed on this very version of the node."""
        generation = self.distrust.get((job.key, node))
        if generation is None:
            return False
        account = self.cache.node_info(node)
        if account is not None and account.generation == generation:
            return True
        del self.distrust[job.key, node]
        return False

    # -- claims ----------------------------------------------------------------------------------------------------

    def new_claim_id(self) -> str:
        """A name no claim of this process had."""
        self.claims_made += 1
        return f"claim-{int(self.now)}-{self.claims_made}"

    def restore_claim(self, claim: Claim) -> bool:
        """Honour a claim found in a status after a restart; False when it can no longer be kept."""
        job = self.jobs.get(claim.job)
        tasks = [self.tasks.get(uid) for uid in claim.placement]
        if job is None or job.claim is not None or claim.deadline <= self.now:
            return False
        if any(task is None or task.state is not TaskState.PENDING for task in tasks):
            return False
        if any(node not in self._nodes for node in claim.placement.values()):
            return False
        for task in tasks:
            assert task is not None
            self.assume(task, claim.placement[task.uid])
            self.move(task, TaskState.CLAIMED, claim.placement[task.uid])
        self.set_claim(job, claim)
        return True

    def set_claim(self, job: Job, claim: Claim) -> None:
        """A job was promised room."""
        job.claim = self.claims[job.key] = claim
        self.changes += 1

    def end_claim(self, job: Job, *, kept: bool = False) -> None:
        """A claim ends; unless its tasks go on to be bound (`kept`) they wait again."""
        if job.claim is None:
            return
        job.claim = None
        self.claims.pop(job.key, None)
        if not kept:
            for task in job.in_state(TaskState.CLAIMED):
                self.unassume(task)
                self._unreserve(task)
                self.move(task, TaskState.PENDING, "")
        self.tell(Event.CLAIM_ENDED)
        self._wake(job)

    def victims_left(self, claim: Claim) -> list[str]:
        """Uids of a claim's victims that still take room."""
        return [uid for uid in claim.victims if self.cache.pod_state(uid) is not None]

    # -- slots -----------------------------------------------------------------------------------------------------

    def set_quota(self, spec: QuotaSpec) -> None:
        """A Quota came or changed: slots are added, or (empty ones) taken away."""
        if self.quotas.get(spec.key) == spec:
            return
        self.quotas[spec.key] = spec
        keep: set[str] = set()
        for index in range(spec.count):
            slot = Slot(spec, index, self.now)
            known = self.slots.get(slot.key)
            if known is not None:
                known.spec = spec
            else:
                self.slots[slot.key] = slot
                known = slot
                if spec.node.get(index):
                    self.bind_slot(slot, spec.node[index], charge_anyway=True)
            keep.add(known.key)
        for key in [key for key, slot in self.slots.items() if slot.spec.key == spec.key and key not in keep]:
            self._drop_slot(self.slots[key])
        self.tell(Event.SLOT_CHANGED)

    def remove_quota(self, key: str) -> None:
        """A Quota is gone; tasks in its slots run on, charged by themselves."""
        if self.quotas.pop(key, None) is None:
            return
        for slot in [slot for slot in self.slots.values() if slot.spec.key == key]:
            self._drop_slot(slot)
        self.tell(Event.SLOT_CHANGED)

    def _drop_slot(self, slot: Slot) -> None:
        for holder in list(slot.holders):
            task = self.tasks[holder]
            self._leave_slot(task)
            self._charge(task)
        self.unbind_slot(slot)
        self.slots.pop(slot.key, None)

    def bind_slot(self, slot: Slot, node: str, *, charge_anyway: bool = False) -> bool:
        """A slot takes its place on a node and is charged to its queue; False when the queue may not."""
        vector = self.vector_of(slot.spec.resources, self.flavors.of(node))
        path = self.path_of(slot.spec.queue)
        if charge_anyway:
            self.ledger.force(path, vector)
        elif self.ledger.charge(path, vector) is not None:
            return False
        slot.phase, slot.node = "Bound", node
        slot.idle_since = self.now if not slot.holders else None
        self.refill_slot(slot)
        self.changes += 1
        return True

    def unbind_slot(self, slot: Slot) -> None:
        """A slot gives its place back."""
        if not slot.node:
            return
        vector = self.vector_of(slot.spec.resources, self.flavors.of(slot.node))
        self.ledger.release(self.path_of(slot.spec.queue), vector)
        self.cache.forget(f"slot:{slot.key}")
        slot.phase, slot.node = "Pending", ""
        self.tell(Event.POD_GONE)
        self.tell(Event.QUEUE_USE_FELL, slot.spec.queue)

    def refill_slot(self, slot: Slot) -> None:
        """Let the slot's unused room stand in the cache, so that nobody else is given it."""
        self.cache.forget(f"slot:{slot.key}")
        if slot.node:
            self.cache.assume(placeholder(slot), slot.node)

    def seat(self, task: Task, slot: Slot) -> None:
        """A task that runs on a slot's node is found to sit in the slot: it is not charged by itself."""
        self._uncharge(task)
        slot.put(task)
        task.slot = slot
        self.refill_slot(slot)

    def _leave_slot(self, task: Task) -> None:
        slot = task.slot
        if slot is None:
            return
        slot.take(task, self.now)
        task.slot = None
        self.refill_slot(slot)
        self.tell(Event.SLOT_CHANGED)

    # -- waking ----------------------------------------------------------------------------------------------------

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
            job.outcome = None
            self.sleepers.drop(job.key)
            self._forget_head(job)

    def _forget_head(self, job: Job) -> None:
        heads = self.heads.get(job.queue)
        if heads and any(key == job.key for key, _ in heads):
            self.heads[job.queue] = [head for head in heads if head[0] != job.key]
            self.tell(Event.LINE_MOVED, job.queue)

    def settle(self, job: Job, outcome: Outcome | None) -> bool:
        """Note a job's outcome after a try and let it sleep; whether code or key numbers changed."""
        before = job.outcome
        if outcome is None:
            job.outcome = None
            self.sleepers.drop(job.key)
            return before is not None
        since = before.since if before is not None and outcome.says_the_same(before) else self.now
        job.outcome = Outcome(
            outcome.code, outcome.message, outcome.numbers, since, outcome.next_events, outcome.detail
        )
        return not outcome.says_the_same(before)

    # -- queues of jobs --------------------------------------------------------------------------------------------

    def _place_in_queue(self, job: Job) -> None:
        queue, line = self._resolve_queue(job)
        if queue != job.queue:
            for task in job.in_state(TaskState.PENDING):
                self._count_wanted(task, -1)
            job.queue = queue
            for task in job.in_state(TaskState.PENDING):
                self._count_wanted(task, 1)
        job.line = line

    def _requeue_job(self, job: Job) -> None:
        held = [task for task in job.tasks.values() if task.charged is not None]
        for task in held:
            self._uncharge(task)
        self._place_in_queue(job)
        for task in held:
            self._charge(task)

    def _resolve_queue(self, job: Job) -> tuple[str, str]:
        spec = job.spec
        pods = [task.membership for task in job.tasks.values() if task.membership.queue or task.membership.job_queue]
        namespace = job.key.removeprefix("pod:").rpartition("/")[0]
        named = spec.job_queue if spec is not None else ""
        queue = spec.queue if spec is not None else ""
        if not named and not queue and pods:
            named, queue = pods[0].job_queue, pods[0].queue
        if named:
            line = f"{namespace}/{named}"
            found = self.job_queues.get(line)
            return (found.queue if found is not None else f"?{line}"), line
        return queue or DEFAULT_QUEUE, ""

    # -- the ledger, made anew -------------------------------------------------------------------------------------

    def _recharge(self) -> None:
        for task in self.tasks.values():
            if task.charged is not None:
                task.charged = self.vector_of(task.request, self.flavors.of(task.node))
        self.ledger = self.rebuilt_ledger()
        self.foreign_use = {}
        for uid in self._foreign:
            self._count_foreign(uid, 1)
        self.changes += 1

    def rebuilt_ledger(self) -> Ledger:
        """The ledger as the objects say it: what the kept one must equal."""
        ledger = Ledger()
        for task in self.tasks.values():
            column = _COLUMNS.get(task.state)
            if column is not None and task.slot is None:
                vector = self.vector_of(task.request, self.flavors.of(task.node))
                ledger.force(self.path_of(task.job.queue), vector, column)
        for slot in self.slots.values():
            if slot.node:
                vector = self.vector_of(slot.spec.resources, self.flavors.of(slot.node))
                ledger.force(self.path_of(slot.spec.queue), vector)
        return ledger

    def problems(self) -> list[str]:
        """Broken invariants, in words; empty when all is well."""
        found: list[str] = []
        if self.ledger != self.rebuilt_ledger():
            kept, rebuilt = self.ledger.entries(), self.rebuilt_ledger().entries()
            different = {key: (kept.get(key, 0), rebuilt.get(key, 0)) for key in {*kept, *rebuilt}}
            found += [
                f"ledger {key}: {one} kept, {other} rebuilt" for key, (one, other) in different.items() if one != other
            ]
        for task in self.tasks.values():
            if task.state in HELD or task.state is TaskState.CLAIMED:
                state = self.cache.pod_state(task.uid)
                if state is None or state.node_name != task.node:
                    found.append(f"{task} is not in the cache on its node")
        found += self._wrong_rows()
        for job in self.jobs.values():
            asleep = bool(self.sleepers.events_of(job.key)) and job.outcome is not None
            if self.is_waiting(job) and job.key not in self.sleepers.awake and not asleep and job.claim is None:
                found.append(f"{job} waits and nobody knows why")
        return found

    def _wrong_rows(self) -> list[str]:
        """Rows that do not show what is accounted to their node; the snapshot is brought up to date for that."""
        self.cache.update_snapshot(self.snapshot)
        table, found = self.snapshot.table, []
        for info in self.snapshot:
            row = table.rows[info.name]
            shown = {name: int(table.amounts.requested[line, row]) for name, line in table.amounts.lines.items()}
            wanted = {name: info.requested.get(name, 0) for name in shown} | {"pods": len(info.pods)}
            if shown != wanted or info is not self.cache.node_info(info.name):
                found.append(f"row of {info.name} shows {shown}, its account says {wanted}")
        return found


def _matters(node: Node) -> object:
    return node.metadata.labels, node.spec.taints, node.spec.unschedulable, node.status.allocatable
