"""What the handle lends plugins in a running scheduler."""

from skysail.scheduler.app import SchedulerOptions
from skysail.scheduler.framework.plugin import PostFilterResult
from skysail.scheduler.framework.status import Status
from skysail.scheduler.preemption.victims import Victims
from skysail.simulator.clock import settle
from tests.scheduler.test_extenders import URL, Extender
from tests.scheduler.test_plugins_at_work import Gate, Recording, enabled
from tests.scheduler.world import World, in_world


class Asker(Recording):
    """Asks an extender in PostFilter which victims it would take."""

    name = "Asker"
    asks = True
    found: list = []

    def post_filter(self, state, pod, diagnosis):
        raise AssertionError("it asks")

    def post_filter_asking(self, state, pod, diagnosis):
        calls = []
        (extender,) = [each for each in self.handle.extenders if each.supports_preemption]
        info = self.handle.snapshot().get("n1")
        victims = {"n1": Victims(tuple(info.pods.values()))}
        left = yield from extender.process_preemption(pod, victims, self.handle.snapshot(), calls)
        self.found.append((sorted(left), [call.verb for call in calls]))
        return Status.unschedulable("asked"), PostFilterResult()


@in_world
async def test_the_extenders_are_known_in_the_order_in_which_they_are_asked(world: World):
    first = f"{{urlPrefix: '{URL}', filterVerb: filter, ignorable: true, nodeCacheCapable: true}}"
    second = (
        "{urlPrefix: 'http://second.test', bindVerb: bind, prioritizeVerb: score, weight: 1, preemptVerb: preempt, "
        "nodeCacheCapable: true, managedResources: [{name: example.com/gpu}]}"
    )
    extender = Extender(filter=lambda body: {"nodeNames": body["NodeNames"]})
    options = SchedulerOptions(extender_transport=extender.transport)
    config = f"extenders: [{first}, {second}]\n{enabled('Gate')}"
    async with world.running(world.scheduler(config, {"Gate": Gate}, options=options)):
        pod = await world.pod("web")
        found = Gate.last.handle.extenders
        assert [each.name for each in found] == ["http://second.test", URL]
        assert [(each.is_filter, each.is_prioritizer, each.is_binder, each.is_ignorable) for each in found] == [
            (False, True, True, False), (True, False, False, True),
        ]  # fmt: skip
        assert [each.supports_preemption for each in found] == [True, False]
        assert [each.is_interested(pod) for each in found] == [False, True]


@in_world
async def test_a_plugin_asks_an_extender(world: World):
    await world.node("n1", cpu="1")
    await world.pod("low", cpu="900m", nodeName="n1")
    extender = Extender(preempt=lambda body: {"nodeNameToMetaVictims": body["NodeNameToMetaVictims"]})
    options = SchedulerOptions(extender_transport=extender.transport)
    config = (
        f"extenders: [{{urlPrefix: '{URL}', preemptVerb: preempt, nodeCacheCapable: true}}]\n"
        "profiles: [{plugins: {postFilter: {enabled: [{name: Asker}], disabled: [{name: '*'}]}}}]"
    )
    Asker.found = []
    async with world.running(world.scheduler(config, {"Asker": Asker}, options=options)):
        await world.pod("big", cpu="900m")
        await settle()
    assert Asker.found == [(["n1"], ["preempt"])]


@in_world
async def test_a_held_pod_is_rejected_by_its_uid(world: World):
    await world.node("n1")
    async with world.running(scheduler := world.scheduler(enabled("Gate"), {"Gate": Gate})):
        pod = await world.pod("web")
        await settle()
        handle = Gate.last.handle
        assert [each.pod.name for each in handle.waiting_pods()] == ["web"]
        assert handle.waiting_pod(pod.uid).pending_plugins == ("Gate",)
        assert handle.reject_waiting_pod(pod.uid)
        assert not handle.reject_waiting_pod("unknown")
        await settle()
        assert scheduler.cache.statistics().pods == 0
        assert (await world.condition("web"))[1] == "Unschedulable"
