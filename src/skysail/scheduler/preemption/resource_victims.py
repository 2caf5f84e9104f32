"""The quick form of `select_victims` for pods that nothing but resources keeps off a node, for many nodes at once.

When every Filter plugin that runs for the pod reads only the Node object, but for NodeResourcesFit, taking pods off a
node changes nothing but sums: no plugin needs to be asked. Nodes are the rows of matrices, their pods the columns, and
one step decides for every node whether the next pod is spared. Equal to the general form, which is its oracle.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from skysail.scheduler.cache.matrices import MOST
from skysail.scheduler.cache.node_info import NodeInfo
from skysail.scheduler.cache.pod_info import by_importance
from skysail.scheduler.framework.codes import Reads
from skysail.scheduler.framework.status import SUCCESS, Code, Status
from skysail.scheduler.plugins.node_resources_fit import FIT, TOO_MANY_PODS, FitRequest, Need, NodeResourcesFit
from skysail.scheduler.preemption.pods_of_nodes import Ints, PodsOfNodes, read_pods
from skysail.scheduler.preemption.victims import NO_VICTIMS, Search, Victims, priority_of

FIT_NAME = NodeResourcesFit.name
Mask = npt.NDArray[np.bool_]
Selected = tuple[Victims | None, Status]
CROWDED = 4
"""A node with more than so many times as many pods as the nodes have on average is looked at apart."""
FEW_PODS = 64
"""Nodes with no more pods than this never are."""


def only_resources_matter(search: Search) -> bool:
    """Whether the quick form may be used for this pod."""
    skipped = search.state.skip_filter_plugins
    asked = [step for step in search.framework.filters if step.name not in skipped]
    if not all(step.reads is Reads.STATIC or step.name == FIT_NAME for step in asked):
        return False
    return any(step.name == FIT_NAME for step in asked) and not search.state.read(FIT).backed


def select_resource_victims(search: Search, rows: Sequence[int]) -> list[Selected]:
    """`select_victims` for each of these rows, by arithmetic.

    The plugins that read only the Node object must let the rows pass.

    Cost: Memory for a few numbers for each pod; nodes with far more pods than the others are looked at by themselves,
    because every row of a matrix is as long as the longest.
    """
    numbers = [len(node.pods) for node in map(search.table.info, rows)]
    limit = max(CROWDED * sum(numbers) // max(len(rows), 1), FEW_PODS)
    if max(numbers, default=0) <= limit:
        return _select_side_by_side(search, rows)
    crowded = [row for row, number in zip(rows, numbers, strict=True) if number > limit]
    others = [row for row, number in zip(rows, numbers, strict=True) if number <= limit]
    found = dict(zip(others, _select_side_by_side(search, others), strict=True))
    found.update(zip(crowded, select_resource_victims(search, crowded), strict=True))
    return [found[row] for row in rows]


def _select_side_by_side(search: Search, rows: Sequence[int]) -> list[Selected]:
    """`select_resource_victims`, all rows in one matrix."""
    request = search.state.read(FIT)
    nodes = list(map(search.table.info, rows))
    there = read_pods(nodes, [name for name, _ in request.needs[1:]])
    may_go = there.exists & (there.priorities < priority_of(search.pod))
    slack = _slack(search, request, rows, nodes, there, there.exists & ~may_go)
    fits: Mask = np.all(slack >= 0, axis=0, keepdims=True)[0]
    some: Mask = np.any(may_go, axis=1, keepdims=True)[:, 0]
    violating = _violating(search, there, may_go & (fits & some)[:, None])
    gone = _not_spared(slack, there.amounts, may_go, violating)
    victims = _chosen(there, gone) if violating is None else _chosen_breaking(there, gone, violating)
    short = (slack < 0).T.tolist() if np.any(some & ~fits) else []
    return [
        NO_ONE if not any_may_go
        else (None, _refusal(request.needs, tuple(short[row]), _is_too_small(node, request.needs))) if not fitting
        else (victims[row], SUCCESS) if victims[row].infos
        else (None, Status.error(f'expected at least one victim pod on node "{node.name}"'))
        for row, (node, any_may_go, fitting) in enumerate(zip(nodes, some.tolist(), fits.tolist(), strict=True))
    ]  # fmt: skip


NO_ONE: Selected = (None, NO_VICTIMS)


def _slack(
    search: Search, request: FitRequest, rows: Sequence[int], nodes: Sequence[NodeInfo], there: PodsOfNodes, stays: Mask
) -> Ints:
    """(n_needs, n_rows): what is left of each, `pods` first, once only those that stay and the new one are there."""
    amounts, index = search.table.amounts, np.array(rows, dtype=np.intp)
    used = [stays.sum(axis=1), *(each.sum(axis=1, where=stays) for each in there.amounts)]
    offered = np.array([amounts.allocatable[line][index] for line in request.lines])
    slack: Ints = offered - np.array(used) - np.minimum(request.amounts, MOST)
    if search.promised:
        for place, node in enumerate(nodes):
            for pod in search.promised.get(node.name, ()):
                wanted = [min(pod.resources.requests.get(name, 0), MOST) for name, _ in request.needs[1:]]
                slack[:, place] = np.maximum(slack[:, place], -MOST) - [1, *wanted]
    return slack


def _violating(search: Search, there: PodsOfNodes, may_go: Mask) -> Mask | None:
    """(n_nodes, n_most_pods): whose eviction would break a budget; None when nobody's would."""
    if not search.budgets:
        return None
    mask = np.zeros(may_go.shape, dtype=np.bool_)
    for row in np.flatnonzero(may_go.any(axis=1)).tolist():
        positions = np.flatnonzero(may_go[row])
        pods = [there.pods[place] for place in there.places[row, positions].tolist()]
        breaking = {info.key for info in search.budgets.split(pods)[0]}
        mask[row, positions] = [info.key in breaking for info in pods]
    return mask if mask.any() else None


def _not_spared(slack: Ints, amounts: Ints, may_go: Mask, violating: Mask | None) -> Mask:
    """(n_nodes, n_most_pods): who finds no room when all are put back in order, those that break a budget first."""
    left, gone = slack.copy(), np.zeros(may_go.shape, dtype=np.bool_)
    for some in (may_go,) if violating is None else (violating, may_go & ~violating):
        by_place = np.ascontiguousarray(np.moveaxis(np.concatenate((some[None], amounts * some)), 2, 0))
        spared = np.empty((len(by_place), len(may_go)), dtype=np.bool_)
        for place, wanted in enumerate(by_place):
            np.logical_and.reduce(left >= wanted, axis=0, out=spared[place])
            left -= wanted * spared[place]
        gone |= some & ~spared.T
    return gone


def _chosen(there: PodsOfNodes, gone: Mask) -> list[Victims]:
    """For each node those who go, the most important first."""
    ends = np.cumsum(np.count_nonzero(gone, axis=1), dtype=np.int64).tolist()
    infos = [there.pods[place] for place in there.places[gone].tolist()]
    return [Victims(tuple(infos[begin:end])) for begin, end in pairwise([0, *ends])]


def _chosen_breaking(there: PodsOfNodes, gone: Mask, violating: Mask) -> list[Victims]:
    """`_chosen` where budgets may be broken: of equals those that break one come first, as they were put back first."""
    chosen = []
    for places, goes, breaks in zip(there.places, gone, violating, strict=True):
        breaking, others = places[goes & breaks].tolist(), places[goes & ~breaks].tolist()
        victims = sorted([there.pods[place] for place in (*breaking, *others)], key=by_importance)
        chosen.append(Victims(tuple(victims), len(breaking)))
    return chosen


def _is_too_small(node: NodeInfo, needs: Sequence[Need]) -> bool:
    """Whether an empty node would be, too: no eviction helps there."""
    return any(amount > node.allocatable.get(name, 0) for name, amount in needs[1:])


@lru_cache(maxsize=1_024)
def _refusal(needs: tuple[Need, ...], short: tuple[bool, ...], too_small: bool) -> Status:
    """What NodeResourcesFit says of nodes where these needs are not met; equal ones are one object."""
    missing = [name for (name, _), misses in zip(needs, short, strict=True) if misses]
    reasons = tuple(TOO_MANY_PODS if name == "pods" else f"Insufficient {name}" for name in missing)
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE if too_small else Code.UNSCHEDULABLE, reasons, FIT_NAME)
