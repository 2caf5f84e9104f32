"""A job that has waited longer than its agreement says goes before all others of its queue."""

from skysail.batch.model.job import Job
from skysail.batch.session import Arguments, Session


class SlaArguments(Arguments, frozen=True):
    """Arguments.

    Attributes:
        waiting_seconds: For jobs that say nothing themselves; None is no agreement.
    """

    waiting_seconds: float | None = None


class Sla:
    """The plugin."""

    name = "sla"

    def __init__(self, arguments: SlaArguments) -> None:
        self._arguments = arguments

    def on_session_open(self, session: Session) -> None:
        """Register."""
        self._now = session.now
        session.add_job_order(self.name, self.job_order)
        session.add_job_enqueueable(self.name, self.job_enqueueable)

    def on_session_close(self, session: Session) -> None:
        """Nothing to do."""

    def job_order(self, job: Job) -> int:
        """Overdue ones first."""
        return 0 if self.is_overdue(job) else 1

    def job_enqueueable(self, job: Job) -> bool | None:
        """Yes, once it is overdue."""
        return True if self.is_overdue(job) else None

    def is_overdue(self, job: Job) -> bool:
        """Whether it has waited longer than agreed."""
        own = job.spec.sla_waiting_seconds if job.spec is not None else None
        limit = self._arguments.waiting_seconds if own is None else own
        return limit is not None and not job.was_ready and self._now - job.first_seen > limit
