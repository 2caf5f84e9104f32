"""Deadlines of any length, and times of any year, stop no controller: the server takes whole numbers of 64 bits."""

from typing import Any

import pytest

from skysail.api.batch import CronJob, Job
from skysail.api.kinds import CRONJOBS, JOBS
from skysail.api.raw import Raw

LONGEST = 2**63 - 1


def job_spec(**spec: Any) -> Raw:
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "work:1"}]}
    return {"template": {"spec": pod}, **spec}


@pytest.mark.parametrize("seconds", [LONGEST, 10**12])
async def test_a_job_with_a_deadline_beyond_all_calendars_runs_to_its_end(cluster, seconds):
    await cluster.add_nodes(1)
    await cluster.start_controllers()
    await cluster.start_scheduler()
    body = {"metadata": {"name": "work"}, "spec": job_spec(activeDeadlineSeconds=seconds)}
    await cluster.client.create(JOBS, body, "default")
    await cluster.settle()
    [job] = await cluster.list(Job)
    assert job.status.succeeded == 1


@pytest.mark.parametrize("seconds", [LONGEST, 10**12])
async def test_a_cron_job_that_may_start_at_any_time_later_starts_when_it_is_due(cluster, seconds):
    await cluster.start_controllers("cronjob-controller")
    spec = {"schedule": "@yearly", "startingDeadlineSeconds": seconds, "jobTemplate": {"spec": job_spec()}}
    await cluster.client.create(CRONJOBS, {"metadata": {"name": "tick"}, "spec": spec}, "default")
    status = {"status": {"lastScheduleTime": "2020-06-01T00:00:00Z"}}
    await cluster.client.patch(CRONJOBS, "tick", "default", status, subresource="status")
    await cluster.settle()
    assert len(await cluster.list(Job)) == 1
    [cron_job] = await cluster.list(CronJob)
    assert cron_job.status.last_schedule_time.year == 2026
