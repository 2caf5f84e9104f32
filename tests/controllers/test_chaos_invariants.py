"""What jobs, stateful sets, daemon sets and the garbage collector promise, whatever goes wrong with their requests."""

import os
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import msgspec
import pytest

from skysail.api.apps import DaemonSet, DaemonSetSpec, ReplicaSet, ReplicaSetSpec, StatefulSet, StatefulSetSpec
from skysail.api.batch import Job
from skysail.api.cluster import ConfigMap
from skysail.api.core import Pod
from skysail.api.kinds import DAEMONSETS, DEPLOYMENTS, PODS, REPLICASETS, STATEFULSETS
from skysail.api.meta import LabelSelector, ObjectMeta
from skysail.client.api_client import ApiClient
from skysail.controllers.pods import is_active, is_ready
from skysail.simulator.clock import run_virtual
from skysail.simulator.hollow import HollowSettings
from skysail.simulator.hollow_pods import EXIT_CODE, RUN_SECONDS, PodLatencies
from skysail.testing import Chaos, make_config_map, make_deployment, make_job, make_pod, pod_template
from skysail.testing.cluster import Cluster

SEEDS = range(int(os.environ.get("SOAK_SEEDS", "10")))
ROUGH = Chaos(
    refuse=0.05, lose_request=0.03, lose_answer=0.05, drop_watch=0.02, expire_watch=0.05, delay=0.1, delay_seconds=2.0
)
SLOW_PODS = HollowSettings(latencies=PodLatencies(start_seconds=1.0, ready_seconds=1.0, stop_seconds=2.0))
NEW_IMAGE = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "app:2"}]}}}}
INDEX = "batch.kubernetes.io/job-completion-index"
Check = Callable[[dict[str, Pod], str, Pod], None]


@asynccontextmanager
async def rough_cluster(seed: int, *controllers: str, nodes: int = 3) -> AsyncIterator[Cluster]:
    """A cluster whose controllers have a bad connection."""
    async with Cluster(seed=seed) as cluster:
        await cluster.start_controllers(*(f"{each}-controller" for each in controllers))
        await cluster.add_nodes(nodes, SLOW_PODS)
        await cluster.start_scheduler()
        cluster.components["controllers"].faults.chaos = ROUGH
        yield cluster


async def calm_down(cluster: Cluster, seconds: float = 120) -> None:
    """Let the bad connection do its work, then let everything settle over a good one."""
    await cluster.advance(seconds)
    cluster.components["controllers"].faults.clear()
    await cluster.settle()


async def watch_pods(cluster: Cluster, check: Check) -> list[Pod]:
    """Check every change of pods from now on; the pods that were created fill the list."""
    created: list[Pod] = []
    pods: dict[str, Pod] = {}

    async def main(client: ApiClient) -> None:
        async for event in client.watch(PODS, resource_version="0", allow_bookmarks=False):
            pod = event.object
            if event.type == "ADDED":
                created.append(pod)
            if event.type == "DELETED":
                pods.pop(pod.uid, None)
            else:
                pods[pod.uid] = pod
            check(pods, event.type, pod)

    await cluster.run("pod watcher", main)
    await cluster.advance(0)
    return created


def in_chaos(test: Callable[[int], Awaitable[None]]) -> Callable[[int], None]:
    """Run a test in virtual time, once for every seed."""

    def run(seed: int) -> None:
        run_virtual(test(seed))  # type: ignore[arg-type]

    run.__name__ = test.__name__
    return pytest.mark.parametrize("seed", SEEDS)(run)


@in_chaos
async def test_a_job_makes_each_pod_once_and_counts_each_once(seed: int) -> None:
    async with rough_cluster(seed, "job") as cluster:
        most = 0

        def check(pods: dict[str, Pod], change: str, pod: Pod) -> None:
            nonlocal most
            most = max(most, sum(map(is_active, pods.values())))

        created = await watch_pods(cluster, check)
        template = make_pod(annotations={RUN_SECONDS: "3"})
        await cluster.create(make_job("sums", completions=6, parallelism=2, template=template))
        await calm_down(cluster, 60)
        job = await cluster.get(Job, "sums")
        assert (job.status.succeeded, job.status.failed, job.status.active) == (6, 0, 0)
        assert [item.type for item in job.status.conditions if item.status == "True"][-1] == "Complete"
        assert len(created) == 6
        assert most == 2
        assert not any(pod.metadata.finalizers for pod in await cluster.list(Pod))


def labelled(name: str) -> tuple[LabelSelector, msgspec.Raw]:
    return LabelSelector(match_labels={"app": name}), pod_template(make_pod(labels={"app": name}))


@in_chaos
async def test_a_stateful_set_makes_and_removes_one_pod_at_a_time_in_order(seed: int) -> None:
    broken: list[str] = []

    def check(pods: dict[str, Pod], change: str, pod: Pod) -> None:
        names = {each.name: each for each in pods.values()}
        number = int(pod.name.rpartition("-")[2])
        if change == "ADDED" and not all(is_ready(names[f"db-{lower}"]) for lower in range(number)):
            broken.append(f"{pod.name} made before all lower ones were ready")
        going = [each.name for each in pods.values() if each.metadata.deletion_timestamp is not None]
        if len(going) > 1:
            broken.append(f"{going} go at the same time")
        if change == "DELETED" and f"db-{number + 1}" in names:
            broken.append(f"{pod.name} removed before the one above")

    async with rough_cluster(seed, "statefulset") as cluster:
        created = await watch_pods(cluster, check)
        selector, template = labelled("db")
        spec = StatefulSetSpec(replicas=4, selector=selector, template=template, service_name="db")
        await cluster.create(StatefulSet(metadata=ObjectMeta(name="db", namespace="default"), spec=spec))
        await cluster.advance(90)
        await cluster.client.scale(STATEFULSETS, "db", "default", 1)
        await calm_down(cluster)
        assert broken == []
        assert [pod.name for pod in created] == ["db-0", "db-1", "db-2", "db-3"]
        assert [pod.name for pod in await cluster.list(Pod)] == ["db-0"]
        status = (await cluster.get(StatefulSet, "db")).status
        assert (status.replicas, status.ready_replicas, status.current_replicas) == (1, 1, 1)


@in_chaos
async def test_a_daemon_set_has_one_pod_on_every_node(seed: int) -> None:
    broken: list[str] = []

    def check(pods: dict[str, Pod], change: str, pod: Pod) -> None:
        nodes = Counter(each.spec.node_name for each in pods.values() if is_active(each) and each.spec.node_name)
        broken.extend(f"{count} pods on {node}" for node, count in nodes.items() if count > 1)

    async with rough_cluster(seed, "daemonset", nodes=4) as cluster:
        created = await watch_pods(cluster, check)
        selector, template = labelled("agent")
        spec = DaemonSetSpec(selector=selector, template=template)
        await cluster.create(DaemonSet(metadata=ObjectMeta(name="agent", namespace="default"), spec=spec))
        await calm_down(cluster)
        assert broken == []
        assert len(created) == 4
        assert {pod.spec.node_name for pod in await cluster.list(Pod)} == {f"node-{number}" for number in range(4)}
        status = (await cluster.get(DaemonSet, "agent")).status
        assert (status.desired_number_scheduled, status.number_available, status.number_misscheduled) == (4, 4, 0)


@in_chaos
async def test_a_daemon_set_rolls_over_one_node_at_a_time(seed: int) -> None:
    """With maxUnavailable 1, a node too few at most; and never two pods that stay on one node."""
    broken: list[str] = []
    rolling = False

    def check(pods: dict[str, Pod], change: str, pod: Pod) -> None:
        active = [each for each in pods.values() if is_active(each)]
        nodes = Counter(each.spec.node_name for each in active if each.spec.node_name)
        broken.extend(f"{count} pods on {node}" for node, count in nodes.items() if count > 1)
        if rolling and sum(map(is_ready, active)) < 3:
            broken.append(f"only {sum(map(is_ready, active))} pods ready")

    async with rough_cluster(seed, "daemonset", nodes=4) as cluster:
        created = await watch_pods(cluster, check)
        selector, template = labelled("agent")
        spec = DaemonSetSpec(selector=selector, template=template)
        await cluster.create(DaemonSet(metadata=ObjectMeta(name="agent", namespace="default"), spec=spec))
        await cluster.advance(60)
        await cluster.wait_until(lambda: len(created) == 4)
        await cluster.advance(10)
        rolling = True
        await cluster.client.patch(DAEMONSETS, "agent", "default", NEW_IMAGE)
        await calm_down(cluster)
        assert broken == []
        assert len(created) == 8
        assert {pod.spec.containers[0].image for pod in await cluster.list(Pod)} == {"app:2"}
        status = (await cluster.get(DaemonSet, "agent")).status
        assert (status.updated_number_scheduled, status.number_available, status.number_misscheduled) == (4, 4, 0)


@in_chaos
async def test_a_stateful_set_rolls_over_from_the_top_one_pod_at_a_time(seed: int) -> None:
    broken: list[str] = []
    renewed: list[str] = []
    rolling = False

    def check(pods: dict[str, Pod], change: str, pod: Pod) -> None:
        if not rolling:
            return
        if change == "ADDED":
            renewed.append(pod.name)
        ready = sum(is_active(each) and is_ready(each) for each in pods.values())
        if ready < 2:
            broken.append(f"only {ready} pods ready")

    async with rough_cluster(seed, "statefulset") as cluster:
        created = await watch_pods(cluster, check)
        selector, template = labelled("db")
        spec = StatefulSetSpec(replicas=3, selector=selector, template=template, service_name="db")
        await cluster.create(StatefulSet(metadata=ObjectMeta(name="db", namespace="default"), spec=spec))
        await cluster.wait_until(lambda: len(created) == 3)
        await cluster.advance(20)
        rolling = True
        await cluster.client.patch(STATEFULSETS, "db", "default", NEW_IMAGE)
        await calm_down(cluster)
        assert broken == []
        assert renewed == ["db-2", "db-1", "db-0"]
        status = (await cluster.get(StatefulSet, "db")).status
        assert (status.updated_replicas, status.ready_replicas, status.replicas) == (3, 3, 3)
        assert status.current_revision == status.update_revision


@in_chaos
async def test_an_indexed_job_tries_each_index_so_often_and_no_more(seed: int) -> None:
    broken: list[str] = []

    def check(pods: dict[str, Pod], change: str, pod: Pod) -> None:
        indexes = Counter(each.metadata.annotations[INDEX] for each in pods.values() if is_active(each))
        broken.extend(f"{count} pods of index {index}" for index, count in indexes.items() if count > 1)

    async with rough_cluster(seed, "job") as cluster:
        created = await watch_pods(cluster, check)
        template = make_pod(annotations={RUN_SECONDS: "1", EXIT_CODE: "1"})
        job = make_job("tries", completions=3, parallelism=3, template=template)
        spec = msgspec.structs.replace(job.spec, completion_mode="Indexed", backoff_limit_per_index=1)
        await cluster.create(msgspec.structs.replace(job, spec=spec))
        await calm_down(cluster)
        assert broken == []
        assert Counter(pod.metadata.annotations[INDEX] for pod in created) == {"0": 2, "1": 2, "2": 2}
        ended = await cluster.get(Job, "tries")
        assert (ended.status.failed, ended.status.failed_indexes, ended.status.active) == (6, "0-2", 0)
        assert [item.reason for item in ended.status.conditions if item.type == "Failed"] == ["FailedIndexes"]


@in_chaos
async def test_a_replica_set_never_has_more_pods_than_it_was_ever_asked_for(seed: int) -> None:
    broken: list[str] = []

    def check(pods: dict[str, Pod], change: str, pod: Pod) -> None:
        if (count := sum(map(is_active, pods.values()))) > 7:
            broken.append(f"{count} pods")

    async with rough_cluster(seed, "replicaset") as cluster:
        created = await watch_pods(cluster, check)
        selector, template = labelled("rs")
        spec = ReplicaSetSpec(replicas=7, selector=selector, template=template)
        await cluster.create(ReplicaSet(metadata=ObjectMeta(name="rs", namespace="default"), spec=spec))
        wanted = 7
        for _ in range(6):
            await cluster.advance(cluster.rng.uniform(0, 20))
            wanted = cluster.rng.randint(0, 7)
            await cluster.client.scale(REPLICASETS, "rs", "default", wanted)
        await calm_down(cluster, 60)
        assert broken == []
        assert sum(map(is_active, await cluster.list(Pod))) == wanted
        status = (await cluster.get(ReplicaSet, "rs")).status
        assert (status.replicas, status.ready_replicas, status.available_replicas) == (wanted, wanted, wanted)
        before = len(created)
        await cluster.advance(900)
        assert len(created) == before


@pytest.mark.parametrize("propagation", ["Background", "Foreground", "Orphan"])
@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_owned_goes_with_its_owner_and_nothing_else_does(seed: int, propagation: str) -> None:
    async def run() -> None:
        async with rough_cluster(seed, "deployment", "replicaset", "garbage-collector") as cluster:
            await cluster.create(make_config_map("kept"), make_config_map("kept-too", "kube-system"))
            await cluster.create(make_deployment("web", replicas=3), make_deployment("other", replicas=2))
            await cluster.advance(60)
            await cluster.client.delete(DEPLOYMENTS, "web", "default", propagation=propagation)
            await calm_down(cluster)
            left = [3, 2] if propagation == "Orphan" else [2]
            assert [item.name for item in await cluster.list(DEPLOYMENTS)] == ["other"]
            assert sorted((item.spec.replicas or 0 for item in await cluster.list(ReplicaSet)), reverse=True) == left
            assert len(await cluster.list(Pod)) == sum(left)
            assert {"kept", "kept-too"} <= {item.name for item in await cluster.list(ConfigMap)}

    run_virtual(run())
