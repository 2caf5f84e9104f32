"""Cutting a watch's bytes into lines, and noticing that they stopped coming."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator

from skysail.api.errors import Unreachable
from skysail.api.ports import Request
from skysail.client.deadlines import watch_deadlines


async def split_lines(chunks: AsyncIterator[bytes], request: Request) -> AsyncGenerator[bytes, None]:
    """The lines of a stream, of any length, without their newlines; empty ones are skipped.

    Closing it closes `chunks` too, where that can be closed.

    Raises:
        Unreachable: Nothing came for longer than a live server would be silent, or the stream broke off in a line.
    """
    loop = asyncio.get_running_loop()
    deadlines = watch_deadlines(request.query)
    end = None if deadlines.total_seconds is None else loop.time() + deadlines.total_seconds
    pieces: list[bytes] = []
    try:
        while True:
            quiet = None if deadlines.silence_seconds is None else loop.time() + deadlines.silence_seconds
            when = min((each for each in (quiet, end) if each is not None), default=None)
            try:
                async with asyncio.timeout_at(when):
                    chunk = await anext(chunks, None)
            except TimeoutError as error:
                raise Unreachable(f"{request.method} {request.path}: the watch has fallen silent") from error
            if chunk is None:
                break
            first, *rest = chunk.split(b"\n")
            pieces.append(first)
            for following in rest:
                if line := b"".join(pieces):
                    yield line
                pieces = [following]
        if any(pieces):
            raise Unreachable(f"{request.method} {request.path}: the watch broke off in the middle of an event")
    finally:
        if isinstance(chunks, AsyncGenerator):
            await chunks.aclose()
