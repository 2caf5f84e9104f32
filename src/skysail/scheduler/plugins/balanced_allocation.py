"""Prefers nodes on which the pod makes the shares of the resources more alike.

Source: pkg/scheduler/framework/plugins/noderesources/balanced_allocation.go, v1.36.
"""

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from skysail.api.core import Pod
from skysail.scheduler.cache.matrices import FIRST_RESOURCES, IntColumn, IntMatrix, Matrix, RowIndex, Rows
from skysail.scheduler.cache.pod_info import PodInfo
from skysail.scheduler.cache.table import NodeTable
from skysail.scheduler.framework.codes import MAX_NODE_SCORE, Reads, ScoreArray, zero_scores
from skysail.scheduler.framework.cycle_state import CycleState, StateKey
from skysail.scheduler.framework.handle import Handle
from skysail.scheduler.framework.status import SKIP, SUCCESS, Status
from skysail.scheduler.plugins.args import NodeResourcesBalancedAllocationArgs
from skysail.scheduler.plugins.device_account import device_account
from skysail.scheduler.plugins.device_amounts import DeviceAmounts, amounts_of, device_signature
from skysail.scheduler.plugins.resource_scoring import counted_resources

Fractions = npt.NDArray[np.float64]
MARGIN = 3 * MAX_NODE_SCORE // 2
FEW = 8


@dataclass(frozen=True, slots=True)
class BalanceNeeds:
    """What Score counts.

    Attributes:
        lines: Of the counted resources, in the table's matrices; lines never move.
        needs: (n_resources, 1) int64, what the pod adds to each.
        margin: What the nodes' balance at the moment leaves.
        devices: What devices add; None when they stand for none of the resources.
    """

    lines: tuple[int, ...]
    needs: IntMatrix
    margin: "MarginNow"
    devices: DeviceAmounts | None = None


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
        self._names = frozenset(resource.name for resource in args.resources)
        self._plain = self._names.issubset(FIRST_RESOURCES)
        self._devices = device_account(handle)

    def sign(self, pod: PodInfo) -> Hashable:
        """What the pod requests."""
        if self._plain:
            return pod.request_key
        return pod.request_key, device_signature(self._devices, pod.requests, self._names)

    def pre_score(self, state: CycleState, pod: Pod, table: NodeTable, rows: RowIndex) -> Status:
        """Skip pods that ask for none of the resources: they would crowd one node."""
        requests = state.pod_info.resources.requests
        needs = [requests.get(resource.name, 0) for resource in self._resources]
        if not any(needs):
            return SKIP
        counted = counted_resources(self._resources, needs)
        lines = tuple(table.amounts.line(self._resources[index].name) for index in counted)
        counted_needs = np.array([needs[index] for index in counted], dtype=np.int64)[:, None]
        margin = table.remember(("balance", lines), lambda: MarginNow(lines))
        devices = amounts_of(self._devices, [self._resources[index].name for index in counted])
        state.write(NEEDS, BalanceNeeds(lines, counted_needs, margin, devices))
        return SUCCESS

    def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> ScoreArray:
        """0..100."""
        wanted = state.read(NEEDS)
        devices = wanted.devices
        after = balance(table, rows, wanted.lines, wanted.needs, devices)
        if not self.compares:
            return after
        if devices is not None:
            after += MARGIN - balance(table, rows, wanted.lines, None, devices)
            after >>= 1
            return after
        if isinstance(rows, slice) or not len(rows) or rows[0] < table.size:
            after += wanted.margin.refreshed(table)[rows]
        else:  # scratch rows are in nobody's memory
            after += MARGIN - balance(table, rows, wanted.lines, None)
        after >>= 1
        return after


def balance(
    table: NodeTable,
    rows: Rows,
    lines: tuple[int, ...],
    needs: IntMatrix | None,
    devices: DeviceAmounts | None = None,
) -> ScoreArray:
    """(n_rows,) int64: (1 - standard deviation of the used shares) x 100.

    Args:
        table: The nodes.
        rows: Which.
        lines: Whose shares: the resources' lines in the table's matrices.
        needs: (n_resources, 1) int64, what a pod would add; None is nothing.
        devices: What devices add.
    """
    amounts = table.amounts
    if not lines:
        return zero_scores(rows) + MAX_NODE_SCORE
    requested = amounts.gather(Matrix.REQUESTED, lines, rows)
    if needs is not None:
        requested = requested + needs
    offered = amounts.gather(Matrix.ALLOCATABLE, lines, rows)
    if devices is not None:
        requested, offered = devices.added(table, rows, requested, offered, needs)
    if len(lines) == 2 and not amounts.has_zero(lines, table.size):
        shares: Fractions = requested / offered
        np.minimum(shares, 1.0, out=shares)
        deviation: Fractions = shares[0]
        deviation -= shares[1]
        np.abs(deviation, out=deviation)
        deviation *= -0.5
    else:
        deviation = -_deviation(requested, offered)
    deviation += 1.0
    deviation *= MAX_NODE_SCORE
    score: ScoreArray = deviation.astype(np.int64)
    return score


def _deviation(requested: IntMatrix, allocatable: IntMatrix) -> Fractions:
    """The general form: any number of resources, nodes that lack some of them."""
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


class MarginNow:
    """150 minus the balance of each node at the moment: the same for every pod, so kept beside the table.

    The score is 50 + (50 + balance with the pod - balance now) / 2, which is (balance with the pod + this) / 2.
    """

    __slots__ = ("_lines", "_position", "_values")

    def __init__(self, lines: tuple[int, ...]) -> None:
        self._lines = lines
        self._values: IntColumn = np.zeros(0, dtype=np.int64)
        self._position = -1

    def refreshed(self, table: NodeTable) -> IntColumn:
        """(capacity,) int64, up to date."""
        end = table.log.end
        if self._position == end and len(self._values) == table.capacity:
            return self._values
        changed = table.log.since(self._position)
        if changed is None or len(changed) > table.size // 4 or len(self._values) != table.capacity:
            self._values = np.zeros(table.capacity, dtype=np.int64)
            self._values[: table.size] = MARGIN - balance(table, table.all_rows, self._lines, None)
        elif len(changed) <= FEW and len(self._lines) == 2:
            for row in changed.tolist():
                self._values[row] = MARGIN - _balance_of(table, row, *self._lines)
        else:
            self._values[changed] = MARGIN - balance(table, changed, self._lines, None)
        self._position = end
        return self._values


def _balance_of(table: NodeTable, row: int, first: int, second: int) -> int:
    """`balance` of one row and two resources, number by number: for a handful of rows quicker than arrays."""
    requested, allocatable = table.amounts.requested.item, table.amounts.allocatable.item
    one, two = allocatable(first, row), allocatable(second, row)
    if not one or not two:
        return MAX_NODE_SCORE
    share, other = float(requested(first, row)) / float(one), float(requested(second, row)) / float(two)
    difference = (share if share < 1.0 else 1.0) - (other if other < 1.0 else 1.0)
    return int((1 - abs(difference) * 0.5) * MAX_NODE_SCORE)
