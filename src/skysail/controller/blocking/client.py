"""The typed client for code that blocks. Written by `skysail.controller.blocking.source`; do not edit."""

from collections.abc import Iterator
from typing import Any, TypeVar

from skysail.api.autoscaling import Scale
from skysail.api.kinds import Kind
from skysail.api.meta import ApiObject
from skysail.api.ports import ObjectList, WatchEvent
from skysail.api.raw import Raw
from skysail.client.api_client import ApiClient
from skysail.client.bodies import MERGE, PatchType
from skysail.client.calls import ClientStatistics, Query
from skysail.controller.blocking.portal import Portal

T = TypeVar("T")
TObject = TypeVar("TObject", bound=ApiObject)
_PAGE_SIZE = 500


class BlockingClient:
    """`ApiClient`, every call of which waits for its answer; for notebooks, scripts and the Python prompt.

    Args:
        client: Does the work, on the portal's loop.
        portal: The loop.
    """

    def __init__(self, client: ApiClient, portal: Portal) -> None:
        self._client, self._portal = client, portal

    def statistics(self) -> ClientStatistics:
        """What this client has done so far."""
        return self._client.statistics()

    def get(self, kind: Kind[T], name: str, namespace: str = "", *, resource_version: str = "") -> T:
        """Read one object; `resource_version="0"` allows any version the server has at hand."""
        return self._portal.call(self._client.get(kind, name, namespace, resource_version=resource_version))

    def list(
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
        return self._portal.call(
            self._client.list(
                kind,
                namespace,
                label_selector=label_selector,
                field_selector=field_selector,
                limit=limit,
                continue_token=continue_token,
                resource_version=resource_version,
                resource_version_match=resource_version_match,
            )
        )

    def list_all(
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
        return self._portal.call(
            self._client.list_all(
                kind, namespace, label_selector=label_selector, field_selector=field_selector, page_size=page_size
            )
        )

    def watch(
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
    ) -> Iterator[WatchEvent[T]]:
        """Follow a collection until the server ends the watch. Close the iterator to stop (`aclosing`).

        With `send_initial_events` the collection itself comes first, as ADDED events; a BOOKMARK annotated
        `k8s.io/initial-events-end` ends it.

        Raises:
            ApiError: The watch was refused, or an ERROR event came (`Expired`: list again).
            Unreachable: The connection broke, or fell silent for longer than a live server would.
        """
        return self._portal.iterate(
            self._client.watch(
                kind,
                namespace,
                resource_version=resource_version,
                label_selector=label_selector,
                field_selector=field_selector,
                allow_bookmarks=allow_bookmarks,
                send_initial_events=send_initial_events,
                timeout_seconds=timeout_seconds,
            )
        )

    def create(self, kind: Kind[T], obj: T | Raw, namespace: str = "", *, dry_run: bool = False) -> T:
        """Create an object; its own namespace counts when none is given.

        Raises:
            AlreadyExists: An object of that name is there.
        """
        return self._portal.call(self._client.create(kind, obj, namespace, dry_run=dry_run))

    def update(
        self, kind: Kind[T], obj: Raw, namespace: str = "", *, subresource: str = "", dry_run: bool = False
    ) -> T:
        """Replace a whole object; with a `resourceVersion` in it, only that version.

        Raises:
            Conflict: The object has moved on.
        """
        return self._portal.call(self._client.update(kind, obj, namespace, subresource=subresource, dry_run=dry_run))

    def patch(
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
        return self._portal.call(
            self._client.patch(
                kind,
                name,
                namespace,
                patch,
                patch_type=patch_type,
                subresource=subresource,
                field_manager=field_manager,
                force=force,
                dry_run=dry_run,
            )
        )

    def apply(self, kind: Kind[T], obj: Raw, *, field_manager: str, force: bool = False) -> T:
        """Server-side apply: these fields shall have these values and are ours."""
        return self._portal.call(self._client.apply(kind, obj, field_manager=field_manager, force=force))

    def patch_status(self, kind: Kind[TObject], old: TObject, new: TObject, *, optimistic: bool = False) -> TObject:
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
        return self._portal.call(self._client.patch_status(kind, old, new, optimistic=optimistic))

    def delete(
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
        return self._portal.call(
            self._client.delete(
                kind,
                name,
                namespace,
                propagation=propagation,
                grace_period_seconds=grace_period_seconds,
                uid=uid,
                resource_version=resource_version,
                dry_run=dry_run,
            )
        )

    def delete_collection(
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
        return self._portal.call(
            self._client.delete_collection(
                kind,
                namespace,
                label_selector=label_selector,
                field_selector=field_selector,
                propagation=propagation,
                grace_period_seconds=grace_period_seconds,
            )
        )

    def bind(self, namespace: str, name: str, uid: str, node_name: str) -> None:
        """Assign a pod to a node.

        Raises:
            Conflict: The pod has a node already, or is another pod of that name.
        """
        return self._portal.call(self._client.bind(namespace, name, uid, node_name))

    def evict(
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
        return self._portal.call(
            self._client.evict(namespace, name, grace_period_seconds=grace_period_seconds, uid=uid, dry_run=dry_run)
        )

    def get_scale(self, kind: Kind[Any], name: str, namespace: str = "") -> Scale:
        """Read how many replicas an object wants and has."""
        return self._portal.call(self._client.get_scale(kind, name, namespace))

    def scale(self, kind: Kind[Any], name: str, namespace: str, replicas: int) -> Scale:
        """Say how many replicas an object shall have."""
        return self._portal.call(self._client.scale(kind, name, namespace, replicas))

    def read_path(self, path: str, query: Query = ()) -> bytes:
        """Read any path as it is: `/version`, `/readyz`, discovery."""
        return self._portal.call(self._client.read_path(path, query))
