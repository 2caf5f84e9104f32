"""Tasks that run beside a block of code and end with it."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager


@asynccontextmanager
async def in_background(work: Mapping[str, Coroutine[object, object, None]]) -> AsyncIterator[None]:
    """Run coroutines, by task name, until the block is left; then cancel and await them.

    An error of the block comes out as it is, not wrapped in a group; an error of a task cancels the block and comes out
    as `TaskGroup` has it.
    """
    failure: BaseException | None = None
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(coroutine, name=name) for name, coroutine in work.items()]
        try:
            yield
        except BaseException as error:  # noqa: BLE001 - raised again below, outside the group
            failure = error
        for task in tasks:
            task.cancel()
    if failure is not None:
        raise failure
