"""The waiting half of VolumeBinding: writes what Reserve assumed, and waits until every claim has its volume.

A claim that takes a free volume: the volume is promised to it, and the volume binder does the rest. A claim whose
volume is to be made: it is told the node, and its provisioner makes one there. Whoever cannot do so says so by taking
the node back from the claim, and the pod is tried again.

What was written is never undone here: it stays assumed until the watch has shown it.

Source: pkg/scheduler/framework/plugins/volumebinding/binder.go (BindPodVolumes), v1.36. Differs: looks at once and
then after ever longer pauses, up to a second, where upstream looks every second.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec

from skysail.api.core import Pod
from skysail.api.errors import ApiError, Unreachable
from skysail.api.kinds import NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from skysail.api.meta import ApiObject
from skysail.api.storage import PersistentVolume, PersistentVolumeClaim
from skysail.api.volumes import BOUND_BY_CONTROLLER, SELECTED_NODE, admits_labels, is_fully_bound
from skysail.scheduler.cache.assume_cache import AssumeCache
from skysail.scheduler.framework.handle import Handle, ObjectWriter
from skysail.scheduler.framework.status import SUCCESS, Status
from skysail.scheduler.plugins.volume_claims import ClaimReader, VolumeError

FIRST_PAUSE_SECONDS: Final = 0.02
LONGEST_PAUSE_SECONDS: Final = 1.0


@dataclass(slots=True)
class Promise:
    """A free volume for a claim: as assumed, then as written.

    Attributes:
        volume: The volume.
        claim: Its claim.
        is_new: Whether the volume says so only by assumption.
    """

    volume: PersistentVolume
    claim: PersistentVolumeClaim
    is_new: bool


@dataclass(slots=True)
class Reserved:
    """What an attempt assumed on one node.

    Attributes:
        promises: Volumes for claims.
        claims: Claims whose volumes are to be made: as assumed, then as written.
        all_bound: Whether there is nothing to write, nor to wait for.
    """

    promises: list[Promise] = field(default_factory=list)
    claims: list[PersistentVolumeClaim] = field(default_factory=list)
    all_bound: bool = False


class VolumeWriter:
    """Writes and waits.

    Args:
        handle: The writer, the clock and the nodes.
        claims: Claims, as stored and as assumed.
        volumes: Volumes, likewise.
        reader: Sees volumes as a node does.
        timeout_seconds: How long claims may take.
    """

    def __init__(
        self,
        handle: Handle,
        claims: AssumeCache[PersistentVolumeClaim],
        volumes: AssumeCache[PersistentVolume],
        reader: ClaimReader,
        *,
        timeout_seconds: float,
    ) -> None:
        self._handle, self._claims, self._volumes, self._reader = handle, claims, volumes, reader
        self._nodes = handle.lister(NODES)
        self._timeout = timeout_seconds

    async def bind(self, pod: Pod, node_name: str, reserved: Reserved) -> Status:
        """Write, then wait until everything is bound; an error when that fails, or takes too long."""
        writer = self._handle.writer
        if writer is None:
            return SUCCESS
        try:
            await self._write(writer, node_name, reserved)
        except (ApiError, Unreachable) as error:
            return Status.error(str(error))
        return await self._wait_bound(pod, node_name, reserved)

    async def _write(self, writer: ObjectWriter, node_name: str, reserved: Reserved) -> None:
        for promise in reserved.promises:
            if promise.is_new:
                promise.volume = await _write_promise(writer, promise.volume)
                promise.is_new = False
        for place, claim in enumerate(reserved.claims):
            metadata = {
                "resourceVersion": claim.metadata.resource_version, "annotations": {SELECTED_NODE: node_name}
            }  # fmt: skip
            reserved.claims[place] = await writer.patch(
                PERSISTENT_VOLUME_CLAIMS, claim.name, claim.namespace, {"metadata": metadata}
            )

    async def _wait_bound(self, pod: Pod, node_name: str, reserved: Reserved) -> Status:
        clock, pause = self._handle.clock, FIRST_PAUSE_SECONDS
        deadline = clock.monotonic() + self._timeout
        while True:
            try:
                if self._are_bound(pod, node_name, reserved):
                    return SUCCESS
            except VolumeError as error:
                return Status.error(f"binding volumes: {error}")
            if clock.monotonic() >= deadline:
                return Status.error("binding volumes: context deadline exceeded")
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE_SECONDS)

    def _are_bound(self, pod: Pod, node_name: str, reserved: Reserved) -> bool:
        """Whether all is done.

        Raises:
            VolumeError: It cannot be done any more.
        """
        node = self._nodes.get("", node_name)
        if node is None:
            raise VolumeError(f'failed to get node "{node_name}": node "{node_name}" not found')
        if self._handle.last_seen(pod) is None:
            raise VolumeError(f'pod does not exist any more: pod "{pod.metadata.name}" not found')
        labels = node.metadata.labels
        done = True
        for promise in reserved.promises:
            done = done and self._is_kept(promise, node_name, labels)
        for claim in reserved.claims:
            done = done and self._is_provisioned(claim, node_name, labels)
        return done

    def _is_kept(self, promise: Promise, node_name: str, labels: Mapping[str, str]) -> bool:
        volume = self._volumes.stored("", promise.volume.name)
        claim = self._claims.stored(promise.claim.namespace, promise.claim.name)
        if volume is None:
            raise VolumeError(f'failed to check binding: persistentvolume "{promise.volume.name}" not found')
        if claim is None:
            raise VolumeError(f'failed to check binding: persistentvolumeclaim "{promise.claim.key}" not found')
        if _is_newer(promise.volume, volume):
            return False
        self._check_affinity(volume, node_name, labels)
        if volume.spec.claim_ref is None or not volume.spec.claim_ref.uid:
            raise VolumeError(f'ClaimRef got reset for pv "{volume.name}"')
        return is_fully_bound(claim)

    def _is_provisioned(self, written: PersistentVolumeClaim, node_name: str, labels: Mapping[str, str]) -> bool:
        claim = self._claims.stored(written.namespace, written.name)
        if claim is None:
            raise VolumeError(f'failed to check provisioning pvc: persistentvolumeclaim "{written.key}" not found')
        if _is_newer(written, claim):
            return False
        if not claim.metadata.annotations:
            raise VolumeError(f'selectedNode annotation reset for PVC "{claim.name}"')
        if claim.metadata.annotations.get(SELECTED_NODE) != node_name:
            raise VolumeError(f'provisioning failed for PVC "{claim.name}"')
        if claim.spec.volume_name:
            volume = self._volumes.stored("", claim.spec.volume_name)
            if volume is None:  # the watch may be behind; if the volume is gone for good the claim will be lost
                return False
            self._check_affinity(volume, node_name, labels)
        return is_fully_bound(claim)

    def _check_affinity(self, volume: PersistentVolume, node_name: str, labels: Mapping[str, str]) -> None:
        if not admits_labels(self._reader.as_on(volume, node_name), labels):
            raise VolumeError(
                f'pv "{volume.name}" node affinity doesn\'t match node "{node_name}": no matching NodeSelectorTerms'
            )


async def _write_promise(writer: ObjectWriter, volume: PersistentVolume) -> PersistentVolume:
    metadata: dict[str, object] = {"resourceVersion": volume.metadata.resource_version}
    if BOUND_BY_CONTROLLER in volume.metadata.annotations:
        metadata["annotations"] = {BOUND_BY_CONTROLLER: volume.metadata.annotations[BOUND_BY_CONTROLLER]}
    patch = {"metadata": metadata, "spec": {"claimRef": msgspec.to_builtins(volume.spec.claim_ref)}}
    return await writer.patch(PERSISTENT_VOLUMES, volume.name, "", patch)


def _is_newer(written: ApiObject, seen: ApiObject) -> bool:
    """Whether the watch has yet to show what was written."""
    return int(written.metadata.resource_version or 0) > int(seen.metadata.resource_version or 0)
