"""All derived columns that count pods, and who of them counts a given pod.

Invariant: after every write of a row, each column holds for it what a walk over its pods would count.

Thousands of selectors may be live; a pod that comes or goes concerns few of them. Which ones depends on nothing but its
namespace, labels and affinity terms, and is remembered for pods that are equal in these.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

from skysail.scheduler.cache.columns import PodColumn
from skysail.scheduler.cache.node_info import NodeInfo
from skysail.scheduler.cache.pod_info import PodInfo

PodC = TypeVar("PodC", bound=PodColumn)

MAX_COLUMNS = 512
"""The column least recently asked for goes first."""
MAX_REMEMBERED = 8192

Concerned = tuple[tuple[PodColumn, int], ...]


class PodColumns:
    """The columns of one table."""

    def __init__(self) -> None:
        self._columns: dict[Hashable, PodColumn] = {}
        self._concerned: dict[Hashable, Concerned] = {}

    def __bool__(self) -> bool:
        return bool(self._columns)

    def get(self, key: Hashable, make: Callable[[], PodC], infos: Sequence[NodeInfo | None]) -> PodC:
        """The column of a key, made and filled when first asked for.

        Cost: A walk over all pods when it is new.
        """
        column = self._columns.pop(key, None)
        if column is None:
            if len(self._columns) >= MAX_COLUMNS:
                del self._columns[next(iter(self._columns))]
            column = make()
            for row, info in enumerate(infos):
                if info is not None and info.pods:
                    for pod in info.pods.values():
                        number = column.counts(pod)
                        if number:
                            column.count(row, pod, number)
            self._concerned.clear()
        self._columns[key] = column
        return column  # type: ignore[return-value]

    def move(self, row: int, added: Iterable[PodInfo], removed: Iterable[PodInfo]) -> None:
        """These pods came to the row and left it."""
        for pods, sign in ((added, 1), (removed, -1)):
            for pod in pods:
                for column, number in self._who_counts(pod):
                    column.count(row, pod, sign * number)
                    column.version += 1

    def write_scratch(self, source: int, row: int, added: Iterable[PodInfo], removed: Iterable[PodInfo]) -> None:
        """Make a scratch row equal to a live one but for some pods."""
        for column in self._columns.values():
            column.copy_cell(source, row)
        for pods, sign in ((added, 1), (removed, -1)):
            for pod in pods:
                for column, number in self._who_counts(pod):
                    column.count_scratch(row, pod, sign * number)

    def clear_cell(self, row: int) -> None:
        """The row was never used, but perhaps as a scratch row: nothing is counted there."""
        for column in self._columns.values():
            column.clear_cell(row)

    def resize(self, capacity: int) -> None:
        """Make room for more rows."""
        for column in self._columns.values():
            column.resize(capacity)

    def _who_counts(self, pod: PodInfo) -> Concerned:
        metadata = pod.pod.metadata
        terms = (
            (pod.required_affinity, pod.required_anti_affinity, pod.preferred_affinity, pod.preferred_anti_affinity)
            if pod.has_affinity
            else None
        )
        key = (metadata.namespace, _frozen(metadata.labels), terms)
        found = self._concerned.get(key)
        if found is None:
            if len(self._concerned) >= MAX_REMEMBERED:
                self._concerned.clear()
            numbers = ((column, column.counts(pod)) for column in self._columns.values())
            found = self._concerned[key] = tuple((column, number) for column, number in numbers if number)
        return found


def _frozen(labels: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(labels.items())
