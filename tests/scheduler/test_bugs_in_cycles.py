"""A bug anywhere in a cycle: an exception raised on entry to every function that a cycle calls, one after the other.

Whatever raises, the scheduler goes on, the pod has another attempt, and nothing stays taken.
"""

import sys
from collections.abc import Callable, Coroutine
from functools import partial
from types import FrameType
from typing import Any

import pytest

from skysail.api.errors import Unreachable
from skysail.api.kinds import PODS
from skysail.apiserver import server
from skysail.apiserver.schema.table import load
from skysail.client.inprocess import InProcessTransport
from skysail.scheduler.app import Scheduler
from skysail.scheduler.binding_cycle import BindingCycle
from skysail.scheduler.decision_loop import DecisionLoop
from skysail.scheduler.framework.status import SUCCESS, Code, Status
from skysail.simulator.clock import settle
from tests.scheduler.test_plugins_at_work import Recording
from tests.scheduler.test_pod_groups import ALPHA, GATES, make_group, make_member, nodes_of
from tests.scheduler.world import ADMIN, FaultyTransport, World, in_world

CYCLES = {DecisionLoop._schedule_one.__code__, BindingCycle.run.__code__}
ROOM = "skysail/scheduler/"


class Injected(RuntimeError):
    """The bug."""


class Injector:
    """Watches the calls made in cycles; raises at the first call of one function."""

    def __init__(self) -> None:
        self.called: dict[str, None] = {}
        self.target = ""
        self.raised = False
        self._depth = 0

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if code in CYCLES:
            self._depth += {"call": 1, "return": -1}.get(event, 0)
        elif event == "call" and self._depth and ROOM in code.co_filename:
            name = f"{code.co_filename.rpartition(ROOM)[2]}:{code.co_qualname}"
            self.called.setdefault(name)
            if name == self.target and not self.raised:
                self.raised, self._depth = True, 0
                raise Injected(name)

    async def watching(self, play: Coroutine[Any, Any, None], target: str = "") -> None:
        """Run `play`, with a bug in `target`; it stops the watching itself, before it looks at what came of it."""
        self.target, self.raised, self._depth = target, False, 0
        sys.setprofile(self)
        try:
            await play
        finally:
            sys.setprofile(None)


class Holder(Recording):
    """Takes something at Reserve that it must get back, and has a say at every later point."""

    name = "Holder"
    held: set[str] = set()
    refusals = 0
    waits = False

    def reserve(self, state, pod, node_name):
        self.held.add(pod.metadata.name)
        return SUCCESS

    def unreserve(self, state, pod, node_name):
        self.held.discard(pod.metadata.name)

    def permit(self, state, pod, node_name):
        if type(self).refusals:
            type(self).refusals -= 1
            return Status.unschedulable("not yet"), 0.0
        return (Status(Code.WAIT), 3.0) if self.waits else (SUCCESS, 0.0)

    def pre_bind_pre_flight(self, state, pod, node_name):
        return SUCCESS

    async def pre_bind(self, state, pod, node_name):
        return SUCCESS

    async def post_bind(self, state, pod, node_name):
        return None


class Story:
    """One scheduler whose pods come one by one, each with a bug in another function."""

    def __init__(self, world: World, scheduler: Scheduler, transport: FaultyTransport) -> None:
        self.world, self.scheduler, self.transport = world, scheduler, transport
        self.made = 0

    async def bound(self, **spec: Any) -> None:
        """A pod comes and is bound in the end."""
        self.made += 1
        await self.world.pod(name := f"p{self.made}", cpu="1m", **spec)
        await settle(within=30.0)
        await self.arrived(name)

    async def arrived(self, name: str) -> None:
        """The pod is bound; it goes, so that its room is free for the next."""
        sys.setprofile(None)
        assert await self.world.node_of(name) == "n1", name
        self.check()
        await self.world.client.delete(PODS, name, "default", grace_period_seconds=0)
        Holder.held.discard(name)
        await settle()

    async def refused(self) -> None:
        """A pod comes that fits nowhere; it stays in the queue, and goes."""
        self.made += 1
        await self.world.pod(name := f"p{self.made}", cpu="64")
        await settle(within=30.0)
        sys.setprofile(None)
        assert self.scheduler.queue.part_of(("default", name)) == "unschedulable"
        await self.world.client.delete(PODS, name, "default", grace_period_seconds=0)
        await settle()

    async def rejected(self) -> None:
        """Permit refuses a pod once."""
        Holder.refusals = 1
        self.made += 1
        await self.world.pod(name := f"p{self.made}", cpu="1m")
        await settle(within=3.0)
        sys.setprofile(None)
        Holder.refusals = 0
        await self.world.node(f"wakes-{name}", cpu="0")
        await settle(within=30.0)
        await self.arrived(name)

    async def not_bound(self) -> None:
        """The first binding of a pod fails."""
        faults = [Unreachable("reset")]

        def fault(request):
            if request.path.endswith("/binding") and faults:
                raise faults.pop()

        self.transport.fault = fault
        await self.bound()

    async def held(self) -> None:
        """Permit holds a pod until it is let go."""
        self.made += 1
        await self.world.pod(name := f"p{self.made}", cpu="1m")
        for _ in range(8):
            await settle(within=2.0)  # less than Permit holds it
            for waiting in self.scheduler.waiting:
                waiting.allow(Holder.name)
        await settle(within=5.0)
        await self.arrived(name)

    def check(self) -> None:
        """Nothing is left of any attempt."""
        scheduler = self.scheduler
        scheduler.queue.validate()
        statistics = scheduler.queue.statistics()
        assert (len(scheduler.queue), statistics.in_flight, statistics.in_flight_events) == (0, 0, 0)
        assert scheduler.cache.statistics().assumed_pods == 0
        assert not scheduler.compare_caches()
        assert len(scheduler.waiting) == 0
        bound = {state.info.pod.metadata.name for state in scheduler.cache.pods()}
        assert Holder.held == bound, "what is reserved is what is bound"


CONFIG = "profiles: [{plugins: {multiPoint: {enabled: [{name: Holder}]}}}]"
STORIES: dict[str, Callable[[Story], Coroutine[Any, Any, None]]] = {
    "bound": Story.bound,
    "refused": Story.refused,
    "rejected": Story.rejected,
    "not bound": Story.not_bound,
    "held": Story.held,
}


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", STORIES)
def test_a_bug_in_any_function_of_a_cycle_costs_one_attempt(name: str) -> None:
    @in_world
    async def run(world: World) -> None:
        await world.node("n1")
        Holder.held, Holder.refusals, Holder.waits = set(), 0, False
        transport = FaultyTransport(InProcessTransport(world.server, ADMIN))
        async with world.running(scheduler := world.scheduler(CONFIG, {"Holder": Holder}, transport=transport)):
            story, injector = Story(world, scheduler, transport), Injector()
            usual = await calls(injector, story.bound)
            Holder.waits = name == "held"
            play = partial(STORIES[name], story)
            found = await calls(injector, play)
            functions = found if name == "bound" else [each for each in found if each not in usual]
            raised = 0
            for function in functions:
                try:
                    await injector.watching(play(), function)
                    raised += injector.raised
                    story.check()
                except AssertionError as error:
                    raise AssertionError(f"after a bug in {function}: {error}") from error
            assert len(functions) > (100 if name == "bound" else 2)
            assert raised > 0.9 * len(functions)

    run()


async def calls(injector: Injector, play: Callable[[], Coroutine[Any, Any, None]]) -> list[str]:
    """The functions that a story calls when it is played again: what only the first pod needs is left out."""
    await injector.watching(play())
    first = dict(injector.called)
    injector.called.clear()
    await injector.watching(play())
    found = [each for each in injector.called if each in first]
    injector.called.clear()
    return found


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_bug_in_any_function_of_a_pod_groups_attempt_costs_one_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "load", partial(load, enable=ALPHA))

    @in_world
    async def run(world: World) -> None:
        await world.node("n1")
        Holder.held, Holder.refusals, Holder.waits = set(), 0, False
        scheduler = world.scheduler(CONFIG, {"Holder": Holder}, gates=GATES)
        await make_group(world, "gang", gang={"minCount": 2})
        async with world.running(scheduler):
            story, injector = (
                Story(world, scheduler, FaultyTransport(InProcessTransport(world.server, ADMIN))),
                Injector(),
            )
            usual = await calls(injector, story.bound)
            functions = [each for each in await calls(injector, partial(gang, story)) if each not in usual]
            for function in functions:
                try:
                    await injector.watching(gang(story), function)
                except AssertionError as error:
                    raise AssertionError(f"after a bug in {function}: {error}") from error
            assert len(functions) > 10

    run()


async def gang(story: Story) -> None:
    """Two pods of a gang come and are bound together in the end."""
    story.made += 2
    names = [f"p{story.made - 1}", f"p{story.made}"]
    for name in names:
        await make_member(story.world, name, cpu="1m")
    await settle(within=30.0)
    sys.setprofile(None)
    assert await nodes_of(story.world, *names) == ["n1", "n1"]
    story.check()
    for name in names:
        await story.world.client.delete(PODS, name, "default", grace_period_seconds=0)
        Holder.held.discard(name)
    await settle()
