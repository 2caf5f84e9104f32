"""Bindings leave the session: one batch for each job, in task order.

The shell binds in the background (`skysail.batch.app`), bounded, and does not make the next cycle wait.
"""

from skysail.batch.session import Arguments, Session


class Bind:
    """The action."""

    name = "bind"

    def __init__(self, arguments: Arguments) -> None:
        self._arguments = arguments

    def initialize(self) -> None:
        """Nothing to do."""

    def execute(self, session: Session) -> None:
        """Put each batch in order."""
        for batch in session.effects.binds:
            batch.tasks.sort(key=session.task_key)

    def uninitialize(self) -> None:
        """Nothing to do."""
