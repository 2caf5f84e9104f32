"""An event loop in a thread of its own, for code that blocks: notebooks, scripts, the Python prompt.

with Portal() as portal:
pods = portal.call(client.list(PODS))
for event in portal.iterate(client.watch(PODS)):
...
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import Future
from types import TracebackType
from typing import Any, TypeVar

T = TypeVar("T")


class Portal:
    """Runs coroutines on its own loop and waits for them; usable from any one thread at a time.

    Args:
        loop_factory: Makes the loop; asyncio's own by default.
    """

    def __init__(self, loop_factory: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop) -> None:
        self._loop = loop_factory()
        self._thread = threading.Thread(target=self._loop.run_forever, name="skysail-portal", daemon=True)
        self._thread.start()
        self._background: list[Future[Any]] = []

    def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end; Ctrl-C cancels it."""
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def iterate(self, source: AsyncIterator[T]) -> Iterator[T]:
        """The items of an asynchronous iterator; leaving the loop closes it."""
        try:
            while True:
                try:
                    item = self.call(_next(source))
                except _Ended:
                    return
                yield item
        finally:
            self.call(_close(source))

    def run_beside(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Let a coroutine run until the portal is closed."""
        self._background.append(asyncio.run_coroutine_threadsafe(coroutine, self._loop))

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""
        return self._loop.is_closed()

    def close(self) -> None:
        """End what runs beside, and the thread. Idempotent."""
        if self.is_closed:
            return
        self.call(_cancel_others())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> "Portal":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class _Ended(Exception):
    """An asynchronous iterator has ended: a future cannot carry StopAsyncIteration through a coroutine."""


async def _next(source: AsyncIterator[T]) -> T:
    try:
        return await anext(source)
    except StopAsyncIteration:
        raise _Ended from None


async def _close(source: AsyncIterator[Any]) -> None:
    close = getattr(source, "aclose", None)
    if close is not None:
        await close()


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    if others:
        await asyncio.wait(others)
