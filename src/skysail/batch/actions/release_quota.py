"""Slots that are idle for longer than their policy, or past their end, are given back. Implicit ones have no rest."""

from skysail.batch.session import Arguments, Session
from skysail.batch.slot_ending import why_over


class ReleaseQuota:
    """The action."""

    name = "releaseQuota"

    def __init__(self, arguments: Arguments) -> None:
        self._arguments = arguments

    def initialize(self) -> None:
        """Nothing to do."""

    def execute(self, session: Session) -> None:
        """Give back."""
        for slot in list(session.world.slots.values()):
            reason = why_over(slot, session.now) if slot.node and not slot.holders else None
            if reason is not None:
                session.world.end_slot(slot, reason)
                session.effects.released.append(slot)
                session.note("release", slot.key)

    def uninitialize(self) -> None:
        """Nothing to do."""
