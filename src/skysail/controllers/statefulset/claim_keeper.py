"""A stateful set's claims in the API: made for each ordinal, and owned by whom they are to go with.

Source: pkg/controller/statefulset/stateful_pod_control.go, v1.36.
"""

from collections.abc import Sequence

import msgspec

from skysail.api.apps import StatefulSet
from skysail.api.core import Pod
from skysail.api.errors import AlreadyExists, ApiError, Conflict
from skysail.api.kinds import PERSISTENT_VOLUME_CLAIMS
from skysail.api.raw import Raw
from skysail.api.storage import PersistentVolumeClaim
from skysail.client.api_client import ApiClient
from skysail.controller.recorder import EventRecorder
from skysail.controllers.own_writes import OwnWrites
from skysail.controllers.statefulset.claims import (
    RETAIN,
    claim_names,
    has_conflicting_controller,
    is_stale_for,
    new_claims,
    owners_as_wanted,
    retention,
)
from skysail.controllers.statefulset.identity import ordinal_of, ordinals, pod_name
from skysail.informer.lister import Lister


class ClaimKeeper:
    """Looks after the claims of stateful sets.

    Args:
        client: Writes.
        recorder: Tells.
        known: The claims as cached.

    Attributes:
        own_writes: What was written for each set.
    """

    def __init__(self, client: ApiClient, recorder: EventRecorder, known: Lister[PersistentVolumeClaim]) -> None:
        self._client, self._recorder, self._known = client, recorder, known
        self.own_writes = OwnWrites()

    def are_stale(self, stateful_set: StatefulSet, ordinal: int) -> bool:
        """Whether claims of an earlier pod of that ordinal are still on their way out."""
        if retention(stateful_set)[1] == RETAIN:
            return False
        name = pod_name(stateful_set, ordinal)
        return any(is_stale_for(claim, name, "") for claim in self._of(stateful_set, ordinal))

    def match(self, stateful_set: StatefulSet, pod: Pod) -> bool:
        """Whether the pod's claims are owned as the retention policy says."""
        scaled_down = ordinal_of(pod) not in ordinals(stateful_set)
        return all(
            owners_as_wanted(claim, stateful_set, pod, scaled_down=scaled_down) is None
            for claim in self._of(stateful_set, ordinal_of(pod))
        )

    async def make(self, stateful_set: StatefulSet, ordinal: int, pod: str) -> None:
        """Make the claims that a pod of that ordinal lacks, whatever becomes of the others.

        Raises:
            ApiError: Why not all are there: some were refused, or are being deleted and must go first.
        """
        errors = []
        for body in new_claims(stateful_set, ordinal):
            name = body["metadata"]["name"]
            found = self._named(stateful_set, name)
            if found is None:
                try:
                    await self._make(stateful_set, body, pod)
                except ApiError as error:
                    errors.append(_in_words(error, f"failed to create PVC {name}"))
            elif found.metadata.deletion_timestamp is not None:
                errors.append(Conflict(f"pvc {name} is being deleted"))
        if errors:
            raise _together(errors)

    async def _make(self, stateful_set: StatefulSet, body: Raw, pod: str) -> None:
        name = body["metadata"]["name"]
        try:
            made = await self._client.create(PERSISTENT_VOLUME_CLAIMS, body, stateful_set.namespace)
        except AlreadyExists:
            return
        except ApiError as error:
            if not error.is_namespace_terminating:
                words = f"Create Claim {name} for Pod {pod} in StatefulSet {stateful_set.name} failed error: "
                self._recorder.event(stateful_set, "Warning", "FailedCreate", words + error.status.message)
            raise
        self.own_writes.note(stateful_set, made)
        words = f"Create Claim {name} Pod {pod} in StatefulSet {stateful_set.name} success"
        self._recorder.event(stateful_set, "Normal", "SuccessfulCreate", words)

    async def adjust(self, stateful_set: StatefulSet, pod: Pod) -> None:
        """Give the pod's claims the owners that the retention policy wants: they go with them.

        Raises:
            ApiError: A claim could not be written.
        """
        scaled_down = ordinal_of(pod) not in ordinals(stateful_set)
        for claim in self._of(stateful_set, ordinal_of(pod)):
            if has_conflicting_controller(claim, stateful_set, pod):
                words = f"PersistentVolumeClaim {claim.name} has a conflicting OwnerReference that acts as a "
                words += "manging controller, the retention policy is ignored for this claim"
                self._recorder.event(stateful_set, "Warning", "ConflictingController", words)
            owners = owners_as_wanted(claim, stateful_set, pod, scaled_down=scaled_down)
            if owners is not None:
                await self._write_owners(stateful_set, claim, [msgspec.to_builtins(item) for item in owners])

    def _named(self, stateful_set: StatefulSet, name: str) -> PersistentVolumeClaim | None:
        return self._known.named(name, stateful_set.namespace)

    def _of(self, stateful_set: StatefulSet, ordinal: int) -> list[PersistentVolumeClaim]:
        names = claim_names(stateful_set, ordinal).values()
        return [found for name in names if (found := self._named(stateful_set, name)) is not None]

    async def _write_owners(self, stateful_set: StatefulSet, claim: PersistentVolumeClaim, owners: list[Raw]) -> None:
        version = claim.metadata.resource_version
        patch = {"metadata": {"resourceVersion": version, "ownerReferences": owners}}
        try:
            written = await self._client.patch(PERSISTENT_VOLUME_CLAIMS, claim.name, claim.namespace, patch)
        except ApiError as error:
            words = f"could not update claim {claim.name} for delete policy ownerRefs"
            raise _in_words(error, words) from error
        self.own_writes.note(stateful_set, written)


def _in_words(error: ApiError, what: str) -> ApiError:
    """The same error, which says what was being done."""
    return type(error)(msgspec.structs.replace(error.status, message=f"{what}: {error.status.message}"))


def _together(errors: Sequence[ApiError]) -> ApiError:
    """One error for all: of the first's class, with what each has to say."""
    if len(errors) == 1:
        return errors[0]
    words = ", ".join(error.status.message for error in errors)
    return type(errors[0])(msgspec.structs.replace(errors[0].status, message=f"[{words}]"))
