"""Does it fit? The pod-at-a-time engine's Filter plugins, over the session's rows: one truth for both engines."""

from collections.abc import Hashable, Mapping

import numpy as np

from skysail.batch.expressions import RowMask
from skysail.batch.model.job import Task
from skysail.batch.pod_plugins import PodPlugins
from skysail.batch.session import Arguments, Session
from skysail.scheduler.cache.table import NodeTable
from skysail.scheduler.framework.evaluation import Filtered
from skysail.scheduler.framework.status import Code


class Predicates:
    """The plugin."""

    name = "predicates"

    def __init__(self, arguments: Arguments) -> None:
        self._arguments = arguments

    def on_session_open(self, session: Session) -> None:
        """Register."""
        self._session = session
        self._plugins = PodPlugins.of(session.world)
        session.signer = self.signature
        session.explainers.append(self.histogram)
        session.could_ever = self.could_ever
        session.add_predicate(self.name, self.predicate)

    def on_session_close(self, session: Session) -> None:
        """Nothing to do."""

    def signature(self, task: Task) -> Hashable:
        """Equal for tasks that fit the same rows and score alike."""
        table = self._session.nodes.table
        social = bool(table.rows_with_affinity or table.rows_with_anti_affinity)
        known = task.signed
        if known is None or known[0] is not task.info or known[1] is not social:
            known = task.signed = (task.info, social, self._plugins.signature(task.info, table))
        return known[2]

    def predicate(self, task: Task) -> RowMask:
        """(size,) bool."""
        size = self._session.nodes.table.size
        filtered = self._filtered(task)
        return np.zeros(size, dtype=np.bool_) if filtered is None else filtered.passing[:size]

    def _filtered(self, task: Task) -> Filtered | None:
        """Filter's answer for all rows; None when PreFilter refuses them all."""
        evaluator = self._plugins.evaluator(self._session.nodes.table, task.info)
        outcome = evaluator.pre_filter()
        if not outcome.status.is_success:
            return None
        filtered = evaluator.filter()
        names = outcome.result.node_names
        if names is None:
            return filtered
        table = self._session.nodes.table
        passing = np.zeros(table.size, dtype=np.bool_)
        rows = [table.rows[name] for name in names if name in table.rows]
        passing[rows] = filtered.passing[rows]
        return Filtered(filtered.first, filtered.statuses, passing)

    def could_ever(self, task: Task) -> RowMask:
        """(size,) bool: rows that are refused for nothing that pods leaving could change."""
        table = self._session.nodes.table
        filtered = self._filtered(task)
        if filtered is None:
            return np.zeros(table.size, dtype=np.bool_)
        resolvable = np.array([status.code is not Code.UNSCHEDULABLE_AND_UNRESOLVABLE for status in filtered.statuses])
        mask: RowMask = resolvable[filtered.first[: table.size]]
        return mask

    def histogram(self, task: Task) -> Mapping[str, int]:
        """How many nodes gave which reason."""
        table = self._session.nodes.table
        filtered = self._filtered(task)
        if filtered is None:
            return {"refused before any node was looked at": len(table)}
        return reasons_of(filtered, table)


def reasons_of(filtered: Filtered, table: NodeTable) -> dict[str, int]:
    """How many live nodes gave which reason."""
    counts = np.bincount(filtered.first[: table.size][table.live[: table.size]], minlength=len(filtered.statuses))
    found: dict[str, int] = {}
    for number, status in enumerate(filtered.statuses):
        for reason in status.reasons if number and counts[number] else ():
            found[reason] = found.get(reason, 0) + int(counts[number])
    return found
