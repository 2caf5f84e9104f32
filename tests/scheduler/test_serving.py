"""What a running scheduler answers over HTTP; asked as an ASGI application, without a socket, in virtual time."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from skysail.api.errors import ConfigError, Unreachable
from skysail.api.kinds import PRIORITY_CLASSES
from skysail.api.ports import Request, Response
from skysail.client.inprocess import InProcessTransport
from skysail.scheduler.instruments import Instruments
from skysail.scheduler.serving import ServingOptions, scheduler_application
from skysail.simulator.clock import settle
from tests.scheduler.world import ADMIN, FaultyTransport, World, in_world


async def get(app, path: str, query: str = "", token: str = "") -> tuple[int, str]:
    """One GET request to an ASGI application."""
    headers = [(b"authorization", f"Bearer {token}".encode())] if token else []
    scope = {
        "type": "http", "http_version": "1.1", "method": "GET", "scheme": "http", "path": path, "raw_path": b"",
        "query_string": query.encode(), "headers": headers, "server": ("test", 80), "client": ("test", 1),
    }  # fmt: skip
    sent = []

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        sent.append(message)

    await app(scope, receive, send)
    body = b"".join(message.get("body", b"") for message in sent[1:])
    return sent[0]["status"], body.decode()


class Breakable(FaultyTransport):
    """While it is cut off, nothing can be asked, and no new watch opened."""

    cut_off = False

    async def request(self, request: Request) -> Response:
        if self.cut_off:
            raise Unreachable("cut off")
        return await super().request(request)

    def stream(self, request: Request) -> AsyncIterator[bytes]:
        if self.cut_off:
            raise Unreachable("cut off")
        return super().stream(request)


@in_world
async def test_health_says_what_was_checked(world: World):
    scheduler = world.scheduler()
    app = scheduler_application(scheduler)
    assert await get(app, "/livez") == (200, "ok")
    status, text = await get(app, "/readyz")
    assert (status, "caches are being filled" in text) == (500, True)
    async with world.running(scheduler):
        assert await get(app, "/readyz") == (200, "ok")
        assert (await get(app, "/readyz", "verbose"))[1] == (
            "[+]ping ok\n[+]informer-sync ok\n[+]leading\ncheck passed\n"
        )


@in_world
async def test_an_informer_that_cannot_follow_its_kind_makes_the_scheduler_unready_until_it_can_again(world: World):
    transport = Breakable(InProcessTransport(world.server, ADMIN))
    async with world.running(scheduler := world.scheduler(transport=transport)):
        app = scheduler_application(scheduler)
        assert 'reflector_healthy{resource="nodes"} 1.0' in (await get(app, "/metrics"))[1]
        transport.cut_off = True
        await settle(within=900.0)
        status, text = await get(app, "/readyz")
        assert (status, "[-]informer nodes failed: not following, stale for" in text) == (500, True)
        assert 'reflector_healthy{resource="nodes"} 0.0' in (await get(app, "/metrics"))[1]
        assert await get(app, "/livez") == (200, "ok")
        transport.cut_off = False
        await settle(within=120.0)
        assert await get(app, "/readyz") == (200, "ok")


@in_world
async def test_who_held_the_loop_is_named_by_the_health_check(world: World):
    class Slow:
        name = "Slow"

        def permit(self, state, pod, node_name):
            seconds.append(2.5)

    seconds = [0.0]
    scheduler = world.scheduler()
    scheduler.instruments = Instruments(lambda: sum(seconds), scheduler.metrics)
    scheduler.instruments.watch(plugin := Slow(), "default-scheduler", built_in=False)
    plugin.permit(None, None, None)
    app = scheduler_application(scheduler)
    status, text = await get(app, "/livez", "verbose")
    assert (status, "[!]plugin Slow held the loop for 2.5 s at Permit" in text) == (200, True)
    assert (
        'scheduler_slow_plugin_calls_total{extension_point="Permit",plugin="Slow"} 1.0'
        in (await get(app, "/metrics"))[1]
    )


@in_world
async def test_metrics_carry_upstreams_names_and_the_present_numbers(world: World):
    await world.node("n1")
    async with world.running(scheduler := world.scheduler()):
        await world.pod("web")
        await world.pod("big", cpu="16")
        await world.pod("held", schedulingGates=[{"name": "quota"}])
        await settle()
        _, text = await get(scheduler_application(scheduler), "/metrics")
        lines = set(text.splitlines())
        assert {
            'scheduler_pending_pods{queue="active"} 0.0',
            'scheduler_pending_pods{queue="unschedulable"} 1.0',
            'scheduler_pending_pods{queue="gated"} 1.0',
            'scheduler_queue_incoming_pods_total{event="UnschedulablePodAdd",queue="active"} 2.0',
            'scheduler_schedule_attempts_total{profile="default-scheduler",result="scheduled"} 1.0',
            'scheduler_schedule_attempts_total{profile="default-scheduler",result="unschedulable"} 1.0',
            'scheduler_unschedulable_pods{plugin="NodeResourcesFit",profile="default-scheduler"} 1.0',
            'scheduler_unschedulable_pods{plugin="SchedulingGates",profile="default-scheduler"} 1.0',
            'scheduler_cache_size{type="nodes"} 1.0',
            'scheduler_cache_size{type="pods"} 1.0',
            'scheduler_goroutines{operation="binding"} 0.0',
            'scheduler_pod_scheduling_sli_duration_seconds_count{attempts="1"} 1.0',
            "scheduler_scheduling_algorithm_duration_seconds_count 2.0",
            "scheduler_pod_scheduling_attempts_count 1.0",
            "scheduler_preemption_attempts_total 1.0",
        } <= lines
        for point in ("PreFilter", "Filter", "Reserve", "Bind"):
            count = f'scheduler_framework_extension_point_duration_seconds_count{{extension_point="{point}"'
            assert count in text, point


@in_world
async def test_configz_shows_what_runs_and_what_is_left_out(world: World):
    scheduler = world.scheduler("percentageOfNodesToScore: 30")
    _, text = await get(scheduler_application(scheduler), "/configz")
    shown = json.loads(text)
    assert shown["componentconfig"]["percentageOfNodesToScore"] == 30
    left_out = list(scheduler.configuration.profiles[0].left_out)
    assert shown["pluginsNotBuilt"] == {"default-scheduler": left_out}


@in_world
async def test_an_attempt_is_told_with_every_nodes_refusal(world: World):
    await world.node("n1")
    async with world.running(scheduler := world.scheduler()):
        await world.pod("big", cpu="16")
        await settle()
        app = scheduler_application(scheduler)
        status, text = await get(app, "/debug/attempts", "pod=default/big")
        shown = json.loads(text)
        assert status == 200
        assert shown["nodes"] == {
            "n1": {
                "plugin": "NodeResourcesFit",
                "code": "UnschedulableAndUnresolvable",
                "reasons": ["Insufficient cpu"],
            }
        }
        assert (await get(app, "/debug/attempts", "pod=default/unknown"))[0] == 404
        assert len(json.loads((await get(app, "/debug/attempts"))[1])["attempts"]) == 1


@in_world
async def test_the_queue_and_the_caches_can_be_looked_into(world: World):
    await world.node("n1")
    async with world.running(scheduler := world.scheduler()):
        await world.pod("big", cpu="16")
        await world.pod("held", schedulingGates=[{"name": "quota"}])
        await settle()
        app = scheduler_application(scheduler)
        pods = {entry["pod"]: entry for entry in json.loads((await get(app, "/debug/queue"))[1])["pods"]}
        assert pods["default/big"]["unschedulable_plugins"] == ["NodeResourcesFit"]
        assert pods["default/held"]["gate"] == "SchedulingGates: waiting for scheduling gates: [quota]"
        assert json.loads((await get(app, "/debug/cache"))[1])["consistent"]


@in_world
async def test_with_a_token_only_the_health_checks_answer_everybody(world: World):
    app = scheduler_application(world.scheduler(), token="secret")
    assert (await get(app, "/livez"))[0] == 200
    assert (await get(app, "/metrics"))[0] == 401
    assert (await get(app, "/metrics", token="wrong"))[0] == 401
    assert (await get(app, "/metrics", token="secret"))[0] == 200


def test_opened_to_the_network_it_needs_a_certificate_and_a_token():
    with pytest.raises(ConfigError, match="not loopback"):
        ServingOptions(address="0.0.0.0")
    with pytest.raises(ConfigError, match="go together"):
        ServingOptions(certificate=Path("tls.crt"))
    ServingOptions(address="0.0.0.0", certificate=Path("a"), key=Path("b"), token="secret")


@in_world
async def test_a_scheduled_pods_attempt_tells_every_score_of_the_chosen_node_and_of_the_runner_up(world: World):
    await world.node("large", pool="ours")
    await world.node("small", cpu="2", pool="ours")
    await world.node("elsewhere", pool="other")
    async with world.running(scheduler := world.scheduler()):
        await world.pod("web", cpu="1", nodeSelector={"pool": "ours"})
        await settle()
        _, text = await get(scheduler_application(scheduler), "/debug/attempts", "pod=default/web")
    shown = json.loads(text)
    assert shown["prefilter"]["code"] == "Success"
    assert "NodePorts" in shown["prefilter"]["skipped_filter_plugins"]
    assert "InterPodAffinity" in shown["skipped_score_plugins"]
    chosen, runner_up = shown["candidates"]
    assert (chosen["node"], chosen["total"]) == ("large", shown["total"])
    assert runner_up["node"] == "small"
    for card in (chosen, runner_up):
        assert sum(score["weighted"] for score in card["scores"].values()) == card["total"]
    assert chosen["scores"]["TaintToleration"] == {"weight": 3, "raw": 0, "normalized": 100, "weighted": 300}
    assert chosen["scores"]["NodeResourcesFit"]["raw"] == 86


@in_world
async def test_an_attempts_narrowing_and_the_search_for_victims_are_told(world: World):
    await world.node("n1")
    await world.node("n2", cpu="1")
    metadata = {"name": "important"}
    await world.client.create(
        PRIORITY_CLASSES,
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": metadata, "value": 1000},
    )
    async with world.running(scheduler := world.scheduler()):
        await world.pod("low", cpu="3")
        await settle()
        await world.pod("pinned", cpu="3", affinity=node_named("n1"))
        await world.pod("high", cpu="3", priorityClassName="important")
        await settle()
        app = scheduler_application(scheduler)
        pinned = json.loads((await get(app, "/debug/attempts", "pod=default/pinned"))[1])
        high = json.loads((await get(app, "/debug/attempts", "pod=default/high"))[1])
    assert (pinned["prefilter"]["node_names"], pinned["prefilter"]["restricted_by"]) == (["n1"], ["NodeAffinity"])
    assert pinned["preemption"]["eligible"]
    assert list(pinned["preemption"]["candidate_failures"]) == ["n1"]
    assert high["preemption"]["candidates"] == {"n1": {"victims": ["default/low"], "pdb_violations": 0}}
    assert high["preemption"]["best_nodes"] == ["n1"]


def node_named(name: str) -> dict:
    """Node affinity to one node, which NodeAffinity's PreFilter narrows the search to."""
    fields = [{"key": "metadata.name", "operator": "In", "values": [name]}]
    terms = {"nodeSelectorTerms": [{"matchFields": fields}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
