"""What a pod's claims need of a node: the plain form, one node at a time.

    claim                                          what it needs
    ─────────────────────────────────────────────  ────────────────────────────────────────────────────────────────────
    bound                                          its volume's node affinity
    unbound, of a class that waits, node selected  that node, and there a class that can provision
    unbound, of a class that waits                 a free volume that suits, or else a class that can provision
    unbound, of any other class                    to be bound by the volume binder first: PreFilter refuses

Read `ClaimReader.sort` and `PodClaims.find`. The table form, `skysail.scheduler.plugins.volume_rows`, says the same.

Source: pkg/scheduler/framework/plugins/volumebinding/binder.go, v1.36.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntFlag
from typing import Final

from skysail.api.core import Pod
from skysail.api.kinds import CSI_DRIVERS, CSI_NODES, CSI_STORAGE_CAPACITIES, STORAGE_CLASSES
from skysail.api.labels import Selector
from skysail.api.node import Node
from skysail.api.quantity import parse_quantity
from skysail.api.storage import CSIStorageCapacity, PersistentVolume, PersistentVolumeClaim, StorageClass
from skysail.api.volumes import (
    LOST,
    NO_PROVISIONER,
    SELECTED_NODE,
    WAIT_FOR_FIRST_CONSUMER,
    admits_labels,
    admits_topology,
    best_volume,
    candidates,
    claim_class,
    is_fully_bound,
    not_for_pod,
    pod_claims,
    requested_storage,
    storage_size,
    volume_class,
)
from skysail.scheduler.cache.assume_cache import AssumeCache
from skysail.scheduler.framework.handle import Handle
from skysail.scheduler.framework.status import Status
from skysail.scheduler.plugins.csi_translation import TranslationError, is_migrated_on, migration_of, translated

UNBOUND_IMMEDIATE: Final = Status.unresolvable("pod has unbound immediate PersistentVolumeClaims")


class Conflict(IntFlag):
    """Why a node will not do, in the order in which reasons are told."""

    NODE = 1
    BIND = 2
    SPACE = 4
    MISSING = 8


NO_CONFLICT: Final = Conflict(0)
_REASONS: Final = {
    Conflict.NODE: "node(s) didn't match PersistentVolume's node affinity",
    Conflict.BIND: "node(s) didn't find available persistent volumes to bind",
    Conflict.SPACE: "node(s) did not have enough free storage",
    Conflict.MISSING: "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
}
STATUSES: Final = tuple(
    Status.unresolvable(*(reason for conflict, reason in _REASONS.items() if bits & conflict)) for bits in range(16)
)
"""The refusal for each combination of conflicts; the first is none."""


@dataclass(frozen=True, slots=True)
class Binding:
    """A claim and the volume it gets."""

    claim: PersistentVolumeClaim
    volume: PersistentVolume


@dataclass(frozen=True, slots=True)
class Provision:
    """A claim whose volume is to be made, and what says that there is room for it, if anything does."""

    claim: PersistentVolumeClaim
    capacity: CSIStorageCapacity | None = None


@dataclass(frozen=True, slots=True)
class PodVolumes:
    """What a pod's unbound claims get on one node, or why they get nothing."""

    static: tuple[Binding, ...] = ()
    provision: tuple[Provision, ...] = ()
    conflicts: Conflict = NO_CONFLICT


@dataclass(frozen=True, slots=True)
class Choice:
    """An unbound claim and its candidates (see `skysail.api.volumes.candidates`), wherever they may be used."""

    claim: PersistentVolumeClaim
    promised: PersistentVolume | None
    free: Sequence[PersistentVolume]


@dataclass(frozen=True, slots=True)
class Source:
    """The class that makes a claim's volume.

    Attributes:
        claim: The claim.
        storage_class: Its class.
        capacities: Room for a volume of this size, each where its topology says; None when nobody keeps account.
    """

    claim: PersistentVolumeClaim
    storage_class: StorageClass
    capacities: Sequence[CSIStorageCapacity] | None

    @property
    def can_provision(self) -> bool:
        """Whether the class makes volumes at all."""
        return self.storage_class.provisioner not in ("", NO_PROVISIONER)


class VolumeError(ValueError):
    """A volume or claim cannot be read."""


@dataclass(frozen=True, slots=True)
class PodClaims:
    """A pod's claims, sorted, with everything a node is measured by.

    Attributes:
        bound: For each bound claim its volume, None when that does not exist.
        selected: Claims whose node was selected before, and that node.
        choices: Claims that take a free volume, the smallest first.
        sources: By claim name, what makes a volume for the unbound ones.
        reader: Where CSINodes are read.
    """

    bound: Sequence[PersistentVolume | None]
    selected: Sequence[tuple[PersistentVolumeClaim, str]]
    choices: Sequence[Choice]
    sources: Mapping[str, Source]
    reader: "ClaimReader"

    def find(self, node: Node) -> PodVolumes:
        """What the claims get on a node.

        Raises:
            VolumeError: A volume cannot be read.
        """
        conflicts = self._bound_conflict(node)
        if any(name != node.metadata.name for _, name in self.selected):
            return PodVolumes(conflicts=conflicts | Conflict.BIND)
        labels = node.metadata.labels
        static: list[Binding] = []
        to_provision = [claim for claim, _ in self.selected]
        taken: set[str] = set()
        for choice in self.choices:
            volume = best_volume(choice.promised, choice.free, labels, taken)
            if volume is None:
                to_provision.append(choice.claim)
            else:
                taken.add(volume.metadata.name)
                static.append(Binding(choice.claim, volume))
        provision: list[Provision] = []
        for claim in to_provision:
            source = self.sources[claim.metadata.name]
            if not source.can_provision or not admits_topology(source.storage_class, labels):
                conflicts |= Conflict.BIND
                break
            capacity = self._capacity(source, labels)
            if source.capacities is not None and capacity is None:
                conflicts |= Conflict.SPACE
                break
            provision.append(Provision(claim, capacity))
        return PodVolumes(conflicts=conflicts) if conflicts else PodVolumes(tuple(static), tuple(provision))

    def _bound_conflict(self, node: Node) -> Conflict:
        for volume in self.bound:
            if volume is None:
                return Conflict.MISSING
            if not admits_labels(self.reader.as_on(volume, node.metadata.name), node.metadata.labels):
                return Conflict.NODE
        return NO_CONFLICT

    @staticmethod
    def _capacity(source: Source, labels: Mapping[str, str]) -> CSIStorageCapacity | None:
        return next((each for each in source.capacities or () if is_reachable(each, labels)), None)


def is_reachable(capacity: CSIStorageCapacity, labels: Mapping[str, str]) -> bool:
    """Whether storage can be used from a node with these labels."""
    try:
        return capacity.node_topology is not None and topology_selector(capacity).matches(labels)
    except ValueError:
        return False


def topology_selector(capacity: CSIStorageCapacity) -> Selector:
    """The nodes from which storage can be used.

    Raises:
        ValueError: The selector cannot be read.
    """
    return Selector.from_label_selector(capacity.node_topology)


class ClaimReader:
    """Sorts the claims of pods.

    Args:
        handle: Where classes, drivers and capacities are read.
        claims: Claims, assumed ones on top.
        volumes: Volumes, assumed ones on top.
    """

    def __init__(
        self, handle: Handle, claims: AssumeCache[PersistentVolumeClaim], volumes: AssumeCache[PersistentVolume]
    ) -> None:
        self._claims, self._volumes = claims, volumes
        self._find_volumes = volumes.indexed("claim-or-class", _claim_or_class)
        self._classes = handle.lister(STORAGE_CLASSES)
        self._csi_nodes = handle.lister(CSI_NODES)
        self._drivers = handle.lister(CSI_DRIVERS)
        self._capacities = handle.lister(CSI_STORAGE_CAPACITIES)

    def refusal(self, pod: Pod) -> Status | None:
        """Why the pod cannot go anywhere as its claims are: missing, lost, being deleted, or another pod's."""
        for name, is_ephemeral in pod_claims(pod):
            claim = self._claims.stored(pod.metadata.namespace, name)
            if claim is None:
                missing = f'persistentvolumeclaim "{name}"'
                return Status.unresolvable(
                    f"waiting for ephemeral volume controller to create the {missing}"
                    if is_ephemeral
                    else f"{missing} not found"
                )
            if claim.status.phase == LOST:
                return Status.unresolvable(
                    f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{claim.spec.volume_name}"'
                )
            if claim.metadata.deletion_timestamp is not None:
                return Status.unresolvable(f'persistentvolumeclaim "{name}" is being deleted')
            if is_ephemeral and (why := not_for_pod(pod, claim)):
                return Status.unresolvable(why)
        return None

    def sort(self, pod: Pod) -> PodClaims | Status:
        """The pod's claims by what they need, or why it must wait, whatever the node.

        Raises:
            VolumeError: A class or a claim's selector cannot be read.
        """
        bound: list[PersistentVolumeClaim] = []
        delayed: list[PersistentVolumeClaim] = []
        must_wait = False
        for name, _ in pod_claims(pod):
            claim = self._claims.get(pod.metadata.namespace, name)
            assert claim is not None, "`refusal` was asked first"
            if is_fully_bound(claim):
                bound.append(claim)
            elif self._waits_for_consumer(claim) and not claim.spec.volume_name:
                delayed.append(claim)
            else:
                must_wait = True
        if must_wait:
            return UNBOUND_IMMEDIATE
        selected = [
            (claim, claim.metadata.annotations[SELECTED_NODE])
            for claim in delayed
            if SELECTED_NODE in claim.metadata.annotations
        ]
        return PodClaims(
            [self._volumes.get("", claim.spec.volume_name) for claim in bound],
            selected,
            self._choices([claim for claim in delayed if SELECTED_NODE not in claim.metadata.annotations]),
            {claim.metadata.name: self._source(claim) for claim in delayed},
            self,
        )

    def all_bound(self, pod: Pod) -> bool:
        """Whether nothing is left to do for any claim."""
        found = [self._claims.get(pod.metadata.namespace, name) for name, _ in pod_claims(pod)]
        return all(claim is not None and is_fully_bound(claim) for claim in found)

    def as_on(self, volume: PersistentVolume, node_name: str) -> PersistentVolume:
        """A volume as a node sees it: an in-tree disk whose plugin was taken over there, in its driver's words.

        Raises:
            VolumeError: The driver has no words for it.
        """
        migration = migration_of(volume.spec)
        if migration is None or not is_migrated_on(migration, self._csi_nodes.get("", node_name)):
            return volume
        try:
            return translated(volume, migration)
        except TranslationError as error:
            raise VolumeError(f"could not translate pv: {error}") from error

    def _waits_for_consumer(self, claim: PersistentVolumeClaim) -> bool:
        name = claim_class(claim)
        storage_class = self._classes.get("", name) if name else None
        if storage_class is None:
            return False
        if storage_class.volume_binding_mode is None:
            raise VolumeError(f'VolumeBindingMode not set for StorageClass "{name}"')
        return storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER

    def _choices(self, claims: list[PersistentVolumeClaim]) -> list[Choice]:
        if not claims:
            return []
        by_class = {name: self._find_volumes(f"class/{name}") for name in map(claim_class, claims)}
        choices = []
        for claim in sorted(claims, key=storage_size):
            try:
                choices.append(
                    Choice(claim, *candidates(claim, (*self._promised(claim), *by_class[claim_class(claim)])))
                )
            except ValueError as error:
                raise VolumeError(f"error creating internal label selector for claim: {claim.key}: {error}") from error
        return choices

    def _promised(self, claim: PersistentVolumeClaim) -> Iterable[PersistentVolume]:
        name = claim_class(claim)
        return (each for each in self._find_volumes(f"claim/{claim.key}") if volume_class(each) == name)

    def _source(self, claim: PersistentVolumeClaim) -> Source:
        storage_class = self._classes.get("", claim_class(claim))
        assert storage_class is not None, "only claims of a class wait for a consumer"
        return Source(claim, storage_class, self._rooms(claim, storage_class))

    def _rooms(self, claim: PersistentVolumeClaim, storage_class: StorageClass) -> list[CSIStorageCapacity] | None:
        """Storage with enough room for the claim; None when its driver keeps no account."""
        size = requested_storage(claim)
        driver = self._drivers.get("", storage_class.provisioner) if size is not None else None
        if size is None or driver is None or not driver.spec.storage_capacity:
            return None
        wanted = size.value()
        return [
            capacity
            for capacity in self._capacities.list()
            if capacity.storage_class_name == storage_class.metadata.name
            and (limit := volume_limit(capacity)) is not None
            and limit >= wanted
        ]


def _claim_or_class(volume: PersistentVolume) -> Iterable[str]:
    """The claim a volume names; the class of one that is free."""
    ref = volume.spec.claim_ref
    return (f"claim/{ref.namespace}/{ref.name}" if ref is not None else f"class/{volume_class(volume)}",)


def volume_limit(capacity: CSIStorageCapacity) -> int | None:
    """The largest volume that can be made, in bytes; None when storage says nothing."""
    text = capacity.maximum_volume_size or capacity.capacity
    return parse_quantity(text).value() if text else None
