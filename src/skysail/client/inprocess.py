"""The transport without a network: the same bytes, handed to a server in this process.

A request reaches the handler behind authentication, as the user this transport was made for. Time-outs and watch
deadlines are those of the network transport, on the running loop's clock, so that virtual time tests them too.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace

from skysail.api.errors import Unreachable, error_from_response
from skysail.api.ports import Handler, Request, Response, User
from skysail.client.deadlines import DEFAULT_TIMEOUT_SECONDS
from skysail.client.lines import split_lines


class InProcessTransport:
    """A `Transport` onto a `Handler` in this process.

    Args:
        handler: The server.
        user: Who all requests come from.
    """

    def __init__(self, handler: Handler, user: User) -> None:
        self._handler, self._user = handler, user
        self._closed = False

    async def request(self, request: Request) -> Response:
        """Send one request and read the whole answer, whatever its status.

        Raises:
            Unreachable: No answer in time, or this transport is closed.
        """
        response = await self._handle(request)
        if response.stream is None:
            return response
        chunks = [chunk async for chunk in response.stream]
        return replace(response, body=b"".join(chunks), stream=None)

    async def stream(self, request: Request) -> AsyncIterator[bytes]:
        """Open a watch and yield its lines until the server ends it.

        Raises:
            ApiError: The server refused the watch.
            Unreachable: The watch fell silent, or this transport is closed.
        """
        response = await self._handle(request)
        if response.status >= 400:
            raise error_from_response(response.status, response.body, f"watch {request.path}")
        chunks = response.stream or _single(response.body)
        async with aclosing(split_lines(chunks, request)) as lines:
            async for line in lines:
                if self._closed:
                    raise Unreachable(f"{request.method} {request.path}: the transport is closed")
                yield line

    async def close(self) -> None:
        """Let go of the server: further requests are refused, and open watches end with their next event."""
        self._closed = True

    async def _handle(self, request: Request) -> Response:
        if self._closed:
            raise Unreachable(f"{request.method} {request.path}: the transport is closed")
        seconds = request.timeout_seconds or DEFAULT_TIMEOUT_SECONDS
        try:
            async with asyncio.timeout(seconds):
                return await self._handler.handle(request, self._user)
        except TimeoutError as error:
            raise Unreachable(f"{request.method} {request.path}: no answer within {seconds:g} s") from error


async def _single(body: bytes) -> AsyncIterator[bytes]:
    yield body
