"""A plugin author who gets everything wrong: each mistake costs that pod's attempt, and is named."""

import asyncio
import math

import pytest

from skysail.scheduler.framework.plugin import PostFilterResult, PreFilterResult
from skysail.scheduler.framework.status import SUCCESS, Code, Status
from skysail.simulator.clock import settle
from tests.scheduler.test_plugins_at_work import Recording, enabled
from tests.scheduler.world import World, in_world


class Once(Recording):
    """Misbehaves for the pods `web-...` until told to behave, and counts how often."""

    name = "Once"
    wrong = True
    done = 0

    @classmethod
    def is_bad(cls, pod) -> bool:
        bad = cls.wrong and pod.metadata.name.startswith("web")
        cls.done += bad
        return bad


def plugin(point: str, right, **more) -> type:
    """A class whose method at a point answers `answer` for the pods `web-...`, and rightly for all others."""

    def method(self, *args):
        pod = next(each for each in args if hasattr(each, "metadata") and hasattr(each, "spec"))
        if not self.is_bad(pod):
            return right
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer

    async def later(self, *args):
        return method(self, *args)

    coroutine = point in ("pre_bind", "bind", "post_bind")
    return type("Once", (Once,), {point: later if coroutine else method, **more})


def nowhere(self, state, pod, node):
    return Status.unschedulable("nowhere") if self.wrong and pod.metadata.name.startswith("web") else SUCCESS


def nobody(self, state, pod, node_name):
    return nowhere(self, state, pod, None), 0.0


async def quietly(self, state, pod, node_name):
    return SUCCESS


REFUSED = (Status.unschedulable("no"), PostFilterResult())
POINTS = {
    "pre_enqueue": (SUCCESS, {}),
    "pre_filter": ((SUCCESS, PreFilterResult()), {}),
    "filter": (SUCCESS, {}),
    "post_filter": (REFUSED, {"filter": nowhere}),
    "pre_score": (SUCCESS, {}),
    "score": ((1, SUCCESS), {}),
    "reserve": (SUCCESS, {"unreserve": lambda self, *args: None}),
    "unreserve": (None, {"reserve": lambda self, *args: SUCCESS, "permit": nobody}),
    "permit": ((SUCCESS, 0.0), {}),
    "pre_bind": (SUCCESS, {"pre_bind_pre_flight": lambda self, *args: SUCCESS}),
    "pre_bind_pre_flight": (SUCCESS, {"pre_bind": quietly}),
    "bind": (Status(Code.SKIP), {}),
    "post_bind": (None, {}),
}
PAIRS = ("pre_filter", "post_filter", "score", "permit")
"""Points whose answer is a pair: these get all the nonsense, the others what is no pair."""
NONSENSE = [
    None, "yes", 7, (), object(), (SUCCESS,), (SUCCESS, None), (None, SUCCESS), (SUCCESS, PreFilterResult(7)),
    (SUCCESS, PreFilterResult(frozenset({"nowhere"}))), (SUCCESS, math.nan), (SUCCESS, "soon"),
    (Status(Code.WAIT), math.nan), (Status(Code.WAIT), -5.0), (10**30, SUCCESS),
    (math.nan, SUCCESS), (-1, SUCCESS), ("a lot", SUCCESS), (True, SUCCESS), (5, None), (2.5, SUCCESS), Status(99),
    Status(Code.ERROR, ("broken",)), ValueError("oops"), asyncio.CancelledError(), TimeoutError(), StopIteration(),
    RecursionError(), ExceptionGroup("many", [ValueError("one")]), GeneratorExit(),
]  # fmt: skip


@pytest.mark.parametrize("point", POINTS)
def test_nonsense_at_any_point_costs_one_attempt_and_no_other_pod(point: str) -> None:
    right, more = POINTS[point]
    made = plugin(point, right, **more)

    @in_world
    async def run(world: World) -> None:
        await world.node("n1", cpu="64")
        await world.node("n2", cpu="64")
        config = "podMaxBackoffSeconds: 1\n" + enabled("Once")
        if point == "bind":
            first = "{bind: {enabled: [{name: Once}, {name: DefaultBinder}], disabled: [{name: '*'}]}}"
            config = f"podMaxBackoffSeconds: 1\nprofiles: [{{plugins: {first}}}]"
        async with world.running(scheduler := world.scheduler(config, {"Once": made})):
            wrong = (
                NONSENSE if point in PAIRS else [each for each in NONSENSE if not isinstance(each, tuple) or not each]
            )
            for number, answer in enumerate(wrong):
                made.answer, made.wrong, made.done = answer, True, 0
                await world.pod(f"web-{number}", cpu="1m")
                await settle(within=1.5)
                assert made.done, "it was not even asked"
                await world.pod(f"other-{number}", cpu="1m")
                await settle(within=3.0)
                assert await world.node_of(f"other-{number}"), answer
                made.wrong = False
                await world.node(f"wakes-{number}", cpu="0")
                await settle(within=30.0)
                assert await world.node_of(f"web-{number}"), answer
                statistics = scheduler.queue.statistics()
                assert (len(scheduler.queue), statistics.in_flight, statistics.in_flight_events) == (0, 0, 0), answer
                assert scheduler.cache.statistics().assumed_pods == 0, answer
                assert len(scheduler.waiting) == 0, answer

    run()
