"""How long a watch may be silent before it is given up.

A connection whose other end has vanished looks exactly like a quiet one. Two promises of the server tell them apart: it
ends a watch at the `timeoutSeconds` it was asked for, and it sends a bookmark about every minute when asked to.
"""

from collections.abc import Iterable
from dataclasses import dataclass

DEFAULT_TIMEOUT_SECONDS = 30.0
"""How long to wait for the answer of a call, and for the head of a watch, unless the request says otherwise."""
BOOKMARK_SECONDS = 60.0
"""How often a server sends bookmarks at the latest."""
GRACE_SECONDS = 30.0
"""How much later than promised a server may end a watch."""


@dataclass(frozen=True, slots=True)
class WatchDeadlines:
    """When a watch counts as dead.

    Attributes:
        silence_seconds: Without a single byte for so long; None when the server promised nothing.
        total_seconds: Open for so long; None when no end was agreed.
    """

    silence_seconds: float | None
    total_seconds: float | None


def watch_deadlines(query: Iterable[tuple[str, str]]) -> WatchDeadlines:
    """The deadlines that follow from a watch's own parameters."""
    parameters = dict(query)
    timeout = parameters.get("timeoutSeconds", "")
    total = int(timeout) + GRACE_SECONDS if timeout.isdecimal() and int(timeout) else None
    bookmarks = parameters.get("allowWatchBookmarks", "").lower() in ("true", "1")
    return WatchDeadlines(3 * BOOKMARK_SECONDS if bookmarks else None, total)
