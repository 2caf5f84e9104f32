"""What each verb does: from a routed request to an answer, or to the plan of a watch.

Everything here is synchronous and one step: read the options, decode the body, let the registry work, write the object
out in the form that was asked for. Refusals are raised.

Source: apiserver/pkg/endpoints/handlers/{get,create,update,patch,delete}.go, v1.36.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random

import msgspec

from skysail.api.errors import InvariantBroken
from skysail.api.ports import Clock, Request, Response, User
from skysail.api.raw import Raw
from skysail.apiserver import lifecycle
from skysail.apiserver.bodies import (
    decode_delete_options,
    decode_object,
    decode_patch,
    patch_media_type,
)
from skysail.apiserver.catalogue import Handle
from skysail.apiserver.changing import Changed, patch_object, patch_view, put_view
from skysail.apiserver.contract import Access, Action, RequestContext, View
from skysail.apiserver.customresources.bodies import decode_custom
from skysail.apiserver.deprecations import deprecation_notice
from skysail.apiserver.forms import as_yaml, check_include, form_for, indented
from skysail.apiserver.patching import managed_fields
from skysail.apiserver.reading import check_reached, list_page
from skysail.apiserver.registry import Registry
from skysail.apiserver.requests import (
    Accepted,
    Query,
    WriteOptions,
    list_options,
    manager_of,
    negotiate,
    wants_indent,
    write_options,
)
from skysail.apiserver.routing import Target
from skysail.apiserver.schema import TypeInfo
from skysail.apiserver.selecting import check_fields
from skysail.apiserver.status import create_while_terminating, deleted_status, method_not_allowed, not_found
from skysail.apiserver.streams import WatchPlan, plan_watch
from skysail.apiserver.subresources import action_for, view_for
from skysail.apiserver.subresources.connecting import has_no_log_yet, is_connection, parent_name, refuse_connection

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_CACHE_CONTROL = ("Cache-Control", "no-cache, private")
_JSON = (_CACHE_CONTROL, ("Content-Type", "application/json"))
_YAML = (_CACHE_CONTROL, ("Content-Type", "application/yaml"))
_TEXT = (_CACHE_CONTROL, ("Content-Type", "text/plain"))


@dataclass(slots=True)
class Call:
    """One request on its way.

    Attributes:
        warnings: For `Warning` headers; filled by all who work on it.
    """

    request: Request
    user: User
    target: Target
    query: Query
    handle: Handle
    accepted: Accepted
    warnings: list[str] = field(default_factory=list)

    @property
    def content_type(self) -> str:
        """Of the body; "" when the request has none."""
        return self.request.headers.get("content-type", "")


class Endpoints:
    """The verbs of every resource.

    Args:
        registry: Where objects live.
        clock: For times in objects.
        rng: For uids and names.
        options: The server's switches, handed to every hook.
        access: For reviews.
    """

    def __init__(
        self, registry: Registry, clock: Clock, rng: Random, options: Mapping[str, str], access: Access
    ) -> None:
        self._registry, self._clock, self._rng, self._options = registry, clock, rng, options
        self._access = access
        self._verbs: Mapping[str, Callable[[Call], Response | WatchPlan]] = {
            "get": self._get,
            "list": self._list,
            "create": self._create,
            "update": self._update,
            "patch": self._patch,
            "delete": self._delete,
            "deletecollection": self._delete_collection,
        }

    def serve(self, request: Request, user: User, target: Target, warnings: list[str]) -> Response | WatchPlan:
        """Answer a request.

        Raises:
            ApiError: It is refused.
            FutureRevision: It asks for a state that has not come about; nothing has been done.
        """
        call = Call(
            request=request,
            user=user,
            target=target,
            query=Query(request.query),
            handle=self._registry.handle(target.resource),
            accepted=negotiate(request.headers),
            warnings=warnings,
        )
        if call.accepted.convert == "Table":
            check_include(call.query.text("includeObject"))
        notice = deprecation_notice(target.resource.group_resource)
        if notice and notice not in warnings:
            warnings.append(notice)
        if is_connection(target.resource.group, target.resource.resource, target.subresource):
            return self._connect(call)
        return self._verbs[target.verb](call)

    def context(self, call: Call, options: WriteOptions | None = None, *, verb: str = "") -> RequestContext:
        """What the hooks of a request are told."""
        target, headers = call.target, call.request.headers
        agent = headers.get("user-agent", "")
        options = options or WriteOptions()
        return RequestContext(
            user=call.user,
            now=self._clock.now(),
            rng=self._rng,
            reader=self._registry,
            resource=target.resource,
            verb=verb or target.verb,
            namespace=target.namespace,
            name=target.name,
            subresource=target.subresource,
            dry_run=options.dry_run,
            field_manager=manager_of(options.field_manager, agent),
            field_validation=options.field_validation,
            user_agent=agent,
            warnings=call.warnings,
            options=self._options,
            access=self._access,
        )

    # Reading.

    def _get(self, call: Call) -> Response:
        target, handle, store = call.target, call.handle, self._registry.store
        version = call.query.text("resourceVersion")
        if version:
            check_reached(store, version)
        record = store.get(handle.storage, target.namespace, target.name)
        if record is None:
            raise not_found(target.resource.group_resource, target.name)
        if target.subresource:
            view = self._view(target)
            shown = view.read(handle.as_document(record.body), self.context(call))
            return self._answer(call, 200, _encode(shown), shaped=True)
        return self._answer(call, 200, record.body)

    def _list(self, call: Call) -> Response | WatchPlan:
        target, handle = call.target, call.handle
        watch = is_watch(call.request, target)
        options = list_options(call.query, watch=watch)
        check_fields(target.resource, handle.strategy, options.fields)
        form = form_for(handle, call.accepted, call.query.text("includeObject"), self._clock.now)
        if watch:
            return plan_watch(handle.storage, target.namespace, options, form, self._rng)
        page = list_page(self._registry.store, handle.storage, target.namespace, options)
        body = form.collection(page.metadata, [record.body for record in page.records])
        return self._finish(call, 200, body)

    def _connect(self, call: Call) -> Response:
        """What leads to a container or a port, which nothing here has."""
        target, handle = call.target, call.handle
        name = parent_name(target.name, target.subresource)
        record = self._registry.store.get(handle.storage, target.namespace, name)
        if record is None:
            raise not_found(target.resource.group_resource, name)
        parent = handle.as_document(record.body)
        if has_no_log_yet(parent, target.subresource):
            return Response(200, _TEXT, b"")
        raise refuse_connection(parent, target.resource.resource, target.subresource)

    # Writing.

    def _create(self, call: Call) -> Response:
        target, handle = call.target, call.handle
        options = write_options(call.query, "CreateOptions")
        action = action_for(target.resource.group, target.resource.resource, target.subresource)
        if action is not None:
            return self._act(call, action, options)
        if target.subresource:
            raise method_not_allowed()
        custom = self._registry.custom_kind(target.resource)
        if custom is not None and custom.terminating:
            raise create_while_terminating(target.resource.group_resource)
        obj = self._decode(call, options)
        ctx = self.context(call, options)
        if ctx.resource.resource == "namespaces" and not ctx.namespace:
            ctx.namespace = (obj.get("metadata") or {}).get("name") or ""
        ctx.name = (obj.get("metadata") or {}).get("name") or ""
        return self._answer(call, 201, self._registry.create_object(handle, target.namespace, obj, ctx))

    def _act(self, call: Call, action: Action, options: WriteOptions) -> Response:
        body_type = self._type_of(action.body_kind)
        obj = decode_object(call.request.body, call.content_type, body_type, options, call.warnings)
        lifecycle.match_namespace(obj, call.target.resource, call.target.namespace)
        ctx = self.context(call, options)
        action.default(obj)
        if action.tracked:
            group, version, _ = action.body_kind
            managed_fields.update(
                None,
                obj,
                manager=ctx.field_manager,
                api_version=f"{group}/{version}",
                subresource=ctx.subresource,
                now=ctx.now,
                type_info=body_type,
            )
        answer = action.create(obj, self._registry, ctx)
        return self._answer(call, answer.status, _encode(answer.body), shaped=True)

    def _update(self, call: Call) -> Response:
        target, handle = call.target, call.handle
        options = write_options(call.query, "UpdateOptions")
        if target.subresource:
            view = self._view(target)
            if view.body_kind is None:
                obj = self._decode(call, options)
            else:
                body_type = self._type_of(view.body_kind)
                obj = decode_object(call.request.body, call.content_type, body_type, options, call.warnings)
            ctx = self.context(call, options)
            return self._view_answer(call, view, put_view(self._registry, handle, view, target.name, obj, ctx), ctx)
        obj = self._decode(call, options)
        ctx = self.context(call, options)
        body, created = self._registry.update_object(handle, target.name, obj, ctx)
        return self._answer(call, 201 if created else 200, body)

    def _patch(self, call: Call) -> Response:
        target, handle = call.target, call.handle
        media_type = patch_media_type(call.content_type, custom=target.resource.custom)
        options = write_options(call.query, "PatchOptions", apply=media_type == "application/apply-patch+yaml")
        patch = decode_patch(call.request.body, media_type, options, call.warnings)
        ctx = self.context(call, options)
        ctx.patch_type = media_type
        if target.subresource:
            view = self._view(target)
            body_type = self._body_type(handle, view)
            changed = patch_view(self._registry, handle, view, target.name, patch, body_type, ctx)
            return self._view_answer(call, view, changed, ctx)
        changed = patch_object(self._registry, handle, target.name, patch, ctx)
        return self._answer(call, 201 if changed.created else 200, changed.body)

    def _view_answer(self, call: Call, view: View, changed: Changed, ctx: RequestContext) -> Response:
        if view.body_kind is None:
            return self._answer(call, 200, changed.body)
        shown = view.read(call.handle.as_document(changed.body), ctx)
        return self._answer(call, 200, _encode(shown), shaped=True)

    def _delete(self, call: Call) -> Response:
        target, handle = call.target, call.handle
        if target.subresource:
            raise method_not_allowed()
        request = decode_delete_options(call.request.body, call.content_type, call.query, self._registry.schema)
        ctx = self.context(call, WriteOptions(dry_run=request.dry_run))
        document, gone = self._registry.delete_object(handle, target.namespace, target.name, request.options, ctx)
        status = 202 if not gone and request.cascades_at_once else 200
        if gone and not handle.strategy.returns_deleted:
            body = deleted_status(target.resource.group_resource, target.name, document["metadata"]["uid"])
            return self._answer(call, status, _encode(body), shaped=True)
        return self._answer(call, status, _encode(document))

    def _delete_collection(self, call: Call) -> Response:
        target, handle, store = call.target, call.handle, self._registry.store
        listing = list_options(call.query, watch=False)
        check_fields(target.resource, handle.strategy, listing.fields)
        request = decode_delete_options(call.request.body, call.content_type, call.query, self._registry.schema)
        ctx = self.context(call, WriteOptions(dry_run=request.dry_run))
        page = list_page(store, handle.storage, target.namespace, listing)
        for record in page.records:
            if store.latest(handle.storage, record.namespace, record.name) is not None:
                ctx.namespace, ctx.name = record.namespace, record.name
                self._registry.delete_object(handle, record.namespace, record.name, request.fresh_options(), ctx)
        form = form_for(handle, call.accepted, call.query.text("includeObject"), self._clock.now)
        return self._finish(call, 200, form.collection(page.metadata, [record.body for record in page.records]))

    # Answering.

    def _view(self, target: Target) -> View:
        custom = self._registry.custom_kind(target.resource)
        view = (
            custom.views.get(target.subresource)
            if custom
            else view_for(target.resource.group, target.resource.resource, target.subresource)
        )
        if view is None or target.verb not in view.verbs:
            raise method_not_allowed()
        return view

    def _decode(self, call: Call, options: WriteOptions) -> Raw:
        """The object in the body, of the endpoint's own kind."""
        handle, custom = call.handle, self._registry.custom_kind(call.target.resource)
        if custom is None:
            return decode_object(call.request.body, call.content_type, handle.type_info, options, call.warnings)
        return decode_custom(
            call.request.body,
            call.content_type,
            custom.resource,
            custom.schema,
            handle.type_info,
            options.field_validation,
            call.warnings,
        )

    def _body_type(self, handle: Handle, view: View) -> TypeInfo:
        return self._type_of(view.body_kind) if view.body_kind else handle.type_info

    def _type_of(self, kind: tuple[str, str, str]) -> TypeInfo:
        found = self._registry.schema.type_of(*kind)
        if found is None:
            raise InvariantBroken(f"the table has no type for {kind}")
        return found

    def _answer(self, call: Call, status: int, body: bytes, *, shaped: bool = False) -> Response:
        """Answer with one object; `shaped` bodies are already what the client is to see."""
        if not shaped:
            if call.accepted.convert:
                form = form_for(call.handle, call.accepted, call.query.text("includeObject"), self._clock.now)
                if call.accepted.convert == "Table":
                    version = _decode(body)["metadata"].get("resourceVersion", "")
                    body = form.collection({"resourceVersion": version} if version else {}, [body])
                else:
                    body = form.object(body)
            else:
                body = call.handle.shown(body)
        return self._finish(call, status, body)

    @staticmethod
    def _finish(call: Call, status: int, body: bytes) -> Response:
        if call.accepted.media == "yaml":
            return Response(status, _YAML, as_yaml(body))
        if wants_indent(call.query, call.request.headers):
            body = indented(body)
        return Response(status, _JSON, body)


def is_watch(request: Request, target: Target) -> bool:
    """Whether a list is meant to go on as a watch."""
    return target.verb == "list" and (target.watch or Query(request.query).flag("watch"))


def is_write(verb: str) -> bool:
    """Whether a verb may have changed the store."""
    return verb not in ("get", "list")
