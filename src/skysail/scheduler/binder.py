"""The one way by which bindings reach the API server: bounded, and told apart from everything else.

`parallelism` bounds how many binds are under way; how many wait for their turn is known, so that the scheduling loop
can pause before decisions run far ahead of writes.

| what came back                | what is known | what follows                                              |
| ----------------------------- | ------------- | --------------------------------------------------------- |
| success                       | bound         |                                                           |
| no answer                     | nothing       | look at the pod, bind again if need be, until one answers |
| 500, 504; 409 after no answer | nothing       | look at the pod: bound as wanted, or the error stands     |
| any other refusal             | not bound     | the error stands                                          |

Differs: kube-scheduler takes no answer for a failure and forgets the pod; if it was bound after all, another pod may be
put into its room before the watch says so, and the node is oversold.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from skysail.api.core import Pod
from skysail.api.errors import ApiError, Conflict, InternalError, NotFound, RequestTimeout, ServerTimeout, Unreachable
from skysail.api.kinds import NODES, PODS, Kind
from skysail.client.api_client import ApiClient
from skysail.scheduler.cache.cluster_cache import CacheError, ClusterCache

_log = logging.getLogger(__name__)

_UNKNOWN: Final = (InternalError, ServerTimeout, RequestTimeout)
_FIRST_WAIT_SECONDS: Final = 0.1
_LONGEST_WAIT_SECONDS: Final = 5.0


class BindingClient(Protocol):
    """The part of the client that is used here."""

    async def bind(self, namespace: str, name: str, uid: str, node_name: str) -> None:
        """Write a binding."""
        ...

    async def get(self, kind: Kind[Pod], name: str, namespace: str) -> Pod:
        """Read a pod."""
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
        """Write a binding once it is this one's turn; ends when it is known whether it was written.

        Raises:
            ApiError: The server refused.
        """
        self.pending += 1
        try:
            await self._bind(namespace, name, uid, node_name)
        except NotFound as error:
            if error.status.details is not None and error.status.details.kind in ("nodes", "Node"):
                await self._node_missing(node_name)
            raise
        finally:
            self.pending -= 1
            self._fewer.set()

    async def _bind(self, namespace: str, name: str, uid: str, node_name: str) -> None:
        unsure, wait = False, _FIRST_WAIT_SECONDS
        while True:
            try:
                async with self._turn:
                    if not unsure or not await self._is_bound(namespace, name, uid, node_name):
                        await self._write(namespace, name, uid, node_name, unsure=unsure)
            except Unreachable as error:
                _log.info(
                    "no answer to a binding, will look", extra={"pod": f"{namespace}/{name}", "error": str(error)}
                )
                unsure = True
            else:
                return
            await asyncio.sleep(wait)
            wait = min(2 * wait, _LONGEST_WAIT_SECONDS)

    async def _write(self, namespace: str, name: str, uid: str, node_name: str, *, unsure: bool) -> None:
        try:
            await self._client.bind(namespace, name, uid, node_name)
        except ApiError as error:
            known = not isinstance(error, _UNKNOWN) and not (unsure and isinstance(error, Conflict))
            if known or not await self._is_bound(namespace, name, uid, node_name):
                raise

    async def _is_bound(self, namespace: str, name: str, uid: str, node_name: str) -> bool:
        pod = await self._client.get(PODS, name, namespace)
        return (pod.uid, pod.spec.node_name) == (uid, node_name)

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
