"""The binder's shell: reads, plans, writes.

Everything that is written names the version it was decided on, so that two workers, or the scheduler and the binder,
never give one volume to two claims.

Source: pkg/controller/volume/persistentvolume/pv_controller.go, v1.36.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from skysail.api.core import Pod
from skysail.api.errors import NotFound
from skysail.api.kinds import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from skysail.api.storage import (
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimStatus,
    PersistentVolumeStatus,
    StorageClass,
)
from skysail.api.volumes import BIND_COMPLETED, BOUND, STORAGE_PROVISIONER, claim_class, pod_claims, volume_class
from skysail.controller.controller import Result
from skysail.controller.watches import Added, Deleted, For, Watch, Watches
from skysail.controllers.builtin import BuiltinController
from skysail.controllers.patches import merge_difference
from skysail.controllers.volumes.plan import (
    Bind,
    Lose,
    Provision,
    Stock,
    UseClass,
    Wait,
    bound_claim,
    bound_status,
    bound_volume,
    lost_status,
    pending_status,
    plan_claim,
    plan_volume,
)
from skysail.informer.keys import Key

UNBOUND_BY_CLASS = "unbound-by-class"
PODS_BY_CLAIM = "pods-by-claim"
VOLUMES = "by-claim-or-class"
_BETA_PROVISIONER = "volume.beta.kubernetes.io/storage-provisioner"


class VolumeBinderController(BuiltinController):
    """Binds claims to volumes. Keys with a namespace are claims, those without are volumes."""

    name = "persistentvolume-binder"
    workers = 4

    @property
    def watches(self) -> Sequence[Watch[Any]]:
        """Claims and volumes, each for the other too, and classes for claims that wait for one."""
        return (
            For(PersistentVolumeClaim),
            Watches(PersistentVolumeClaim, map=_volume_of),
            Watches(PersistentVolume, map=lambda volume: (Key("", volume.name),)),
            Watches(PersistentVolume, map=self._waiting_for_volume),
            Watches(PersistentVolume, on=(Deleted,), map=_claim_of),
            Watches(StorageClass, on=(Added,), map=lambda storage_class: self._waiting_in(storage_class.name, "")),
        )

    def setup(self) -> None:
        """Make unbound claims found by class, volumes by claim or class, and pods by claim."""
        self.informer(PersistentVolumeClaim).add_indexes({UNBOUND_BY_CLASS: index_unbound_by_class})
        self.informer(PersistentVolume).add_indexes({VOLUMES: _claim_or_class})
        self.informer(Pod).add_indexes({PODS_BY_CLAIM: index_by_claim})

    async def reconcile(self, key: Key) -> Result | None:
        """Look after one claim or one volume."""
        if key.namespace:
            claim = self.lister(PersistentVolumeClaim).get(key)
            if claim is not None:
                await self._look_after_claim(claim)
        else:
            volume = self.lister(PersistentVolume).get(key)
            if volume is not None:
                await self._look_after_volume(volume)
        return None

    # -- claims ----------------------------------------------------------------------------------------------------

    async def _look_after_claim(self, claim: PersistentVolumeClaim) -> None:
        action = plan_claim(claim, self._stock(claim))
        match action:
            case Bind(volume):
                await self._bind(claim, volume)
            case Provision(storage_class):
                await self._ask_provisioner(claim, storage_class)
            case UseClass(name):
                await self._patch_claim(claim, {"spec": {"storageClassName": name}})
            case Wait(type, reason, message):
                if reason:
                    self.recorder.event(claim, type, reason, message)
                await self._write_claim_status(claim, pending_status(claim.status))
            case Lose(reason, message):
                lost = lost_status(claim.status)
                if not await self._is_volume_there(claim) and await self._write_claim_status(claim, lost):
                    self.recorder.event(claim, "Warning", reason, message)

    def _stock(self, claim: PersistentVolumeClaim) -> Stock:
        volumes, name = self.lister(PersistentVolume), claim.spec.volume_name
        promised = volumes.by_index(VOLUMES, f"claim/{claim.key}")
        free = volumes.by_index(VOLUMES, class_index(claim_class(claim)))
        pods = self.lister(Pod).by_index(PODS_BY_CLAIM, claim.key)
        return Stock(
            volumes.named(name) if name else None,
            promised + free,
            {storage_class.name: storage_class for storage_class in self.lister(StorageClass).list()},
            tuple(sorted(pod.name for pod in pods if not pod.spec.node_name)),
        )

    async def _bind(self, claim: PersistentVolumeClaim, volume: PersistentVolume) -> None:
        """Write both sides, the volume first."""
        volume = await self._write_volume(volume, bound_volume(volume, claim))
        await self._write_phase(volume, BOUND)
        named = bound_claim(claim, volume)
        if named is not claim:
            claim = await self._patch_claim(claim, merge_difference(claim, named))
        await self._write_claim_status(claim, bound_status(claim.status, volume))

    async def _ask_provisioner(self, claim: PersistentVolumeClaim, storage_class: StorageClass) -> None:
        name = storage_class.provisioner
        if claim.metadata.annotations.get(STORAGE_PROVISIONER) == name:
            return
        annotations = {STORAGE_PROVISIONER: name, _BETA_PROVISIONER: name}
        await self._patch_claim(claim, {"metadata": {"annotations": annotations}})
        self.recorder.event(
            claim, "Normal", "ExternalProvisioning",
            f"Waiting for a volume to be created either by the external provisioner '{name}' or manually by the system "
            "administrator. If volume creation is delayed, please verify that the provisioner is running and correctly "
            "registered.",
        )  # fmt: skip

    async def _is_volume_there(self, claim: PersistentVolumeClaim) -> bool:
        """Whether the server knows the claim's volume although the cache does not (yet)."""
        name = claim.spec.volume_name
        if not name or self.lister(PersistentVolume).named(name) is not None:
            return False
        try:
            await self.api.get(PERSISTENT_VOLUMES, name)
        except NotFound:
            return False
        self.enqueue(Key(claim.namespace, claim.name), after_seconds=1.0)
        return True

    async def _patch_claim(self, claim: PersistentVolumeClaim, patch: dict[str, Any]) -> PersistentVolumeClaim:
        metadata = {**patch.get("metadata", {}), "resourceVersion": claim.metadata.resource_version}
        return await self.api.patch(
            PERSISTENT_VOLUME_CLAIMS, claim.name, claim.namespace, {**patch, "metadata": metadata}
        )

    async def _write_claim_status(self, claim: PersistentVolumeClaim, new: PersistentVolumeClaimStatus) -> bool:
        return await self.write_status(PERSISTENT_VOLUME_CLAIMS, claim, claim.status, new)

    # -- volumes ---------------------------------------------------------------------------------------------------

    async def _look_after_volume(self, volume: PersistentVolume) -> None:
        plan = plan_volume(volume, await self._claim_named_by(volume))
        if plan.unbound is not None:
            volume = await self._write_volume(volume, plan.unbound)
        await self._write_phase(volume, plan.phase)
        if plan.wakes_claim:
            for key in _claim_of(volume):
                self.enqueue(key)

    async def _claim_named_by(self, volume: PersistentVolume) -> PersistentVolumeClaim | None:
        """The claim a volume names. Before it is taken for gone, or another, the server is asked."""
        ref = volume.spec.claim_ref
        if ref is None or not ref.uid:
            return None
        claim = self.lister(PersistentVolumeClaim).get(Key(ref.namespace, ref.name))
        if claim is not None and claim.uid == ref.uid:
            return claim
        try:
            return await self.api.get(PERSISTENT_VOLUME_CLAIMS, ref.name, ref.namespace)
        except NotFound:
            return None

    async def _write_volume(self, old: PersistentVolume, new: PersistentVolume) -> PersistentVolume:
        difference = merge_difference(old, new)
        if not difference:
            return old
        metadata = {**difference.get("metadata", {}), "resourceVersion": old.metadata.resource_version}
        return await self.api.patch(PERSISTENT_VOLUMES, old.name, "", {**difference, "metadata": metadata})

    async def _write_phase(self, volume: PersistentVolume, phase: str) -> None:
        if volume.status.phase != phase:
            new = PersistentVolumeStatus(phase=phase)
            await self.write_status(PERSISTENT_VOLUMES, volume, volume.status, new)

    # -- what wakes whom -------------------------------------------------------------------------------------------

    def _waiting_for_volume(self, volume: PersistentVolume) -> Iterable[Key]:
        """Claims that might take a volume: the one it names, or any unbound one of its class."""
        if volume.spec.claim_ref is not None:
            return _claim_of(volume)
        return self._waiting_in(volume_class(volume))

    def _waiting_in(self, *classes: str) -> Iterable[Key]:
        lister = self.lister(PersistentVolumeClaim)
        return [
            Key(claim.namespace, claim.name)
            for name in classes
            for claim in lister.by_index(UNBOUND_BY_CLASS, class_index(name))
        ]


def _volume_of(claim: PersistentVolumeClaim) -> Iterable[Key]:
    return (Key("", claim.spec.volume_name),) if claim.spec.volume_name else ()


def _claim_of(volume: PersistentVolume) -> Iterable[Key]:
    ref = volume.spec.claim_ref
    return (Key(ref.namespace, ref.name),) if ref is not None else ()


def index_unbound_by_class(claim: PersistentVolumeClaim) -> Iterable[str]:
    """The class of a claim whose binding is not complete."""
    return () if BIND_COMPLETED in claim.metadata.annotations else (class_index(claim_class(claim)),)


def _claim_or_class(volume: PersistentVolume) -> Iterable[str]:
    """The claim a volume names; the class of one that is free."""
    ref = volume.spec.claim_ref
    return (f"claim/{ref.namespace}/{ref.name}" if ref is not None else class_index(volume_class(volume)),)


def class_index(name: str) -> str:
    """The value under which a class is indexed; the empty name is one too."""
    return f"class/{name}"


def index_by_claim(pod: Pod) -> Iterable[str]:
    """`namespace/name` of the claims a pod mounts."""
    return [f"{pod.namespace}/{name}" for name, _ in pod_claims(pod)]
