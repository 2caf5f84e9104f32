"""How well does it fit? The pod-at-a-time engine's Score plugins, over the session's rows."""

import numpy as np

from skysail.batch.expressions import RowScores
from skysail.batch.model.job import Task
from skysail.batch.pod_plugins import PodPlugins
from skysail.batch.session import Arguments, Session


class NodeOrder:
    """The plugin. Rows that do not fit score -1."""

    name = "nodeorder"

    def __init__(self, arguments: Arguments) -> None:
        self._arguments = arguments

    def on_session_open(self, session: Session) -> None:
        """Register."""
        self._session = session
        self._plugins = PodPlugins.of(session.world)
        session.add_batch_node_order(self.name, self.batch_node_order)

    def on_session_close(self, session: Session) -> None:
        """Nothing to do."""

    def batch_node_order(self, task: Task) -> RowScores | None:
        """(size,) int64: the weighted sum of all scorers at rows that fit; abstains where nothing fits."""
        table = self._session.nodes.table
        evaluator = self._plugins.evaluator(table, task.info)
        if not evaluator.pre_filter().status.is_success:
            return None
        passing = evaluator.filter().passing
        if not passing.any():
            return None
        return evaluator.totals(passing)[: table.size].astype(np.int64)
