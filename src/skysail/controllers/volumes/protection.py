"""Lets claims and volumes go once nobody uses them: the finalizer that holds each is taken off.

    claim    held while a pod with a node mounts it
    volume   held while it is bound

The API server puts the finalizers on.

Source: pkg/controller/volume/{pvcprotection,pvprotection}, v1.36.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeVar

from skysail.api.core import Pod
from skysail.api.errors import NotFound
from skysail.api.kinds import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS, Kind
from skysail.api.meta import ApiObject
from skysail.api.storage import PersistentVolume, PersistentVolumeClaim
from skysail.api.volumes import BOUND, not_for_pod, pod_claims
from skysail.controller.controller import Result
from skysail.controller.watches import Added, For, ObjectEvent, Updated, Watch, Watches
from skysail.controllers.builtin import BuiltinController
from skysail.controllers.pods import is_terminal
from skysail.controllers.volumes.loop import PODS_BY_CLAIM, index_by_claim
from skysail.informer.keys import Key

CLAIM_FINALIZER: Final = "kubernetes.io/pvc-protection"
VOLUME_FINALIZER: Final = "kubernetes.io/pv-protection"
_WRITTEN = (Added, Updated)

TObject = TypeVar("TObject", bound=ApiObject)


class ProtectionController(BuiltinController):
    """What both have in common."""

    async def keep(self, kind: Kind[TObject], obj: TObject, finalizer: str, *, held: bool) -> None:
        """Put the finalizer on an object that should have it; take it off one that is to go and is not held."""
        present = finalizer in obj.metadata.finalizers
        if obj.metadata.deletion_timestamp is None and not present:
            finalizers = [*obj.metadata.finalizers, finalizer]
        elif obj.metadata.deletion_timestamp is not None and present and not held:
            finalizers = [each for each in obj.metadata.finalizers if each != finalizer]
        else:
            return
        metadata = {"resourceVersion": obj.metadata.resource_version, "finalizers": finalizers}
        try:
            await self.api.patch(kind, obj.name, obj.namespace, {"metadata": metadata})
        except NotFound:
            return


class ClaimProtectionController(ProtectionController):
    """Lets claims go."""

    name = "persistentvolumeclaim-protection"
    workers = 4

    @property
    def watches(self) -> Sequence[Watch[Any]]:
        """Claims, and pods that no longer use theirs."""
        return (
            For(PersistentVolumeClaim, on=_WRITTEN),
            Watches(Pod, map=_claims_of, predicates=(_may_free_claims,)),
        )

    def setup(self) -> None:
        """Make pods found by claim."""
        self.informer(Pod).add_indexes({PODS_BY_CLAIM: index_by_claim})

    async def reconcile(self, key: Key) -> Result | None:
        """Look after one claim's finalizer."""
        claim = self.lister(PersistentVolumeClaim).get(key)
        if claim is not None:
            held = claim.metadata.deletion_timestamp is not None and await self._is_used(claim)
            await self.keep(PERSISTENT_VOLUME_CLAIMS, claim, CLAIM_FINALIZER, held=held)
        return None

    async def _is_used(self, claim: PersistentVolumeClaim) -> bool:
        """Whether a pod uses a claim; when the cache says no, the server is asked."""
        if any(uses(pod, claim) for pod in self.lister(Pod).by_index(PODS_BY_CLAIM, claim.key)):
            return True
        pods = await self.api.list_all(PODS, claim.namespace)
        return any(uses(pod, claim) for pod in pods.items)


class VolumeProtectionController(ProtectionController):
    """Lets volumes go."""

    name = "persistentvolume-protection"
    workers = 4
    watches = (For(PersistentVolume, on=_WRITTEN),)

    async def reconcile(self, key: Key) -> Result | None:
        """Look after one volume's finalizer."""
        volume = self.lister(PersistentVolume).get(key)
        if volume is not None:
            await self.keep(PERSISTENT_VOLUMES, volume, VOLUME_FINALIZER, held=volume.status.phase == BOUND)
        return None


def uses(pod: Pod, claim: PersistentVolumeClaim) -> bool:
    """Whether a pod that has a node mounts a claim; its own ephemeral ones only until it is shut down."""
    if not pod.spec.node_name:
        return False
    for name, is_ephemeral in pod_claims(pod):
        if name == claim.name and (not is_ephemeral or (not _is_shut_down(pod) and not not_for_pod(pod, claim))):
            return True
    return False


def _is_shut_down(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is not None and pod.metadata.deletion_grace_period_seconds == 0


def _claims_of(pod: Pod) -> Iterable[Key]:
    return [Key(pod.namespace, name) for name, _ in pod_claims(pod)]


def _may_free_claims(event: ObjectEvent[Pod]) -> bool:
    """Whether the pod is gone, has ended, or has no node: a running one holds its claims anyway."""
    return event.new is None or is_terminal(event.new) or not event.new.spec.node_name or _is_shut_down(event.new)
