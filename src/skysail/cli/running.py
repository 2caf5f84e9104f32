"""Running one asyncio program to its end, with signals, the wall clock and, where it is installed, uvloop."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from skysail.api.errors import SkysailError

T = TypeVar("T")

_GRACE_SECONDS = 10.0


def run(main: Callable[[], Coroutine[Any, Any, T]]) -> T | None:
    """Run `main` until it returns or a signal ends it.

    The first SIGINT or SIGTERM cancels it and gives it 10 s to clean up; a second one ends the process at once.

    Returns:
        What `main` returned; None when a signal ended it.

    Raises:
        SkysailError: `main` failed for a reason a person can mend; out of an exception group, the first such one.
    """
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            return runner.run(_supervised(main))
    except BaseExceptionGroup as group:
        found = _first_of_ours(group)
        if found is None:
            raise
        raise found from group


async def _supervised(main: Callable[[], Coroutine[Any, Any, T]]) -> T | None:
    loop = asyncio.get_running_loop()
    stopping = False

    def stop() -> None:
        nonlocal stopping
        if stopping:
            os._exit(130)
        stopping = True
        loop.call_later(_GRACE_SECONDS, _give_up)
        task.cancel()

    async with asyncio.TaskGroup() as group:
        task = group.create_task(main())
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop)
        try:
            return await task
        except asyncio.CancelledError:
            if not stopping:
                raise
            return None


def _give_up() -> None:
    sys.stderr.write(f"skysail: not ended within {_GRACE_SECONDS:.0f} s, giving up\n")
    os._exit(1)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop


def _first_of_ours(group: BaseExceptionGroup[BaseException]) -> SkysailError | None:
    for error in group.exceptions:
        if isinstance(error, SkysailError):
            return error
        if isinstance(error, BaseExceptionGroup) and (found := _first_of_ours(error)) is not None:
            return found
    return None
