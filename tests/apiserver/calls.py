"""Short ways to call an in-process API server in tests."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

from skysail.api.ports import Clock, Request, Response
from skysail.apiserver.authentication import ADMIN
from skysail.apiserver.server import ApiServer

MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"


@asynccontextmanager
async def serving(clock: Clock, **options: Any) -> AsyncIterator["Caller"]:
    """A running server, in memory unless told otherwise."""
    async with ApiServer(clock=clock, rng=Random(1), **options).running() as server:
        yield Caller(server)


class Caller:
    """Calls one server as admin."""

    def __init__(self, server: ApiServer) -> None:
        self.server = server

    async def send(
        self, method: str, path: str, body: Any = None, *, headers: dict[str, str] | None = None, **query: str
    ) -> Response:
        """One request; a body that is no bytes goes as JSON."""
        data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        request = Request(method, path, tuple(query.items()), headers or {}, data)
        return await self.server.handle(request, ADMIN)

    async def get(self, path: str, **query: str) -> Any:
        """The decoded answer to a GET."""
        return json.loads((await self.send("GET", path, **query)).body)

    async def post(self, path: str, body: Any, **query: str) -> Any:
        """The decoded answer to a POST that must succeed."""
        response = await self.send("POST", path, body, **query)
        assert response.status == 201, response.body
        return json.loads(response.body)

    async def merge(self, path: str, body: Any) -> Any:
        """The decoded answer to a merge patch that must succeed."""
        response = await self.send("PATCH", path, body, headers={"content-type": "application/merge-patch+json"})
        assert response.status == 200, response.body
        return json.loads(response.body)

    async def refused(self, method: str, path: str, body: Any = None, **query: str) -> tuple[int, str]:
        """The status and the message of a request that must fail; a PATCH is a merge patch."""
        headers = {"content-type": "application/merge-patch+json"} if method == "PATCH" else {}
        response = await self.send(method, path, body, headers=headers, **query)
        assert response.status >= 400, response.body
        return response.status, json.loads(response.body)["message"]

    async def watch(self, path: str, **query: str) -> "Watch":
        """Open a watch."""
        response = await self.send("GET", path, watch="true", **query)
        assert response.stream is not None, response.body
        return Watch(response.stream)


class Watch:
    """An open watch, read event by event."""

    def __init__(self, stream: AsyncIterator[bytes]) -> None:
        self._stream = stream
        self._events: list[Any] = []

    async def next(self) -> Any:
        """The next event; StopAsyncIteration at the end."""
        while not self._events:
            chunk = await anext(self._stream)
            self._events += [json.loads(line) for line in chunk.splitlines()]
        return self._events.pop(0)

    async def take(self, count: int) -> list[tuple[str, str]]:
        """The types and names of the next events."""
        events = [await self.next() for _ in range(count)]
        return [(event["type"], event["object"]["metadata"].get("name", "")) for event in events]

    async def rest(self) -> list[Any]:
        """Everything until the server ends the watch."""
        events = []
        try:
            while True:
                events.append(await self.next())
        except StopAsyncIteration:
            return events

    async def is_silent(self, seconds: float = 1) -> bool:
        """Whether nothing comes for a while. The watch is spent afterwards."""
        try:
            async with asyncio.timeout(seconds):
                await self.next()
        except TimeoutError:
            return True
        return False
