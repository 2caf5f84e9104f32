"""One watch for all who ask, until the last lets go."""

import asyncio
import random

from prometheus_client import CollectorRegistry

from skysail.api.cluster import ConfigMap
from skysail.api.core import Pod
from skysail.api.kinds import PODS
from skysail.api.node import Node
from skysail.informer import InformerFactory
from skysail.testing import make_config_map, make_node, make_pod


def factory_of(cluster, **options):
    return InformerFactory(cluster.connect("informers"), clock=cluster.clock, rng=random.Random(1), **options)


async def test_the_same_scope_is_the_same_informer_another_is_another(cluster):
    factory = factory_of(cluster)
    pods = factory.informer(Pod)
    assert factory.informer(PODS) is pods
    assert factory.pods() is pods
    assert factory.lister(Pod) is pods.lister
    assert factory.informer(Pod, "default") is not pods
    assert factory.informer(Pod, label_selector="a=b") is not pods
    assert factory.informer(Pod, field_selector="spec.nodeName=n1") is not pods
    assert set(factory.informers()) == {
        "pods", "pods in default", "pods where a=b", "pods where spec.nodeName=n1",
    }  # fmt: skip


async def test_selectors_and_namespaces_limit_what_is_cached(cluster):
    await cluster.create(make_pod("a", labels={"app": "web"}), make_pod("b"))
    async with factory_of(cluster) as factory:
        web = factory.informer(Pod, label_selector="app=web")
        everywhere = factory.pods()
        await factory.wait_for_sync()
        assert [pod.name for pod in web.lister.list()] == ["a"]
        assert len(everywhere.lister) == 2


async def test_an_informer_asked_for_while_running_starts_at_once(cluster):
    await cluster.create(make_node("n1"))
    async with factory_of(cluster) as factory:
        factory.pods()
        await factory.wait_for_sync()
        nodes = factory.nodes()
        assert not nodes.has_synced
        await factory.wait_for_sync()
        assert [node.name for node in nodes.lister.list()] == ["n1"]


async def test_the_last_user_who_lets_go_stops_the_watch(cluster):
    async with factory_of(cluster) as factory:
        first, second = factory.informer(ConfigMap), factory.informer(ConfigMap)
        await factory.wait_for_sync()
        factory.release(first)
        await cluster.create(make_config_map("a"))
        await cluster.advance(1)
        assert not second.is_stopped
        assert any(each.name == "a" for each in second.lister.list())
        factory.release(second)
        await cluster.advance(0)
        assert second.is_stopped
        fresh = factory.informer(ConfigMap)
        assert fresh is not second
        await factory.wait_for_sync()
        assert fresh.has_synced
        factory.release(second)


async def test_the_factory_stops_everything_at_its_end(cluster):
    async with factory_of(cluster) as factory:
        informers = [factory.informer(kind) for kind in (Pod, Node, ConfigMap)]
        await factory.wait_for_sync()
    assert all(informer.is_stopped for informer in informers)


async def test_run_runs_until_cancelled_and_says_when_it_has_started(cluster):
    factory, started = factory_of(cluster), asyncio.Event()
    pods = factory.pods()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(factory.run(started.set))
        await started.wait()
        await factory.wait_for_sync()
        task.cancel()
    assert pods.is_stopped


async def test_informers_of_one_registry_are_told_apart_by_their_scope(cluster):
    registry = CollectorRegistry()
    await cluster.create(make_pod("a"))
    async with factory_of(cluster, registry=registry) as factory:
        factory.pods().add_handler(_Deaf(), name="deaf")
        factory.nodes()
        await factory.wait_for_sync()
        await cluster.advance(20)

        def value(name, resource):
            return registry.get_sample_value(name, {"resource": resource})

        assert value("informer_objects", "pods") == 1
        assert value("informer_objects", "nodes") == 0
        assert value("reflector_healthy", "pods") == 1
        assert 0 <= value("reflector_staleness_seconds", "pods") <= 70
        pending = {"resource": "pods", "handler": "deaf"}
        assert registry.get_sample_value("informer_pending_notifications", pending) == 0


class _Deaf:
    def on_add(self, obj, in_initial_list):
        pass

    def on_update(self, old, new):
        pass

    def on_delete(self, obj):
        pass


async def test_a_slow_handler_is_seen_in_its_backlog(cluster):
    registry = CollectorRegistry()
    async with factory_of(cluster, registry=registry) as factory:

        class Slow(_Deaf):
            async def on_add(self, obj, in_initial_list):
                await asyncio.sleep(100)

        factory.pods().add_handler(Slow(), name="slow")
        quick = factory.pods().add_handler(_Deaf(), name="quick")
        await factory.wait_for_sync()
        await cluster.create(*(make_pod(f"p{number}") for number in range(10)))
        await cluster.advance(1)
        labels = {"resource": "pods", "handler": "slow"}
        assert registry.get_sample_value("informer_pending_notifications", labels) == 9
        assert len(quick) == 0
        statistics = factory.pods().statistics()
        assert statistics.pending == {"slow": 9, "quick": 0}
        assert (statistics.objects, statistics.synced, statistics.healthy) == (10, True, True)


async def test_a_restart_of_the_server_leaves_caches_equal_to_it(cluster):
    async with factory_of(cluster) as factory:
        pods = factory.pods()
        await cluster.create(make_pod("stays"), make_pod("goes"))
        await factory.wait_for_sync()
        cluster.stop_apiserver()
        await cluster.advance(120)
        cluster.start_apiserver()
        await cluster.client.delete(PODS, "goes", "default", grace_period_seconds=0)
        await cluster.create(make_pod("comes"))
        await cluster.advance(60)
        assert sorted(pod.name for pod in pods.lister.list()) == ["comes", "stays"]
