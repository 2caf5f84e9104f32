"""Who owns whom: a graph over the metadata of every object in the cluster.

Fed one change at a time, it answers with what is to be looked at. Rules that hold after every change:

- a node stands under its uid, and `graph[owner].dependents` holds exactly the nodes that list that owner's uid;
- an owner that is only heard of is a *virtual* node; it is looked up, and either seen or found absent;
- an owner found absent, or gone while it had dependents, is remembered for a while, so that a thousand dependents do
  not ask for it a thousand times.

Source: pkg/controller/garbagecollector/graph_builder.go, v1.36.
"""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field

from skysail.api.meta import ObjectMeta, OwnerReference
from skysail.controllers.garbage.node import (
    FOREGROUND_FINALIZER,
    ORPHAN_FINALIZER,
    Identity,
    Node,
    deletion_starts_with,
    owner_identity,
    partition_dependents,
    waits_for_dependents,
)

ABSENT_CACHE_SIZE = 500


@dataclass(slots=True)
class Effects:
    """What a change calls for.

    Attributes:
        delete: Uids of nodes to examine for deletion, in order, without repeats.
        retry: Uids to examine again after a back-off.
        orphan: Uids of owners whose dependents are to be released.
        wrong_namespace: Dependents with the owner reference that points out of their namespace.
    """

    delete: dict[str, None] = field(default_factory=dict)
    retry: dict[str, None] = field(default_factory=dict)
    orphan: dict[str, None] = field(default_factory=dict)
    wrong_namespace: list[tuple[Identity, OwnerReference]] = field(default_factory=list)


class AbsentOwners:
    """The owners last found absent; the oldest fall out."""

    def __init__(self, size: int = ABSENT_CACHE_SIZE) -> None:
        self._size = size
        self._known: OrderedDict[Identity, None] = OrderedDict()

    def add(self, identity: Identity) -> None:
        """Remember one."""
        self._known[identity] = None
        self._known.move_to_end(identity)
        if len(self._known) > self._size:
            self._known.popitem(last=False)

    def __contains__(self, identity: Identity) -> bool:
        if identity not in self._known:
            return False
        self._known.move_to_end(identity)
        return True


class OwnerGraph:
    """The graph. One writer; readers must not keep nodes across an await without looking them up again."""

    def __init__(self) -> None:
        self.absent = AbsentOwners()
        self._nodes: dict[str, Node] = {}

    def __len__(self) -> int:
        return len(self._nodes)

    def get(self, uid: str) -> Node | None:
        """The node of that uid, seen or only heard of."""
        return self._nodes.get(uid)

    def observe(self, identity: Identity, old: ObjectMeta | None, new: ObjectMeta) -> Effects:
        """An object was added or changed."""
        effects = Effects()
        node = self._nodes.get(identity.uid)
        if node is None:
            node = Node(
                identity,
                owners=new.owner_references,
                being_deleted=new.deletion_timestamp is not None,
                deleting_dependents=waits_for_dependents(new),
            )
            self._nodes[identity.uid] = node
            self._link(node, node.owners, effects)
        else:
            self._make_real(node, identity, effects)
            self._update_owners(node, new.owner_references, effects)
            node.being_deleted = node.being_deleted or new.deletion_timestamp is not None
        self._note_transitions(node, old, new, effects)
        return effects

    def remove(self, identity: Identity) -> Effects:
        """An object is gone: seen to be deleted."""
        effects = Effects()
        node = self._nodes.get(identity.uid)
        if node is not None:
            self._make_real(node, identity, effects)
            self._drop(node, identity, effects)
        return effects

    def remove_absent(self, identity: Identity) -> Effects:
        """A look-up found nothing at these coordinates: a deletion without an event."""
        effects = Effects()
        node = self._nodes.get(identity.uid)
        if node is None:
            return effects
        matching, others = partition_dependents(node.dependents.values(), identity)
        if node.virtual and others:
            self._declare_absent(identity, matching, effects)
            self._try_other_coordinates(node, others, identity, effects)
        elif not node.virtual and node.identity != identity:
            self._declare_absent(identity, matching, effects)
        else:
            self._drop(node, identity, effects)
        return effects

    def _make_real(self, node: Node, identity: Identity, effects: Effects) -> None:
        """A node only heard of is seen; those who had other ideas of where it is are looked at again."""
        if not node.virtual:
            return
        if node.identity != identity:
            for dependent in partition_dependents(node.dependents.values(), identity)[1]:
                self._report_namespace(dependent, identity, effects)
                effects.delete[dependent.uid] = None
            node.identity = identity
        node.virtual = False

    def _declare_absent(self, identity: Identity, dependents: Iterable[Node], effects: Effects) -> None:
        for index, dependent in enumerate(dependents):
            if index == 0:
                self.absent.add(identity)
            effects.delete[dependent.uid] = None

    def _try_other_coordinates(
        self, node: Node, dependents: Iterable[Node], absent: Identity, effects: Effects
    ) -> None:
        if node.identity != absent:
            return
        other = _alternate_identity(dependents, absent)
        if other is not None:
            node.identity = other
            effects.retry[node.uid] = None

    def _drop(self, node: Node, identity: Identity, effects: Effects) -> None:
        del self._nodes[node.uid]
        self._unlink(node, node.owners)
        if node.dependents:
            self.absent.add(identity)
        for uid in node.dependents:
            effects.delete[uid] = None
        for reference in node.owners:
            owner = self._nodes.get(reference.uid)
            if owner is not None and owner.deleting_dependents:
                effects.delete[owner.uid] = None

    def _link(self, node: Node, owners: Iterable[OwnerReference], effects: Effects) -> None:
        suspicious = False
        for reference in owners:
            owner = self._nodes.get(reference.uid)
            if owner is None:
                owner = Node(owner_identity(reference, node.identity.namespace), virtual=True)
                self._nodes[reference.uid] = owner
                effects.delete[owner.uid] = None
            elif not suspicious:
                suspicious = self._is_suspicious(node, reference, owner, effects)
            owner.dependents[node.uid] = node
        if suspicious:
            effects.delete[node.uid] = None

    def _is_suspicious(self, node: Node, reference: OwnerReference, owner: Node, effects: Effects) -> bool:
        """Whether the reference disagrees with what is known of the owner."""
        if owner.identity.namespace and owner.identity.namespace != node.identity.namespace:
            if not owner.virtual:
                self._report_namespace(node, owner.identity, effects)
            return True
        if not owner.identity.matches(reference):
            return True
        return owner.virtual and owner.identity.namespace != node.identity.namespace

    def _report_namespace(self, node: Node, owner: Identity, effects: Effects) -> None:
        if owner.namespace and owner.namespace != node.identity.namespace:
            reference = next((item for item in node.owners if item.uid == owner.uid), None)
            if reference is not None:
                effects.wrong_namespace.append((node.identity, reference))

    def _unlink(self, node: Node, owners: Iterable[OwnerReference]) -> None:
        for reference in owners:
            owner = self._nodes.get(reference.uid)
            if owner is not None:
                owner.dependents.pop(node.uid, None)

    def _update_owners(self, node: Node, owners: tuple[OwnerReference, ...], effects: Effects) -> None:
        if owners == node.owners:
            return
        before = {reference.uid: reference for reference in node.owners}
        after = {reference.uid: reference for reference in owners}
        for uid, reference in before.items():
            now = after.get(uid)
            if reference.block_owner_deletion and (now is None or not now.block_owner_deletion) and uid in self._nodes:
                effects.delete[uid] = None
        node.owners = owners
        self._link(node, [reference for uid, reference in after.items() if uid not in before], effects)
        self._unlink(node, [reference for uid, reference in before.items() if uid not in after])

    def _note_transitions(self, node: Node, old: ObjectMeta | None, new: ObjectMeta, effects: Effects) -> None:
        if deletion_starts_with(ORPHAN_FINALIZER, old, new):
            effects.orphan[node.uid] = None
        elif deletion_starts_with(FOREGROUND_FINALIZER, old, new):
            node.deleting_dependents = True
            effects.delete.update(dict.fromkeys(node.dependents))
            effects.delete[node.uid] = None


def _alternate_identity(dependents: Iterable[Node], absent: Identity) -> Identity | None:
    """Other coordinates under which dependents name the same uid: the next in order after `absent`, else the first."""
    candidates: set[Identity] = set()
    for node in dependents:
        for reference in node.owners:
            if reference.uid != absent.uid:
                continue
            if absent.matches(reference) and absent.namespace in ("", node.identity.namespace):
                continue
            found = owner_identity(reference, node.identity.namespace)
            if not absent.namespace and (found.api_version, found.kind) == (absent.api_version, absent.kind):
                found = Identity(found.api_version, found.kind, "", found.name, found.uid)
            candidates.add(found)
    candidates.discard(absent)
    ordered = sorted(candidates, key=lambda identity: identity.order)
    following = [identity for identity in ordered if identity.order > absent.order]
    return next(iter(following or ordered), None)
