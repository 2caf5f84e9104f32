"""The cluster as one scheduling attempt sees it, brought up to date row by row.

A snapshot stays as it is between two `refresh`es, whatever the cache does meanwhile: accounts that a snapshot holds are
never changed, the cache changes clones of them (`NodeInfo` is copied on write).
"""

from collections.abc import Iterator, Mapping

from skysail.scheduler.cache.node_info import NodeInfo
from skysail.scheduler.cache.table import NodeTable


class Snapshot:
    """Accounts and table of all nodes at one generation.

    Attributes:
        table: The columns.
        generation: Of the newest change it holds.
    """

    def __init__(self) -> None:
        self.table = NodeTable()
        self.generation = 0

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
