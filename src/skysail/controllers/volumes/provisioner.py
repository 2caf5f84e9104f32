"""Makes hollow volumes for claims that ask for them, and deletes them when they are given back.

The binder asks by an annotation on the claim, as it asks any CSI driver's provisioner; the volume made names the claim,
and the binder binds the two. Where the class waits for a consumer, the scheduler has chosen a node; a provisioner that
cannot serve it takes the choice back, and the pod is tried elsewhere.

Source: the behaviour of sigs.k8s.io/sig-storage-lib-external-provisioner.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from skysail.api.errors import AlreadyExists, NotFound
from skysail.api.kinds import NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from skysail.api.node import Node
from skysail.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from skysail.api.volumes import (
    RELEASED,
    SELECTED_NODE,
    STORAGE_PROVISIONER,
    WAIT_FOR_FIRST_CONSUMER,
    claim_class,
)
from skysail.controller.controller import Result
from skysail.controller.watches import Added, For, Updated, Watch, Watches
from skysail.controllers.builtin import BuiltinController
from skysail.controllers.volumes.loop import UNBOUND_BY_CLASS, class_index, index_unbound_by_class
from skysail.controllers.volumes.plan import DELETE
from skysail.controllers.volumes.topology import HOLLOW, WrongNode, is_hollow, new_volume
from skysail.informer.keys import Key

_WRITTEN = (Added, Updated)


class HollowProvisioner(BuiltinController):
    """Makes and deletes hollow volumes. Keys with a namespace are claims, those without are volumes."""

    name = "hollow-volume-provisioner"
    workers = 4

    @property
    def watches(self) -> Sequence[Watch[Any]]:
        """Claims that ask, classes that come, and volumes that are given back."""
        return (
            For(PersistentVolumeClaim, on=_WRITTEN),
            Watches(PersistentVolume, on=_WRITTEN, map=_key_if_released),
            Watches(StorageClass, on=_WRITTEN, map=self._waiting_in),
        )

    def setup(self) -> None:
        """Ask for nodes; make unbound claims found by class."""
        self.informer(Node)
        self.informer(PersistentVolumeClaim).add_indexes({UNBOUND_BY_CLASS: index_unbound_by_class})

    async def reconcile(self, key: Key) -> Result | None:
        """Make the volume of one claim, or delete one volume."""
        if not key.namespace:
            volume = self.lister(PersistentVolume).get(key)
            if volume is not None and _is_given_back(volume):
                await self._delete(volume)
            return None
        claim = self.lister(PersistentVolumeClaim).get(key)
        storage_class = self.lister(StorageClass).named(claim_class(claim)) if claim is not None else None
        if claim is not None and storage_class is not None and _asks(claim, storage_class):
            await self._make(claim, storage_class)
        return None

    async def _make(self, claim: PersistentVolumeClaim, storage_class: StorageClass) -> None:
        try:
            volume = new_volume(claim, storage_class, await self._chosen_node(claim))
        except WrongNode as error:
            await self._give_up(claim, storage_class, str(error))
            return
        try:
            await self.api.create(PERSISTENT_VOLUMES, volume)
        except AlreadyExists:
            return
        message = f"Successfully provisioned volume {volume.name}"
        self.recorder.event(claim, "Normal", "ProvisioningSucceeded", message)

    async def _chosen_node(self, claim: PersistentVolumeClaim) -> Node | None:
        name = claim.metadata.annotations.get(SELECTED_NODE)
        if name is None:
            return None
        node = self.lister(Node).named(name)
        if node is not None:
            return node
        try:
            return await self.api.get(NODES, name)
        except NotFound as error:
            raise WrongNode(f'node "{name}" not found') from error

    async def _give_up(self, claim: PersistentVolumeClaim, storage_class: StorageClass, why: str) -> None:
        """Take the choice of the node back."""
        message = f'failed to provision volume with StorageClass "{storage_class.name}": {why}'
        self.recorder.event(claim, "Warning", "ProvisioningFailed", message)
        metadata = {"resourceVersion": claim.metadata.resource_version, "annotations": {SELECTED_NODE: None}}
        await self.api.patch(PERSISTENT_VOLUME_CLAIMS, claim.name, claim.namespace, {"metadata": metadata})

    def _waiting_in(self, storage_class: StorageClass) -> Iterable[Key]:
        claims = self.lister(PersistentVolumeClaim).by_index(UNBOUND_BY_CLASS, class_index(storage_class.name))
        return [Key(claim.namespace, claim.name) for claim in claims]

    async def _delete(self, volume: PersistentVolume) -> None:
        try:
            await self.api.delete(PERSISTENT_VOLUMES, volume.name, uid=volume.uid)
        except NotFound:
            return


def _asks(claim: PersistentVolumeClaim, storage_class: StorageClass) -> bool:
    """Whether a claim asks this class for a hollow volume, now."""
    annotations = claim.metadata.annotations
    if claim.spec.volume_name or claim.metadata.deletion_timestamp is not None or not is_hollow(storage_class):
        return False
    if annotations.get(STORAGE_PROVISIONER) != storage_class.provisioner:
        return False
    return storage_class.volume_binding_mode != WAIT_FOR_FIRST_CONSUMER or SELECTED_NODE in annotations


def _is_given_back(volume: PersistentVolume) -> bool:
    return (
        volume.metadata.annotations.get(HOLLOW) == "true"
        and volume.status.phase == RELEASED
        and volume.spec.persistent_volume_reclaim_policy == DELETE
        and volume.metadata.deletion_timestamp is None
    )


def _key_if_released(volume: PersistentVolume) -> Iterable[Key]:
    return (Key("", volume.name),) if _is_given_back(volume) else ()
