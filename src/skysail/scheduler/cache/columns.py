"""Columns of the node table that exist because somebody asked for them.

A derived column is built once by a walk over all rows, and from then on kept up to date row by row. Those that read
only the Node object are told when it changes; those that count pods are told which pods came and went.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from skysail.api.labels import Selector
from skysail.scheduler.cache.node_info import NodeInfo
from skysail.scheduler.cache.pod_info import AffinityTerm, PodInfo

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
    def write_scratch(self, row: int, node: NodeInfo) -> None:
        """A scratch row holds a Node object that is not the cluster's; totals over rows do not change."""

    @abstractmethod
    def resize(self, capacity: int) -> None:
        """Make room for more rows."""


class PodColumn(ABC):
    """A column that counts pods. Whether and how often a pod counts depends on namespace, labels and affinity terms.

    Attributes:
        total: (capacity,) int32, the counted pods of each row.
        version: Rises with every change.
    """

    def __init__(self, capacity: int) -> None:
        self.total: npt.NDArray[np.int32] = np.zeros(capacity, dtype=np.int32)
        self.version = 0

    @abstractmethod
    def counts(self, info: PodInfo) -> int:
        """How often this pod counts."""

    def count(self, row: int, info: PodInfo, number: int) -> None:
        """Add to a row's count."""
        self.total[row] += number

    def count_scratch(self, row: int, info: PodInfo, number: int) -> None:
        """Add to a scratch row's count."""
        self.count(row, info, number)

    def clear_cell(self, row: int) -> None:
        """Nothing is counted at this row."""
        self.total[row] = 0

    def copy_cell(self, source: int, target: int) -> None:
        """Make a scratch row equal to a live one."""
        self.total[target] = self.total[source]

    def resize(self, capacity: int) -> None:
        """Make room for more rows."""
        self.total = grown(self.total, capacity, 0)


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
        code = self._intern(node) if node is not None else ABSENT
        if self.codes[row] != code:
            self.codes[row] = code
            self.version += 1

    def write_scratch(self, row: int, node: NodeInfo) -> None:
        """Intern the row's value; no live row changes."""
        self.codes[row] = self._intern(node)

    def _intern(self, node: NodeInfo) -> int:
        value = node.node.metadata.labels.get(self.key)
        if value is None:
            return ABSENT
        code = self._index.get(value, ABSENT)
        if code == ABSENT:
            code = self._index[value] = len(self.values)
            self.values.append(value)
        return code

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

    def write_scratch(self, row: int, node: NodeInfo) -> None:
        """A node that an extender sent back holds no image, as far as scoring goes."""
        self.present[row] = 0

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
    """How many pods of each row match some selectors: what spread and pod affinity count.

    Args:
        tests: Namespaces (None is all of them) and selector; a pod counts once when it passes every test.
        capacity: Rows to make room for.

    Attributes:
        total: All matching pods.
        live: (capacity,) int32, those without a deletion timestamp: topology spread leaves the others out.
    """

    def __init__(self, tests: Sequence[tuple[frozenset[str] | None, Selector]], capacity: int) -> None:
        super().__init__(capacity)
        self._tests = tuple(tests)
        self.live: npt.NDArray[np.int32] = np.zeros(capacity, dtype=np.int32)

    def counts(self, info: PodInfo) -> int:
        """1 when the pod passes every test."""
        metadata = info.pod.metadata
        for namespaces, selector in self._tests:
            if namespaces is not None and metadata.namespace not in namespaces:
                return 0
            if not selector.matches(metadata.labels):
                return 0
        return 1

    def count(self, row: int, info: PodInfo, number: int) -> None:
        """Add to a row's counts."""
        self.total[row] += number
        if info.pod.metadata.deletion_timestamp is None:
            self.live[row] += number

    def clear_cell(self, row: int) -> None:
        """Nothing is counted at this row."""
        self.total[row] = self.live[row] = 0

    def copy_cell(self, source: int, target: int) -> None:
        """Make a scratch row equal to a live one."""
        super().copy_cell(source, target)
        self.live[target] = self.live[source]

    def resize(self, capacity: int) -> None:
        """Make room for more rows."""
        super().resize(capacity)
        self.live = grown(self.live, capacity, 0)


TermKind = Literal["required_affinity", "required_anti_affinity", "preferred_affinity", "preferred_anti_affinity"]


class CarrierColumn(PodColumn):
    """How many pods of each row carry one (anti-)affinity term."""

    def __init__(self, kind: TermKind, term: AffinityTerm, capacity: int) -> None:
        super().__init__(capacity)
        self._kind: TermKind = kind
        self._term = term

    def counts(self, info: PodInfo) -> int:
        """How often the pod carries the term."""
        return terms_of(info, self._kind).count(self._term)


class TermRegistry(PodColumn):
    """Which terms of a kind any pod in the cluster carries.

    Attributes:
        carried: Each term with the number of its carriers.
        terms_version: Rises when a term comes or goes.
    """

    def __init__(self, kind: TermKind, capacity: int) -> None:
        super().__init__(capacity)
        self._kind: TermKind = kind
        self.carried: dict[AffinityTerm, int] = {}
        self.terms_version = 0

    def counts(self, info: PodInfo) -> int:
        """How many terms the pod carries."""
        return len(terms_of(info, self._kind))

    def count_scratch(self, row: int, info: PodInfo, number: int) -> None:
        """Scratch rows carry nothing: what-ifs are told of their pods one by one."""

    def count(self, row: int, info: PodInfo, number: int) -> None:
        """Count the pod's terms in or out."""
        super().count(row, info, number)
        sign = 1 if number > 0 else -1
        for term in terms_of(info, self._kind):
            carriers = self.carried.get(term, 0) + sign
            if carriers:
                self.terms_version += carriers == sign
                self.carried[term] = carriers
            else:
                self.terms_version += 1
                del self.carried[term]


def terms_of(info: PodInfo, kind: TermKind) -> tuple[AffinityTerm, ...]:
    """The pod's terms of a kind."""
    if kind == "required_affinity":
        return info.required_affinity
    if kind == "required_anti_affinity":
        return info.required_anti_affinity
    return info.preferred_affinity if kind == "preferred_affinity" else info.preferred_anti_affinity


def pods_moved(
    before: Mapping[str, PodInfo], after: Mapping[str, PodInfo]
) -> tuple[Sequence[PodInfo], Sequence[PodInfo]]:
    """`(added, removed)` between two accounts; a pod whose object changed is in both."""
    added = [info for key, info in after.items() if before.get(key) is not info]
    removed = [info for key, info in before.items() if after.get(key) is not info]
    return added, removed
