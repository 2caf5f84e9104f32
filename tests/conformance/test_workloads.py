"""What Kubernetes' own end-to-end tests state of each controller, retold and run on any server.

One set of controllers, a scheduler and three hollow nodes serve the whole module.
"""

from typing import Any

import pytest

from skysail.api.apps import StatefulSet
from skysail.api.errors import TooManyRequests
from skysail.api.kinds import (
    CONFIGMAPS,
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
from skysail.client.api_client import ApiClient
from skysail.controllers.pods import controller_of, is_ready
from tests.conformance.conftest import HOSTS
from tests.conformance.objects import config_map, deployment, job, pod, with_image, workload
from tests.conformance.seen import all_ready, has_ended
from tests.conformance.waiting import wait_until

pytestmark = pytest.mark.asyncio(loop_scope="module")


# Deployments


async def test_recreating_deletes_all_old_pods_before_it_makes_new_ones(api: ApiClient, space: str) -> None:
    await api.create(DEPLOYMENTS, deployment("web", 3, strategy={"type": "Recreate"}), space)
    await wait_until(api, PODS, space, all_ready(3))
    listed = await api.list_all(PODS, space)
    await api.patch(DEPLOYMENTS, "web", space, with_image("nginx:2"))
    old = {each.uid for each in listed.items}
    async for event in api.watch(PODS, space, resource_version=listed.resource_version):
        if event.type == "DELETED":
            old.discard(event.object.uid)
        elif event.type == "ADDED":
            assert not old
            break
    await wait_until(api, PODS, space, all_ready(3, "nginx:2"))


async def test_old_replica_sets_are_deleted_beyond_the_history_limit(api: ApiClient, space: str) -> None:
    await api.create(DEPLOYMENTS, deployment("web", 1, revisionHistoryLimit=1), space)
    for number in (2, 3, 4):
        await wait_until(api, PODS, space, lambda pods: len(pods) == 1 and is_ready(pods[0]))
        await api.patch(DEPLOYMENTS, "web", space, with_image(f"nginx:{number}"))
    await wait_until(api, PODS, space, all_ready(1, "nginx:4"))
    await wait_until(api, REPLICASETS, space, lambda found: len(found) == 2)


async def test_a_rollout_is_rolled_over_by_the_next_one(api: ApiClient, space: str) -> None:
    await api.create(DEPLOYMENTS, deployment("web", 4), space)
    await wait_until(api, PODS, space, all_ready(4))
    await api.patch(DEPLOYMENTS, "web", space, with_image("nginx:2"))
    await wait_until(api, REPLICASETS, space, lambda found: len(found) == 2)
    await api.patch(DEPLOYMENTS, "web", space, with_image("nginx:3"))
    await wait_until(api, PODS, space, all_ready(4, "nginx:3"))
    sets = await wait_until(
        api, REPLICASETS, space, lambda found: sorted(each.spec.replicas for each in found) == [0, 0, 4]
    )
    revision = "deployment.kubernetes.io/revision"
    assert sorted(each.metadata.annotations[revision] for each in sets) == ["1", "2", "3"]


# Replica sets


async def test_matching_pods_are_adopted_and_released_when_they_match_no_longer(api: ApiClient, space: str) -> None:
    await api.create(PODS, pod("stray", "10m"), space)
    await api.patch(PODS, "stray", space, {"metadata": {"labels": {"app": "rs"}}})
    await api.create(REPLICASETS, workload("rs", replicas=1), space)
    await wait_until(api, PODS, space, lambda pods: len(pods) == 1 and controller_of(pods[0]) is not None)
    await api.patch(PODS, "stray", space, {"metadata": {"labels": {"app": "other"}}})
    pods = await wait_until(
        api, PODS, space, lambda pods: len(pods) == 2 and sum(controller_of(each) is None for each in pods) == 1
    )
    assert next(each.name for each in pods if controller_of(each) is None) == "stray"


async def test_a_quota_in_the_way_shows_as_a_condition_and_goes_with_it(api: ApiClient, space: str) -> None:
    await api.create(RESOURCE_QUOTAS, {"metadata": {"name": "two"}, "spec": {"hard": {"pods": "2"}}}, space)
    await wait_until(api, RESOURCE_QUOTAS, space, lambda found: found[0].status.hard == {"pods": "2"})
    await api.create(REPLICASETS, workload("rs", replicas=3), space)
    found = await wait_until(api, REPLICASETS, space, lambda found: bool(found[0].status.conditions))
    assert [(item.type, item.reason) for item in found[0].status.conditions] == [("ReplicaFailure", "FailedCreate")]
    await api.scale(REPLICASETS, "rs", space, 2)
    await wait_until(api, REPLICASETS, space, lambda found: not found[0].status.conditions)


# Jobs


async def test_an_indexed_job_gives_every_index_a_pod_and_completes(api: ApiClient, space: str) -> None:
    await api.create(JOBS, job("ix", completions=4, parallelism=2, completionMode="Indexed"), space)
    [done] = await wait_until(api, JOBS, space, has_ended("Complete"))
    assert (done.status.succeeded, done.status.completed_indexes) == (4, "0-3")
    pods = (await api.list_all(PODS, space)).items
    index = "batch.kubernetes.io/job-completion-index"
    assert sorted(each.metadata.annotations[index] for each in pods) == ["0", "1", "2", "3"]
    assert not any(each.metadata.finalizers for each in pods)


async def test_a_job_fails_at_its_first_failure_if_it_may_not_fail(api: ApiClient, space: str) -> None:
    await api.create(JOBS, job("bad", exit_code=1, backoffLimit=0), space)
    [failed] = await wait_until(api, JOBS, space, has_ended("Failed"))
    assert failed.status.conditions[-1].reason == "BackoffLimitExceeded"
    assert failed.status.failed == 1


async def test_a_job_ends_its_pods_at_its_deadline(api: ApiClient, space: str) -> None:
    await api.create(JOBS, job("slow", run_seconds=900, activeDeadlineSeconds=1), space)
    [failed] = await wait_until(api, JOBS, space, has_ended("Failed"))
    assert failed.status.conditions[-1].reason == "DeadlineExceeded"
    await wait_until(api, PODS, space, lambda pods: not pods)


async def test_a_suspended_job_has_no_pods_until_it_is_resumed(api: ApiClient, space: str) -> None:
    await api.create(JOBS, job("later", suspend=True), space)
    await wait_until(
        api, JOBS, space, lambda found: [item.type for item in found[0].status.conditions] == ["Suspended"]
    )
    assert (await api.list_all(PODS, space)).items == ()
    await api.patch(JOBS, "later", space, {"spec": {"suspend": False}})
    await wait_until(api, JOBS, space, has_ended("Complete"))


async def test_a_finished_job_and_its_pods_go_after_their_time(api: ApiClient, space: str) -> None:
    await api.create(JOBS, job("once", ttlSecondsAfterFinished=1), space)
    await wait_until(api, JOBS, space, has_ended("Complete"))
    await wait_until(api, JOBS, space, lambda found: not found)
    await wait_until(api, PODS, space, lambda found: not found)


# Stateful sets


async def test_a_stateful_set_scales_in_order_and_keeps_names(api: ApiClient, space: str) -> None:
    listed = await api.list_all(PODS, space)
    await api.create(STATEFULSETS, workload("db", replicas=3, serviceName="db"), space)
    await wait_until(api, PODS, space, all_ready(3))
    await api.scale(STATEFULSETS, "db", space, 0)
    made, gone = [], []
    async for event in api.watch(PODS, space, resource_version=listed.resource_version):
        if event.type == "ADDED":
            made.append(event.object.name)
        elif event.type == "DELETED":
            gone.append(event.object.name)
            if len(gone) == 3:
                break
    assert (made, gone) == (["db-0", "db-1", "db-2"], ["db-2", "db-1", "db-0"])


async def test_a_stateful_set_rolls_out_down_to_its_partition(api: ApiClient, space: str) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    await api.create(STATEFULSETS, workload("db", replicas=3, serviceName="db", updateStrategy=strategy), space)
    await wait_until(api, PODS, space, all_ready(3))
    await api.patch(STATEFULSETS, "db", space, with_image("app:2"))

    def is_canary(found: list[StatefulSet]) -> bool:
        status = found[0].status
        return (status.updated_replicas, status.ready_replicas, status.current_replicas) == (1, 3, 2)

    await wait_until(api, STATEFULSETS, space, is_canary)
    images = {each.name: each.spec.containers[0].image for each in (await api.list_all(PODS, space)).items}
    assert images == {"db-0": "app:1", "db-1": "app:1", "db-2": "app:2"}
    everything = {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}}
    await api.patch(STATEFULSETS, "db", space, everything)
    await wait_until(api, PODS, space, all_ready(3, "app:2"))


# Daemon sets


async def test_a_daemon_set_runs_where_the_selector_says_and_replaces_a_deleted_pod(api: ApiClient, space: str) -> None:
    body = workload("agent")
    body["spec"]["template"]["spec"]["nodeSelector"] = {space: "yes"}
    await api.create(DAEMONSETS, body, space)
    await wait_until(api, DAEMONSETS, space, lambda found: found[0].status.observed_generation == 1)
    assert (await api.list_all(PODS, space)).items == ()
    for name in HOSTS[:2]:
        await api.patch(NODES, name, "", {"metadata": {"labels": {space: "yes"}}})
    pods = await wait_until(api, PODS, space, all_ready(2))
    assert {each.spec.node_name for each in pods} == set(HOSTS[:2])
    await api.delete(PODS, pods[0].name, space)
    await wait_until(api, PODS, space, lambda now: all_ready(2)(now) and pods[0].uid not in {p.uid for p in now})
    await api.patch(NODES, HOSTS[0], "", {"metadata": {"labels": {space: None}}})
    left = await wait_until(api, PODS, space, all_ready(1))
    assert left[0].spec.node_name == HOSTS[1]


# Garbage, budgets, taints, namespaces


async def test_the_owner_stays_until_its_dependents_are_gone(api: ApiClient, space: str) -> None:
    await api.create(REPLICASETS, workload("rs", replicas=2), space)
    await wait_until(api, PODS, space, all_ready(2))
    await api.patch(PODS, (await api.list_all(PODS, space)).items[0].name, space, {"metadata": {"finalizers": ["a/b"]}})
    await api.delete(REPLICASETS, "rs", space, propagation="Foreground")
    [held] = await wait_until(api, PODS, space, lambda pods: len(pods) == 1)
    assert [each.name for each in (await api.list_all(REPLICASETS, space)).items] == ["rs"]
    await api.patch(PODS, held.name, space, {"metadata": {"finalizers": None}})
    await wait_until(api, REPLICASETS, space, lambda found: not found)


async def test_a_circle_of_owners_blocks_no_deletion(api: ApiClient, space: str) -> None:
    made = [await api.create(CONFIGMAPS, config_map(f"c{number}"), space) for number in range(3)]
    for number, each in enumerate(made):
        owner = made[(number + 1) % 3]
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": owner.name, "uid": owner.uid}
        patch = {"metadata": {"ownerReferences": [{**reference, "blockOwnerDeletion": True}]}}
        await api.patch(CONFIGMAPS, each.name, space, patch)
    await api.delete(CONFIGMAPS, "c0", space, propagation="Foreground")
    await wait_until(api, CONFIGMAPS, space, lambda found: not {"c0", "c1", "c2"} & {each.name for each in found})


async def test_a_budget_blocks_an_eviction_until_it_allows_it(api: ApiClient, space: str) -> None:
    await api.create(REPLICASETS, workload("rs", replicas=2), space)
    pods = await wait_until(api, PODS, space, all_ready(2))
    budget = {"metadata": {"name": "both"}, "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "rs"}}}}
    await api.create(POD_DISRUPTION_BUDGETS, budget, space)
    await wait_until(api, POD_DISRUPTION_BUDGETS, space, lambda found: found[0].status.current_healthy == 2)
    with pytest.raises(TooManyRequests):
        await api.evict(space, pods[0].name)
    await api.patch(POD_DISRUPTION_BUDGETS, "both", space, {"spec": {"minAvailable": 1}})
    await wait_until(api, POD_DISRUPTION_BUDGETS, space, lambda found: found[0].status.disruptions_allowed == 1)
    await api.evict(space, pods[0].name)
    await wait_until(api, PODS, space, lambda now: all_ready(2)(now) and pods[0].uid not in {p.uid for p in now})


async def test_pods_leave_a_tainted_node_when_their_patience_ends_or_not_at_all(api: ApiClient, space: str) -> None:
    def tolerant(name: str, **more: Any) -> dict[str, Any]:
        return pod(name, "10m", nodeName=HOSTS[2], tolerations=[{"key": space, "operator": "Exists", **more}])

    for body in (
        pod("at-once", "10m", nodeName=HOSTS[2]),
        tolerant("soon", tolerationSeconds=1, effect="NoExecute"),
        tolerant("never"),
    ):
        await api.create(PODS, body, space)
    await wait_until(api, PODS, space, all_ready(3))
    await api.patch(NODES, HOSTS[2], "", {"spec": {"taints": [{"key": space, "effect": "NoExecute"}]}})
    await wait_until(api, PODS, space, lambda pods: [each.name for each in pods] == ["never"])
    await api.patch(NODES, HOSTS[2], "", {"spec": {"taints": None}})


async def test_a_namespace_gets_its_account_and_takes_all_along_when_it_goes(api: ApiClient) -> None:
    made = await api.create(NAMESPACES, {"metadata": {"generateName": "short-"}})
    await wait_until(api, SERVICE_ACCOUNTS, made.name, lambda found: [each.name for each in found] == ["default"])
    body = deployment("web", 2)
    body["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 1
    await api.create(DEPLOYMENTS, body, made.name)
    await wait_until(api, PODS, made.name, all_ready(2))
    await api.delete(NAMESPACES, made.name)
    await wait_until(api, NAMESPACES, "", lambda found: made.name not in {each.name for each in found})
    assert (await api.list_all(PODS, made.name)).items == ()
