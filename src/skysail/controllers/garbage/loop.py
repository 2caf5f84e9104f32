"""The garbage collector's shell: watches metadata of every kind, looks owners up, deletes and patches.

Two sorts of keys are in its queue: `delete/<uid>` (examine this object) and `orphan/<uid>` (release this owner's
dependents). Decisions are made on what the server says now, never on the graph alone: the graph only says what to look
at.

Source: pkg/controller/garbagecollector/garbagecollector.go, v1.36.
"""

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import Any

from skysail.api.errors import ApiError, Conflict, NotFound, Unreachable, UnsupportedMediaType
from skysail.api.kinds import Kind
from skysail.api.meta import ApiObject, ObjectMeta, OwnerReference, PartialObjectMetadata
from skysail.client.bodies import STRATEGIC
from skysail.controller.controller import Result
from skysail.controllers.builtin import BuiltinController
from skysail.controllers.discovery import Discovery, MetadataKind, discover
from skysail.controllers.garbage.decision import (
    Delete,
    DropReferences,
    Finish,
    Keep,
    Owners,
    Wait,
    decide,
    decide_waiting,
    drop_references_patch,
    remaining_references_patch,
    remove_finalizer_patch,
    unblock_references_patch,
    unblocked_references_patch,
)
from skysail.controllers.garbage.graph import Effects, OwnerGraph
from skysail.controllers.garbage.node import (
    FOREGROUND_FINALIZER,
    ORPHAN_FINALIZER,
    Identity,
    Node,
    owner_identity,
    waits_for_dependents,
)
from skysail.informer.handlers import Handlers
from skysail.informer.keys import Key
from skysail.informer.shared_informer import SharedInformer

DELETE, ORPHAN = "delete", "orphan"
_IGNORED = frozenset({("", "events"), ("events.k8s.io", "events")})
_CONFLICT_RETRIES = 5


class GarbageCollector(BuiltinController):
    """Deletes what is owned by nothing that exists."""

    name = "garbage-collector"
    workers = 20
    discovery_seconds = 30.0
    rediscovery_seconds = 3.0
    retry_seconds = 1.0

    def setup(self) -> None:
        """Start with an empty graph; the kinds are found by `run_beside`."""
        self.graph = OwnerGraph()
        self._discovery = Discovery()
        self._monitors: dict[Kind[Any], SharedInformer[Any]] = {}
        self._ready = asyncio.Event()

    # The graph

    async def run_beside(self) -> None:
        """Follow every kind the server has; learn of new ones every half minute, or sooner if it did not tell all."""
        while True:
            complete = False
            with suppress(ApiError, Unreachable):
                discovery = await discover(self.api)
                await self._follow(discovery)
                complete = not discovery.failed
            await asyncio.sleep(self.discovery_seconds if complete else self.rediscovery_seconds)

    async def _follow(self, discovery: Discovery) -> None:
        wanted = {
            resource.shared_kind: resource.kind
            for resource in discovery.supporting("list", "watch", "delete")
            if (resource.kind.group, resource.kind.plural) not in _IGNORED
        }
        known = self._discovery.by_name if discovery.failed else {}
        self._discovery = replace(discovery, by_name={**known, **discovery.by_name})
        for kind in [kind for kind in self._monitors if kind not in wanted and not discovery.failed]:
            self.runtime.informers.release(self._monitors.pop(kind))
        for kind, metadata_kind in wanted.items():
            if kind not in self._monitors:
                self._monitors[kind] = self._monitor(kind, metadata_kind)
        for informer in self._monitors.values():
            await informer.wait_synced()
        self._ready.set()

    def _monitor(self, kind: Kind[Any], metadata_kind: MetadataKind) -> SharedInformer[Any]:
        informer: SharedInformer[Any] = self.runtime.informers.informer(kind)

        def identity(obj: ApiObject) -> Identity:
            meta = obj.metadata
            return Identity(metadata_kind.api_version, metadata_kind.name, meta.namespace, meta.name, meta.uid)

        def added(obj: ApiObject) -> None:
            self._apply(self.graph.observe(identity(obj), None, obj.metadata))

        def changed(old: ApiObject, new: ApiObject) -> None:
            if old.uid != new.uid:
                gone(old)
                added(new)
            else:
                self._apply(self.graph.observe(identity(new), old.metadata, new.metadata))

        def gone(obj: ApiObject) -> None:
            self._apply(self.graph.remove(identity(obj)))

        informer.add_handler(Handlers(add=added, update=changed, delete=gone), name=self.name)
        return informer

    def _apply(self, effects: Effects) -> None:
        for uid in effects.delete:
            self.enqueue(Key(DELETE, uid))
        for uid in effects.retry:
            self.enqueue(Key(DELETE, uid), self.retry_seconds)
        for uid in effects.orphan:
            self.enqueue(Key(ORPHAN, uid))
        for identity, reference in effects.wrong_namespace:
            self._tell_wrong_namespace(identity, reference)

    def _tell_wrong_namespace(self, identity: Identity, reference: OwnerReference) -> None:
        wrong = owner_identity(reference, identity.namespace)
        subject = PartialObjectMetadata(
            api_version=identity.api_version,
            kind=identity.kind,
            metadata=ObjectMeta(name=identity.name, namespace=identity.namespace, uid=identity.uid),
        )
        words = f'ownerRef {wrong} does not exist in namespace "{identity.namespace}"'
        self.recorder.event(subject, "Warning", "OwnerRefInvalidNamespace", words)

    # One object

    async def reconcile(self, key: Key) -> Result | None:
        """Examine one object, or release one owner's dependents."""
        await self._ready.wait()
        node = self.graph.get(key.name)
        if node is None:
            return None
        if key.namespace == ORPHAN:
            await self._orphan_dependents(node)
        else:
            await self._examine(node)
        return None

    async def _examine(self, node: Node) -> None:
        if node.being_deleted and not node.deleting_dependents:
            return
        latest = await self._read(node.identity)
        if latest is None or latest.uid != node.uid:
            self._apply(self.graph.remove_absent(node.identity))
            return
        if node.deleting_dependents:
            await self._continue_foreground(node)
        elif latest.owner_references and (owners := await self._look_up_owners(node, latest)) is not None:
            await self._carry_out(node, latest, owners)
        if node.virtual:
            raise Conflict(f"{node.identity} has not been seen yet")

    async def _continue_foreground(self, node: Node) -> None:
        match decide_waiting(node):
            case Finish():
                await self._remove_finalizer(node, FOREGROUND_FINALIZER)
            case Wait(dependents):
                for uid in dependents:
                    self.enqueue(Key(DELETE, uid))

    async def _look_up_owners(self, node: Node, latest: ObjectMeta) -> Owners | None:
        """Sort the owner references by what is found; None when one of them makes no sense here."""
        solid: list[OwnerReference] = []
        dangling: list[OwnerReference] = []
        waiting: list[OwnerReference] = []
        for reference in latest.owner_references:
            kind = self._kind(reference.api_version, reference.kind)
            if kind.namespaced and not node.identity.namespace:
                return None
            owner = await self._read_owner(kind, node, reference)
            if owner is None:
                dangling.append(reference)
            else:
                (waiting if waits_for_dependents(owner) else solid).append(reference)
        return Owners(solid, dangling, waiting)

    async def _read_owner(self, kind: MetadataKind, node: Node, reference: OwnerReference) -> ObjectMeta | None:
        wanted = owner_identity(reference, node.identity.namespace if kind.namespaced else "")
        if wanted in self.graph.absent:
            return None
        found = await self._read(wanted)
        if found is None or found.uid != reference.uid:
            self.graph.absent.add(wanted)
            return None
        return found

    async def _carry_out(self, node: Node, latest: ObjectMeta, owners: Owners) -> None:
        match decide(node, latest, owners):
            case Keep():
                return
            case DropReferences(uids):
                await self._drop_references(node.identity, uids)
            case Delete(propagation, unblock_first):
                if unblock_first:
                    await self._unblock(node.identity, latest)
                await self._delete(node.identity, latest, propagation)

    async def _orphan_dependents(self, owner: Node) -> None:
        async with asyncio.TaskGroup() as group:
            for dependent in list(owner.dependents.values()):
                group.create_task(self._release(dependent.identity, owner.uid))
        await self._remove_finalizer(owner, ORPHAN_FINALIZER)

    async def _release(self, dependent: Identity, owner_uid: str) -> None:
        try:
            await self._drop_references(dependent, (owner_uid,))
        except NotFound:
            return

    # Calls

    def _kind(self, api_version: str, kind: str) -> MetadataKind:
        """The kind of that name.

        Raises:
            Conflict: The server has none (now): try again later, it may be a custom one that is still to come.
        """
        found = self._discovery.by_name.get((api_version, kind))
        if found is None:
            raise Conflict(f"the server has no kind {kind} in {api_version}")
        return found

    async def _read(self, identity: Identity) -> ObjectMeta | None:
        kind = self._kind(identity.api_version, identity.kind)
        namespace = identity.namespace if kind.namespaced else ""
        if kind.namespaced and not namespace:
            return None
        try:
            return (await self.api.get(kind, identity.name, namespace)).metadata
        except NotFound:
            return None

    async def _patch(self, identity: Identity, patch: object, **options: Any) -> ObjectMeta:
        kind = self._kind(identity.api_version, identity.kind)
        namespace = identity.namespace if kind.namespaced else ""
        return (await self.api.patch(kind, identity.name, namespace, patch, **options)).metadata

    async def _drop_references(self, identity: Identity, uids: tuple[str, ...]) -> None:
        try:
            await self._patch(identity, drop_references_patch(identity.uid, uids), patch_type=STRATEGIC)
        except UnsupportedMediaType:
            latest = await self._read(identity)
            if latest is not None and latest.uid == identity.uid:
                await self._patch(identity, remaining_references_patch(latest, uids))

    async def _unblock(self, identity: Identity, latest: ObjectMeta) -> None:
        """Let no owner wait for the object. If one did, it now has another version: its deletion is decided anew."""
        patch = unblock_references_patch(latest)
        if not patch:
            return
        try:
            await self._patch(identity, patch, patch_type=STRATEGIC)
        except UnsupportedMediaType:
            await self._patch(identity, unblocked_references_patch(latest))

    async def _remove_finalizer(self, node: Node, finalizer: str) -> None:
        for attempt in range(_CONFLICT_RETRIES):
            latest = await self._read(node.identity)
            patch = remove_finalizer_patch(latest, finalizer) if latest is not None else {}
            if not patch or (latest is not None and latest.uid != node.uid):
                return
            try:
                await self._patch(node.identity, patch)
            except NotFound:
                return
            except Conflict:
                if attempt == _CONFLICT_RETRIES - 1:
                    raise
            else:
                return

    async def _delete(self, identity: Identity, latest: ObjectMeta, propagation: str) -> None:
        """Delete the object as it was examined; when it has changed, only if its owners have not."""
        try:
            await self._delete_version(identity, propagation, latest.resource_version)
        except NotFound:
            self._apply(self.graph.remove_absent(identity))
        except Conflict:
            now = await self._read(identity)
            if now is None:
                self._apply(self.graph.remove_absent(identity))
            elif now.uid == identity.uid and now.owner_references == latest.owner_references:
                await self._delete_version(identity, propagation)
            else:
                raise

    async def _delete_version(self, identity: Identity, propagation: str, version: str = "") -> None:
        kind = self._kind(identity.api_version, identity.kind)
        namespace = identity.namespace if kind.namespaced else ""
        await self.api.delete(
            kind, identity.name, namespace, propagation=propagation, uid=identity.uid, resource_version=version
        )
