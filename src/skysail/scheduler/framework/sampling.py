"""How many feasible nodes are enough, when `percentageOfNodesToScore` limits the search.

Source: pkg/scheduler/schedule_one.go (numFeasibleNodesToFind), v1.36.
Differs: an unset percentage means every node; only an explicit 0 is the adaptive mode.
"""

from typing import Final

MIN_FEASIBLE_NODES: Final = 100
"""Fewer nodes than these are always all looked at."""
MIN_FEASIBLE_PERCENTAGE: Final = 5
"""The adaptive mode never goes below this share."""


def num_feasible_nodes(percentage: int, num_nodes: int) -> int:
    """How many feasible nodes end the search.

    Args:
        percentage: 0..100; 0 chooses by the cluster's size: 50 for small ones, one less for each 125 nodes, at least 5.
        num_nodes: All nodes of the cluster.
    """
    if num_nodes < MIN_FEASIBLE_NODES:
        return num_nodes
    if percentage == 0:
        percentage = max(50 - num_nodes // 125, MIN_FEASIBLE_PERCENTAGE)
    return max(num_nodes * percentage // 100, MIN_FEASIBLE_NODES)
