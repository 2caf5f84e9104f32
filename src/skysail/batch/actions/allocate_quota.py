"""Slots of Quotas that wait for a node get one, in order; those a job asked for got theirs with the job."""

from skysail.batch.session import Arguments, Session
from skysail.batch.slot_finding import node_for


class AllocateQuota:
    """The action."""

    name = "allocateQuota"

    def __init__(self, arguments: Arguments) -> None:
        self._arguments = arguments

    def initialize(self) -> None:
        """Nothing to do."""

    def execute(self, session: Session) -> None:
        """Bind pending slots, each by itself."""
        pending = [slot for slot in session.world.slots.values() if slot.phase == "Pending"]
        for slot in sorted(pending, key=session.quota_key):
            if slot.spec.queue not in session.world.tree:
                continue
            with session.statement() as statement:
                node = node_for(session, slot)
                if node is not None and statement.allocate_quota(slot, node) is None:
                    statement.commit()
                    session.note("slot", slot.key, node)

    def uninitialize(self) -> None:
        """Nothing to do."""
