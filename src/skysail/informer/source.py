"""Where a reflector gets its objects from: one kind, perhaps one namespace, perhaps selected."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from skysail.api.kinds import Kind
from skysail.api.ports import ObjectList, WatchEvent

T = TypeVar("T")


class Source(Protocol[T]):
    """Lists and watches one collection."""

    async def list(self, *, resource_version: str, limit: int, continue_token: str) -> ObjectList[T]:
        """One page, or with `limit` 0 the whole collection."""
        ...

    def watch(
        self, *, resource_version: str, timeout_seconds: int, send_initial_events: bool
    ) -> AsyncIterator[WatchEvent[T]]:
        """Changes from a version on, with bookmarks; an ERROR event is raised as its `ApiError`."""
        ...


class ReadingClient(Protocol):
    """The part of `skysail.client.api_client.ApiClient` that informers use."""

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
        """One page of a collection."""
        ...

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
    ) -> AsyncIterator[WatchEvent[T]]:
        """Changes of a collection."""
        ...


@dataclass(frozen=True, slots=True)
class Scope(Generic[T]):
    """What an informer watches; informers of the same scope are the same.

    Attributes:
        kind: The kind.
        namespace: One namespace, or all when empty.
        label_selector: In wire form.
        field_selector: In wire form.
    """

    kind: Kind[T]
    namespace: str = ""
    label_selector: str = ""
    field_selector: str = ""

    def __str__(self) -> str:
        parts = [self.kind.resource]
        if self.namespace:
            parts.append(f"in {self.namespace}")
        parts += [f"where {text}" for text in (self.label_selector, self.field_selector) if text]
        return " ".join(parts)


class ClientSource(Generic[T]):
    """A scope of a real client."""

    def __init__(self, client: ReadingClient, scope: Scope[T]) -> None:
        self._client, self._scope = client, scope

    async def list(self, *, resource_version: str, limit: int, continue_token: str) -> ObjectList[T]:
        """See `Source.list`."""
        scope = self._scope
        return await self._client.list(
            scope.kind,
            scope.namespace,
            label_selector=scope.label_selector,
            field_selector=scope.field_selector,
            limit=limit,
            continue_token=continue_token,
            resource_version=resource_version,
        )

    def watch(
        self, *, resource_version: str, timeout_seconds: int, send_initial_events: bool
    ) -> AsyncIterator[WatchEvent[T]]:
        """See `Source.watch`."""
        scope = self._scope
        return self._client.watch(
            scope.kind,
            scope.namespace,
            resource_version=resource_version,
            label_selector=scope.label_selector,
            field_selector=scope.field_selector,
            send_initial_events=send_initial_events,
            timeout_seconds=timeout_seconds,
        )
