"""A cluster in which all is as wanted is left alone; the examples in the controllers' docstrings hold."""

import doctest
import importlib
import pkgutil

import pytest

import skysail.controllers
from skysail.api.kinds import (
    CONFIGMAPS,
    CONTROLLER_REVISIONS,
    CRONJOBS,
    DAEMONSETS,
    DEPLOYMENTS,
    JOBS,
    NAMESPACES,
    NODES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    REPLICASETS,
    RESOURCE_QUOTAS,
    SERVICE_ACCOUNTS,
    STATEFULSETS,
)
from skysail.simulator.hollow_pods import RUN_SECONDS
from skysail.testing import make_deployment, make_disruption_budget, make_job, make_namespace, make_pod

KINDS = (
    CONFIGMAPS,
    CONTROLLER_REVISIONS,
    CRONJOBS,
    DAEMONSETS,
    DEPLOYMENTS,
    JOBS,
    NAMESPACES,
    NODES,
    PODS,
    POD_DISRUPTION_BUDGETS,
    REPLICASETS,
    RESOURCE_QUOTAS,
    SERVICE_ACCOUNTS,
    STATEFULSETS,
)


def workload(kind: str, **spec: object) -> dict[str, object]:
    template = {
        "metadata": {"labels": {"app": kind}},
        "spec": {"containers": [{"name": "main", "image": "app:1", "resources": {"limits": {"cpu": "1000m"}}}]},
    }
    selector = {"matchLabels": {"app": kind}}
    return {"metadata": {"name": kind}, "spec": {"selector": selector, "template": template, **spec}}


async def versions(cluster) -> dict[str, str]:
    return {
        f"{kind.plural} {item.namespace}/{item.name}": item.metadata.resource_version
        for kind in KINDS
        for item in await cluster.list(kind)
    }


async def test_with_nothing_to_do_nothing_is_written(cluster):
    await cluster.start_controllers()
    await cluster.add_nodes(4)
    await cluster.start_scheduler()
    await cluster.create(make_namespace("team"))
    await cluster.create(make_deployment("web", replicas=5), make_deployment("idle", replicas=0))
    await cluster.create(make_deployment("once", strategy="Recreate"), make_deployment("asleep", paused=True))
    await cluster.create(make_disruption_budget("web", min_available="50%"))
    await cluster.create(make_job("sums", completions=3, template=make_pod(annotations={RUN_SECONDS: "2"})))
    await cluster.client.create(STATEFULSETS, workload("db", replicas=2, serviceName="db"), "default")
    await cluster.client.create(DAEMONSETS, workload("agent"), "default")
    quota = {"metadata": {"name": "all"}, "spec": {"hard": {"pods": "50", "configmaps": "10"}}}
    await cluster.client.create(RESOURCE_QUOTAS, quota, "default")
    job = {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "c"}]}}}
    cron_job = {"metadata": {"name": "yearly"}, "spec": {"schedule": "@yearly", "jobTemplate": {"spec": job}}}
    await cluster.client.create(CRONJOBS, cron_job, "default")
    await cluster.settle()
    before = await versions(cluster)
    assert len(before) > 40
    await cluster.advance(1_800)
    assert await versions(cluster) == before


@pytest.mark.parametrize(
    "name", [module.name for module in pkgutil.walk_packages(skysail.controllers.__path__, "skysail.controllers.")]
)
def test_the_examples_in_docstrings_hold(name):
    module = importlib.import_module(name)
    assert doctest.testmod(module).failed == 0
