"""Slots of Quotas that wait for a node get one, in order; those a job asked for got theirs with the job."""

from skysail.batch.model.slot import Slot
from skysail.batch.pausing import Steps
from skysail.batch.session import Arguments, Session
from skysail.batch.slot_finding import node_for


class AllocateQuota:
    """The action."""

    name = "allocateQuota"

    def __init__(self, arguments: Arguments) -> None:
        self._arguments = arguments

    def initialize(self) -> None:
        """Nothing to do."""

    def execute(self, session: Session) -> Steps:
        """Bind pending slots, each by itself."""
        pending = [slot for slot in session.world.slots.values() if slot.phase == "Pending"]
        homeless: set[str] = set()
        for slot in sorted(pending, key=session.quota_key):
            if slot.spec.key in homeless:
                continue  # slots of a Quota are alike, and here room only becomes less
            if slot.spec.queue not in session.world.tree or not _is_pending(session, slot):
                continue
            with session.statement() as statement:
                node = node_for(session, slot)
                if node is not None and statement.allocate_quota(slot, node) is None:
                    if statement.commit():
                        session.note("slot", slot.key, node)
                    else:
                        homeless.add(slot.spec.key)
                else:
                    homeless.add(slot.spec.key)
            yield from session.pause()

    def uninitialize(self) -> None:
        """Nothing to do."""


def _is_pending(session: Session, slot: Slot) -> bool:
    return session.world.slots.get(slot.key) is slot and slot.phase == "Pending"
