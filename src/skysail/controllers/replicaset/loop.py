"""The replica set controller's shell: reads the caches, asks the plan, writes.

The dangerous moment of every such controller is right after it has made pods: the cache does not show them yet, and a
second look would make them again. So it notes what it expects to see, and until it has seen it (or five minutes have
passed) it only reports. Deletions are noted by uid, because a pod that goes gracefully is seen to go twice.

Source: pkg/controller/replicaset/replica_set.go, v1.36.
"""

import asyncio
from collections.abc import Iterable, Sequence

from skysail.api.apps import ReplicaSet
from skysail.api.core import Pod
from skysail.api.errors import ApiError, NotFound, Unreachable
from skysail.api.kinds import PODS, REPLICASETS
from skysail.api.meta import OwnerReference
from skysail.api.raw import Raw
from skysail.controller.controller import Result
from skysail.controller.expectations import UIDTrackingExpectations
from skysail.controller.ref_manager import ControllerRefManager
from skysail.controller.slow_start import slow_start_batch
from skysail.controller.watches import For
from skysail.controllers.builtin import BuiltinController, Selectors
from skysail.controllers.pod_control import PodControl, is_namespace_terminating
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
        self.expectations: UIDTrackingExpectations[str] = UIDTrackingExpectations(self.clock)
        self.selectors = Selectors()
        self.pod_control = PodControl(self.api, self.recorder)
        self.index_by_controller(Pod, ReplicaSet)
        self.informer(ReplicaSet).add_handler(Handlers(delete=self._set_gone), name=self.name)
        self.informer(Pod).add_handler(
            Handlers(add=self._pod_added, update=self._pod_changed, delete=self._pod_gone), name=self.name
        )

    # What wakes it

    def _set_gone(self, replica_set: ReplicaSet) -> None:
        self.expectations.forget(replica_set.uid)

    def _pod_added(self, pod: Pod) -> None:
        if pod.metadata.deletion_timestamp is not None:
            self._pod_gone(pod)
            return
        reference = controller_of(pod)
        if reference is None:
            self._wake_matching(pod)
        elif (owner := self._owner(pod.namespace, reference)) is not None:
            waited = not self.expectations.satisfied(owner.uid)
            self.expectations.creation_observed(owner.uid)
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
            waited = not self.expectations.satisfied(owner.uid)
            self.expectations.deletion_of_observed(owner.uid, pod.uid)
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
        may_act_now = waited and self.expectations.satisfied(replica_set.uid)
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
        may_act = self.expectations.satisfied(replica_set.uid)
        pods = self.claimable_by(replica_set, Pod)
        active = await self._claim(replica_set, pods)
        error = await self._manage(replica_set, active) if may_act else None
        now = self.now()
        status = replica_set_status(
            replica_set,
            active,
            self._count_terminating(replica_set, pods),
            error.status.message if error is not None else "",
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

    async def _manage(self, replica_set: ReplicaSet, active: Sequence[Pod]) -> ApiError | None:
        plan = plan_replicas(replica_set, active, self._related(replica_set, active), self.now(), self.burst)
        if plan.create:
            return await self._create(replica_set, plan.create)
        if plan.delete:
            return await self._delete(replica_set, plan.delete)
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

    async def _create(self, replica_set: ReplicaSet, count: int) -> ApiError | None:
        """Make pods, slowly at first; the first error ends it."""
        owner = controller_reference(replica_set, REPLICASETS.api_version, REPLICASETS.name)
        body = pod_from_template(replica_set.spec.template, replica_set.name, owner)
        self.expectations.expect_creations(replica_set.uid, count)
        outcome = await slow_start_batch(count, lambda _: self._create_one(replica_set, body))
        self.expectations.lower_expected(replica_set.uid, creations=count - outcome.successes)
        return _first_api_error(outcome.errors)

    async def _create_one(self, replica_set: ReplicaSet, body: Raw) -> None:
        try:
            await self.pod_control.create(body, replica_set)
        except ApiError as error:
            if not is_namespace_terminating(error):
                raise
            self.expectations.creation_observed(replica_set.uid)

    async def _delete(self, replica_set: ReplicaSet, pods: Sequence[Pod]) -> ApiError | None:
        self.expectations.expect_deletions_of(replica_set.uid, [pod.uid for pod in pods])
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._delete_one(replica_set, pod)) for pod in pods]
        return _first_api_error(error for task in tasks if (error := task.result()) is not None)

    async def _delete_one(self, replica_set: ReplicaSet, pod: Pod) -> ApiError | Unreachable | None:
        try:
            await self.pod_control.delete(pod, replica_set)
        except (ApiError, Unreachable) as error:
            self.expectations.deletion_of_observed(replica_set.uid, pod.uid)
            return None if isinstance(error, NotFound) else error
        return None


def _first_api_error(errors: Iterable[Exception]) -> ApiError | None:
    """The first refusal of the server; anything else is no answer of the server and goes up as it is."""
    for error in errors:
        if isinstance(error, ApiError):
            return error
        raise error
    return None
