"""The job controller's shell.

Events of pods are batched for a second, because a job often has many that finish together. The number of pods is held
by expectations, as in a replica set; besides, the shell remembers whose finalizer it took off until the cache shows it,
and which jobs it finished. What a job still needs is worked out from its status and its pods together, so nothing is
done until the cache shows the status as last written: a pod may already have lost its finalizer, and would count
neither as finished nor as counted.

Source: pkg/controller/job/job_controller.go, v1.36.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from skysail.api.batch import Job, JobStatus
from skysail.api.core import Pod
from skysail.api.errors import ApiError, NotFound, Unreachable
from skysail.api.kinds import JOBS, PODS
from skysail.api.labels import Selector
from skysail.api.meta import OwnerReference
from skysail.client.bodies import STRATEGIC
from skysail.controller.controller import Result
from skysail.controller.ref_manager import ControllerRefManager
from skysail.controllers.builtin import BuiltinController, Selectors
from skysail.controllers.job.backoff import BackoffRecord
from skysail.controllers.job.plan import BATCH_SECONDS, JobPlan, plan_job
from skysail.controllers.job.pods import RELEASE_PATCH, job_pod
from skysail.controllers.job.tracking import Outcome, Tracking, conclude, holds_report, settle, track
from skysail.controllers.job.view import (
    TRACKING_FINALIZER,
    JobView,
    has_tracking_finalizer,
    is_finished,
    is_managed_elsewhere,
    is_suspended,
    view_job,
)
from skysail.controllers.own_writes import OwnWrites
from skysail.controllers.patches import merge_difference
from skysail.controllers.pod_control import PodControl, PodError, is_doubtful
from skysail.controllers.pods import controller_of, is_ready
from skysail.informer.handlers import Handlers
from skysail.informer.keys import Key

ORPHAN = "orphan:"
"""Under this prefix and the namespace stand keys of pods whose job is gone or done, but not their finalizer."""

_LOOK_AGAIN_SECONDS = 1.0


@dataclass(slots=True)
class _Memory:
    """What is remembered of one job between passes, by its uid."""

    backoff: BackoffRecord
    released: set[str]
    finished: bool = False


class JobController(BuiltinController):
    """Runs jobs to their end."""

    name = "job"
    workers = 5

    def setup(self) -> None:
        """Hook up jobs and pods; both settle expectations before they wake anything."""
        self.selectors = Selectors()
        self.pod_control = PodControl(self.api, self.recorder, self.clock)
        self.own_writes = OwnWrites()
        self._memory: dict[str, _Memory] = {}
        self.index_by_controller(Pod)
        self.informer(Job).add_handler(
            Handlers(add=self._wake, update=self._job_changed, delete=self._job_gone), name=self.name
        )
        self.informer(Pod).add_handler(
            Handlers(add=self._pod_added, update=self._pod_changed, delete=self._pod_gone), name=self.name
        )

    # What wakes it

    def _wake(self, job: Job | None, after_seconds: float = 0.0) -> None:
        if job is not None:
            self.enqueue(Key(job.namespace, job.name), after_seconds)

    def _job_changed(self, old: Job, new: Job) -> None:
        if is_finished(new):
            self._release_orphans_of(new)
            return
        self._wake(new, BATCH_SECONDS if old.metadata.generation == new.metadata.generation else 0.0)

    def _job_gone(self, job: Job) -> None:
        self._memory.pop(job.uid, None)
        self.pod_control.forget(job)
        self.own_writes.forget(job)
        self._release_orphans_of(job)

    def _release_orphans_of(self, job: Job) -> None:
        for pod in self.controlled_by(job.uid, Pod):
            self._wake_orphan(pod)

    def _wake_orphan(self, pod: Pod) -> None:
        if has_tracking_finalizer(pod):
            self.enqueue(Key(ORPHAN + pod.namespace, pod.name))

    def _owner(self, namespace: str, reference: OwnerReference | None) -> Job | None:
        if reference is None or reference.kind != JOBS.name:
            return None
        found = self.lister(Job).named(reference.name, namespace)
        return found if found is not None and found.uid == reference.uid else None

    def _pod_added(self, pod: Pod) -> None:
        if pod.metadata.deletion_timestamp is not None:
            self._pod_going(pod)
            return
        reference = controller_of(pod)
        if reference is None:
            self._wake_orphan(pod)
            self._wake_matching(pod)
        elif (owner := self._owner(pod.namespace, reference)) is not None:
            self.pod_control.saw_created(owner)
            self._wake(owner, BATCH_SECONDS)

    def _pod_changed(self, old: Pod, new: Pod) -> None:
        if old.metadata.resource_version == new.metadata.resource_version:
            return
        if new.metadata.deletion_timestamp is not None:
            self._pod_going(new)
            return
        before, after = controller_of(old), controller_of(new)
        for namespace, reference in {old.namespace: before, new.namespace: after}.items():
            self._note_release(new, self._owner(namespace, reference))
        if before is not None and before != after:
            self._wake(self._owner(old.namespace, before), BATCH_SECONDS)
        if after is not None:
            self._wake(self._owner(new.namespace, after), BATCH_SECONDS)
            return
        self._wake_orphan(new)
        if before is not None or old.metadata.labels != new.metadata.labels:
            self._wake_matching(new)

    def _pod_going(self, pod: Pod, *, gone: bool = False) -> None:
        reference = controller_of(pod)
        owner = self._owner(pod.namespace, reference)
        if owner is None or is_finished(owner):
            if not gone and (reference is None or reference.kind == JOBS.name):
                self._wake_orphan(pod)
            return
        self.pod_control.saw_deleted(owner, pod)
        self._note_release(pod, owner, gone=gone)
        self._wake(owner, BATCH_SECONDS)

    def _pod_gone(self, pod: Pod) -> None:
        self._pod_going(pod, gone=True)

    def _note_release(self, pod: Pod, owner: Job | None, *, gone: bool = False) -> None:
        """The cache shows that a pod has lost its finalizer."""
        if owner is not None and owner.uid in self._memory and (gone or not has_tracking_finalizer(pod)):
            self._memory[owner.uid].released.discard(pod.uid)

    def _wake_matching(self, pod: Pod) -> None:
        for job in self.lister(Job).list(pod.namespace):
            if self.selectors.of(job.uid, job.spec).matches(pod.metadata.labels):
                self._wake(job, BATCH_SECONDS)

    # What it does

    async def reconcile(self, key: Key) -> Result | None:
        """One pass over a job, or over a pod that a job left behind."""
        if key.namespace.startswith(ORPHAN):
            await self._release_orphan(Key(key.namespace.removeprefix(ORPHAN), key.name))
            return None
        job = self.lister(Job).get(key)
        if job is None or is_managed_elsewhere(job) or is_finished(job):
            return None
        memory = self._memory.setdefault(job.uid, _Memory(BackoffRecord(), set()))
        try:
            if not await self._sees_own_writes(job):
                return Result(_LOOK_AGAIN_SECONDS)
            if not memory.finished:
                await self._sync(job, memory)
        except NotFound:  # the job is gone; the cache will soon say so
            return None
        return None

    async def _sees_own_writes(self, job: Job) -> bool:
        if self.own_writes.is_doubtful(job):
            there = await self.api.get(JOBS, job.name, job.namespace)
            self.own_writes.resolve(job, [there])
        return self.own_writes.are_visible(job, self.informer(Job).indexer.resource_version)

    async def _sync(self, job: Job, memory: _Memory) -> None:
        selector = self.selectors.of(job.uid, job.spec)
        may_act = await self.pod_control.may_act(job, selector, lambda: self.controlled_by(job.uid, Pod))
        pods = await self._claim(job, selector)
        now = self.now()
        view = view_job(_started(job, self), pods, frozenset(memory.released), memory.backoff, now)
        plan = plan_job(view, expectations_met=may_act)
        outcome, error = await self._carry_out(view, plan)
        self._plan_next(job, plan)
        if holds_report(plan, outcome):
            if error is not None:
                raise error
            return
        conclusion = conclude(view, plan, outcome, expectations_met=may_act)
        if conclusion.event is not None:
            self.recorder.event(job, "Normal", *conclusion.event)
        await self._count(job, view, track(view, conclusion), memory)
        if error is not None:
            raise error

    async def _claim(self, job: Job, selector: Selector) -> Sequence[Pod]:
        manager = ControllerRefManager(self.client, job, JOBS, PODS, selector, finalizers=(TRACKING_FINALIZER,))
        pods = await manager.claim(self.claimable_by(job, Pod))
        return [_as_adopted(pod, job) for pod in pods]

    def _plan_next(self, job: Job, plan: JobPlan) -> None:
        for wait in (plan.wait_seconds, plan.deadline_seconds):
            if wait is not None:
                self._wake(job, wait)

    # Pods

    async def _carry_out(self, view: JobView, plan: JobPlan) -> tuple[Outcome, PodError | None]:
        job, active, ready, terminating = view.job, len(view.active), view.ready, view.terminating
        if plan.end:
            errors = await self.pod_control.delete_all(job, plan.end)
            deleted = len(plan.end) - len(errors)
            outcome = Outcome(active - deleted, ready - sum(map(is_ready, plan.end)), terminating + deleted, not errors)
            return outcome, errors[0] if errors else None
        if plan.remove:
            self.pod_control.expect(job, deletions=plan.remove)
            errors = await self.pod_control.delete_all(job, plan.remove, before=self._release)
            deleted = len(plan.remove) - len(errors)
            outcome = Outcome(active - deleted, ready - sum(map(is_ready, plan.remove)), terminating + deleted)
            return outcome, errors[0] if errors else None
        if plan.create:
            self.pod_control.expect(job, creations=len(plan.create))
            made, error = await self.pod_control.create_all(
                job, len(plan.create), lambda number: job_pod(job, plan.create[number])
            )
            return Outcome(active + made, ready, terminating), error
        return Outcome(active if plan.wait_seconds is None else 0, ready, terminating), None

    async def _release(self, pod: Pod) -> None:
        """Take the tracking finalizer off; nothing happens when pod or finalizer is gone."""
        if not has_tracking_finalizer(pod):
            return
        try:
            await self.api.patch(PODS, pod.name, pod.namespace, RELEASE_PATCH, patch_type=STRATEGIC)
        except NotFound:
            return

    async def _release_orphan(self, key: Key) -> None:
        pod = self.lister(Pod).get(key)
        if pod is None:
            return
        reference = controller_of(pod)
        if reference is not None:
            if reference.kind != JOBS.name or reference.api_version != JOBS.api_version:
                return
            job = self._owner(pod.namespace, reference)
            if job is not None and (is_managed_elsewhere(job) or not is_finished(job)):
                return
        await self._release(pod)

    # Counting

    async def _count(self, job: Job, view: JobView, tracking: Tracking, memory: _Memory) -> None:
        """Write the finished pods down, release them, count them: in this order, each step safe to repeat."""
        job = await self._write(job, tracking.status)
        memory.backoff = view.backoff
        memory.released.update(pod.uid for pod in tracking.release)
        released, error = await self._release_all(tracking.release, memory)
        settlement = settle(job, tracking, released, self.now())
        await self._write(job, settlement.status)
        if settlement.finished:
            memory.finished = True
            for event in settlement.events:
                self.recorder.event(job, *event)
        if error is not None:
            raise error

    async def _write(self, job: Job, status: JobStatus) -> Job:
        """Write the difference, and give back the job as it then is.

        Counting rests on what was written down before, so a job that has moved on since it was read is a conflict: a
        pod that lost its finalizer but is not written down in this copy may be in the newer one.
        """
        difference = merge_difference(job.status, status)
        metadata = job.metadata
        if difference:
            patch = {
                "metadata": {"uid": job.uid, "resourceVersion": metadata.resource_version},
                "status": difference,
            }
            try:
                written = await self.api.patch(JOBS, job.name, job.namespace, patch, subresource="status")
            except (ApiError, Unreachable) as error:
                if is_doubtful(error):
                    self.own_writes.doubt(job)
                raise
            self.own_writes.note(job, written)
            metadata = written.metadata
        return msgspec.structs.replace(job, metadata=metadata, status=status)

    async def _release_all(self, pods: Sequence[Pod], memory: _Memory) -> tuple[frozenset[str], PodError | None]:
        """The uids of those that were released, and the first failure."""
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._try_release(pod, memory)) for pod in pods]
        errors = [task.result() for task in tasks]
        released = frozenset(pod.uid for pod, error in zip(pods, errors, strict=True) if error is None)
        for error in errors:
            if error is not None:
                return released, error
        return released, None

    async def _try_release(self, pod: Pod, memory: _Memory) -> PodError | None:
        try:
            await self._release(pod)
        except (ApiError, Unreachable) as error:
            memory.released.discard(pod.uid)
            return error
        return None


def _started(job: Job, controller: BuiltinController) -> Job:
    """The job with a start time, unless it is suspended."""
    if job.status.start_time is not None or is_suspended(job):
        return job
    return msgspec.structs.replace(job, status=msgspec.structs.replace(job.status, start_time=controller.written_now()))


def _as_adopted(pod: Pod, job: Job) -> Pod:
    """A pod just adopted carries the finalizer, although the cache does not show it yet."""
    if has_tracking_finalizer(pod) or any(ref.uid == job.uid for ref in pod.metadata.owner_references):
        return pod
    metadata = msgspec.structs.replace(pod.metadata, finalizers=(*pod.metadata.finalizers, TRACKING_FINALIZER))
    return msgspec.structs.replace(pod, metadata=metadata)
