"""Higher priority goes first, and may take from lower priority in its own queue."""

from collections.abc import Sequence

from skysail.batch.model.job import Job, Task, TaskState
from skysail.batch.session import Arguments, Session
from skysail.batch.victims import may_preempt, members_above_minimum, preemption_rank


class Priority:
    """The plugin."""

    name = "priority"

    def __init__(self, arguments: Arguments) -> None:
        self._arguments = arguments

    def on_session_open(self, session: Session) -> None:
        """Register."""
        session.add_job_order(self.name, self.job_order)
        session.add_task_order(self.name, self.task_order)
        session.add_preemptable(self.name, self.preemptable, self.rank)
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

    def rank(self, job: Job) -> tuple[object, ...]:
        """What of a job decides whom of its queue it may take from."""
        return *preemption_rank(self._session.queue_of(job), job), may_never_preempt(job)

    def preemptable(self, job: Job, candidates: Sequence[Task]) -> list[Task]:
        """Tasks of lower jobs, or as the queue's policy says; nobody for pods that must not preempt."""
        if may_never_preempt(job):
            return []
        queue = self._session.queue_of(job)
        lower = [task for task in candidates if may_preempt(queue, job, task.job)]
        runtime = max(each.spec.preempt_min_runtime_seconds for each in queue.path)
        return [task for task in lower if self._has_run(task, runtime)] if runtime else lower

    def _has_run(self, task: Task, seconds: float) -> bool:
        """Whether a task ran so long; those above their gang's minimum need not have."""
        session = self._session
        if session.now - task.started >= seconds or self._is_extra(task):
            return True
        session.wait_for(task.started + seconds)
        return False

    def _is_extra(self, task: Task) -> bool:
        key = ("extras", task.job.key)
        extras = self._session.memo.get(key)
        if not isinstance(extras, set):
            running = sorted(task.job.in_state(TaskState.BOUND), key=self._session.task_key, reverse=True)
            extras = {each.uid for each in members_above_minimum(self._session, task.job, running)}
            self._session.memo[key] = extras
        return task.uid in extras


def may_never_preempt(job: Job) -> bool:
    """Whether one of its pods says that it takes from nobody."""
    return any(task.pod.spec.preemption_policy == "Never" for task in job.tasks.values())
