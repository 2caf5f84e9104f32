"""A scheduler at work on the embedded API server, in virtual time."""

import asyncio
import random
from datetime import datetime

import pytest

from skysail.api.errors import InternalError, ServerTimeout, ServiceUnavailable, Unreachable
from skysail.api.kinds import LEASES, NODES, PODS
from skysail.api.ports import Response
from skysail.client.inprocess import InProcessTransport
from skysail.controller.leader_elector import LeaderElector
from skysail.controller.lease import LeaderElection
from skysail.scheduler.app import SchedulerOptions
from skysail.simulator.clock import settle
from tests.scheduler.world import ADMIN, FaultyTransport, World, fit_part, in_world

TOO_LARGE = "0/1 nodes are available: 1 Insufficient cpu."


@in_world
async def test_a_pod_is_bound_and_told_so(world: World):
    await world.node("n1")
    async with world.running(world.scheduler()):
        await world.pod("web")
        await settle()
        assert await world.node_of("web") == "n1"
        assert await world.events("web") == [
            ("Normal", "Scheduled", "Successfully assigned default/web to n1"),
        ]


@in_world
async def test_a_pod_that_fits_nowhere_gets_condition_and_event_and_runs_once_it_fits(world: World):
    await world.node("n1")
    async with world.running(world.scheduler()):
        await world.pod("big", cpu="16")
        await settle()
        assert await world.condition("big") == ("False", "Unschedulable", TOO_LARGE)
        assert await world.events("big") == [("Warning", "FailedScheduling", TOO_LARGE)]
        await world.node("n2", cpu="32")
        await settle(within=2.0)
        assert await world.node_of("big") == "n2"


@in_world
async def test_without_nodes_the_pod_is_unschedulable_and_tried_again_after_its_backoff(world: World):
    async with world.running(scheduler := world.scheduler()):
        await world.pod("web")
        await settle()
        assert await world.condition("web") == (
            "False", "Unschedulable", "no nodes available to schedule pods",
        )  # fmt: skip
        assert scheduler.queue.part_of(("default", "web")) == "backoff"
        await world.node("n1")
        await settle(within=3.0)
        assert await world.node_of("web") == "n1"


@in_world
async def test_an_unschedulable_pod_costs_nothing_until_an_event_that_matters(world: World):
    await world.node("n1")
    transport = FaultyTransport(InProcessTransport(world.server, ADMIN))
    async with world.running(scheduler := world.scheduler(transport=transport)):
        await world.pod("big", cpu="16")
        await settle()
        before, cycles = len(transport.requests), scheduler.queue.statistics().scheduling_cycle
        await world.client.patch(NODES, "n1", "", {"metadata": {"annotations": {"seen": "now"}}})
        await settle(within=120.0)
        assert len(transport.requests) == before
        assert scheduler.queue.statistics().scheduling_cycle == cycles


@in_world
async def test_with_nothing_pending_nothing_is_written_but_the_lease(world: World):
    await world.node("n1")
    transport = FaultyTransport(InProcessTransport(world.server, ADMIN))
    election = LeaderElection("sched", lease_seconds=15.0, renew_deadline_seconds=10.0, retry_seconds=2.0)
    scheduler = world.scheduler(
        transport=transport,
        elector=lambda client: LeaderElector(client, election, "one", clock=world.clock, rng=random.Random(4)),
    )
    async with world.running(scheduler):
        await world.pod("web")
        await settle(within=10.0)
        before, writes = scheduler.queue.statistics(), len(transport.writes)
        await settle(within=600.0)
        assert {path.rpartition("/")[2] for _, path in transport.writes[writes:]} == {"sched"}
        assert len(transport.writes) - writes <= 600 / election.retry_seconds
        assert scheduler.queue.statistics() == before


@in_world
async def test_a_pod_asleep_for_five_minutes_is_tried_again_anyway(world: World):
    await world.node("n1")
    async with world.running(scheduler := world.scheduler()):
        await world.pod("big", cpu="16")
        await settle(within=400.0)
        assert scheduler.attempts.last("default", "big").tries == 2


@in_world
async def test_a_gated_pod_is_not_tried_until_its_gates_are_gone(world: World):
    await world.node("n1")
    async with world.running(scheduler := world.scheduler()):
        await world.pod("held", schedulingGates=[{"name": "quota"}])
        await settle()
        assert scheduler.queue.part_of(("default", "held")) == "gated"
        assert len(scheduler.attempts) == 0
        await world.client.patch(PODS, "held", "default", {"spec": {"schedulingGates": None}})
        await settle()
        assert await world.node_of("held") == "n1"


@in_world
async def test_pods_of_other_schedulers_are_left_alone_but_their_room_is_counted(world: World):
    await world.node("n1", cpu="1")
    async with world.running(scheduler := world.scheduler()):
        await world.pod("theirs", cpu="800m", schedulerName="other")
        await settle()
        assert await world.node_of("theirs") == ""
        assert len(scheduler.queue) == 0
        pod = await world.client.get(PODS, "theirs", "default")
        await world.client.bind("default", "theirs", pod.uid, "n1")
        await settle()
        await world.pod("ours", cpu="500m")
        await settle()
        assert await world.condition("ours") == ("False", "Unschedulable", TOO_LARGE)


@in_world
async def test_an_ended_pod_frees_its_room_and_wakes_who_waits(world: World):
    await world.node("n1", cpu="1")
    async with world.running(world.scheduler()):
        await world.pod("first", cpu="800m")
        await settle()
        await world.pod("second", cpu="800m")
        await settle()
        assert await world.node_of("second") == ""
        await world.client.patch(PODS, "first", "default", {"status": {"phase": "Succeeded"}}, subresource="status")
        await settle(within=2.0)
        assert await world.node_of("second") == "n1"


@in_world
async def test_every_profile_schedules_its_own_pods(world: World):
    await world.node("n1")
    bare = "{schedulerName: bare, plugins: {score: {disabled: [{name: '*'}]}}}"
    config = f"profiles: [{{schedulerName: default-scheduler}}, {bare}]"
    async with world.running(scheduler := world.scheduler(config)):
        await world.pod("a")
        await world.pod("b", schedulerName="bare")
        await settle()
        assert (await world.node_of("a"), await world.node_of("b")) == ("n1", "n1")
        assert scheduler.attempts.last("default", "b").profile == "bare"


@in_world
async def test_a_failed_bind_is_undone_and_tried_again(world: World):
    await world.node("n1", cpu="1")
    transport = FaultyTransport(InProcessTransport(world.server, ADMIN))
    refusals = []

    def fail_first(request):
        if request.path.endswith("/binding") and not refusals:
            refusals.append(request)
            raise ServiceUnavailable("not now")

    transport.fault = fail_first
    async with world.running(scheduler := world.scheduler(transport=transport)):
        await world.pod("web", cpu="800m")
        await settle()
        assert scheduler.cache.statistics().pods == 0
        status, reason, message = await world.condition("web")
        assert (status, reason) == ("False", "SchedulerError")
        assert message == 'running Bind plugin "DefaultBinder": not now'
        await settle(within=3.0)
        assert await world.node_of("web") == "n1"
        assert scheduler.attempts.last("default", "web").tries == 2


@in_world
async def test_a_bind_that_went_through_though_its_answer_was_lost_is_not_done_again(world: World):
    await world.node("n1")
    inner = InProcessTransport(world.server, ADMIN)
    transport = FaultyTransport(inner)

    async def lose_answer(request):
        await inner.request(request)
        raise Unreachable("answer lost")

    transport.fault = lambda request: lose_answer(request) if request.path.endswith("/binding") else None
    async with world.running(scheduler := world.scheduler(transport=transport)):
        await world.pod("web")
        await settle(within=20.0)
        assert await world.node_of("web") == "n1"
        assert [path for _, path in transport.requests if path.endswith("/binding")] == [
            "/api/v1/namespaces/default/pods/web/binding"
        ]
        assert scheduler.cache.statistics().pods == 1
        scheduler.queue.validate()
        assert len(scheduler.queue) == 0


@pytest.mark.parametrize("reached", [True, False])
@pytest.mark.parametrize("error", [Unreachable("no answer"), InternalError("etcd timed out"), ServerTimeout("late")])
def test_while_nobody_knows_whether_a_pod_is_bound_its_room_is_not_given_away(reached, error):
    @in_world
    async def run(world: World):
        """The watch lags behind: what was bound is not seen before somebody else could be put into its room."""
        await world.node("n1", cpu="1")
        inner = InProcessTransport(world.server, ADMIN)
        transport = LaggingTransport(inner)
        lost = []

        async def lose_answer(request):
            lost.append(request)
            transport.lag = 60.0
            if reached:
                await inner.request(request)
            raise error

        transport.fault = lambda request: (
            lose_answer(request) if "first/binding" in request.path and len(lost) < 3 else None
        )
        await world.pod("first", cpu="800m")
        await settle(within=1.0)
        await world.pod("second", cpu="800m")
        async with world.running(scheduler := world.scheduler(transport=transport)):
            await settle(within=400.0)
            bound = [await world.node_of("first"), await world.node_of("second")]
            assert sorted(bound) == ["", "n1"], "one of them, never both"
            assert reached <= (bound[0] == "n1")
            scheduler.queue.validate()

    run()


class LaggingTransport(FaultyTransport):
    """Watches that show everything late."""

    lag = 0.0

    async def stream(self, request):
        async for line in super().stream(request):
            await asyncio.sleep(self.lag)
            yield line


@in_world
async def test_a_pod_deleted_during_its_bind_is_dropped_and_its_room_is_free(world: World):
    await world.node("n1", cpu="1")
    transport = FaultyTransport(InProcessTransport(world.server, ADMIN))
    may_bind = asyncio.Event()

    async def wait(request):
        await may_bind.wait()

    transport.fault = lambda request: wait(request) if "/pods/first/binding" in request.path else None
    async with world.running(scheduler := world.scheduler(transport=transport)):
        await world.pod("first", cpu="800m")
        await settle()
        await world.pod("second", cpu="800m")
        await settle()
        await world.client.delete(PODS, "first", "default", grace_period_seconds=0)
        await settle(within=2.0)
        assert await world.node_of("second") == "n1"
        may_bind.set()
        await settle(within=2.0)
        assert len(scheduler.queue) == 0
        assert scheduler.cache.statistics().pods == 1


@in_world
async def test_a_terminating_pod_is_not_scheduled(world: World):
    async with world.running(world.scheduler()):
        await world.pod("web")
        await settle()
        await world.client.patch(PODS, "web", "default", {"metadata": {"finalizers": ["test/hold"]}})
        await world.client.delete(PODS, "web", "default")
        await world.node("n1")
        await settle(within=5.0)
        assert await world.node_of("web") == ""
        assert ("Warning", "FailedScheduling", "skip schedule deleting pod: default/web") in await world.events("web")


@in_world
async def test_a_dry_run_decides_and_writes_nothing(world: World):
    await world.node("n1")
    transport = FaultyTransport(InProcessTransport(world.server, ADMIN))
    dry = SchedulerOptions(dry_run=True)
    async with world.running(scheduler := world.scheduler(options=dry, transport=transport)):
        await world.pod("web")
        await world.pod("big", cpu="16")
        await settle()
        assert scheduler.attempts.last("default", "web").node == "n1"
        assert fit_part(scheduler.attempts.last("default", "big").message) == TOO_LARGE
        assert transport.writes == []


@in_world
async def test_a_node_that_a_binding_finds_missing_is_looked_up_once_and_leaves_the_cache(world: World):
    await world.node("n1")
    transport = FaultyTransport(InProcessTransport(world.server, ADMIN))
    missing = (
        b'{"kind":"Status","apiVersion":"v1","status":"Failure","message":"nodes \\"n1\\" not found",'
        b'"reason":"NotFound","details":{"name":"n1","kind":"nodes"},"code":404}'
    )
    transport.fault = lambda request: (
        Response(404, body=missing) if request.path.endswith(("/binding", "/nodes/n1")) else None
    )
    async with world.running(scheduler := world.scheduler(transport=transport)):
        await world.pod("web")
        await settle()
        assert transport.requests.count(("GET", "/api/v1/nodes/n1")) == 1
        assert scheduler.cache.statistics().nodes == 0
        assert scheduler.attempts.last("default", "web").result == "error"


@in_world
async def test_an_assumption_that_the_watch_never_confirms_expires_only_if_asked_to(world: World):
    await world.node("n1")
    transport = FaultyTransport(InProcessTransport(world.server, ADMIN))
    transport.fault = lambda request: Response(201, body=b"{}") if request.path.endswith("/binding") else None
    options = SchedulerOptions(assume_ttl_seconds=30.0)
    async with world.running(scheduler := world.scheduler(transport=transport, options=options)):
        await world.pod("web")
        await settle(within=20.0)
        assert scheduler.cache.statistics().assumed_pods == 1
        await settle(within=15.0)
        assert scheduler.cache.statistics().assumed_pods == 0


@in_world
async def test_stopping_finishes_the_binds_under_way(world: World):
    await world.node("n1")
    transport = FaultyTransport(InProcessTransport(world.server, ADMIN))
    transport.fault = lambda request: asyncio.sleep(1.0) if request.path.endswith("/binding") else None
    scheduler = world.scheduler(transport=transport)
    async with world.running(scheduler):
        await world.pod("web")
        await settle()
        assert await world.node_of("web") == ""
    assert await world.node_of("web") == "n1"


@in_world
async def test_two_replicas_bind_every_pod_once_and_the_second_takes_over(world: World):
    await world.node("n1", cpu="64")
    election = LeaderElection("sched", lease_seconds=15.0, renew_deadline_seconds=10.0, retry_seconds=2.0)

    def elector(identity):
        return lambda client: LeaderElector(client, election, identity, clock=world.clock, rng=random.Random(4))

    one, two = world.scheduler(elector=elector("one")), world.scheduler(elector=elector("two"))
    first = world.group.create_task(one.run())
    await settle()
    second = world.group.create_task(two.run())
    await settle()
    for number in range(10):
        await world.pod(f"a{number}")
    await settle()
    assert one.metrics.counter("schedule_attempts_total", "scheduled", "default-scheduler") == 10
    assert (one.is_leading, two.is_leading) == (True, False)
    one.stop()
    await first
    await settle(within=10.0)
    for number in range(10):
        await world.pod(f"b{number}")
    await settle(within=5.0)
    assert two.metrics.counter("schedule_attempts_total", "scheduled", "default-scheduler") == 10
    assert two.cache.statistics().pods == 20
    two.stop()
    await second


async def stop_before_the_server_ever_answered(world: World, delay: bool, elects: bool) -> None:
    transport = FaultyTransport(InProcessTransport(world.server, ADMIN))

    def say_nothing_but_leases(request):
        if not request.path.startswith("/apis/coordination.k8s.io/"):
            raise Unreachable("no answer")

    def elector(client):
        return LeaderElector(client, LeaderElection("sched"), "one", clock=world.clock, rng=random.Random(4))

    transport.fault = say_nothing_but_leases
    config = f"delayCacheUntilActive: {str(delay).lower()}"
    scheduler = world.scheduler(config, transport=transport, elector=elector if elects else None)
    running = world.group.create_task(scheduler.run())
    await settle(within=5.0)
    scheduler.stop()
    await settle()
    assert running.done()
    assert not scheduler.is_synced


@pytest.mark.parametrize("elects", [False, True])
@pytest.mark.parametrize("delay", [False, True])
def test_one_that_is_stopped_before_the_server_ever_answered_ends_at_once(delay, elects):
    in_world(lambda world: stop_before_the_server_ever_answered(world, delay, elects))()


@in_world
async def test_a_restarted_scheduler_takes_up_what_the_last_one_left(world: World):
    await world.node("n1", cpu="1")
    async with world.running(world.scheduler()):
        await world.pod("first", cpu="800m")
        await world.pod("second", cpu="800m")
        await settle()
    async with world.running(scheduler := world.scheduler()):
        await settle()
        assert scheduler.cache.statistics().pods == 1
        assert scheduler.queue.part_of(("default", "second")) == "unschedulable"
        await world.node("n2")
        await settle(within=2.0)
        assert await world.node_of("second") == "n2"


@in_world
async def test_a_limited_search_begins_where_the_last_one_ended(world: World):
    for number in range(150):
        await world.node(f"n{number:03}")
    async with world.running(scheduler := world.scheduler("percentageOfNodesToScore: 10")):
        for number in range(3):
            await world.pod(f"p{number}", affinity=only_every_second_node())
        await settle()
        searched = [(attempt.evaluated, attempt.feasible) for attempt in reversed(list(scheduler.attempts))]
        assert searched == [(150, 75)] * 3  # fewer fit than are wanted: every node is looked at
        for number in range(3):
            await world.pod(f"q{number}")
        await settle()
        assert [(attempt.evaluated, attempt.feasible) for attempt in list(scheduler.attempts)[:3]] == [(100, 100)] * 3


def only_every_second_node() -> dict:
    """Node affinity to the nodes with an even number."""
    names = [f"n{number:03}" for number in range(0, 150, 2)]
    expression = {"key": "kubernetes.io/hostname", "operator": "In", "values": names}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


@in_world
async def test_an_explicit_zero_looks_at_some_nodes_zone_by_zone_from_where_the_last_search_ended(world: World):
    zones = {"a": 160, "b": 20, "c": 20}
    for zone, count in zones.items():
        for number in range(count):
            await world.node(f"{zone}{number:03}", **{"topology.kubernetes.io/zone": zone})
    expected = [f"{zone}{number:03}" for number in range(20) for zone in zones]
    expected += [f"a{number:03}" for number in range(20, 160)]
    async with world.running(scheduler := world.scheduler("percentageOfNodesToScore: 0")):
        seen = []
        for number in range(2):
            await world.pod(f"p{number}", cpu="3900m")
            await settle()
            seen.append(await world.node_of(f"p{number}"))
        attempts = list(scheduler.attempts)
        assert [attempt.feasible for attempt in attempts] == [100, 100]
        assert seen[0] in expected[:100]
        assert seen[1] in expected[100:]


@in_world
async def test_a_cordoned_node_gets_nothing_and_its_uncordoning_wakes_who_waits(world: World):
    await world.node("n1")
    async with world.running(world.scheduler()):
        await world.client.patch(NODES, "n1", "", {"spec": {"unschedulable": True}})
        await settle()
        await world.pod("web")
        await settle()
        assert await world.condition("web") == (
            "False", "Unschedulable", "0/1 nodes are available: 1 node(s) were unschedulable.",
        )  # fmt: skip
        await world.client.patch(NODES, "n1", "", {"spec": {"unschedulable": None}})
        await settle(within=2.0)
        assert await world.node_of("web") == "n1"


@in_world
async def test_the_condition_of_a_pod_tried_in_vain_again_is_written_only_when_it_changes(world: World):
    await world.node("n1")
    transport = FaultyTransport(InProcessTransport(world.server, ADMIN))
    async with world.running(scheduler := world.scheduler(transport=transport)):
        await world.pod("small")
        await world.pod("big", cpu="16")
        await settle()
        await world.client.delete(PODS, "small", "default", grace_period_seconds=0)
        await settle(within=2.0)
        assert scheduler.attempts.last("default", "big").tries == 2
        assert len([path for _, path in transport.writes if path.endswith("/pods/big/status")]) == 1
        await world.client.patch(NODES, "n1", "", {"spec": {"unschedulable": True}})
        await world.node("n2", cpu="32")
        await settle(within=5.0)
        assert len([path for _, path in transport.writes if path.endswith("/pods/big/status")]) == 1
        assert await world.node_of("big") == "n2"


@in_world
async def test_when_the_leader_dies_the_other_takes_over_as_soon_as_the_lease_has_run_out_and_not_before(world: World):
    await world.node("n1", cpu="64")
    election = LeaderElection("sched", "default", lease_seconds=15.0, renew_deadline_seconds=10.0, retry_seconds=2.0)

    def elector(identity):
        return lambda client: LeaderElector(client, election, identity, clock=world.clock, rng=random.Random(4))

    transport = FaultyTransport(InProcessTransport(world.server, ADMIN))
    one, two = world.scheduler(elector=elector("one"), transport=transport), world.scheduler(elector=elector("two"))
    dying = world.group.create_task(one.run())
    await settle()
    second = world.group.create_task(two.run())
    await settle(within=60.0)

    def dead(request):
        raise Unreachable("the process is gone")

    transport.fault = dead  # not even the lease is given back
    dying.cancel()
    await asyncio.wait((dying,))
    last = (await world.client.get(LEASES, "sched", "default")).spec
    await world.pod("web")
    await settle(within=14.0)
    assert (await world.client.get(LEASES, "sched", "default")).spec == last
    assert await world.node_of("web") == ""
    await settle(within=12.0)
    taken = (await world.client.get(LEASES, "sched", "default")).spec
    waited = (datetime.fromisoformat(taken.acquire_time) - datetime.fromisoformat(last.renew_time)).total_seconds()
    assert last.lease_duration_seconds == 15
    longest_pause = 2.0 * (1 + 1.2)  # between two looks at the lease: seen so late, taken so late, at the most
    assert 15.0 <= waited <= 15.0 + 2 * longest_pause
    assert taken.lease_transitions == 1
    assert await world.node_of("web") == "n1"
    two.stop()
    await second
