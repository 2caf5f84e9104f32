"""What Kubernetes' end-to-end tests state of deployments, replica sets, stateful sets and daemon sets, retold."""

from typing import Any

import pytest

from skysail.api.apps import Deployment, ReplicaSet, StatefulSet
from skysail.api.core import Pod
from skysail.api.errors import NotFound
from skysail.api.kinds import (
    CONTROLLER_REVISIONS,
    DAEMONSETS,
    DEPLOYMENTS,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    REPLICASETS,
    STATEFULSETS,
)
from skysail.client.api_client import ApiClient
from skysail.controllers.pods import controller_of, is_ready
from tests.conformance.objects import deployment, with_image, workload
from tests.conformance.seen import all_ready
from tests.conformance.waiting import wait_until

pytestmark = pytest.mark.asyncio(loop_scope="module")
NOWHERE = {"spec": {"template": {"spec": {"nodeSelector": {"no-such": "node"}}}}}
ANYWHERE = {"spec": {"template": {"spec": {"nodeSelector": None}}}}


def stateful(name: str, **spec: Any) -> dict[str, Any]:
    return workload(name, serviceName=name, **spec)


def with_claims(name: str, **retention: str) -> dict[str, Any]:
    """A stateful set of two, at once, that keeps data."""
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return stateful(
        name, replicas=2, podManagementPolicy="Parallel", persistentVolumeClaimRetentionPolicy=retention,
        volumeClaimTemplates=[{"metadata": {"name": "data"}, "spec": {**claim, "storageClassName": "none"}}],
    )  # fmt: skip


def sizes(found: list[ReplicaSet]) -> list[int | None]:
    return sorted(each.spec.replicas or 0 for each in found)


def all_ready_without(before: Pod) -> Any:
    """Whether three pods are ready and that one is no longer among them."""
    return lambda pods: all_ready(3)(pods) and before.uid not in {each.uid for each in pods}


def named(*names: str) -> Any:
    return lambda found: {each.metadata.name for each in found} == set(names)


# Deployments and replica sets


async def test_scaling_in_the_middle_of_a_roll_out_is_in_proportion(api: ApiClient, space: str) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}}
    await api.create(DEPLOYMENTS, deployment("web", 10, strategy=strategy), space)
    await wait_until(api, PODS, space, all_ready(10))
    await api.patch(DEPLOYMENTS, "web", space, NOWHERE)
    await wait_until(api, REPLICASETS, space, lambda found: sizes(found) == [5, 8])
    await api.scale(DEPLOYMENTS, "web", space, 30)
    await wait_until(api, REPLICASETS, space, lambda found: sizes(found) == [13, 20])


async def test_an_orphaned_replica_set_is_adopted_by_a_deployment_of_its_template(api: ApiClient, space: str) -> None:
    await api.create(DEPLOYMENTS, deployment("web", 2), space)
    old = await wait_until(api, PODS, space, all_ready(2))
    await api.delete(DEPLOYMENTS, "web", space, propagation="Orphan")
    await wait_until(api, REPLICASETS, space, lambda found: controller_of(found[0]) is None)
    await wait_until(api, DEPLOYMENTS, space, lambda found: not found)
    made = await api.create(DEPLOYMENTS, deployment("web", 2), space)
    await wait_until(
        api,
        REPLICASETS,
        space,
        lambda found: (
            [each.metadata.owner_references[0].uid for each in found if each.metadata.owner_references] == [made.uid]
        ),
    )
    assert {each.uid for each in (await api.list_all(PODS, space)).items} == {each.uid for each in old}


async def test_a_deployment_can_be_rolled_back(api: ApiClient, space: str) -> None:
    await api.create(DEPLOYMENTS, deployment("web", 2), space)
    for number in (2, 3, 2):
        await api.patch(DEPLOYMENTS, "web", space, with_image(f"nginx:{number}"))
        await wait_until(api, PODS, space, all_ready(2, f"nginx:{number}"))
    sets = await wait_until(api, REPLICASETS, space, lambda found: sizes(found) == [0, 0, 2])
    revision = "deployment.kubernetes.io/revision"
    assert sorted(each.metadata.annotations[revision] for each in sets) == ["1", "3", "4"]


async def test_a_roll_out_that_gets_nowhere_says_so(api: ApiClient, space: str) -> None:
    await api.create(DEPLOYMENTS, {**deployment("web", 1, progressDeadlineSeconds=1)}, space)
    await wait_until(api, PODS, space, all_ready(1))
    await api.patch(DEPLOYMENTS, "web", space, NOWHERE)

    def has_timed_out(found: list[Deployment]) -> bool:
        return "ProgressDeadlineExceeded" in {item.reason for item in found[0].status.conditions}

    await wait_until(api, DEPLOYMENTS, space, has_timed_out)


async def test_a_paused_deployment_scales_but_does_not_roll_out(api: ApiClient, space: str) -> None:
    await api.create(DEPLOYMENTS, deployment("web", 1, image="nginx:1"), space)
    await wait_until(api, PODS, space, all_ready(1))
    await api.patch(DEPLOYMENTS, "web", space, {"spec": {"paused": True, **with_image("nginx:2")["spec"]}})
    await api.scale(DEPLOYMENTS, "web", space, 3)
    await wait_until(api, PODS, space, all_ready(3, "nginx:1"))
    await api.patch(DEPLOYMENTS, "web", space, {"spec": {"paused": False}})
    await wait_until(api, PODS, space, all_ready(3, "nginx:2"))


async def test_a_replica_set_replaces_pods_and_can_be_scaled(api: ApiClient, space: str) -> None:
    await api.create(REPLICASETS, workload("rs", replicas=1), space)
    [first] = await wait_until(api, PODS, space, all_ready(1))
    await api.delete(PODS, first.name, space)
    await wait_until(api, PODS, space, lambda pods: all_ready(1)(pods) and pods[0].uid != first.uid)
    await api.scale(REPLICASETS, "rs", space, 3)
    await wait_until(api, REPLICASETS, space, lambda found: found[0].status.available_replicas == 3)
    await api.delete_collection(REPLICASETS, space, propagation="Background")
    await wait_until(api, PODS, space, lambda pods: not pods)


# Stateful sets


async def test_a_stateful_set_adopts_orphans_and_releases_what_matches_no_longer(api: ApiClient, space: str) -> None:
    await api.create(STATEFULSETS, stateful("db", replicas=1), space)
    await wait_until(api, PODS, space, all_ready(1))
    await api.patch(PODS, "db-0", space, {"metadata": {"ownerReferences": None}})
    await wait_until(api, PODS, space, lambda pods: controller_of(pods[0]) is not None)
    await api.patch(PODS, "db-0", space, {"metadata": {"labels": None}})
    await wait_until(api, PODS, space, lambda pods: controller_of(pods[0]) is None)
    await api.patch(PODS, "db-0", space, {"metadata": {"labels": {"app": "db"}}})
    await wait_until(api, PODS, space, lambda pods: controller_of(pods[0]) is not None)


async def test_the_next_pod_waits_for_its_predecessor_but_not_for_ever(api: ApiClient, space: str) -> None:
    await api.create(STATEFULSETS, stateful("db", replicas=3), space)
    await wait_until(api, PODS, space, all_ready(3))
    await api.delete(PODS, "db-0", space)
    await wait_until(api, PODS, space, all_ready(3))


async def test_a_stateful_set_is_rolled_out_and_back(api: ApiClient, space: str) -> None:
    await api.create(STATEFULSETS, stateful("db", replicas=2), space)
    await wait_until(api, PODS, space, all_ready(2))
    [first] = (await api.list_all(CONTROLLER_REVISIONS, space)).items

    def is_back(found: list[StatefulSet], revision: str) -> bool:
        return is_settled(found) and found[0].status.current_revision == revision

    def is_settled(found: list[StatefulSet]) -> bool:
        status = found[0].status
        return status.current_revision == status.update_revision and status.updated_replicas == 2

    await api.patch(STATEFULSETS, "db", space, with_image("app:2"))
    await wait_until(api, PODS, space, all_ready(2, "app:2"))
    [settled] = await wait_until(api, STATEFULSETS, space, is_settled)
    assert settled.status.current_revision != first.name
    await api.patch(STATEFULSETS, "db", space, with_image("app:1"))
    await wait_until(api, PODS, space, all_ready(2, "app:1"))
    await wait_until(
        api, STATEFULSETS, space, lambda found: is_settled(found) and found[0].status.current_revision == first.name
    )


async def test_pods_are_replaced_only_on_being_deleted_if_the_strategy_says_so(api: ApiClient, space: str) -> None:
    await api.create(STATEFULSETS, stateful("db", replicas=2, updateStrategy={"type": "OnDelete"}), space)
    await wait_until(api, PODS, space, all_ready(2))
    await api.patch(STATEFULSETS, "db", space, with_image("app:2"))
    await wait_until(
        api, STATEFULSETS, space, lambda found: found[0].status.current_revision != found[0].status.update_revision
    )
    await api.delete(PODS, "db-1", space)
    pods = await wait_until(
        api,
        PODS,
        space,
        lambda pods: all_ready(2)(pods) and any(each.spec.containers[0].image == "app:2" for each in pods),
    )
    assert {each.name: each.spec.containers[0].image for each in pods} == {"db-0": "app:1", "db-1": "app:2"}


async def test_scaling_halts_at_a_pod_that_is_not_ready_unless_all_go_at_once(api: ApiClient, space: str) -> None:
    for policy, seen in (("OrderedReady", {"ordered-0"}), ("Parallel", {"parallel-0", "parallel-1", "parallel-2"})):
        name = "ordered" if policy == "OrderedReady" else "parallel"
        body = stateful(name, replicas=3, podManagementPolicy=policy)
        body["spec"]["template"]["spec"].update(NOWHERE["spec"]["template"]["spec"])
        await api.create(STATEFULSETS, body, space)
        await wait_until(api, PODS, space, lambda pods, seen=seen: seen <= {each.name for each in pods})
    names = {each.name for each in (await api.list_all(PODS, space)).items}
    assert {name for name in names if name.startswith("ordered")} == {"ordered-0"}


async def test_a_pod_that_failed_is_made_anew_under_its_name(api: ApiClient, space: str) -> None:
    await api.create(STATEFULSETS, stateful("db", replicas=1), space)
    [first] = await wait_until(api, PODS, space, all_ready(1))
    await api.patch(PODS, "db-0", space, {"status": {"phase": "Failed", "reason": "Evicted"}}, subresource="status")
    await wait_until(api, PODS, space, lambda pods: all_ready(1)(pods) and pods[0].uid != first.uid)


async def test_claims_go_with_their_stateful_set_or_on_scaling_down_as_asked(api: ApiClient, space: str) -> None:
    await api.create(STATEFULSETS, with_claims("kept", whenDeleted="Retain", whenScaled="Delete"), space)
    await api.create(STATEFULSETS, with_claims("gone", whenDeleted="Delete", whenScaled="Retain"), space)
    everything = ("data-kept-0", "data-kept-1", "data-gone-0", "data-gone-1")
    await wait_until(api, PERSISTENT_VOLUME_CLAIMS, space, named(*everything))
    for name in ("kept", "gone"):
        await api.scale(STATEFULSETS, name, space, 1)
    await wait_until(api, PERSISTENT_VOLUME_CLAIMS, space, named("data-kept-0", "data-gone-0", "data-gone-1"))
    for name in ("kept", "gone"):
        await api.delete(STATEFULSETS, name, space, propagation="Background")
    await wait_until(api, PERSISTENT_VOLUME_CLAIMS, space, named("data-kept-0"))


async def test_the_first_ordinal_can_be_chosen_and_moved(api: ApiClient, space: str) -> None:
    await api.create(STATEFULSETS, stateful("db", replicas=2, ordinals={"start": 2}), space)
    await wait_until(api, PODS, space, lambda pods: all_ready(2)(pods) and named("db-2", "db-3")(pods))
    await api.patch(STATEFULSETS, "db", space, {"spec": {"ordinals": {"start": 3}}})
    await wait_until(api, PODS, space, lambda pods: all_ready(2)(pods) and named("db-3", "db-4")(pods))
    await api.patch(STATEFULSETS, "db", space, {"spec": {"ordinals": None}})
    await wait_until(api, PODS, space, lambda pods: all_ready(2)(pods) and named("db-0", "db-1")(pods))


async def test_available_means_ready_for_so_long(api: ApiClient, space: str) -> None:
    await api.create(STATEFULSETS, stateful("db", replicas=1, minReadySeconds=2), space)
    [found] = await wait_until(api, STATEFULSETS, space, lambda found: found[0].status.ready_replicas == 1)
    assert found.status.available_replicas == 0
    await wait_until(api, STATEFULSETS, space, lambda found: found[0].status.available_replicas == 1)


# Daemon sets


async def test_a_failed_daemon_pod_is_made_anew(api: ApiClient, space: str) -> None:
    await api.create(DAEMONSETS, workload("agent"), space)
    pods = await wait_until(api, PODS, space, all_ready(3))
    await api.patch(PODS, pods[0].name, space, {"status": {"phase": "Failed"}}, subresource="status")
    await wait_until(api, PODS, space, all_ready_without(pods[0]))


async def test_daemon_pods_wait_to_be_deleted_or_roll_over_as_asked(api: ApiClient, space: str) -> None:
    await api.create(DAEMONSETS, workload("agent", updateStrategy={"type": "OnDelete"}), space)
    pods = await wait_until(api, PODS, space, all_ready(3))
    await api.patch(DAEMONSETS, "agent", space, with_image("app:2"))
    await wait_until(api, DAEMONSETS, space, lambda found: found[0].status.observed_generation == 2)
    await api.delete(PODS, pods[0].name, space)
    now = await wait_until(
        api, PODS, space, lambda now: all_ready(3)(now) and pods[0].uid not in {each.uid for each in now}
    )
    assert sorted(each.spec.containers[0].image for each in now) == ["app:1", "app:1", "app:2"]
    await api.patch(DAEMONSETS, "agent", space, {"spec": {"updateStrategy": {"type": "RollingUpdate"}}})
    await wait_until(api, PODS, space, all_ready(3, "app:2"))


async def test_rolling_back_restarts_no_pod_that_was_not_yet_replaced(api: ApiClient, space: str) -> None:
    await api.create(DAEMONSETS, workload("agent"), space)
    before = await wait_until(api, PODS, space, all_ready(3))
    await api.patch(DAEMONSETS, "agent", space, NOWHERE)
    await wait_until(api, DAEMONSETS, space, lambda found: found[0].status.observed_generation == 2)
    left = {each.uid for each in (await api.list_all(PODS, space)).items if is_ready(each)}
    await api.patch(DAEMONSETS, "agent", space, ANYWHERE)
    after = await wait_until(api, PODS, space, all_ready(3))
    assert left & {each.uid for each in before} <= {each.uid for each in after} | left
    assert len((await api.list_all(CONTROLLER_REVISIONS, space)).items) == 2


async def test_with_surge_the_old_pod_goes_only_when_the_new_one_is_ready(api: ApiClient, space: str) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    await api.create(DAEMONSETS, workload("agent", updateStrategy=strategy), space)
    await wait_until(api, PODS, space, all_ready(3))
    listed = await api.list_all(PODS, space)
    known = {each.uid: each for each in listed.items}
    await api.patch(DAEMONSETS, "agent", space, with_image("app:2"))
    renewed: set[str] = set()
    async for event in api.watch(PODS, space, resource_version=listed.resource_version):
        pod: Pod = event.object
        is_new = pod.spec.containers and pod.spec.containers[0].image == "app:2"
        if is_new and is_ready(pod):
            renewed.add(pod.spec.node_name)
        elif not is_new and pod.metadata.deletion_timestamp is not None:
            assert pod.spec.node_name in renewed
        known[pod.uid] = pod
        if event.type == "DELETED":
            del known[pod.uid]
        if len(known) == 3 and all(
            each.spec.containers[0].image == "app:2" and is_ready(each) for each in known.values()
        ):
            break


async def test_a_deleted_collection_of_daemon_sets_takes_its_pods_along(api: ApiClient, space: str) -> None:
    await api.create(DAEMONSETS, workload("agent"), space)
    await wait_until(api, PODS, space, all_ready(3))
    await api.delete_collection(DAEMONSETS, space, propagation="Background")
    await wait_until(api, PODS, space, lambda pods: not pods)
    with pytest.raises(NotFound):
        await api.get(DAEMONSETS, "agent", space)
