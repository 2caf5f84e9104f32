"""In a namespace on its way out nothing can be made: the controllers take that for granted, and hold still."""

import logging
from collections import Counter

import pytest

from skysail.api.core import Pod
from skysail.api.kinds import CRONJOBS, DAEMONSETS, JOBS, NAMESPACES, PODS, STATEFULSETS
from skysail.api.ports import Request, Response, User
from skysail.testing import make_deployment, make_namespace
from skysail.testing.calls import Call, call_of
from skysail.testing.cluster import Cluster
from tests.controllers.test_failing_writes import workload

REFUSED = 403


def count_refusals(cluster: Cluster) -> Counter[Call]:
    """From now on, what is refused how often."""
    refused: Counter[Call] = Counter()
    handle = cluster.server.handle

    async def counting(request: Request, user: User) -> Response:
        response = await handle(request, user)
        if response.status == REFUSED:
            refused[call_of(request)] += 1
        return response

    cluster.server.handle = counting  # type: ignore[method-assign]
    return refused


async def test_creations_that_a_terminating_namespace_refuses_are_not_tried_again_and_again(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    await cluster.start_controllers()
    await cluster.add_nodes(3)
    await cluster.start_scheduler()
    await cluster.create(make_namespace("team"), make_deployment("web", namespace="team", replicas=2))
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "c"}]}}
    await cluster.client.create(JOBS, {"metadata": {"name": "j"}, "spec": {"template": template}}, "team")
    await cluster.client.create(STATEFULSETS, workload("db", replicas=2, serviceName="db"), "team")
    await cluster.client.create(DAEMONSETS, workload("agent"), "team")
    cron_job = {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": template}}}
    await cluster.client.create(CRONJOBS, {"metadata": {"name": "tick"}, "spec": cron_job}, "team")
    await cluster.advance(30)
    held = {"metadata": {"name": "held", "finalizers": ["a/b"]}, "spec": {"containers": [{"name": "c", "image": "c"}]}}
    await cluster.client.create(PODS, held, "team")
    refused = count_refusals(cluster)
    caplog.clear()
    with caplog.at_level(logging.INFO):
        await cluster.client.delete(NAMESPACES, "team")
        await cluster.client.patch(DAEMONSETS, "agent", "team", NEW_IMAGE)
        await cluster.advance(1_200)
        assert [pod.name for pod in await cluster.list(Pod, "team")] == ["held"]
        await cluster.client.patch(PODS, "held", "team", {"metadata": {"finalizers": None}})
        await cluster.settle()
    assert [each.name for each in await cluster.list(NAMESPACES) if each.name == "team"] == []
    assert {str(call): times for call, times in refused.items() if times > MOST_TRIES} == {}
    assert [record.getMessage() for record in caplog.records if record.levelno > logging.INFO] == []


NEW_IMAGE = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "app:2"}]}}}}
MOST_TRIES = 12
"""Whatever makes something for several owners, or once a minute, is refused more often than once."""
