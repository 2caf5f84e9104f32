"""Higher priority goes first, and may take from lower priority in its own queue."""

from collections.abc import Sequence

from skysail.batch.model.job import Job, Task
from skysail.batch.session import Arguments, Session
from skysail.batch.victims import may_preempt


class Priority:
    """The plugin."""

    name = "priority"

    def __init__(self, arguments: Arguments) -> None:
        self._arguments = arguments

    def on_session_open(self, session: Session) -> None:
        """Register."""
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
        """Tasks of lower jobs, or as the queue's policy says; nobody for pods that must not preempt."""
        if any(task.pod.spec.preemption_policy == "Never" for task in job.tasks.values()):
            return []
        queue = self._session.queue_of(job)
        return [task for task in candidates if may_preempt(queue, job, task.job)]
