"""Why a pod fits nowhere: data first, a sentence second.

Source: pkg/scheduler/framework/types.go `Diagnosis`, `FitError.Error`, v1.36.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from skysail.scheduler.framework.status import Code, Status


@dataclass(slots=True)
class Diagnosis:
    """What one attempt found out about nodes that do not fit.

    Attributes:
        num_all_nodes: Nodes in the snapshot.
        node_statuses: Refusals by node name: PreFilter's (for all nodes), Filter's, extenders'.
        absent_status: The status of nodes that were not looked at (PreFilter narrowed the search).
        unschedulable_plugins: Who refused some node.
        pending_plugins: Who answered Pending.
        pre_filter_message: Set when PreFilter refused the pod for all nodes.
        post_filter_message: What PostFilter had to say.
    """

    num_all_nodes: int
    node_statuses: Mapping[str, Status] = field(default_factory=dict)
    absent_status: Status = field(default_factory=lambda: Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE))
    unschedulable_plugins: set[str] = field(default_factory=set)
    pending_plugins: set[str] = field(default_factory=set)
    pre_filter_message: str = ""
    post_filter_message: str = ""

    def add_plugin_status(self, status: Status) -> None:
        """Remember who refused."""
        if not status.plugin:
            return
        if status.is_rejected:
            self.unschedulable_plugins.add(status.plugin)
        if status.code is Code.PENDING:
            self.pending_plugins.add(status.plugin)

    def status_of(self, node_name: str) -> Status:
        """The node's refusal; nodes that were not looked at share one."""
        return self.node_statuses.get(node_name, self.absent_status)

    def nodes_with_code(self, code: Code, all_nodes: Iterable[str]) -> Iterator[str]:
        """Names of the nodes refused with this code, in the order of `all_nodes`."""
        return (name for name in all_nodes if self.status_of(name).code is code)

    def reasons(self) -> Counter[str]:
        """How many nodes gave each reason."""
        counts: Counter[str] = Counter()
        for status in self.node_statuses.values():
            counts.update(status.reasons)
        absent = self.num_all_nodes - len(self.node_statuses)
        if absent > 0:
            for reason in self.absent_status.reasons:
                counts[reason] += absent
        return counts

    def message(self) -> str:
        """`0/N nodes are available: ...`, byte for byte as kube-scheduler writes it."""
        text = f"0/{self.num_all_nodes} nodes are available:"
        if self.pre_filter_message:
            text += f" {self.pre_filter_message}."
        else:
            counted = sorted(f"{count} {reason}" for reason, count in self.reasons().items())
            if counted:
                text += f" {', '.join(counted)}."
        if self.post_filter_message:
            text += f" {self.post_filter_message}"
        return text


class NoNodesError(Exception):
    """The cluster has no nodes at all: not a fit error, and no diagnosis."""

    def __str__(self) -> str:
        return "no nodes available to schedule pods"
