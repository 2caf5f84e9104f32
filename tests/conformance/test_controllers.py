"""The built-in controllers at work on a server whose own controllers are switched off."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from skysail.api.apps import Deployment
from skysail.api.kinds import DEPLOYMENTS, NODES, PODS, REPLICASETS
from skysail.client.api_client import ApiClient
from skysail.controllers.registry import all_controllers
from skysail.simulator.hollow import HollowNode, HollowNodes
from tests.conformance.components import running_controllers, running_scheduler
from tests.conformance.objects import deployment
from tests.conformance.waiting import wait_until


@asynccontextmanager
async def cluster(client: ApiClient, config: Path) -> AsyncIterator[None]:
    """Controllers, a scheduler and three hollow nodes."""
    names = [f"work-{letter}" for letter in "abc"]
    hollow = HollowNodes([HollowNode(name) for name in names])
    async with running_controllers(config, [*all_controllers(), hollow]), running_scheduler(config):
        await hollow.wait_registered()
        yield
    for name in names:
        await client.delete(NODES, name)


def is_rolled_out(found: list[Deployment], count: int) -> bool:
    """Whether the one Deployment has all its pods, of its present template, and said so."""
    if not found or found[0].status.observed_generation != found[0].metadata.generation:
        return False
    status = found[0].status
    return status.replicas == status.updated_replicas == status.available_replicas == count


async def test_a_deployment_rolls_out_scales_and_rolls_over(client: ApiClient, namespace: str, config: Path) -> None:
    async with cluster(client, config):
        await client.create(DEPLOYMENTS, deployment("web", 3), namespace)
        await wait_until(client, DEPLOYMENTS, namespace, lambda found: is_rolled_out(found, 3))
        await client.scale(DEPLOYMENTS, "web", namespace, 5)
        await wait_until(client, DEPLOYMENTS, namespace, lambda found: is_rolled_out(found, 5))
        template = {"spec": {"containers": [{"name": "main", "image": "nginx:2"}]}}
        await client.patch(DEPLOYMENTS, "web", namespace, {"spec": {"template": template}})
        await wait_until(client, DEPLOYMENTS, namespace, lambda found: is_rolled_out(found, 5))
        pods = await wait_until(client, PODS, namespace, lambda pods: len(pods) == 5)
        assert {each.spec.containers[0].image for each in pods} == {"nginx:2"}
        old, new = sorted(
            (await client.list_all(REPLICASETS, namespace)).items,
            key=lambda each: each.metadata.annotations["deployment.kubernetes.io/revision"],
        )
        assert (old.spec.replicas, new.spec.replicas) == (0, 5)
        await client.delete(DEPLOYMENTS, "web", namespace, propagation="Foreground")
        await wait_until(client, PODS, namespace, lambda pods: not pods)


async def test_what_is_owned_goes_with_its_owner_or_stays_as_asked(
    client: ApiClient, namespace: str, config: Path
) -> None:
    async with cluster(client, config):
        for name in ("background", "orphan"):
            await client.create(DEPLOYMENTS, deployment(name, 2), namespace)
        await wait_until(
            client,
            DEPLOYMENTS,
            namespace,
            lambda found: len(found) == 2 and all(each.status.available_replicas == 2 for each in found),
        )
        await client.delete(DEPLOYMENTS, "background", namespace, propagation="Background")
        await client.delete(DEPLOYMENTS, "orphan", namespace, propagation="Orphan")
        left = await wait_until(
            client, PODS, namespace, lambda pods: {each.metadata.labels["app"] for each in pods} == {"orphan"}
        )
        assert len(left) == 2
        sets = await wait_until(client, REPLICASETS, namespace, lambda found: len(found) == 1)
        assert sets[0].metadata.owner_references == ()
        await client.delete(REPLICASETS, sets[0].name, namespace, propagation="Foreground")
        await wait_until(client, PODS, namespace, lambda pods: not pods)
