"""Puts the NoExecute taint that says how a node is on it, and takes it off: what makes its pods leave.

Source: pkg/controller/util/node `SwapNodeControllerTaint`, v1.36.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from skysail.api.errors import Conflict
from skysail.api.kinds import NODES
from skysail.api.node import Node, NodeCondition, Taint
from skysail.client.api_client import ApiClient
from skysail.controllers.nodelifecycle.taints import (
    NO_EXECUTE,
    NOT_READY,
    UNREACHABLE,
    has_taint,
    marks_of,
    swapped,
    taints_patch,
)

_RETRIES = 5


class NoExecuteMarker:
    """Marks nodes.

    Args:
        client: Writes.
        now: The time, as it is written.
    """

    def __init__(self, client: ApiClient, now: Callable[[], datetime]) -> None:
        self._client, self._now = client, now

    async def mark(self, node: Node, ready: NodeCondition) -> None:
        """Give a node that is not ready the mark of its state, instead of the other one."""
        right, wrong = marks_of(ready)
        mark = Taint(key=right, effect=NO_EXECUTE, time_added=self._now())
        await self._swap(node, [mark], [Taint(key=wrong, effect=NO_EXECUTE)])

    async def clear(self, node: Node) -> None:
        """Take all marks off a node."""
        if has_taint(node, NOT_READY, NO_EXECUTE) or has_taint(node, UNREACHABLE, NO_EXECUTE):
            await self._swap(node, [], [Taint(key=key, effect=NO_EXECUTE) for key in (NOT_READY, UNREACHABLE)])

    async def _swap(self, node: Node, add: Sequence[Taint], gone: Iterable[Taint]) -> None:
        """On a stale view read the node again; after some tries it is left to the next look."""
        for _ in range(_RETRIES):
            taints = swapped(node, add, gone)
            if taints is None:
                return
            try:
                await self._client.patch(NODES, node.name, "", taints_patch(node, taints))
            except Conflict:
                node = await self._client.get(NODES, node.name)
            else:
                return
