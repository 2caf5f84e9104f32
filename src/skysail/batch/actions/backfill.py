"""Spot queues live on what is idle: straight onto free room, evicting nobody.

Jobs of `Quota` queues that may pass a blocked head (`backfill: EASY`, pass-over budgets) do so where they are
allocated, see `skysail.batch.lines`.
"""

from skysail.batch.actions.allocate_job import AllocationPass
from skysail.batch.pausing import Steps
from skysail.batch.session import Arguments, Session


class Backfill:
    """The action."""

    name = "backfill"

    def __init__(self, arguments: Arguments) -> None:
        self._arguments = arguments

    def initialize(self) -> None:
        """Nothing to do."""

    def execute(self, session: Session) -> Steps:
        """Give jobs of Spot queues their turn."""
        jobs = [job for job in session.waiting_jobs() if session.queue_of(job).is_spot and job.claim is None]
        return AllocationPass(session).run(jobs)

    def uninitialize(self) -> None:
        """Nothing to do."""
