"""PUT and PATCH, of objects and of views of them (status, scale, ...).

A patch is applied to what a GET would have answered, so its result passes the same checks as a PUT. Server-side apply
may create; every other change of an absent object is 404.

Source: apiserver/pkg/endpoints/handlers/{update,patch}.go, v1.36.
"""

from dataclasses import dataclass

import msgspec

from skysail.api.raw import Raw
from skysail.apiserver import lifecycle
from skysail.apiserver.bodies import APPLY, Patch
from skysail.apiserver.catalogue import Handle
from skysail.apiserver.contract import RequestContext, View
from skysail.apiserver.patching import managed_fields
from skysail.apiserver.registry import Registry, update_errors
from skysail.apiserver.schema import TypeInfo
from skysail.apiserver.status import not_found
from skysail.apiserver.store import Record

_decode = msgspec.json.Decoder().decode


@dataclass(frozen=True, slots=True)
class Changed:
    """The outcome: the parent as stored, and whether it was created."""

    body: bytes
    created: bool = False


def patch_object(registry: Registry, handle: Handle, name: str, patch: Patch, ctx: RequestContext) -> Changed:
    """Apply a patch to an object.

    Raises:
        NotFound: There is none, and the patch is no server-side apply.
    """
    record = registry.store.latest(handle.storage, ctx.namespace, name)
    if record is None:
        if patch.media_type != APPLY:
            raise not_found(handle.resource.group_resource, name)
        return Changed(_apply_new(registry, handle, name, patch, ctx), created=True)
    old = handle.as_document(record.body)
    if patch.media_type == APPLY:
        new = _apply(handle, old, patch, ctx)
    else:
        new = patch.apply(handle.as_document(record.body), handle.type_info, registry.custom_kind(handle.resource))
    lifecycle.match_namespace(new, handle.resource, ctx.namespace)
    lifecycle.match_name(new, name)
    handle.strategy.default(new)
    if patch.media_type != APPLY:
        registry.track_fields(handle, old, new, ctx)
    return Changed(registry.finish_update(handle, record, new, old, ctx))


def _apply(handle: Handle, live: Raw | None, patch: Patch, ctx: RequestContext) -> Raw:
    return managed_fields.apply(
        live,
        patch.configuration,
        manager=ctx.field_manager,
        force=patch.force,
        subresource=ctx.subresource,
        now=ctx.now,
        type_info=handle.type_info,
    )


def _apply_new(registry: Registry, handle: Handle, name: str, patch: Patch, ctx: RequestContext) -> bytes:
    new = _apply(handle, None, patch, ctx)
    if new["metadata"].get("uid"):
        raise registry.no_such_uid(handle, name, new["metadata"]["uid"])
    lifecycle.match_namespace(new, handle.resource, ctx.namespace)
    lifecycle.match_name(new, name)
    return registry.insert_applied(handle, new, ctx)


def put_view(registry: Registry, handle: Handle, view: View, name: str, body: Raw, ctx: RequestContext) -> Changed:
    """Replace what a view shows."""
    record = registry.latest(handle, ctx.namespace, name)
    if view.body_kind is None:
        lifecycle.match_namespace(body, handle.resource, ctx.namespace)
        lifecycle.match_name(body, name)
        registry.check_uid(handle, body, record, name)
    return _store_view(registry, handle, view, body, record, ctx)


def patch_view(
    registry: Registry,
    handle: Handle,
    view: View,
    name: str,
    patch: Patch,
    body_type: TypeInfo,
    ctx: RequestContext,
) -> Changed:
    """Apply a patch to what a view shows."""
    record = registry.latest(handle, ctx.namespace, name)
    shown = view.read(handle.as_document(record.body), ctx)
    if patch.media_type == APPLY and view.body_kind is None:
        body = _apply(handle, shown, patch, ctx)
    elif patch.media_type == APPLY:
        managed_fields.check_configuration(patch.configuration, body_type)
        return _apply_to_view(registry, handle, view, patch, record, ctx)
    else:
        custom = registry.custom_kind(handle.resource) if view.body_kind is None else None
        body = patch.apply(shown, body_type, custom)
    lifecycle.match_namespace(body, handle.resource, ctx.namespace)
    lifecycle.match_name(body, name)
    return _store_view(registry, handle, view, body, record, ctx, tracked=patch.media_type == APPLY)


def _apply_to_view(
    registry: Registry, handle: Handle, view: View, patch: Patch, record: Record, ctx: RequestContext
) -> Changed:
    """Apply to a view of another kind: what it would change in the parent is applied to the parent."""
    old = handle.as_document(record.body)
    asked = patch.configuration
    target = view.write(_merged(view.read(old, ctx), asked), handle.as_document(record.body), ctx)
    applied: Raw = {
        "apiVersion": handle.resource.api_version,
        "kind": handle.resource.kind,
        "metadata": {"name": record.name},
        "spec": {"replicas": target["spec"]["replicas"]},
    }
    new = managed_fields.apply(
        old,
        applied,
        manager=ctx.field_manager,
        force=patch.force,
        subresource=ctx.subresource,
        now=ctx.now,
        type_info=handle.type_info,
    )
    body = view.read(new, ctx)
    final = view.write(body, handle.as_document(record.body), ctx)
    final["metadata"]["managedFields"] = new["metadata"].get("managedFields", [])
    return Changed(registry.store_update(handle, record, final, old, ctx))


def _merged(base: Raw, change: Raw) -> Raw:
    merged = dict(base)
    for key, value in change.items():
        known = merged.get(key)
        merged[key] = _merged(known, value) if isinstance(known, dict) and isinstance(value, dict) else value
    return merged


def _store_view(
    registry: Registry,
    handle: Handle,
    view: View,
    body: Raw,
    record: Record,
    ctx: RequestContext,
    *,
    tracked: bool = False,
) -> Changed:
    registry.check_version(handle, body, record)
    old = handle.as_document(record.body)
    if view.body_kind is None:
        handle.strategy.default(body)
    whole = view.body_kind is None and ctx.subresource != "status"
    if whole and not tracked:
        # Upstream notes who writes which fields before the endpoint puts back what it does not take.
        registry.track_fields(handle, old, body, ctx)
        tracked = True
    managed = body["metadata"].get("managedFields") if whole else None
    new = view.write(body, handle.as_document(record.body), ctx)
    if managed:
        new["metadata"]["managedFields"] = managed
    if not tracked:
        registry.track_fields(handle, old, new, ctx)
    lifecycle.carry_over(new, old)
    new["metadata"]["resourceVersion"] = str(record.revision)
    registry.raise_invalid(
        handle, new, [*update_errors(new, old, core=not handle.resource.custom), *view.validate(body, new, old, ctx)]
    )
    lifecycle.keep_managed_times(new, old)
    return Changed(registry.store_update(handle, record, new, old, ctx))
