import asyncio
from datetime import UTC, datetime

import pytest

from skysail.api.apps import Deployment
from skysail.api.cluster import ConfigMap
from skysail.api.core import Pod
from skysail.api.errors import ConfigError, NotFound, TooManyRequests, Unreachable
from skysail.api.kinds import CONFIGMAPS, LEASES, NODES
from skysail.api.meta import parse_time
from skysail.api.node import Node
from skysail.controller import Controller, For, Key, LeaderElection
from skysail.simulator.clock import run_virtual
from skysail.testing import make_config_map, make_deployment, make_nodes, make_pod
from skysail.testing.cluster import Cluster, NotSettled


async def test_a_fresh_cluster_has_its_namespaces_and_nothing_else(cluster):
    assert await cluster.list(Pod) == []
    assert await cluster.list(Node) == []
    assert cluster.clock.monotonic() == 0.0


async def test_objects_are_created_and_read_back(cluster):
    made = await cluster.create(*make_nodes(2), make_pod("web", cpu="1"))
    assert made[2].uid
    assert (await cluster.get(Pod, "web")).spec.containers[0].resources.requests == {"cpu": "1"}
    with pytest.raises(NotFound):
        await cluster.get(Pod, "other")


@pytest.mark.cluster(start=datetime(2030, 1, 1, tzinfo=UTC), seed=3)
async def test_the_marker_sets_time_and_seed(cluster):
    await cluster.advance(60)
    assert cluster.clock.now() == datetime(2030, 1, 1, 0, 1, tzinfo=UTC)


def test_the_same_seed_gives_the_same_cluster():
    async def main(clock):
        async with Cluster(seed=4) as cluster:
            await cluster.add_nodes(4)
            await cluster.start_controllers()
            await cluster.start_scheduler()
            await cluster.create(make_deployment(replicas=8))
            await cluster.settle()
            return [(pod.name, pod.uid, pod.spec.node_name) for pod in await cluster.list(Pod)]

    first = run_virtual(main)
    assert len(first) == 8
    assert run_virtual(main) == first


async def test_an_unknown_controller_is_named_with_the_known_ones(cluster):
    with pytest.raises(ConfigError, match=r"there is no controller 'deployment'; known are .*deployment-controller"):
        await cluster.start_controllers("deployment")


async def running(cluster):
    return [pod for pod in await cluster.list(Pod) if pod.status.phase == "Running"]


async def test_a_whole_cluster_brings_a_deployment_to_life(cluster):
    await cluster.add_nodes(3)
    await cluster.start_controllers()
    await cluster.start_scheduler()
    await cluster.create(make_deployment("web", replicas=3))
    await cluster.settle()
    assert {pod.spec.node_name for pod in await running(cluster)} == {"node-0", "node-1", "node-2"}
    assert (await cluster.get(Deployment, "web")).status.available_replicas == 3


class Copier(Controller):
    """Copies config maps labelled `copy` to another namespace."""

    watches = (For(ConfigMap),)

    async def reconcile(self, key: Key):
        source = self.lister(ConfigMap).get(key)
        if source is None or key.namespace != "default" or source.metadata.labels.get("copy") != "yes":
            return
        copy = {"metadata": {"name": source.name, "namespace": "kube-public"}, "data": dict(source.data)}
        try:
            await self.client.create(CONFIGMAPS, copy)
        except Exception:
            await self.client.patch(CONFIGMAPS, source.name, "kube-public", {"data": dict(source.data)})


def marked(name, **data):
    config = make_config_map(name, **data)
    return {"metadata": {"name": name, "namespace": "default", "labels": {"copy": "yes"}}, "data": dict(config.data)}


async def copies(cluster):
    return {each.name for each in await cluster.list(ConfigMap, "kube-public")}


async def test_a_controller_of_ones_own_runs_in_it(cluster):
    await cluster.start(Copier)
    await cluster.client.create(CONFIGMAPS, marked("a", k="v"))
    await cluster.settle()
    assert "a" in await copies(cluster)


async def test_settling_waits_for_busy_controllers_and_gives_up_in_the_end(cluster):
    class Restless(Controller):
        watches = (For(ConfigMap),)

        async def reconcile(self, key: Key):
            await asyncio.sleep(5)
            await self.client.patch(CONFIGMAPS, key.name, key.namespace, {"data": {"at": str(self.clock.monotonic())}})

    await cluster.create(make_config_map("never"))
    await cluster.start(Restless)
    with pytest.raises(NotSettled, match=r"not settled after 100 s; .*restless: patch configmaps default/never"):
        await cluster.settle(timeout=100)


async def test_settling_waits_for_a_watch_that_the_server_refused(cluster):
    await cluster.start(Copier)
    faults = cluster.components["copier"].faults
    faults.fail(TooManyRequests, verb="watch", retry_after=40)
    assert faults.drop_watches() == 1
    await cluster.client.create(CONFIGMAPS, marked("a"))
    await cluster.settle()
    assert "a" in await copies(cluster)


async def test_waiting_for_a_condition_ends_when_it_holds(cluster):
    await cluster.start(Copier)
    cluster.components["copier"].faults.delay(20, verb="create")
    await cluster.client.create(CONFIGMAPS, marked("a"))

    async def is_copied():
        return "a" in await copies(cluster)

    await cluster.wait_until(is_copied)
    assert cluster.clock.monotonic() == 20.0
    with pytest.raises(NotSettled, match=r"pigs fly did not come true in 30 s"):
        await cluster.wait_until(lambda: False, timeout=30, what="pigs fly")


async def test_controllers_survive_an_api_server_that_was_away(cluster):
    await cluster.start(Copier)
    cluster.stop_apiserver()
    with pytest.raises(Unreachable, match="connection refused"):
        await cluster.list(ConfigMap)
    await cluster.advance(120)
    cluster.start_apiserver()
    await cluster.client.create(CONFIGMAPS, marked("a"))
    await cluster.advance(60)
    assert "a" in await copies(cluster)


async def test_a_killed_component_does_nothing_more_until_it_is_restarted(cluster):
    await cluster.start(Copier)
    cluster.kill("copier")
    await cluster.client.create(CONFIGMAPS, marked("a"))
    await cluster.settle()
    assert not cluster.components["copier"].is_running
    assert "a" not in await copies(cluster)
    await cluster.restart("copier")
    await cluster.settle()
    assert "a" in await copies(cluster)


async def test_a_component_that_crashes_at_any_request_ends_in_the_same_state_after_a_restart(cluster):
    for request in range(1, 12):
        name = f"c{request}"
        await cluster.client.create(CONFIGMAPS, marked(name))
        component = await cluster.run(f"copier-{request}", _copy_once)
        component.faults.crash_at(request, after=request % 2 == 0)
        await component.wait_ended()
        await cluster.restart(component.name)
        await cluster.components[component.name].wait_ended()
        assert name in await copies(cluster)


async def _copy_once(client):
    for each in (await client.list(CONFIGMAPS, "default", label_selector="copy=yes")).items:
        copy = {"metadata": {"name": each.name, "namespace": "kube-public"}}
        await client.apply(CONFIGMAPS, copy, field_manager="copier")


async def renewed(cluster, node):
    lease = await cluster.client.get(LEASES, node, "kube-node-lease")
    return parse_time(lease.spec.renew_time)


async def test_a_failed_node_renews_nothing_until_it_recovers(cluster):
    await cluster.add_nodes(2)
    cluster.fail_node("node-0")
    before = await renewed(cluster, "node-0")
    await cluster.advance(60)
    assert await renewed(cluster, "node-0") == before
    assert await renewed(cluster, "node-1") > before
    cluster.recover_node("node-0")
    await cluster.advance(60)
    assert await renewed(cluster, "node-0") > before


async def test_the_pods_of_a_failed_node_stand_still(cluster):
    await cluster.add_nodes(1)
    cluster.fail_node("node-0")
    await cluster.create(make_pod("web", node="node-0"))
    await cluster.settle()
    assert (await cluster.get(Pod, "web")).status.phase == "Pending"
    cluster.recover_node("node-0")
    await cluster.settle()
    assert (await cluster.get(Pod, "web")).status.phase == "Running"


async def test_of_two_candidates_one_leads_and_the_other_takes_over(cluster):
    election = LeaderElection(name="copier", namespace="kube-system")
    managers = [await cluster.start(Copier, name=name, leader_election=election) for name in ("first", "second")]
    await cluster.advance(5)
    assert [manager.is_leading for manager in managers] == [True, False]
    cluster.kill("first")
    await cluster.advance(30)
    assert managers[1].is_leading
    await cluster.client.create(CONFIGMAPS, marked("a"))
    await cluster.settle()
    assert "a" in await copies(cluster)


def test_an_error_in_a_component_fails_the_test():
    async def main(clock):
        async def broken(client):
            raise KeyError("a bug")

        async with Cluster() as cluster:
            await cluster.run("broken", broken)
            await cluster.advance(10)

    with pytest.raises(ExceptionGroup) as raised:
        run_virtual(main)
    assert raised.group_contains(KeyError)


async def test_names_of_running_components_are_unique(cluster):
    await cluster.start(Copier)
    with pytest.raises(ValueError, match="'copier' is running already"):
        await cluster.start(Copier)
    with pytest.raises(NotFound):
        await cluster.client.get(NODES, "none")
