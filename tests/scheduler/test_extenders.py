"""A scheduler beside extenders: who is asked, what becomes of the answers, who is named when something is wrong."""

import asyncio
import random
from collections.abc import Callable
from typing import Any

import msgspec
from aiohttp import web
from aiohttp.test_utils import TestServer

from skysail.api.errors import Unreachable
from skysail.api.kinds import NODES, PODS, PRIORITY_CLASSES
from skysail.api.ports import Request, Response
from skysail.apiserver.server import ApiServer
from skysail.client.config import ServerConfig
from skysail.scheduler.app import SchedulerOptions
from skysail.simulator.clock import WallClock, settle
from tests.scheduler.world import World, in_world

URL = "http://extender.test/x"


class Extender:
    """Plays extenders in the scheduler's own loop.

    Attributes:
        asked: Path and body of each request.
        answers: By verb: what to answer, or a function of the body; an exception is raised.
    """

    def __init__(self, **answers: Any) -> None:
        self.asked: list[tuple[str, Any]] = []
        self.answers = answers

    def transport(self, config: ServerConfig) -> "Extender":
        return self

    async def request(self, request: Request) -> Response:
        body = msgspec.json.decode(request.body)
        verb = request.path.removeprefix("/")
        self.asked.append((verb, body))
        answer = self.answers[verb]
        if isinstance(answer, Exception):
            raise answer
        if callable(answer):
            answer = answer(body)
            if asyncio.iscoroutine(answer):
                answer = await answer
        return answer if isinstance(answer, Response) else Response(200, (), msgspec.json.encode(answer))

    def stream(self, request: Request) -> Any:
        raise AssertionError("extenders are not watched")

    async def close(self) -> None:
        pass

    def verbs(self) -> list[str]:
        return [verb for verb, _ in self.asked]


def config(*extenders: str) -> str:
    return "extenders: [" + ", ".join(f"{{urlPrefix: '{URL}', {each}}}" for each in extenders) + "]"


def scheduler(world: World, extender: Extender, *extenders: str) -> Any:
    options = SchedulerOptions(extender_transport=extender.transport)
    return world.scheduler(config(*extenders), options=options)


@in_world
async def test_a_filter_narrows_the_choice_and_a_priority_decides(world: World):
    for name in ("n1", "n2", "n3"):
        await world.node(name)
    extender = Extender(
        filter=lambda body: {"nodenames": [name for name in body["NodeNames"] if name != "n1"]},
        prioritize=[{"host": "n3", "score": 10}],
    )
    verbs = "filterVerb: filter, prioritizeVerb: prioritize, weight: 5, nodeCacheCapable: true"
    async with world.running(running := scheduler(world, extender, verbs)):
        await world.pod("web")
        await settle()
        assert await world.node_of("web") == "n3"
        assert extender.verbs() == ["filter", "prioritize"]
        assert sorted(extender.asked[1][1]["NodeNames"]) == ["n2", "n3"]
        record = running.attempts.last("default", "web").as_raw()
        assert [(each["verb"], each["error"]) for each in record["extenders"]] == [("filter", ""), ("prioritize", "")]


@in_world
async def test_an_extender_without_a_cache_gets_whole_objects(world: World):
    await world.node("n1")
    await world.client.patch(NODES, "n1", "", {"status": {"nodeInfo": {"kernelVersion": "6.1"}}}, subresource="status")
    extender = Extender(filter=lambda body: {"Nodes": body["Nodes"]})
    async with world.running(scheduler(world, extender, "filterVerb: filter")):
        await world.pod("web", dnsPolicy="Default", hostAliases=[{"ip": "10.0.0.1", "hostnames": ["a"]}])
        await settle()
        assert await world.node_of("web") == "n1"
    body = extender.asked[0][1]
    assert body["Pod"]["spec"]["hostAliases"] == [{"ip": "10.0.0.1", "hostnames": ["a"]}]
    (node,) = body["Nodes"]["items"]
    assert node["status"]["nodeInfo"]["kernelVersion"] == "6.1"
    assert body["NodeNames"] is None
    assert "managedFields" not in body["Pod"]["metadata"]


@in_world
async def test_a_pod_refused_by_an_extender_says_so_and_is_woken_by_any_event(world: World):
    await world.node("n1")
    extender = Extender(filter={"NODENAMES": [], "FAILEDNODES": {"n1": "no license"}})
    async with world.running(scheduler(world, extender, "filterVerb: filter, nodeCacheCapable: true")):
        await world.pod("web")
        await settle()
        assert await world.condition("web") == ("False", "Unschedulable", "0/1 nodes are available: 1 no license.")
        extender.answers["filter"] = {"NodeNames": ["n1"]}
        await world.client.patch(NODES, "n1", "", {"metadata": {"labels": {"licensed": "yes"}}})
        await settle(within=3.0)
        assert await world.node_of("web") == "n1"


@in_world
async def test_an_extender_that_does_not_answer_fails_the_attempt_and_is_named(world: World):
    await world.node("n1")
    extender = Extender(filter=lambda body: asyncio.sleep(60))
    verbs = "filterVerb: filter, nodeCacheCapable: true, httpTimeout: 2s"
    async with world.running(running := scheduler(world, extender, verbs)):
        await world.pod("web")
        await settle(within=2.5)
        status, reason, message = await world.condition("web")
        assert (status, reason) == ("False", "SchedulerError")
        assert message == f'Post "{URL}/filter": no answer within 2 s'
        (call,) = running.attempts.last("default", "web").extender_calls
        assert (call.extender, call.verb, call.seconds >= 2.0, call.error) == (URL, "filter", True, message)
        extender.answers["filter"] = {"NodeNames": ["n1"]}
        await settle(within=10.0)
        assert await world.node_of("web") == "n1"


@in_world
async def test_a_broken_extender_that_may_be_ignored_is_ignored_and_named(world: World):
    await world.node("n1")
    extender = Extender(filter=Unreachable("refused"))
    verbs = "filterVerb: filter, nodeCacheCapable: true, ignorable: true"
    async with world.running(running := scheduler(world, extender, verbs)):
        await world.pod("web")
        await settle()
        assert await world.node_of("web") == "n1"
        (call,) = running.attempts.last("default", "web").extender_calls
        assert call.error == f'Post "{URL}/filter": refused'


@in_world
async def test_a_wrapped_list_of_scores_is_refused_by_name_and_a_score_above_ten_is_told(world: World):
    for name in ("n1", "n2"):
        await world.node(name)
    extender = Extender(prioritize={"hostPriorityList": []})
    verbs = "prioritizeVerb: prioritize, weight: 1, nodeCacheCapable: true"
    async with world.running(running := scheduler(world, extender, verbs)):
        await world.pod("a")
        await settle()
        (call,) = running.attempts.last("default", "a").extender_calls
        assert call.error == (
            f'extender "{URL}" answered prioritize with an object (hostPriorityList), a bare list is wanted'
        )
        extender.answers["prioritize"] = [{"Host": "n2", "Score": 11}]
        await world.pod("b")
        await settle()
        assert await world.node_of("b") == "n2"
        (call,) = running.attempts.last("default", "b").extender_calls
        assert call.error == f'extender "{URL}" scored node "n2" 11, which is not between 0 and 10'


@in_world
async def test_an_extender_binds_the_pods_it_manages_and_the_others_are_bound_as_ever(world: World):
    await world.node("n1")
    await world.client.patch(
        NODES, "n1", "", {"status": {"allocatable": {"example.com/gpu": "4"}}}, subresource="status"
    )

    async def bind(body: Any) -> Any:
        await world.client.bind(body["PodNamespace"], body["PodName"], body["PodUID"], body["Node"])
        return {}

    extender = Extender(bind=bind)
    verbs = "bindVerb: bind, managedResources: [{name: example.com/gpu}]"
    async with world.running(scheduler(world, extender, verbs)):
        gpu = {"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "1"}}
        await world.pod("plain")
        await world.pod("gpu", containers=[{"name": "c", "image": "x:1", "resources": gpu}])
        await settle()
        assert (await world.node_of("plain"), await world.node_of("gpu")) == ("n1", "n1")
        assert [body["PodName"] for _, body in extender.asked] == ["gpu"]


@in_world
async def test_an_extender_chooses_among_the_candidates_for_preemption(world: World):
    for name in ("n1", "n2"):
        await world.node(name, cpu="1")
        await world.pod(f"low-{name}", cpu="900m", nodeName=name)

    def only_second(body: Any) -> Any:
        return {"nodeNameToMetaVictims": {"n2": body["NodeNameToMetaVictims"]["n2"]}}

    extender = Extender(preempt=only_second)
    async with world.running(scheduler(world, extender, "preemptVerb: preempt, nodeCacheCapable: true")):
        await world.client.create(PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 1000})
        await world.pod("high", cpu="900m", priorityClassName="high")
        await settle()
        pods = {pod.name: pod for pod in (await world.client.list_all(PODS, "default")).items}
        assert pods["high"].status.nominated_node_name == "n2"
        assert [name for name, pod in pods.items() if pod.metadata.deletion_timestamp] == ["low-n2"]
    assert sorted(extender.asked[0][1]["NodeNameToMetaVictims"]) == ["n1", "n2"]


def test_a_real_extender_over_http_is_asked_and_obeyed():
    seen: list[tuple[str, Any]] = []

    async def serve(request: web.Request) -> web.Response:
        body = await request.json()
        seen.append((request.path, body))
        if request.path.endswith("/filter"):
            items = [node for node in body["Nodes"]["items"] if node["metadata"]["name"] != "n1"]
            return web.json_response({"nodes": {"Items": items}, "failedNodes": {"n1": "not here"}})
        return web.json_response([{"host": "n3", "score": 10}])

    async def main() -> str:
        application = web.Application()
        application.router.add_post("/sub/{verb}", serve)
        clock = WallClock()
        api = ApiServer(clock=clock, rng=random.Random(0))
        async with api.running(), TestServer(application) as server, asyncio.TaskGroup() as group:
            world = World(api, clock, group)
            for name in ("n1", "n2", "n3"):
                await world.node(name)
            verbs = "filterVerb: filter, prioritizeVerb: prioritize, weight: 5"
            running = world.scheduler(f"extenders: [{{urlPrefix: '{server.make_url('/sub/')}', {verbs}}}]")
            task = group.create_task(running.run())
            await world.pod("web")
            node = await bound_node(world, lambda name: name == "web")
            running.stop()
            await task
            return node

    assert asyncio.run(main()) == "n3"
    assert [path for path, _ in seen] == ["/sub/filter", "/sub/prioritize"]


async def bound_node(world: World, wanted: Callable[[str], bool]) -> str:
    async for event in world.client.watch(PODS, "default", send_initial_events=True):
        if wanted(event.object.name) and event.object.spec.node_name:
            return event.object.spec.node_name
    raise AssertionError("the watch ended")
