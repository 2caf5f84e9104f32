"""From two versions of an object to the most specific cluster events that tell them apart.

The more specific an event is, the fewer sleeping pods it concerns: a node's heartbeat is no event at all, a changed
label is `NodeUpdateNodeLabel` and nothing else.

Source: pkg/scheduler/framework/events.go (PodSchedulingPropertiesChange, NodeSchedulingPropertiesChange), v1.36.
"""

from collections.abc import Callable, Mapping

from msgspec import structs

from skysail.api.core import Pod, PodStatus
from skysail.api.meta import ObjectMeta
from skysail.api.node import Node
from skysail.api.quantity import parse_quantity
from skysail.api.resources import request_quantities
from skysail.scheduler.framework.events import ASSIGNED_POD, NODE, UNSCHEDULABLE_POD, ActionType, ClusterEvent


def pod_scheduling_properties_change(old: Pod, new: Pod) -> tuple[ClusterEvent, ...]:
    """What changed about a pod, as far as scheduling cares; never empty: the rest is a general update.

    Returns:
        Events of the resource `AssignedPod` or `UnschedulablePod`, by whether the new version is bound.
    """
    resource = ASSIGNED_POD if new.spec.node_name else UNSCHEDULABLE_POD
    actions = [action for changed, action in _POD_CHANGES if changed(old, new)]
    return tuple(ClusterEvent(resource, action) for action in actions or (ActionType.UPDATE,))


def is_schedulers_own_writing(old: Pod, new: Pod) -> bool:
    """Whether only that changed which a scheduler writes of its attempts: a nomination, the PodScheduled condition."""
    return (
        old.spec == new.spec
        and _without_version(old.metadata) == _without_version(new.metadata)
        and _without_verdict(old.status) == _without_verdict(new.status)
    )


def _without_version(metadata: ObjectMeta) -> ObjectMeta:
    return structs.replace(metadata, resource_version="", generation=0)


def _without_verdict(status: PodStatus) -> PodStatus:
    others = tuple(each for each in status.conditions if each.type != "PodScheduled")
    return structs.replace(status, nominated_node_name="", conditions=others)


def node_scheduling_properties_change(old: Node, new: Node) -> tuple[ClusterEvent, ...]:
    """What changed about a node, as far as scheduling cares; empty for a mere heartbeat."""
    return tuple(ClusterEvent(NODE, action) for changed, action in _NODE_CHANGES if changed(old, new))


def _scaled_down(old: Pod, new: Pod) -> bool:
    if _resource_fields(old) == _resource_fields(new):
        return False
    before, after = request_quantities(old), request_quantities(new)
    return any(name not in after or amount > after[name] for name, amount in before.items())


def _resource_fields(pod: Pod) -> tuple[object, ...]:
    spec, status = pod.spec, pod.status
    return (
        spec.containers, spec.init_containers, spec.overhead, spec.resources,
        status.container_statuses, status.init_container_statuses, status.resize, status.conditions,
        status.allocated_resources, status.resources,
    )  # fmt: skip


def _pod_labels_changed(old: Pod, new: Pod) -> bool:
    return old.metadata.labels != new.metadata.labels


def _gates_eliminated(old: Pod, new: Pod) -> bool:
    return bool(old.spec.scheduling_gates) and not new.spec.scheduling_gates


def _tolerations_changed(old: Pod, new: Pod) -> bool:
    return len(old.spec.tolerations) != len(new.spec.tolerations)


def _claims_generated(old: Pod, new: Pod) -> bool:
    return (
        old.status.resource_claim_statuses != new.status.resource_claim_statuses
        or old.status.extended_resource_claim_status != new.status.extended_resource_claim_status
    )


def _made_schedulable(old: Node, new: Node) -> bool:
    return old.spec.unschedulable and not new.spec.unschedulable


def _allocatable_changed(old: Node, new: Node) -> bool:
    before, after = old.status.allocatable, new.status.allocatable
    return before != after and _amounts(before) != _amounts(after)


def _amounts(resources: Mapping[str, str]) -> dict[str, object]:
    return {name: parse_quantity(quantity) for name, quantity in resources.items()}


def _node_labels_changed(old: Node, new: Node) -> bool:
    return old.metadata.labels != new.metadata.labels


def _taints_changed(old: Node, new: Node) -> bool:
    return old.spec.taints != new.spec.taints


def _conditions_changed(old: Node, new: Node) -> bool:
    return {c.type: c.status for c in old.status.conditions} != {c.type: c.status for c in new.status.conditions}


def _annotations_changed(old: Node, new: Node) -> bool:
    return old.metadata.annotations != new.metadata.annotations


def _declared_features_changed(old: Node, new: Node) -> bool:
    return old.status.declared_features != new.status.declared_features


_POD_CHANGES: tuple[tuple[Callable[[Pod, Pod], bool], ActionType], ...] = (
    (_pod_labels_changed, ActionType.UPDATE_POD_LABEL),
    (_scaled_down, ActionType.UPDATE_POD_SCALE_DOWN),
    (_gates_eliminated, ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED),
    (_tolerations_changed, ActionType.UPDATE_POD_TOLERATION),
    (_claims_generated, ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM),
)
_NODE_CHANGES: tuple[tuple[Callable[[Node, Node], bool], ActionType], ...] = (
    (_made_schedulable, ActionType.UPDATE_NODE_TAINT),
    (_allocatable_changed, ActionType.UPDATE_NODE_ALLOCATABLE),
    (_node_labels_changed, ActionType.UPDATE_NODE_LABEL),
    (_taints_changed, ActionType.UPDATE_NODE_TAINT),
    (_conditions_changed, ActionType.UPDATE_NODE_CONDITION),
    (_annotations_changed, ActionType.UPDATE_NODE_ANNOTATION),
    (_declared_features_changed, ActionType.UPDATE_NODE_DECLARED_FEATURE),
)
