"""A controller manager killed at any request, before or after its effect, and started anew: the end is the same.

Nothing but requests changes what the server holds, so these are all the moments at which a death can matter. Each
scenario is played once undisturbed, which tells how many requests there are and how it ends; then with a death at one
request after the other.
"""

import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest

from skysail.api.apps import DaemonSet, DaemonSetSpec, StatefulSet, StatefulSetSpec
from skysail.api.kinds import (
    CONTROLLER_REVISIONS,
    DAEMONSETS,
    DEPLOYMENTS,
    JOBS,
    PODS,
    REPLICASETS,
    STATEFULSETS,
    Kind,
)
from skysail.api.meta import ObjectMeta
from skysail.api.raw import Raw
from skysail.simulator.clock import run_virtual
from skysail.simulator.hollow import HollowSettings
from skysail.simulator.hollow_pods import RUN_SECONDS, PodLatencies
from skysail.testing import make_deployment, make_job, make_pod
from skysail.testing.calls import Call
from skysail.testing.cluster import Cluster
from skysail.testing.faults import Action
from tests.controllers.test_chaos_invariants import labelled

SEEDS = int(os.environ.get("SOAK_SEEDS", "10"))
CONTROLLERS = ("deployment", "replicaset", "statefulset", "daemonset", "job", "garbage-collector")
KINDS = (DEPLOYMENTS, REPLICASETS, STATEFULSETS, DAEMONSETS, JOBS, PODS, CONTROLLER_REVISIONS)
SLOW_PODS = HollowSettings(latencies=PodLatencies(start_seconds=1.0, ready_seconds=1.0, stop_seconds=2.0))
NEW_IMAGE = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "app:2"}]}}}}
VOLATILE = ("uid", "resourceVersion", "generation", "observedGeneration", "managedFields", "podIP", "podIPs", "hostIP")
UNLIKE_IN_PODS = ("name", "nodeName", "containerStatuses", "hostname")


@dataclass(frozen=True)
class Scenario:
    """Something that controllers do from start to end.

    Attributes:
        prepare: Done before, undisturbed.
        act: Begins it.
    """

    prepare: Callable[[Cluster], Awaitable[object]]
    act: Callable[[Cluster], Awaitable[object]]


async def _nothing(cluster: Cluster) -> None:
    """No preparation."""


async def _deploy(cluster: Cluster) -> None:
    await cluster.create(make_deployment("web", replicas=4, max_surge=2, max_unavailable=1))


async def _make_stateful_set(cluster: Cluster) -> None:
    selector, template = labelled("db")
    spec = StatefulSetSpec(replicas=3, selector=selector, template=template, service_name="db")
    await cluster.create(StatefulSet(metadata=ObjectMeta(name="db", namespace="default"), spec=spec))


async def _make_daemon_set(cluster: Cluster) -> None:
    selector, template = labelled("agent")
    spec = DaemonSetSpec(selector=selector, template=template)
    await cluster.create(DaemonSet(metadata=ObjectMeta(name="agent", namespace="default"), spec=spec))


async def _make_job(cluster: Cluster) -> None:
    template = make_pod(annotations={RUN_SECONDS: "2"})
    await cluster.create(make_job("sums", completions=4, parallelism=2, template=template))


def _with_new_image(kind: Kind[Any], name: str) -> Callable[[Cluster], Awaitable[object]]:
    return lambda cluster: cluster.client.patch(kind, name, "default", NEW_IMAGE)


def _deleted(propagation: str) -> Callable[[Cluster], Awaitable[object]]:
    return lambda cluster: cluster.client.delete(DEPLOYMENTS, "web", "default", propagation=propagation)


SCENARIOS = {
    "deployment": Scenario(_nothing, _deploy),
    "deployment-rollout": Scenario(_deploy, _with_new_image(DEPLOYMENTS, "web")),
    "deployment-scaling": Scenario(_deploy, lambda cluster: cluster.client.scale(DEPLOYMENTS, "web", "default", 2)),
    "deployment-foreground-deletion": Scenario(_deploy, _deleted("Foreground")),
    "deployment-background-deletion": Scenario(_deploy, _deleted("Background")),
    "deployment-orphaning": Scenario(_deploy, _deleted("Orphan")),
    "stateful-set-rollout": Scenario(_make_stateful_set, _with_new_image(STATEFULSETS, "db")),
    "daemon-set-rollout": Scenario(_make_daemon_set, _with_new_image(DAEMONSETS, "agent")),
    "job": Scenario(_nothing, _make_job),
}


async def play(scenario: Scenario, *deaths: int, after: bool = False) -> tuple[dict[str, list[Any]], int]:
    """The state in the end, and how many requests the controllers made.

    Args:
        scenario: What to play.
        deaths: At which requests the controllers die; each after the first counts from the restart.
        after: Whether the server still does what the fatal request asks.
    """
    async with Cluster() as cluster:
        await cluster.start_controllers(*(f"{name}-controller" for name in CONTROLLERS))
        await cluster.add_nodes(3, SLOW_PODS)
        await cluster.start_scheduler()
        await scenario.prepare(cluster)
        await cluster.settle()
        component = cluster.components["controllers"]
        requests: list[Call] = []
        component.faults.strike_when(Action.DELAY, lambda call: requests.append(call) is not None)
        await scenario.act(cluster)
        for number in deaths:
            component.faults.crash_at(number, after=after)
            await cluster.settle()
            component.faults.clear()
            if not component.has_crashed:
                break
            component = await cluster.restart("controllers")
        await cluster.settle()
        assert component.is_running
        return await normal_form(cluster), len(requests)


async def normal_form(cluster: Cluster) -> dict[str, list[Any]]:
    """What there is, without what differs between any two runs."""
    found: dict[str, list[Any]] = {}
    for kind in KINDS:
        raw_kind: Kind[Raw] = Kind(kind.group, kind.version, kind.name, kind.plural, kind.namespaced, dict)
        volatile = VOLATILE + UNLIKE_IN_PODS if kind is PODS else VOLATILE
        found[kind.plural] = sorted((_stable(obj, volatile) for obj in await cluster.list(raw_kind)), key=repr)
    return found


def _stable(value: Any, volatile: tuple[str, ...]) -> Any:
    if isinstance(value, dict):
        return {
            key: _stable(each, volatile)
            for key, each in value.items()
            if not (key in volatile or key.endswith(("Time", "Timestamp", "At")))
        }
    return [_stable(each, volatile) for each in value] if isinstance(value, list) else value


@cache
def undisturbed(name: str) -> tuple[dict[str, list[Any]], int]:
    return run_virtual(play(SCENARIOS[name]))


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_death_at_any_request_changes_nothing_in_the_end(name: str, after: bool) -> None:
    wanted, requests = undisturbed(name)
    assert requests > 10
    step = max(1, requests * 2 // SEEDS)
    for number in range(1 + (step // 2 if after else 0), requests + 1, step):
        found, _ = run_virtual(play(SCENARIOS[name], number, after=after))
        assert found == wanted, f"killed {'after' if after else 'before'} request {number} of {requests}"
