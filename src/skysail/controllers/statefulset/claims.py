"""The volumes of a stateful set's pods: which claims there are, and who owns them.

A claim outlives its pod. Whether it also outlives the set, or a scaling down, is the retention policy; it is expressed
by owner references, so that the garbage collector does the rest.

Source: pkg/controller/statefulset/stateful_set_utils.go, v1.36.
"""

from collections.abc import Sequence

from skysail.api.apps import StatefulSet
from skysail.api.core import Pod
from skysail.api.kinds import PODS, STATEFULSETS
from skysail.api.meta import OwnerReference
from skysail.api.raw import Raw
from skysail.api.storage import PersistentVolumeClaim
from skysail.controllers.templates import controller_reference

RETAIN, DELETE = "Retain", "Delete"


def claim_names(stateful_set: StatefulSet, ordinal: int) -> dict[str, str]:
    """The claims of an ordinal, by the name of the volume."""
    return {
        template["metadata"]["name"]: f"{template['metadata']['name']}-{stateful_set.name}-{ordinal}"
        for template in stateful_set.spec.volume_claim_templates
    }


def new_claims(stateful_set: StatefulSet, ordinal: int) -> list[Raw]:
    """The claims of an ordinal, to create."""
    names = claim_names(stateful_set, ordinal)
    selector = stateful_set.spec.selector
    matched = dict(selector.match_labels) if selector is not None else {}
    claims = []
    for template in stateful_set.spec.volume_claim_templates:
        metadata = {key: value for key, value in template["metadata"].items() if key != "creationTimestamp"}
        metadata["name"] = names[template["metadata"]["name"]]
        metadata["namespace"] = stateful_set.namespace
        metadata["labels"] = {**(metadata.get("labels") or {}), **matched}
        parts = {key: value for key, value in template.items() if key not in ("metadata", "status")}
        claims.append({"apiVersion": "v1", "kind": "PersistentVolumeClaim", **parts, "metadata": metadata})
    return claims


def retention(stateful_set: StatefulSet) -> tuple[str, str]:
    """What becomes of claims when the set is deleted, and when it is scaled down."""
    policy = stateful_set.spec.persistent_volume_claim_retention_policy
    if policy is None:
        return RETAIN, RETAIN
    return policy.when_deleted or RETAIN, policy.when_scaled or RETAIN


def is_stale_for(claim: PersistentVolumeClaim, pod_name: str, pod_uid: str) -> bool:
    """Whether the claim belongs to an earlier pod of that name, and will go with it."""
    reference = _reference(claim.metadata.owner_references, PODS.api_version, PODS.name, pod_name)
    return reference is not None and reference.uid != pod_uid


def has_conflicting_controller(claim: PersistentVolumeClaim, stateful_set: StatefulSet, pod: Pod) -> bool:
    """Whether something else controls the claim, so that the policy cannot apply."""
    if retention(stateful_set) == (RETAIN, RETAIN):
        return False
    for reference in claim.metadata.owner_references:
        if _is_set(reference, stateful_set):
            if reference.uid != stateful_set.uid:
                return True
        elif _is_pod(reference, pod):
            if reference.uid != pod.uid:
                return True
        elif reference.controller:
            return True
    return False


def owners_as_wanted(
    claim: PersistentVolumeClaim, stateful_set: StatefulSet, pod: Pod, *, scaled_down: bool
) -> tuple[OwnerReference, ...] | None:
    """The owner references the claim should have; None when those it has are right.

    Args:
        claim: As cached.
        stateful_set: Whose policy applies.
        pod: That mounts it.
        scaled_down: Whether the pod's ordinal is no longer wanted.
    """
    references = claim.metadata.owner_references
    stale_set = any(_is_set(item, stateful_set) and item.uid != stateful_set.uid for item in references)
    stale_pod = any(_is_pod(item, pod) and item.uid != pod.uid for item in references)
    if stale_set or stale_pod:
        return None
    others = tuple(item for item in references if not _is_set(item, stateful_set) and not _is_pod(item, pod))
    if has_conflicting_controller(claim, stateful_set, pod):
        return others if others != references else None
    wanted = others + _policy_owners(stateful_set, pod, scaled_down=scaled_down)
    same = {(item.uid, bool(item.controller)) for item in references}
    return None if same == {(item.uid, bool(item.controller)) for item in wanted} else wanted


def _policy_owners(stateful_set: StatefulSet, pod: Pod, *, scaled_down: bool) -> tuple[OwnerReference, ...]:
    when_deleted, when_scaled = retention(stateful_set)
    if when_scaled == DELETE and scaled_down:
        return (controller_reference(pod, PODS.api_version, PODS.name),)
    if when_deleted == DELETE:
        return (controller_reference(stateful_set, STATEFULSETS.api_version, STATEFULSETS.name),)
    return ()


def _is_set(reference: OwnerReference, stateful_set: StatefulSet) -> bool:
    names = (reference.api_version, reference.kind, reference.name)
    return names == (STATEFULSETS.api_version, STATEFULSETS.name, stateful_set.name)


def _is_pod(reference: OwnerReference, pod: Pod) -> bool:
    return (reference.api_version, reference.kind, reference.name) == (PODS.api_version, PODS.name, pod.name)


def _reference(references: Sequence[OwnerReference], api_version: str, kind: str, name: str) -> OwnerReference | None:
    wanted = (api_version, kind, name)
    return next((item for item in references if (item.api_version, item.kind, item.name) == wanted), None)
