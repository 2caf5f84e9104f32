"""What the rows of a table held before: an undo log, from which an earlier snapshot can be put together again.

Accounts that a snapshot holds are never changed (`NodeInfo` is copied on write), so a reference to the old one is all
that a change must leave. A change costs a tenth of a microsecond; memory is bounded by the number of changes kept.
"""

from collections import deque
from collections.abc import Sequence
from itertools import islice

from skysail.scheduler.cache.node_info import NodeInfo


class RowHistory:
    """The log.

    Invariant: `end` counts all changes there ever were; the log holds the last of them, oldest first.

    Args:
        kept: How many changes are remembered.
    """

    def __init__(self, kept: int = 4_096) -> None:
        self._changes: deque[tuple[int, NodeInfo | None]] = deque(maxlen=kept)
        self.end = 0

    def note(self, row: int, before: NodeInfo | None) -> None:
        """A row is about to hold another account; `before` is None where there was none."""
        self._changes.append((row, before))
        self.end += 1

    def break_off(self) -> None:
        """Rows are written all anew: nothing before this moment can be put together any more."""
        self._changes.clear()
        self.end += 1

    def infos_at(self, position: int, now: Sequence[NodeInfo | None]) -> list[NodeInfo] | None:
        """The accounts, in row order, as they were when `end` was `position`; None when that is too long ago.

        Args:
            position: A former `end`.
            now: What the rows hold.

        Cost: A step for each row and each change since.
        """
        missing = self.end - position
        if position < 0 or missing > len(self._changes):
            return None
        infos = list(now)
        for row, before in islice(reversed(self._changes), missing):
            infos[row] = before
        return [info for info in infos if info is not None]
