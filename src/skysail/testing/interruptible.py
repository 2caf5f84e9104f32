"""A stream that can be ended from outside, even while somebody waits for its next chunk."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator


class Interrupted(Exception):
    """The stream was ended from outside."""


class Interruptible:
    """Chunks of a stream, until it ends or `interrupt` is called.

    Args:
        chunks: The stream; closed together with this.
    """

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks
        self._waiting: asyncio.Timeout | None = None
        self._interrupted = False

    def interrupt(self) -> None:
        """End it: whoever waits for a chunk, or asks for the next one, gets `Interrupted`."""
        self._interrupted = True
        if self._waiting is not None:
            self._waiting.reschedule(asyncio.get_running_loop().time())

    async def next(self) -> bytes | None:
        """The next chunk; None when the stream has ended.

        Raises:
            Interrupted: It was ended from outside.
        """
        if self._interrupted:
            raise Interrupted
        try:
            async with asyncio.timeout(None) as self._waiting:
                return await anext(self._chunks, None)
        except TimeoutError as error:
            raise Interrupted from error
        finally:
            self._waiting = None

    async def close(self) -> None:
        """Close the stream below."""
        if isinstance(self._chunks, AsyncGenerator):
            await self._chunks.aclose()
