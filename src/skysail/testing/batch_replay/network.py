"""The engine's connection: watches whose news come late, bindings that are refused, and how many writes there were."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Final

from skysail.api.errors import Conflict
from skysail.api.ports import Handler, Request, Response, User
from skysail.testing.batch_replay.acts import PodMatch
from skysail.testing.calls import Call, call_of
from skysail.testing.faults import Action, Faults

NOT_COUNTED: Final = ("leases", "events")


class SlowNews:
    """A server as seen through a network that holds back the events of some watches.

    Args:
        server: What is behind it.
        group: Runs what reads ahead.

    Attributes:
        delays: By resource, how many seconds its events are held back; `*` for those not named.
        writes: How many requests may have changed something, leases and events left out.
    """

    def __init__(self, server: Handler, group: asyncio.TaskGroup) -> None:
        self._server, self._group = server, group
        self.delays: dict[str, float] = {}
        self.writes = 0

    async def handle(self, request: Request, user: User) -> Response:
        """See `Handler.handle`."""
        call = call_of(request)
        self.writes += call.is_write and call.resource not in NOT_COUNTED
        response = await self._server.handle(request, user)
        if response.stream is None:
            return response
        return replace(response, stream=self._held_back(call, response.stream))

    def _delay(self, resource: str) -> float:
        return self.delays.get(resource, self.delays.get("*", 0.0))

    async def _held_back(self, call: Call, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Every chunk at its time: when it came, and what its resource's delay was then."""
        clock = asyncio.get_running_loop()
        waiting: asyncio.Queue[tuple[float, bytes | BaseException | None]] = asyncio.Queue()
        reader = self._group.create_task(self._read(call, chunks, waiting), name=f"news of {call.resource}")
        try:
            while True:
                due, chunk = await waiting.get()
                if due > clock.time():
                    await asyncio.sleep(due - clock.time())
                if isinstance(chunk, BaseException):
                    raise chunk
                if chunk is None:
                    return
                yield chunk
        finally:
            reader.cancel()

    async def _read(
        self,
        call: Call,
        chunks: AsyncIterator[bytes],
        waiting: "asyncio.Queue[tuple[float, bytes | BaseException | None]]",
    ) -> None:
        clock = asyncio.get_running_loop()
        try:
            async for chunk in chunks:
                waiting.put_nowait((clock.time() + self._delay(call.resource), chunk))
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - handed on to whoever reads the stream
            waiting.put_nowait((clock.time(), error))
        else:
            waiting.put_nowait((clock.time(), None))


def fail_binds(faults: Faults, pods: PodMatch, times: int, labels_of: Callable[[str], Mapping[str, str]]) -> None:
    """Refuse the next so many bindings of such pods, as a server does that knows better.

    Args:
        faults: Of the engine's connection.
        pods: Which.
        times: How many.
        labels_of: The labels of a pod, by `namespace/name`.
    """

    def matches(call: Call) -> bool:
        if call.resource != "pods" or call.subresource != "binding":
            return False
        if not fnmatchcase(call.name, pods.name) or not fnmatchcase(call.namespace, pods.namespace):
            return False
        labels = labels_of(f"{call.namespace}/{call.name}") if pods.labels else {}
        return all(labels.get(key) == text for key, text in pods.labels.items())

    rule = faults.strike_when(Action.FAIL, matches, times)
    rule.error = Conflict("binding refused by the scenario")
