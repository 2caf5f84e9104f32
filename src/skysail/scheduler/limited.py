"""Client-side rate limit, for configurations that set `clientConnection.qps`.

kube-scheduler's own default, 50 requests a second, caps it at about that many pods a second. Skysail sets no limit
unless the file does, and honours the server's 429s instead. Lease renewals are never held up: losing the lease costs
more.
"""

import asyncio
from collections.abc import AsyncIterator

from skysail.api.ports import Clock, Request, Response, Transport
from skysail.workqueue.limiters import BucketLimiter


class LimitedTransport:
    """Passes requests on at a bounded rate; watches are free once opened.

    Args:
        inner: Where requests go.
        clock: Time.
        per_second: Requests a second, steadily.
        burst: Requests at once after a rest.
    """

    def __init__(self, inner: Transport, clock: Clock, per_second: float, burst: int) -> None:
        self._inner = inner
        self._bucket: BucketLimiter[str] = BucketLimiter(clock, per_second, burst)

    async def request(self, request: Request) -> Response:
        """Send one request once it is its turn."""
        if "/leases/" not in request.path:
            await asyncio.sleep(self._bucket.when(request.path))
        return await self._inner.request(request)

    def stream(self, request: Request) -> AsyncIterator[bytes]:
        """Open a watch."""
        return self._inner.stream(request)

    async def close(self) -> None:
        """Release connections."""
        await self._inner.close()
