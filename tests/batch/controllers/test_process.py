"""Engine, grouping and statuses together, against the embedded server with hollow nodes."""

import pytest
from prometheus_client import CollectorRegistry

from skysail.api.core import Pod
from skysail.api.kinds import DEPLOYMENTS, EVENTS, JOBS
from skysail.batch.config import default_configuration
from skysail.batch.controllers.process import BatchProcess
from skysail.batch.foreign.definitions import foreign_definitions
from skysail.batch.foreign.registry import CLUSTER_QUEUES, FLAVORS, LOCAL_QUEUES, VOLCANO_GROUPS, VOLCANO_QUEUES
from skysail.batch.kinds import POD_GROUPS, QUEUES, batch_definitions
from skysail.controller.customresources.installing import install
from skysail.simulator.clock import run_virtual
from skysail.testing.cluster import Cluster
from skysail.testing.faults import Action


def on_cluster(act, nodes=2, registry=None):
    async def main(clock):
        async with Cluster(seed=1) as cluster:
            await install(cluster.client, (*batch_definitions(), *foreign_definitions()))
            await cluster.add_nodes(nodes)
            await cluster.start_controllers()

            async def run(client):
                process = BatchProcess(
                    client, default_configuration(), clock=cluster.clock, rng=cluster.rng, registry=registry
                )
                await process.run()

            await cluster.run("batch", run)
            await act(cluster)

    run_virtual(main)


def template(labels=None, annotations=None, cpu="1", seconds="600"):
    return {
        "metadata": {"labels": labels or {}, "annotations": {"skysail.io/run-seconds": seconds} | (annotations or {})},
        "spec": {
            "schedulerName": "sky-scheduler", "restartPolicy": "Never",
            "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}],
        },
    }  # fmt: skip


def job(name, parallelism, labels=None, suspend=False, **more):
    spec = {"parallelism": parallelism, "completions": parallelism, "template": template(**more), "suspend": suspend}
    return {"metadata": {"name": name, "labels": labels or {}}, "spec": spec}


def test_a_jobs_pods_run_as_one_gang_with_an_object_of_its_own():
    async def act(cluster):
        await cluster.client.create(JOBS, job("train", 3), "default")
        await cluster.advance(5)
        (group,) = await cluster.list(POD_GROUPS)
        assert (group.name, group.spec.min_member, group.status.phase) == ("job-train", 3, "Running")
        assert (group.status.running, group.status.occupied_by) == (3, "Job/default/train")
        await cluster.client.delete(JOBS, "train", "default", propagation="Background")
        await cluster.advance(30)
        assert await cluster.list(POD_GROUPS) == []

    on_cluster(act)


@pytest.mark.parametrize("change", [{"suspend": True}, {"activeDeadlineSeconds": 1}], ids=["suspended", "failed"])
def test_a_gang_whose_job_has_no_pods_any_more_waits_for_none(change):
    async def act(cluster):
        await cluster.client.create(JOBS, job("train", 3), "default")
        await cluster.advance(5)
        assert len(await cluster.list(POD_GROUPS)) == 1
        await cluster.client.patch(JOBS, "train", "default", {"spec": change})
        await cluster.advance(30)
        assert await cluster.list(Pod) == []
        assert await cluster.list(POD_GROUPS) == []
        await cluster.client.patch(JOBS, "train", "default", {"spec": {"suspend": False}})
        await cluster.advance(10)
        wanted = ["Running"] if "suspend" in change else []
        assert [group.status.phase for group in await cluster.list(POD_GROUPS)] == wanted

    on_cluster(act)


def test_a_deployments_rollout_keeps_one_gang():
    async def act(cluster):
        spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template({"app": "web"})}
        spec["template"]["spec"]["restartPolicy"] = "Always"
        await cluster.client.create(DEPLOYMENTS, {"metadata": {"name": "web"}, "spec": spec}, "default")
        await cluster.advance(10)
        change = {"spec": {"template": {"metadata": {"labels": {"version": "2"}}}}}
        await cluster.client.patch(DEPLOYMENTS, "web", "default", change)
        await cluster.advance(60)
        assert [group.name for group in await cluster.list(POD_GROUPS)] == ["deployment-web"]
        pods = [pod for pod in await cluster.list(Pod) if pod.metadata.labels.get("version") == "2"]
        assert [pod.status.phase for pod in pods] == ["Running", "Running"]

    on_cluster(act)


def test_a_waiting_gang_shows_its_outcome_and_its_queue_what_it_wants():
    async def act(cluster):
        await cluster.client.create(QUEUES, {"metadata": {"name": "a"}, "spec": {"capability": {"cpu": 2}}})
        await cluster.client.create(JOBS, job("big", 3, labels={"scheduling.skysail.io/queue": "a"}), "default")
        await cluster.advance(5)
        (group,) = await cluster.list(POD_GROUPS)
        assert group.status.scheduling_conditions[0].code == "ExceedsMax"
        assert {each.type: each.status for each in group.status.conditions}["Unschedulable"] == "True"
        queue = await cluster.get(QUEUES, "a", "")
        assert (queue.status.inqueue, queue.status.requested["cpu"]) == (1, "3")

    on_cluster(act)


def test_nothing_is_written_while_nothing_changes():
    async def act(cluster):
        await cluster.client.create(JOBS, job("train", 2), "default")
        await cluster.advance(10)
        faults, written = cluster.components["batch"].faults, []
        faults.strike_when(Action.FAIL, lambda call: call.is_write and bool(written.append(call)))
        await cluster.advance(100)
        assert written == []

    on_cluster(act)


def test_kueues_suspended_job_runs_in_its_cluster_queue():
    async def act(cluster):
        client = cluster.client
        await client.create(FLAVORS[0], {"metadata": {"name": "default-flavor"}})
        resources = [{"name": "cpu", "nominalQuota": 4}]
        groups = [{"coveredResources": ["cpu"], "flavors": [{"name": "default-flavor", "resources": resources}]}]
        await client.create(
            CLUSTER_QUEUES[0], {"metadata": {"name": "cq"}, "spec": {"namespaceSelector": {}, "resourceGroups": groups}}
        )
        await client.create(LOCAL_QUEUES[0], {"metadata": {"name": "lq"}, "spec": {"clusterQueue": "cq"}}, "default")
        labels = {"kueue.x-k8s.io/queue-name": "lq"}
        await client.create(JOBS, job("one", 3, labels=labels, suspend=True), "default")
        await client.create(JOBS, job("two", 3, labels=labels, suspend=True), "default")
        await cluster.advance(10)
        status = (await cluster.get(CLUSTER_QUEUES[0], "cq", ""))["status"]
        assert (status["admittedWorkloads"], status["pendingWorkloads"]) == (1, 1)
        assert status["flavorsUsage"][0]["resources"] == [{"name": "cpu", "total": "3", "borrowed": "0"}]
        line = (await cluster.get(LOCAL_QUEUES[0], "lq"))["status"]
        assert (line["pendingWorkloads"], line["admittedWorkloads"]) == (1, 1)

    on_cluster(act)


def test_volcanos_pod_group_hears_back_in_its_own_words():
    async def act(cluster):
        client = cluster.client
        await client.create(VOLCANO_QUEUES[0], {"metadata": {"name": "test"}, "spec": {"capability": {"cpu": 8}}})
        spec = {"minMember": 2, "queue": "test"}
        await client.create(VOLCANO_GROUPS[0], {"metadata": {"name": "g"}, "spec": spec}, "default")
        words = {"scheduling.k8s.io/group-name": "g"}
        await client.create(JOBS, job("v", 1, annotations=words), "default")
        await cluster.advance(5)
        status = (await cluster.get(VOLCANO_GROUPS[0], "g"))["status"]
        assert [each["reason"] for each in status["conditions"]] == ["NotEnoughTasks"]
        await client.create(JOBS, job("w", 1, annotations=words), "default")
        await cluster.advance(5)
        status = (await cluster.get(VOLCANO_GROUPS[0], "g"))["status"]
        assert (status["phase"], status["running"]) == ("Running", 2)
        assert (await cluster.get(VOLCANO_QUEUES[0], "test", ""))["status"]["running"] == 1

    on_cluster(act)


def test_the_next_leader_goes_on_where_the_last_one_was_killed():
    async def act(cluster):
        await cluster.client.create(JOBS, job("train", 3), "default")
        await cluster.advance(3)
        cluster.kill("batch")
        await cluster.client.create(JOBS, job("next", 2), "default")
        await cluster.advance(5)
        await cluster.restart("batch")
        await cluster.advance(5)
        phases = {group.name: group.status.phase for group in await cluster.list(POD_GROUPS)}
        assert phases == {"job-train": "Running", "job-next": "Running"}

    on_cluster(act)


def test_outcomes_are_told_as_events_on_the_gang_and_its_owner():
    async def act(cluster):
        await cluster.client.create(JOBS, job("big", 3, labels={"scheduling.skysail.io/queue": "a"}), "default")
        await cluster.advance(10)
        await cluster.client.create(QUEUES, {"metadata": {"name": "a"}, "spec": {"capability": {"cpu": 2}}})
        await cluster.advance(10)
        told = {(event.involved_object.kind, event.reason) for event in await cluster.list(EVENTS)}
        assert {("PodGroup", "ExceedsMax"), ("Job", "ExceedsMax")} <= told

    on_cluster(act)


def test_metrics_tell_of_queues_jobs_and_cycles():
    registry = CollectorRegistry()

    async def act(cluster):
        await cluster.client.create(JOBS, job("train", 2), "default")
        await cluster.client.create(JOBS, job("big", 2, cpu="1000"), "default")
        await cluster.advance(5)
        value = registry.get_sample_value
        assert value("skysail_batch_jobs_waiting", {"queue": "default", "code": "NoNode"}) == 1
        assert value("skysail_batch_job_pods", {"job": "default/job-train", "state": "held"}) == 2
        assert value("skysail_batch_job_wait_seconds_count", {"queue": "default"}) == 1
        assert value("skysail_batch_action_duration_seconds_count", {"action": "bind"}) > 0

    on_cluster(act, registry=registry)
