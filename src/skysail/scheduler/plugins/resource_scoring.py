"""Scoring nodes by how full they are, or would be, resource by resource.

All functions take `requested` and `allocatable` as (n_resources, n_rows) int64 and answer (n_rows,) int64, 0..100. A
resource of which a node offers nothing does not count there. Integer division as in Go: towards zero.

Source: pkg/scheduler/framework/plugins/noderesources/{least_allocated,most_allocated,requested_to_capacity_ratio}.go,
helper/shape_score.go, v1.36.
"""

from collections.abc import Callable, Sequence

import numpy as np

from skysail.scheduler.cache.matrices import IntMatrix
from skysail.scheduler.framework.codes import MAX_NODE_SCORE, ScoreArray
from skysail.scheduler.plugins.args import ResourceSpec, ScoringStrategy, UtilizationShapePoint

Scorer = Callable[[IntMatrix, IntMatrix, bool], ScoreArray]
"""`(requested, allocatable, may_be_zero)`; `requested` may be overwritten; the flag: some allocatable may be 0."""

MANY_ROWS = 512
EXACT_BELOW = 2**53 // MAX_NODE_SCORE

MAX_CUSTOM_SCORE = 10
"""The highest score of a shape point."""


def make_scorer(strategy: ScoringStrategy) -> Scorer:
    """The scoring function of a strategy."""
    weights = np.array([resource.weight for resource in strategy.resources], dtype=np.int64)[:, None]
    if strategy.type == "RequestedToCapacityRatio":
        parameters = strategy.requested_to_capacity_ratio
        return _by_ratio(weights, shape_table(parameters.shape if parameters is not None else ()))
    return _by_share(weights, _most if strategy.type == "MostAllocated" else _least)


def _least(requested: IntMatrix, allocatable: IntMatrix) -> IntMatrix:
    free = np.subtract(allocatable, requested, out=requested)
    np.maximum(free, 0, out=free)
    return _percent(free, allocatable)


def _most(requested: IntMatrix, allocatable: IntMatrix) -> IntMatrix:
    return _percent(np.minimum(requested, allocatable, out=requested), allocatable)


def _percent(part: IntMatrix, whole: IntMatrix) -> IntMatrix:
    """`part * 100 // whole` for 0 <= part <= whole and whole > 0; `part` is overwritten.

    Over many rows a division of floats is quicker. It is exact while whole * 100 fits into 53 bits: then a quotient
    just below an integer is further from it than a rounding error.
    """
    part *= MAX_NODE_SCORE
    if part.shape[1] < MANY_ROWS or int(whole.max()) >= EXACT_BELOW:
        part //= whole
        return part
    percent: IntMatrix = (part / whole).astype(np.int64)
    return percent


def _by_share(weights: IntMatrix, one: Callable[[IntMatrix, IntMatrix], IntMatrix]) -> Scorer:
    weight_sum = int(weights.sum())
    plain = bool((weights == 1).all())

    def score(requested: IntMatrix, allocatable: IntMatrix, may_be_zero: bool) -> ScoreArray:
        if may_be_zero:
            return _guarded(requested, allocatable)
        scores = one(requested, allocatable)
        if not plain:
            scores *= weights
        total: ScoreArray = scores[0] + scores[1] if len(scores) == 2 else scores.sum(axis=0)
        total //= weight_sum
        return total

    def _guarded(requested: IntMatrix, allocatable: IntMatrix) -> ScoreArray:
        counts = allocatable > 0
        total = np.where(counts, one(requested, np.maximum(allocatable, 1)) * weights, 0).sum(axis=0)
        divisor = (weights * counts).sum(axis=0)
        found: ScoreArray = np.where(divisor > 0, total // np.maximum(divisor, 1), 0)
        return found

    return score


def _by_ratio(weights: IntMatrix, table: ScoreArray) -> Scorer:
    def score(requested: IntMatrix, allocatable: IntMatrix, may_be_zero: bool) -> ScoreArray:
        full = requested > allocatable
        utilization = np.where(full, 100, requested * 100 // np.maximum(allocatable, 1))
        parts = table[np.minimum(utilization, 100)]
        counts = (allocatable > 0) & (parts > 0)
        total = np.where(counts, parts * weights, 0).sum(axis=0)
        divisor = (weights * counts).sum(axis=0)
        rounded: ScoreArray = np.floor(total / np.maximum(divisor, 1) + 0.5).astype(np.int64)
        return rounded

    return score


def shape_table(shape: Sequence[UtilizationShapePoint]) -> ScoreArray:
    """(101,) int64: the score 0..100 for each utilisation in percent, linear between the points of the shape."""
    points = [(point.utilization, point.score * (MAX_NODE_SCORE // MAX_CUSTOM_SCORE)) for point in shape]
    return np.array([_interpolate(points, utilization) for utilization in range(101)], dtype=np.int64)


def _interpolate(points: Sequence[tuple[int, int]], at: int) -> int:
    for index, (x, y) in enumerate(points):
        if at <= x:
            if index == 0:
                return y
            before_x, before_y = points[index - 1]
            return before_y + _towards_zero((y - before_y) * (at - before_x), x - before_x)
    return points[-1][1]


def _towards_zero(numerator: int, denominator: int) -> int:
    quotient = abs(numerator) // abs(denominator)
    return quotient if (numerator < 0) == (denominator < 0) else -quotient


def counted_resources(resources: Sequence[ResourceSpec], needs: Sequence[int]) -> list[int]:
    """Indices of the resources that count for a pod: scalar ones only when the pod asks for them."""
    always = ("cpu", "memory", "ephemeral-storage")
    return [
        index
        for index, (resource, need) in enumerate(zip(resources, needs, strict=True))
        if need or resource.name in always
    ]
