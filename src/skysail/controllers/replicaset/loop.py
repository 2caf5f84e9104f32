"""The replica set controller's shell: reads the caches, asks the plan, writes.

The dangerous moment of every such controller is right after it has made pods: the cache does not show them yet, and a
second look would make them again. So it notes what it expects to see (`pod_control`), and until it has seen it, or five
minutes have passed, it only reports.

Source: pkg/controller/replicaset/replica_set.go, v1.36.
"""

from collections.abc import Iterable, Sequence

from skysail.api.apps import ReplicaSet
from skysail.api.core import Pod
from skysail.api.errors import ApiError
from skysail.api.kinds import PODS, REPLICASETS
from skysail.api.meta import OwnerReference
from skysail.controller.controller import Result
from skysail.controller.ref_manager import ControllerRefManager
from skysail.controller.watches import For
from skysail.controllers.builtin import BuiltinController, Selectors
from skysail.controllers.pod_control import PodControl, PodError
from skysail.controllers.pods import controller_of, is_active, is_controlled_by, is_terminating
from skysail.controllers.replicaset.plan import (
    BURST_REPLICAS,
    gathering_seconds,
    plan_replicas,
    replica_set_status,
    seconds_until_next_check,
)
from skysail.controllers.templates import controller_reference, pod_from_template
from skysail.informer.handlers import Handlers
from skysail.informer.keys import Key


class ReplicaSetController(BuiltinController):
    """Keeps the wanted number of pods of every replica set."""

    name = "replicaset"
    workers = 5
    burst = BURST_REPLICAS
    watches = (For(ReplicaSet),)

    def setup(self) -> None:
        """Hook up pods: their events settle expectations before they wake the replica set."""
        self.selectors = Selectors()
        self.pod_control = PodControl(self.api, self.recorder, self.clock)
        self.index_by_controller(Pod, ReplicaSet)
        self.informer(ReplicaSet).add_handler(Handlers(delete=self._set_gone), name=self.name)
        self.informer(Pod).add_handler(
            Handlers(add=self._pod_added, update=self._pod_changed, delete=self._pod_gone), name=self.name
        )

    # What wakes it

    def _set_gone(self, replica_set: ReplicaSet) -> None:
        self.pod_control.forget(replica_set)

    def _pod_added(self, pod: Pod) -> None:
        if pod.metadata.deletion_timestamp is not None:
            self._pod_gone(pod)
            return
        reference = controller_of(pod)
        if reference is None:
            self._wake_matching(pod)
        elif (owner := self._owner(pod.namespace, reference)) is not None:
            waited = self.pod_control.is_awaited(owner)
            self.pod_control.saw_created(owner)
            self._wake_soon(owner, waited=waited)

    def _pod_changed(self, old: Pod, new: Pod) -> None:
        if old.metadata.resource_version == new.metadata.resource_version:
            return
        if new.metadata.deletion_timestamp is not None:
            self._pod_gone(new)
            return
        before, after = controller_of(old), controller_of(new)
        if before is not None and before != after:
            self._wake(self._owner(old.namespace, before))
        if after is not None and (owner := self._owner(new.namespace, after)) is not None:
            self._wake_soon(owner)
        elif before is not None or old.metadata.labels != new.metadata.labels:
            self._wake_matching(new)

    def _pod_gone(self, pod: Pod) -> None:
        reference = controller_of(pod)
        owner = self._owner(pod.namespace, reference) if reference is not None else None
        if owner is not None:
            waited = self.pod_control.is_awaited(owner)
            self.pod_control.saw_deleted(owner, pod)
            self._wake_soon(owner, waited=waited)

    def _owner(self, namespace: str, reference: OwnerReference) -> ReplicaSet | None:
        if reference.kind != REPLICASETS.name:
            return None
        found = self.lister(ReplicaSet).named(reference.name, namespace)
        return found if found is not None and found.uid == reference.uid else None

    def _wake(self, replica_set: ReplicaSet | None) -> None:
        if replica_set is not None:
            self.enqueue(Key(replica_set.namespace, replica_set.name))

    def _wake_soon(self, replica_set: ReplicaSet, *, waited: bool = False) -> None:
        """Wake it for news of a pod of its own: at once if it waited for just that, else when news has gathered."""
        may_act_now = waited and not self.pod_control.is_awaited(replica_set)
        seconds = 0.0 if may_act_now else gathering_seconds(replica_set)
        self.enqueue(Key(replica_set.namespace, replica_set.name), seconds)

    def _wake_matching(self, pod: Pod) -> None:
        """An orphan: every replica set that selects it may want to adopt it."""
        if not pod.metadata.labels:
            return
        for replica_set in self.lister(ReplicaSet).list(pod.namespace):
            if self.selectors.of(replica_set.uid, replica_set.spec).matches(pod.metadata.labels):
                self._wake(replica_set)

    # What it does

    async def reconcile(self, key: Key) -> Result | None:
        """Count, make or delete, report."""
        replica_set = self.lister(ReplicaSet).get(key)
        if replica_set is None:
            return None
        may_act = await self._may_act(replica_set)
        pods = self.claimable_by(replica_set, Pod)
        active = await self._claim(replica_set, pods)
        error = await self._manage(replica_set, active) if may_act else None
        now = self.now()
        status = replica_set_status(
            replica_set,
            active,
            self._count_terminating(replica_set, pods),
            error.status.message if isinstance(error, ApiError) else str(error or ""),
            now.replace(microsecond=0) if error is not None else now,
        )
        await self.write_status(REPLICASETS, replica_set, replica_set.status, status)
        if error is not None:
            raise error
        return Result(seconds_until_next_check(replica_set, status, active, now))

    async def _claim(self, replica_set: ReplicaSet, pods: Iterable[Pod]) -> Sequence[Pod]:
        selector = self.selectors.of(replica_set.uid, replica_set.spec)
        manager = ControllerRefManager(self.client, replica_set, REPLICASETS, PODS, selector)
        return await manager.claim(pod for pod in pods if is_active(pod))

    def _count_terminating(self, replica_set: ReplicaSet, pods: Iterable[Pod]) -> int:
        selector = self.selectors.of(replica_set.uid, replica_set.spec)
        return sum(
            is_terminating(pod) and is_controlled_by(pod, replica_set) and selector.matches(pod.metadata.labels)
            for pod in pods
        )

    async def _manage(self, replica_set: ReplicaSet, active: Sequence[Pod]) -> PodError | None:
        plan = plan_replicas(replica_set, active, self._related(replica_set, active), self.now(), self.burst)
        if plan.create:
            owner = controller_reference(replica_set, REPLICASETS.api_version, REPLICASETS.name)
            body = pod_from_template(replica_set.spec.template, replica_set.name, owner)
            self.pod_control.expect(replica_set, creations=plan.create)
            _, error = await self.pod_control.create_all(replica_set, plan.create, lambda _: body)
            return error
        if plan.delete:
            self.pod_control.expect(replica_set, deletions=plan.delete)
            errors = await self.pod_control.delete_all(replica_set, plan.delete)
            return errors[0] if errors else None
        return None

    def _related(self, replica_set: ReplicaSet, active: Sequence[Pod]) -> Sequence[Pod]:
        """The pods of all replica sets of the same owner; asked only when pods are to be deleted."""
        wanted = 1 if replica_set.spec.replicas is None else replica_set.spec.replicas
        reference = controller_of(replica_set)
        if reference is None or len(active) <= wanted:
            return ()
        found: dict[str, Pod] = {}
        for sibling in self.controlled_by(reference.uid, ReplicaSet):
            selector = self.selectors.of(sibling.uid, sibling.spec)
            for pod in self.controlled_by(sibling.uid, Pod):
                if selector.matches(pod.metadata.labels):
                    found.setdefault(pod.uid, pod)
        return tuple(found.values())

    async def _may_act(self, replica_set: ReplicaSet) -> bool:
        selector = self.selectors.of(replica_set.uid, replica_set.spec)
        return await self.pod_control.may_act(replica_set, selector, lambda: self.controlled_by(replica_set.uid, Pod))
