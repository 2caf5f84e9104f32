"""What becomes of one object, once its owners have been looked up.

Source: pkg/controller/garbagecollector/garbagecollector.go `attemptToDeleteItem`, v1.36.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from skysail.api.meta import ObjectMeta, OwnerReference
from skysail.api.raw import Raw
from skysail.controllers.garbage.node import FOREGROUND_FINALIZER, ORPHAN_FINALIZER, Node


@dataclass(frozen=True, slots=True)
class Owners:
    """An object's owner references, sorted by what was found of their owners."""

    solid: Sequence[OwnerReference] = ()
    dangling: Sequence[OwnerReference] = ()
    waiting: Sequence[OwnerReference] = ()


@dataclass(frozen=True, slots=True)
class Keep:
    """Nothing to do."""


@dataclass(frozen=True, slots=True)
class DropReferences:
    """A solid owner remains: only the other references go."""

    uids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete the object.

    Attributes:
        propagation: What is to become of its own dependents.
        unblock_first: Make its owner references non-blocking before, because a cycle of foreground deletions would
            wait for itself.
    """

    propagation: str
    unblock_first: bool = False


@dataclass(frozen=True, slots=True)
class Finish:
    """A foreground deletion has nothing left to wait for: take its finalizer off."""


@dataclass(frozen=True, slots=True)
class Wait:
    """A foreground deletion waits for these dependents; those not yet being deleted are to be examined."""

    dependents: tuple[str, ...]


Decision = Keep | DropReferences | Delete | Finish | Wait


def decide_waiting(node: Node) -> Decision:
    """What an object in foreground deletion does next."""
    blocking = node.blocking_dependents()
    if not blocking:
        return Finish()
    return Wait(tuple(item.uid for item in blocking if not item.deleting_dependents))


def decide(node: Node, latest: ObjectMeta, owners: Owners) -> Decision:
    """What becomes of an object that has owner references.

    Args:
        node: For its dependents.
        latest: Its metadata as just read.
        owners: What was found of its owners.
    """
    if owners.solid:
        lost = (*owners.dangling, *owners.waiting)
        return DropReferences(tuple(reference.uid for reference in lost)) if lost else Keep()
    if owners.waiting and node.dependents:
        cyclic = any(item.deleting_dependents for item in node.dependents.values())
        return Delete("Foreground", unblock_first=cyclic)
    if ORPHAN_FINALIZER in latest.finalizers:
        return Delete("Orphan")
    return Delete("Foreground" if FOREGROUND_FINALIZER in latest.finalizers else "Background")


def drop_references_patch(uid: str, owners: Iterable[str]) -> Raw:
    """A strategic merge patch that takes owner references away, if the object is still that one."""
    lost = [{"$patch": "delete", "uid": owner} for owner in owners]
    return {"metadata": {"uid": uid, "ownerReferences": lost}}


def remaining_references_patch(latest: ObjectMeta, owners: Iterable[str]) -> Raw:
    """The same as a merge patch, for kinds that know no strategic one."""
    lost = set(owners)
    kept = [msgspec.to_builtins(reference) for reference in latest.owner_references if reference.uid not in lost]
    return {"metadata": {"resourceVersion": latest.resource_version, "ownerReferences": kept}}


def unblock_references_patch(latest: ObjectMeta) -> Raw:
    """A strategic merge patch that lets no owner wait for this object any longer; empty when none does."""
    references = [
        msgspec.to_builtins(msgspec.structs.replace(reference, block_owner_deletion=False))
        for reference in latest.owner_references
        if reference.block_owner_deletion
    ]
    return {"metadata": {"uid": latest.uid, "ownerReferences": references}} if references else {}


def unblocked_references_patch(latest: ObjectMeta) -> Raw:
    """The same as a merge patch, for kinds that know no strategic one."""
    references = [
        msgspec.to_builtins(msgspec.structs.replace(reference, block_owner_deletion=False))
        for reference in latest.owner_references
    ]
    return {"metadata": {"resourceVersion": latest.resource_version, "ownerReferences": references}}


def remove_finalizer_patch(latest: ObjectMeta, finalizer: str) -> Raw:
    """A merge patch that takes one finalizer off; empty when it is not there."""
    if finalizer not in latest.finalizers:
        return {}
    kept = [item for item in latest.finalizers if item != finalizer]
    return {"metadata": {"resourceVersion": latest.resource_version, "finalizers": kept}}
