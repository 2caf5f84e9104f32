"""DELETE: grace, finalizers, propagation, and the removal itself.

    nothing to wait for            removed at once
    grace (pods on a node)         marked with its end; a second DELETE may bring it forward, zero removes
    finalizers                     marked; whoever takes the last one off removes it
    the kind says not yet          marked (namespaces with spec.finalizers, definitions with instances)

A pod that goes is first marked with zero grace and then removed, so a watch sees both.

Source: apiserver/pkg/registry/generic/registry/store.go, rest/delete.go, v1.36.
"""

from collections.abc import Sequence

import msgspec

from skysail.api.raw import Raw
from skysail.apiserver import lifecycle
from skysail.apiserver.admission import admit
from skysail.apiserver.catalogue import Handle
from skysail.apiserver.contract import DeleteOptions, GroupResource, RequestContext
from skysail.apiserver.status import conflict
from skysail.apiserver.store import Record, Store

_decode = msgspec.json.Decoder().decode


def delete_record(
    store: Store, handle: Handle, record: Record, options: DeleteOptions, default: str, ctx: RequestContext
) -> tuple[Raw, bool]:
    """Delete an object as the DELETE verb does; its last state, and whether it is gone.

    Args:
        store: Where it lies.
        handle: Its kind.
        record: Its stored state.
        options: What was asked for.
        default: The kind's own propagation, for when none was asked for.
        ctx: The request.

    Raises:
        Conflict: A precondition does not hold.
        Forbidden: Admission refuses.
    """
    strategy = handle.strategy
    document: Raw = _decode(record.body)
    metadata = document["metadata"]
    admit("DELETE", handle.resource, {}, document, ctx)
    _check_preconditions(handle, metadata, options)
    grace = strategy.grace_period(document, options, ctx)
    if grace is not None and metadata.get("deletionTimestamp"):
        if metadata.get("deletionGracePeriodSeconds"):
            if not lifecycle.shorten_grace(metadata, options, ctx.now):
                return document, False
            grace = metadata["deletionGracePeriodSeconds"]
        else:
            grace = None
    elif grace is not None:
        lifecycle.begin_grace(metadata, grace, ctx.now)
        strategy.prepare_delete(document, ctx)
    finalizers = lifecycle.garbage_finalizers(metadata, options.propagation, default)
    _set_finalizers(metadata, finalizers)
    if not strategy.may_remove(document) or finalizers:
        _mark(handle, document, grace, ctx, whole=strategy.may_remove(document))
        return _keep(store, handle, record, document, ctx), False
    if grace is not None:
        document = _keep(store, handle, record, document, ctx)
        if grace:
            return document, False
    if not ctx.dry_run:
        change = store.delete(handle.storage, record.namespace, record.name)
        document["metadata"]["resourceVersion"] = str(change.revision)
    return document, True


def _mark(handle: Handle, document: Raw, grace: int | None, ctx: RequestContext, *, whole: bool) -> None:
    """Mark an object that stays; `whole` notes the end of its grace as well."""
    metadata = document["metadata"]
    if grace is not None:
        return
    if not metadata.get("deletionTimestamp"):
        handle.strategy.prepare_delete(document, ctx)
        if not whole:
            metadata["deletionTimestamp"] = lifecycle.timestamp(ctx.now)
    if whole:
        lifecycle.mark_deleted(metadata, ctx.now)


def _keep(store: Store, handle: Handle, record: Record, document: Raw, ctx: RequestContext) -> Raw:
    if ctx.dry_run or document == _decode(record.body):
        return document
    kept: Raw = _decode(store.put(handle.storage, document, handle.strategy.selectable_fields(document)).body)
    return kept


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


def _set_finalizers(metadata: Raw, finalizers: Sequence[str]) -> None:
    if finalizers:
        metadata["finalizers"] = list(finalizers)
    else:
        metadata.pop("finalizers", None)
