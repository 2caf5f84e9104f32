"""The small controllers: default accounts, quota use, left-over pods, finished jobs, namespaces, budgets."""

from datetime import timedelta
from itertools import pairwise

import msgspec
import pytest

from skysail.api.batch import CronJob, Job
from skysail.api.cluster import ConfigMap, Namespace, ResourceQuota, ServiceAccount
from skysail.api.core import Pod
from skysail.api.kinds import CONFIGMAPS, CRONJOBS, JOBS, NAMESPACES, NODES, PODS, RESOURCE_QUOTAS, SERVICE_ACCOUNTS
from skysail.api.meta import OwnerReference
from skysail.api.policy import PodDisruptionBudget
from skysail.simulator.hollow_pods import EXIT_CODE, RUN_SECONDS
from skysail.testing import (
    Action,
    make_config_map,
    make_deployment,
    make_disruption_budget,
    make_job,
    make_namespace,
    make_pod,
)

CRON_JOB = {
    "apiVersion": "batch/v1",
    "kind": "CronJob",
    "metadata": {"name": "report"},
    "spec": {
        "schedule": "*/10 * * * *",
        "successfulJobsHistoryLimit": 2,
        "jobTemplate": {
            "spec": {
                "template": {
                    "metadata": {"annotations": {RUN_SECONDS: "30"}},
                    "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "report"}]},
                }
            }
        },
    },
}


def cron_job(*, run_seconds: int = 30, **spec: object) -> dict[str, object]:
    body = msgspec.json.decode(msgspec.json.encode(CRON_JOB))
    body["spec"].update(spec)
    body["spec"]["jobTemplate"]["spec"]["template"]["metadata"]["annotations"][RUN_SECONDS] = str(run_seconds)
    return body


async def start(cluster, *controllers: str, nodes: int = 1) -> None:
    await cluster.start_controllers(*(f"{each}-controller" for each in controllers))
    if nodes:
        await cluster.add_nodes(nodes)
        await cluster.start_scheduler()


async def test_every_namespace_has_a_default_service_account_again_after_it_was_deleted(cluster):
    await start(cluster, "serviceaccount", nodes=0)
    await cluster.create(make_namespace("team"))
    await cluster.settle()
    accounts = {item.namespace for item in await cluster.list(ServiceAccount) if item.name == "default"}
    assert {"default", "team"} <= accounts
    [account] = await cluster.list(ServiceAccount, "team")
    await cluster.client.delete(SERVICE_ACCOUNTS, "default", "team", uid=account.uid)
    await cluster.settle()
    [again] = await cluster.list(ServiceAccount, "team")
    assert again.uid != account.uid


async def test_a_quota_says_what_is_used_and_gives_back_what_is_freed(cluster):
    await start(cluster, "resourcequota", nodes=0)
    hard = {"pods": "3", "requests.cpu": "2", "configmaps": "5", "count/jobs.batch": "4"}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "small"}, "spec": {"hard": hard}}
    await cluster.client.create(RESOURCE_QUOTAS, quota, "default")
    await cluster.settle()
    await cluster.create(make_pod("a", cpu="500m"), make_pod("b", cpu="1"))
    await cluster.create(make_config_map("c"))
    await cluster.settle()
    used = (await cluster.get(ResourceQuota, "small")).status.used
    assert used == {"pods": "2", "requests.cpu": "1500m", "configmaps": "1", "count/jobs.batch": "0"}
    await cluster.client.delete(PODS, "b", "default")
    await cluster.settle()
    assert (await cluster.get(ResourceQuota, "small")).status.used["requests.cpu"] == "500m"


async def test_pods_of_a_node_that_is_gone_are_removed_after_a_quarantine(cluster):
    await start(cluster, "pod-garbage-collector", nodes=2)
    await cluster.create(make_pod("lost", node="node-0"), make_pod("kept", node="node-1"))
    await cluster.settle()
    cluster.kill("hollow-nodes")
    await cluster.client.delete(NODES, "node-0")
    await cluster.advance(30)
    assert len(await cluster.list(Pod)) == 2
    await cluster.advance(60)
    assert [pod.name for pod in await cluster.list(Pod)] == ["kept"]


async def test_a_finished_job_goes_after_its_time_to_live(cluster):
    await start(cluster, "job", "ttl-after-finished", "garbage-collector")
    job = make_job("once", template=make_pod(annotations={RUN_SECONDS: "5"}))
    spec = msgspec.structs.replace(job.spec, ttl_seconds_after_finished=100)
    await cluster.create(msgspec.structs.replace(job, spec=spec))
    await cluster.advance(60)
    assert len(await cluster.list(Job)) == 1
    await cluster.advance(100)
    assert await cluster.list(Job) == []
    assert await cluster.list(Pod) == []


async def test_a_failing_job_waits_longer_each_time_and_gives_up_at_its_limit(cluster):
    await start(cluster, "job")
    failing = make_pod(annotations={RUN_SECONDS: "1", EXIT_CODE: "3"})
    await cluster.create(make_job("bad", backoff_limit=3, template=failing))
    await cluster.settle()
    await cluster.advance(300)
    job = await cluster.get(Job, "bad")
    assert job.status.failed == 4
    assert [(item.type, item.reason) for item in job.status.conditions if item.status == "True"][-1] == (
        "Failed",
        "BackoffLimitExceeded",
    )
    starts = sorted(pod.metadata.creation_timestamp for pod in await cluster.list(Pod))
    waits = [(after - before).total_seconds() for before, after in pairwise(starts)]
    assert all(later > earlier * 1.5 for earlier, later in pairwise(waits))


async def test_a_pod_whose_release_got_lost_is_released_and_counted_all_the_same(cluster):
    await start(cluster, "job")
    await cluster.create(make_job("once", template=make_pod(annotations={RUN_SECONDS: "5"})))
    await cluster.advance(3)
    cluster.components["controllers"].faults.lose_requests(verb="patch", resource="pods")
    await cluster.settle()
    assert (await cluster.get(Job, "once")).status.succeeded == 1
    assert not any(pod.metadata.finalizers for pod in await cluster.list(Pod))


async def test_a_run_that_cannot_be_replaced_keeps_the_next_one_waiting(cluster):
    await start(cluster, "cronjob", "job", "garbage-collector")
    body = cron_job(run_seconds=3_600, concurrencyPolicy="Replace")
    await cluster.client.create(CRONJOBS, body, "default")
    await cluster.advance(11 * 60)
    [first] = await cluster.list(Job)
    refusing = cluster.components["controllers"].faults.fail(verb="delete", resource="jobs", times=-1)
    await cluster.advance(10 * 60)
    assert [job.uid for job in await cluster.list(Job)] == [first.uid]
    cluster.components["controllers"].faults.take_back(refusing)
    await cluster.advance(20 * 60)
    [last] = await cluster.list(Job)
    assert last.uid != first.uid


async def test_a_cron_job_runs_on_time_and_keeps_its_history_short(cluster):
    await start(cluster, "cronjob", "job", "garbage-collector")
    await cluster.client.create(CRONJOBS, cron_job(), "default")
    await cluster.advance(45 * 60)
    jobs = await cluster.list(Job)
    assert len(jobs) == 2
    minutes = sorted(job.metadata.creation_timestamp.minute for job in jobs)
    assert minutes == [30, 40]
    last = (await cluster.get(CronJob, "report")).status
    assert last.last_schedule_time.minute == 40
    assert last.last_successful_time - last.last_schedule_time < timedelta(minutes=1)
    assert last.active == ()


@pytest.mark.parametrize(("policy", "running", "made"), [("Allow", 3, 3), ("Forbid", 1, 1), ("Replace", 1, 3)])
async def test_runs_that_overlap_follow_the_concurrency_policy(cluster, policy, running, made):
    await start(cluster, "cronjob", "job", "garbage-collector")
    body = cron_job(run_seconds=3_600, concurrencyPolicy=policy)
    await cluster.client.create(CRONJOBS, body, "default")
    await cluster.advance(30)
    seen: set[str] = set()
    for _ in range(3):
        await cluster.advance(10 * 60)
        seen |= {job.uid for job in await cluster.list(Job)}
    assert len((await cluster.get(CronJob, "report")).status.active) == running
    assert len(await cluster.list(Job)) == running
    assert len(seen) == made


async def test_a_suspended_cron_job_makes_nothing_and_catches_up_once(cluster):
    await start(cluster, "cronjob", nodes=0)
    await cluster.client.create(CRONJOBS, cron_job(suspend=True), "default")
    await cluster.advance(35 * 60)
    assert await cluster.list(Job) == []
    await cluster.client.patch(CRONJOBS, "report", "default", {"spec": {"suspend": False}})
    await cluster.advance(60)
    assert len(await cluster.list(Job)) == 1


async def test_the_garbage_collector_asks_again_soon_for_kinds_it_was_not_told_of(cluster):
    deaf = cluster.faults.strike_when(Action.LOSE_REQUEST, lambda call: not call.resource)
    await start(cluster, "garbage-collector", nodes=0)
    await cluster.create(make_config_map("owner"))
    owner = (await cluster.get(ConfigMap, "owner")).uid
    reference = OwnerReference(api_version="v1", kind="ConfigMap", name="owner", uid=owner)
    owned = make_config_map("owned")
    metadata = msgspec.structs.replace(owned.metadata, owner_references=(reference,))
    await cluster.create(msgspec.structs.replace(owned, metadata=metadata))
    await cluster.client.delete(CONFIGMAPS, "owner", "default")
    await cluster.advance(60)
    assert "owned" in {item.name for item in await cluster.list(ConfigMap)}
    cluster.faults.take_back(deaf)
    await cluster.advance(10)
    assert "owned" not in {item.name for item in await cluster.list(ConfigMap)}


async def test_a_pod_whose_deletion_is_stuck_is_not_held_against_the_quota(cluster):
    await start(cluster, "resourcequota", nodes=1)
    quota = {"metadata": {"name": "small"}, "spec": {"hard": {"pods": "1", "count/pods": "5"}}}
    await cluster.client.create(RESOURCE_QUOTAS, quota, "default")
    await cluster.create(make_pod("p", node="node-0"))
    await cluster.settle()
    cluster.fail_node("node-0")
    await cluster.client.delete(PODS, "p", "default")
    await cluster.advance(400)
    status = (await cluster.get(ResourceQuota, "small")).status
    assert status.used == {"pods": "0", "count/pods": "1"}
    await cluster.create(make_pod("in-its-place"))


async def test_a_deleted_namespace_takes_everything_in_it_along(cluster):
    await start(cluster, "namespace", "garbage-collector", "job")
    await cluster.create(make_namespace("team"))
    await cluster.create(make_config_map("c", "team"), make_config_map("kept"))
    await cluster.create(make_pod("p", "team"))
    await cluster.create(make_job("j", "team"))
    await cluster.advance(3)
    await cluster.client.delete(NAMESPACES, "team")
    await cluster.settle()
    assert "team" not in {item.name for item in await cluster.list(Namespace)}
    assert await cluster.list(Pod, "team") == []
    assert await cluster.list(JOBS, "team") == []
    assert await cluster.list(ConfigMap, "team") == []
    assert "kept" in {item.name for item in await cluster.list(ConfigMap, "default")}


async def test_a_budget_counts_healthy_pods_and_says_how_many_may_go(cluster):
    await start(cluster, "disruption", "replicaset", "deployment", nodes=2)
    await cluster.create(make_disruption_budget("web", max_unavailable="25%"))
    await cluster.create(make_deployment("web", replicas=7))
    await cluster.settle()
    status = (await cluster.get(PodDisruptionBudget, "web")).status
    assert (status.expected_pods, status.current_healthy, status.desired_healthy) == (7, 7, 5)
    assert status.disruptions_allowed == 2
    await cluster.client.evict("default", (await cluster.list(Pod))[0].name)
    await cluster.settle()
    status = (await cluster.get(PodDisruptionBudget, "web")).status
    assert (status.current_healthy, status.disruptions_allowed, status.disrupted_pods) == (7, 2, {})
