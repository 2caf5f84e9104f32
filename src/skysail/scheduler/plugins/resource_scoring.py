"""Scoring nodes by how full they are, or would be, resource by resource.

All functions take `requested` and `allocatable` as lists of arrays, one array (n_rows,) int64 for each resource, and
answer (n_rows,) int64, 0..100. A resource of which a node offers nothing does not count there. Integer division as in
Go: towards zero.

Source: pkg/scheduler/framework/plugins/noderesources/{least_allocated,most_allocated,requested_to_capacity_ratio}.go,
helper/shape_score.go, v1.36.
"""

from collections.abc import Callable, Sequence

import numpy as np

from skysail.scheduler.cache.table import IntColumn
from skysail.scheduler.framework.codes import MAX_NODE_SCORE, ScoreArray
from skysail.scheduler.plugins.args import ResourceSpec, ScoringStrategy, UtilizationShapePoint

Columns = Sequence[IntColumn]
Scorer = Callable[[Columns, Columns, bool], ScoreArray]
"""`(requested, allocatable, may_be_zero)`; the flag says whether some allocatable may be 0."""

MAX_CUSTOM_SCORE = 10
"""The highest score of a shape point."""


def make_scorer(strategy: ScoringStrategy) -> Scorer:
    """The scoring function of a strategy."""
    weights = [resource.weight for resource in strategy.resources]
    if strategy.type == "RequestedToCapacityRatio":
        parameters = strategy.requested_to_capacity_ratio
        return _by_ratio(weights, shape_table(parameters.shape if parameters is not None else ()))
    return _by_share(weights, _most if strategy.type == "MostAllocated" else _least)


def _least(requested: IntColumn, allocatable: IntColumn) -> ScoreArray:
    score = allocatable - requested
    np.maximum(score, 0, out=score)
    score *= MAX_NODE_SCORE
    score //= allocatable
    return score


def _most(requested: IntColumn, allocatable: IntColumn) -> ScoreArray:
    score = np.minimum(requested, allocatable)
    score *= MAX_NODE_SCORE
    score //= allocatable
    return score


def _by_share(weights: Sequence[int], one: Callable[[IntColumn, IntColumn], ScoreArray]) -> Scorer:
    def score(requested: Columns, allocatable: Columns, may_be_zero: bool) -> ScoreArray:
        if may_be_zero:
            return _guarded(requested, allocatable)
        total = one(requested[0], allocatable[0])
        if weights[0] != 1:
            total *= weights[0]
        for weight, used, offered in zip(weights[1:], requested[1:], allocatable[1:], strict=True):
            part = one(used, offered)
            total += part if weight == 1 else part * weight
        total //= sum(weights)
        return total

    def _guarded(requested: Columns, allocatable: Columns) -> ScoreArray:
        total = np.zeros_like(requested[0])
        weight_sum = np.zeros_like(total)
        for weight, used, offered in zip(weights, requested, allocatable, strict=True):
            counts = offered > 0
            total += np.where(counts, one(used, np.maximum(offered, 1)) * weight, 0)
            weight_sum += weight * counts
        return np.where(weight_sum > 0, total // np.maximum(weight_sum, 1), 0)

    return score


def _by_ratio(weights: Sequence[int], table: ScoreArray) -> Scorer:
    def score(requested: Columns, allocatable: Columns, may_be_zero: bool) -> ScoreArray:
        total = np.zeros_like(requested[0])
        weight_sum = np.zeros_like(total)
        for weight, used, offered in zip(weights, requested, allocatable, strict=True):
            full = used > offered
            utilization = np.where(full, 100, used * 100 // np.maximum(offered, 1))
            part = table[np.minimum(utilization, 100)]
            counts = (offered > 0) & (part > 0)
            total += np.where(counts, part * weight, 0)
            weight_sum += weight * counts
        ratio = total / np.maximum(weight_sum, 1)
        rounded: ScoreArray = np.floor(ratio + 0.5).astype(np.int64)
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
