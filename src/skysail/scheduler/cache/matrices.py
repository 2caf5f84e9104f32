"""Amounts of resources: one line for each resource, one column for each row of the node table.

Invariants:
- `free = allocatable - requested` on every live row; below 0 on an overcommitted node;
- `pods` is a resource like any other: line 0, of which every pod requests 1;
- dead rows request nothing and offer 1 of everything, so that computing over all rows divides by no zero.

Units: `cpu` milli, everything else whole units.
"""

from collections.abc import Iterator, Sequence
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
        self.allocatable: IntMatrix = np.zeros((len(FIRST_RESOURCES), capacity), dtype=np.int64)
        self.requested: IntMatrix = np.zeros_like(self.allocatable)
        self.free: IntMatrix = np.zeros_like(self.allocatable)
        self.nonzero: IntMatrix = np.zeros_like(self.allocatable)
        self._zero_lines: dict[tuple[int, ...], bool] = {}
        self._offered: tuple[Rows, tuple[int, ...], IntMatrix] = (slice(0, 0), (), self.allocatable)

    def line(self, resource: str) -> int:
        """The line of a resource; a resource nobody knows yet gets a line of zeros."""
        line = self.lines.get(resource)
        return line if line is not None else self._add(resource)

    def gather(self, matrix: IntMatrix, lines: tuple[int, ...], rows: Rows) -> IntMatrix:
        """(len(lines), n_rows) int64: a few lines of a matrix at some rows; a view where one is possible."""
        adjoining = lines[-1] - lines[0] == len(lines) - 1
        some = matrix[lines[0] : lines[-1] + 1] if adjoining else matrix[list(lines)]
        found: IntMatrix = some[:, rows] if isinstance(rows, slice) else some.take(rows, axis=1)
        return found

    def offered(self, lines: tuple[int, ...], rows: Rows) -> IntMatrix:
        """`gather` of what nodes offer, remembered from one plugin to the next; not to be changed."""
        known_rows, known_lines, known = self._offered
        if known_rows is rows and known_lines == lines:
            return known
        found = self.gather(self.allocatable, lines, rows)
        self._offered = (rows, lines, found)
        return found

    def has_zero(self, lines: tuple[int, ...], size: int) -> bool:
        """Whether some row below `size` offers nothing of a resource; where none does, a division needs no guard."""
        known = self._zero_lines.get(lines)
        if known is None:
            known = self._zero_lines[lines] = bool((self.gather(self.allocatable, lines, slice(0, size)) == 0).any())
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
        lines, requested = self.lines, self.requested
        for resource, amount in node.requested.items():
            line = lines.get(resource)
            if line is None:
                line = self._add(resource)
                requested = self.requested
            requested[line, row] = amount
        requested[0, row] = len(node.pods)
        use = requested[:, row]
        self.free[:, row] = self.allocatable[:, row] - use
        nonzero = self.nonzero
        nonzero[:, row] = use
        nonzero[CPU, row] = node.nonzero_cpu
        nonzero[MEMORY, row] = node.nonzero_memory

    def copy_node(self, source: int, target: int) -> None:
        """Make a scratch row offer what a live one does; its use is yet to be written."""
        self.allocatable[:, target] = self.allocatable[:, source]
        self.requested[:, target] = 0
        self.nonzero[:, target] = 0

    def clear(self, row: int) -> None:
        """The row is dead."""
        for matrix in self._matrices():
            matrix[:, row] = 0
        self.allocatable[:, row] = 1
        self._changed()

    def resize(self, capacity: int) -> None:
        """Make room for more rows."""
        self._replace([_wider(matrix, capacity) for matrix in self._matrices()])

    def _add(self, resource: str) -> int:
        line = self.lines[resource] = len(self.lines)
        self._replace([np.pad(matrix, ((0, 1), (0, 0))) for matrix in self._matrices()])
        return line

    def _matrices(self) -> Iterator[IntMatrix]:
        return iter((self.allocatable, self.requested, self.free, self.nonzero))

    def _replace(self, matrices: Sequence[IntMatrix]) -> None:
        self.allocatable, self.requested, self.free, self.nonzero = matrices
        self._changed()

    def _changed(self) -> None:
        self._zero_lines.clear()
        self._offered = (slice(0, 0), (), self.allocatable)


def _wider(matrix: IntMatrix, capacity: int) -> IntMatrix:
    wider = np.zeros((len(matrix), capacity), dtype=np.int64)
    wider[:, : matrix.shape[1]] = matrix
    return wider
