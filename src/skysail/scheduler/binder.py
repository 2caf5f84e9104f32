"""The one way by which bindings reach the API server: bounded, and told apart from everything else.

`parallelism` bounds how many binds are under way; how many wait for their turn is known, so that the scheduling loop
can pause before decisions run far ahead of writes.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

from skysail.api.errors import ApiError, NotFound, Unreachable
from skysail.api.kinds import NODES
from skysail.client.api_client import ApiClient
from skysail.scheduler.cache.cluster_cache import CacheError, ClusterCache

_log = logging.getLogger(__name__)


class BindingClient(Protocol):
    """The part of the client that is used here."""

    async def bind(self, namespace: str, name: str, uid: str, node_name: str) -> None:
        """Write a binding."""
        ...


class BoundedBinder:
    """Writes bindings, so many at a time.

    Args:
        client: Writes one.
        parallelism: How many at a time.
        node_missing: Told when the server says that the node does not exist.
    """

    def __init__(
        self,
        client: BindingClient,
        parallelism: int,
        node_missing: Callable[[str], Awaitable[None]],
    ) -> None:
        self._client, self._node_missing = client, node_missing
        self._turn = asyncio.Semaphore(parallelism)
        self.pending = 0
        """Binds under way or waiting for their turn."""
        self._fewer = asyncio.Event()

    async def bind(self, namespace: str, name: str, uid: str, node_name: str) -> None:
        """Write a binding once it is this one's turn.

        Raises:
            ApiError: The server refused.
            Unreachable: No answer.
        """
        self.pending += 1
        try:
            async with self._turn:
                await self._client.bind(namespace, name, uid, node_name)
        except NotFound as error:
            if error.status.details is not None and error.status.details.kind in ("nodes", "Node"):
                await self._node_missing(node_name)
            raise
        finally:
            self.pending -= 1
            self._fewer.set()

    async def wait_below(self, limit: int) -> None:
        """Wait until fewer than `limit` binds are pending."""
        while self.pending >= limit:
            self._fewer.clear()
            await self._fewer.wait()


class DryBinder:
    """Binds nothing: for `--dry-run`, which decides, counts and explains, and writes not a byte."""

    pending = 0

    async def bind(self, namespace: str, name: str, uid: str, node_name: str) -> None:
        """Say what would be bound."""
        _log.info("would bind pod", extra={"pod": f"{namespace}/{name}", "node": node_name})

    async def wait_below(self, limit: int) -> None:
        """Nothing is ever pending."""


async def look_again(client: ApiClient, cache: ClusterCache, name: str) -> None:
    """A binding found no such node: look once more, then let the cache forget it."""
    try:
        await client.get(NODES, name)
    except NotFound:
        try:
            cache.remove_node(name)
        except CacheError:
            return
        _log.info("node is gone, left the cache", extra={"node": name})
    except (ApiError, Unreachable) as error:
        _log.info("node could not be looked up", extra={"node": name, "error": str(error)})
