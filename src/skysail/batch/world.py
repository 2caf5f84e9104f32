"""The cluster as the batch engine knows it: jobs, queues, slots and the ledger, over the shared cluster cache.

Readers of API objects feed it (`set_...`, `remove_...`); sessions decide over it; between sessions only what was
committed stays. Invariants, checked by `problems`:
- the ledger equals `rebuilt_ledger()`;
- a task that holds or was promised a node is in the cluster cache, on that node;
- a job with something that waits is awake, or asleep with an Outcome.

It has no clock: whoever steps it sets `now`, in seconds since 1970. Missing objects are no errors: a job whose queue or
group is not there waits, and says so.
"""

from collections.abc import Iterator
from typing import Final

from skysail.api.core import Pod
from skysail.api.node import Node
from skysail.api.resources import resource_amounts
from skysail.batch.accounts import DEFAULT_QUEUE, ENDED_PHASES, VolumeReserver
from skysail.batch.devices import share_of
from skysail.batch.model.job import HELD, Job, Task, TaskState, lone_key, request_of
from skysail.batch.model.outcome import Event, told
from skysail.batch.model.specs import Membership
from skysail.batch.queue_book import QueueBook
from skysail.scheduler.cache.pod_info import PodInfo

NODES_AT_ONCE: Final = 256
"""The snapshot follows as so many nodes came, so that no first cycle has them all to read at once."""


class World(QueueBook):
    """The whole account; attributes stand in `Accounts`."""

    def set_node(self, node: Node) -> None:
        """A node came or changed."""
        name = node.metadata.name
        before = self._nodes.get(name)
        self._nodes[name] = node
        if self.owns_cache:
            self.cache.add_node(node)
        if before is None and len(self._nodes) % NODES_AT_ONCE == 0:
            self.cache.update_snapshot(self.snapshot)
        flavor = self.flavors.of(name)
        self.flavors.set_node(node)
        if self.flavors.of(name) != flavor and (before is not None or self._stands_something(name)):
            self._recharge()
        if before is None:
            self._tell_new_node(node)
        elif _matters(before) != _matters(node):
            self.tell(Event.NODE_CHANGED)

    def _stands_something(self, node: str) -> bool:
        """Whether anything is charged that stands on a node; it may be told of before its node is."""
        ours = any(task.node == node for task in self.tasks.values())
        return ours or node in self.slots_on or any(where == node for where, _ in self._foreign.values())

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
        for slot in list(self.slots_on.get(name, {}).values()):
            self._empty_slot(slot)

    def nodes(self) -> Iterator[Node]:
        """All nodes, in the order they came."""
        return iter(self._nodes.values())

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
        was_waiting = task is None or task.state <= TaskState.CLAIMED
        if task is None:
            task = self._add_task(pod, membership)
            self._wake(task.job)
        elif task.info.pod is not pod:
            info, task.signed = self._info_of(pod), None
            if info.requests != task.info.requests:
                self._resize(task, info)
            task.info = info
        self._observe(task, pod, ended=ended)
        if was_waiting:
            self.find_seat(task)  # whoever bound it

    def read_pods_anew(self) -> None:
        """Other objects changed that say where pods belong: those of whom it is another place now go there."""
        for task in list(self.tasks.values()):
            if self.membership(task.pod) != task.membership:
                self.set_pod(task.pod)

    def _resize(self, task: Task, info: PodInfo) -> None:
        """A pod asks for more or less than it did: where it waits, or where it runs."""
        waits = task.state is TaskState.PENDING
        if task.slot is not None:
            self._stand_up(task)
        self._uncharge(task)
        if waits:
            self._count_wanted(task, -1)
        task.request = request_of(info)
        if waits:
            self._count_wanted(task, 1)
            self._wake(task.job)
        self._charge(task)
        if task.node:
            self._find_seats_on(task.node)
            self._tell_room(task.job)

    def remove_pod(self, uid: str) -> None:
        """A pod is gone."""
        task = self.tasks.get(uid)
        if self.owns_cache or (task is not None and task.state in (TaskState.BINDING, TaskState.CLAIMED)):
            self.cache.remove_pod(uid)
        self._drop_foreign(uid)
        if task is not None:
            self._drop_task(task)

    def _info_of(self, pod: Pod) -> PodInfo:
        """What is derived of a pod: the cache's, where it has just that; a cluster is too large to hold it twice."""
        state = self.cache.pod_state(pod.metadata.uid)
        return state.info if state is not None and state.info.pod is pod else PodInfo(pod)

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
        if not pod.spec.node_name or ended:
            self._drop_foreign(uid)
            return
        held = pod.spec.node_name, request_of(self._info_of(pod))
        if self._foreign.get(uid) != held:
            self._drop_foreign(uid)
            self._foreign[uid] = held
            self._count_foreign(uid, 1)
            self.changes += 1

    def _drop_foreign(self, uid: str) -> None:
        if uid in self._foreign:
            self._count_foreign(uid, -1)
            del self._foreign[uid]
            self.tell(Event.POD_GONE)

    def _add_task(self, pod: Pod, membership: Membership) -> Task:
        key = membership.group or lone_key(pod)
        job = self.jobs.get(key)
        if job is None:
            job = self.jobs[key] = Job(key, None, is_lone=not membership.group, now=self.now)
            job.uid = key
        alike = next(reversed(job.tasks.values()), None)
        if alike is not None and alike.membership == membership:
            membership = alike.membership
        task = Task(self._info_of(pod), job, membership)
        task.sub_group = self._sub_group_of(task, job)
        task.state = TaskState.GATED
        self.tasks[task.uid] = task
        job.take(task)
        if share_of(pod) is not None:
            self.sharers.add(task.uid)
        if not self._has_object(job) and job.eldest("group") is task:
            self._imply_group(job)
        elif not job.queue or job.eldest("queue") is task or job.eldest("user") is task:
            self._requeue_job(job)
        return task

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
        was_heard = task in (job.eldest("queue"), job.eldest("user"))
        job.give_up(task)
        del self.tasks[task.uid]
        self.evicting.discard(task.uid)
        self.sharers.discard(task.uid)
        self.protected.pop(task.uid, None)
        has_object = self._has_object(job)
        if job.tasks and not has_object and job.uid == task.uid:
            self._imply_group(job)
        elif was_heard and (job.tasks or has_object):
            self._requeue_job(job)
        self._wake(job)
        self._drop_if_empty(job)

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
        found += self.wrong_room()
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


__all__ = ["DEFAULT_QUEUE", "ENDED_PHASES", "VolumeReserver", "World"]
