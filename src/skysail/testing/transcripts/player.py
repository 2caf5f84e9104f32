"""Playing a transcript: a fresh server, the controllers it names, its actions one by one, and what is then there.

After each action the player waits until nothing has been written for a while, as the recording did. Everything happens
in virtual time, so that a wait of ten seconds takes none.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from random import Random
from typing import Any

from skysail.api.errors import ConfigError
from skysail.api.kinds import Kind
from skysail.api.ports import Handler, Request, Response, User
from skysail.api.raw import Raw
from skysail.apiserver.authentication import ADMIN
from skysail.apiserver.server import ApiServer
from skysail.client.api_client import ApiClient
from skysail.client.inprocess import InProcessTransport
from skysail.controller.controller import Controller
from skysail.controller.manager import Manager
from skysail.controllers.nodelifecycle.health import HealthSettings
from skysail.controllers.nodelifecycle.loop import NodeLifecycleController, NodeLifecycleSettings
from skysail.controllers.nodelifecycle.zones import EvictionSettings
from skysail.controllers.registry import CONTROLLERS
from skysail.simulator.clock import LoopClock, settle
from skysail.testing.transcripts.acting import RAW_KINDS, Actor
from skysail.testing.transcripts.naming import NAMESPACE, OTHER_NAMESPACE, REAL_NAMES, Names
from skysail.testing.transcripts.observing import SIGHTS, conditions, multiset, see, see_pod
from skysail.testing.transcripts.picking import PodHistory

OVERHEAD_SECONDS = 0.5
"""What a step of the recording took beside waiting: its requests, and the polling of its end."""
QUIET_SECONDS: Mapping[str, float] = {"job": 1.8, "gc": 1.2, "ns": 1.4, "node": 2.2, "taint": 2.2, "zone": 2.2}
"""For how long nothing may have been written, by the first word of the scenario's name; 0.7 s for all others."""
SHORTEST_QUIET_SECONDS = 0.7
GENERATED_KINDS = ("ReplicaSet", "ControllerRevision")
"""Kinds whose names end in a hash."""
LONGEST_SECONDS = 120.0
READ_TURNS, WRITE_TURNS, ANSWER_TURNS = 10, 30, 10
"""What a controller's request takes: until it is read, until it is written, and until that is known."""
_EVENTS: Kind[Raw] = RAW_KINDS["Event"]

ANY_NODE = "ds-roll-"
"""In these scenarios the order of nodes is not fixed: each is written `any`."""

_NODE_LIFECYCLE = NodeLifecycleSettings(
    HealthSettings(grace_seconds=6.0, startup_grace_seconds=8.0),
    EvictionSettings(rate=10.0, secondary_rate=1.0, unhealthy_threshold=0.55, large_cluster=50),
    period_seconds=1.0,
)
REPLAYED: Mapping[str, Callable[[], Controller]] = {
    **CONTROLLERS,
    "node-lifecycle-controller": lambda: NodeLifecycleController(_NODE_LIFECYCLE),
}
"""The controllers a transcript may name, with the settings they had when it was recorded."""


class WatchedServer:
    """Passes requests on, and tells when something was written; leases and Events do not count."""

    def __init__(self, server: ApiServer, written: Callable[[], None]) -> None:
        self._server, self._written = server, written

    async def handle(self, request: Request, user: User) -> Response:
        """See `skysail.api.ports.Handler`."""
        response = await self._server.handle(request, user)
        counts = "/leases" not in request.path and "/events" not in request.path
        if counts and request.method != "GET" and response.status < 300:
            self._written()
        return response


class DistantServer:
    """Passes the controllers' requests on as if over a network: others act meanwhile, and a write takes the longest.

    Turns of the event loop stand for the milliseconds that a request took in a recording, where workers ran beside each
    other and news of one write came in before the next was done. No time passes.
    """

    def __init__(self, server: Handler) -> None:
        self._server = server

    async def handle(self, request: Request, user: User) -> Response:
        """See `skysail.api.ports.Handler`."""
        reading = request.method == "GET"
        await _turns(READ_TURNS if reading else WRITE_TURNS)
        response = await self._server.handle(request, user)
        await _turns(0 if reading else ANSWER_TURNS)
        return response


async def _turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


class Player:
    """One transcript being played. A subclass may play it in another world: on a real server, in real time.

    Args:
        transcript: As read from its file; recorded states in it are not looked at.
        clock: The world's.
        seed: Of all chance.
        namespaces: The real names of its namespaces.
    """

    client: ApiClient

    def __init__(
        self, transcript: Raw, clock: LoopClock, seed: int = 0, namespaces: Mapping[str, str] = REAL_NAMES
    ) -> None:
        self.transcript = transcript
        self.clock, self.rng = clock, Random(seed)
        self.names, self.history = Names(namespaces), PodHistory()
        self._last_write = clock.monotonic()
        self._event_counts: dict[str, int] = {}
        text = str(transcript["steps"])
        self._uses_other = f"'{OTHER_NAMESPACE}'" in text or f"{OTHER_NAMESPACE}/" in text
        self._shown_conditions = frozenset({"DisruptionTarget"})
        if {"node-lifecycle", "taint-eviction"} & set(transcript["controllers"]):
            self._shown_conditions |= {"Ready"}

    def note_write(self) -> None:
        """Something was written just now."""
        self._last_write = self.clock.monotonic()

    async def play(self) -> AsyncIterator[Raw]:
        """Perform each step and give what was then seen: `{"step", "state", "result"}`."""
        async with self.world() as actor:
            quiet = (
                QUIET_SECONDS.get(self.transcript["scenario"].split("-")[0], SHORTEST_QUIET_SECONDS) + OVERHEAD_SECONDS
            )
            for step in self.transcript["steps"]:
                actor.step = step["step"]
                result = await actor.perform(step["action"])
                self.note_write()
                await self.settle(quiet)
                seen: Raw = {"step": step["step"], "state": await self._state(actor)}
                if result is not None:
                    seen["result"] = self._in_aliases(result)
                yield seen

    @asynccontextmanager
    async def world(self) -> AsyncIterator[Actor]:
        """The server and the controllers, and somebody to act on them."""
        server = ApiServer(clock=self.clock, rng=self.rng)
        watched = WatchedServer(server, self.note_write)
        self.client = self._connect("transcript", watched)
        async with server.running(), asyncio.TaskGroup() as group:
            await self.create_namespaces()
            tasks = [group.create_task(self.learn_names(RAW_KINDS[kind])) for kind in GENERATED_KINDS]
            manager = Manager(self._connect("controllers", DistantServer(watched)), clock=self.clock, rng=self.rng)
            for name in self.transcript["controllers"]:
                manager.add(_make(name))
            tasks.append(group.create_task(manager.run()))
            await manager.wait_ready()
            await self.settle(SHORTEST_QUIET_SECONDS)

            def beside(work: Awaitable[None]) -> None:
                tasks.append(group.create_task(_as_coroutine(work)))

            yield self.actor(beside)
            for task in tasks:
                task.cancel()

    def actor(self, beside: Callable[[Awaitable[None]], None]) -> Actor:
        """Who carries the actions out; what takes time is given to `beside`."""
        lift = "node-lifecycle" not in self.transcript["controllers"]
        return Actor(self.client, self.clock, self.names, self.history, beside, self.pause, lift_taints=lift)

    async def create_namespaces(self) -> None:
        """Those that the transcript plays in."""
        for name in self.names.namespaces.values():
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            await self.client.create(RAW_KINDS["Namespace"], body)

    def _connect(self, name: str, server: Handler) -> ApiClient:
        return ApiClient(InProcessTransport(server, ADMIN), user_agent=name, clock=self.clock, rng=self.rng)

    async def learn_names(self, kind: Kind[Raw]) -> None:
        """Hear of new objects of a kind whose names are generated, in order, until cancelled."""
        while True:
            async for event in self.client.watch(kind, self.names.namespaces[NAMESPACE], send_initial_events=True):
                if event.type == "ADDED":
                    self.names.learn(kind.name, event.object)

    async def pause(self) -> None:
        """Let everybody react to what was just done."""
        await settle()

    async def settle(self, quiet: float) -> None:
        """Wait until nothing has been written for so long."""
        deadline = self.clock.monotonic() + LONGEST_SECONDS
        while True:
            await self.pause()
            left = self._last_write + quiet - self.clock.monotonic()
            if left <= 0 or self.clock.monotonic() >= deadline:
                return
            await asyncio.sleep(left)

    def _in_aliases(self, result: Any) -> Any:
        """What the API answered, with aliases for names in its words."""
        if isinstance(result, list):
            return list(map(self._in_aliases, result))
        if isinstance(result, dict) and "message" in result:
            return {**result, "message": self.names.text(result["message"])}
        return result

    # What is there

    async def _state(self, actor: Actor) -> Raw:
        pods = await actor.pods()
        objects = await self._objects(NAMESPACE, pods)
        if self._uses_other:
            objects[f"namespace:{OTHER_NAMESPACE}"] = await self._objects(OTHER_NAMESPACE, pods)
        nodes = see("Node", (await self.client.list(RAW_KINDS["Node"])).items, self.names)
        if nodes:
            objects["nodes"] = nodes
        if "namespace" in self.transcript["controllers"]:
            objects["namespace"] = await self._namespace()
        return {"objects": objects, "events": await self._new_events()}

    async def _objects(self, short: str, pods: Iterable[Raw]) -> Raw:
        namespace = self.names.namespaces[short]
        found: Raw = {}
        for name, (key, _) in SIGHTS.items():
            if RAW_KINDS[name].namespaced:
                seen = see(name, (await self.client.list(RAW_KINDS[name], namespace)).items, self.names)
                if seen:
                    found[key] = seen
        mine = [self._pod(pod) for pod in pods if pod["metadata"]["namespace"] == namespace]
        if mine:
            found["pods"] = multiset(mine)
        return found

    def _pod(self, pod: Raw) -> Raw:
        uid = pod["metadata"]["uid"]
        born, ready_at = self.history.born[uid], self.history.ready_at.get(uid)
        seen = see_pod(pod, self.names, born, ready_at, self._shown_conditions)
        if self.transcript["scenario"].startswith(ANY_NODE):
            seen |= {key: "any" for key in ("node", "targetNode") if key in seen}
        return seen

    async def _namespace(self) -> Raw:
        found = (await self.client.list(RAW_KINDS["Namespace"])).items
        mine = next((item for item in found if item["metadata"]["name"] == self.names.namespaces[NAMESPACE]), None)
        if mine is None:
            return {"exists": False}
        seen = {
            "exists": True,
            "phase": mine["status"]["phase"],
            "deleting": "deletionTimestamp" in mine["metadata"],
            "finalizers": mine["spec"].get("finalizers"),
        }
        listed = conditions(mine, self.names)
        return {**seen, "conditions": listed} if listed else seen

    async def events(self) -> Iterable[Raw]:
        """All Events there are."""
        return (await self.client.list(_EVENTS)).items

    async def _new_events(self) -> list[Raw]:
        """Events since the last step, with the increase of their counts."""
        increases: dict[tuple[str, ...], int] = {}
        for event in await self.events():
            uid, count = event["metadata"]["uid"], int(event.get("count") or 1)
            before = self._event_counts.get(uid, 0)
            self._event_counts[uid] = count
            if count > before:
                key = self._event_key(event)
                increases[key] = increases.get(key, 0) + count - before
        fields = ("kind", "name", "type", "reason", "message", "source")
        return [{**dict(zip(fields, key, strict=True)), "count": count} for key, count in sorted(increases.items())]

    def _event_key(self, event: Raw) -> tuple[str, ...]:
        about = event["involvedObject"]
        return (
            about["kind"],
            self.names.of_object(about["name"], about.get("uid", "")),
            event["type"],
            event["reason"],
            self.names.text(event.get("message", "")),
            (event.get("source") or {}).get("component", ""),
        )


def _make(name: str) -> Controller:
    """A transcript's controller: `deployment` is `deployment-controller`."""
    maker = REPLAYED.get(f"{name}-controller") or REPLAYED.get(name)
    if maker is None:
        raise ConfigError(f"there is no controller {name!r}", path="controllers")
    return maker()


async def _as_coroutine(work: Awaitable[None]) -> None:
    await work


async def replay(transcript: Raw, clock: LoopClock, seed: int = 0) -> list[Any]:
    """Play a transcript to its end: what was seen after each step."""
    return [seen async for seen in Player(transcript, clock, seed).play()]
