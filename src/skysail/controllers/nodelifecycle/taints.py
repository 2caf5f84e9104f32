"""The marks on nodes: which taints a node's conditions call for, and how to bring them about.

Source: pkg/controller/nodelifecycle/node_lifecycle_controller.go, pkg/util/taints, v1.36.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from skysail.api.node import Node, NodeCondition, Taint
from skysail.api.raw import Raw

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
NO_SCHEDULE, NO_EXECUTE = "NoSchedule", "NoExecute"

_FOR_CONDITION = {
    ("Ready", "False"): NOT_READY,
    ("Ready", "Unknown"): UNREACHABLE,
    ("MemoryPressure", "True"): "node.kubernetes.io/memory-pressure",
    ("DiskPressure", "True"): "node.kubernetes.io/disk-pressure",
    ("NetworkUnavailable", "True"): "node.kubernetes.io/network-unavailable",
    ("PIDPressure", "True"): "node.kubernetes.io/pid-pressure",
}
_OURS = frozenset({*_FOR_CONDITION.values(), UNSCHEDULABLE})
_SECOND_LABELS = {"kubernetes.io/os": "beta.kubernetes.io/os", "kubernetes.io/arch": "beta.kubernetes.io/arch"}


def marks_of(ready: NodeCondition) -> tuple[str, str]:
    """Of a node that is not ready: the key of the mark it should bear, and of the one it should not."""
    return (NOT_READY, UNREACHABLE) if ready.status == "False" else (UNREACHABLE, NOT_READY)


def has_taint(node: Node, key: str, effect: str) -> bool:
    """Whether the node bears that taint."""
    return any(taint.key == key and taint.effect == effect for taint in node.spec.taints)


def no_schedule_taints(node: Node, now: datetime) -> tuple[Taint, ...] | None:
    """The node's taints as its conditions call for; None when they are right."""
    keys = [
        _FOR_CONDITION[found]
        for item in node.status.conditions
        if (found := (item.type, item.status)) in _FOR_CONDITION
    ]
    if node.spec.unschedulable:
        keys.append(UNSCHEDULABLE)
    has = [taint.key for taint in node.spec.taints if taint.effect == NO_SCHEDULE and taint.key in _OURS]
    if set(keys) == set(has):
        return None
    gone = [Taint(key=key, effect=NO_SCHEDULE) for key in has if key not in keys]
    new = [Taint(key=key, effect=NO_SCHEDULE, time_added=now) for key in dict.fromkeys(keys) if key not in has]
    return swapped(node, new, gone)


def swapped(node: Node, add: Sequence[Taint], remove: Iterable[Taint]) -> tuple[Taint, ...] | None:
    """The node's taints with some added and some removed; None when that changes nothing."""
    gone = {(taint.key, taint.effect) for taint in remove}
    kept = [taint for taint in node.spec.taints if (taint.key, taint.effect) not in gone]
    known = {(taint.key, taint.effect) for taint in kept}
    result = (*kept, *(taint for taint in add if (taint.key, taint.effect) not in known))
    return None if result == node.spec.taints else result


def taints_patch(node: Node, taints: Iterable[Taint]) -> Raw:
    """A merge patch that gives the node these taints, if it is still the version that was looked at."""
    return {
        "metadata": {"resourceVersion": node.metadata.resource_version},
        "spec": {"taints": [msgspec.to_builtins(taint) for taint in taints]},
    }


def missing_labels(node: Node) -> dict[str, str]:
    """Labels of older names that are to say the same as those of newer ones."""
    labels = node.metadata.labels
    return {
        second: labels[first]
        for first, second in _SECOND_LABELS.items()
        if first in labels and labels.get(second) != labels[first]
    }
