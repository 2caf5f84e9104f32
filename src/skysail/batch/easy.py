"""EASY backfill: when could a blocked head start, and what may others use until then, and beyond?

The shadow time is the earliest moment at which enough running jobs will have ended for the head to be placed; it is
found by placing it, with all constraints, in a Statement in which those jobs are gone. A job may go first if it ends by
then, or if it fits beside the head as placed there.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from skysail.batch.model.job import HELD, Job, Task, TaskState
from skysail.batch.placing import Placer
from skysail.batch.rows import Times
from skysail.batch.session import Session


@dataclass(slots=True)
class Reservation:
    """What a head will need.

    Attributes:
        head: The blocked job.
        shadow: Seconds at which it can start.
        free: (resources, size) int64: what is free then, with the head in place.
    """

    head: Job
    shadow: float
    free: npt.NDArray[np.int64]

    def ends_in_time(self, job: Job, now: float) -> bool:
        """Whether a job that starts now has ended when the head can start."""
        seconds = job.spec.maximum_execution_seconds if job.spec is not None else None
        return seconds is not None and now + seconds <= self.shadow

    def limit_for(self, session: Session) -> Callable[[Task], Times]:
        """How many such tasks each row holds beside the head."""

        def limit(task: Task) -> Times:
            amounts = session.nodes.table.amounts
            found: Times | None = None
            for resource, need in task.request.items():
                line = amounts.line(resource)
                if line >= len(self.free):
                    return np.zeros(self.free.shape[1], dtype=np.int64)
                fits = self.free[line] // need
                found = fits if found is None else np.minimum(found, fits)
            assert found is not None
            return np.maximum(found, 0)

        return limit


def reservation_for(session: Session, head: Job) -> Reservation | None:
    """The head's reservation; None when it cannot be told, because run times are unknown.

    Cost: A placement for each step of a binary search over the moments at which jobs end.
    """
    ends = _ends(session)
    moments = sorted({moment for moment, _ in ends})
    low, high, found = 0, len(moments) - 1, None
    while low <= high:
        middle = (low + high) // 2
        leaving = [job for moment, job in ends if moment <= moments[middle]]
        attempt = _try_after(session, head, leaving, max(moments[middle], session.now))
        if attempt is not None:
            found, high = attempt, middle - 1
        else:
            low = middle + 1
    return found


def _ends(session: Session) -> list[tuple[float, Job]]:
    """When running jobs of known run time end at the latest."""
    found = []
    for job in session.world.jobs.values():
        seconds = job.spec.maximum_execution_seconds if job.spec is not None else None
        running = job.in_state(*HELD)
        if seconds is not None and running:
            found.append((max((task.started or session.now) for task in running) + seconds, job))
    return found


def _try_after(session: Session, head: Job, leaving: list[Job], moment: float) -> Reservation | None:
    with session.statement() as statement:
        for job in leaving:
            tasks = job.in_state(TaskState.BOUND, TaskState.BINDING)
            if tasks:
                statement.evict(job, tasks, "what if")
        placer = Placer(session, head, statement, statement.pipeline, claiming=True)
        if not placer.place_minimum():
            return None
        size = session.nodes.table.size
        return Reservation(head, moment, session.nodes.table.amounts.free[:, :size].copy())
