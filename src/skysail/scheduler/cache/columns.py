"""Columns of the node table that exist because somebody asked for them.

A derived column is built once by a walk over all rows, and from then on kept up to date row by row. Those that read
only the Node object are told when it changes; those that count pods are told which pods came and went.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from skysail.api.labels import Selector
from skysail.scheduler.cache.node_info import NodeInfo
from skysail.scheduler.cache.pod_info import PodInfo

ABSENT = -1


def grown(array: npt.NDArray[np.int32], capacity: int, fill: int) -> npt.NDArray[np.int32]:
    """A longer copy of an array, the new cells holding `fill`."""
    longer = np.full(capacity, fill, dtype=array.dtype)
    longer[: len(array)] = array
    return longer


class NodeColumn(ABC):
    """A column that reads only Node objects."""

    @abstractmethod
    def write(self, row: int, node: NodeInfo | None) -> None:
        """The Node of this row is new, changed or gone (None)."""

    @abstractmethod
    def copy_cell(self, source: int, target: int) -> None:
        """Make a scratch row equal to a live one; totals over rows do not change."""

    @abstractmethod
    def resize(self, capacity: int) -> None:
        """Make room for more rows."""


class PodColumn(ABC):
    """A column that counts pods."""

    @abstractmethod
    def move(self, row: int, added: Iterable[PodInfo], removed: Iterable[PodInfo]) -> None:
        """These pods came to the row and left it."""

    @abstractmethod
    def copy_cell(self, source: int, target: int) -> None:
        """Make a scratch row equal to a live one."""

    @abstractmethod
    def resize(self, capacity: int) -> None:
        """Make room for more rows."""


class LabelColumn(NodeColumn):
    """The value of one label key, interned: topology domains, and fast node selectors.

    Attributes:
        codes: (capacity,) int32; ABSENT where the node lacks the label, else an index into `values`.
        values: The distinct values, in the order first seen. Never shrinks.
        version: Rises with every change of any code.
    """

    def __init__(self, key: str, capacity: int) -> None:
        self.key = key
        self.codes: npt.NDArray[np.int32] = np.full(capacity, ABSENT, dtype=np.int32)
        self.values: list[str] = []
        self.version = 0
        self._index: dict[str, int] = {}

    def write(self, row: int, node: NodeInfo | None) -> None:
        """Intern the row's value."""
        code = ABSENT
        value = node.node.metadata.labels.get(self.key) if node is not None else None
        if value is not None:
            code = self._index.get(value, ABSENT)
            if code == ABSENT:
                code = self._index[value] = len(self.values)
                self.values.append(value)
        if self.codes[row] != code:
            self.codes[row] = code
            self.version += 1

    def resize(self, capacity: int) -> None:
        """Make room for more rows."""
        self.codes = grown(self.codes, capacity, ABSENT)

    def copy_cell(self, source: int, target: int) -> None:
        """Make a scratch row equal to a live one."""
        self.codes[target] = self.codes[source]

    def code_of(self, value: str) -> int:
        """The code of a value, ABSENT when no node ever had it."""
        return self._index.get(value, ABSENT)


class ImageColumn(NodeColumn):
    """Which nodes hold one image, and how large it is.

    Attributes:
        present: (capacity,) int32, 1 where the node holds it.
        count: On how many nodes it is.
        size_bytes: Its size, as the node first seen with it says.
    """

    def __init__(self, image: str, capacity: int) -> None:
        self.image = image
        self.present: npt.NDArray[np.int32] = np.zeros(capacity, dtype=np.int32)
        self.count = 0
        self.size_bytes = 0

    def write(self, row: int, node: NodeInfo | None) -> None:
        """Look the image up on the row's node."""
        size = self._size_on(node) if node is not None else None
        before, now = bool(self.present[row]), size is not None
        if size is not None and not self.count:
            self.size_bytes = size
        self.count += int(now) - int(before)
        self.present[row] = now

    def _size_on(self, node: NodeInfo) -> int | None:
        for image in node.node.status.images:
            if self.image in image.names:
                return image.size_bytes
        return None

    def resize(self, capacity: int) -> None:
        """Make room for more rows."""
        self.present = grown(self.present, capacity, 0)

    def copy_cell(self, source: int, target: int) -> None:
        """Make a scratch row equal to a live one."""
        self.present[target] = self.present[source]


class MatchColumn(PodColumn):
    """How many pods of each row one selector matches: what spread and pod affinity count.

    Terminating pods are counted apart: topology spread leaves them out, pod affinity does not.

    Attributes:
        live: (capacity,) int32, matching pods without a deletion timestamp.
        terminating: (capacity,) int32, matching pods with one.
        version: Rises with every change.
    """

    def __init__(self, namespaces: frozenset[str] | None, selector: Selector, capacity: int) -> None:
        self.namespaces = namespaces
        self.selector = selector
        self.live: npt.NDArray[np.int32] = np.zeros(capacity, dtype=np.int32)
        self.terminating: npt.NDArray[np.int32] = np.zeros(capacity, dtype=np.int32)
        self.version = 0

    def matches(self, info: PodInfo) -> bool:
        """Whether the column counts this pod."""
        metadata = info.pod.metadata
        if self.namespaces is not None and metadata.namespace not in self.namespaces:
            return False
        return self.selector.matches(metadata.labels)

    def move(self, row: int, added: Iterable[PodInfo], removed: Iterable[PodInfo]) -> None:
        """Count the pods that came, discount those that left."""
        for infos, sign in ((added, 1), (removed, -1)):
            for info in infos:
                if self.matches(info):
                    column = self.live if info.pod.metadata.deletion_timestamp is None else self.terminating
                    column[row] += sign
                    self.version += 1

    def resize(self, capacity: int) -> None:
        """Make room for more rows."""
        self.live = grown(self.live, capacity, 0)
        self.terminating = grown(self.terminating, capacity, 0)

    def copy_cell(self, source: int, target: int) -> None:
        """Make a scratch row equal to a live one."""
        self.live[target] = self.live[source]
        self.terminating[target] = self.terminating[source]


def pods_moved(
    before: Mapping[str, PodInfo], after: Mapping[str, PodInfo]
) -> tuple[Sequence[PodInfo], Sequence[PodInfo]]:
    """`(added, removed)` between two accounts; a pod whose object changed is in both."""
    added = [info for key, info in after.items() if before.get(key) is not info]
    removed = [info for key, info in before.items() if after.get(key) is not info]
    return added, removed
