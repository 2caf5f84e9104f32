"""A status that cannot be written now is written later, whatever was wrong, and whichever controller it is of."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from skysail.api.errors import (
    ApiError,
    Conflict,
    Forbidden,
    InternalError,
    ServiceUnavailable,
    TooManyRequests,
)
from skysail.api.kinds import (
    CRONJOBS,
    DAEMONSETS,
    DEPLOYMENTS,
    JOBS,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    REPLICASETS,
    RESOURCE_QUOTAS,
    STATEFULSETS,
    STORAGE_CLASSES,
    Kind,
)
from skysail.api.raw import Raw
from skysail.simulator.clock import run_virtual
from skysail.simulator.hollow_pods import RUN_SECONDS
from skysail.testing import make_deployment, make_disruption_budget, make_job, make_namespace, make_pod
from skysail.testing.calls import Call
from skysail.testing.cluster import Cluster
from skysail.testing.faults import FOR_EVER, Action, Faults, Rule

REPORTING = (
    DEPLOYMENTS, REPLICASETS, STATEFULSETS, DAEMONSETS, JOBS, CRONJOBS, POD_DISRUPTION_BUDGETS, RESOURCE_QUOTAS,
    NAMESPACES, NODES, PODS, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES,
)  # fmt: skip
REFUSALS: tuple[type[ApiError], ...] = (Conflict, Forbidden, InternalError, ServiceUnavailable, TooManyRequests)
LOSSES = (Action.LOSE_REQUEST, Action.LOSE_ANSWER)
FAILURES = 4
MOST_TRIES = (60, 500)
"""In eight minutes of every try failing: of most kinds; of nodes, which are looked at every five seconds anyway."""


def workload(name: str, **spec: object) -> Raw:
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "main", "image": "app:1"}]}}
    selector = {"matchLabels": {"app": name}}
    return {"metadata": {"name": name}, "spec": {"selector": selector, "template": template, **spec}}


async def use_everything(cluster: Cluster) -> None:
    """Give every controller that reports a status one to report."""
    client = cluster.client
    hollow_class = {"metadata": {"name": "disk"}, "provisioner": "skysail.io/hollow"}
    await client.create(STORAGE_CLASSES, hollow_class)
    await cluster.create(make_namespace("leaving"), make_deployment("web", replicas=3))
    quota = {"metadata": {"name": "some"}, "spec": {"hard": {"pods": "50"}}}
    await client.create(RESOURCE_QUOTAS, quota, "default")
    await cluster.create(make_disruption_budget("web", min_available="50%"))
    await cluster.create(make_job("sums", completions=2, template=make_pod(annotations={RUN_SECONDS: "2"})))
    claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "disk"}}
    claim["spec"]["resources"] = {"requests": {"storage": "1Gi"}}  # type: ignore[index]
    sets = workload("db", replicas=2, serviceName="db", volumeClaimTemplates=[claim])
    await client.create(STATEFULSETS, sets, "default")
    await client.create(DAEMONSETS, workload("agent"), "default")
    job = {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "c"}]}}}
    cron_job = {"metadata": {"name": "tick"}, "spec": {"schedule": "*/2 * * * *", "jobTemplate": {"spec": job}}}
    cron_job["spec"]["startingDeadlineSeconds"] = 100  # type: ignore[index]
    await client.create(CRONJOBS, cron_job, "default")
    await cluster.advance(100)
    await client.patch(NODES, "node-0", "", {"spec": {"taints": [{"key": "out", "effect": "NoExecute"}]}})
    await client.delete(NAMESPACES, "leaving")
    cluster.fail_node("node-1")
    await cluster.advance(90)
    cluster.recover_node("node-1")
    await client.patch(CRONJOBS, "tick", "default", {"spec": {"suspend": True}})


async def reports(cluster: Cluster) -> dict[str, Any]:
    """All statuses, without what differs between two runs."""
    found: dict[str, Any] = {}
    for kind in REPORTING:
        for obj in (await cluster.client.list(as_raw(kind))).items:
            meta = obj["metadata"]
            name = meta.get("generateName") or meta["name"]
            if kind is PERSISTENT_VOLUMES:  # called after the claim's uid
                name = obj["spec"]["claimRef"]["name"]
            found.setdefault(f"{kind.plural} {name}", []).append(timeless(obj.get("status")))
    return {name: sorted(each, key=str) for name, each in found.items()}


def as_raw(kind: Kind[Any]) -> Kind[Raw]:
    return Kind(kind.group, kind.version, kind.name, kind.plural, kind.namespaced, dict)


def timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: timeless(each) for key, each in value.items() if not key.endswith(("Time", "At")) and key not in UNLIKE
        }
    return [timeless(each) for each in value] if isinstance(value, list) else value


UNLIKE = ("uid", "resourceVersion", "name", "podIP", "podIPs", "hostIP", "message", "active")


def each_fails_at_first(times: int) -> tuple[Callable[[Call], bool], Counter[Call]]:
    """Whether a call is among the first so many writes of one object's status, and how many have been."""
    seen: Counter[Call] = Counter()

    def matches(call: Call) -> bool:
        if call.subresource != "status" or not call.is_write or seen[call] == times:
            return False
        seen[call] += 1
        return True

    return matches, seen


async def play(how: type[ApiError] | Action | None, failures: int = FAILURES) -> tuple[dict[str, Any], Counter[Call]]:
    """What is reported in the end, and what failed how often on the way there."""
    matches, seen = each_fails_at_first(failures)
    async with Cluster() as cluster:
        await cluster.add_nodes(3)
        await cluster.start_controllers()
        await cluster.start_scheduler()
        faults = cluster.components["controllers"].faults
        if how is not None:
            strike(faults, how, matches)
        await use_everything(cluster)
        await cluster.advance(300)
        faults.clear()
        return await reports(cluster), seen


def strike(faults: Faults, how: type[ApiError] | Action, matches: Callable[[Call], bool]) -> None:
    """Have all matching calls fail in that way."""
    if isinstance(how, Action):
        faults.strike_when(how, matches)
    else:
        faults.rules.append(Rule(Action.FAIL, matches, times=FOR_EVER, error=how("injected by a test")))


def name_of(how: type[ApiError] | Action) -> str:
    return how.name if isinstance(how, Action) else how.__name__


@pytest.fixture(scope="module")
def undisturbed() -> dict[str, Any]:
    return run_virtual(play(None))[0]


@pytest.mark.parametrize("how", [*REFUSALS, *LOSSES], ids=name_of)
def test_a_status_whose_write_fails_is_not_lost(how: type[ApiError] | Action, undisturbed: dict[str, Any]) -> None:
    found, failed = run_virtual(play(how))
    assert {call.resource for call in failed} >= {kind.plural for kind in REPORTING} - {"namespaces"}
    if how is not Action.LOSE_ANSWER:  # what was done after all need not be tried again
        assert {call.resource for call, times in failed.items() if times < FAILURES} <= {"pods"}
    assert found == undisturbed


@pytest.mark.parametrize("how", [Conflict, InternalError, Action.LOSE_REQUEST], ids=name_of)
def test_a_status_that_can_never_be_written_is_tried_ever_more_rarely(how: type[ApiError] | Action) -> None:
    _, failed = run_virtual(play(how, failures=10_000))
    assert {str(call): times for call, times in failed.items() if times > MOST_TRIES[call.resource == "nodes"]} == {}


@pytest.mark.parametrize("how", [InternalError, Action.LOSE_REQUEST], ids=name_of)
def test_no_controller_dies_of_requests_that_fail(how: type[ApiError] | Action) -> None:
    async def run() -> None:
        async with Cluster() as cluster:
            await cluster.add_nodes(3)
            await cluster.start_controllers()
            await cluster.start_scheduler()
            controllers = cluster.components["controllers"]
            await use_everything(cluster)
            strike(controllers.faults, how, lambda call: call.verb != "watch")
            cluster.kill("hollow-nodes")
            await cluster.client.delete(NODES, "node-2")
            await cluster.advance(200)
            assert controllers.faults.struck > 100
            assert controllers.is_running

    run_virtual(run())
