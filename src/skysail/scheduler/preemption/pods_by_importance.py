"""The pods of many nodes as arrays, the most important of each node first: what the quick search for victims reads.

A node's arrays are kept as long as its account stays the very same object; accounts that a snapshot holds never change.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from skysail.api.resources import PodResources
from skysail.scheduler.cache.node_info import NOT_STARTED, NodeInfo
from skysail.scheduler.cache.pod_info import PodInfo
from skysail.scheduler.cache.table import NodeTable

MAX_KEPT = 8_192
"""Nodes whose arrays are kept (about 1 kB for thirty pods), and distinct requests."""
KEY = "pods by importance"

Ints = npt.NDArray[np.int64]
_LATEST = NOT_STARTED.timestamp()
_priority, _resources, _start = map(attrgetter, ("priority", "resources", "start_time"))


class OneNode(NamedTuple):
    """One node's pods.

    Attributes:
        info: The account they were read from.
        pods: As they came.
        sorted: (3, n_pods) int64, the most important first: places in `pods`, priorities, numbers of what is requested.
    """

    info: NodeInfo
    pods: Sequence[PodInfo]
    sorted: Ints


@dataclass(frozen=True, slots=True)
class ManyNodes:
    """Several nodes' pods, side by side; shorter rows are filled up.

    Attributes:
        nodes: One each row.
        exists: (n_nodes, n_most_pods) bool, False where a row is filled up.
        order: (n_nodes, n_most_pods) int64, places in the node's pods.
        priorities: (n_nodes, n_most_pods) int64.
        amounts: (n_resources, n_nodes, n_most_pods) int64, 0 where a row is filled up.
    """

    nodes: Sequence[OneNode]
    exists: npt.NDArray[np.bool_]
    order: Ints
    priorities: Ints
    amounts: Ints


class PodsByImportance:
    """Reads pods of nodes, and remembers them."""

    def __init__(self) -> None:
        self._kept: dict[int, OneNode] = {}
        self._numbers: dict[int, int] = {}
        self._shapes: list[PodResources] = []

    def of(self, table: NodeTable, rows: Sequence[int], resources: Sequence[str]) -> ManyNodes:
        """The pods of these rows, with what each requests of these resources."""
        kept, infos = self._kept, table.infos
        unknown = [row for row in rows if (node := kept.get(row)) is None or node.info is not infos[row]]
        if max(len(kept) + len(unknown), len(self._shapes)) > MAX_KEPT:
            self._forget()
            unknown = list(rows)
        if unknown:
            self._read(table, unknown)
        nodes = [self._kept[row] for row in rows]
        exists = np.arange(max(len(node.pods) for node in nodes)) < np.array([[len(node.pods)] for node in nodes])
        filled = np.zeros((3, *exists.shape), dtype=np.int64)
        filled[:, exists] = np.concatenate([node.sorted for node in nodes], axis=1)
        order, priorities, shapes = filled
        requested = np.zeros((len(resources), max(len(self._shapes), 1)), dtype=np.int64)
        for line, name in enumerate(resources):
            requested[line, : len(self._shapes)] = [shape.requests.get(name, 0) for shape in self._shapes]
        amounts = requested[:, shapes]
        return ManyNodes(nodes, exists, order, priorities, amounts * exists)

    def _forget(self) -> None:
        self._kept.clear()
        self._numbers.clear()
        self._shapes.clear()

    def _read(self, table: NodeTable, rows: Sequence[int]) -> None:
        infos = [table.info(row) for row in rows]
        lengths = [len(info.pods) for info in infos]
        pods = list(chain.from_iterable(info.pods.values() for info in infos))
        priorities: Ints = np.fromiter(map(_priority, pods), dtype=np.int64, count=len(pods))
        begins = np.repeat(np.cumsum([0, *lengths[:-1]]), lengths)
        order = np.lexsort((*_starts(pods), -priorities, begins))
        in_order = np.stack((order - begins, priorities[order], self._shapes_of(pods)[order]))
        begin = 0
        for row, info, length in zip(rows, infos, lengths, strict=True):
            part = slice(begin, begin + length)
            self._kept[row] = OneNode(info, pods[part], in_order[:, part])
            begin += length

    def _shapes_of(self, pods: Sequence[PodInfo]) -> Ints:
        """A number for what each pod requests. Pods of one template share that object, and it is held on to."""
        identities: Ints = np.fromiter(map(id, map(_resources, pods)), dtype=np.int64, count=len(pods))
        distinct, where, which = np.unique(identities, return_index=True, return_inverse=True)
        numbers = self._numbers
        for identity, place in zip(distinct.tolist(), where.tolist(), strict=True):
            if identity not in numbers:
                numbers[identity] = len(self._shapes)
                self._shapes.append(pods[place].resources)
        found: Ints = np.array([numbers[identity] for identity in distinct.tolist()], dtype=np.int64)[which]
        return found


def _starts(pods: Sequence[PodInfo]) -> list[npt.NDArray[np.float64]]:
    """When the pods started, as the last key of a sort; no key when none has started."""
    starts = list(map(_start, pods))
    if not any(starts):
        return []
    return [np.array([_LATEST if start is None else start.timestamp() for start in starts], dtype=np.float64)]
