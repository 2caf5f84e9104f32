"""The scheduler at work on a server: it binds, explains, wakes up, and leaves others' pods alone."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from skysail.api.core import Pod
from skysail.api.kinds import EVENTS, NODES, PODS
from skysail.client.api_client import ApiClient
from skysail.simulator.hollow import without_not_ready
from tests.conformance.components import running_scheduler
from tests.conformance.objects import node, pod
from tests.conformance.waiting import wait_until

PROFILE = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
profiles: [{schedulerName: sky-conformance}]
"""


def ours(name: str, cpu: str = "100m", **spec: object) -> dict:
    return pod(name, cpu, schedulerName="sky-conformance", nodeSelector={"pool": "conformance"}, **spec)


@asynccontextmanager
async def nodes(client: ApiClient, *names: str) -> AsyncIterator[None]:
    """Nodes that are there while the block runs."""
    for name in names:
        made = await client.create(NODES, node(name, pool="conformance"))
        if patch := without_not_ready(made):
            await client.patch(NODES, name, "", patch)
    try:
        yield
    finally:
        for name in names:
            await client.delete(NODES, name)


def message_of(pod: Pod) -> str:
    return next((each.message for each in pod.status.conditions if each.type == "PodScheduled"), "")


async def remove_pods(client: ApiClient, namespace: str) -> None:
    for each in (await client.list_all(PODS, namespace)).items:
        await client.delete(PODS, each.name, namespace, grace_period_seconds=0)


async def test_pods_are_bound_and_say_so(client: ApiClient, namespace: str, config: Path) -> None:
    async with nodes(client, "sched-a", "sched-b"), running_scheduler(config, PROFILE):
        for number in range(6):
            await client.create(PODS, ours(f"p{number}"), namespace)
        bound = await wait_until(client, PODS, namespace, lambda pods: all(each.spec.node_name for each in pods))
        assert {each.spec.node_name for each in bound} == {"sched-a", "sched-b"}
        events = await wait_until(
            client, EVENTS, namespace, lambda events: sum(e.reason == "Scheduled" for e in events) == 6
        )
        messages = {event.message for event in events}
        assert f"Successfully assigned {namespace}/p0 to {bound[0].spec.node_name}" in messages or len(messages) == 6
        await remove_pods(client, namespace)


async def test_a_pod_that_fits_nowhere_says_why_and_wakes_for_a_new_node(
    client: ApiClient, namespace: str, config: Path
) -> None:
    async with nodes(client, "small-a"), running_scheduler(config, PROFILE):
        await client.create(PODS, ours("large", cpu="12"), namespace)
        [waiting] = await wait_until(client, PODS, namespace, lambda pods: bool(pods and message_of(pods[0])))
        assert "Insufficient cpu" in message_of(waiting)
        assert "nodes are available" in message_of(waiting)
        made = await client.create(NODES, node("large-a", cpu="16", pool="conformance"))
        if patch := without_not_ready(made):
            await client.patch(NODES, made.name, "", patch)
        [bound] = await wait_until(client, PODS, namespace, lambda pods: bool(pods and pods[0].spec.node_name))
        assert bound.spec.node_name == "large-a"
        await remove_pods(client, namespace)
        await client.delete(NODES, "large-a")


async def test_a_freed_node_wakes_who_waits_for_it(client: ApiClient, namespace: str, config: Path) -> None:
    async with nodes(client, "full-a"), running_scheduler(config, PROFILE):
        await client.create(PODS, ours("first", cpu="6"), namespace)
        await wait_until(client, PODS, namespace, lambda pods: any(each.spec.node_name for each in pods))
        await client.create(PODS, ours("second", cpu="6"), namespace)
        await wait_until(client, PODS, namespace, lambda pods: any(message_of(each) for each in pods))
        await client.delete(PODS, "first", namespace, grace_period_seconds=0)
        [bound] = await wait_until(
            client, PODS, namespace, lambda pods: [each.spec.node_name for each in pods] == ["full-a"]
        )
        assert bound.name == "second"
        await remove_pods(client, namespace)


async def test_pods_of_another_scheduler_are_left_alone_but_counted(
    client: ApiClient, namespace: str, config: Path
) -> None:
    async with nodes(client, "shared-a"), running_scheduler(config, PROFILE):
        foreign = await client.create(PODS, pod("foreign", cpu="6", schedulerName="somebody-else"), namespace)
        await client.bind(namespace, "foreign", foreign.uid, "shared-a")
        await client.create(PODS, pod("unbound", schedulerName="somebody-else"), namespace)
        await client.create(PODS, ours("mine", cpu="6"), namespace)
        pods = await wait_until(client, PODS, namespace, lambda pods: any(message_of(each) for each in pods))
        by_name = {each.name: each for each in pods}
        assert "Insufficient cpu" in message_of(by_name["mine"])
        assert (by_name["unbound"].spec.node_name, by_name["unbound"].status.conditions) == ("", ())
        await remove_pods(client, namespace)


async def test_a_restarted_scheduler_goes_on_where_the_old_one_was(
    client: ApiClient, namespace: str, config: Path
) -> None:
    async with nodes(client, "again-a", "again-b"):
        for number in range(40):
            await client.create(PODS, ours(f"p{number}", cpu="10m"), namespace)
        async with running_scheduler(config, PROFILE):
            await wait_until(client, PODS, namespace, lambda pods: any(each.spec.node_name for each in pods))
        async with running_scheduler(config, PROFILE):
            await wait_until(client, PODS, namespace, lambda pods: all(each.spec.node_name for each in pods))
        await remove_pods(client, namespace)
