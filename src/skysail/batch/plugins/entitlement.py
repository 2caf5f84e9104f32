"""Who is served next, and whom one may take from, by what each queue is entitled to."""

from collections.abc import Sequence
from fractions import Fraction

from skysail.batch.model.job import Job, Task
from skysail.batch.model.queue import Queue
from skysail.batch.session import Arguments, Session
from skysail.batch.shares import used_by


class EntitlementArguments(Arguments, frozen=True):
    """Arguments.

    Attributes:
        strict: Whether a queue that uses all of its share is passed over, so that nothing is borrowed.
    """

    strict: bool = False


class EntitlementPlugin:
    """The plugin."""

    name = "entitlement"

    def __init__(self, arguments: EntitlementArguments) -> None:
        self._arguments = arguments

    def on_session_open(self, session: Session) -> None:
        """Register."""
        self._session = session
        session.add_queue_order(self.name, self.queue_order)
        session.add_reclaimable(self.name, self.reclaimable, lambda job: job.priority)
        if self._arguments.strict:
            session.add_overused(self.name, self.overused)

    def on_session_close(self, session: Session) -> None:
        """Nothing to do."""

    def queue_order(self, queue: Queue) -> tuple[bool, int, Fraction]:
        """Queues below their share first, then by priority, then by how much of it they use; Spot queues last."""
        if queue.is_spot:
            return True, -queue.spec.priority, Fraction(0)
        use = self._use(queue)
        return use >= 1, -queue.spec.priority, use

    def _use(self, queue: Queue) -> Fraction:
        if len(self._session.world.tree) == 1:
            return Fraction(0)
        used = used_by(self._session.world, [queue.name])[queue.name]
        return self._session.entitlements.dominant_use(queue.name, used)

    def overused(self, queue: Queue) -> bool:
        """Whether it uses all of its share in some dimension."""
        return not queue.is_spot and self._use(queue) >= 1

    def reclaimable(self, job: Job, candidates: Sequence[Task]) -> list[Task]:
        """Tasks of other queues that may be taken back from, and have run long enough."""
        policy = self._session.queue_of(job).spec.preemption.from_others
        if policy == "Never":
            return []
        return [task for task in candidates if self._may_take(job, task, lower_only=policy == "LowerPriority")]

    def _may_take(self, job: Job, task: Task, *, lower_only: bool) -> bool:
        queue = self._session.world.queue_of(task.job)
        if queue is None or task.job.queue == job.queue:
            return False
        if not all(each.spec.reclaimable for each in queue.path):
            return False
        if lower_only and task.job.priority >= job.priority:
            return False
        runtime = max(each.spec.reclaim_min_runtime_seconds for each in queue.path)
        if self._session.now - task.started >= runtime:
            return True
        self._session.wait_for(task.started + runtime)
        return False
