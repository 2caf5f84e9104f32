"""Prefers nodes that are full already, so that large holes stay."""

from collections.abc import Mapping

import msgspec
import numpy as np

from skysail.batch.expressions import RowScores
from skysail.batch.model.job import Task
from skysail.batch.model.resources import PODS
from skysail.batch.session import Arguments, Session


class BinpackArguments(Arguments, frozen=True):
    """Arguments.

    Attributes:
        weight: What a full node is worth, in hundreds; beside it, `nodeorder` gives up to some hundreds.
        resources: Weight by resource; those not named weigh 1, `pods` 0.
    """

    weight: int = 10
    resources: Mapping[str, int] = msgspec.field(default_factory=dict)


class Binpack:
    """The plugin."""

    name = "binpack"

    def __init__(self, arguments: BinpackArguments) -> None:
        self._arguments = arguments

    def on_session_open(self, session: Session) -> None:
        """Register."""
        self._session = session
        session.add_node_order(self.name, self.node_order)

    def on_session_close(self, session: Session) -> None:
        """Nothing to do."""

    def node_order(self, task: Task) -> RowScores:
        """(size,) int64, 0..100 x weight: the weighted part of the asked-for resources in use with the task there."""
        table = self._session.nodes.table
        amounts, size = table.amounts, table.size
        total = np.zeros(size, dtype=np.int64)
        weights = 0
        for resource, need in task.request.items():
            weight = self._arguments.resources.get(resource, 0 if resource == PODS else 1)
            if not weight:
                continue
            line = amounts.line(resource)
            offered = np.maximum(amounts.allocatable[line][:size], 1)
            used = np.minimum(amounts.requested[line][:size] + need, offered)
            total += weight * (100 * used // offered)
            weights += weight
        return total * self._arguments.weight // max(1, weights)
