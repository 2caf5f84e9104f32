"""Kinds of other systems that come and go while the engine runs."""

from skysail.api.errors import Forbidden
from skysail.api.kinds import PODS
from skysail.batch.config import default_configuration
from skysail.batch.controllers.process import BatchProcess
from skysail.batch.foreign.definitions import foreign_definitions
from skysail.batch.foreign.registry import CLUSTER_QUEUES, FLAVORS, LOCAL_QUEUES, VOLCANO_GROUPS, VOLCANO_QUEUES
from skysail.batch.kinds import batch_definitions
from skysail.controller.customresources.installing import DEFINITIONS, install
from skysail.simulator.clock import run_virtual
from skysail.testing.cluster import Cluster
from skysail.testing.faults import Action


def definitions(*names):
    return tuple(each for each in foreign_definitions() if each["metadata"]["name"] in names)


def pod(name, labels=None, annotations=None, cpu="1"):
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    metadata = {"name": name, "labels": labels or {}, "annotations": annotations or {}}
    return {"metadata": metadata, "spec": {"schedulerName": "sky-scheduler", "containers": [container]}}


def on_cluster(act, before=()):
    async def main(clock):
        async with Cluster(seed=1) as cluster:
            await install(cluster.client, (*batch_definitions(), *before))
            await cluster.add_nodes(2)
            processes = []

            async def run(client):
                process = BatchProcess(client, default_configuration(), clock=cluster.clock, rng=cluster.rng)
                processes.append(process)
                await process.run()

            await cluster.run("batch", run)
            await cluster.advance(3)
            await act(cluster, processes[0].scheduler)

    run_virtual(main)


VOLCANO = ("queues.scheduling.volcano.sh", "podgroups.scheduling.volcano.sh")
KUEUE = ("clusterqueues.kueue.x-k8s.io", "localqueues.kueue.x-k8s.io", "resourceflavors.kueue.x-k8s.io")


def test_volcano_installed_later_is_followed_without_a_restart():
    async def act(cluster, scheduler):
        client = cluster.client
        words = {"scheduling.k8s.io/group-name": "g"}
        for number in range(2):
            await client.create(PODS, pod(f"p{number}", annotations=words), "default")
        await cluster.advance(3)
        assert scheduler.world.jobs["default/g"].outcome.code == "PodGroupMissing"
        await install(client, definitions(*VOLCANO))
        await client.create(VOLCANO_QUEUES[0], {"metadata": {"name": "q"}, "spec": {"capability": {"cpu": 4}}})
        spec = {"minMember": 2, "queue": "q"}
        await client.create(VOLCANO_GROUPS[0], {"metadata": {"name": "g"}, "spec": spec}, "default")
        await cluster.advance(5)
        status = (await cluster.get(VOLCANO_GROUPS[0], "g"))["status"]
        assert (status["phase"], status["running"]) == ("Running", 2)
        assert (await cluster.get(VOLCANO_QUEUES[0], "q", ""))["status"]["allocated"]["cpu"] == "2"

    on_cluster(act)


def test_kueue_installed_later_limits_what_its_line_lets_through():
    async def act(cluster, scheduler):
        client = cluster.client
        await install(client, definitions(*KUEUE))
        await client.create(FLAVORS[0], {"metadata": {"name": "f"}})
        flavors = [{"name": "f", "resources": [{"name": "cpu", "nominalQuota": 1}]}]
        groups = [{"coveredResources": ["cpu"], "flavors": flavors}]
        spec = {"namespaceSelector": {}, "resourceGroups": groups}
        await client.create(CLUSTER_QUEUES[0], {"metadata": {"name": "cq"}, "spec": spec})
        await client.create(LOCAL_QUEUES[0], {"metadata": {"name": "lq"}, "spec": {"clusterQueue": "cq"}}, "default")
        for number in range(2):
            await client.create(PODS, pod(f"p{number}", {"kueue.x-k8s.io/queue-name": "lq"}), "default")
        await cluster.advance(5)
        assert sorted(str(job.outcome and job.outcome.code.value) for job in scheduler.world.jobs.values()) == [
            "None", "QuotaExceeded",
        ]  # fmt: skip

    on_cluster(act)


def test_what_a_system_said_ends_with_its_kinds_and_counts_again_when_they_are_back():
    async def act(cluster, scheduler):
        client = cluster.client
        await client.create(VOLCANO_QUEUES[0], {"metadata": {"name": "q"}, "spec": {"capability": {"cpu": 1}}})
        await client.create(VOLCANO_GROUPS[0], {"metadata": {"name": "g"}, "spec": {"queue": "q"}}, "default")
        await client.create(PODS, pod("p", annotations={"scheduling.k8s.io/group-name": "g"}, cpu="2"), "default")
        await cluster.advance(3)
        assert scheduler.world.jobs["default/g"].outcome.code == "ExceedsMax"
        for name in VOLCANO:
            await client.delete(DEFINITIONS, name)
        await cluster.advance(5)
        assert "q" not in scheduler.world.tree
        assert scheduler.world.jobs["default/g"].outcome.code == "PodGroupMissing"
        assert "queues.scheduling.volcano.sh" not in scheduler.feeding.queue_kinds
        await install(client, definitions(*VOLCANO))
        await client.create(VOLCANO_QUEUES[0], {"metadata": {"name": "q"}, "spec": {"capability": {"cpu": 4}}})
        await client.create(VOLCANO_GROUPS[0], {"metadata": {"name": "g"}, "spec": {"queue": "q"}}, "default")
        await cluster.advance(5)
        assert scheduler.world.jobs["default/g"].is_running()

    on_cluster(act, definitions(*VOLCANO))


def test_the_newest_version_that_comes_to_be_served_is_followed():
    old = definitions("clusterqueues.kueue.x-k8s.io")[0]
    spec = old["spec"] | {
        "versions": [v | {"storage": True} for v in old["spec"]["versions"] if v["name"] == "v1beta1"]
    }

    async def act(cluster, scheduler):
        assert scheduler.feeding.queue_kinds["clusterqueues.kueue.x-k8s.io"].version == "v1beta1"
        patch = {"spec": {"versions": old["spec"]["versions"]}}
        await cluster.client.patch(DEFINITIONS, old["metadata"]["name"], "", patch)
        await cluster.advance(5)
        await cluster.client.create(CLUSTER_QUEUES[0], {"metadata": {"name": "cq"}, "spec": {}})
        await cluster.advance(5)
        assert scheduler.feeding.queue_kinds["clusterqueues.kueue.x-k8s.io"].version == "v1beta2"
        assert "cq" in scheduler.world.tree

    on_cluster(act, (old | {"spec": spec},))


def test_who_may_not_see_definitions_works_with_what_is_there():
    async def main(clock):
        async with Cluster(seed=1) as cluster:
            await install(cluster.client, (*batch_definitions(), *definitions(*VOLCANO)))
            rule = cluster.faults.strike_when(Action.FAIL, lambda call: call.resource == "customresourcedefinitions")
            rule.error = Forbidden("no")

            async def run(client):
                process = BatchProcess(client, default_configuration(), clock=cluster.clock, rng=cluster.rng)
                processes.append(process)
                await process.run()

            processes = []
            await cluster.run("batch", run)
            await cluster.client.create(VOLCANO_QUEUES[0], {"metadata": {"name": "q"}})
            await cluster.advance(3)
            assert "q" in processes[0].scheduler.world.tree

    run_virtual(main)
