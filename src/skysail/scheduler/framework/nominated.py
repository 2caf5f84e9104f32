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
from skysail.scheduler.framework.codes import Reads
from skysail.scheduler.framework.cycle_state import CycleState
from skysail.scheduler.framework.evaluation import RowAnswers, run_filters
from skysail.scheduler.framework.handle import Nominations
from skysail.scheduler.framework.runner import Framework
from skysail.scheduler.framework.status import Status


def refusals_with_nominated_pods(
    framework: Framework,
    state: CycleState,
    pod: Pod,
    table: NodeTable,
    nominations: Nominations | None,
    remembered: RowAnswers,
) -> dict[int, Status]:
    """Rows that the pod does not fit once the pods nominated there have arrived, with the first refusal of each.

    Args:
        framework: The profile.
        state: The attempt's memory, after PreFilter.
        pod: The pod.
        table: The nodes.
        nominations: Who was promised which node.
        remembered: Answers for equal pods, brought up to date here. They hold only where no plugin reads more than the
            row, and stay empty otherwise.

    Raises:
        PluginFailed: A plugin raised or answered with an error.

    Cost: One evaluation together of those rows that changed, or whose promises did; where plugins read more, of all
    these rows together; where their pods change what PreFilter remembered, one of one row for each of them.
    """
    if nominations is None or not nominations.by_node:
        remembered.clear()
        return {}
    promised = _promised(pod, table, nominations)
    if promised and framework.heeds_added_pods(state):
        remembered.clear()
        answers = {row: status_with(framework, state, pod, table, row, others) for row, others in promised.items()}
        return {row: status for row, status in answers.items() if not status.is_success}
    kept = {
        row: known
        for row, others in promised.items()
        if (known := remembered.get(row)) is not None and known[0] == table.info(row).generation and known[1] == others
    }
    remembered.clear()
    found = kept | _asked(framework, state, pod, table, {row: promised[row] for row in promised.keys() - kept.keys()})
    skipped = state.skip_filter_plugins
    if all(step.reads in _ROW_ALONE or step.name in skipped for step in framework.filters):
        remembered.update(found)
    return {row: found[row][2] for row in promised if not found[row][2].is_success}


_ROW_ALONE = (Reads.STATIC, Reads.ROW)


def _asked(
    framework: Framework, state: CycleState, pod: Pod, table: NodeTable, promised: dict[int, list[PodInfo]]
) -> RowAnswers:
    """The answers of the plugins, asked about all these rows together."""
    if not promised:
        return {}
    with table.scratch([_with(table.info(row), others) for row, others in promised.items()]) as rows:
        filtered = run_filters(framework.filters, state, pod, table, rows)
    statuses = [filtered.statuses[index] for index in filtered.first.tolist()]
    return {
        row: (table.info(row).generation, others, status)
        for (row, others), status in zip(promised.items(), statuses, strict=True)
    }


def _promised(pod: Pod, table: NodeTable, nominations: Nominations) -> dict[int, list[PodInfo]]:
    """By row, the pods that will be there and may not be pushed aside."""
    found: dict[int, list[PodInfo]] = {}
    priority, own = pod.spec.priority or 0, pod.metadata.uid
    for node_name, promised in nominations.by_node.items():
        row = table.rows.get(node_name)
        others = [other for uid, other in promised.items() if other.priority >= priority and uid != own]
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
