"""What every room may name: time, the wire, and the shape of a watch event.

A *port* is an interface that a lower room states and an upper room fills in. Nothing here does anything; nothing here
imports another room of Skysail. The client speaks to a `Transport`; the embedded API server is a `Handler`; the two
meet in `skysail.client.inprocess`, or across a socket.
"""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Generic, Literal, Protocol, TypeVar

T = TypeVar("T")

EventType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]


class Clock(Protocol):
    """Where time comes from. One implementation per event loop; nothing else reads a clock.

    Waiting is `asyncio.sleep`, which follows the loop's own time: under the virtual-time loop both jump together.
    """

    def monotonic(self) -> float:
        """Seconds for measuring intervals; the origin means nothing."""
        ...

    def now(self) -> datetime:
        """The time of day, timezone-aware UTC, for what is written into objects."""
        ...


@dataclass(frozen=True, slots=True)
class User:
    """Who makes a request, after authentication."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Request:
    """One API request: bytes and text, before any meaning.

    Attributes:
        method: Upper-case HTTP method.
        path: Percent-decoded path without the query, e.g. `/api/v1/namespaces/default/pods/web`.
        query: Parameters in order, decoded; a name may repeat.
        headers: Names in lower case.
        body: As sent; empty when there is none.
        timeout_seconds: How long the caller waits for the answer's head; None means the transport's default.
    """

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    timeout_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Response:
    """One API answer.

    Attributes:
        status: HTTP status code.
        headers: In order; a name (`Warning`) may repeat.
        body: The whole body, or empty when `stream` is set.
        stream: For a watch: chunks of bytes, each a whole number of newline-terminated JSON events. Closing the
            iterator ends the watch.
    """

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    stream: AsyncIterator[bytes] | None = None

    def header(self, name: str) -> str | None:
        """The first value of a header, by any letter case."""
        wanted = name.lower()
        return next((value for key, value in self.headers if key.lower() == wanted), None)


class Handler(Protocol):
    """A Kubernetes API server seen from its inside: behind authentication, before HTTP."""

    async def handle(self, request: Request, user: User) -> Response:
        """Answer one request. Failures are answers (a Status body), never exceptions."""
        ...


class Transport(Protocol):
    """How bytes reach an API server. Two methods, two implementations: HTTP and in-process."""

    async def request(self, request: Request) -> Response:
        """Send one request and read the whole answer, whatever its status.

        Raises:
            Unreachable: No answer came (refused, reset, timed out).
        """
        ...

    def stream(self, request: Request) -> AsyncIterator[bytes]:
        """Open a watch and yield its lines, without the newline, until the server ends it.

        Raises:
            ApiError: The server refused the watch (the right subclass, from its Status).
            Unreachable: The connection failed or broke off.
        """
        ...

    async def close(self) -> None:
        """Release connections. Idempotent."""
        ...


@dataclass(frozen=True, slots=True)
class WatchEvent(Generic[T]):
    """One event of a watch. An ERROR event is never yielded: it is raised as its `ApiError`.

    Attributes:
        type: ADDED, MODIFIED, DELETED or BOOKMARK.
        object: The object after the change (for DELETED: its last state). For a BOOKMARK only `metadata` is filled.
    """

    type: EventType
    object: T


@dataclass(frozen=True, slots=True)
class ObjectList(Generic[T]):
    """One page, or all pages, of a list.

    Attributes:
        items: In key order (namespace, name).
        resource_version: The version at which a watch goes on from here.
        continue_token: Empty on the last page.
        remaining: How many items follow, when the server said so.
    """

    items: tuple[T, ...]
    resource_version: str
    continue_token: str = ""
    remaining: int | None = None
