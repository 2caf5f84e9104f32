"""Spot queues live on what is idle: they are served last, and take from nobody."""

from collections.abc import Sequence

from skysail.batch.model.job import Job, Task
from skysail.batch.model.queue import Queue
from skysail.batch.session import Arguments, Session


class Spot:
    """The plugin."""

    name = "spot"

    def __init__(self, arguments: Arguments) -> None:
        self._arguments = arguments

    def on_session_open(self, session: Session) -> None:
        """Register."""
        self._session = session
        session.add_queue_order(self.name, self.queue_order)
        session.add_reclaimable(self.name, self.evictable, lambda job: None)
        session.add_preemptable(self.name, self.evictable, lambda job: None)

    def on_session_close(self, session: Session) -> None:
        """Nothing to do."""

    def queue_order(self, queue: Queue) -> bool:
        """Spot queues last."""
        return queue.is_spot

    def evictable(self, job: Job, candidates: Sequence[Task]) -> list[Task] | None:
        """Nobody, for a job of a Spot queue; no opinion on others."""
        return [] if self._session.queue_of(job).is_spot else None
