"""Slots that are idle for longer than their policy, or past their end, are given back. Implicit ones have no rest."""

from skysail.batch.model.slot import Slot
from skysail.batch.session import Arguments, Session


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
            if slot.node and not slot.holders and is_due(slot, session.now):
                session.world.unbind_slot(slot)
                slot.phase = "Releasing"
                session.effects.released.append(slot)
                session.note("release", slot.key)

    def uninitialize(self) -> None:
        """Nothing to do."""


def is_due(slot: Slot, now: float) -> bool:
    """Whether an empty slot has had its time."""
    spec = slot.spec
    if spec.expires is not None and now >= spec.expires:
        return True
    if slot.was_used and (spec.allocate_once or spec.release == "OnJobFinish"):
        return True
    return (
        spec.release == "Idle" and slot.idle_since is not None and now - slot.idle_since >= spec.release_after_seconds
    )
