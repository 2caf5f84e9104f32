"""The cron job controller's shell.

Source: pkg/controller/cronjob/cronjob_controllerv2.go, v1.36.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from skysail.api.batch import CronJob, CronJobStatus, Job
from skysail.api.errors import AlreadyExists, ApiError, Conflict, NotFound
from skysail.api.kinds import CRONJOBS, JOBS
from skysail.controller.controller import Result
from skysail.controller.watches import For, Owns, Watch
from skysail.controllers.builtin import BuiltinController
from skysail.controllers.cronjob.plan import (
    Note,
    Plan,
    finished_as,
    jobs_to_clean_up,
    plan_cron_job,
    track_active,
    with_started,
)
from skysail.controllers.pods import is_controlled_by
from skysail.informer.keys import Key


class CronJobController(BuiltinController):
    """Makes jobs on schedules."""

    name = "cronjob"
    workers = 5

    @property
    def watches(self) -> Sequence[Watch[Any]]:
        """Cron jobs and their jobs."""
        return (For(CronJob), Owns(Job))

    def setup(self) -> None:
        """Make jobs found by who controls them."""
        self.index_by_controller(Job)

    async def reconcile(self, key: Key) -> Result | None:
        """Clean up, keep the list of running jobs, and start a run that is due."""
        cron_job = self.lister(CronJob).get(key)
        if cron_job is None:
            return None
        jobs = self.controlled_by(cron_job.uid, Job)
        listed = {item.uid for item in cron_job.status.active}
        if any(not finished_as(job) and job.uid not in listed for job in jobs):
            cron_job = await self._read_again(cron_job)
            if cron_job is None:
                return None
        removed = await self._clean_up(cron_job, jobs)
        jobs = tuple(job for job in jobs if job.uid not in removed)
        status, notes = track_active(cron_job, jobs, removed | await self._missing(cron_job, jobs))
        plan = plan_cron_job(cron_job, status, notes, self.now())
        for note in plan.notes:
            self._tell(cron_job, note)
        status = await self._start(cron_job, plan)
        await self.write_status(CRONJOBS, cron_job, cron_job.status, status, optimistic=True)
        return Result(plan.requeue_seconds)

    def _tell(self, cron_job: CronJob, note: Note) -> None:
        self.recorder.event(cron_job, note.type, note.reason, note.message)

    async def _read_again(self, cron_job: CronJob) -> CronJob | None:
        """A job that is not on the list: the cache may be behind."""
        try:
            fresh = await self.api.get(CRONJOBS, cron_job.name, cron_job.namespace)
        except NotFound:
            return None
        return fresh if fresh.uid == cron_job.uid else None

    async def _missing(self, cron_job: CronJob, jobs: Sequence[Job]) -> set[str]:
        """Uids on the list of which there is no job any more, as the server says."""
        known = {job.uid for job in jobs}
        missing = set()
        for item in cron_job.status.active:
            if item.uid not in known:
                try:
                    await self.api.get(JOBS, item.name, cron_job.namespace)
                except NotFound:
                    missing.add(item.uid)
        return missing

    async def _clean_up(self, cron_job: CronJob, jobs: Sequence[Job]) -> set[str]:
        return {job.uid for job in jobs_to_clean_up(cron_job, jobs) if await self._delete(cron_job, job.name)}

    async def _delete(self, cron_job: CronJob, name: str) -> bool:
        try:
            await self.api.delete(JOBS, name, cron_job.namespace, propagation="Background")
        except NotFound:
            return True
        except ApiError as error:
            self._tell(cron_job, Note("Warning", "FailedDelete", f"Deleted job: {error.status.message}"))
            return False
        self._tell(cron_job, Note("Normal", "SuccessfulDelete", f"Deleted job {name}"))
        return True

    async def _start(self, cron_job: CronJob, plan: Plan) -> CronJobStatus:
        """Start the run that is due, if one is; the status after it."""
        status = plan.status
        if plan.create is None or plan.scheduled is None:
            return status
        for reference in plan.replace:
            if not await self._delete(cron_job, reference.name):
                raise Conflict(f"job {reference.name} could not be replaced")
            left = tuple(item for item in status.active if item.uid != reference.uid)
            status = msgspec.structs.replace(status, active=left)
        try:
            job = await self.api.create(JOBS, plan.create, cron_job.namespace)
        except AlreadyExists:
            job = await self.api.get(JOBS, plan.create["metadata"]["name"], cron_job.namespace)
            if not is_controlled_by(job, cron_job) or any(item.uid == job.uid for item in status.active):
                return status
        except ApiError as error:
            if not error.is_namespace_terminating:
                words = f"Error creating job: {error.status.message}"
                self._tell(cron_job, Note("Warning", "FailedCreate", words))
            raise
        else:
            self._tell(cron_job, Note("Normal", "SuccessfulCreate", f"Created job {job.name}"))
        return with_started(status, job, plan.scheduled)
