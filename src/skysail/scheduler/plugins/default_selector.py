"""The selector that system-default spreading uses: what the pod's services and its controller select.

Source: pkg/scheduler/framework/plugins/helper/spread.go, v1.36.
"""

from skysail.api.apps import ReplicaSet, StatefulSet
from skysail.api.cluster import ReplicationController, Service
from skysail.api.core import Pod
from skysail.api.kinds import REPLICASETS, REPLICATION_CONTROLLERS, SERVICES, STATEFULSETS
from skysail.api.labels import EVERYTHING, Selector
from skysail.api.meta import LabelSelector, OwnerReference
from skysail.scheduler.framework.handle import Handle, Lister


class DefaultSelectors:
    """Looks the selectors up."""

    def __init__(self, handle: Handle) -> None:
        self._services: Lister[Service] = handle.lister(SERVICES)
        self._controllers: Lister[ReplicationController] = handle.lister(REPLICATION_CONTROLLERS)
        self._replica_sets: Lister[ReplicaSet] = handle.lister(REPLICASETS)
        self._stateful_sets: Lister[StatefulSet] = handle.lister(STATEFULSETS)

    def selector(self, pod: Pod) -> Selector:
        """All requirements together; an empty selector when nothing selects the pod."""
        services = self._services.list(pod.metadata.namespace)
        owner = _controller_of(pod) if pod.metadata.owner_references else None
        if not services and owner is None:
            return EVERYTHING
        labels: dict[str, str] = {}
        for service in services:
            wanted = service.spec.selector
            if wanted and Selector.from_set(wanted).matches(pod.metadata.labels):
                labels |= wanted
        if owner is None:
            return Selector.from_set(labels)
        namespace, kind = pod.metadata.namespace, (owner.api_version, owner.kind)
        if kind == ("v1", "ReplicationController"):
            controller = self._controllers.get(namespace, owner.name)
            if controller is not None:
                labels |= controller.spec.selector
        selector = Selector.from_set(labels)
        if kind == ("apps/v1", "ReplicaSet"):
            replica_set = self._replica_sets.get(namespace, owner.name)
            return selector if replica_set is None else _with(selector, replica_set.spec.selector)
        if kind == ("apps/v1", "StatefulSet"):
            stateful_set = self._stateful_sets.get(namespace, owner.name)
            return selector if stateful_set is None else _with(selector, stateful_set.spec.selector)
        return selector


def _controller_of(pod: Pod) -> OwnerReference | None:
    return next((owner for owner in pod.metadata.owner_references if owner.controller), None)


def _with(selector: Selector, more: LabelSelector | None) -> Selector:
    try:
        other = Selector.from_label_selector(more)
    except ValueError:
        return selector
    return Selector((*selector.requirements, *other.requirements)) if other.selectable else selector
