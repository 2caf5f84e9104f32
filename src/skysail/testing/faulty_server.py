"""The network between a component and its server, with the faults a test asked for.

It is a `Handler` round another one, so it lies below the in-process transport: time-outs, silent watches and broken
connections reach the component exactly as a real network would show them.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import msgspec

from skysail.api.errors import ApiError, Unreachable
from skysail.api.ports import Handler, Request, Response, User
from skysail.testing.calls import Call, call_of
from skysail.testing.faults import EXPIRED_EVENT, Action, Crashed, Ending, Faults, OpenWatch
from skysail.testing.interruptible import Interrupted, Interruptible


class FaultyServer:
    """A server as seen through a faulty network.

    Args:
        server: The real one.
        faults: What goes wrong; may be shared by several.
    """

    def __init__(self, server: Handler, faults: Faults) -> None:
        self._server, self.faults = server, faults
        self._has_crashed = False

    async def handle(self, request: Request, user: User) -> Response:
        """See `Handler.handle`.

        Raises:
            Unreachable: The request or its answer was lost.
            Crashed: The component has been killed.
        """
        call, faults = call_of(request), self.faults
        self._check_alive()
        self._crash(call, Action.CRASH_BEFORE)
        await self._travel(call)
        if rule := faults.strike(call, Action.FAIL, Action.LOSE_REQUEST):
            if rule.error is not None:
                return _refusal(rule.error)
            raise Unreachable(f"{call}: the request was lost (injected by a test)")
        if faults.by_chance(faults.chaos.lose_request):
            raise Unreachable(f"{call}: the request was lost (by chance)")
        if faults.by_chance(faults.chaos.refuse):
            return _refusal(faults.random_refusal())
        if call.verb == "watch" and faults.by_chance(faults.chaos.expire_watch):
            return _refusal(EXPIRED_EVENT)
        response = await self._server.handle(request, user)
        await self._wait_healed()
        self._crash(call, Action.CRASH_AFTER)
        if faults.strike(call, Action.LOSE_ANSWER) or faults.by_chance(faults.chaos.lose_answer):
            raise Unreachable(f"{call}: the answer was lost (injected by a test)")
        if response.stream is None:
            return response
        return replace(response, stream=self._watch(call, response.stream))

    def kill(self) -> None:
        """From now on the component gets nothing but `Crashed`."""
        self._has_crashed = True

    def _check_alive(self) -> None:
        if self._has_crashed:
            raise Crashed

    def _crash(self, call: Call, action: Action) -> None:
        if self.faults.strike(call, action):
            self.kill()
            raise Crashed

    async def _travel(self, call: Call) -> None:
        faults = self.faults
        if rule := faults.strike(call, Action.DELAY):
            await asyncio.sleep(rule.seconds)
        if faults.by_chance(faults.chaos.delay):
            await asyncio.sleep(faults.rng.random() * faults.chaos.delay_seconds)
        await self._wait_healed()

    async def _wait_healed(self) -> None:
        """Wait while there is a partition, as packets do that are sent again and again."""
        while self.faults.is_partitioned:
            healed = asyncio.Event()
            self.faults.on_heal[healed.set] = None
            try:
                await healed.wait()
            finally:
                self.faults.on_heal.pop(healed.set, None)
        self._check_alive()

    async def _watch(self, call: Call, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Pass a watch on, until it ends or a fault ends it."""
        stream = Interruptible(chunks)
        watch = OpenWatch(call, stream.interrupt)
        self.faults.open[watch] = None
        try:
            while (chunk := await stream.next()) is not None:
                await self._wait_healed()
                if lines := self._lines(call, chunk):
                    yield lines
                if self.faults.by_chance(self.faults.chaos.drop_watch):
                    stream.interrupt()
        except Interrupted:
            if watch.ending is Ending.EXPIRED:
                yield msgspec.json.encode({"type": "ERROR", "object": EXPIRED_EVENT.status}) + b"\n"
            elif watch.ending is Ending.BROKEN:
                raise Unreachable(f"{call}: the watch broke off (injected by a test)") from None
        finally:
            self.faults.open.pop(watch, None)
            await stream.close()

    def _lines(self, call: Call, chunk: bytes) -> bytes:
        """What of a chunk arrives."""
        if not self.faults.rules:
            return chunk
        arriving = []
        for line in chunk.splitlines(keepends=True):
            if self.faults.strike(call, Action.LOSE_EVENT):
                continue
            arriving.append(line)
            if self.faults.strike(call, Action.DUPLICATE_EVENT):
                arriving.append(line)
        return b"".join(arriving)


def _refusal(error: ApiError) -> Response:
    headers = [("Content-Type", "application/json")]
    if error.retry_after_seconds:
        headers.append(("Retry-After", str(error.retry_after_seconds)))
    return Response(error.status.code or error.code, tuple(headers), msgspec.json.encode(error.status))
