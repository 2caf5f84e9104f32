"""The typed client: verbs on kinds, over any transport.

Every call has a time-out; retries are only those that can help (see `retry`); a `Conflict` is the caller's, who must
read again. Errors say the verb, the kind and the name.

>>> from skysail.api.kinds import PODS
>>> describe("get", PODS, "default", "web")
'get pods default/web'
"""

from collections.abc import AsyncIterator
from contextlib import aclosing
from random import Random
from typing import Any, TypeVar

import msgspec

from skysail.api.autoscaling import Scale
from skysail.api.errors import Expired
from skysail.api.kinds import PODS, Kind
from skysail.api.meta import ApiObject
from skysail.api.ports import Clock, ObjectList, Transport, WatchEvent
from skysail.api.raw import Raw
from skysail.client.bodies import APPLY, MERGE, PatchType, binding, delete_options, eviction
from skysail.client.calls import Caller, ClientStatistics, Query, query_of
from skysail.client.codec import decode_event, decode_list, decode_object, encode_object, merge_difference, to_raw
from skysail.client.deadlines import DEFAULT_TIMEOUT_SECONDS
from skysail.client.retry import RetryPolicy

T = TypeVar("T")
TObject = TypeVar("TObject", bound=ApiObject)

_PAGE_SIZE = 500


def describe(verb: str, kind: Kind[Any], namespace: str = "", name: str = "", subresource: str = "") -> str:
    """What is asked for, for people: `patch deployments.apps/scale default/web`."""
    what = f"{kind.resource}/{subresource}" if subresource else kind.resource
    where = "/".join(part for part in (namespace if kind.namespaced else "", name) if part)
    return f"{verb} {what} {where}".rstrip()


class ApiClient:
    """A component's way to the API server.

    `kind.struct` decides what comes back: a frozen Struct, or a `dict` for kinds known only at run time. Writers send
    whole objects only on `create`, or as `Raw`: a Struct knows only some fields, and the others would be lost.

    Args:
        transport: How bytes get there; closed by whoever made it.
        user_agent: The component's name, as it appears in the server's logs.
        clock: For callers that share it; waiting follows the running loop.
        rng: Spreads repeated requests.
        timeout_seconds: How long one attempt may take.
        retries: When to ask again.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        user_agent: str,
        clock: Clock,
        rng: Random,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
        retries: RetryPolicy | None = None,
    ) -> None:
        self.clock = clock
        self._caller = Caller(transport, user_agent, rng, timeout_seconds, retries or RetryPolicy())

    def statistics(self) -> ClientStatistics:
        """What this client has done so far."""
        return self._caller.statistics()

    # --- reading ---

    async def get(self, kind: Kind[T], name: str, namespace: str = "", *, resource_version: str = "") -> T:
        """Read one object; `resource_version="0"` allows any version the server has at hand."""
        what = describe("get", kind, namespace, name)
        response = await self._caller.call(
            what, "GET", _path_of(kind, namespace, name), query_of(resourceVersion=resource_version), safe=True
        )
        return decode_object(kind.struct, response.body, what)

    async def list(
        self,
        kind: Kind[T],
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 0,
        continue_token: str = "",
        resource_version: str = "",
        resource_version_match: str = "",
    ) -> ObjectList[T]:
        """Read one page (with `limit`) or all of a collection; an empty namespace means all of them.

        Raises:
            Expired: The continue token is too old; begin again.
        """
        what = describe("list", kind, namespace)
        query = query_of(
            labelSelector=label_selector,
            fieldSelector=field_selector,
            limit=str(limit) if limit else "",
            **{"continue": continue_token},
            resourceVersion=resource_version,
            resourceVersionMatch=resource_version_match,
        )
        response = await self._caller.call(what, "GET", kind.path(namespace), query, safe=True)
        return decode_list(kind.struct, response.body, what)

    async def list_all(
        self,
        kind: Kind[T],
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        page_size: int = _PAGE_SIZE,
    ) -> ObjectList[T]:
        """Read a whole collection page by page, as of one version.

        A token that expires on the way falls back to one request for everything.
        """
        items: list[T] = []
        token, version = "", ""
        while True:
            try:
                page = await self.list(
                    kind,
                    namespace,
                    label_selector=label_selector,
                    field_selector=field_selector,
                    limit=page_size,
                    continue_token=token,
                )
            except Expired:
                if not token:
                    raise
                return await self.list(kind, namespace, label_selector=label_selector, field_selector=field_selector)
            items += page.items
            version = version or page.resource_version
            token = page.continue_token
            if not token:
                return ObjectList(tuple(items), version)

    async def watch(
        self,
        kind: Kind[T],
        namespace: str = "",
        *,
        resource_version: str = "",
        label_selector: str = "",
        field_selector: str = "",
        allow_bookmarks: bool = True,
        send_initial_events: bool = False,
        timeout_seconds: int = 0,
    ) -> AsyncIterator[WatchEvent[T]]:
        """Follow a collection until the server ends the watch. Close the iterator to stop (`aclosing`).

        With `send_initial_events` the collection itself comes first, as ADDED events; a BOOKMARK annotated
        `k8s.io/initial-events-end` ends it.

        Raises:
            ApiError: The watch was refused, or an ERROR event came (`Expired`: list again).
            Unreachable: The connection broke, or fell silent for longer than a live server would.
        """
        what = describe("watch", kind, namespace)
        query = query_of(
            watch="true",
            resourceVersion=resource_version,
            labelSelector=label_selector,
            fieldSelector=field_selector,
            allowWatchBookmarks="true" if allow_bookmarks else "",
            sendInitialEvents="true" if send_initial_events else "",
            resourceVersionMatch="NotOlderThan" if send_initial_events else "",
            timeoutSeconds=str(timeout_seconds) if timeout_seconds else "",
        )
        struct = kind.struct
        lines = self._caller.stream(kind.path(namespace), query)
        async with aclosing(lines):  # type: ignore[type-var]  # a stream can be closed, whatever its protocol says
            async for line in lines:
                yield decode_event(struct, line, what)

    # --- writing ---

    async def create(self, kind: Kind[T], obj: T | Raw, namespace: str = "", *, dry_run: bool = False) -> T:
        """Create an object; its own namespace counts when none is given.

        Raises:
            AlreadyExists: An object of that name is there.
        """
        namespace = namespace or _namespace_of(obj)
        what = describe("create", kind, namespace, _name_of(obj))
        response = await self._caller.call(
            what, "POST", kind.path(namespace), query_of(dryRun="All" if dry_run else ""), body=encode_object(kind, obj)
        )
        return decode_object(kind.struct, response.body, what)

    async def update(
        self, kind: Kind[T], obj: Raw, namespace: str = "", *, subresource: str = "", dry_run: bool = False
    ) -> T:
        """Replace a whole object; with a `resourceVersion` in it, only that version.

        Raises:
            Conflict: The object has moved on.
        """
        namespace, name = namespace or _namespace_of(obj), _name_of(obj)
        what = describe("update", kind, namespace, name, subresource)
        path = _path_of(kind, namespace, name, subresource)
        query = query_of(dryRun="All" if dry_run else "")
        response = await self._caller.call(what, "PUT", path, query, body=encode_object(kind, obj))
        return decode_object(kind.struct, response.body, what)

    async def patch(
        self,
        kind: Kind[T],
        name: str,
        namespace: str,
        patch: object,
        *,
        patch_type: PatchType = MERGE,
        subresource: str = "",
        field_manager: str = "",
        force: bool = False,
        dry_run: bool = False,
    ) -> T:
        """Change part of an object.

        Args:
            kind: What.
            name: Which.
            namespace: Where.
            patch: A dictionary (MERGE, STRATEGIC, APPLY), a list of operations (JSON), or encoded bytes.
            patch_type: How the server is to read it.
            subresource: For example `status`.
            field_manager: Who owns the fields; needed for APPLY.
            force: With APPLY, take fields over from others.
            dry_run: Check everything, store nothing.

        Raises:
            Conflict: The patch names a resourceVersion or uid that is not the object's, or fields others own.
        """
        what = describe("patch", kind, namespace, name, subresource)
        query = query_of(fieldManager=field_manager, force="true" if force else "", dryRun="All" if dry_run else "")
        response = await self._caller.call(
            what,
            "PATCH",
            _path_of(kind, namespace, name, subresource),
            query,
            body=patch if isinstance(patch, bytes) else msgspec.json.encode(patch),
            content_type=patch_type.value,
            safe=patch_type is APPLY,
        )
        return decode_object(kind.struct, response.body, what)

    async def apply(self, kind: Kind[T], obj: Raw, *, field_manager: str, force: bool = False) -> T:
        """Server-side apply: these fields shall have these values and are ours."""
        body = encode_object(kind, obj)
        return await self.patch(
            kind,
            _name_of(obj),
            _namespace_of(obj),
            body,
            patch_type=APPLY,
            field_manager=field_manager,
            force=force,
        )

    async def patch_status(
        self, kind: Kind[TObject], old: TObject, new: TObject, *, optimistic: bool = False
    ) -> TObject:
        """Send the difference between two statuses of one object; nothing when there is none.

        Args:
            kind: What it is.
            old: As read; its uid goes along, so that a namesake is never touched.
            new: As wanted.
            optimistic: Whether the decision depended on `old`: its version goes along.

        Returns:
            The object as stored, or `old` when there was nothing to send.

        Raises:
            Conflict: The object is another one, or (optimistic) has moved on.
        """
        difference = merge_difference(to_raw(old).get("status", {}), to_raw(new).get("status", {}))
        if not difference:
            return old
        metadata = {"uid": old.uid} if old.uid else {}
        if optimistic:
            metadata["resourceVersion"] = old.metadata.resource_version
        patch = {"metadata": metadata, "status": difference}
        return await self.patch(kind, old.name, old.namespace, patch, subresource="status")

    async def delete(
        self,
        kind: Kind[Any],
        name: str,
        namespace: str = "",
        *,
        propagation: str = "",
        grace_period_seconds: int | None = None,
        uid: str = "",
        resource_version: str = "",
        dry_run: bool = False,
    ) -> None:
        """Delete an object.

        Args:
            kind: What.
            name: Which.
            namespace: Where.
            propagation: `Background`, `Foreground` or `Orphan`; the kind's default when empty.
            grace_period_seconds: How long a pod may take to end; 0 is at once.
            uid: Only the object with this uid.
            resource_version: Only the object at this version.
            dry_run: Check everything, delete nothing.

        Raises:
            NotFound: There is none.
            Conflict: There is one, but not that one.
        """
        options = delete_options(
            propagation=propagation,
            grace_period_seconds=grace_period_seconds,
            uid=uid,
            resource_version=resource_version,
            dry_run=dry_run,
        )
        what = describe("delete", kind, namespace, name)
        await self._caller.call(what, "DELETE", _path_of(kind, namespace, name), body=msgspec.json.encode(options))

    async def delete_collection(
        self,
        kind: Kind[Any],
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        propagation: str = "",
        grace_period_seconds: int | None = None,
    ) -> None:
        """Delete every object of a collection that the selectors choose."""
        options = delete_options(propagation=propagation, grace_period_seconds=grace_period_seconds)
        query = query_of(labelSelector=label_selector, fieldSelector=field_selector)
        what = describe("delete all", kind, namespace)
        await self._caller.call(what, "DELETE", kind.path(namespace), query, body=msgspec.json.encode(options))

    # --- subresources of their own shape ---

    async def bind(self, namespace: str, name: str, uid: str, node_name: str) -> None:
        """Assign a pod to a node.

        Raises:
            Conflict: The pod has a node already, or is another pod of that name.
        """
        what = describe("bind", PODS, namespace, name)
        body = msgspec.json.encode(binding(namespace, name, uid, node_name))
        await self._caller.call(what, "POST", PODS.path(namespace, name, "binding"), body=body)

    async def evict(
        self,
        namespace: str,
        name: str,
        *,
        grace_period_seconds: int | None = None,
        uid: str = "",
        dry_run: bool = False,
    ) -> None:
        """Delete a pod if its disruption budgets allow.

        Raises:
            TooManyRequests: A budget does not; never retried here, the caller decides.
        """
        options = delete_options(grace_period_seconds=grace_period_seconds, uid=uid, dry_run=dry_run)
        what = describe("evict", PODS, namespace, name)
        body = msgspec.json.encode(eviction(namespace, name, options))
        await self._caller.call(what, "POST", PODS.path(namespace, name, "eviction"), body=body, refusal_is_final=True)

    async def get_scale(self, kind: Kind[Any], name: str, namespace: str = "") -> Scale:
        """Read how many replicas an object wants and has."""
        what = describe("get", kind, namespace, name, "scale")
        response = await self._caller.call(what, "GET", _path_of(kind, namespace, name, "scale"), safe=True)
        return decode_object(Scale, response.body, what)

    async def scale(self, kind: Kind[Any], name: str, namespace: str, replicas: int) -> Scale:
        """Say how many replicas an object shall have."""
        what = describe("patch", kind, namespace, name, "scale")
        body = msgspec.json.encode({"spec": {"replicas": replicas}})
        path = _path_of(kind, namespace, name, "scale")
        response = await self._caller.call(what, "PATCH", path, body=body, content_type=MERGE.value)
        return decode_object(Scale, response.body, what)

    async def read_path(self, path: str, query: Query = ()) -> bytes:
        """Read any path as it is: `/version`, `/readyz`, discovery."""
        return (await self._caller.call(f"get {path}", "GET", path, query, safe=True)).body


def _path_of(kind: Kind[Any], namespace: str, name: str, subresource: str = "") -> str:
    """The path of one object; a forgotten namespace would be that of another resource."""
    if not name or (kind.namespaced and not namespace):
        raise ValueError(
            f"{describe('one of', kind, namespace, name)}: {'a namespace' if name else 'a name'} is needed"
        )
    return kind.path(namespace, name, subresource)


def _metadata_of(obj: object, field: str) -> str:
    if isinstance(obj, ApiObject):
        return str(getattr(obj.metadata, field))
    metadata = obj.get("metadata") if isinstance(obj, dict) else None
    return str(metadata.get(field, "")) if isinstance(metadata, dict) else ""


def _namespace_of(obj: object) -> str:
    return _metadata_of(obj, "namespace")


def _name_of(obj: object) -> str:
    return _metadata_of(obj, "name")
