"""Asks the extenders of a configuration about a live cluster's pod, for `skysail explain --pod`. Shell, not core.

Filter, prioritize and preempt are asked as the scheduler would ask them; bind never is. Each call runs an event loop of
its own, as the explanation around it is a plain computation.
"""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from skysail.api.errors import Unreachable
from skysail.api.ports import Clock, Request, Response
from skysail.api.raw import Raw
from skysail.client.http import HttpTransport
from skysail.scheduler.config.types import Extender
from skysail.scheduler.extenders.talking import server_configs
from skysail.scheduler.framework.conversation import Call, Reply
from skysail.scheduler.scripted import Requests

_HEADERS: Final = {"content-type": "application/json", "accept": "application/json"}


class LiveExtenders(Requests):
    """The extenders, over HTTP. Not to be used where an event loop runs.

    Args:
        extenders: As configured.
        objects: See `Requests`.
        clock: Measures calls.

    Raises:
        ConfigError: A certificate cannot be used, or the TLS of one `urlPrefix` is set in two ways.
    """

    def __init__(self, extenders: Sequence[Extender], objects: Iterable[Raw], clock: Clock) -> None:
        super().__init__(objects)
        self._clock = clock
        self._servers = server_configs(extenders)

    def answer(self, call: Call) -> Reply:
        """Ask; an extender that gives no answer in time is a reply with an error."""
        body = msgspec.json.encode(self.note(call))
        request = Request("POST", f"/{call.verb}", headers=_HEADERS, body=body, timeout_seconds=call.timeout_seconds)
        start = self._clock.monotonic()
        try:
            response = asyncio.run(self._ask(call, request))
        except TimeoutError:
            return Reply(error=f'Post "{call.url}": no answer within {call.timeout_seconds:g} s')
        except Unreachable as error:
            return Reply(error=f'Post "{call.url}": {error}')
        return Reply(response.status, response.body, seconds=self._clock.monotonic() - start)

    async def _ask(self, call: Call, request: Request) -> Response:
        transport = HttpTransport(self._servers[call.callee], clock=self._clock)
        try:
            async with asyncio.timeout(call.timeout_seconds):
                return await transport.request(request)
        finally:
            await transport.close()
