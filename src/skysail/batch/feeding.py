"""From what the informers saw to the world: pods, nodes, and whatever objects say about queues, groups and slots.

Queues of all APIs are read together whenever one of them changed (they refer to each other); groups and Quotas one by
one. Kinds are watched while the cluster serves them (`following`). What handlers say waits while a cycle has something
open, so a cycle never sees a world half changed.
"""

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from skysail.api.cluster import Namespace
from skysail.api.core import Pod
from skysail.api.kinds import (
    CSI_NODES,
    CSI_STORAGE_CAPACITIES,
    NAMESPACES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    STORAGE_CLASSES,
    Kind,
)
from skysail.api.node import Node
from skysail.api.raw import Raw
from skysail.batch.feeding_groups import GroupFeeding
from skysail.batch.following import Following
from skysail.batch.foreign.koordinator import read_reservation
from skysail.batch.foreign.pods import MembershipReader
from skysail.batch.foreign.registry import (
    GROUP_KINDS,
    QUEUE_KINDS,
    RESERVATIONS,
    WORKLOAD_PRIORITIES,
    WORKLOADS,
    read_queues,
)
from skysail.batch.kinds import JOB_QUEUES, POD_GROUPS, QUEUES, QUOTAS, Quota
from skysail.batch.kinds import reading as own
from skysail.batch.model.outcome import Event
from skysail.batch.model.slot import Slot, slot_key
from skysail.batch.object_lister import ObjectLister
from skysail.batch.world import World
from skysail.client.api_client import ApiClient
from skysail.controller.customresources.installing import DEFINITIONS
from skysail.informer.factory import InformerFactory
from skysail.informer.handlers import Handlers
from skysail.informer.shared_informer import SharedInformer

_log = logging.getLogger(__name__)


class Feeding(GroupFeeding):
    """The informers of the batch engine.

    Args:
        client: Asks whether a kind is served.
        informers: The factory, shared with others or own.
        world: Who is told.
        membership: The world's reader of pods, which learns queues by namespace here.
        changed: Called after every change.
        submit: Makes a change of the world, at once or when a running cycle allows it.
    """

    def __init__(
        self,
        client: ApiClient,
        informers: InformerFactory,
        world: World,
        membership: MembershipReader,
        changed: Callable[[], None],
        submit: Callable[[Callable[[], None]], None] = lambda change: change(),
    ) -> None:
        super().__init__(informers, world, changed, submit)
        self._membership = membership
        self.queue_informers: dict[str, SharedInformer[Any]] = {}
        """By resource, of every kind that queues are read from."""
        self.queue_kinds: dict[str, Kind[Any]] = {}
        self._problems: dict[str, list[str]] = {}
        self.quotas: dict[str, Quota] = {}
        self._others: dict[str, ObjectLister] = {}
        self._following = Following(client)
        self.reservations: dict[str, tuple[Kind[Any], Raw]] = {}
        """Koordinator's Reservations by the key of the Quota each became."""
        self.workloads: tuple[Kind[Any], SharedInformer[Any]] | None = None
        """Kueue's Workloads, which hear how their jobs fare."""

    async def start(self) -> None:
        """Watch everything, and wait until the world was told of all: queues before groups, nodes, slots and pods."""
        self._watch_priorities()
        names = Handlers(add=self._namespace, update=self._namespace_changed, delete=self._no_namespace)
        self._listen(self._informers.informer(NAMESPACES), names)
        for kinds in _QUEUE_TABLE:
            await self._following.follow(kinds, self._follow_queues, self._leave_queues)
        await self._following.follow(WORKLOAD_PRIORITIES, self._follow_priorities, self._leave_priorities)
        await self._wait_told()
        self._read_queues()
        for kinds in _GROUP_TABLE:
            await self._following.follow(kinds, self._follow_groups, self._leave_groups)
        self._listen(self._informers.nodes(), Handlers(add=self._node, update=self._node_changed, delete=self._no_node))
        await self._wait_told()
        await self._following.follow((QUOTAS,), self._follow_quotas, self._leave_quotas)
        await self._following.follow(RESERVATIONS, self._follow_reservations, self._leave_reservations)
        await self._following.follow(WORKLOADS, self._follow_workloads, self._leave_workloads)
        if await self._following.may_watch_definitions():
            self._listen(
                self._informers.informer(DEFINITIONS),
                Handlers(
                    add=self._following.defined,
                    update=lambda old, new: self._following.defined(new),
                    delete=self._following.undefined,
                ),
            )
        await self._wait_told()
        pods = Handlers(add=self._pod, update=self._pod_changed, delete=self._no_pod)
        self._listen(self._informers.informer(PODS), pods)
        await self._wait_told()

    def lister(self, kind: Kind[Any]) -> ObjectLister:
        """Objects of another kind that pod plugins look at; every change wakes who waits for volumes."""
        known = self._others.get(kind.resource)
        if known is None:
            informer = self._informers.informer(kind)
            known = self._others[kind.resource] = ObjectLister(informer)

            def changed(*_: object) -> None:
                self._world.tell(Event.VOLUME_CHANGED)
                self._changed()

            if kind.resource in _VOLUME_KINDS:
                self._listen(informer, Handlers(add=changed, update=changed, delete=changed))
        return known

    # -- watching --------------------------------------------------------------------------------------------------

    def _follow_queues(self, kind: Kind[Any]) -> None:
        informer = self._informers.informer(kind)
        self.queue_informers[kind.resource] = informer
        self.queue_kinds[kind.resource] = kind
        self._listen(informer, self._queue_handlers())

    def _leave_queues(self, kind: Kind[Any]) -> None:
        self._leave(self.queue_informers.pop(kind.resource))
        del self.queue_kinds[kind.resource]
        self._read_queues()

    def _follow_quotas(self, kind: Kind[Any]) -> None:
        self._attach(kind, Handlers(add=self._quota, update=self._quota_changed, delete=self._no_quota))

    def _leave_quotas(self, kind: Kind[Any]) -> None:
        self._detach(kind)
        for quota in list(self.quotas.values()):
            self._no_quota(quota)

    def _follow_reservations(self, kind: Kind[Any]) -> None:
        handlers = Handlers(
            add=self._reservation, update=lambda old, new: self._reservation(new), delete=self._no_reservation
        )
        self._attach(kind, handlers)

    def _leave_reservations(self, kind: Kind[Any]) -> None:
        self._detach(kind)
        for _, raw in list(self.reservations.values()):
            self._no_reservation(raw)

    def _follow_workloads(self, kind: Kind[Any]) -> None:
        self._attach(kind, Handlers())
        self.workloads = (kind, self._attached[kind.resource])

    def _leave_workloads(self, kind: Kind[Any]) -> None:
        self.workloads = None
        self._detach(kind)

    # -- namespaces ------------------------------------------------------------------------------------------------

    def _namespace(self, namespace: Namespace) -> None:
        self._world.set_namespace(namespace.name, namespace.metadata.labels)
        self._changed()

    def _namespace_changed(self, old: Namespace, new: Namespace) -> None:
        if old.metadata.labels != new.metadata.labels:
            self._namespace(new)

    def _no_namespace(self, namespace: Namespace) -> None:
        self._world.remove_namespace(namespace.name)

    # -- queues ----------------------------------------------------------------------------------------------------

    def _queue_handlers(self) -> Handlers[Any]:
        def changed(*_: object) -> None:
            if self.queue_informers and all(informer.has_synced for informer in self.queue_informers.values()):
                self._read_queues()

        return Handlers(add=changed, update=changed, delete=changed)

    def _read_queues(self) -> None:
        objects: dict[str, list[Any]] = {
            resource: list(informer.lister.list()) for resource, informer in self.queue_informers.items()
        }
        foreign = read_queues({name: found for name, found in objects.items() if name not in _OWN})
        records = foreign.records
        records.add(own.read_queues(objects.get(QUEUES.resource, ()), objects.get(JOB_QUEUES.resource, ())))
        self._problems = {}
        for problem in records.problems:
            self._problems.setdefault(problem.about, []).append(problem.message)
            _log.info("queue is not as it should be", extra={"object": problem.about, "problem": problem.message})
        by_namespace, self._membership.namespaces = self._membership.namespaces, foreign.namespaces
        self._world.replace_queues(records.queues, records.job_queues, records.flavors.values())
        if by_namespace != foreign.namespaces:
            self._world.read_pods_anew()
        self._changed()

    def problems_of(self, about: str) -> list[str]:
        """What is wrong with a queue's object, in words; `about` is as in `Problem`."""
        return self._problems.get(about, [])

    # -- slots, nodes, pods ----------------------------------------------------------------------------------------

    def slots_of(self, key: str) -> list[Slot]:
        """The slots of a Quota, by index."""
        spec = self._world.quotas.get(key)
        keys = [slot_key(spec, index) for index in range(spec.count)] if spec is not None else []
        return [slot for each in keys if (slot := self._world.slots.get(each)) is not None]

    def _quota(self, quota: Quota) -> None:
        self.quotas[quota.key] = quota
        spec, problems = own.read_quota(quota)
        for problem in problems:
            _log.info("quota is not as it should be", extra={"object": problem.about, "problem": problem.message})
        self._world.set_quota(spec)
        self._changed()

    def _quota_changed(self, old: Quota, new: Quota) -> None:
        self.quotas[new.key] = new
        if old.spec != new.spec or old.uid != new.uid:
            self._quota(new)

    def _reservation(self, raw: Raw) -> None:
        spec, problems = read_reservation(raw)
        for problem in problems:
            _log.info("reservation is not as it should be", extra={"object": problem.about, "problem": problem.message})
        if spec is None:
            self._no_reservation(raw)
            return
        self.reservations[spec.key] = (RESERVATIONS[0], raw)
        known = self._world.quotas.get(spec.key)
        if known is not None and known.uid == spec.uid and not spec.node:
            spec = replace(spec, node=known.node)
        self._world.set_quota(spec)
        self._changed()

    def _no_reservation(self, raw: Raw) -> None:
        key = f"/{raw['metadata']['name']}"
        if self.reservations.pop(key, None) is not None:
            self._world.remove_quota(key)
            self._changed()

    def _no_quota(self, quota: Quota) -> None:
        self.quotas.pop(quota.key, None)
        self._world.remove_quota(quota.key)
        self._changed()

    def _node(self, node: Node) -> None:
        self._world.set_node(node)
        self._changed()

    def _node_changed(self, old: Node, new: Node) -> None:
        self._node(new)

    def _no_node(self, node: Node) -> None:
        self._world.remove_node(node.metadata.name)
        self._changed()

    def _pod(self, pod: Pod) -> None:
        self._world.set_pod(pod)
        self._changed()

    def _pod_changed(self, old: Pod, new: Pod) -> None:
        if old.metadata.uid != new.metadata.uid:
            self._world.remove_pod(old.metadata.uid)
        self._pod(new)

    def _no_pod(self, pod: Pod) -> None:
        self._world.remove_pod(pod.metadata.uid)
        self._changed()


_VOLUME_KINDS: Final = frozenset(
    kind.resource
    for kind in (PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES, CSI_NODES, CSI_STORAGE_CAPACITIES)
)
_OWN: Final = frozenset({QUEUES.resource, JOB_QUEUES.resource})
_GROUP_TABLE: Final[tuple[tuple[Kind[Any], ...], ...]] = (*GROUP_KINDS, (POD_GROUPS,))
_QUEUE_TABLE: Final[tuple[tuple[Kind[Any], ...], ...]] = ((QUEUES,), (JOB_QUEUES,), *QUEUE_KINDS)
