"""Create, update and delete for any kind, with every rule applied: the generic registry.

One `Registry` serves all resources. What is particular to a kind comes from its `Strategy`, gathered with the rest of
what a request needs to know of it in a `Handle`. Each method is one atomic step; it returns the object as stored, as
JSON bytes in the storage version.

    create   default ▶ managed fields ▶ admit ▶ system fields ▶ prepare ▶ validate ▶ store
    update   default ▶ managed fields ▶ admit ▶ version check ▶ prepare ▶ carry over ▶ validate ▶ store (or remove)
    delete   preconditions ▶ grace, finalizers ▶ store (or remove)

Source: apiserver/pkg/registry/generic/registry/store.go, v1.36.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import msgspec

from skysail.api.errors import AlreadyExists, Conflict
from skysail.api.raw import Raw
from skysail.apiserver import lifecycle
from skysail.apiserver.admission import admit, check
from skysail.apiserver.catalogue import STORED_ELSEWHERE, Catalogue, Handle
from skysail.apiserver.contract import (
    DeleteOptions,
    FieldError,
    GroupResource,
    RequestContext,
    invalid,
)
from skysail.apiserver.deleting import delete_record
from skysail.apiserver.patching import managed_fields
from skysail.apiserver.status import (
    already_exists,
    conflict,
    invalid_object,
    name_not_unique,
    not_found,
    plain_error,
)
from skysail.apiserver.store import Record, make_record
from skysail.apiserver.validation.metadata import object_meta, object_meta_update

_NAME_ATTEMPTS = 8
_decode = msgspec.json.Decoder().decode


class Registry(Catalogue):
    """All resources of one server over one store. Implements `contract.Registry`."""

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
        """Delete as the DELETE verb does; the last state, and whether the object is gone.

        Raises:
            NotFound: There is no such object.
        """
        default = "" if options.propagation else handle.strategy.default_propagation(ctx)
        record = self.latest(handle, namespace, name)
        return delete_record(self.store, handle, record, options, default, ctx)

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


def update_errors(new: Raw, old: Raw, *, core: bool = True) -> Sequence[FieldError]:
    """What is wrong with a change of metadata; `core` tells built-in kinds from custom ones."""
    return object_meta_update(new["metadata"], old["metadata"], core=core)


def _set_generation(new: Raw, old: Raw) -> None:
    generation = old["metadata"].get("generation")
    if generation is None:
        new["metadata"].pop("generation", None)
    else:
        new["metadata"]["generation"] = generation
