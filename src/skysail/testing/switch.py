"""A server that a test can switch off and on, and that tells when something was written."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace

from skysail.api.errors import Unreachable
from skysail.api.ports import Handler, Request, Response, User
from skysail.testing.calls import Call, call_of
from skysail.testing.interruptible import Interrupted, Interruptible

_BACKGROUND = frozenset({"leases", "events"})
"""Written all the time, whether or not anything happens."""


class ServerSwitch:
    """A `Handler` round the one server of a cluster.

    While it is off, requests are refused as a closed port refuses them, and open watches break off. What the server
    holds is kept.

    Attributes:
        is_on: Whether it answers.
        writes: How many requests changed something that is not a sign of life or an Event.
        last_writes: The newest of them, for messages.

    Args:
        server: The real server.
        revision: Its current revision, which tells whether a write changed anything.
    """

    def __init__(self, server: Handler, revision: Callable[[], int]) -> None:
        self._server, self._revision = server, revision
        self.is_on = True
        self.writes = 0
        self.last_writes: list[str] = []
        self._open: dict[Interruptible, None] = {}
        self._changed: dict[asyncio.Event, None] = {}

    def switch_off(self) -> None:
        """Refuse everything and break all watches off."""
        self.is_on = False
        for stream in tuple(self._open):
            stream.interrupt()

    def switch_on(self) -> None:
        """Answer again."""
        self.is_on = True

    async def wait_changed(self) -> None:
        """Wait until something is written."""
        changed = asyncio.Event()
        self._changed[changed] = None
        try:
            await changed.wait()
        finally:
            self._changed.pop(changed, None)

    async def handle(self, request: Request, user: User) -> Response:
        """See `Handler.handle`.

        Raises:
            Unreachable: It is switched off.
        """
        if not self.is_on:
            raise Unreachable(f"{request.method} {request.path}: connection refused (the server is switched off)")
        before = self._revision()
        response = await self._server.handle(request, user)
        call = call_of(request)
        if call.is_write and call.resource not in _BACKGROUND and self._revision() != before:
            self._note(call, request)
        if response.stream is not None:
            return replace(response, stream=self._watch(call, response.stream))
        return response

    def _note(self, call: Call, request: Request) -> None:
        self.writes += 1
        component = request.headers.get("user-agent", "?").partition(" ")[0]
        self.last_writes = [*self.last_writes[-4:], f"{component}: {call}"]
        for changed in self._changed:
            changed.set()

    async def _watch(self, call: Call, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        stream = Interruptible(chunks)
        self._open[stream] = None
        try:
            while (chunk := await stream.next()) is not None:
                yield chunk
        except Interrupted:
            raise Unreachable(f"{call}: the watch broke off (the server was switched off)") from None
        finally:
            self._open.pop(stream, None)
            await stream.close()
