"""The session's own view of the nodes: the snapshot's table, with what the session decided written into it.

The table's rows are accounts that the cluster cache shares; a change puts a clone in a row, an undo puts the account
back. `refresh` brings rows to what the cache says, which is the truth once something was committed.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from skysail.scheduler.cache.cluster_cache import ClusterCache
from skysail.scheduler.cache.matrices import IntColumn, RowIndex
from skysail.scheduler.cache.node_info import NodeInfo
from skysail.scheduler.cache.pod_info import PodInfo
from skysail.scheduler.cache.snapshot import Snapshot
from skysail.scheduler.cache.table import NodeTable


class SessionNodes:
    """The nodes of one session.

    Attributes:
        table: The columns.
        released: Another number whenever room came free in this session; an undone release takes its number back. While
            it stays the same, what did not fit does not fit.
    """

    def __init__(self, snapshot: Snapshot, cache: ClusterCache) -> None:
        self.table: NodeTable = snapshot.table
        self._cache = cache
        self._touched: dict[str, None] = {}
        self.released = self._releases = 0

    def add(self, node: str, pods: Sequence[PodInfo]) -> NodeInfo:
        """Put pods on a node; returns its account from before, for `restore`."""
        before = self.table.info(self.table.rows[node])
        after = before.clone()
        for pod in pods:
            after.add_pod(pod)
        self._write(node, after)
        return before

    def remove(self, node: str, pods: Iterable[PodInfo]) -> NodeInfo | None:
        """Take pods off a node; None when the node is not there (then there is nothing to take)."""
        row = self.table.rows.get(node)
        if row is None:
            return None
        before = self.table.info(row)
        after = before.clone()
        for pod in pods:
            after.remove_pod(pod.pod)
        self._write(node, after)
        self.release()
        return before

    def restore(self, account: NodeInfo) -> None:
        """Put an account back."""
        self._write(account.name, account)

    def release(self) -> None:
        """Room came free."""
        self._releases += 1
        self.released = self._releases

    def refresh(self, nodes: Iterable[str] | None = None) -> None:
        """Bring these rows, or all that were touched, to what the cache says."""
        names = list(self._touched) if nodes is None else list(nodes)
        for name in names:
            row, truth = self.table.rows.get(name), self._cache.node_info(name)
            self._touched.pop(name, None)
            if row is None or truth is None or not truth.exists or self.table.infos[row] is truth:
                continue
            truth.shared = True
            self._put(row, truth)
        self.release()

    def rows_of(self, nodes: Iterable[str]) -> RowIndex:
        """Rows of nodes that are there."""
        rows = [self.table.rows[name] for name in nodes if name in self.table.rows]
        return np.array(rows, dtype=np.intp)

    def name_rank(self) -> IntColumn:
        """(size,) int64: each row's place in the order of node names, the last word where scores are equal.

        Cost: A sort when any Node object changed.
        """
        table = self.table
        known = table.memo.get("batch name rank")
        if isinstance(known, tuple) and known[0] == (table.node_log.end, table.size):
            return known[1]  # type: ignore[no-any-return]
        rank = np.empty(table.size, dtype=np.int64)
        rank[np.array(sorted(range(table.size), key=lambda row: table.names[row]), dtype=np.intp)] = np.arange(
            table.size
        )
        table.memo["batch name rank"] = ((table.node_log.end, table.size), rank)
        return rank

    def _write(self, node: str, account: NodeInfo) -> None:
        self._touched[node] = None
        self._put(self.table.rows[node], account)

    def _put(self, row: int, account: NodeInfo) -> None:
        """Write an account that may be older than the one there: what only the newer one mentions is zero again."""
        amounts = self.table.amounts
        for resource in self.table.info(row).requested.keys() - account.requested.keys():
            amounts.requested[amounts.line(resource), row] = 0
        self.table.write(account)
