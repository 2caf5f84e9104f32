"""Who must leave one node so that a pod fits: everybody less important goes, then as many as possible are spared.

Source: pkg/scheduler/framework/plugins/defaultpreemption `SelectVictimsOnNode`, v1.36.
Differs: of pods that are equally important the one that came to the node first is spared first. Upstream leaves that
    open: its sort does not keep the order of equals where there are more than twelve, and of two pods that have not
    started it takes the one it asks about first for the older.
"""

from dataclasses import dataclass

from skysail.api.core import Pod
from skysail.scheduler.cache.node_info import NodeInfo
from skysail.scheduler.cache.pod_info import PodInfo, by_importance
from skysail.scheduler.cache.table import NodeTable
from skysail.scheduler.framework.cycle_state import CycleState
from skysail.scheduler.framework.nominated import fits_with
from skysail.scheduler.framework.runner import Framework
from skysail.scheduler.framework.status import SUCCESS, Status
from skysail.scheduler.preemption.budgets import Budgets

NO_VICTIMS = Status.unresolvable("No preemption victims found for incoming pod")


@dataclass(slots=True)
class Victims:
    """Who would be evicted from a node; not to be changed.

    Attributes:
        infos: The most important first.
        violations: How many of the evictions break a budget.
    """

    infos: tuple[PodInfo, ...]
    violations: int = 0

    @property
    def pods(self) -> tuple[Pod, ...]:
        """The pods, the most important first."""
        return tuple([info.pod for info in self.infos])


@dataclass(frozen=True, slots=True)
class Search:
    """What the search on one node needs to know.

    Attributes:
        framework: The profile.
        table: The nodes.
        state: The attempt's memory; what-ifs change clones.
        pod: Who wants room.
        budgets: Disruption budgets.
        promised: For a node's name, pods of equal or higher priority nominated there.
    """

    framework: Framework
    table: NodeTable
    state: CycleState
    pod: Pod
    budgets: Budgets
    promised: dict[str, list[PodInfo]]


def priority_of(pod: Pod) -> int:
    """A pod's priority; 0 when none was set."""
    return pod.spec.priority or 0


def may_be_evicted(info: PodInfo, pod: Pod) -> bool:
    """Whether a pod is less important than the one that wants room."""
    return info.priority < priority_of(pod)


def select_victims(search: Search, row: int) -> tuple[Victims | None, Status]:
    """The smallest set of victims on a node, by running the Filter plugins on clones.

    Returns:
        The victims, or None with the reason why evicting does not help.

    Raises:
        PluginFailed: A plugin raised or answered with an error.

    Cost: One evaluation of one row for each pod that may be evicted, and one more.
    """
    trial = _Trial(search, row)
    potential = [info for info in trial.node.pods.values() if may_be_evicted(info, search.pod)]
    if not potential:
        return None, NO_VICTIMS
    for info in potential:
        trial.remove(info)
    status = trial.fits()
    if not status.is_success:
        return None, status
    potential.sort(key=by_importance)
    violating, others = search.budgets.split(potential)
    victims, violations = [], 0
    for infos, breaks in ((violating, True), (others, False)):
        for info in infos:
            trial.add(info)
            if not trial.fits().is_success:
                trial.remove(info)
                victims.append(info)
                violations += breaks
    return _found(victims, violations, search.table.names[row])


def _found(victims: list[PodInfo], violations: int, node_name: str) -> tuple[Victims | None, Status]:
    if not victims:
        return None, Status.error(f'expected at least one victim pod on node "{node_name}"')
    victims.sort(key=by_importance)
    return Victims(tuple(victims), violations), SUCCESS


class _Trial:
    """A node on which pods are taken off and put back."""

    def __init__(self, search: Search, row: int) -> None:
        self._search = search
        self._state = search.state.clone()
        self.node: NodeInfo = search.table.info(row).clone()
        self._promised = search.promised.get(self.node.name, [])

    def remove(self, info: PodInfo) -> None:
        """Take a pod off. Its host ports are free then, also where another pod has them too: as upstream counts."""
        self.node.remove_pod(info.pod)
        for port in info.host_ports:
            self.node.used_ports.pop(port, None)
        self._search.framework.run_remove_pod(self._state, self._search.pod, info, self.node)

    def add(self, info: PodInfo) -> None:
        """Put a pod back."""
        self.node.add_pod(info)
        self._search.framework.run_add_pod(self._state, self._search.pod, info, self.node)

    def fits(self) -> Status:
        """Whether the pod fits now, with the pods promised to the node and without them."""
        search = self._search
        return fits_with(search.framework, self._state, search.pod, search.table, self.node, self._promised)
