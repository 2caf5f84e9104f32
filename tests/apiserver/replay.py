"""Running the steps of a recorded scenario against an `ApiServer`, in virtual time."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from skysail.api.ports import Request, Response
from skysail.apiserver.authentication import TokenAuthenticator, parse_tokens
from skysail.apiserver.front import answer
from skysail.apiserver.server import ApiServer
from skysail.simulator.clock import LoopClock, run_virtual
from tests.apiserver.transcripts import Difference, Placeholders, differences, read_lines, split_path

GOLDEN = Path(__file__).parent.parent / "golden" / "apiserver"
TOKENS = parse_tokens('skytoken,admin,admin-uid,"system:masters"\nplaintoken,alice,alice-uid,"devs"\n')
OPTIONS: Mapping[str, Mapping[str, str]] = {
    "rbac-forbidden": {"authorization-mode": "RBAC", "enable-service-account-admission": "true"},
    "serviceaccount-admission": {"authorization-mode": "RBAC", "enable-service-account-admission": "true"},
}
COMPARED_HEADERS = ("content-type", "warning", "retry-after")
PATIENCE = {"changes": 4.0, "bookmarks": 75.0}
COMPACTION_SECONDS = 20.0
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
"""After a change of a definition the recorder waited until the server had followed it."""


@dataclass
class Outcome:
    """How the steps of a scenario went.

    Attributes:
        steps: How many ran.
        differing: Differences by step label; steps without any are not in it.
    """

    steps: int = 0
    differing: dict[str, list[Difference]] = field(default_factory=dict)


def scenarios() -> list[str]:
    """Every recorded scenario."""
    return sorted(path.stem for path in GOLDEN.glob("*.json"))


def replay(scenario: str) -> Outcome:
    """Run a scenario against a fresh server."""
    recording = json.loads((GOLDEN / f"{scenario}.json").read_text())

    async def main(clock: LoopClock) -> Outcome:
        server = ApiServer(
            clock=clock,
            rng=Random(7),
            compaction_interval=COMPACTION_SECONDS,
            tokens=TOKENS,
            options=OPTIONS.get(scenario, {}),
        )
        async with server.running(), asyncio.TaskGroup() as group:
            player = _Player(server, group)
            for step in recording["steps"]:
                await player.play(step)
            player.close()
        return player.outcome

    return run_virtual(main)


class _Player:
    def __init__(self, server: ApiServer, group: asyncio.TaskGroup) -> None:
        self._server, self._group = server, group
        self._authenticator = TokenAuthenticator(TOKENS)
        self._places = Placeholders()
        self._watches: dict[str, asyncio.Queue[bytes | None]] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._etags: dict[str, str] = {}
        self.outcome = Outcome()

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def play(self, step: dict[str, Any]) -> None:
        self.outcome.steps += 1
        if "request" in step:
            found = await self._request(step)
        elif "watchOpen" in step:
            found = await self._open(step)
        elif "watchRead" in step:
            found = await self._read(step)
        else:
            found = await self._act(step)
        if found:
            self.outcome.differing[step["step"]] = found

    async def _send(self, request: dict[str, Any]) -> Response:
        places, body = self._places, b""
        headers = {"accept": "application/json", "user-agent": "battery/1", "authorization": "Bearer skytoken"}
        if "body" in request:
            filled = places.fill(request["body"])
            body = filled.encode() if isinstance(filled, str) else json.dumps(filled).encode()
            headers["content-type"] = "application/json"
        for name, value in (request.get("headers") or {}).items():
            if value is None:
                headers.pop(name.lower(), None)
            else:
                headers[name.lower()] = self._etags.get(value, places.fill(value))
        query = tuple((name, places.fill(value)) for name, value in request.get("query", ()))
        path = split_path(places.fill(request["path"]))
        return await answer(
            self._server, self._authenticator, Request(request.get("method", "GET"), path, query, headers, body)
        )

    async def _request(self, step: dict[str, Any]) -> list[Difference]:
        expected, response = step["response"], await self._send(step["request"])
        if step["request"]["path"].startswith(DEFINITIONS):
            await asyncio.sleep(1.5)
        if response.status != expected["status"]:
            return [("status", expected["status"], f"{response.status} {response.body[:300]!r}")]
        if "etag" in expected["headers"]:
            self._etags[expected["headers"]["etag"]] = response.header("etag") or ""
        found: list[Difference] = []
        for name in COMPARED_HEADERS:
            values = [value for key, value in response.headers if key.lower() == name]
            came = values[0] if len(values) == 1 else values or None
            if name in expected["headers"] or came is not None:
                found += differences(self._places, expected["headers"].get(name), came, f"header {name}")
        if step["request"]["method"] == "HEAD":
            return found
        body = _decoded(response)
        if "body" in expected:
            self._places.remember(body)
            found += differences(self._places, expected["body"], body)
        if "bodyKeys" in expected:
            document = json.loads(response.body)
            found += differences(self._places, expected["bodyKeys"], sorted(document))
        return found

    async def _open(self, step: dict[str, Any]) -> list[Difference]:
        expected, response = step["response"], await self._send(step["watchOpen"])
        lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._watches[step["step"]] = lines
        if response.status != expected["status"]:
            return [("status", expected["status"], f"{response.status} {response.body[:300]!r}")]
        if response.stream is not None:
            self._tasks.append(self._group.create_task(read_lines(response.stream, lines)))
            return []
        lines.put_nowait(response.body)
        lines.put_nowait(None)
        if response.status != 200 and "body" in expected:
            return differences(self._places, expected["body"], _decoded(response))
        return []

    async def _read(self, step: dict[str, Any]) -> list[Difference]:
        expected, wanted = step["events"], step["watchRead"]["count"]
        patient = wanted is None or any(event.get("type") == "BOOKMARK" for event in expected)
        events, ended = await self._take(
            self._watches[step["watchRead"]["watch"]],
            None if wanted is None else len(expected) or wanted,
            PATIENCE["bookmarks" if patient else "changes"],
        )
        found: list[Difference] = []
        if len(events) != len(expected):
            found.append(("events", len(expected), len(events)))
        if wanted is None and ended != step["ended"]:
            found.append(("ended", step["ended"], ended))
        for index, (one, other) in enumerate(zip(expected, events, strict=False)):
            self._places.remember(other)
            suffix = ".BOOKMARK" if one.get("type") == "BOOKMARK" else ""
            if suffix:
                found += differences(self._places, one["object"], other.get("object"), f"event{index}{suffix}")
            else:
                found += differences(self._places, one, other, f"event{index}")
        return found

    @staticmethod
    async def _take(lines: "asyncio.Queue[bytes | None]", count: int | None, patience: float) -> tuple[list[Any], bool]:
        events: list[Any] = []
        try:
            async with asyncio.timeout(patience):
                while count is None or len(events) < count:
                    line = await lines.get()
                    if line is None:
                        return events, True
                    events.append(json.loads(line))
        except TimeoutError:
            pass
        return events, False

    async def _act(self, step: dict[str, Any]) -> list[Difference]:
        await asyncio.sleep(2.5 * COMPACTION_SECONDS if step["step"] == "compact" else 3.0)
        return []


def _decoded(response: Response) -> Any:
    kind = response.header("content-type") or ""
    if kind.startswith("application/json") and response.body:
        return json.loads(response.body)
    return response.body.decode() if response.body else None
