"""Amounts of resources: one line for each resource, one column for each row of the node table.

Invariants:
- `free = allocatable - requested` on every live row; below 0 on an overcommitted node;
- `pods` is a resource like any other: line 0, of which every pod requests 1;
- dead rows request nothing and offer 1 of everything, so that computing over all rows divides by no zero.

Units: `cpu` milli, everything else whole units.
"""

from collections.abc import Mapping
from enum import IntEnum
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from skysail.scheduler.cache.node_info import NodeInfo

IntColumn: TypeAlias = npt.NDArray[np.int64]
IntMatrix: TypeAlias = npt.NDArray[np.int64]
RowIndex: TypeAlias = npt.NDArray[np.intp]
Rows: TypeAlias = slice | RowIndex
"""All rows (`slice(0, size)`) or a few: whatever a NumPy array takes as an index."""

FIRST_RESOURCES = ("pods", "cpu", "memory", "ephemeral-storage")
CPU, MEMORY = 1, 2


IntBlock: TypeAlias = npt.NDArray[np.int64]


MOST = 1 << 62
"""What a sum of requests that no int64 holds counts as: more than any node has, with room for one more request.

Differs: upstream's sums wrap around, and a node with absurd pods seems empty.
"""


@lru_cache(maxsize=256)
def _index(lines: tuple[int, ...]) -> slice | list[int]:
    """A slice where the lines adjoin, in order: that copies nothing."""
    adjoining = range(lines[0], lines[0] + len(lines))
    return slice(adjoining.start, adjoining.stop) if lines == tuple(adjoining) else list(lines)


class Matrix(IntEnum):
    """Which amounts."""

    ALLOCATABLE = 0
    REQUESTED = 1
    FREE = 2
    NONZERO = 3


_ALLOCATABLE, _REQUESTED, _FREE, _NONZERO = 0, 1, 2, 3  # plain integers: an index ten times an attempt


class Amounts:
    """The matrices.

    Attributes:
        lines: The line of each resource.
        allocatable: (resources, capacity) int64, what nodes offer.
        requested: (resources, capacity) int64, what their pods ask for.
        free: (resources, capacity) int64, the difference.
        nonzero: (resources, capacity) int64, `requested`, but cpu and memory in the non-zero form (see `NodeInfo`).
    """

    def __init__(self, capacity: int) -> None:
        self.lines: dict[str, int] = {name: line for line, name in enumerate(FIRST_RESOURCES)}
        self._zero_lines: dict[tuple[int, ...], bool] = {}
        self._read: tuple[RowIndex, IntBlock] | None = None
        self._replace(np.zeros((len(Matrix), len(FIRST_RESOURCES), capacity), dtype=np.int64))

    def _replace(self, block: IntBlock) -> None:
        self._block = block
        self.allocatable: IntMatrix = block[Matrix.ALLOCATABLE]
        self.requested: IntMatrix = block[Matrix.REQUESTED]
        self.free: IntMatrix = block[Matrix.FREE]
        self.nonzero: IntMatrix = block[Matrix.NONZERO]
        self._changed()

    def line(self, resource: str) -> int:
        """The line of a resource; a resource nobody knows yet gets a line of zeros."""
        line = self.lines.get(resource)
        return line if line is not None else self._add(resource)

    def gather(self, matrix: Matrix, lines: tuple[int, ...], rows: Rows) -> IntMatrix:
        """(len(lines), n_rows) int64: a few lines of a matrix at some rows, not to be changed.

        Plugins ask for the same few rows one after the other: all matrices are read there at once, and remembered
        until anything changes.
        """
        if isinstance(rows, slice):
            block = self._block[:, :, rows]
        elif self._read is not None and self._read[0] is rows:
            block = self._read[1]
        else:
            block = self._block.take(rows, axis=2)
            self._read = (rows, block)
        found: IntMatrix = block[matrix, _index(lines)]
        return found

    def has_zero(self, lines: tuple[int, ...], size: int) -> bool:
        """Whether some row below `size` offers nothing of a resource; where none does, a division needs no guard."""
        known = self._zero_lines.get(lines)
        if known is None:
            offered = self.gather(Matrix.ALLOCATABLE, lines, slice(0, size))
            known = self._zero_lines[lines] = bool((offered == 0).any())
        return known

    def write_node(self, row: int, node: NodeInfo) -> None:
        """The Node object of this row is new or changed."""
        for resource in node.allocatable:
            self.line(resource)
        for resource, line in self.lines.items():
            self.allocatable[line, row] = node.allocatable.get(resource, 0)
        self.requested[:, row] = 0
        self.nonzero[:, row] = 0
        self._changed()

    def write_use(self, row: int, node: NodeInfo) -> None:
        """The pods of this row changed."""
        self._read = None
        try:
            self._write_sums(row, len(node.pods), node.requested, node.nonzero_cpu, node.nonzero_memory)
        except OverflowError:
            capped = {resource: min(amount, MOST) for resource, amount in node.requested.items()}
            cpu, memory = min(node.nonzero_cpu, MOST), min(node.nonzero_memory, MOST)
            self._write_sums(row, len(node.pods), capped, cpu, memory)

    def _write_sums(self, row: int, pods: int, requests: Mapping[str, int], cpu: int, memory: int) -> None:
        lines, column = self.lines, self._block[:, :, row]
        requested = column[_REQUESTED]
        for resource, amount in requests.items():
            line = lines.get(resource)
            if line is None:
                line = self._add(resource)
                column = self._block[:, :, row]
                requested = column[_REQUESTED]
            requested[line] = amount
        requested[0] = pods
        np.subtract(column[_ALLOCATABLE], requested, out=column[_FREE])
        nonzero = column[_NONZERO]
        nonzero[:] = requested
        nonzero[CPU] = cpu
        nonzero[MEMORY] = memory

    def copy_node(self, source: int, target: int) -> None:
        """Make a scratch row offer what a live one does; its use is yet to be written."""
        self._read = None
        self.allocatable[:, target] = self.allocatable[:, source]
        self.requested[:, target] = 0
        self.nonzero[:, target] = 0

    def clear(self, row: int) -> None:
        """The row is dead."""
        self._block[:, :, row] = 0
        self.allocatable[:, row] = 1
        self._changed()

    def resize(self, capacity: int) -> None:
        """Make room for more rows."""
        kinds, resources, before = self._block.shape
        wider = np.zeros((kinds, resources, capacity), dtype=np.int64)
        wider[:, :, :before] = self._block
        self._replace(wider)

    def _add(self, resource: str) -> int:
        line = self.lines[resource] = len(self.lines)
        self._replace(np.pad(self._block, ((0, 0), (0, 1), (0, 0))))
        return line

    def _changed(self) -> None:
        self._zero_lines.clear()
        self._read = None
