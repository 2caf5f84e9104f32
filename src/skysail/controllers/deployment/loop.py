"""The deployment controller's shell: reads the caches, asks the plan, carries it out step by step.

Every write names the version it was decided on, so a plan made on a stale cache fails with a conflict and is made anew.
That does not protect a decision about one replica set from a stale view of another, so nothing is planned either until
the cache shows what the last plan wrote.

Source: pkg/controller/deployment/deployment_controller.go, v1.36.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from skysail.api.apps import Deployment, ReplicaSet
from skysail.api.core import Pod
from skysail.api.errors import AlreadyExists, ApiError, Conflict, NotFound, Unreachable
from skysail.api.kinds import DEPLOYMENTS, REPLICASETS
from skysail.client.bodies import JSON
from skysail.controller.controller import Result
from skysail.controller.ref_manager import ControllerRefManager
from skysail.controller.watches import Deleted, For, Owns, Watch, Watches
from skysail.controllers.builtin import BuiltinController, Selectors
from skysail.controllers.deployment.actions import (
    Action,
    CreateReplicaSet,
    DeleteReplicaSet,
    Emit,
    PatchReplicaSet,
    PatchStatus,
    RollBack,
)
from skysail.controllers.deployment.fences import RECREATE
from skysail.controllers.deployment.plan import plan_collision, plan_deployment, plan_failed_creation
from skysail.controllers.own_writes import OwnWrites
from skysail.controllers.pod_control import is_doubtful
from skysail.controllers.pods import controller_of, is_controlled_by
from skysail.controllers.templates import templates_equal
from skysail.informer.handlers import Handlers
from skysail.informer.keys import Key

_LOOK_AGAIN_SECONDS = 1.0


class DeploymentController(BuiltinController):
    """Rolls replica sets over from template to template."""

    name = "deployment"
    workers = 5

    @property
    def watches(self) -> Sequence[Watch[Any]]:
        """Deployments, their replica sets, orphaned sets they select, and pods that are gone (for Recreate)."""
        return (
            For(Deployment),
            Owns(ReplicaSet),
            Watches(ReplicaSet, map=self._selecting_orphan),
            Watches(Pod, on=(Deleted,), map=self._waiting_for_pod),
        )

    def setup(self) -> None:
        """Pods are asked for only when a Recreate deployment waits for them to go."""
        self.selectors = Selectors()
        self.own_writes = OwnWrites()
        self.informer(Deployment).add_handler(Handlers(delete=self.own_writes.forget), name=self.name)
        self.index_by_controller(Pod, ReplicaSet)

    def _selecting_orphan(self, replica_set: ReplicaSet) -> Iterable[Key]:
        if controller_of(replica_set) is not None or not replica_set.metadata.labels:
            return
        for deployment in self.lister(Deployment).list(replica_set.namespace):
            if self.selectors.of(deployment.uid, deployment.spec).matches(replica_set.metadata.labels):
                yield Key(deployment.namespace, deployment.name)

    def _waiting_for_pod(self, pod: Pod) -> Iterable[Key]:
        reference = controller_of(pod)
        if reference is None or reference.kind != REPLICASETS.name:
            return
        replica_set = self.lister(ReplicaSet).named(reference.name, pod.namespace)
        owner = controller_of(replica_set) if replica_set is not None else None
        if owner is None or owner.kind != DEPLOYMENTS.name:
            return
        deployment = self.lister(Deployment).named(owner.name, pod.namespace)
        if deployment is not None and deployment.spec.strategy.type == RECREATE:
            yield Key(deployment.namespace, deployment.name)

    async def reconcile(self, key: Key) -> Result | None:
        """One pass: claim, plan, write."""
        deployment = self.lister(Deployment).get(key)
        if deployment is None:
            return None
        if not await self._sees_own_writes(deployment):
            return Result(_LOOK_AGAIN_SECONDS)
        replica_sets = await self._claim(deployment)
        recreates = deployment.spec.strategy.type == RECREATE
        pods = {item.uid: self.controlled_by(item.uid, Pod) for item in replica_sets} if recreates else {}
        plan = plan_deployment(deployment, replica_sets, pods, self.written_now())
        for action in plan.actions:
            if not await self._perform(deployment, action):
                return None
        return Result(plan.requeue_seconds)

    async def _sees_own_writes(self, deployment: Deployment) -> bool:
        """Whether the cache shows the replica sets as the last pass left them."""
        if self.own_writes.is_doubtful(deployment):
            selector = self.selectors.of(deployment.uid, deployment.spec)
            there = await self.api.list_all(REPLICASETS, deployment.namespace, label_selector=str(selector))
            self.own_writes.resolve(deployment, [item for item in there.items if is_controlled_by(item, deployment)])
        return self.own_writes.are_visible(deployment, self.informer(ReplicaSet).indexer.resource_version)

    async def _claim(self, deployment: Deployment) -> Sequence[ReplicaSet]:
        selector = self.selectors.of(deployment.uid, deployment.spec)
        if selector.empty:
            return ()
        manager = ControllerRefManager(self.client, deployment, DEPLOYMENTS, REPLICASETS, selector)
        return await manager.claim(self.claimable_by(deployment, ReplicaSet))

    async def _perform(self, deployment: Deployment, action: Action) -> bool:
        """Carry one step out; False ends the pass without an error: the deployment or a set of it is gone."""
        try:
            return await self._carry_out(deployment, action)
        except NotFound:
            return False
        except (ApiError, Unreachable) as error:
            if is_doubtful(error):
                self.own_writes.doubt(deployment)
            raise

    async def _carry_out(self, deployment: Deployment, action: Action) -> bool:
        match action:
            case CreateReplicaSet():
                return await self._create(deployment, action)
            case PatchReplicaSet(replica_set, patch, event):
                written = await self.api.patch(REPLICASETS, replica_set.name, replica_set.namespace, patch)
                self.own_writes.note(deployment, written)
                if event:
                    self.recorder.event(deployment, "Normal", "ScalingReplicaSet", event)
            case DeleteReplicaSet(replica_set):
                await self._delete(replica_set)
            case PatchStatus(patch):
                await self.api.patch(DEPLOYMENTS, deployment.name, deployment.namespace, patch, subresource="status")
            case RollBack():
                await self._roll_back(action)
            case Emit(event_type, reason, message):
                self.recorder.event(deployment, event_type, reason, message)
        return True

    async def _create(self, deployment: Deployment, action: CreateReplicaSet) -> bool:
        try:
            written = await self.api.create(REPLICASETS, action.body, deployment.namespace)
        except AlreadyExists:
            await self._resolve_existing(deployment, action)
            return False
        except ApiError as error:
            if error.is_namespace_terminating:
                return False
            await self._report_failure(deployment, action, error)
            raise
        self.own_writes.note(deployment, written)
        if action.replicas > 0:
            words = f"Scaled up replica set {action.name} from 0 to {action.replicas}"
            self.recorder.event(deployment, "Normal", "ScalingReplicaSet", words)
        return True

    async def _resolve_existing(self, deployment: Deployment, action: CreateReplicaSet) -> None:
        """The name is taken: by our own set that the cache does not show yet, or by something else.

        Raises:
            Conflict: It is ours; look again when the cache has caught up.
        """
        found = await self.api.get(REPLICASETS, action.name, deployment.namespace)
        if is_controlled_by(found, deployment) and templates_equal(found.spec.template, deployment.spec.template):
            raise Conflict(f"replica set {found.key} was made already and is not in the cache yet")
        await self._perform(deployment, plan_collision(deployment))

    async def _report_failure(self, deployment: Deployment, action: CreateReplicaSet, error: ApiError) -> None:
        for step in plan_failed_creation(deployment, action.name, error.status.message, self.written_now()):
            await self._perform(deployment, step)

    async def _delete(self, replica_set: ReplicaSet) -> None:
        try:
            await self.api.delete(REPLICASETS, replica_set.name, replica_set.namespace, uid=replica_set.uid)
        except NotFound:
            return

    async def _roll_back(self, action: RollBack) -> None:
        meta = action.deployment.metadata
        patch: list[dict[str, object]] = [
            {"op": "test", "path": "/metadata/resourceVersion", "value": meta.resource_version},
            {"op": "replace", "path": "/metadata/annotations", "value": dict(action.annotations)},
        ]
        if action.template is not None:
            patch.append({"op": "replace", "path": "/spec/template", "value": action.template})
        await self.api.patch(DEPLOYMENTS, meta.name, meta.namespace, patch, patch_type=JSON)
