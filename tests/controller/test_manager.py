"""A process with controllers: start, lead, health, metrics, a clean end."""

import asyncio
import random

import aiohttp
import pytest
from prometheus_client import CollectorRegistry

from skysail.api.cluster import ConfigMap, Event
from skysail.api.coordination import Lease
from skysail.api.errors import ConfigError, Forbidden
from skysail.api.kinds import CONFIGMAPS
from skysail.controller import Controller, For, LeaderElection, LeadershipLost, Manager, ManagerSettings
from skysail.controller.serving import ServingOptions, manager_application, serving_manager
from skysail.simulator.clock import WallClock
from skysail.testing import make_config_map

ELECTION = LeaderElection("noting", namespace="default")


class Noting(Controller):
    watches = (For(ConfigMap, namespace="default"),)
    seconds = 0.0

    def __init__(self):
        self.runs, self.finished = [], []

    async def reconcile(self, key):
        self.runs.append(key.name)
        await asyncio.sleep(self.seconds)
        self.finished.append(key.name)


class Run:
    """A manager of one controller, as a component of the cluster."""

    def __init__(self, cluster, name="noting", *, seconds=0.0, **options):
        self.cluster, self.name, self.options = cluster, name, options
        self.controller = Noting()
        self.controller.seconds = seconds
        self.error = None

    async def start(self):
        self.component = await self.cluster.run(self.name, self._main)
        await self.cluster.advance(0)
        return self

    async def _main(self, client):
        self.registry = CollectorRegistry()
        settings = ManagerSettings(identity=self.name)
        self.manager = Manager(
            client, clock=self.cluster.clock, rng=self.cluster.rng, settings=settings, registry=self.registry,
            **self.options,
        )  # fmt: skip
        self.manager.add(self.controller)
        try:
            await self.manager.run()
        except LeadershipLost as lost:
            self.error = lost


async def test_work_begins_once_the_caches_are_filled(cluster):
    await cluster.create(make_config_map("a"), make_config_map("b"))
    run = await Run(cluster).start()
    await run.manager.wait_ready()
    await cluster.advance(1)
    assert {"a", "b"} <= set(run.controller.runs)
    assert run.manager.is_idle()
    assert run.manager.statistics()["noting"].waiting == 0


async def test_stop_takes_no_new_keys_waits_for_work_in_progress_and_gives_the_lease_back(cluster):
    run = await Run(cluster, seconds=5, leader_election=ELECTION).start()
    await cluster.create(make_config_map("a"))
    await cluster.advance(30)
    run.controller.runs.clear()
    run.controller.finished.clear()
    await cluster.client.patch(CONFIGMAPS, "a", "default", {"data": {"x": "y"}})
    await cluster.advance(1)
    run.manager.stop()
    await cluster.create(make_config_map("b"))
    await run.component.wait_ended()
    assert run.controller.runs == run.controller.finished == ["a"]
    assert (await cluster.get(Lease, "noting")).spec.holder_identity == ""


async def test_stopping_before_the_caches_are_filled_ends_it_at_once(cluster):
    cluster.stop_apiserver()
    run = await Run(cluster).start()
    await cluster.advance(30)
    before = cluster.clock.monotonic()
    run.manager.stop()
    await run.component.wait_ended()
    assert cluster.clock.monotonic() == before
    assert run.controller.runs == []


async def test_work_that_does_not_end_in_time_is_cut_off(cluster):
    run = await Run(cluster, seconds=1000).start()
    await cluster.create(make_config_map("a"))
    await cluster.advance(1)
    before = cluster.clock.monotonic()
    run.manager.stop()
    await run.component.wait_ended()
    assert cluster.clock.monotonic() - before == pytest.approx(10, abs=0.1)
    assert run.controller.finished == []


async def test_a_candidate_that_never_leads_fills_its_caches_does_nothing_and_stops(cluster):
    first = await Run(cluster, "first", leader_election=ELECTION).start()
    await cluster.advance(5)
    second = await Run(cluster, "second", leader_election=ELECTION).start()
    await cluster.create(make_config_map("a"))
    await cluster.advance(60)
    assert "a" in first.controller.runs
    assert second.controller.runs == []
    assert not second.manager.is_leading
    (cache,) = second.manager.informers.informers().values()
    assert [obj.name for obj in cache.lister.list()] == ["a"]
    assert all(not trouble for trouble in second.manager.readiness().values())
    second.manager.stop()
    await second.component.wait_ended()


async def test_the_second_candidate_works_on_when_the_first_is_killed(cluster):
    first = await Run(cluster, "first", leader_election=ELECTION).start()
    await cluster.advance(5)
    second = await Run(cluster, "second", leader_election=ELECTION).start()
    await cluster.create(make_config_map("a"))
    await cluster.advance(30)
    cluster.kill("first")
    await cluster.create(make_config_map("b"))
    await cluster.advance(60)
    assert "b" not in first.controller.runs
    assert {"a", "b"} <= set(second.controller.runs)


async def test_people_are_told_who_leads(cluster):
    run = await Run(cluster, leader_election=ELECTION).start()
    await cluster.advance(5)
    run.manager.stop()
    await run.component.wait_ended()
    events = [event for event in await cluster.list(Event) if event.reason == "LeaderElection"]
    assert [event.message for event in events] == ["noting became leader", "noting stopped leading"]
    assert events[0].involved_object.kind == "Lease"


async def test_a_manager_that_loses_the_lead_ends_with_that_error(cluster):
    run = await Run(cluster, leader_election=ELECTION).start()
    await cluster.advance(5)
    run.component.faults.lose_requests(times=-1)
    await run.component.wait_ended()
    assert isinstance(run.error, LeadershipLost)


async def test_a_watch_that_fails_makes_the_process_unready_within_seconds(cluster, caplog):
    run = await Run(cluster).start()
    await cluster.advance(10)
    check = "informer configmaps in default"
    assert run.manager.readiness()[check] == ""
    run.component.faults.fail(Forbidden, resource="configmaps", times=-1)
    run.component.faults.drop_watches()
    await cluster.advance(5)
    assert "not following" in run.manager.readiness()[check]
    health = run.registry.get_sample_value("reflector_healthy", {"resource": "configmaps in default"})
    assert health == 0
    run.component.faults.clear()
    await cluster.advance(60)
    assert run.manager.readiness()[check] == ""


async def test_two_controllers_of_one_name_are_refused(cluster):
    manager = Manager(cluster.client, clock=cluster.clock, rng=cluster.rng)
    manager.add(Noting())
    with pytest.raises(ValueError, match="another controller is named 'noting'"):
        manager.add(Noting())


async def test_something_else_may_run_beside_the_controllers(cluster):
    ticks = []

    async def tick():
        while True:
            ticks.append(cluster.clock.monotonic())
            await asyncio.sleep(10)

    run = Run(cluster)
    main = run._main

    async def with_task(client):
        await main(client)

    run._main = with_task
    await run.start()
    run.manager.stop()
    await run.component.wait_ended()
    manager = Manager(cluster.client, clock=cluster.clock, rng=cluster.rng)
    manager.add(Noting())
    manager.add_task(tick)
    await cluster.run("other", lambda client: manager.run())
    await cluster.advance(35)
    assert len(ticks) == 4


async def get(app, target, authorization=""):
    """Ask an ASGI application, without a socket."""
    path, _, query = target.partition("?")
    headers = [(b"authorization", authorization.encode())] if authorization else []
    scope = {"type": "http", "method": "GET", "path": path, "query_string": query.encode(), "headers": headers}
    sent = []

    async def receive():
        return {"type": "http.request", "body": b""}

    async def send(message):
        sent.append(message)

    await app(scope, receive, send)
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:]).decode()


async def test_health_and_metrics_are_served(cluster):
    run = await Run(cluster).start()
    await cluster.create(make_config_map("a"))
    await cluster.advance(1)
    app = manager_application(run.manager, token="secret")
    paths = {}
    for path in ("/livez", "/healthz", "/readyz", "/readyz?verbose"):
        paths[path] = await get(app, path)
    assert paths["/livez"] == paths["/healthz"] == paths["/readyz"] == (200, "ok")
    assert paths["/readyz?verbose"][1].splitlines()[0] == "[+]informer configmaps in default ok"
    assert (await get(app, "/metrics"))[0] == 401
    status, text = await get(app, "/metrics", "Bearer secret")
    assert status == 200
    assert 'workqueue_adds_total{name="noting"}' in text
    assert 'controller_runtime_reconcile_total{controller="noting",result="success"}' in text


async def test_an_unready_manager_answers_500_and_says_what_is_missing(cluster):
    run = await Run(cluster).start()
    run.component.faults.fail(Forbidden, resource="configmaps", times=-1)
    run.component.faults.drop_watches()
    await cluster.advance(5)
    app = manager_application(run.manager)
    status, text = await get(app, "/readyz")
    assert status == 500
    assert "[-]informer configmaps in default failed: not following" in text
    assert (await get(app, "/readyz?exclude=informer%20configmaps%20in%20default"))[0] == 200
    assert (await get(app, "/livez"))[0] == 200


async def test_over_a_real_socket():
    clock = WallClock()
    manager = Manager(object(), clock=clock, rng=random.Random(1), registry=CollectorRegistry())
    async with serving_manager(manager, ServingOptions(port=0)) as url, aiohttp.ClientSession() as session:
        async with session.get(f"{url}/livez?verbose") as response:
            assert (response.status, await response.text()) == (200, "[+]leader_election ok\ncheck passed\n")
        async with session.get(f"{url}/metrics") as response:
            assert response.status == 200
        port = int(url.rpartition(":")[2])
        with pytest.raises(ConfigError, match=f"cannot listen on 127.0.0.1:{port}"):
            async with serving_manager(manager, ServingOptions(port=port)):
                pass


def test_metrics_are_not_shown_to_everybody():
    with pytest.raises(ConfigError, match="is open to others"):
        ServingOptions(address="0.0.0.0")
