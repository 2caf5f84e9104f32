"""Plugins in a running scheduler: what they may do, and what becomes of their mistakes."""

import asyncio

import pytest

from skysail.api.errors import ConfigError
from skysail.api.kinds import PODS
from skysail.scheduler.framework.events import NODE, ActionType, ClusterEvent, ClusterEventWithHint
from skysail.scheduler.framework.status import SUCCESS, Code, Status
from skysail.simulator.clock import settle
from tests.scheduler.world import World, in_world

ENABLED = "profiles: [{plugins: {multiPoint: {enabled: [%s]}}}]"


def enabled(*names: str) -> str:
    return ENABLED % ", ".join(f"{{name: {name}}}" for name in names)


class Recording:
    """The base of this module's plugins: remembers the handle and what happened."""

    name = "Recording"
    log: list[str]

    def __init__(self, args, handle):
        self.args, self.handle = args, handle
        type(self).last = self


class Gate(Recording):
    """Holds every pod at Permit."""

    name = "Gate"
    seconds = 60.0

    def permit(self, state, pod, node_name):
        return Status(Code.WAIT), self.seconds

    def events_to_register(self):
        return [ClusterEventWithHint(ClusterEvent(NODE, ActionType.ADD))]


class First(Recording):
    """Reserves, and says so."""

    name = "First"
    log = []

    def reserve(self, state, pod, node_name):
        self.log.append(f"{self.name} reserves")
        return SUCCESS

    def unreserve(self, state, pod, node_name):
        self.log.append(f"{self.name} unreserves")


class Second(First):
    name = "Second"

    def unreserve(self, state, pod, node_name):
        super().unreserve(state, pod, node_name)
        raise RuntimeError("cannot let go")


class Third(First):
    name = "Third"

    def reserve(self, state, pod, node_name):
        return Status.unschedulable("nothing left")

    def events_to_register(self):
        return []


class Broken(Recording):
    name = "Broken"

    def filter(self, state, pod, node):
        raise ZeroDivisionError("oops")


class Nonsense(Recording):
    name = "Nonsense"

    def reserve(self, state, pod, node_name):
        return "yes"

    def unreserve(self, state, pod, node_name):
        pass


class SlowPreBind(Recording):
    name = "SlowPreBind"

    def pre_bind_pre_flight(self, state, pod, node_name):
        return SUCCESS

    async def pre_bind(self, state, pod, node_name):
        await asyncio.sleep(3600)
        return SUCCESS


class Waker(Recording):
    """Asks for another pod once one is bound."""

    name = "Waker"
    pods: list = []

    async def post_bind(self, state, pod, node_name):
        self.handle.activate(self.pods)


@in_world
async def test_permit_holds_a_pod_until_it_is_allowed(world: World):
    await world.node("n1")
    async with world.running(scheduler := world.scheduler(enabled("Gate"), {"Gate": Gate})):
        pod = await world.pod("web")
        await settle(within=5.0)
        assert await world.node_of("web") == ""
        assert scheduler.cache.is_assumed(pod.uid)
        assert scheduler.attempts.last("default", "web").result == "waiting"
        waiting = Gate.last.handle.waiting_pod(pod.uid)
        assert waiting.pending_plugins == ("Gate",)
        waiting.allow("Gate")
        await settle()
        assert await world.node_of("web") == "n1"


@in_world
async def test_a_pod_held_for_too_long_goes_back_with_the_reason_and_its_room_is_free(world: World):
    await world.node("n1", cpu="1")
    async with world.running(scheduler := world.scheduler(enabled("Gate"), {"Gate": Gate})):
        await world.pod("web", cpu="800m")
        await settle(within=70.0)
        assert await world.condition("web") == (
            "False",
            "Unschedulable",
            "0/1 nodes are available: 1 rejected due to timeout after waiting 1m0s at plugin Gate.",
        )
        assert scheduler.cache.statistics().pods == 0
        assert scheduler.queue.get(("default", "web")).unschedulable_plugins == {"Gate"}
        assert scheduler.queue.part_of(("default", "web")) == "unschedulable"


@in_world
async def test_what_is_written_about_an_attempt_does_not_wake_its_pod(world: World):
    class Impatient(Recording):
        """Holds every pod for no time at all, and listens to everything."""

        name = "Impatient"

        def permit(self, state, pod, node_name):
            return Status(Code.WAIT), 0.0

    await world.node("n1")
    async with world.running(scheduler := world.scheduler(enabled("Impatient"), {"Impatient": Impatient})):
        await world.pod("web")
        await settle(within=60.0)
        assert scheduler.attempts.last("default", "web").tries == 1
        await world.client.patch(PODS, "web", "default", {"metadata": {"labels": {"now": "other"}}})
        await settle(within=60.0)
        assert scheduler.attempts.last("default", "web").tries == 2


@in_world
async def test_no_plugin_holds_a_pod_for_more_than_a_quarter_of_an_hour(world: World):
    class Patient(Gate):
        name = "Patient"

        def permit(self, state, pod, node_name):
            return super().permit(state, pod, node_name)[0], 86_400.0

    await world.node("n1")
    async with world.running(scheduler := world.scheduler(enabled("Patient"), {"Patient": Patient})):
        await world.pod("web")
        await settle(within=899.0)
        assert scheduler.attempts.last("default", "web").result == "waiting"
        await settle(within=901.0)
        assert "after waiting 15m0s at plugin Patient" in (await world.condition("web"))[2]


@in_world
async def test_stopping_abandons_held_pods_without_a_word_and_the_next_scheduler_takes_them_up(world: World):
    await world.node("n1")
    async with world.running(world.scheduler(enabled("Gate"), {"Gate": Gate})):
        await world.pod("web")
        await settle()
    assert await world.condition("web") == ("", "", "")
    async with world.running(world.scheduler()):
        await settle()
        assert await world.node_of("web") == "n1"


@in_world
async def test_a_held_pod_is_told_where_it_will_go(world: World):
    await world.node("n1")
    async with world.running(world.scheduler(enabled("Gate"), {"Gate": Gate})):
        await world.pod("web")
        await settle()
        assert (await world.client.get(PODS, "web", "default")).status.nominated_node_name == "n1"


@in_world
async def test_deleting_a_held_pod_frees_its_room_at_once(world: World):
    await world.node("n1", cpu="1")
    async with world.running(scheduler := world.scheduler(enabled("Gate"), {"Gate": Gate})):
        await world.pod("web", cpu="800m")
        await settle()
        await world.client.delete(PODS, "web", "default", grace_period_seconds=0)
        await settle()
        assert scheduler.cache.statistics().pods == 0
        assert len(scheduler.queue) == len(scheduler.waiting) == 0


@in_world
async def test_a_failed_reserve_is_undone_in_reverse_order_though_one_raises(world: World):
    First.log = log = []
    plugins = {"First": First, "Second": Second, "Third": Third}
    await world.node("n1")
    async with world.running(scheduler := world.scheduler(enabled("First", "Second", "Third"), plugins)):
        await world.pod("web")
        await settle()
        undone = ["Third unreserves", "Second unreserves", "First unreserves"]
        assert log == ["First reserves", "Second reserves", *undone]
        assert await world.condition("web") == (
            "False", "Unschedulable", "0/1 nodes are available: 1 nothing left.",
        )  # fmt: skip
        assert scheduler.cache.statistics().pods == 0
        assert scheduler.queue.get(("default", "web")).unschedulable_plugins == {"Third"}


@pytest.mark.parametrize(
    ("plugin", "said"),
    [
        (Broken, 'running "Broken" filter plugin: ZeroDivisionError: oops'),
        (Nonsense, "running Reserve plugin \"Nonsense\": answered 'yes', which is no Status"),
    ],
)
def test_a_plugin_that_breaks_fails_only_its_pods_attempt_and_is_named(plugin, said):
    @in_world
    async def run(world: World):
        await world.node("n1")
        config = f"{enabled(plugin.name)[:-1]}, {{schedulerName: sound}}]".replace(
            "[{plugins", "[{schedulerName: default-scheduler, plugins"
        )
        async with world.running(world.scheduler(config, {plugin.name: plugin})):
            await world.pod("web")
            await world.pod("other", schedulerName="sound")
            await settle()
            assert await world.condition("web") == ("False", "SchedulerError", said)
            assert await world.node_of("other") == "n1"

    run()


@in_world
async def test_an_asynchronous_point_has_a_deadline(world: World):
    await world.node("n1")
    async with world.running(scheduler := world.scheduler(enabled("SlowPreBind"), {"SlowPreBind": SlowPreBind})):
        await world.pod("web")
        await settle(within=901.0)
        _, reason, message = await world.condition("web")
        assert reason == "SchedulerError"
        assert message == 'running PreBind plugin "SlowPreBind": no answer within 15m0s'
        scheduler.cache.forget("nobody")


@in_world
async def test_bind_has_a_deadline_and_its_pod_is_tried_again(world: World):
    class Stuck(Recording):
        name = "Stuck"

        async def bind(self, state, pod, node_name):
            await asyncio.sleep(86_400)
            return SUCCESS

    await world.node("n1", cpu="1")
    config = "profiles: [{plugins: {bind: {enabled: [{name: Stuck}], disabled: [{name: '*'}]}}}]"
    async with world.running(scheduler := world.scheduler(config, {"Stuck": Stuck})):
        await world.pod("web", cpu="800m")
        await settle(within=901.0)
        assert (await world.condition("web"))[1:] == (
            "SchedulerError", 'running Bind plugin "Stuck": no answer within 15m0s',
        )  # fmt: skip
        assert scheduler.attempts.last("default", "web").tries == 1
        assert scheduler.cache.statistics().assumed_pods == 0
        await settle(within=3.0)
        assert scheduler.attempts.last("default", "web").tries == 2


@in_world
async def test_a_plugin_can_activate_another_pod(world: World):
    await world.node("n1")
    async with world.running(scheduler := world.scheduler(enabled("Waker"), {"Waker": Waker})):
        big = await world.pod("big", cpu="16")
        await settle()
        assert scheduler.queue.part_of(("default", "big")) == "unschedulable"
        Waker.pods = [big]
        await world.pod("web")
        await settle()
        assert scheduler.attempts.last("default", "big").tries == 2


@in_world
async def test_a_plugin_can_tell_people_about_a_pod(world: World):
    class Teller(Recording):
        name = "Teller"

        async def post_bind(self, state, pod, node_name):
            self.handle.event(pod, "Normal", "Cheapest", f"{node_name} costs least", action="Binding")

    await world.node("n1")
    async with world.running(world.scheduler(enabled("Teller"), {"Teller": Teller})):
        await world.pod("web")
        await settle()
        assert ("Normal", "Cheapest", "n1 costs least") in await world.events("web")


@in_world
async def test_a_plugin_without_registered_events_is_woken_by_everything(world: World):
    class Picky(Recording):
        name = "Picky"
        refuse = True

        def filter(self, state, pod, node):
            return Status.unschedulable("not today") if self.refuse else SUCCESS

    await world.node("n1")
    async with world.running(world.scheduler(enabled("Picky"), {"Picky": Picky})):
        await world.pod("web")
        await settle()
        assert (await world.condition("web"))[2] == "0/1 nodes are available: 1 not today."
        Picky.refuse = False
        await world.node("n2")
        await settle(within=2.0)
        assert await world.node_of("web") != ""


@in_world
async def test_a_plugin_that_cannot_be_made_stops_the_start(world: World):
    class Unmakeable(Recording):
        name = "Unmakeable"

        def __init__(self, args, handle):
            raise ValueError("no such thing")

        def filter(self, state, pod, node):
            return SUCCESS

    with pytest.raises(ConfigError, match='initializing plugin "Unmakeable"'):
        world.scheduler(enabled("Unmakeable"), {"Unmakeable": Unmakeable})
