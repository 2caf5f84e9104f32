"""Why a pod fits nowhere: data first, a sentence second.

Source: pkg/scheduler/framework/types.go `Diagnosis`, `FitError.Error`, v1.36.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from skysail.scheduler.framework.conversation import ExtenderCall
from skysail.scheduler.framework.status import SUCCESS, Code, Status

NO_NODES_AVAILABLE = "no nodes available to schedule pods"
NO_NODES: Final = Status.unresolvable(NO_NODES_AVAILABLE)
"""What an attempt on a cluster without nodes ends with."""


class NodeStatuses(Mapping[str, Status]):
    """Refusals by node name, kept as one number a node: 5,000 nodes refused alike cost 10 kB and one Status.

    Args:
        names: Of the nodes that were looked at.
        first: (n,) an index into `statuses` for each; 0 is success, and such a node is not in the mapping.
        statuses: The distinct refusals; `statuses[0]` is success.
    """

    def __init__(self, names: Sequence[str], first: npt.NDArray[np.uint16], statuses: Sequence[Status]) -> None:
        self.names, self.first, self.statuses = names, first, statuses
        self._places: dict[str, int] | None = None

    def __getitem__(self, name: str) -> Status:
        if self._places is None:
            self._places = {each: place for place, each in enumerate(self.names) if self.first[place]}
        return self.statuses[int(self.first[self._places[name]])]

    def __iter__(self) -> Iterator[str]:
        return (self.names[int(place)] for place in np.flatnonzero(self.first))

    def __len__(self) -> int:
        return int(np.count_nonzero(self.first))

    def places_with_code(self, code: Code) -> list[int]:
        """Which of `names` are refused with this code, ascending."""
        wanted = np.array([index > 0 and status.code is code for index, status in enumerate(self.statuses)])
        return np.flatnonzero(wanted[self.first]).tolist()

    def names_with_code(self, code: Code) -> list[str]:
        """Names of the nodes refused with this code, in the order given."""
        return list(map(self.names.__getitem__, self.places_with_code(code)))

    def counts(self) -> list[tuple[Status, int]]:
        """Each distinct refusal that occurs, with the number of nodes that got it."""
        numbers = np.bincount(self.first, minlength=1)
        return [(self.statuses[index], int(count)) for index, count in enumerate(numbers) if index and count]


@dataclass(slots=True)
class Diagnosis:
    """What one attempt found out about nodes that do not fit.

    Attributes:
        num_all_nodes: Nodes in the snapshot.
        node_statuses: Filter's refusals, by node name.
        absent_status: The status of nodes that are not among them: PreFilter's refusal of all nodes, or its narrowing.
        extender_statuses: Extenders' refusals, by node name; they come on top.
        extender_calls: What extenders were asked, how long each took, what went wrong: who was slow or broken.
        unschedulable_plugins: Who refused some node.
        pending_plugins: Who answered Pending.
        pre_filter_message: Set when PreFilter refused the pod for all nodes.
        post_filter_message: What PostFilter had to say.
        preemption: What the search for victims found, candidate by candidate (a `PreemptionOutcome`).
    """

    num_all_nodes: int
    node_statuses: NodeStatuses = field(default_factory=lambda: NodeStatuses((), np.zeros(0, np.uint16), (SUCCESS,)))
    absent_status: Status = field(default_factory=lambda: Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE))
    extender_statuses: dict[str, Status] = field(default_factory=dict)
    extender_calls: list[ExtenderCall] = field(default_factory=list)
    unschedulable_plugins: set[str] = field(default_factory=set)
    pending_plugins: set[str] = field(default_factory=set)
    pre_filter_message: str = ""
    post_filter_message: str = ""
    preemption: object = None

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
        extended = self.extender_statuses.get(node_name)
        return extended if extended is not None else self.node_statuses.get(node_name, self.absent_status)

    def nodes_with_code(self, code: Code, all_nodes: Iterable[str]) -> list[str]:
        """Names of the nodes refused with this code, in the order in which they were looked at, then of `all_nodes`."""
        if self.has_other_refusals(code):
            return [name for name in all_nodes if self.status_of(name).code is code]
        return self.node_statuses.names_with_code(code)

    def has_other_refusals(self, code: Code) -> bool:
        """Whether more nodes than those of `node_statuses` may be refused with this code."""
        return bool(self.extender_statuses) or self.absent_status.code is code

    def reasons(self) -> Counter[str]:
        """How many nodes gave each reason."""
        counts: Counter[str] = Counter()
        for status, nodes in self.node_statuses.counts():
            for reason in status.reasons:
                counts[reason] += nodes
        for status in self.extender_statuses.values():
            counts.update(status.reasons)
        absent = self.num_all_nodes - len(self.node_statuses) - len(self.extender_statuses)
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
