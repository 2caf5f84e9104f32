"""What becomes of a claim, and of a volume. A claim and its volume name each other; the volume is written first.

    claim     pending ─ a volume suits ─▶ bound ─ the volume is gone, or another's ─▶ lost, for good
                 └─ none does ─▶ a class that makes volumes is told; or wait (for a pod, for an administrator)
    volume    available ─ a claim takes it ─▶ bound ─ the claim is gone ─▶ released

Source: pkg/controller/volume/persistentvolume/pv_controller.go, v1.36. Differs: what is released is not recycled, and
deleted only by who made it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from skysail.api.storage import PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimStatus, StorageClass
from skysail.api.volumes import (
    AVAILABLE,
    BETA_STORAGE_CLASS,
    BIND_COMPLETED,
    BOUND,
    BOUND_BY_CONTROLLER,
    DEFAULT_CLASS,
    LOST,
    NO_PROVISIONER,
    PENDING,
    PROVISIONED_BY,
    RELEASED,
    SELECTED_NODE,
    WAIT_FOR_FIRST_CONSUMER,
    candidates,
    claim_class,
    claim_reference,
    is_bound_to,
    storage_capacity,
    storage_size,
    volume_class,
    with_annotation,
    without_annotation,
)

FAILED: Final = "Failed"
DELETE: Final = "Delete"
_BETA_DEFAULT: Final = "storageclass.beta.kubernetes.io/is-default-class"


@dataclass(frozen=True, slots=True)
class Bind:
    """Give the claim this volume."""

    volume: PersistentVolume


@dataclass(frozen=True, slots=True)
class Provision:
    """Have this class make a volume."""

    storage_class: StorageClass


@dataclass(frozen=True, slots=True)
class UseClass:
    """The claim names no class and there is a default one now."""

    name: str


@dataclass(frozen=True, slots=True)
class Wait:
    """The claim stays pending; an Event says why, unless there is nothing to say."""

    type: str = "Normal"
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Lose:
    """The claim has lost its volume."""

    reason: str
    message: str


ClaimAction = Bind | Provision | UseClass | Wait | Lose


@dataclass(frozen=True, slots=True)
class Stock:
    """What a claim is measured against.

    Attributes:
        named: The volume that the claim names, if there is one.
        volumes: Those promised to the claim, and free ones of its class.
        classes: Classes by name.
        unscheduled: Names of the pods that mount the claim and have no node yet.
    """

    named: PersistentVolume | None
    volumes: Sequence[PersistentVolume]
    classes: Mapping[str, StorageClass]
    unscheduled: tuple[str, ...] = ()


def plan_claim(claim: PersistentVolumeClaim, stock: Stock) -> ClaimAction:
    """What becomes of a claim.

    Raises:
        ValueError: The claim's selector cannot be read.
    """
    if BIND_COMPLETED in claim.metadata.annotations:
        return _plan_bound(claim, stock)
    if claim.spec.volume_name:
        return _plan_requested(claim, stock.named)
    storage_class = stock.classes.get(claim_class(claim))
    waits = storage_class is not None and storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
    volume = best_match(claim, stock.volumes, only_promised=waits)
    return Bind(volume) if volume is not None else _plan_without_volume(claim, storage_class, stock, waits=waits)


def _plan_bound(claim: PersistentVolumeClaim, stock: Stock) -> ClaimAction:
    if not claim.spec.volume_name:
        return Lose("ClaimLost", "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!")
    volume = stock.named
    if volume is None:
        return Lose("ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!")
    ref = volume.spec.claim_ref
    if ref is None or ref.uid == claim.metadata.uid:
        return Bind(volume)
    return Lose("ClaimMisbound", "Two claims are bound to the same volume, this one is bound incorrectly")


def _plan_requested(claim: PersistentVolumeClaim, volume: PersistentVolume | None) -> ClaimAction:
    """The claim names its volume."""
    if volume is None:
        return Wait()
    if volume.spec.claim_ref is None:
        why = mismatch(volume, claim)
        if why:
            return Wait("Warning", "VolumeMismatch", f'Cannot bind to requested volume "{volume.name}": {why}')
        return Bind(volume)
    if is_bound_to(volume, claim):
        return Bind(volume)
    return Wait("Warning", "FailedBinding", f'volume "{volume.name}" already bound to a different claim.')


def _plan_without_volume(
    claim: PersistentVolumeClaim, storage_class: StorageClass | None, stock: Stock, *, waits: bool
) -> ClaimAction:
    if claim.spec.storage_class_name is None and BETA_STORAGE_CLASS not in claim.metadata.annotations:
        name = default_class(stock.classes.values())
        if name:
            return UseClass(name)
    if waits and SELECTED_NODE not in claim.metadata.annotations:
        return _waiting_for_pod(stock.unscheduled)
    name = claim_class(claim)
    if not name:
        return Wait(
            "Normal", "FailedBinding", "no persistent volumes available for this claim and no storage class is set"
        )
    if storage_class is None:
        return Wait("Warning", "ProvisioningFailed", f'storageclass.storage.k8s.io "{name}" not found')
    if storage_class.provisioner in ("", NO_PROVISIONER):
        return Wait("Warning", "ProvisioningFailed", f"no volume plugin matched name: {storage_class.provisioner}")
    return Provision(storage_class)


def _waiting_for_pod(pods: tuple[str, ...]) -> Wait:
    if not pods:
        return Wait("Normal", "WaitForFirstConsumer", "waiting for first consumer to be created before binding")
    word = "pod" if len(pods) == 1 else "pods"
    return Wait("Normal", "WaitForPodScheduled", f"waiting for {word} {','.join(pods)} to be scheduled")


def best_match(
    claim: PersistentVolumeClaim, volumes: Iterable[PersistentVolume], *, only_promised: bool
) -> PersistentVolume | None:
    """The volume a claim should get: the promised one, else of those with the fewest access modes the smallest.

    Args:
        claim: An unbound claim.
        volumes: To choose from.
        only_promised: Whether free volumes are the scheduler's to give.

    Raises:
        ValueError: The claim's selector cannot be read.
    """
    by_modes: dict[frozenset[str], list[PersistentVolume]] = {}
    wanted = frozenset(claim.spec.access_modes)
    for volume in volumes:
        modes = frozenset(volume.spec.access_modes)
        if wanted <= modes:
            by_modes.setdefault(modes, []).append(volume)
    for modes in sorted(by_modes, key=lambda modes: (len(modes), sorted(modes))):
        promised, free = candidates(claim, by_modes[modes])
        if promised is not None:
            return promised
        if free and not only_promised:
            return free[0]
    return None


def mismatch(volume: PersistentVolume, claim: PersistentVolumeClaim) -> str:
    """Why a volume that a claim asks for by name does not do; empty when it does."""
    wanted, offered = claim.spec, volume.spec
    if volume.metadata.deletion_timestamp is not None:
        return f'the volume is marked for deletion "{volume.name}"'
    if storage_capacity(volume).value() < storage_size(claim).value():
        return "requested PV is too small"
    if volume_class(volume) != claim_class(claim):
        return "storageClassName does not match"
    if (wanted.volume_attributes_class_name or "") != (offered.volume_attributes_class_name or ""):
        return "volumeAttributesClassName does not match"
    if (wanted.volume_mode or "Filesystem") != (offered.volume_mode or "Filesystem"):
        return "incompatible volumeMode"
    return "" if set(wanted.access_modes) <= set(offered.access_modes) else "incompatible accessMode"


def default_class(classes: Iterable[StorageClass]) -> str:
    """The default class: the newest of those that say they are it, then the first by name; empty when none does."""
    defaults = [
        each
        for each in classes
        if "true" in (each.metadata.annotations.get(DEFAULT_CLASS), each.metadata.annotations.get(_BETA_DEFAULT))
    ]
    return min(defaults, key=_newest_first).name if defaults else ""


def _newest_first(storage_class: StorageClass) -> tuple[float, str]:
    created = storage_class.metadata.creation_timestamp
    return -created.timestamp() if created is not None else 0.0, storage_class.name


def pending_status(status: PersistentVolumeClaimStatus) -> PersistentVolumeClaimStatus:
    """A claim that has no volume."""
    return msgspec.structs.replace(status, phase=PENDING, access_modes=(), capacity={})


def lost_status(status: PersistentVolumeClaimStatus) -> PersistentVolumeClaimStatus:
    """A claim that has lost its volume."""
    return msgspec.structs.replace(status, phase=LOST, access_modes=(), capacity={})


def bound_status(status: PersistentVolumeClaimStatus, volume: PersistentVolume) -> PersistentVolumeClaimStatus:
    """A claim that has this volume. The capacity is told once: whoever lets the claim grow tells it then."""
    capacity = volume.spec.capacity if status.phase != BOUND else status.capacity
    return msgspec.structs.replace(status, phase=BOUND, access_modes=volume.spec.access_modes, capacity=capacity)


# -- volumes ---------------------------------------------------------------------------------------------------------


def bound_volume(volume: PersistentVolume, claim: PersistentVolumeClaim) -> PersistentVolume:
    """The volume once it names the claim; the same object when it does so already."""
    if not is_bound_to(volume, claim):
        volume = with_annotation(volume, BOUND_BY_CONTROLLER, "yes")
    ref, metadata = volume.spec.claim_ref, claim.metadata
    if ref is not None and (ref.namespace, ref.name, ref.uid) == (metadata.namespace, metadata.name, metadata.uid):
        return volume
    return msgspec.structs.replace(volume, spec=msgspec.structs.replace(volume.spec, claim_ref=claim_reference(claim)))


def bound_claim(claim: PersistentVolumeClaim, volume: PersistentVolume) -> PersistentVolumeClaim:
    """The claim once it names the volume; the same object when it does so already."""
    if claim.spec.volume_name != volume.name:
        claim = with_annotation(claim, BOUND_BY_CONTROLLER, "yes")
        claim = msgspec.structs.replace(claim, spec=msgspec.structs.replace(claim.spec, volume_name=volume.name))
    return claim if BIND_COMPLETED in claim.metadata.annotations else with_annotation(claim, BIND_COMPLETED, "yes")


@dataclass(frozen=True, slots=True)
class VolumePlan:
    """What becomes of a volume.

    Attributes:
        phase: What its status should say.
        unbound: The volume without its claim, where that has another one.
        wakes_claim: Whether its claim should be looked at.
    """

    phase: str
    unbound: PersistentVolume | None = None
    wakes_claim: bool = False


def plan_volume(volume: PersistentVolume, claim: PersistentVolumeClaim | None) -> VolumePlan:
    """What becomes of a volume.

    Args:
        volume: The volume.
        claim: The one it names, None when that is gone.
    """
    ref = volume.spec.claim_ref
    if ref is None or not ref.uid:
        return VolumePlan(AVAILABLE, wakes_claim=ref is not None)
    released = volume.status.phase if volume.status.phase in (RELEASED, FAILED) else RELEASED
    if claim is None or claim.metadata.uid != ref.uid:
        return VolumePlan(released)
    if not claim.spec.volume_name:
        return VolumePlan(volume.status.phase, wakes_claim=True)
    if claim.spec.volume_name == volume.name:
        return VolumePlan(BOUND)
    if PROVISIONED_BY in volume.metadata.annotations and volume.spec.persistent_volume_reclaim_policy == DELETE:
        return VolumePlan(released)
    return VolumePlan(AVAILABLE, unbound=_unbound(volume))


def _unbound(volume: PersistentVolume) -> PersistentVolume:
    """Whom we bound is free; whom its maker promised is still promised."""
    if BOUND_BY_CONTROLLER in volume.metadata.annotations:
        volume = without_annotation(volume, BOUND_BY_CONTROLLER)
        return msgspec.structs.replace(volume, spec=msgspec.structs.replace(volume.spec, claim_ref=None))
    assert volume.spec.claim_ref is not None
    promised = msgspec.structs.replace(volume.spec.claim_ref, uid="")
    return msgspec.structs.replace(volume, spec=msgspec.structs.replace(volume.spec, claim_ref=promised))
