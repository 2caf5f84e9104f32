"""What happened in the cluster, in the words by which plugins ask to be woken.

A pod that a plugin refused sleeps until something happens that this plugin said could change its answer. An
informer's event is translated to one or more `ClusterEvent`s (`skysail.scheduler.framework.changes`), as specific as
can be told; a plugin names the ones it cares about in `events_to_register`, each with an optional hint function that
looks closer.

    NodeUpdateNodeLabel   matches a registration of {Node, UPDATE_NODE_LABEL}, {Node, UPDATE}, {Node, ALL} or {*, ALL}
    AssignedPodDelete     matches {Pod, DELETE}: `AssignedPod` and `UnschedulablePod` only occur in what comes in
    *All                  (an incoming wildcard: a time-out, a forced activation) moves every pod, whoever refused it

Source: kube-scheduler/framework/types.go, pkg/scheduler/framework/{events,types}.go, v1.36.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum, IntFlag
from functools import lru_cache
from typing import Final

from skysail.api.core import Pod


class ActionType(IntFlag):
    """What was done to a resource. The flags combine; a bare `UPDATE` is the sum of all specific updates.

    The order of the flags is upstream's: matching compares numbers (an event is never broader than its registration).
    """

    NONE = 0
    ADD = 1 << 0
    DELETE = 1 << 1
    UPDATE_NODE_ALLOCATABLE = 1 << 2
    UPDATE_NODE_LABEL = 1 << 3
    UPDATE_NODE_TAINT = 1 << 4
    UPDATE_NODE_CONDITION = 1 << 5
    UPDATE_NODE_ANNOTATION = 1 << 6
    UPDATE_NODE_DECLARED_FEATURE = 1 << 7
    UPDATE_POD_LABEL = 1 << 8
    UPDATE_POD_SCALE_DOWN = 1 << 9
    UPDATE_POD_TOLERATION = 1 << 10
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = 1 << 11
    UPDATE_POD_GENERATED_RESOURCE_CLAIM = 1 << 12
    UPDATE = (1 << 13) - (1 << 2)
    ALL = (1 << 13) - 1


_ACTION_NAMES: Final = {
    ActionType.NONE: "",
    ActionType.ADD: "Add",
    ActionType.DELETE: "Delete",
    ActionType.UPDATE_NODE_ALLOCATABLE: "UpdateNodeAllocatable",
    ActionType.UPDATE_NODE_LABEL: "UpdateNodeLabel",
    ActionType.UPDATE_NODE_TAINT: "UpdateNodeTaint",
    ActionType.UPDATE_NODE_CONDITION: "UpdateNodeCondition",
    ActionType.UPDATE_NODE_ANNOTATION: "UpdateNodeAnnotation",
    ActionType.UPDATE_NODE_DECLARED_FEATURE: "UpdateNodeDeclaredFeature",
    ActionType.UPDATE_POD_LABEL: "UpdatePodLabel",
    ActionType.UPDATE_POD_SCALE_DOWN: "UpdatePodScaleDown",
    ActionType.UPDATE_POD_TOLERATION: "UpdatePodToleration",
    ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED: "UpdatePodSchedulingGatesEliminated",
    ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM: "UpdatePodGeneratedResourceClaim",
    ActionType.UPDATE: "Update",
    ActionType.ALL: "All",
}


@lru_cache(maxsize=256)
def action_name(action: ActionType) -> str:
    """The upstream spelling (`UpdateNodeLabel`); a combination joins its parts with `|`."""
    name = _ACTION_NAMES.get(action)
    return name if name is not None else "|".join(_ACTION_NAMES[part] for part in action)


# Resources. A plugin may also name any other as `<plural>.<version>.<group>`, e.g. `foos.v1.example.com`.
POD: Final = "Pod"
ASSIGNED_POD: Final = "AssignedPod"
UNSCHEDULABLE_POD: Final = "UnschedulablePod"
NODE: Final = "Node"
PERSISTENT_VOLUME: Final = "PersistentVolume"
PERSISTENT_VOLUME_CLAIM: Final = "PersistentVolumeClaim"
CSI_NODE: Final = "storage.k8s.io/CSINode"
CSI_DRIVER: Final = "storage.k8s.io/CSIDriver"
CSI_STORAGE_CAPACITY: Final = "storage.k8s.io/CSIStorageCapacity"
VOLUME_ATTACHMENT: Final = "storage.k8s.io/VolumeAttachment"
STORAGE_CLASS: Final = "storage.k8s.io/StorageClass"
RESOURCE_CLAIM: Final = "resource.k8s.io/ResourceClaim"
RESOURCE_SLICE: Final = "resource.k8s.io/ResourceSlice"
DEVICE_CLASS: Final = "resource.k8s.io/DeviceClass"
POD_GROUP: Final = "scheduling.k8s.io/PodGroup"
WILDCARD: Final = "*"


@dataclass(frozen=True, slots=True)
class ClusterEvent:
    """One kind of change: which resource, what was done.

    Attributes:
        resource: One of this module's resource constants, or a custom resource's `<plural>.<version>.<group>`.
        action: What was done; in a registration usually several flags.
        custom_label: What logs and metrics call the event, where resource and action say too little.
    """

    resource: str
    action: ActionType
    custom_label: str = ""

    @property
    def label(self) -> str:
        """How logs and the `event` label of metrics name it: `NodeAdd`, `AssignedPodDelete`, `UnschedulableTimeout`."""
        return self.custom_label or f"{self.resource}{action_name(self.action)}"

    @property
    def is_wildcard(self) -> bool:
        """Whether it stands for everything: as an incoming event it moves every sleeping pod."""
        return self.resource == WILDCARD and self.action == ActionType.ALL

    def matches(self, incoming: "ClusterEvent") -> bool:
        """Whether a registration of this event covers an incoming one: the same, or more specific."""
        return _matches(self, incoming)


@lru_cache(maxsize=4096)
def _matches(registered: ClusterEvent, incoming: ClusterEvent) -> bool:
    if registered.is_wildcard:
        return True
    same = registered.resource in (WILDCARD, incoming.resource) or (
        registered.resource == POD and incoming.resource in (ASSIGNED_POD, UNSCHEDULABLE_POD)
    )
    return same and bool(registered.action & incoming.action) and int(incoming.action) <= int(registered.action)


class QueueingHint(Enum):
    """Whether an event may make a refused pod schedulable."""

    SKIP = "QueueSkip"
    QUEUE = "Queue"


HintFunction = Callable[[Pod, object | None, object | None], QueueingHint]
"""`(pod, old, new) -> hint`: does the change from `old` to `new` help `pod`, which this plugin refused?

`old` is None for an addition, `new` for a deletion. A hint function that raises counts as `QUEUE`, so that no pod is
left asleep by a bug. It must be quick: it runs once for every sleeping pod its plugin refused.
"""


@dataclass(frozen=True, slots=True)
class ClusterEventWithHint:
    """One row of a plugin's `events_to_register`.

    Attributes:
        event: What to be woken by.
        hint: A closer look; None wakes the pod at every such event.
    """

    event: ClusterEvent
    hint: HintFunction | None = field(default=None)


# Labels of events that the queue itself makes.
SCHEDULE_ATTEMPT_FAILURE: Final = "ScheduleAttemptFailure"
BACKOFF_COMPLETE: Final = "BackoffComplete"
POP_FROM_BACKOFF_Q: Final = "PopFromBackoffQ"
FORCE_ACTIVATE: Final = "ForceActivate"
UNSCHEDULABLE_TIMEOUT: Final = "UnschedulableTimeout"

EVENT_ASSIGNED_POD_ADD: Final = ClusterEvent(ASSIGNED_POD, ActionType.ADD)
EVENT_ASSIGNED_POD_UPDATE: Final = ClusterEvent(ASSIGNED_POD, ActionType.UPDATE)
EVENT_ASSIGNED_POD_DELETE: Final = ClusterEvent(ASSIGNED_POD, ActionType.DELETE)
EVENT_UNSCHEDULED_POD_ADD: Final = ClusterEvent(UNSCHEDULABLE_POD, ActionType.ADD)
EVENT_UNSCHEDULED_POD_UPDATE: Final = ClusterEvent(UNSCHEDULABLE_POD, ActionType.UPDATE)
EVENT_UNSCHEDULED_POD_DELETE: Final = ClusterEvent(UNSCHEDULABLE_POD, ActionType.DELETE)
EVENT_UNSCHEDULABLE_TIMEOUT: Final = ClusterEvent(WILDCARD, ActionType.ALL, UNSCHEDULABLE_TIMEOUT)
EVENT_FORCE_ACTIVATE: Final = ClusterEvent(WILDCARD, ActionType.ALL, FORCE_ACTIVATE)


def all_events() -> tuple[ClusterEventWithHint, ...]:
    """What a plugin without `events_to_register` is woken by: everything, at every change, with no closer look."""
    resources: Iterable[str] = (
        POD, NODE, PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, CSI_NODE, CSI_DRIVER, CSI_STORAGE_CAPACITY,
        STORAGE_CLASS, RESOURCE_CLAIM, DEVICE_CLASS,
    )  # fmt: skip
    return tuple(ClusterEventWithHint(ClusterEvent(resource, ActionType.ALL)) for resource in resources)
