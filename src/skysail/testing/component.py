"""One component of a cluster under test: a task with a connection of its own, which can be stopped, killed, crashed."""

import asyncio
from collections.abc import Awaitable, Callable

from skysail.client.api_client import ApiClient
from skysail.controller.manager import Manager
from skysail.testing.faults import Crashed
from skysail.testing.faulty_server import FaultyServer


class Component:
    """Something that runs beside a test.

    Attributes:
        name: Unique among the running ones.
        main: What it runs.
        faults: Those of its own connection.
        manager: The manager it runs, if it is one of controllers.
        has_crashed: Whether a fault has killed it.
    """

    def __init__(
        self, name: str, main: Callable[[ApiClient], Awaitable[None]], client: ApiClient, server: FaultyServer
    ) -> None:
        self.name, self.main, self.faults = name, main, server.faults
        self.manager: Manager | None = None
        self.has_crashed = False
        self._client, self._server = client, server
        self._task: asyncio.Task[None] | None = None

    @property
    def is_running(self) -> bool:
        """Whether it has not ended in any way."""
        return self._task is not None and not self._task.done()

    def start(self, group: asyncio.TaskGroup) -> None:
        """Begin; an error in it ends the group."""
        self._task = group.create_task(self._run(), name=self.name)

    def cancel(self) -> None:
        """Ask it to end, which it may do in order."""
        if self._task is not None:
            self._task.cancel()

    def kill(self) -> None:
        """End it at once: none of its last words reach the server."""
        self._server.kill()
        self.cancel()

    async def stop(self) -> None:
        """End it in order and wait until it has."""
        self.cancel()
        await self.wait_ended()

    async def wait_ended(self) -> None:
        """Wait until it has ended in whatever way."""
        if self._task is not None:
            await asyncio.wait({self._task})

    async def _run(self) -> None:
        try:
            await self.main(self._client)
        except* Crashed:
            self.has_crashed = True
