"""Dominant resource fairness among the jobs of a queue: the smaller dominant share goes first. Exact fractions."""

from fractions import Fraction

from skysail.batch.model.job import HELD, Job
from skysail.batch.model.resources import ANY
from skysail.batch.session import Arguments, Session


class Drf:
    """The plugin."""

    name = "drf"

    def __init__(self, arguments: Arguments) -> None:
        self._arguments = arguments

    def on_session_open(self, session: Session) -> None:
        """Register."""
        self._totals = session.world.flavors.totals
        session.add_job_order(self.name, self.job_order)

    def on_session_close(self, session: Session) -> None:
        """Nothing to do."""

    def job_order(self, job: Job) -> Fraction | int:
        """Its dominant share."""
        return self.share(job)

    def share(self, job: Job) -> Fraction | int:
        """The largest part of the cluster it holds of any resource; of one that nobody offers, 1 when it holds any."""
        held: dict[str, int] = {}
        for task in job.tasks.values():
            if task.state in HELD:
                for resource, amount in task.request.items():
                    held[resource] = held.get(resource, 0) + amount
        most: Fraction | int = 0
        for resource, amount in held.items():
            total = self._totals.get((ANY, resource), 0)
            most = max(most, Fraction(amount, total) if total else 1)
        return most
