"""An object as the garbage collector sees it: its coordinates, its owners, and who depends on it."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from skysail.api.meta import ObjectMeta, OwnerReference

FOREGROUND_FINALIZER = "foregroundDeletion"
ORPHAN_FINALIZER = "orphan"


@dataclass(frozen=True, slots=True)
class Identity:
    """Where an object is, and which one of that name it is."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        where = f"namespace: {self.namespace}, name: {self.name}, uid: {self.uid}"
        return f"[{self.api_version}/{self.kind}, {where}]"

    def matches(self, reference: OwnerReference) -> bool:
        """Whether a reference names exactly this object (the namespace is the referrer's own)."""
        return (self.uid, self.name, self.kind, self.api_version) == (
            reference.uid,
            reference.name,
            reference.kind,
            reference.api_version,
        )

    @property
    def order(self) -> tuple[str, ...]:
        """A total order, to try candidates one after the other."""
        return self.kind, self.api_version, self.namespace, self.name, self.uid


def owner_identity(reference: OwnerReference, namespace: str) -> Identity:
    """What a reference points at, when it stands on an object in `namespace`."""
    return Identity(reference.api_version, reference.kind, namespace, reference.name, reference.uid)


@dataclass(slots=True, eq=False)
class Node:
    """One object in the owner graph. Only the graph changes it.

    Attributes:
        identity: Where it is; for a virtual node, where a reference says it is.
        owners: Its owner references as last seen.
        dependents: The nodes that name it as an owner, by uid, in the order they came.
        virtual: Only heard of through references, not seen itself.
        being_deleted: Has a deletion timestamp.
        deleting_dependents: Is being deleted in the foreground.
    """

    identity: Identity
    owners: tuple[OwnerReference, ...] = ()
    dependents: dict[str, "Node"] = field(default_factory=dict)
    virtual: bool = False
    being_deleted: bool = False
    deleting_dependents: bool = False

    @property
    def uid(self) -> str:
        """The object's uid."""
        return self.identity.uid

    def blocking_dependents(self) -> list["Node"]:
        """The dependents that its foreground deletion waits for."""
        return [
            node
            for node in self.dependents.values()
            if any(owner.uid == self.uid and owner.block_owner_deletion for owner in node.owners)
        ]


def waits_for_dependents(meta: ObjectMeta) -> bool:
    """Whether the object is being deleted in the foreground."""
    return meta.deletion_timestamp is not None and FOREGROUND_FINALIZER in meta.finalizers


def deletion_starts_with(finalizer: str, old: ObjectMeta | None, new: ObjectMeta) -> bool:
    """Whether deletion with that finalizer begins with this change."""
    if new.deletion_timestamp is None or finalizer not in new.finalizers:
        return False
    return old is None or old.deletion_timestamp is None or finalizer not in old.finalizers


def partition_dependents(dependents: Iterable[Node], owner: Identity) -> tuple[list[Node], list[Node]]:
    """Dependents that name `owner` by these very coordinates, and those that name its uid by others."""
    matching: list[Node] = []
    others: list[Node] = []
    for node in dependents:
        if owner.namespace and owner.namespace != node.identity.namespace:
            others.append(node)
            continue
        found = [owner.matches(reference) for reference in node.owners if reference.uid == owner.uid]
        if any(found):
            matching.append(node)
        if not all(found):
            others.append(node)
    return matching, others
