"""Lines: how many jobs of a queue or line may run, and that a line keeps its order."""

from skysail.batch.model.job import Job
from skysail.batch.model.outcome import Event, Outcome, OutcomeCode, told
from skysail.batch.session import Arguments, Session


class JobQueuePlugin:
    """The plugin."""

    name = "jobqueue"

    def __init__(self, arguments: Arguments) -> None:
        self._arguments = arguments

    def on_session_open(self, session: Session) -> None:
        """Register."""
        self._session = session
        self._running: dict[str, int] | None = None
        session.add_job_valid(self.name, self.job_valid)

    def on_session_close(self, session: Session) -> None:
        """Nothing to do."""

    def job_valid(self, job: Job) -> Outcome | bool | None:
        """Refuse when its line, or its queue, runs as many jobs as it may."""
        world = self._session.world
        line, queue = world.job_queues.get(job.line), world.tree[job.queue]
        limits = [(job.line, line.max_jobs)] if line is not None else []
        limits.append((queue.name, queue.spec.max_jobs))
        for name, limit in limits:
            if limit is not None and not job.is_running() and self._count(name) >= limit:
                return Outcome(
                    OutcomeCode.QUOTA_EXCEEDED,
                    f"{name} runs {self._count(name)} of {limit} jobs",
                    {"queue": name, "resource": "jobs", "limit": limit},
                    next_events=(told(Event.QUEUE_USE_FELL, queue.name), told(Event.QUEUE_CHANGED, queue.name)),
                )
        return None

    def _count(self, name: str) -> int:
        if self._running is None:
            self._running = {}
            for job in self._session.world.jobs.values():
                if job.is_running():
                    for each in {job.queue, job.line}:
                        self._running[each] = self._running.get(each, 0) + 1
        return self._running.get(name, 0)
