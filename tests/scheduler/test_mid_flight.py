"""What happens to pods and nodes between a decision and its binding."""

import asyncio
import json

import pytest

from skysail.api.errors import ConfigError
from skysail.api.kinds import PODS
from skysail.api.ports import Response
from skysail.client.inprocess import InProcessTransport
from skysail.scheduler.framework.status import SUCCESS, Code, Status
from skysail.scheduler.serving import scheduler_application
from skysail.simulator.clock import settle
from tests.scheduler.test_plugins_at_work import Gate, Recording, enabled
from tests.scheduler.test_serving import get
from tests.scheduler.world import ADMIN, FaultyTransport, World, in_world


class SecondGate(Gate):
    """Holds every pod as well."""

    name = "SecondGate"


BOTH = {"Gate": Gate, "SecondGate": SecondGate}


@in_world
async def test_a_pod_that_two_plugins_hold_goes_on_when_both_have_let_it_go(world: World):
    await world.node("n1")
    async with world.running(world.scheduler(enabled("Gate", "SecondGate"), BOTH)):
        pod = await world.pod("web")
        await settle()
        waiting = Gate.last.handle.waiting_pod(pod.uid)
        assert waiting.pending_plugins == ("Gate", "SecondGate")
        waiting.allow("SecondGate")
        waiting.allow("SecondGate")
        await settle()
        assert (waiting.pending_plugins, await world.node_of("web")) == (("Gate",), "")
        waiting.allow("Gate")
        await settle()
        assert await world.node_of("web") == "n1"


@in_world
async def test_one_that_rejects_it_sends_it_back_in_its_name(world: World):
    await world.node("n1")
    async with world.running(scheduler := world.scheduler(enabled("Gate", "SecondGate"), BOTH)):
        pod = await world.pod("web")
        await settle()
        waiting = Gate.last.handle.waiting_pod(pod.uid)
        waiting.allow("Gate")
        assert waiting.reject("SecondGate", "too dear")
        assert not waiting.reject("SecondGate", "too late")
        await settle()
        assert await world.condition("web") == ("False", "Unschedulable", "0/1 nodes are available: 1 too dear.")
        assert scheduler.queue.get(("default", "web")).unschedulable_plugins == {"SecondGate"}
        assert scheduler.cache.statistics().pods == 0


def refuse_binding(request):
    if request.path.endswith("/binding"):
        body = b'{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no","reason":"Forbidden","code":403}'
        return Response(403, body=body)
    return None


class During(Recording):
    """Calls back in PreBind, before the binding is refused."""

    name = "During"

    def pre_bind_pre_flight(self, state, pod, node_name):
        return SUCCESS

    async def pre_bind(self, state, pod, node_name):
        await type(self).callback()
        return SUCCESS


@in_world
async def test_a_pod_updated_meanwhile_goes_back_as_it_is_now(world: World):
    await world.node("n1")
    transport = FaultyTransport(InProcessTransport(world.server, ADMIN))
    transport.fault = refuse_binding

    async def relabel():
        await world.client.patch(PODS, "web", "default", {"metadata": {"labels": {"app": "new"}}})
        await asyncio.sleep(0.1)

    During.callback = staticmethod(relabel)
    async with world.running(scheduler := world.scheduler(enabled("During"), {"During": During}, transport=transport)):
        await world.pod("web")
        await settle(within=0.2)
        assert scheduler.queue.get(("default", "web")).pod.metadata.labels == {"app": "new"}


@in_world
async def test_a_pod_that_somebody_else_bound_meanwhile_is_dropped_and_counted_where_it_is(world: World):
    await world.node("n1", cpu="2")
    await world.node("n2", cpu="1")
    transport = FaultyTransport(InProcessTransport(world.server, ADMIN))
    transport.fault = refuse_binding

    async def bind_elsewhere():
        pod = await world.client.get(PODS, "web", "default")
        await world.client.bind("default", "web", pod.uid, "n2")
        await asyncio.sleep(0.1)

    During.callback = staticmethod(bind_elsewhere)
    async with world.running(scheduler := world.scheduler(enabled("During"), {"During": During}, transport=transport)):
        await world.pod("web")
        await settle(within=20.0)
        assert len(scheduler.queue) == 0
        assert scheduler.queue.statistics().in_flight == 0
        assert [state.node_name for state in scheduler.cache.pods()] == ["n2"]
        assert not scheduler.compare_caches()


@in_world
async def test_a_node_that_a_binding_misses_but_the_server_has_stays(world: World):
    await world.node("n1")
    transport = FaultyTransport(InProcessTransport(world.server, ADMIN))
    missing = (
        b'{"kind":"Status","apiVersion":"v1","status":"Failure","message":"nodes \\"n1\\" not found",'
        b'"reason":"NotFound","details":{"name":"n1","kind":"nodes"},"code":404}'
    )
    faults = [missing]
    transport.fault = lambda request: (
        Response(404, body=faults.pop()) if request.path.endswith("/binding") and faults else None
    )
    async with world.running(scheduler := world.scheduler(transport=transport)):
        await world.pod("web")
        await settle(within=5.0)
        assert transport.requests.count(("GET", "/api/v1/nodes/n1")) == 1
        assert scheduler.cache.statistics().nodes == 1
        assert await world.node_of("web") == "n1"


@in_world
async def test_a_cache_that_disagrees_with_the_informers_is_shown(world: World):
    await world.node("n1")
    async with world.running(scheduler := world.scheduler()):
        await world.pod("web")
        await settle()
        scheduler.cache.remove_node("n1")
        shown = json.loads((await get(scheduler_application(scheduler), "/debug/cache"))[1])
        assert (shown["consistent"], shown["missed_nodes"]) == (False, ["n1"])


@pytest.mark.parametrize(
    ("config", "path"),
    [
        ("profiles: [{schedulerName: a}, {schedulerName: a}]", "profiles[1].schedulerName"),
        ("profiles: [{plugins: {queueSort: {disabled: [{name: '*'}]}}}]", "queueSort"),
        ("profiles: [{plugins: {score: {enabled: [{name: NodeResourcesFit}, {name: NodeResourcesFit}]}}}]", "score"),
        ("profiles: [{plugins: {filter: {enabled: [{name: Nobody}]}}}]", "profiles[0].plugins.filter.enabled[0]"),
        ("profiles: [{pluginConfig: [{name: NodeAffinity, args: {addedAfinity: {}}}]}]", "addedAfinity"),
        ("percentageOfNodesToScore: 101", "percentageOfNodesToScore"),
        ("podInitialBackoffSeconds: 0", "podInitialBackoffSeconds"),
        ("parallelism: 0", "parallelism"),
        ("extenders: [{urlPrefix: 'http://x', prioritizeVerb: p, weight: 0}]", "extenders[0].weight"),
    ],
)
def test_a_wrong_configuration_stops_the_start_and_names_the_field(config: str, path: str) -> None:
    @in_world
    async def run(world: World) -> None:
        with pytest.raises(ConfigError) as caught:
            world.scheduler(config)
        assert path in str(caught.value)

    run()


@in_world
async def test_what_a_plugin_registers_for_must_be_events(world: World):
    class Odd(Recording):
        name = "Odd"

        def permit(self, state, pod, node_name):
            return Status(Code.SUCCESS), 0.0

        def events_to_register(self):
            return ["everything"]

    with pytest.raises(ConfigError, match="plugin Odd answered 'everything'"):
        world.scheduler(enabled("Odd"), {"Odd": Odd})
