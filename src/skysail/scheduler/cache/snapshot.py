"""The cluster as one scheduling attempt sees it, brought up to date row by row.

A snapshot stays as it is between two `refresh`es, whatever the cache does meanwhile: accounts that a snapshot holds are
never changed, the cache changes clones of them (`NodeInfo` is copied on write).
"""

from collections.abc import Iterator, Mapping

import numpy as np

from skysail.scheduler.cache.history import RowHistory
from skysail.scheduler.cache.matrices import RowIndex
from skysail.scheduler.cache.node_info import NodeInfo
from skysail.scheduler.cache.table import NO_ROWS, NodeTable


class Snapshot:
    """Accounts and table of all nodes at one generation.

    Args:
        history: Remembers what it held before; None remembers nothing.

    Attributes:
        table: The columns.
        generation: Of the newest change it holds.
    """

    def __init__(self, history: RowHistory | None = None) -> None:
        self.table = NodeTable()
        self.table.history = history
        self.generation = 0
        self._order = (-1, NO_ROWS)

    def clear(self) -> None:
        """Forget everything: the next refresh writes every row anew."""
        history = self.table.history
        if history is not None:
            history.break_off()
        self.__init__(history)  # type: ignore[misc]

    @property
    def position(self) -> int:
        """Names this moment for `infos_at`; -1 when nothing is remembered."""
        return self.table.history.end if self.table.history is not None else -1

    def infos_at(self, position: int) -> list[NodeInfo] | None:
        """The accounts of all nodes as they were at a former `position`; None when that is forgotten."""
        history = self.table.history
        return history.infos_at(position, self.table.infos[: self.table.size]) if history is not None else None

    def __len__(self) -> int:
        return len(self.table.rows)

    def __iter__(self) -> Iterator[NodeInfo]:
        """Accounts of all nodes, in row order."""
        return (info for info in self.table.infos[: self.table.size] if info is not None)

    def get(self, name: str) -> NodeInfo | None:
        """A node's account, or None."""
        row = self.table.rows.get(name)
        return None if row is None else self.table.infos[row]

    @property
    def node_names(self) -> Mapping[str, int]:
        """Names of all nodes, with their rows."""
        return self.table.rows

    def visiting_order(self) -> RowIndex:
        """Rows in the order in which nodes are visited when not all are: one of each zone in turn.

        Source: pkg/scheduler/backend/cache/node_tree.go, v1.36.

        Cost: A walk over all nodes when any Node object changed since the last call.
        """
        at, order = self._order
        if at != self.table.node_log.end:
            zones: dict[str, list[int]] = {}
            for row, info in enumerate(self.table.infos[: self.table.size]):
                if info is not None:
                    zones.setdefault(zone_key(info), []).append(row)
            turns = max((len(rows) for rows in zones.values()), default=0)
            interleaved = [rows[turn] for turn in range(turns) for rows in zones.values() if turn < len(rows)]
            order = np.array(interleaved, dtype=np.intp)
            self._order = (self.table.node_log.end, order)
        return order


def zone_key(info: NodeInfo) -> str:
    """Region and zone of a node in one text; empty when it has neither."""
    labels = info.node.metadata.labels
    region = labels.get("topology.kubernetes.io/region") or labels.get("failure-domain.beta.kubernetes.io/region", "")
    zone = labels.get("topology.kubernetes.io/zone") or labels.get("failure-domain.beta.kubernetes.io/zone", "")
    return f"{region}:\x00:{zone}" if region or zone else ""
