"""The quick form of `select_victims` for pods that nothing but resources keeps off a node.

When every Filter plugin that runs for the pod reads only the Node object, but for NodeResourcesFit, taking pods off a
node changes nothing but sums: no plugin needs to be asked. Equal to the general form, which is its oracle.
"""

from bisect import bisect_right
from collections.abc import Sequence

from skysail.scheduler.cache.node_info import NodeInfo, importance
from skysail.scheduler.cache.pod_info import PodInfo
from skysail.scheduler.framework.codes import Reads
from skysail.scheduler.framework.status import SUCCESS, Code, Status
from skysail.scheduler.plugins.node_resources_fit import FIT, TOO_MANY_PODS, Need, NodeResourcesFit
from skysail.scheduler.preemption.budgets import split_by_budgets
from skysail.scheduler.preemption.victims import NO_VICTIMS, Search, Victims, priority_of

FIT_NAME = NodeResourcesFit.name


def only_resources_matter(search: Search) -> bool:
    """Whether the quick form may be used for this pod."""
    return FIT_NAME in {step.name for step in search.framework.filters} and all(
        step.reads is Reads.STATIC or step.name == FIT_NAME
        for step in search.framework.filters
        if step.name not in search.state.skip_filter_plugins
    )


def select_resource_victims(search: Search, row: int) -> tuple[Victims | None, Status]:
    """`select_victims`, by arithmetic. The plugins that read only the Node object must let the row pass."""
    node = search.table.info(row)
    pods = node.by_importance()
    stays = bisect_right(pods, -priority_of(search.pod), key=_rank)
    potential = pods[stays:]
    if not potential:
        return None, NO_VICTIMS
    needs = search.state.read(FIT).needs
    slack = _slack(node, needs, [*pods[:stays], *search.promised.get(node.name, ())])
    if min(slack) < 0:
        return None, _refusal(needs, slack, node)
    names = [name for name, _ in needs[1:]]
    violating, others = split_by_budgets(potential, search.budgets)
    victims = _not_spared(slack, names, violating)
    violations = len(victims)
    victims += _not_spared(slack, names, others)
    if not victims:
        return None, Status.error(f'expected at least one victim pod on node "{node.name}"')
    if violations:
        victims.sort(key=importance)
    return Victims(tuple([info.pod for info in victims]), violations), SUCCESS


def _rank(info: PodInfo) -> int:
    return -info.priority


def _slack(node: NodeInfo, needs: Sequence[Need], staying: Sequence[PodInfo]) -> list[int]:
    """What is left of each needed resource, `pods` first, once only these pods and the new one are on the node."""
    allocatable = node.allocatable
    slack = [allocatable.get("pods", 0) - len(staying) - 1]
    for name, need in needs[1:]:
        used = sum([info.resources.requests.get(name, 0) for info in staying])
        slack.append(allocatable.get(name, 0) - used - need)
    return slack


def _not_spared(slack: list[int], names: Sequence[str], pods: Sequence[PodInfo]) -> list[PodInfo]:
    """Put back, in order, every pod for which there is room; those for which there is none."""
    if len(names) == 2:
        return _not_spared_of_two(slack, names, pods)
    evicted = []
    for info in pods:
        requests = info.resources.requests
        amounts = [1, *(requests.get(name, 0) for name in names)]
        if all(left >= amount for left, amount in zip(slack, amounts, strict=True)):
            slack[:] = [left - amount for left, amount in zip(slack, amounts, strict=True)]
        else:
            evicted.append(info)
    return evicted


def _not_spared_of_two(slack: list[int], names: Sequence[str], pods: Sequence[PodInfo]) -> list[PodInfo]:
    """The same for two resources, as nearly every pod asks for, without a list for each pod."""
    room, first_left, second_left = slack
    first, second = names
    evicted = []
    for info in pods:
        requests = info.resources.requests
        one, two = requests.get(first, 0), requests.get(second, 0)
        if room >= 1 and one <= first_left and two <= second_left:
            room -= 1
            first_left -= one
            second_left -= two
        else:
            evicted.append(info)
    slack[:] = room, first_left, second_left
    return evicted


def _refusal(needs: Sequence[Need], slack: Sequence[int], node: NodeInfo) -> Status:
    short = [need for need, left in zip(needs, slack, strict=True) if left < 0]
    reasons = tuple(TOO_MANY_PODS if name == "pods" else f"Insufficient {name}" for name, _ in short)
    never = any(name != "pods" and amount > node.allocatable.get(name, 0) for name, amount in short)
    code = Code.UNSCHEDULABLE_AND_UNRESOLVABLE if never else Code.UNSCHEDULABLE
    return Status(code, reasons, FIT_NAME)
