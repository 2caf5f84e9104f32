"""A typed copy of a cluster, kept by watches, with a tally that tells when it was last changed."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from skysail.api.errors import ApiError
from skysail.api.kinds import Kind
from skysail.client.api_client import ApiClient

Listener = Callable[[str, Kind[Any], Any, Any], None]
_DEADLINE_SECONDS = 60.0


class Mirror:
    """What the server holds of some kinds.

    Args:
        client: Of the server.
        kinds: What to follow.
        listener: Told of every change: `ADDED`, `MODIFIED` or `DELETED`, the kind, the object before and after.
    """

    def __init__(self, client: ApiClient, kinds: Iterable[Kind[Any]], listener: Listener) -> None:
        self._client, self._listener = client, listener
        self._objects: dict[Kind[Any], dict[tuple[str, str], Any]] = {kind: {} for kind in kinds}
        self._turn: asyncio.Future[None] | None = None
        self._synced: set[Kind[Any]] = set()
        self._held: list[tuple[str, Kind[Any], Any]] = []
        self._until: Callable[[], bool] | None = None
        self.holds = False
        """Whether changes are put aside at the moment."""
        self.changes = 0

    @asynccontextmanager
    async def following(self) -> AsyncIterator[None]:
        """Follow the cluster inside the block, from its state at the beginning."""
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._follow(kind)) for kind in self._objects]
            try:
                await self.wait(lambda: len(self._synced) == len(tasks), "the first lists")
                yield
            finally:
                for task in tasks:
                    task.cancel()

    def objects(self) -> dict[str, Sequence[Any]]:
        """Everything, by resource."""
        return {kind.resource: tuple(found.values()) for kind, found in self._objects.items()}

    def get(self, kind: Kind[Any], namespace: str, name: str) -> Any:
        """One object, or None."""
        return self._objects[kind].get((namespace, name))

    def all(self, kind: Kind[Any]) -> list[Any]:
        """All objects of a kind."""
        return list(self._objects[kind].values())

    def hold(self) -> None:
        """Put what changes aside from now on."""
        self.holds = True

    def let_go(self, until: Callable[[], bool] | None = None) -> None:
        """Learn what was put aside, change by change, and all that follows - or only until a condition holds."""
        self.holds, self._until = False, until
        held, self._held = self._held, []
        self._look()
        for change, kind, obj in held:
            self._put(change, kind, obj)

    async def wait(self, condition: Callable[[], bool], what: str, seconds: float = _DEADLINE_SECONDS) -> None:
        """Wait until the copy fulfils a condition.

        Raises:
            TimeoutError: It did not in time.
        """
        try:
            async with asyncio.timeout(seconds):
                while not condition():
                    self._turn = self._turn or asyncio.get_running_loop().create_future()
                    await asyncio.shield(self._turn)
        except TimeoutError as error:
            raise TimeoutError(f"{what}: not within {seconds:g} s") from error

    async def wait_quiet(self, seconds: float) -> None:
        """Wait until nothing has changed for a while."""
        seen = -1
        while seen != self.changes:
            seen = self.changes
            await asyncio.sleep(seconds)

    async def _follow(self, kind: Kind[Any]) -> None:
        while True:
            page = await self._client.list_all(kind)
            found = {_key(obj): obj for obj in page.items}
            for key in self._objects[kind].keys() - found.keys():
                self._put("DELETED", kind, self._objects[kind][key])
            for obj in found.values():
                self._put("ADDED", kind, obj)
            self._synced.add(kind)
            self._changed()
            try:
                async for event in self._client.watch(kind, resource_version=page.resource_version):
                    if event.type != "BOOKMARK":
                        self._put(event.type, kind, event.object)
            except ApiError:  # too old: list again
                continue

    def _put(self, change: str, kind: Kind[Any], obj: Any) -> None:
        if self.holds:
            self._held.append((change, kind, obj))
            return
        held = self._objects[kind]
        old = held.get(_key(obj))
        if change == "DELETED":
            held.pop(_key(obj), None)
        else:
            held[_key(obj)] = obj
        self._listener(change, kind, old, obj)
        self._look()
        self._changed()

    def _look(self) -> None:
        if self._until is not None and self._until():
            self._until = None
            self.hold()
            self._changed()

    def _changed(self) -> None:
        self.changes += 1
        turn, self._turn = self._turn, None
        if turn is not None and not turn.done():
            turn.set_result(None)


def _key(obj: Any) -> tuple[str, str]:
    return obj.metadata.namespace, obj.metadata.name
