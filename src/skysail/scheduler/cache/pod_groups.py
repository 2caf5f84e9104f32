"""Which pods of a pod group the scheduler knows, and how far each has come.

Invariants:
- a known pod is in exactly one of unscheduled, assumed, assigned;
- a group without pods is not kept.

Source: pkg/scheduler/backend/cache/podgroupstate.go, v1.36.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from skysail.api.core import Pod

GroupKey = tuple[str, str]
"""Namespace and name."""


def group_of(pod: Pod) -> GroupKey | None:
    """The pod's group; None when it belongs to none."""
    group = pod.spec.scheduling_group
    if group is None or not group.pod_group_name:
        return None
    return pod.metadata.namespace, group.pod_group_name


@dataclass(slots=True)
class PodGroupState:
    """One group's pods, each by uid.

    Attributes:
        unscheduled: Neither assumed nor assigned, in the order they came.
        assumed: A node was chosen, the binding is not confirmed.
        assigned: Bound.
    """

    unscheduled: dict[str, Pod] = field(default_factory=dict)
    assumed: dict[str, Pod] = field(default_factory=dict)
    assigned: dict[str, Pod] = field(default_factory=dict)

    @property
    def all_count(self) -> int:
        """Pods known."""
        return len(self.unscheduled) + len(self.assumed) + len(self.assigned)

    @property
    def scheduled_count(self) -> int:
        """Pods that have a node."""
        return len(self.assumed) + len(self.assigned)


_EMPTY = PodGroupState()


class PodGroups:
    """All groups with known pods."""

    def __init__(self) -> None:
        self._groups: dict[GroupKey, PodGroupState] = {}

    def __iter__(self) -> Iterator[GroupKey]:
        return iter(self._groups)

    def state(self, key: GroupKey) -> PodGroupState:
        """A group's pods; not to be changed."""
        return self._groups.get(key, _EMPTY)

    def put(self, pod: Pod) -> None:
        """A pod was seen: new, changed, or bound now. An assumed one stays assumed until it is bound."""
        key = group_of(pod)
        if key is None:
            return
        state = self._groups.setdefault(key, PodGroupState())
        uid = pod.metadata.uid
        if pod.spec.node_name:
            state.unscheduled.pop(uid, None)
            state.assumed.pop(uid, None)
            state.assigned[uid] = pod
        elif uid not in state.assumed:
            state.unscheduled[uid] = pod

    def remove(self, pod: Pod) -> None:
        """A pod is gone."""
        key = group_of(pod)
        state = self._groups.get(key) if key is not None else None
        if key is None or state is None:
            return
        for pods in (state.unscheduled, state.assumed, state.assigned):
            pods.pop(pod.metadata.uid, None)
        if not state.all_count:
            del self._groups[key]

    def assume(self, pod: Pod) -> None:
        """A node was chosen for a known pod."""
        key = group_of(pod)
        state = self._groups.get(key) if key is not None else None
        if state is not None and state.unscheduled.pop(pod.metadata.uid, None) is not None:
            state.assumed[pod.metadata.uid] = pod

    def forget(self, pod: Pod) -> None:
        """The choice was taken back."""
        key = group_of(pod)
        state = self._groups.get(key) if key is not None else None
        before = state.assumed.pop(pod.metadata.uid, None) if state is not None else None
        if state is not None and before is not None:
            state.unscheduled[pod.metadata.uid] = before
