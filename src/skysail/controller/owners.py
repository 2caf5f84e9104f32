"""Owner references: who owns what, and the patches that adopt and release.

Source: k8s.io/apimachinery/pkg/apis/meta/v1/controller_ref.go, kubernetes/pkg/controller/controller_ref_manager.go,
v1.36.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from skysail.api.kinds import Kind
from skysail.api.meta import OwnerReference
from skysail.api.raw import Raw
from skysail.informer.keys import controller_of, key_of, owners_of, uid_of, version_of

_BUILT_IN_GROUPS = frozenset({"", "apps", "autoscaling", "batch", "policy"})


def controller_reference(owner: object, kind: Kind[Any]) -> OwnerReference:
    """The reference that makes `owner` the controller of a child, and holds up its foreground deletion."""
    return OwnerReference(
        api_version=kind.api_version,
        kind=kind.name,
        name=key_of(owner).name,
        uid=uid_of(owner),
        controller=True,
        block_owner_deletion=True,
    )


def owner_reference(owner: object, kind: Kind[Any]) -> OwnerReference:
    """The reference of an owner that is not the controller."""
    return OwnerReference(api_version=kind.api_version, kind=kind.name, name=key_of(owner).name, uid=uid_of(owner))


def is_controlled_by(obj: object, owner: object) -> bool:
    """Whether `owner` (by uid) is the controller of `obj`."""
    reference = controller_of(obj)
    return reference is not None and reference.uid == uid_of(owner)


def is_of_kind(reference: OwnerReference, kind: Kind[Any]) -> bool:
    """Whether a reference names an object of a kind, whatever the version."""
    group = reference.api_version.rpartition("/")[0]
    return reference.kind == kind.name and group == kind.group


def raw_reference(reference: OwnerReference) -> Raw:
    """An owner reference in wire form."""
    raw: Raw = msgspec.to_builtins(reference)
    return raw


def knows_strategic_merge(kind: Kind[Any]) -> bool:
    """Whether the server can patch a kind strategically: built-in ones, but no custom resources."""
    return kind.group in _BUILT_IN_GROUPS or kind.group.endswith(".k8s.io")


def adopt_patch(obj: object, kind: Kind[Any], reference: OwnerReference, finalizers: Sequence[str] = ()) -> Raw:
    """The patch that adds a controller reference; the uid in it makes it fail for a namesake.

    Strategic for built-in kinds; for custom ones a merge patch of the whole list, bound to the version it was read at.
    """
    if knows_strategic_merge(kind):
        metadata: Raw = {"uid": uid_of(obj), "ownerReferences": [raw_reference(reference)]}
        if finalizers:
            metadata["finalizers"] = list(finalizers)
        return {"metadata": metadata}
    others = [raw_reference(other) for other in owners_of(obj)]
    return _merge_patch(obj, [*others, raw_reference(reference)])


def release_patch(obj: object, kind: Kind[Any], owner_uid: str, finalizers: Sequence[str] = ()) -> Raw:
    """The patch that removes an owner's reference."""
    if knows_strategic_merge(kind):
        metadata: Raw = {"uid": uid_of(obj), "ownerReferences": [{"$patch": "delete", "uid": owner_uid}]}
        if finalizers:
            metadata["$deleteFromPrimitiveList/finalizers"] = list(finalizers)
        return {"metadata": metadata}
    return _merge_patch(obj, [raw_reference(other) for other in owners_of(obj) if other.uid != owner_uid])


def _merge_patch(obj: object, references: list[Raw]) -> Raw:
    metadata = {"uid": uid_of(obj), "resourceVersion": version_of(obj), "ownerReferences": references}
    return {"metadata": metadata}
