"""The quick form of `select_victims` for pods that nothing but resources keeps off a node.

When every Filter plugin that runs for the pod reads only the Node object, but for NodeResourcesFit, taking pods off a
node changes nothing but sums: no plugin needs to be asked. Equal to the general form, which is its oracle.
"""

from collections.abc import Mapping, Sequence

from skysail.scheduler.cache.node_info import NodeInfo
from skysail.scheduler.cache.pod_info import PodInfo
from skysail.scheduler.framework.codes import Reads
from skysail.scheduler.framework.status import SUCCESS, Code, Status
from skysail.scheduler.plugins.node_resources_fit import FIT, TOO_MANY_PODS, Need, NodeResourcesFit
from skysail.scheduler.preemption.budgets import split_by_budgets
from skysail.scheduler.preemption.victims import NO_VICTIMS, Search, Victims, importance, may_be_evicted

ONE_POD = {"pods": 1}


def only_resources_matter(search: Search) -> bool:
    """Whether the quick form may be used for this pod."""
    return FIT_NAME in {step.name for step in search.framework.filters} and all(
        step.reads is Reads.STATIC or step.name == FIT_NAME
        for step in search.framework.filters
        if step.name not in search.state.skip_filter_plugins
    )


FIT_NAME = NodeResourcesFit.name


def select_resource_victims(search: Search, row: int) -> tuple[Victims | None, Status]:
    """`select_victims`, by arithmetic. The plugins that read only the Node object must let the row pass."""
    node = search.table.info(row)
    potential = [info for info in node.pods.values() if may_be_evicted(info, search.pod)]
    if not potential:
        return None, NO_VICTIMS
    needs = search.state.read(FIT).needs
    free = _free(node, needs, search.promised.get(node.name, ()), potential)
    short = [name for name, need in needs if free[name] < need]
    if short:
        return None, _refusal(needs, short, node)
    slack = {name: free[name] - need for name, need in needs}
    potential.sort(key=importance)
    violating, others = split_by_budgets(potential, search.budgets)
    victims: list[PodInfo] = []
    violations = 0
    for infos, breaks in ((violating, True), (others, False)):
        for info in infos:
            if not _spare(slack, info):
                victims.append(info)
                violations += breaks
    if not victims:
        return None, Status.error(f'expected at least one victim pod on node "{node.name}"')
    victims.sort(key=importance)
    return Victims(tuple(info.pod for info in victims), violations), SUCCESS


def _free(
    node: NodeInfo, needs: Sequence[Need], promised: Sequence[PodInfo], gone: Sequence[PodInfo]
) -> dict[str, int]:
    """What is free of each needed resource once some pods are gone and those promised the room have come."""
    free: dict[str, int] = {}
    for name, _ in needs:
        if name == "pods":
            free[name] = node.allocatable.get(name, 0) - len(node.pods) + len(gone) - len(promised)
            continue
        used = node.requested.get(name, 0)
        used -= sum([info.resources.requests.get(name, 0) for info in gone])
        used += sum([info.resources.requests.get(name, 0) for info in promised])
        free[name] = node.allocatable.get(name, 0) - used
    return free


def _refusal(needs: Sequence[Need], short: Sequence[str], node: NodeInfo) -> Status:
    reasons = tuple(TOO_MANY_PODS if name == "pods" else f"Insufficient {name}" for name in short)
    never = any(name != "pods" and need > node.allocatable.get(name, 0) for name, need in needs if name in short)
    code = Code.UNSCHEDULABLE_AND_UNRESOLVABLE if never else Code.UNSCHEDULABLE
    return Status(code, reasons, FIT_NAME)


def _spare(slack: dict[str, int], info: PodInfo) -> bool:
    """Put a pod back if there is room for it; whether there was."""
    requests: Mapping[str, int] = info.resources.requests
    for name, left in slack.items():
        if left < (1 if name == "pods" else requests.get(name, 0)):
            return False
    for name in slack:
        slack[name] -= 1 if name == "pods" else requests.get(name, 0)
    return True
