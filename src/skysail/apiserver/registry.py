"""Create, update and delete for any kind, with every rule applied: the generic registry.

One `Registry` serves all resources. What is particular to a kind comes from its `Strategy`, gathered with the rest of
what a request needs to know of it in a `Handle`. Each method is one atomic step; it returns the object as stored, as
JSON bytes in the storage version.

    create   default ▶ managed fields ▶ admit ▶ system fields ▶ prepare ▶ validate ▶ store
    update   default ▶ managed fields ▶ admit ▶ version check ▶ prepare ▶ carry over ▶ validate ▶ store (or remove)
    delete   preconditions ▶ grace, finalizers ▶ store (or remove)

Source: apiserver/pkg/registry/generic/registry/store.go, v1.36.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from skysail.api.errors import AlreadyExists, Conflict, InvariantBroken
from skysail.api.raw import Raw
from skysail.apiserver import lifecycle
from skysail.apiserver.admission import admit, check
from skysail.apiserver.contract import (
    DeleteOptions,
    FieldError,
    GroupResource,
    RequestContext,
    ResourceInfo,
    Strategy,
    invalid,
)
from skysail.apiserver.customresources.definitions import DefinitionStrategy
from skysail.apiserver.customresources.kinds import CustomKind
from skysail.apiserver.patching import managed_fields
from skysail.apiserver.schema import Schema, TypeInfo
from skysail.apiserver.status import (
    already_exists,
    conflict,
    invalid_object,
    name_not_unique,
    not_found,
    plain_error,
    unknown_resource,
)
from skysail.apiserver.store import Record, Store, StoredObject, make_record, restored_record
from skysail.apiserver.strategies import for_resource
from skysail.apiserver.validation.metadata import object_meta, object_meta_update

STORED_ELSEWHERE: Mapping[GroupResource, GroupResource] = {
    GroupResource("events.k8s.io", "events"): GroupResource("", "events"),
}
DEFINITIONS = GroupResource("apiextensions.k8s.io", "customresourcedefinitions")
_DEFINITION_STRATEGY = DefinitionStrategy()
_NAME_ATTEMPTS = 8
_decode = msgspec.json.Decoder().decode
_decode_selectors = msgspec.json.Decoder(tuple[dict[str, str], dict[str, str]]).decode


@dataclass(frozen=True, slots=True, eq=False)
class Handle:
    """Everything about one resource in one version.

    Attributes:
        storage: Where its objects lie; other versions and groups may share it.
        type_info: The shape of its body.
        head: How a stored body begins that needs no conversion to be shown in this version.
    """

    resource: ResourceInfo
    storage: GroupResource
    strategy: Strategy
    type_info: TypeInfo
    head: bytes

    def shown(self, body: bytes) -> bytes:
        """A stored object in this version."""
        if body.startswith(self.head):
            return body
        return msgspec.json.encode(self.as_document(body))

    def as_document(self, body: bytes) -> Raw:
        """A stored object in this version, decoded; the caller's own."""
        document: Raw = _decode(body)
        if body.startswith(self.head):
            return document
        return self.strategy.from_storage(document, self.resource.group, self.resource.version)


class Registry:
    """All resources of one server over one store. Implements `contract.Registry`."""

    def __init__(self, store: Store, schema: Schema) -> None:
        self.store = store
        self.schema = schema
        self._custom: dict[ResourceInfo, CustomKind] = {}
        self._handles: dict[ResourceInfo, Handle] = {}
        self._preferred: dict[GroupResource, Handle] = {}
        self._generation = -1

    # Knowing kinds.

    def handle(self, resource: ResourceInfo) -> Handle:
        """The handle of a resource in one version."""
        if self._generation != self.schema.generation:
            self._handles.clear()
            self._preferred.clear()
            self._generation = self.schema.generation
        handle = self._handles.get(resource)
        if handle is None:
            handle = self._handles[resource] = self._make_handle(resource)
        return handle

    def _make_handle(self, resource: ResourceInfo) -> Handle:
        type_info = self.schema.type_of(resource.group, resource.version, resource.kind)
        if type_info is None:
            raise InvariantBroken(f"the table has no type for {resource.kind} in {resource.api_version}")
        head = f'{{"kind":"{resource.kind}","apiVersion":"{resource.api_version}",'
        return Handle(
            resource=resource,
            storage=STORED_ELSEWHERE.get(resource.group_resource, resource.group_resource),
            strategy=self._strategy_of(resource),
            type_info=type_info,
            head=head.encode(),
        )

    def _strategy_of(self, resource: ResourceInfo) -> Strategy:
        if resource.group_resource == DEFINITIONS:
            return _DEFINITION_STRATEGY
        if resource.custom:
            return self._custom[resource].strategy
        return for_resource(resource.group, resource.resource)

    def add_custom(self, kind: CustomKind, types: Mapping[str, TypeInfo], root: str) -> None:
        """Serve a custom kind in one version, in place of what was served there."""
        self.remove_custom(kind.resource)
        self._custom[kind.resource] = kind
        self.schema.add(kind.resource, types, root)

    def remove_custom(self, resource: ResourceInfo) -> None:
        """Serve a custom resource no longer."""
        for row in [row for row in self._custom if _same_endpoint(row, resource)]:
            del self._custom[row]
            self.schema.remove(row)

    def custom_kind(self, resource: ResourceInfo) -> CustomKind | None:
        """What serves a custom resource; None for built-in ones."""
        return self._custom.get(resource)

    def handle_of(self, resource: GroupResource) -> Handle:
        """The handle of a resource in its first served version.

        Raises:
            NotFound: No such resource is served.
        """
        handle = self._preferred.get(resource)
        if handle is None or self._generation != self.schema.generation:
            info = next((info for info in self.schema.resources if info.group_resource == resource), None)
            if info is None:
                raise unknown_resource()
            handle = self._preferred[resource] = self.handle(info)
        return handle

    def restore(self, objects: Iterable[StoredObject]) -> None:
        """Fill the store with what a previous life left on disk."""
        by_resource: dict[GroupResource, list[StoredObject]] = {}
        for stored in objects:
            by_resource.setdefault(stored.resource, []).append(stored)
        for resource, found in by_resource.items():
            self.store.restore(resource, list(self._restored(resource, found)))

    def _restored(self, resource: GroupResource, objects: Sequence[StoredObject]) -> Iterator[Record]:
        expected = self._fields_of(resource, _decode(objects[0].body)).keys()
        known: dict[bytes, tuple[Mapping[str, str], Mapping[str, str]]] = {}
        for stored in objects:
            selectors = known.get(stored.selectors)
            if selectors is None:
                selectors = known[stored.selectors] = _decode_selectors(stored.selectors)
            labels, fields = selectors
            if fields.keys() != expected:
                # The kind has got other selectable fields since: only the body knows their values.
                fields = self._fields_of(resource, _decode(stored.body))
            yield restored_record(stored.key, stored.revision, stored.body, labels, fields)

    def _fields_of(self, resource: GroupResource, document: Raw) -> Mapping[str, str]:
        custom = next((kind for row, kind in self._custom.items() if row.group_resource == resource), None)
        strategy: Strategy = custom.strategy if custom else for_resource(*resource)
        return strategy.selectable_fields(document)

    # Reading.

    def get(self, resource: GroupResource, namespace: str, name: str) -> Raw | None:
        """The object as this request's writes have left it, or None."""
        record = self.store.latest(STORED_ELSEWHERE.get(resource, resource), namespace, name)
        return _decode(record.body) if record else None

    def list(self, resource: GroupResource, namespace: str = "") -> Sequence[Raw]:
        """All objects of a resource, in key order."""
        storage = STORED_ELSEWHERE.get(resource, resource)
        return [_decode(record.body) for record in self.store.latest_all(storage, namespace)]

    def latest(self, handle: Handle, namespace: str, name: str) -> Record:
        """The stored object.

        Raises:
            NotFound: There is none.
        """
        record = self.store.latest(handle.storage, namespace, name)
        if record is None:
            raise not_found(handle.resource.group_resource, name)
        return record

    # Creating.

    def create(self, resource: GroupResource, namespace: str, obj: Raw, ctx: RequestContext) -> Raw:
        """Create an object for a subresource or admission; see `contract.Registry`."""
        handle = self.handle_of(resource)
        obj.setdefault("kind", handle.resource.kind)
        obj.setdefault("apiVersion", handle.resource.api_version)
        created: Raw = _decode(self.create_object(handle, namespace, obj, ctx))
        return created

    def create_object(self, handle: Handle, namespace: str, obj: Raw, ctx: RequestContext) -> bytes:
        """Create from a decoded body in the handle's version; generated names are tried several times."""
        lifecycle.wipe_system_fields(obj)
        lifecycle.match_namespace(obj, handle.resource, namespace)
        metadata = obj["metadata"]
        attempts = _NAME_ATTEMPTS if metadata.get("generateName") and not metadata.get("name") else 1
        for _ in range(attempts - 1):
            copy: Raw = _decode(msgspec.json.encode(obj))
            try:
                return self._create(handle, copy, ctx)
            except AlreadyExists:
                continue
        return self._create(handle, obj, ctx)

    def _create(self, handle: Handle, obj: Raw, ctx: RequestContext) -> bytes:
        resource, strategy = handle.resource, handle.strategy
        strategy.default(obj)
        self.track_fields(handle, None, obj, ctx)
        admit("CREATE", resource, obj, None, ctx)
        return self._insert(handle, obj, ctx)

    def insert_applied(self, handle: Handle, obj: Raw, ctx: RequestContext) -> bytes:
        """Create what a server-side apply has made of nothing; its managed fields are in place."""
        handle.strategy.default(obj)
        admit("CREATE", handle.resource, obj, None, ctx)
        return self._insert(handle, obj, ctx)

    @staticmethod
    def no_such_uid(handle: Handle, name: str, uid: str) -> Conflict:
        """The refusal of an apply that names the uid of an object that is not there."""
        why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        return conflict(handle.resource.group_resource, name, why)

    def _insert(self, handle: Handle, obj: Raw, ctx: RequestContext) -> bytes:
        """The second half of a create, shared with an update or apply that creates."""
        resource, strategy, metadata = handle.resource, handle.strategy, obj["metadata"]
        lifecycle.fill_system_fields(obj, ctx.now, ctx.rng)
        strategy.prepare_create(obj, ctx)
        self.raise_invalid(handle, obj, self._create_errors(handle, obj))
        ctx.warnings.extend(strategy.warnings(obj, None, ctx))
        check("CREATE", resource, obj, None, ctx)
        if metadata.get("resourceVersion"):
            raise plain_error("resourceVersion should not be set on objects to be created")
        stored = strategy.to_storage(obj, resource.group, resource.version)
        name, namespace = metadata["name"], metadata.get("namespace", "")
        existing = self.store.latest(handle.storage, namespace, name)
        if existing is not None:
            raise self._exists(handle, existing, generated=bool(metadata.get("generateName")))
        if ctx.dry_run:
            return msgspec.json.encode(stored)
        return self.store.put(handle.storage, stored, strategy.selectable_fields(stored)).body

    @staticmethod
    def _create_errors(handle: Handle, obj: Raw) -> Sequence[FieldError]:
        strategy = handle.strategy

        def name_check(name: str) -> tuple[str, ...]:
            return tuple(strategy.name_errors(name, False))

        errors = object_meta(obj["metadata"], handle.resource.namespaced, name_check, core=not handle.resource.custom)
        return [*errors, *strategy.validate_create(obj)]

    def _exists(self, handle: Handle, existing: Record, *, generated: bool) -> AlreadyExists:
        resource = handle.resource.group_resource
        error = name_not_unique(resource, existing.name) if generated else already_exists(resource, existing.name)
        if _decode(existing.body)["metadata"].get("deletionTimestamp"):
            message = f"object is being deleted: {error.status.message}"
            return AlreadyExists(msgspec.structs.replace(error.status, message=message))
        return error

    # Updating.

    def update(
        self,
        resource: GroupResource,
        namespace: str,
        name: str,
        mutate: Callable[[Raw], Raw | None],
        ctx: RequestContext,
        *,
        validate: bool = True,
        manager: str = "",
        subresource: str = "",
    ) -> Raw:
        """Alter an object for a subresource; see `contract.Registry`."""
        handle = self.handle_of(resource)
        record = self.latest(handle, namespace, name)
        old, new = _decode(record.body), _decode(record.body)
        replaced = mutate(new)
        new = new if replaced is None else replaced
        if validate:
            self.raise_invalid(handle, new, handle.strategy.validate_update(new, old))
        if manager:
            self.track_fields(handle, old, new, replace(ctx, field_manager=manager, subresource=subresource))
        altered: Raw = _decode(self.store_update(handle, record, new, old, ctx))
        return altered

    def update_object(self, handle: Handle, name: str, obj: Raw, ctx: RequestContext) -> tuple[bytes, bool]:
        """Replace an object by a decoded body (PUT); also whether it was created."""
        lifecycle.match_namespace(obj, handle.resource, ctx.namespace)
        lifecycle.match_name(obj, name)
        record = self.store.latest(handle.storage, ctx.namespace, name)
        if record is None and not handle.strategy.allow_create_on_update:
            raise not_found(handle.resource.group_resource, name)
        self.check_uid(handle, obj, record, name)
        if record is None:
            return self._create(handle, obj, ctx), True
        old = handle.as_document(record.body)
        handle.strategy.default(obj)
        self.track_fields(handle, old, obj, ctx)
        return self.finish_update(handle, record, obj, old, ctx), False

    def finish_update(self, handle: Handle, record: Record, new: Raw, old: Raw, ctx: RequestContext) -> bytes:
        """The second half of a PUT or PATCH: `new` is defaulted and its managed fields are up to date."""
        strategy, resource = handle.strategy, handle.resource
        warning = lifecycle.deduplicate_owners(new)
        if warning:
            ctx.warnings.append(warning)
        admit("UPDATE", resource, new, old, ctx)
        self.check_version(handle, new, record)
        _set_generation(new, old)
        strategy.prepare_update(new, old, ctx)
        lifecycle.carry_over(new, old)
        errors = update_errors(new, old, core=not resource.custom)
        self.raise_invalid(handle, new, [*errors, *strategy.validate_update(new, old)])
        ctx.warnings.extend(strategy.warnings(new, old, ctx))
        lifecycle.keep_managed_times(new, old)
        check("UPDATE", resource, new, old, ctx)
        return self.store_update(handle, record, new, old, ctx)

    def store_update(self, handle: Handle, record: Record, new: Raw, old: Raw, ctx: RequestContext) -> bytes:
        """Write a finished update: nothing when nothing changed, a removal when its last finalizer is gone."""
        strategy, resource = handle.strategy, handle.resource
        stored = strategy.to_storage(new, resource.group, resource.version)
        if lifecycle.is_finished(new, old) and strategy.may_remove(stored):
            if not ctx.dry_run:
                self.store.delete(handle.storage, record.namespace, record.name)
            return make_record(stored, record.revision, {}).body
        new["metadata"]["resourceVersion"] = str(record.revision)
        if ctx.dry_run:
            return msgspec.json.encode(stored)
        if new == old:
            return record.body
        return self.store.put(handle.storage, stored, strategy.selectable_fields(stored)).body

    def check_uid(self, handle: Handle, obj: Raw, record: Record | None, name: str) -> None:
        """Refuse a body that speaks of another object of the same name.

        Raises:
            Conflict: The uid in the body is not the stored one.
        """
        wanted = obj["metadata"].get("uid")
        actual = _decode(record.body)["metadata"]["uid"] if record and wanted else ""
        if wanted and wanted != actual:
            resource = handle.resource.group_resource
            key = f"/registry/{resource.resource}/{record.key if record else name}"
            raise conflict(
                resource,
                name,
                f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: "
                f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {actual}",
            )

    def check_version(self, handle: Handle, obj: Raw, record: Record) -> None:
        """Refuse an update that was made from an older state; one that names no state is given the current.

        Raises:
            Conflict: The resourceVersion in the body is not the stored one.
            Invalid: There is none, and the kind wants one.
        """
        text = obj["metadata"].get("resourceVersion") or "0"
        resource = handle.resource.group_resource
        if text == "0":
            if not handle.strategy.allow_unconditional_update:
                error = invalid("metadata.resourceVersion", 0, "must be specified for an update")
                raise invalid_object(resource.group, resource.resource, record.name, [error])
            obj["metadata"]["resourceVersion"] = str(record.revision)
        elif text != str(record.revision):
            if not text.isdigit():
                detail = f'strconv.ParseUint: parsing "{text}": invalid syntax'
                raise plain_error(f"resourceVersion: Invalid value: {text!r}: {detail}".replace("'", '"'))
            raise conflict(resource, record.name)

    # Deleting.

    def delete(
        self, resource: GroupResource, namespace: str, name: str, options: DeleteOptions, ctx: RequestContext
    ) -> Raw:
        """Delete for a subresource; see `contract.Registry`."""
        document, _ = self.delete_object(self.handle_of(resource), namespace, name, options, ctx)
        return document

    def delete_object(
        self, handle: Handle, namespace: str, name: str, options: DeleteOptions, ctx: RequestContext
    ) -> tuple[Raw, bool]:
        """Delete as the DELETE verb does; the last state, and whether the object is gone."""
        strategy, resource = handle.strategy, handle.resource
        default = "" if options.propagation else strategy.default_propagation(ctx)
        record = self.latest(handle, namespace, name)
        document: Raw = _decode(record.body)
        metadata = document["metadata"]
        admit("DELETE", resource, {}, document, ctx)
        self._check_preconditions(handle, metadata, options)
        grace = strategy.grace_period(document, options, ctx)
        if grace is not None and metadata.get("deletionTimestamp") and metadata.get("deletionGracePeriodSeconds"):
            if not lifecycle.shorten_grace(metadata, options, ctx.now):
                return document, False
            grace = metadata["deletionGracePeriodSeconds"]
        elif grace is not None and metadata.get("deletionTimestamp"):
            grace = None
        elif grace is not None:
            lifecycle.begin_grace(metadata, grace, ctx.now)
            strategy.prepare_delete(document, ctx)
        finalizers = lifecycle.garbage_finalizers(metadata, options.propagation, default)
        _set_finalizers(metadata, finalizers)
        if not strategy.may_remove(document):
            if not metadata.get("deletionTimestamp"):
                metadata["deletionTimestamp"] = lifecycle.timestamp(ctx.now)
                strategy.prepare_delete(document, ctx)
            return self._keep_deleted(handle, record, document, ctx), False
        if finalizers:
            if grace is None:
                if not metadata.get("deletionTimestamp"):
                    strategy.prepare_delete(document, ctx)
                lifecycle.mark_deleted(metadata, ctx.now)
            return self._keep_deleted(handle, record, document, ctx), False
        if grace is not None:
            document = self._keep_deleted(handle, record, document, ctx)
            if grace:
                return document, False
        if not ctx.dry_run:
            change = self.store.delete(handle.storage, namespace, name)
            metadata = document["metadata"]
            metadata["resourceVersion"] = str(change.revision)
        return document, True

    def _keep_deleted(self, handle: Handle, record: Record, document: Raw, ctx: RequestContext) -> Raw:
        if ctx.dry_run or document == _decode(record.body):
            return document
        kept: Raw = _decode(self.store.put(handle.storage, document, handle.strategy.selectable_fields(document)).body)
        return kept

    @staticmethod
    def _check_preconditions(handle: Handle, metadata: Raw, options: DeleteOptions) -> None:
        about = GroupResource(handle.resource.group, handle.resource.kind)
        uid, version, name = metadata["uid"], metadata["resourceVersion"], metadata["name"]
        if options.uid and options.uid != uid:
            raise conflict(
                about,
                name,
                f"the UID in the precondition ({options.uid}) does not match the UID in record ({uid}). "
                "The object might have been deleted and then recreated",
            )
        if options.resource_version and options.resource_version != version:
            raise conflict(
                about,
                name,
                f"the ResourceVersion in the precondition ({options.resource_version}) does not match the "
                f"ResourceVersion in record ({version}). The object might have been modified",
            )

    # Shared.

    @staticmethod
    def track_fields(handle: Handle, live: Raw | None, new: Raw, ctx: RequestContext) -> None:
        """Bring managedFields up to date; the main endpoint owns nothing of a status that has its own."""
        aside = not ctx.subresource and "status" in handle.resource.subresources
        status = new.pop("status", None) if aside else None
        if aside and live is not None and "status" in live:
            new["status"] = live["status"]
        managed_fields.update(
            live,
            new,
            manager=ctx.field_manager,
            api_version=handle.resource.api_version,
            subresource=ctx.subresource,
            now=ctx.now,
            type_info=handle.type_info,
        )
        if status is not None:
            new["status"] = status

    @staticmethod
    def raise_invalid(handle: Handle, obj: Raw, errors: Sequence[FieldError]) -> None:
        """Refuse an object that breaks rules; do nothing when there are none."""
        if errors:
            resource = handle.resource
            kind = obj["kind"] if resource.custom else resource.kind
            raise invalid_object(handle.storage.group, kind, obj["metadata"].get("name") or "", errors)


def _same_endpoint(one: ResourceInfo, other: ResourceInfo) -> bool:
    return one.group_resource == other.group_resource and one.version == other.version


def update_errors(new: Raw, old: Raw, *, core: bool = True) -> Sequence[FieldError]:
    """What is wrong with a change of metadata; `core` tells built-in kinds from custom ones."""
    return object_meta_update(new["metadata"], old["metadata"], core=core)


def _set_generation(new: Raw, old: Raw) -> None:
    generation = old["metadata"].get("generation")
    if generation is None:
        new["metadata"].pop("generation", None)
    else:
        new["metadata"]["generation"] = generation


def _set_finalizers(metadata: Raw, finalizers: Sequence[str]) -> None:
    if finalizers:
        metadata["finalizers"] = list(finalizers)
    else:
        metadata.pop("finalizers", None)
