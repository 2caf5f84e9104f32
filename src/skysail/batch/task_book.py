"""A task's way from waiting to bound and gone, what sessions commit, and claims. See `accounts` for the layers."""

from typing import Final

from skysail.batch.accounts import COLUMNS
from skysail.batch.model.claim import Claim
from skysail.batch.model.distrust import Distrust, Refused, version_of
from skysail.batch.model.job import ENDED, Job, Task, TaskState
from skysail.batch.model.outcome import Event
from skysail.batch.slot_book import SlotBook
from skysail.batch.slot_room import places_taken

PROTECTED_SECONDS: Final = 30.0
"""How long a task whose eviction was refused (a disruption budget) is left alone."""
BINDS_WITHOUT_REST: Final = 3
LONGEST_REST_SECONDS: Final = 60.0


class TaskBook(SlotBook):
    """The world's tasks and claims."""

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
            if task.slot is not None:
                task.slot.was_used = True
            task.job.bind_failures, task.job.retry_at = 0, 0.0
            if before is TaskState.BINDING:
                self.tell(Event.BINDING_ENDED)
        if state in ENDED or state is TaskState.GATED:
            self._leave_slot(task)
        if was_at and before in COLUMNS and state not in COLUMNS:
            self._tell_room(task.job)

    def _tell_room(self, job: Job) -> None:
        self.tell(Event.POD_GONE)
        for queue in self.path_of(job.queue):
            self.tell(Event.QUEUE_USE_FELL, queue.name)
        if self.is_waiting(job):
            self._wake(job)

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
        return places_taken(account) <= offered.get("pods", 0) and all(
            account.requested.get(name, 0) <= offered.get(name, 0) for name in task.info.requests
        )

    def bind_failed(self, task: Task, why: str = "", *, blames_node: bool = True) -> None:
        """A binding was refused, or did not come about: the task waits again.

        Args:
            task: Which.
            why: In words.
            blames_node: Whether its job shall stay away from the node for now.
        """
        if task.uid not in self.tasks or task.state is not TaskState.BINDING:
            return
        node = task.node
        self.unassume(task)
        self._unreserve(task)
        self._leave_slot(task)
        self.move(task, TaskState.PENDING, "")
        job = task.job
        if job.min_member > 1 and (job.spec is None or job.spec.match_policy != "once-satisfied"):
            self.refused.setdefault(job.key, Refused(self.now)).nodes[task.uid] = node
        if blames_node:
            self._distrust(job, node)
        job.bind_failures += 1
        if job.bind_failures > BINDS_WITHOUT_REST:
            rest = min(LONGEST_REST_SECONDS, 2.0 ** (job.bind_failures - BINDS_WITHOUT_REST))
            job.retry_at = self.now + rest

    def eviction_failed(self, task: Task) -> None:
        """An eviction was refused: the task stays, for a while nobody asks again, and the claim that needed it ends."""
        self.evicting.discard(task.uid)
        self.protected[task.uid] = self.now + PROTECTED_SECONDS
        if task.uid in self.tasks and task.state is TaskState.RELEASING:
            self.move(task, TaskState.BOUND, task.node)
        for job in [self.jobs[key] for key, claim in self.claims.items() if task.uid in claim.victims]:
            self.end_claim(job)

    def is_protected(self, task: Task) -> bool:
        """Whether an eviction of this task was refused a short while ago."""
        until = self.protected.get(task.uid)
        if until is not None and until <= self.now:
            del self.protected[task.uid]
            return False
        return until is not None

    def end_protection(self) -> None:
        """Whoever was left alone long enough may be asked to leave again."""
        for uid in [uid for uid, until in self.protected.items() if until <= self.now]:
            del self.protected[uid]

    def next_unprotected(self) -> float | None:
        """When the next task may be asked to leave again."""
        return min((until for until in self.protected.values() if until > self.now), default=None)

    def _distrust(self, job: Job, node: str) -> None:
        account = self.cache.node_info(node)
        if account is None:
            return
        version, known = version_of(account, job.tasks), self.distrust.get((job.key, node))
        times = 1
        if known is not None and known.version == version:
            times = known.times + (known.ends is not None and known.ends <= self.now)
        self.distrust[job.key, node] = Distrust(version, self.now, times)

    def is_distrusted(self, job: Job, node: str) -> bool:
        """Whether a bind of this job failed on this very version of the node, and it is not to be tried once more."""
        known = self.distrust.get((job.key, node))
        if known is None:
            return False
        account = self.cache.node_info(node)
        if account is not None and version_of(account, job.tasks) == known.version:
            return known.ends is None or known.ends > self.now
        del self.distrust[job.key, node]
        return False

    def next_trusted(self, job: Job) -> float | None:
        """When the job may try one of the nodes again that refused it."""
        ends = [known.ends for (key, _), known in self.distrust.items() if key == job.key and known.ends is not None]
        return min((end for end in ends if end > self.now), default=None)

    def new_claim_id(self) -> str:
        """A name no claim of this process had."""
        self.claims_made += 1
        return f"claim-{int(self.now)}-{self.claims_made}"

    def restore_claim(self, claim: Claim) -> bool:
        """Honour a claim found written after a restart; one that can no longer be kept ends, and is to be erased."""
        job = self.jobs.get(claim.job)
        waiting = self._still_waiting(claim) if job is not None and claim.deadline > self.now else []
        if job is None or job.claim is not None or not waiting:
            if job is None or job.claim is None or job.claim.id != claim.id:
                self._ended_claims.append(claim)
            return False
        for task in waiting:
            self.assume(task, claim.placement[task.uid])
            self.move(task, TaskState.CLAIMED, claim.placement[task.uid])
        self.set_claim(job, claim)
        return True

    def _still_waiting(self, claim: Claim) -> list[Task]:
        """Promised tasks that are not bound yet; none when one is gone, or has no node to go to."""
        found = []
        for uid, node in claim.placement.items():
            task = self.tasks.get(uid)
            if task is None or task.job.key != claim.job or node not in self._nodes:
                return []
            if task.state is TaskState.PENDING:
                found.append(task)
            elif task.state is not TaskState.BOUND:
                return []
        return found

    def take_ended_claims(self) -> list[Claim]:
        """Claims that ended since the last time without being kept."""
        ended, self._ended_claims = self._ended_claims, []
        return ended

    def set_claim(self, job: Job, claim: Claim) -> None:
        """A job was promised room."""
        job.claim = self.claims[job.key] = claim
        self.changes += 1
        self.leave_line(job)

    def end_claim(self, job: Job, *, kept: bool = False) -> None:
        """A claim ends; unless its tasks go on to be bound (`kept`) they wait again."""
        if job.claim is None:
            return
        if not kept:
            self._ended_claims.append(job.claim)
        job.claim = None
        self.claims.pop(job.key, None)
        if not kept:
            for task in job.in_state(TaskState.CLAIMED):
                self.unassume(task)
                self._unreserve(task)
                self.move(task, TaskState.PENDING, "")
        self.tell(Event.CLAIM_ENDED)
        self._wake(job)

    def lift_claim(self, job: Job) -> None:
        """Take a claim's tasks out of the account, to see whether they fit now; `lay_claim` or an end must follow.

        Nobody is told: nothing came free by it.
        """
        for task in job.in_state(TaskState.CLAIMED):
            self.unassume(task)
            self._unreserve(task)
            self._uncharge(task)
            self._count_wanted(task, 1)
            task.state, task.node = TaskState.PENDING, ""

    def lay_claim(self, job: Job, claim: Claim) -> None:
        """Put them back where they were promised room."""
        for uid, node in claim.placement.items():
            task = self.tasks.get(uid)
            if task is not None and task.job is job and task.state is TaskState.PENDING:
                self.assume(task, node)
                self._count_wanted(task, -1)
                task.state, task.node = TaskState.CLAIMED, node
                self._charge(task)

    def victims_left(self, claim: Claim) -> list[str]:
        """Uids of a claim's victims that still take room."""
        return [uid for uid in claim.victims if self.cache.pod_state(uid) is not None]
