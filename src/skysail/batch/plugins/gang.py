"""All of the minimum or nothing: a predicate over the tree of sub-groups, elastic above it."""

from collections.abc import Sequence

from skysail.batch.model.job import Counts, Job, Task
from skysail.batch.model.quorum import is_met
from skysail.batch.session import Arguments, Session


class Gang:
    """The plugin."""

    name = "gang"

    def __init__(self, arguments: Arguments) -> None:
        self._arguments = arguments

    def on_session_open(self, session: Session) -> None:
        """Register."""
        self._session = session
        session.add_job_ready(self.name, self.job_ready)
        session.add_job_pipelined(self.name, self.job_pipelined)
        session.add_job_order(self.name, self.job_order)
        session.add_job_starving(self.name, self.job_starving)
        session.add_preemptable(self.name, self.evictable, _itself)
        session.add_reclaimable(self.name, self.evictable, _itself)

    def on_session_close(self, session: Session) -> None:
        """Nothing to do."""

    def job_ready(self, job: Job, counts: Counts) -> bool:
        """Whether these make its minimum."""
        if job.spec is None or (job.was_ready and job.spec.match_policy == "once-satisfied"):
            return True
        return is_met(job.spec, counts)

    def job_pipelined(self, job: Job, counts: Counts) -> int:
        """1 when these would make its minimum, else -1."""
        return 1 if self.job_ready(job, counts) else -1

    def job_order(self, job: Job) -> int:
        """Gangs that run below their minimum first, then others below theirs: what is beyond a minimum can wait.

        A gang that lost members holds room that helps nobody until it is whole again.
        """
        if self.job_ready(job, job.counts()):
            return 2
        return 0 if job.is_running() else 1

    def job_starving(self, job: Job) -> bool:
        """Only a job below its minimum may take from others."""
        return not self.job_ready(job, job.counts())

    def evictable(self, job: Job, candidates: Sequence[Task]) -> list[Task]:
        """Nobody of its own job or bundle, nobody who must not be preempted, or not yet."""
        return [
            task
            for task in candidates
            if task.job is not job and task.job.spec is not None and task.job.spec.preemptible and self._has_run(task)
        ]

    def _has_run(self, task: Task) -> bool:
        """Whether a task is no longer protected by what its pod says of its first moments."""
        until = task.started + task.membership.protected_seconds
        if until <= self._session.now:
            return True
        self._session.wait_for(until)
        return False


def _itself(job: Job) -> str:
    """A job that runs, in part, takes nobody of its own."""
    return job.key if job.is_running() else ""
