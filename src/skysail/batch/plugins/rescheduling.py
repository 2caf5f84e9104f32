"""Moves to defragment: which running tasks may be moved so that a starving job finds one large hole, at what cost.

Off unless `maxMoves` says how many pods may be moved for one job. Everybody moved must find another place in the same
simulation (`skysail.batch.consolidation`), and nobody is moved for a job of lower priority.
"""

from collections.abc import Sequence

from skysail.batch.model.job import Task
from skysail.batch.session import Arguments, Session


class ReschedulingArguments(Arguments, frozen=True):
    """Arguments.

    Attributes:
        max_moves: Pods moved for one job at most; 0 moves nobody.
        min_runtime_seconds: A pod is moved only after it ran so long.
    """

    max_moves: int = 0
    min_runtime_seconds: float = 0.0


class Rescheduling:
    """The plugin."""

    name = "rescheduling"

    def __init__(self, arguments: ReschedulingArguments) -> None:
        self._arguments = arguments

    def on_session_open(self, session: Session) -> None:
        """Register."""
        self._now = session.now
        if self._arguments.max_moves > 0:
            session.max_moves = self._arguments.max_moves
            session.add_victim(self.name, self.movable)

    def on_session_close(self, session: Session) -> None:
        """Nothing to do."""

    def movable(self, nobody: None, candidates: Sequence[Task]) -> list[Task]:
        """Tasks of preemptible jobs that do not insist on moving together, and ran long enough."""
        return [
            task
            for task in candidates
            if task.job.spec is not None
            and task.job.spec.preemptible
            and task.job.spec.disruption_mode == "Pod"
            and self._now - task.started >= self._arguments.min_runtime_seconds
        ]
