"""Shares of a device fit on one device, or not at all; whole devices are those nobody shares."""

import numpy as np

from skysail.batch.devices import DEVICE, DeviceLedger, ledger_of, share_of
from skysail.batch.expressions import RowMask
from skysail.batch.model.job import Task
from skysail.batch.session import Arguments, Session
from skysail.scheduler.cache.node_info import NodeInfo


class Devices:
    """The plugin. It costs nothing while no pod asks for a share."""

    name = "devices"

    def __init__(self, arguments: Arguments) -> None:
        self._arguments = arguments

    def on_session_open(self, session: Session) -> None:
        """Register, if any pod asks for a share."""
        self._session = session
        self._ledgers: dict[str, tuple[NodeInfo, DeviceLedger]] = {}
        if session.world.sharers:
            session.add_predicate(self.name, self.predicate)
            session.turns.append(self.takes_turns)

    def on_session_close(self, session: Session) -> None:
        """Nothing to do."""

    def takes_turns(self, task: Task) -> bool:
        """Devices are counted one by one."""
        return task.uid in self._session.world.sharers or DEVICE in task.request

    def predicate(self, task: Task) -> RowMask | None:
        """(size,) bool; abstains for pods that ask for no device."""
        share, need = share_of(task.pod), task.request.get(DEVICE, 0)
        if share is None and not need:
            return None
        table = self._session.nodes.table
        mask: RowMask = np.zeros(table.size, dtype=np.bool_)
        for row, info in enumerate(table.infos[: table.size]):
            if info is None or not info.allocatable.get(DEVICE):
                continue
            ledger = self._ledger(info)
            if share is None:
                mask[row] = ledger.free >= need
            else:
                thousandths = share.on(info)
                mask[row] = thousandths is not None and ledger.holds_share(thousandths)
        return mask

    def _ledger(self, info: NodeInfo) -> DeviceLedger:
        known = self._ledgers.get(info.name)
        if known is None or known[0] is not info:
            known = self._ledgers[info.name] = (info, ledger_of(info))
        return known[1]
