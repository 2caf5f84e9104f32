"""The pods of many nodes as arrays, the most important of each node first: what the quick search for victims reads."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, count
from operator import attrgetter

import numpy as np
import numpy.typing as npt

from skysail.api.resources import PodResources
from skysail.scheduler.cache.matrices import MOST
from skysail.scheduler.cache.node_info import NodeInfo
from skysail.scheduler.cache.pod_info import PodInfo, by_importance

Ints = npt.NDArray[np.int64]
_resources = attrgetter("resources")
_LAST = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class PodsOfNodes:
    """Several nodes' pods, side by side: a row each node; shorter rows are filled up at their ends.

    Attributes:
        pods: All of them, node by node, as they came.
        exists: (n_nodes, n_most_pods) bool, False where a row is filled up.
        places: (n_nodes, n_most_pods) int64, where in `pods`; any place where a row is filled up.
        priorities: (n_nodes, n_most_pods) int64, likewise.
        amounts: (n_resources, n_nodes, n_most_pods) int64, what each requests; 0 where a row is filled up.
    """

    pods: Sequence[PodInfo]
    exists: npt.NDArray[np.bool_]
    places: Ints
    priorities: Ints
    amounts: Ints


def read_pods(nodes: Sequence[NodeInfo], resources: Sequence[str]) -> PodsOfNodes:
    """The pods of these nodes, with what each requests of these resources.

    Cost: Three attributes of each pod, and one look at each distinct object of resources.
    """
    pods = list(chain.from_iterable([node.pods.values() for node in nodes]))
    lengths: Ints = np.array([len(node.pods) for node in nodes], dtype=np.int64)
    exists = np.arange(lengths.max(initial=0)) < lengths[:, None]
    importance = np.full(exists.shape, _LAST)
    importance[exists] = np.fromiter(map(by_importance, pods), dtype=np.int64, count=len(pods))
    order = np.argsort(importance, axis=1, kind="stable")
    places = np.minimum(order + (np.cumsum(lengths) - lengths)[:, None], len(pods) - 1)
    priorities = ~(np.take_along_axis(importance, order, axis=1) >> 32)
    shapes: defaultdict[PodResources, int] = defaultdict(count().__next__)
    shape: Ints = np.fromiter(map(shapes.__getitem__, map(_resources, pods)), dtype=np.int64, count=len(pods))
    requested = [[each.requests.get(name, 0) for each in shapes] for name in resources]
    by_shape: Ints = np.array(requested, dtype=np.int64).reshape(len(resources), len(shapes))
    np.minimum(by_shape, MOST // max(exists.shape[1], 1), out=by_shape)  # so that no sum over a node overflows
    amounts = by_shape[:, shape[places]] * exists
    return PodsOfNodes(pods, exists, places, priorities, amounts)
