"""What Kubernetes' end-to-end tests state of jobs and cron jobs, retold and run on any server."""

from datetime import timedelta
from typing import Any

import pytest

from skysail.api.batch import Job
from skysail.api.core import Pod
from skysail.api.kinds import CRONJOBS, JOBS, PODS
from skysail.api.meta import format_time
from skysail.client.api_client import ApiClient
from skysail.controllers.pods import controller_of, is_ready
from tests.conformance.conftest import CLOCK
from tests.conformance.objects import job
from tests.conformance.seen import all_ready, has_ended
from tests.conformance.waiting import wait_until

pytestmark = pytest.mark.asyncio(loop_scope="module")
FAILURES = "batch.kubernetes.io/job-index-failure-count"
FOR_EVER = 900.0


def indexed(name: str, completions: int, **spec: Any) -> dict[str, Any]:
    """A job of that many indexes, all at once."""
    return job(name, completions=completions, parallelism=completions, completionMode="Indexed", **spec)


async def test_an_exit_code_may_end_the_job_at_once(api: ApiClient, space: str) -> None:
    rule = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [3]}}
    body = job("bad", exit_code=3, completions=2, parallelism=1, backoffLimit=5, podFailurePolicy={"rules": [rule]})
    await api.create(JOBS, body, space)
    [failed] = await wait_until(api, JOBS, space, has_ended("Failed"))
    assert [(item.type, item.reason) for item in failed.status.conditions] == [
        ("FailureTarget", "PodFailurePolicy"), ("Failed", "PodFailurePolicy"),
    ]  # fmt: skip
    assert failed.status.failed == 1


async def test_an_eviction_does_not_count_as_a_failure_if_the_policy_says_so(api: ApiClient, space: str) -> None:
    rule = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
    body = job("kept", run_seconds=FOR_EVER, backoffLimit=0, podFailurePolicy={"rules": [rule]})
    await api.create(JOBS, body, space)
    [first] = await wait_until(api, PODS, space, all_ready(1))
    await api.evict(space, first.name)
    await wait_until(api, PODS, space, lambda pods: any(is_ready(each) and each.uid != first.uid for each in pods))
    [found] = (await api.list_all(JOBS, space)).items
    assert (found.status.active, found.status.failed, found.status.conditions) == (1, 0, ())


async def test_suspending_a_job_deletes_its_pods(api: ApiClient, space: str) -> None:
    await api.create(JOBS, job("slow", run_seconds=FOR_EVER, parallelism=2, completions=2), space)
    await wait_until(api, PODS, space, all_ready(2))
    await api.patch(JOBS, "slow", space, {"spec": {"suspend": True}})
    await wait_until(api, PODS, space, lambda pods: not pods)
    [suspended] = await wait_until(api, JOBS, space, lambda found: found[0].status.active == 0)
    assert suspended.status.conditions[-1].type == "Suspended"


async def test_a_pod_is_replaced_only_once_it_has_ended_if_the_policy_says_so(api: ApiClient, space: str) -> None:
    await api.create(JOBS, job("one", run_seconds=FOR_EVER, podReplacementPolicy="Failed"), space)
    [first] = await wait_until(api, PODS, space, all_ready(1))
    listed = await api.list_all(PODS, space)
    await api.delete(PODS, first.name, space)
    alive = {first.uid}
    async for event in api.watch(PODS, space, resource_version=listed.resource_version):
        if event.object.status.phase in ("Failed", "Succeeded") or event.type == "DELETED":
            alive.discard(event.object.uid)
        elif event.type == "ADDED":
            assert not alive
            break


async def test_a_job_has_succeeded_as_soon_as_its_policy_is_met(api: ApiClient, space: str) -> None:
    policy = {"rules": [{"succeededCount": 1}]}
    await api.create(JOBS, indexed("some", 3, run_seconds=2, successPolicy=policy), space)
    [done] = await wait_until(api, JOBS, space, has_ended("Complete"))
    assert ("SuccessCriteriaMet", "SuccessPolicy") in [(item.type, item.reason) for item in done.status.conditions]
    assert done.status.terminating in (0, None)


async def test_every_index_is_tried_though_all_fail(api: ApiClient, space: str) -> None:
    await api.create(JOBS, indexed("try", 2, exit_code=1, backoffLimitPerIndex=0), space)
    [failed] = await wait_until(api, JOBS, space, has_ended("Failed"))
    assert (failed.status.failed_indexes, failed.status.failed) == ("0,1", 2)
    assert failed.status.conditions[-1].reason == "FailedIndexes"


async def test_too_many_failed_indexes_end_the_job(api: ApiClient, space: str) -> None:
    body = indexed("try", 4, exit_code=1, backoffLimitPerIndex=0, maxFailedIndexes=1)
    await api.create(JOBS, {**body, "spec": {**body["spec"], "parallelism": 1}}, space)
    [failed] = await wait_until(api, JOBS, space, has_ended("Failed"))
    assert failed.status.conditions[-1].reason == "MaxFailedIndexesExceeded"
    assert failed.status.failed == 2


async def test_an_index_may_be_given_up_for_an_exit_code(api: ApiClient, space: str) -> None:
    rule = {"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [7]}}
    body = indexed("try", 2, exit_code=7, backoffLimitPerIndex=3, podFailurePolicy={"rules": [rule]})
    await api.create(JOBS, body, space)
    [failed] = await wait_until(api, JOBS, space, has_ended("Failed"))
    assert (failed.status.failed_indexes, failed.status.failed) == ("0,1", 2)


async def test_a_pod_tells_how_often_its_index_has_failed(api: ApiClient, space: str) -> None:
    await api.create(JOBS, indexed("try", 1, exit_code=1, backoffLimitPerIndex=1), space)
    pods = await wait_until(api, PODS, space, lambda pods: len(pods) == 2)
    assert sorted(each.metadata.annotations[FAILURES] for each in pods) == ["0", "1"]


async def test_pods_go_with_the_job(api: ApiClient, space: str) -> None:
    await api.create(JOBS, job("slow", run_seconds=FOR_EVER), space)
    await wait_until(api, PODS, space, all_ready(1))
    await api.delete(JOBS, "slow", space, propagation="Foreground")
    await wait_until(api, JOBS, space, lambda found: not found)
    assert (await api.list_all(PODS, space)).items == ()


async def test_a_job_adopts_orphans_and_releases_pods_that_match_no_longer(api: ApiClient, space: str) -> None:
    await api.create(JOBS, job("own", run_seconds=FOR_EVER), space)
    [first] = await wait_until(api, PODS, space, all_ready(1))
    await api.patch(PODS, first.name, space, {"metadata": {"ownerReferences": None}})
    await wait_until(api, PODS, space, lambda pods: all(controller_of(each) is not None for each in pods))
    await api.patch(PODS, first.name, space, {"metadata": {"labels": None}})

    def is_released(pods: list[Pod]) -> bool:
        return any(each.name == first.name and controller_of(each) is None for each in pods)

    await wait_until(api, PODS, space, is_released)


async def test_failures_beyond_the_limit_end_the_job(api: ApiClient, space: str) -> None:
    await api.create(JOBS, job("bad", exit_code=1, backoffLimit=1, completions=2, parallelism=2), space)
    [failed] = await wait_until(api, JOBS, space, has_ended("Failed"))
    assert failed.status.conditions[-1].reason == "BackoffLimitExceeded"
    assert failed.status.failed == 2


async def test_the_status_counts_ready_pods(api: ApiClient, space: str) -> None:
    await api.create(JOBS, job("slow", run_seconds=FOR_EVER, parallelism=2, completions=2), space)
    [found] = await wait_until(api, JOBS, space, lambda found: found[0].status.ready == 2)
    assert found.status.active == 2


async def test_a_job_that_somebody_else_manages_is_left_alone(api: ApiClient, space: str) -> None:
    await api.create(JOBS, job("theirs", managedBy="example.com/theirs"), space)
    await api.create(JOBS, job("ours"), space)
    found = await wait_until(
        api, JOBS, space, lambda found: any(each.name == "ours" and each.status.succeeded == 1 for each in found)
    )
    theirs = next(each for each in found if each.name == "theirs")
    assert (theirs.status.start_time, theirs.status.active) == (None, 0)


# Cron jobs: what is due at once, because its last run was long ago


def every_minute(name: str, **spec: Any) -> dict[str, Any]:
    body = job(name, run_seconds=FOR_EVER)
    return {"metadata": {"name": name}, "spec": {"schedule": "* * * * *", "jobTemplate": body, **spec}}


async def make_due(api: ApiClient, space: str, name: str) -> None:
    past = format_time(CLOCK.now() - timedelta(minutes=3))
    await api.patch(CRONJOBS, name, space, {"status": {"lastScheduleTime": past}}, subresource="status")


async def test_a_cron_job_starts_the_run_that_is_due_and_lists_it(api: ApiClient, space: str) -> None:
    await api.create(CRONJOBS, every_minute("tick", suspend=True), space)
    await make_due(api, space, "tick")
    await api.patch(CRONJOBS, "tick", space, {"spec": {"suspend": False}})
    [made] = await wait_until(api, JOBS, space, lambda found: len(found) >= 1)
    assert made.metadata.annotations["batch.kubernetes.io/cronjob-scheduled-timestamp"]
    await wait_until(api, CRONJOBS, space, lambda found: [each.name for each in found[0].status.active] == [made.name])
    await api.delete(JOBS, made.name, space, propagation="Background")
    await wait_until(
        api, CRONJOBS, space, lambda found: made.name not in {each.name for each in found[0].status.active}
    )


async def test_a_suspended_cron_job_starts_nothing(api: ApiClient, space: str) -> None:
    await api.create(CRONJOBS, every_minute("tick", suspend=True), space)
    await make_due(api, space, "tick")
    await api.create(JOBS, job("mark"), space)
    await wait_until(api, JOBS, space, has_ended("Complete"))
    assert [each.name for each in (await api.list_all(JOBS, space)).items] == ["mark"]


@pytest.mark.parametrize("policy", ["Forbid", "Replace", "Allow"])
async def test_a_run_meets_the_one_before_as_the_policy_says(api: ApiClient, space: str, policy: str) -> None:
    await api.create(CRONJOBS, every_minute("tick", concurrencyPolicy=policy, suspend=True), space)
    [cron_job] = (await api.list_all(CRONJOBS, space)).items
    owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "tick", "uid": cron_job.uid, "controller": True}
    running = job("before", run_seconds=FOR_EVER)
    before = await api.create(JOBS, {**running, "metadata": {"name": "before", "ownerReferences": [owner]}}, space)
    reference = {"apiVersion": "batch/v1", "kind": "Job", "name": "before", "namespace": space, "uid": before.uid}
    await api.patch(CRONJOBS, "tick", space, {"status": {"active": [reference]}}, subresource="status")
    await make_due(api, space, "tick")
    await api.patch(CRONJOBS, "tick", space, {"spec": {"suspend": False}})
    if policy == "Forbid":
        await api.create(JOBS, job("mark"), space)
        await wait_until(api, JOBS, space, lambda found: any(each.status.succeeded for each in found))
        assert {each.name for each in (await api.list_all(JOBS, space)).items} == {"before", "mark"}
        return
    left = {"before"} if policy == "Allow" else set()

    def is_started(found: list[Job]) -> bool:
        names = {each.name for each in found}
        return names & {"before"} == left and len(names) > len(left)

    await wait_until(api, JOBS, space, is_started)
