"""Every kind of another system to which a status is owed gets it, on a live server."""

import random
from functools import partial

import pytest

from skysail.api.kinds import JOBS, PODS, PRIORITY_CLASSES
from skysail.apiserver import server
from skysail.apiserver.schema.table import load
from skysail.batch.config import default_configuration
from skysail.batch.controllers.process import BatchProcess
from skysail.batch.foreign.definitions import foreign_definitions
from skysail.batch.foreign.registry import (
    CLUSTER_QUEUES,
    COSCHEDULING_GROUPS,
    ELASTIC_QUOTAS,
    FLAVORS,
    KAI_GROUPS,
    KAI_QUEUES,
    LOCAL_QUEUES,
    RESERVATIONS,
    UPSTREAM_GROUPS,
    VOLCANO_GROUPS,
    VOLCANO_QUEUES,
    WORKLOAD_PRIORITIES,
    WORKLOADS,
)
from skysail.batch.kinds import POD_GROUPS, batch_definitions
from skysail.controller.customresources.installing import install
from skysail.simulator.clock import run_virtual
from skysail.testing.cluster import Cluster


def template(labels=None, annotations=None, cpu="1"):
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    words = {"skysail.io/run-seconds": "600"} | (annotations or {})
    spec = {"schedulerName": "sky-scheduler", "restartPolicy": "Never", "containers": [container]}
    return {"metadata": {"labels": labels or {}, "annotations": words}, "spec": spec}


def pod(name, **more):
    made = template(**more)
    made["metadata"]["name"] = name
    return made


def job(name, parallelism, labels=None, **more):
    spec = {"parallelism": parallelism, "completions": parallelism, "template": template(**more)}
    return {"metadata": {"name": name, "labels": labels or {}}, "spec": spec}


def on_cluster(act, options=None, processes=None):
    async def main(clock):
        async with Cluster(seed=1, options=options) as cluster:
            await install(cluster.client, (*batch_definitions(), *foreign_definitions()))
            await cluster.add_nodes(2)
            await cluster.start_controllers()

            async def run(client):
                process = BatchProcess(client, default_configuration(), clock=cluster.clock, rng=cluster.rng)
                if processes is not None:
                    processes.append(process)
                await process.run()

            await cluster.run("batch", run)
            await act(cluster)

    run_virtual(main)


def conditions(obj):
    return {each["type"]: (each["status"], each.get("reason")) for each in obj["status"]["conditions"]}


def test_kueues_objects_hear_of_their_workloads():
    async def act(cluster):
        client = cluster.client
        await client.create(FLAVORS[0], {"metadata": {"name": "f"}})
        groups = [{"coveredResources": ["cpu"],
                   "flavors": [{"name": "f", "resources": [{"name": "cpu", "nominalQuota": 4}]}]}]  # fmt: skip
        spec = {"namespaceSelector": {}, "resourceGroups": groups}
        await client.create(CLUSTER_QUEUES[0], {"metadata": {"name": "cq"}, "spec": spec})
        await client.create(CLUSTER_QUEUES[0], {"metadata": {"name": "held"}, "spec": spec | {"stopPolicy": "Hold"}})
        for name, queue in (("lq", "cq"), ("lost", "nowhere"), ("stopped", "held")):
            line = {"metadata": {"name": name}, "spec": {"clusterQueue": queue}}
            await client.create(LOCAL_QUEUES[0], line, "default")
        for name in ("one", "two"):
            made = await client.create(JOBS, job(name, 3, {"kueue.x-k8s.io/queue-name": "lq"}), "default")
            owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": made.uid, "controller": True}
            workload = {"metadata": {"name": f"job-{name}-abc", "ownerReferences": [owner]},
                        "spec": {"queueName": "lq", "podSets": [{"name": "main", "count": 3}]}}  # fmt: skip
            await client.create(WORKLOADS[0], workload, "default")
        await cluster.advance(8)
        told = [conditions(await cluster.get(WORKLOADS[0], f"job-{name}-abc")) for name in ("one", "two")]
        admitted = [each for each in told if each["Admitted"][0] == "True"]
        waiting = [each for each in told if each["Admitted"][0] == "False"]
        assert admitted[0]["QuotaReserved"] == ("True", "QuotaReserved")
        assert waiting[0]["Admitted"] == ("False", "QuotaExceeded")
        assert conditions(await cluster.get(CLUSTER_QUEUES[0], "cq", ""))["Active"] == ("True", "Ready")
        assert conditions(await cluster.get(CLUSTER_QUEUES[0], "held", ""))["Active"] == ("False", "Stopped")
        assert conditions(await cluster.get(LOCAL_QUEUES[0], "lq"))["Active"] == ("True", "Ready")
        assert conditions(await cluster.get(LOCAL_QUEUES[0], "lost"))["Active"] == ("False", "Misconfigured")
        assert conditions(await cluster.get(LOCAL_QUEUES[0], "stopped"))["Active"] == ("False", "Misconfigured")

    on_cluster(act)


def test_every_systems_gang_hears_that_it_runs_and_that_another_waits():
    kinds = {
        VOLCANO_GROUPS[0]: ("scheduling.k8s.io/group-name", {"minMember": 1}, {"minMember": 9}),
        COSCHEDULING_GROUPS[0]: ("scheduling.x-k8s.io/pod-group", {"minMember": 1}, {"minMember": 9}),
        KAI_GROUPS[0]: ("pod-group-name", {"minMember": 1, "queue": "kai"}, {"minMember": 9, "queue": "kai"}),
    }

    async def act(cluster):
        client = cluster.client
        await client.create(KAI_QUEUES[0], {"metadata": {"name": "kai"}, "spec": {"resources": {"cpu": {"quota": -1}}}})
        for kind, (word, runs, waits) in kinds.items():
            for name, spec in (("runs", runs), ("waits", waits)):
                full = f"{name}-{kind.group.split('.')[1]}"
                await client.create(kind, {"metadata": {"name": full}, "spec": spec}, "default")
                await client.create(PODS, pod(f"p-{full}", annotations={word: full}), "default")
        await cluster.advance(8)
        for kind in kinds:
            suffix = kind.group.split(".")[1]
            runs = (await cluster.get(kind, f"runs-{suffix}"))["status"]
            waits = (await cluster.get(kind, f"waits-{suffix}"))["status"]
            assert (runs["phase"], runs["running"]) == ("Running", 1), kind
            assert waits["phase"] == "Pending", kind
        kai = (await cluster.get(KAI_GROUPS[0], "waits-run"))["status"]["schedulingConditions"]
        assert kai[0]["reasons"][0]["reason"] == "MembersMissing"
        assert (await cluster.get(KAI_QUEUES[0], "kai", ""))["status"]["allocated"]["cpu"] == "1"

    on_cluster(act)


def test_upstreams_gang_hears_in_its_condition(monkeypatch):
    monkeypatch.setattr(server, "load", partial(load, enable=[("scheduling.k8s.io", "v1alpha2")]))

    async def act(cluster):
        client = cluster.client
        policy = {"gang": {"minCount": 2}}
        await client.create(
            UPSTREAM_GROUPS[0], {"metadata": {"name": "g"}, "spec": {"schedulingPolicy": policy}}, "default"
        )
        made = pod("a")
        made["spec"]["schedulingGroup"] = {"podGroupName": "g"}
        await client.create(PODS, made, "default")
        await cluster.advance(5)
        assert conditions(await cluster.get(UPSTREAM_GROUPS[0], "g"))["PodGroupScheduled"][0] == "False"

    on_cluster(act)


def test_quotas_and_queues_hear_what_is_used():
    async def act(cluster):
        client = cluster.client
        await client.create(VOLCANO_QUEUES[0], {"metadata": {"name": "v"}, "spec": {"capability": {"cpu": 8}}})
        await client.create(
            ELASTIC_QUOTAS[0], {"metadata": {"name": "e"}, "spec": {"min": {"cpu": 2}, "max": {"cpu": 4}}}, "default"
        )
        await client.create(PODS, pod("in-v", labels={"scheduling.volcano.sh/queue-name": "v"}), "default")
        await client.create(PODS, pod("in-e", cpu="3"), "default")
        await cluster.advance(5)
        assert (await cluster.get(VOLCANO_QUEUES[0], "v", ""))["status"]["allocated"]["cpu"] == "1"
        assert (await cluster.get(ELASTIC_QUOTAS[0], "e"))["status"]["used"] == {"cpu": "3"}

    on_cluster(act)


def test_a_reservation_is_a_slot_for_its_owners_alone():
    async def act(cluster):
        client = cluster.client
        spec = {
            "template": {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "30"}}}]}},
            "owners": [{"labelSelector": {"matchLabels": {"app": "kept"}}}], "ttl": "1h", "allocateOnce": False,
        }  # fmt: skip
        await client.create(RESERVATIONS[0], {"metadata": {"name": "r"}, "spec": spec})
        await client.create(PODS, pod("first", cpu="4", labels={"app": "kept"}), "default")
        for number in range(2):
            await client.create(PODS, pod(f"stranger-{number}", cpu="20"), "default")
        await cluster.advance(5)
        status = (await cluster.get(RESERVATIONS[0], "r", ""))["status"]
        assert (status["phase"], status["allocatable"]) == ("Available", {"cpu": "30"})
        assert status["currentOwners"] == [{"namespace": "default", "name": "first"}]
        first = await cluster.get(PODS, "first")
        strangers = [await cluster.get(PODS, f"stranger-{number}") for number in range(2)]
        assert first.spec.node_name == status["nodeName"]
        assert sorted(each.status.phase for each in strangers) == ["Pending", "Running"]
        assert status["nodeName"] not in [each.spec.node_name for each in strangers]
        await client.delete(RESERVATIONS[0], "r")
        await cluster.advance(5)
        assert (await cluster.get(PODS, "stranger-1")).status.phase == "Running"

    on_cluster(act)


def test_kueues_priority_orders_by_its_own_class():
    async def act(cluster):
        client = cluster.client
        await client.create(WORKLOAD_PRIORITIES[0], {"metadata": {"name": "urgent"}, "value": 1000})
        labels = {"kueue.x-k8s.io/priority-class": "urgent"}
        await client.create(JOBS, job("train", 2, labels), "default")
        await cluster.advance(5)
        (group,) = await cluster.list(POD_GROUPS)
        assert group.spec.priority_class_name == "urgent"

    on_cluster(act)


def test_a_priority_class_that_comes_later_counts_for_the_gangs_that_name_it():
    """Own groups and others', by Kubernetes' classes and by Kueue's; a class that goes counts no longer."""

    processes = []

    async def act(cluster):
        await cluster.advance(5)
        client, world = cluster.client, processes[0].scheduler.world
        spec = {"minMember": 1, "priorityClassName": "urgent"}
        await client.create(POD_GROUPS, {"metadata": {"name": "own"}, "spec": spec}, "default")
        await client.create(VOLCANO_GROUPS[0], {"metadata": {"name": "volcanos"}, "spec": spec}, "default")
        await cluster.advance(5)
        assert [world.jobs[f"default/{name}"].spec.priority for name in ("own", "volcanos")] == [None, None]
        for kind in (PRIORITY_CLASSES, WORKLOAD_PRIORITIES[0]):
            await client.create(kind, {"metadata": {"name": "urgent"}, "value": 1000})
            await cluster.advance(5)
            assert [world.jobs[f"default/{name}"].spec.priority for name in ("own", "volcanos")] == [1000, 1000]
            await client.delete(kind, "urgent")
            await cluster.advance(5)
            assert [world.jobs[f"default/{name}"].spec.priority for name in ("own", "volcanos")] == [None, None]

    on_cluster(act, processes=processes)


@pytest.mark.parametrize("seed", range(4))
def test_of_groups_of_one_name_the_same_counts_in_whatever_order_they_come_and_go(seed):
    """Ours, then the systems in order: what a process sees that starts now."""
    kinds = (POD_GROUPS, VOLCANO_GROUPS[0], KAI_GROUPS[0], COSCHEDULING_GROUPS[0])
    processes, order = [], list(enumerate(kinds, 1))
    random.Random(seed).shuffle(order)

    async def act(cluster):
        await cluster.advance(5)
        client, world, there = cluster.client, processes[0].scheduler.world, set()
        for number, kind in order:
            await client.create(kind, {"metadata": {"name": "g"}, "spec": {"minMember": number}}, "default")
            there.add(number)
            await cluster.advance(5)
            assert world.jobs["default/g"].spec.min_member == min(there)
        for number, kind in order:
            await client.delete(kind, "g", "default")
            there.discard(number)
            await cluster.advance(5)
            job = world.jobs.get("default/g")
            assert (job.spec.min_member if job is not None else None) == min(there, default=None)

    on_cluster(act, processes=processes)


def test_a_namespaces_queue_that_comes_or_goes_takes_its_pods_with_it():
    processes = []

    async def act(cluster):
        client = cluster.client
        await client.create(PODS, pod("p"), "default")
        await cluster.advance(5)
        world = processes[0].scheduler.world
        for queue in ("elastic", "default"):
            if queue == "elastic":
                quota = {"metadata": {"name": "elastic"}, "spec": {"max": {"cpu": "8"}}}
                await client.create(ELASTIC_QUOTAS[0], quota, "default")
            else:
                await client.delete(ELASTIC_QUOTAS[0], "elastic", "default")
            await cluster.advance(5)
            found = {name.rpartition("/")[2] for name, _, _ in world.ledger.entries()}
            assert found == {queue}

    on_cluster(act, processes=processes)
