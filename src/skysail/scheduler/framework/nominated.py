"""Rows where other pods were promised room are filtered twice: with those pods, and without.

Only pods of equal or higher priority count: their room is not for the taking. The first pass must succeed as well,
because affinity may be met only by pods that are not there yet, and anti-affinity broken only by them.

Source: pkg/scheduler/framework/runtime/framework.go `RunFilterPluginsWithNominatedPods`, v1.36.
"""

from collections.abc import Sequence

from skysail.api.core import Pod
from skysail.scheduler.cache.node_info import NodeInfo
from skysail.scheduler.cache.pod_info import PodInfo
from skysail.scheduler.cache.table import NodeTable
from skysail.scheduler.framework.cycle_state import CycleState
from skysail.scheduler.framework.evaluation import run_filters
from skysail.scheduler.framework.handle import Nominations
from skysail.scheduler.framework.runner import Framework
from skysail.scheduler.framework.status import Status


def refusals_with_nominated_pods(
    framework: Framework, state: CycleState, pod: Pod, table: NodeTable, nominations: Nominations | None
) -> dict[int, Status]:
    """Rows that the pod does not fit once the pods nominated there have arrived, with the first refusal of each.

    Raises:
        PluginFailed: A plugin raised or answered with an error.

    Cost: One evaluation of these rows together where their pods change nothing that PreFilter remembered; else one of
    one row for each node with nominations.
    """
    if nominations is None or not nominations.by_node:
        return {}
    promised = _promised(pod, table, nominations)
    if promised and not framework.heeds_added_pods(state):
        clones = [_with(table.info(row), others) for row, others in promised.items()]
        with table.scratch(clones) as rows:
            filtered = run_filters(framework.filters, state, pod, table, rows)
        answers = {row: filtered.statuses[int(index)] for row, index in zip(promised, filtered.first, strict=True)}
    else:
        answers = {row: status_with(framework, state, pod, table, row, others) for row, others in promised.items()}
    return {row: status for row, status in answers.items() if not status.is_success}


def _promised(pod: Pod, table: NodeTable, nominations: Nominations) -> dict[int, list[PodInfo]]:
    """By row, the pods that will be there and may not be pushed aside."""
    found: dict[int, list[PodInfo]] = {}
    priority = pod.spec.priority or 0
    for node_name, promised in nominations.by_node.items():
        row = table.rows.get(node_name)
        others = [
            PodInfo(other)
            for other in promised.values()
            if (other.spec.priority or 0) >= priority and other.metadata.uid != pod.metadata.uid
        ]
        if row is not None and others:
            found[row] = others
    return found


def status_with(
    framework: Framework, state: CycleState, pod: Pod, table: NodeTable, row: int, others: Sequence[PodInfo]
) -> Status:
    """Whether the pod fits a row on which these pods are as well.

    Raises:
        PluginFailed: A plugin raised or answered with an error.
    """
    return _status_of(framework, *_what_if(framework, state, pod, table.info(row), others), pod, table)


def fits_with(
    framework: Framework, state: CycleState, pod: Pod, table: NodeTable, node: NodeInfo, others: Sequence[PodInfo]
) -> Status:
    """Whether the pod fits an account that is not in the table, with these pods on it as well, and without them.

    Raises:
        PluginFailed: A plugin raised or answered with an error.
    """
    if others:
        status = _status_of(framework, *_what_if(framework, state, pod, node, others), pod, table)
        if not status.is_success:
            return status
    return _status_of(framework, state, node, pod, table)


def _what_if(
    framework: Framework, state: CycleState, pod: Pod, node: NodeInfo, others: Sequence[PodInfo]
) -> tuple[CycleState, NodeInfo]:
    what_if, clone = state.clone(), node.clone()
    for other in others:
        clone.add_pod(other)
        framework.run_add_pod(what_if, pod, other, clone)
    return what_if, clone


def _with(node: NodeInfo, others: Sequence[PodInfo]) -> NodeInfo:
    clone = node.clone()
    for other in others:
        clone.add_pod(other)
    return clone


def _status_of(framework: Framework, state: CycleState, node: NodeInfo, pod: Pod, table: NodeTable) -> Status:
    with table.scratch([node]) as rows:
        filtered = run_filters(framework.filters, state, pod, table, rows)
    return filtered.statuses[int(filtered.first[0])]
