"""Prefers nodes on which the pod makes the shares of the resources more alike.

Source: pkg/scheduler/framework/plugins/noderesources/balanced_allocation.go, v1.36.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from skysail.api.core import Pod
from skysail.scheduler.cache.pod_info import PodInfo
from skysail.scheduler.cache.table import IntColumn, NodeTable, RowIndex, Rows
from skysail.scheduler.framework.codes import MAX_NODE_SCORE, Reads, ScoreArray, zero_scores
from skysail.scheduler.framework.cycle_state import CycleState, StateKey
from skysail.scheduler.framework.handle import Handle
from skysail.scheduler.framework.status import SKIP, SUCCESS, Status
from skysail.scheduler.plugins.args import NodeResourcesBalancedAllocationArgs
from skysail.scheduler.plugins.resource_scoring import counted_resources

Fractions = npt.NDArray[np.float64]
HALF = MAX_NODE_SCORE // 2


@dataclass(frozen=True, slots=True)
class BalanceNeeds:
    """What Score counts: names of the counted resources, and what the pod adds to each."""

    resources: tuple[str, ...]
    needs: tuple[int, ...]


NEEDS = StateKey[BalanceNeeds]("PreScoreNodeResourcesBalancedAllocation")


class NodeResourcesBalancedAllocation:
    """The plugin.

    Attributes:
        compares: True (1.36): the score says what the pod changes, 75 is "nothing". False (up to 1.35): it says how
            balanced the node is with the pod.
    """

    name = "NodeResourcesBalancedAllocation"
    reads = Reads.ROW
    bounded = True
    compares = True

    def __init__(self, args: NodeResourcesBalancedAllocationArgs, handle: Handle) -> None:
        self._resources = args.resources

    def sign(self, pod: PodInfo) -> Hashable:
        """What the pod requests."""
        return pod.request_key

    def pre_score(self, state: CycleState, pod: Pod, table: NodeTable, rows: RowIndex) -> Status:
        """Skip pods that ask for none of the resources: they would crowd one node."""
        requests = state.pod_info.resources.requests
        needs = [requests.get(resource.name, 0) for resource in self._resources]
        if not any(needs):
            return SKIP
        counted = counted_resources(self._resources, needs)
        names = tuple(self._resources[index].name for index in counted)
        state.write(NEEDS, BalanceNeeds(names, tuple(needs[index] for index in counted)))
        return SUCCESS

    def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> ScoreArray:
        """0..100; never asked for scratch rows."""
        wanted = state.read(NEEDS)
        after = balance(table, rows, wanted.resources, wanted.needs)
        if not self.compares:
            return after
        after += HALF
        after -= _balance_now(table, wanted.resources)[rows]
        after //= 2
        after += HALF
        return after


def balance(table: NodeTable, rows: Rows, resources: Sequence[str], needs: Sequence[int]) -> ScoreArray:
    """(n_rows,) int64: (1 - standard deviation of the used shares) x 100, with the pod counted in."""
    lines = [table.line(name) for name in resources]
    if len(lines) == 2 and not table.has_zero(lines[0]) and not table.has_zero(lines[1]):
        first = _share(table, lines[0], rows, needs[0])
        first -= _share(table, lines[1], rows, needs[1])
        first /= 2
        deviation = np.abs(first, out=first)
    else:
        deviation = _deviation(table, rows, lines, needs)
    np.subtract(1, deviation, out=deviation)
    deviation *= MAX_NODE_SCORE
    score: ScoreArray = deviation.astype(np.int64)
    return score


def _share(table: NodeTable, line: int, rows: Rows, need: int) -> Fractions:
    used = table.requested_matrix[line][rows]
    if need:
        used = used + need
    share: Fractions = used / table.allocatable_matrix[line][rows]
    return np.minimum(share, 1.0, out=share)


def _deviation(table: NodeTable, rows: Rows, lines: Sequence[int], needs: Sequence[int]) -> Fractions:
    """The general form: any number of resources, nodes that lack some of them."""
    if not lines:
        return zero_scores(rows).astype(np.float64)
    allocatable = table.allocatable_matrix[lines][:, rows]
    requested = table.requested_matrix[lines][:, rows] + np.array(needs, dtype=np.int64)[:, None]
    counts = allocatable != 0
    shares = np.where(counts, np.minimum(requested / np.maximum(allocatable, 1), 1.0), 0.0)
    number = counts.sum(axis=0)
    total, squares = np.zeros(number.shape), np.zeros(number.shape)
    for share in shares:
        total = total + share
    mean = total / np.maximum(number, 1)
    for share, counted in zip(shares, counts, strict=True):
        squares = squares + np.where(counted, (share - mean) * (share - mean), 0.0)
    many = np.sqrt(squares / np.maximum(number, 1))
    deviation: Fractions = np.where(number > 2, many, np.where(number == 2, _half_difference(shares, counts), 0.0))
    return deviation


def _half_difference(shares: Fractions, counts: npt.NDArray[np.bool_]) -> Fractions:
    """|first - second| / 2 of the two resources that count, the way upstream computes it for two."""
    places = np.argsort(~counts, axis=0, kind="stable")
    first = np.take_along_axis(shares, places[:1], axis=0)[0]
    second = np.take_along_axis(shares, places[1:2], axis=0)[0] if len(shares) > 1 else first
    difference: Fractions = np.abs((first - second) / 2)
    return difference


class _BalanceNow:
    """How balanced each node is at the moment: the same for every pod, so kept beside the table."""

    __slots__ = ("position", "values")

    def __init__(self, capacity: int) -> None:
        self.values: IntColumn = np.zeros(capacity, dtype=np.int64)
        self.position = -1


def _balance_now(table: NodeTable, resources: tuple[str, ...]) -> IntColumn:
    key = ("balance", resources)
    kept = table.memo.get(key)
    if not isinstance(kept, _BalanceNow) or len(kept.values) != table.capacity:
        kept = table.memo[key] = _BalanceNow(table.capacity)
    if kept.position == table.log.end:
        return kept.values
    changed = table.log.since(kept.position)
    nothing = (0,) * len(resources)
    if changed is None or len(changed) > table.size // 4:
        kept.values[: table.size] = balance(table, table.all_rows, resources, nothing)
    else:
        rows = np.array(changed, dtype=np.intp)
        kept.values[rows] = balance(table, rows, resources, nothing)
    kept.position = table.log.end
    return kept.values
