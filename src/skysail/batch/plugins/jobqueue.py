"""Lines: how many jobs of a queue, a line or a user may run, and that a line keeps its order."""

from collections.abc import Iterator, Sequence

from skysail.batch.model.job import Job, Task
from skysail.batch.model.outcome import Event, Outcome, OutcomeCode, told
from skysail.batch.model.queue import Queue
from skysail.batch.session import Arguments, Session
from skysail.batch.user_limits import limits_of


class JobQueuePlugin:
    """The plugin."""

    name = "jobqueue"

    def __init__(self, arguments: Arguments) -> None:
        self._arguments = arguments

    def on_session_open(self, session: Session) -> None:
        """Register."""
        self._session = session
        self._running: dict[str, set[str]] | None = None
        self._moves = -1
        self._touched: dict[str, Job] = {}
        session.add_job_valid(self.name, self.job_valid)
        session.add_handler(allocate=self._touch, deallocate=self._touch, evict=self._touch)

    def on_session_close(self, session: Session) -> None:
        """Nothing to do."""

    def job_valid(self, job: Job) -> Outcome | bool | None:
        """Refuse when its line, its queue, one above, or its user there runs as many jobs as may be."""
        queue = self._session.world.tree[job.queue]
        for name, limit in self._limits(job, queue):
            if limit is not None and not job.is_running() and self._count(name, job) >= limit:
                return Outcome(
                    OutcomeCode.QUOTA_EXCEEDED,
                    f"{name} runs {self._count(name, job)} of {limit} jobs",
                    {"queue": name, "resource": "jobs", "limit": limit},
                    next_events=tuple(
                        told(event, each.name)
                        for each in queue.path
                        for event in (Event.QUEUE_USE_FELL, Event.QUEUE_CHANGED)
                    ),
                )
        return None

    def _limits(self, job: Job, queue: Queue) -> Iterator[tuple[str, int | None]]:
        line = self._session.world.job_queues.get(job.line)
        if line is not None:
            yield job.line, line.max_jobs
        for each in queue.path:
            yield each.name, each.spec.max_jobs
            for name, limit in limits_of(each.spec, job.user) if each.spec.limits else ():
                yield name, limit.max_jobs

    def _names(self, job: Job) -> Iterator[str]:
        queue = self._session.world.tree.get(job.queue)
        return (name for name, _ in self._limits(job, queue)) if queue is not None else iter(())

    def _touch(self, job: Job, tasks: Sequence[Task], node: str) -> None:
        self._touched[job.key] = job

    def _count(self, name: str, asking: Job) -> int:
        """How many other jobs that run are counted under a name."""
        if self._running is None or self._moves != self._session.moves:
            self._running, self._moves = {}, self._session.moves
            self._touched = dict(self._session.world.jobs)
        for key, job in self._touched.items():
            for each in self._names(job):
                running = self._running.setdefault(each, set())
                (running.add if _takes_a_place(job) else running.discard)(key)
        self._touched = {}
        return len(self._running.get(name, set()) - {asking.key})


def _takes_a_place(job: Job) -> bool:
    """Whether it runs, or was promised room."""
    return job.is_running() or job.claim is not None
