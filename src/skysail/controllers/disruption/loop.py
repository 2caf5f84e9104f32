"""The disruption controller's shell: finds a budget's pods and the sizes of their owners, and writes the answer.

Two sorts of keys are in its queue: budgets, and pods whose DisruptionTarget mark will be stale one day.

Source: pkg/controller/disruption/disruption.go, v1.36. Differs: sizes that could not be asked for are asked for again;
kube-controller-manager then waits for the next change.
"""

from collections.abc import Sequence
from typing import Any

from skysail.api.apps import Deployment, ReplicaSet, StatefulSet
from skysail.api.cluster import ReplicationController
from skysail.api.core import Pod, PodCondition, PodStatus
from skysail.api.errors import ApiError, NotFound, Unreachable
from skysail.api.kinds import DEPLOYMENTS, POD_DISRUPTION_BUDGETS, PODS, REPLICASETS, Kind
from skysail.api.meta import OwnerReference
from skysail.api.policy import PodDisruptionBudget
from skysail.controller.controller import Result
from skysail.controller.recorder import CoreEventRecorder
from skysail.controller.watches import For
from skysail.controllers.builtin import BuiltinController, Selectors
from skysail.controllers.discovery import discover
from skysail.controllers.disruption.plan import (
    DISRUPTION_TARGET,
    budget_status,
    count_healthy,
    disrupted_pods,
    expected_pods,
    failed_status,
    format_selector,
    needs_scale,
    stale_disruption_seconds,
)
from skysail.controllers.pods import controller_of
from skysail.informer.handlers import Handlers
from skysail.informer.keys import Key

_OWNERS: dict[str, type[Any]] = {
    "ReplicationController": ReplicationController,
    "ReplicaSet": ReplicaSet,
    "Deployment": Deployment,
    "StatefulSet": StatefulSet,
}
_UNMANAGED = (
    "Pods selected by this PodDisruptionBudget (selector: {}) were found to be unmanaged. As a result, the status of "
    "the PDB cannot be calculated correctly, which may result in undefined behavior. To account for these pods please "
    'set ".spec.minAvailable" field of the PDB to an integer value.'
)


_MARKED = "marked:"
"""Under this prefix and the namespace stand keys of pods that bear a DisruptionTarget mark."""


class _Uncountable(Exception):
    """The pods' owners have no size that can be found out."""


class DisruptionController(BuiltinController):
    """Keeps every disruption budget's status."""

    name = "disruption"
    workers = 1

    watches = (For(PodDisruptionBudget),)

    def setup(self) -> None:
        """Hook up pods; Events go out in the name that kube-controller-manager uses for these."""
        self.selectors = Selectors()
        for owner in _OWNERS.values():
            self.informer(owner)
        self.informer(Pod).add_handler(
            Handlers(add=self._pod_seen, update=self._pod_changed, delete=self._wake_budget), name=self.name
        )
        self._events = CoreEventRecorder(self.api, "controllermanager", clock=self.clock, rng=self.rng)

    async def run_beside(self) -> None:
        """Write Events."""
        await self._events.run()

    def _pod_changed(self, _: Pod, pod: Pod) -> None:
        self._pod_seen(pod)

    def _pod_seen(self, pod: Pod) -> None:
        """Work its budget out; look at the pod again when its mark, if it bears one, will be stale."""
        self._wake_budget(pod)
        seconds = stale_disruption_seconds(pod, self.now())
        if seconds is not None:
            self.enqueue(Key(_MARKED + pod.namespace, pod.name), seconds)

    def _wake_budget(self, pod: Pod) -> None:
        """The first budget that selects the pod; more than one is a mistake that people are told of."""
        found = [
            budget
            for budget in self.lister(PodDisruptionBudget).list(pod.namespace)
            if self.selectors.of(budget.uid, budget.spec).matches(pod.metadata.labels)
        ]
        if len(found) > 1:
            words = f'Pod "{pod.namespace}"/"{pod.name}" matches multiple PodDisruptionBudgets.'
            words += f'  Chose "{found[0].name}" arbitrarily.'
            self._events.event(pod, "Warning", "MultiplePodDisruptionBudgets", words)
        for budget in found[:1]:
            self.enqueue(Key(budget.namespace, budget.name))

    async def reconcile(self, key: Key) -> Result | None:
        """Work one budget's status out, or clear one pod's stale mark."""
        if key.namespace.startswith(_MARKED):
            return await self._clear_stale_mark(Key(key.namespace.removeprefix(_MARKED), key.name))
        budget = self.lister(PodDisruptionBudget).get(key)
        if budget is None:
            return None
        now = self.now()
        selector = self.selectors.of(budget.uid, budget.spec)
        pods = [pod for pod in self.lister(Pod).list(budget.namespace) if selector.matches(pod.metadata.labels)]
        if not pods:
            self._events.event(budget, "Normal", "NoPods", "No matching pods found")
        try:
            scale = await self._scale(budget, pods) if needs_scale(budget) else 0
            expected = expected_pods(budget, len(pods), scale)
        except (_Uncountable, ValueError) as error:
            words = f"Failed to calculate the number of expected pods: {error}"
            self._events.event(budget, "Warning", "CalculateExpectedPodCountFailed", words)
            failed = failed_status(budget, str(error), now.replace(microsecond=0))
            await self.write_status(POD_DISRUPTION_BUDGETS, budget, budget.status, failed, optimistic=True)
            if isinstance(error.__cause__, ApiError | Unreachable):
                raise error.__cause__ from None
            return None
        disrupted = disrupted_pods(budget, pods, now)
        for pod in disrupted.overdue:
            words = f"Pod was expected by PDB {budget.namespace}/{budget.namespace} to be deleted but it wasn't"
            self._events.event(pod, "Warning", "NotDeleted", words)
        healthy = count_healthy(pods, disrupted.pods, now)
        status = budget_status(budget, expected, healthy, disrupted.pods, now.replace(microsecond=0))
        await self.write_status(POD_DISRUPTION_BUDGETS, budget, budget.status, status, optimistic=True)
        return Result((disrupted.recheck - now).total_seconds() if disrupted.recheck is not None else None)

    async def _scale(self, budget: PodDisruptionBudget, pods: Sequence[Pod]) -> int:
        """The sizes of everything that controls these pods, together."""
        sizes: dict[str, int] = {}
        unmanaged = False
        for pod in pods:
            reference = controller_of(pod)
            if reference is None:
                unmanaged = True
            elif reference.uid not in sizes:
                owner, size = await self._size_of(pod, reference)
                sizes[owner] = size
                sizes.setdefault(reference.uid, 0)
        if unmanaged:
            words = _UNMANAGED.format(format_selector(budget.spec.selector))
            self._events.event(budget, "Warning", "UnmanagedPods", words)
        return sum(sizes.values())

    async def _size_of(self, pod: Pod, reference: OwnerReference) -> tuple[str, int]:
        """The uid and size of what controls a pod: its deployment rather than its replica set."""
        struct = _OWNERS.get(reference.kind)
        found = self.lister(struct).named(reference.name, pod.namespace) if struct is not None else None
        if found is not None and found.uid == reference.uid:
            above = controller_of(found)
            if reference.kind == REPLICASETS.name and above is not None and above.kind == DEPLOYMENTS.name:
                deployment = self.lister(Deployment).named(above.name, pod.namespace)
                if deployment is not None and deployment.uid == above.uid:
                    return deployment.uid, _replicas(deployment)
            return found.uid, _replicas(found)
        if struct is not None:
            raise _Uncountable(f'found no controllers for pod "{pod.name}"')
        return await self._scale_of_custom(pod, reference)

    async def _scale_of_custom(self, pod: Pod, reference: OwnerReference) -> tuple[str, int]:
        """The size of an owner of any other kind, by its scale subresource."""
        kind: Kind[Any] | None = (await discover(self.api)).by_name.get((reference.api_version, reference.kind))
        if kind is None:
            raise _Uncountable(f'no matches for kind "{reference.kind}" in version "{reference.api_version}"')
        try:
            scale = await self.api.get_scale(kind, reference.name, pod.namespace)
        except NotFound:
            raise _Uncountable(f"{kind.resource} does not implement the scale subresource") from None
        except (ApiError, Unreachable) as error:
            raise _Uncountable(error.status.message if isinstance(error, ApiError) else str(error)) from error
        if scale.uid != reference.uid:
            raise _Uncountable(f'found no controllers for pod "{pod.name}"')
        return scale.uid, scale.spec.replicas

    async def _clear_stale_mark(self, key: Key) -> Result | None:
        """Set a mark to False when its time has come; it is looked at again if it has not."""
        pod, now = self.lister(Pod).get(key), self.now()
        seconds = stale_disruption_seconds(pod, now) if pod is not None else None
        if pod is None or seconds is None:
            return None
        if seconds > 0:
            return Result(seconds)
        cleared = PodCondition(type=DISRUPTION_TARGET, status="False", last_transition_time=now.replace(microsecond=0))
        others = tuple(item for item in pod.status.conditions if item.type != DISRUPTION_TARGET)
        old, new = PodStatus(conditions=pod.status.conditions), PodStatus(conditions=(*others, cleared))
        await self.write_status(PODS, pod, old, new, optimistic=True)
        return None


def _replicas(owner: Any) -> int:
    return 1 if owner.spec.replicas is None else int(owner.spec.replicas)
