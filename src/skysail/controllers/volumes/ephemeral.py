"""Makes the claims of pods' ephemeral volumes. The pod owns them, so that they go with it.

Source: pkg/controller/volume/ephemeral/controller.go, v1.36.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from skysail.api.core import Pod, Volume
from skysail.api.errors import AlreadyExists, ApiError, SkysailError
from skysail.api.kinds import PERSISTENT_VOLUME_CLAIMS
from skysail.api.raw import Raw
from skysail.api.storage import PersistentVolumeClaim
from skysail.api.volumes import claim_name, not_for_pod
from skysail.controller.controller import Result
from skysail.controller.watches import Added, Deleted, For, Watch, Watches
from skysail.controllers.builtin import BuiltinController
from skysail.informer.keys import Key


class ClaimOfAnother(SkysailError):
    """The claim an ephemeral volume needs exists, but was not made for the pod: it must go first."""


class EphemeralVolumeController(BuiltinController):
    """Makes claims for pods."""

    name = "ephemeral-volume"
    workers = 4

    @property
    def watches(self) -> Sequence[Watch[Any]]:
        """Pods that come, and their claims that go."""
        return (
            For(Pod, on=(Added,), predicates=(lambda event: _needs_claims(event.object),)),
            Watches(PersistentVolumeClaim, on=(Deleted,), map=_pod_of),
        )

    async def reconcile(self, key: Key) -> Result | None:
        """Make the claims that one pod lacks."""
        pod = self.lister(Pod).get(key)
        if pod is None or pod.metadata.deletion_timestamp is not None:
            return None
        for volume in pod.spec.volumes:
            if volume.ephemeral is not None:
                try:
                    await self._provide(pod, volume)
                except SkysailError as error:
                    if isinstance(error, ApiError) and error.is_namespace_terminating:
                        raise
                    message = f"ephemeral volume {volume.name}: {error}"
                    self.recorder.event(pod, "Warning", "FailedBinding", message)
                    raise
        return None

    async def _provide(self, pod: Pod, volume: Volume) -> None:
        name = claim_name(pod, volume)
        assert name is not None
        claim = self.lister(PersistentVolumeClaim).named(name, pod.namespace)
        if claim is None:
            try:
                await self.api.create(PERSISTENT_VOLUME_CLAIMS, new_claim(pod, volume), pod.namespace)
            except AlreadyExists:
                claim = await self.api.get(PERSISTENT_VOLUME_CLAIMS, name, pod.namespace)
        if claim is not None and (why := not_for_pod(pod, claim)):
            raise ClaimOfAnother(why)


def new_claim(pod: Pod, volume: Volume) -> Raw:
    """The claim of an ephemeral volume, to create: the template as it stands, owned by the pod."""
    assert volume.ephemeral is not None
    template: Raw = msgspec.json.decode(volume.ephemeral.volume_claim_template or b"{}")
    metadata = template.get("metadata") or {}
    owner = {
        "apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid,
        "controller": True, "blockOwnerDeletion": True,
    }  # fmt: skip
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": claim_name(pod, volume),
            "namespace": pod.namespace,
            "labels": metadata.get("labels") or {},
            "annotations": metadata.get("annotations") or {},
            "ownerReferences": [owner],
        },
        "spec": template.get("spec") or {},
    }


def _needs_claims(pod: Pod) -> bool:
    return any(volume.ephemeral is not None for volume in pod.spec.volumes)


def _pod_of(claim: PersistentVolumeClaim) -> Iterable[Key]:
    owners = claim.metadata.owner_references
    return [Key(claim.namespace, each.name) for each in owners if each.controller and each.kind == "Pod"]
