"""Higher priority goes first, and may take from lower priority in its own queue."""

from collections.abc import Sequence

from skysail.batch.model.job import Job, Task
from skysail.batch.session import Arguments, Session


class Priority:
    """The plugin."""

    name = "priority"

    def __init__(self, arguments: Arguments) -> None:
        self._arguments = arguments

    def on_session_open(self, session: Session) -> None:
        """Register."""
        self._now = session.now
        session.add_job_order(self.name, self.job_order)
        session.add_task_order(self.name, self.task_order)
        session.add_preemptable(self.name, self.preemptable)
        self._session = session

    def on_session_close(self, session: Session) -> None:
        """Nothing to do."""

    def job_order(self, job: Job) -> int:
        """Highest first; in a FIFO line all are alike."""
        line = self._session.world.job_queues.get(job.line) if job.line else None
        return 0 if line is not None and line.order == "FIFO" else -job.priority

    def task_order(self, task: Task) -> int:
        """Highest first."""
        return -task.priority

    def preemptable(self, job: Job, candidates: Sequence[Task]) -> list[Task]:
        """Tasks of strictly lower jobs; of equal but newer ones where the queue says so."""
        policy = self._session.queue_of(job).spec.preemption.within_queue
        if policy == "Never" or not self._may_preempt(job):
            return []
        newer_too = policy == "LowerOrNewerEqualPriority"
        mine = (job.priority, -job.created)
        return [
            task
            for task in candidates
            if task.job.priority < job.priority
            or (newer_too and task.job.priority == job.priority and -task.job.created < mine[1])
        ]

    @staticmethod
    def _may_preempt(job: Job) -> bool:
        return all(task.pod.spec.preemption_policy != "Never" for task in job.tasks.values())
