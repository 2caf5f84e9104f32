"""The client as bindings and PreBind plugins get it: what they write is counted and timed."""

import logging
from collections.abc import Callable
from typing import Any, Final, TypeVar

from skysail.api.kinds import RESOURCE_CLAIMS, Kind
from skysail.api.raw import Raw
from skysail.client.api_client import ApiClient
from skysail.scheduler.metrics import SchedulerMetrics

T = TypeVar("T")

_log = logging.getLogger(__name__)

CALL_TYPE: Final = "pod_binding"


class MeteredClient:
    """Passes everything on.

    Args:
        client: Whither.
        now: Seconds.
        metrics: Counts and measures.
    """

    def __init__(self, client: ApiClient, now: Callable[[], float], metrics: SchedulerMetrics) -> None:
        self._client, self._now, self._metrics = client, now, metrics

    async def bind(self, namespace: str, name: str, uid: str, node_name: str) -> None:
        """Write a binding."""
        start, ok = self._now(), False
        try:
            await self._client.bind(namespace, name, uid, node_name)
            ok = True
        finally:
            try:
                self._metrics.called(CALL_TYPE, ok, self._now() - start)
            except Exception:  # noqa: BLE001 - what was written is written
                _log.exception("counting a binding ended in a bug")

    async def get(self, kind: Kind[T], name: str, namespace: str = "") -> T:
        """Read an object from the API server."""
        return await self._client.get(kind, name, namespace)

    async def create(self, kind: Kind[T], obj: T | Raw, namespace: str = "") -> T:
        """Create an object."""
        if kind is not RESOURCE_CLAIMS:
            return await self._client.create(kind, obj, namespace)
        status = "failure"
        try:
            made = await self._client.create(kind, obj, namespace)
            status = "success"
            return made
        finally:
            try:
                self._metrics.count("resourceclaim_creates_total", status)
            except Exception:  # noqa: BLE001 - likewise
                _log.exception("counting a claim ended in a bug")

    async def delete(self, kind: Kind[Any], name: str, namespace: str = "", *, uid: str = "") -> None:
        """Delete an object, with `uid` only that very one."""
        await self._client.delete(kind, name, namespace, uid=uid)

    async def patch(self, kind: Kind[T], name: str, namespace: str, patch: object, *, subresource: str = "") -> T:
        """Change part of an object (a merge patch)."""
        return await self._client.patch(kind, name, namespace, patch, subresource=subresource)
