"""The batch engine as a component of the embedded cluster: real objects, watches, bindings, evictions, statuses."""

import asyncio
import random

import msgspec
import pytest

from skysail.api.core import PersistentVolumeClaimVolumeSource, Pod, Volume
from skysail.api.kinds import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES, Kind
from skysail.batch.app import BatchOptions, BatchScheduler
from skysail.batch.config import default_configuration
from skysail.batch.kinds import POD_GROUPS, QUEUES, QUOTAS, batch_definitions
from skysail.informer.factory import InformerFactory
from skysail.scheduler.app import Scheduler
from skysail.simulator.cluster import default_configuration as kube_configuration
from skysail.simulator.hollow import HollowNode
from skysail.testing.builders import make_container, make_pod

CRDS = Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False, dict)
GPU = "nvidia.com/gpu"
CAPACITY = {"cpu": "64", "memory": "256Gi", "pods": "110", GPU: "8"}


def gpu_container(gpus):
    return [make_container(requests={GPU: str(gpus)}, limits={GPU: str(gpus)})]


def record(client, written):
    """Note claims and evictions in the order they are written."""
    patch, evict = client.patch, client.evict

    async def noted_patch(kind, name, namespace, body, **more):
        found = await patch(kind, name, namespace, body, **more)
        if kind is POD_GROUPS and "claim" in body["status"]:
            written.append(("claim", len((body["status"]["claim"] or {}).get("victims", ()))))
        return found

    async def noted_evict(namespace, name, **more):
        written.append(("evict", name))
        await evict(namespace, name, **more)

    client.patch, client.evict = noted_patch, noted_evict


class Batch:
    """The engine in a cluster under test, which can be killed and started again."""

    def __init__(self, cluster):
        self.cluster, self.cycles, self.starts = cluster, [], 0
        self.written = []

    async def start(self):
        async def main(client):
            record(client, self.written)
            self.engine = BatchScheduler(
                client, default_configuration(), clock=self.cluster.clock, rng=random.Random(1),
                options=BatchOptions(check=True, slice_seconds=0.0), observe=self.cycles.append,
            )  # fmt: skip
            await self.engine.run()

        self.starts += 1
        self.name = f"batch-{self.starts}"
        await self.cluster.run(self.name, main)

    async def settle(self, quiet=15.0):
        await self.cluster.settle(quiet=quiet)
        assert [problem for cycle in self.cycles for problem in cycle.problems] == []
        assert [fault for cycle in self.cycles for fault in cycle.faults] == []


@pytest.fixture
def batch(cluster):
    return Batch(cluster)


async def set_up(batch, nodes=2, queues=(), run=True):
    cluster = batch.cluster
    for definition in batch_definitions():
        await cluster.client.create(CRDS, definition)
    await cluster.add_nodes([HollowNode(f"node-{number}", capacity=CAPACITY) for number in range(nodes)])
    for name, spec in queues:
        body = {"apiVersion": QUEUES.api_version, "kind": "Queue", "metadata": {"name": name}, "spec": spec}
        await cluster.client.create(QUEUES, body)
    if run:
        await batch.start()


async def gang(cluster, name, size, minimum=None, queue="", gpus=1, create_group=True, **spec):
    if create_group:
        group = {"minMember": size if minimum is None else minimum} | ({"queue": queue} if queue else {})
        body = {
            "apiVersion": POD_GROUPS.api_version, "kind": "PodGroup",
            "metadata": {"name": name, "namespace": "default"}, "spec": group,
        }  # fmt: skip
        await cluster.client.create(POD_GROUPS, body)
    await cluster.create(
        *[
            make_pod(
                f"{name}-{number}", scheduler="sky-scheduler", labels={"scheduling.skysail.io/pod-group": name},
                containers=gpu_container(gpus), **spec,
            )
            for number in range(size)
        ]
    )  # fmt: skip


async def running(cluster, name):
    pods = await cluster.list(Pod)
    return [pod for pod in pods if pod.name.startswith(f"{name}-") and pod.status.phase == "Running"]


async def test_a_gang_runs_and_another_waits_and_says_why(cluster, batch):
    await set_up(batch)
    await gang(cluster, "first", 10)
    await batch.settle()
    await gang(cluster, "second", 10)
    await batch.settle()
    assert len(await running(cluster, "first")) == 10
    assert await running(cluster, "second") == []
    group = await cluster.get(POD_GROUPS, "second")
    (record,) = group.status.scheduling_conditions
    assert (record.code, record.details) == ("NotEnough", {"have": 6, "need": 10})
    pod = await cluster.get(Pod, "second-0")
    (condition,) = [each for each in pod.status.conditions if each.type == "PodScheduled"]
    assert (condition.status, condition.reason) == ("False", "Unschedulable")
    assert condition.message.startswith("NotEnough: 6 of 10")
    for number in range(10):
        await cluster.client.delete(Kind("", "v1", "Pod", "pods", True, dict), f"first-{number}", "default")
    await batch.settle()
    assert len(await running(cluster, "second")) == 10
    group = await cluster.get(POD_GROUPS, "second")
    assert group.status.scheduling_conditions == ()


async def test_borrowed_room_is_taken_back_by_a_claim_that_is_written_first(cluster, batch):
    queues = [(name, {"deserved": {GPU: "8"}}) for name in ("a", "b")]
    await set_up(batch, queues=queues)
    await gang(cluster, "borrower", 16, 8, queue="b")
    await batch.settle()
    assert len(await running(cluster, "borrower")) == 16
    await gang(cluster, "owner", 8, queue="a")
    await batch.settle()
    assert batch.written[0] == ("claim", 8)
    assert [what for what, _ in batch.written] == ["claim", *["evict"] * 8, "claim"]
    assert len(await running(cluster, "owner")) == 8
    assert len(await running(cluster, "borrower")) == 8
    group = await cluster.get(POD_GROUPS, "owner")
    assert group.status.claim is None


@pytest.mark.parametrize("turns", [1, 3, 6, 10, 15, 21, 28, 40, 60, 100])
async def test_a_crash_at_any_moment_binds_nothing_twice_and_leaks_no_claim(cluster, batch, turns):
    queues = [(name, {"deserved": {GPU: "8"}}) for name in ("a", "b")]
    await set_up(batch, queues=queues)
    await gang(cluster, "borrower", 16, 8, queue="b")
    await batch.settle()
    await gang(cluster, "owner", 8, queue="a")
    await cluster.advance(0.025)
    await cluster.crash_after(batch.name, turns)
    await batch.start()
    await batch.settle()
    assert len(await running(cluster, "owner")) == 8
    assert len(await running(cluster, "borrower")) == 8
    assert batch.engine.world.claims == {}
    assert (await cluster.get(POD_GROUPS, "owner")).status.claim is None
    used = {}
    for pod in await cluster.list(Pod):
        used[pod.spec.node_name] = used.get(pod.spec.node_name, 0) + 1
    assert all(count <= 8 for node, count in used.items() if node)


async def test_nothing_is_written_and_no_cycle_runs_while_nothing_changes(cluster, batch):
    await set_up(batch)
    await gang(cluster, "first", 10)
    await gang(cluster, "second", 10)
    await batch.settle()
    cycles, writes = len(batch.cycles), batch.engine.writing.writes
    await cluster.advance(100.0)
    assert (len(batch.cycles), batch.engine.writing.writes) == (cycles, writes)


async def test_a_pod_whose_group_is_missing_says_so_and_runs_once_it_is_there(cluster, batch):
    await set_up(batch)
    await gang(cluster, "orphan", 2, create_group=False)
    await batch.settle()
    pod = await cluster.get(Pod, "orphan-0")
    assert "PodGroupMissing" in [each.reason for each in pod.status.conditions]
    await cluster.client.create(
        POD_GROUPS,
        {
            "apiVersion": POD_GROUPS.api_version, "kind": "PodGroup",
            "metadata": {"name": "orphan", "namespace": "default"}, "spec": {"minMember": 2},
        },
    )  # fmt: skip
    await batch.settle()
    assert len(await running(cluster, "orphan")) == 2


async def test_both_engines_in_one_process_never_sell_the_same_room_twice(cluster, batch):
    await set_up(batch, nodes=2, run=False)

    async def main(client):
        informers = InformerFactory(client, clock=cluster.clock, rng=random.Random(1))
        shared = {"clock": cluster.clock, "rng": random.Random(2), "informers": informers}
        plain = Scheduler(client, kube_configuration(), **shared)
        batch.engine = BatchScheduler(client, default_configuration(), cache=plain.cache, **shared)
        async with asyncio.TaskGroup() as group:
            for each in (informers, plain, batch.engine):
                group.create_task(each.run())

    await cluster.run("both", main)
    rng = random.Random(3)
    for number in range(12):
        await cluster.create(make_pod(f"plain-{number}", containers=gpu_container(rng.choice([1, 2]))))
        if number % 3 == 0:
            await gang(cluster, f"job{number}", 3)
    await batch.settle()
    used = {}
    for pod in await cluster.list(Pod):
        assert pod.status.phase != "Failed"
        if pod.spec.node_name:
            amount = int(pod.spec.containers[0].resources.requests[GPU])
            used[pod.spec.node_name] = used.get(pod.spec.node_name, 0) + amount
    assert len(used) == 2
    assert all(amount <= 8 for amount in used.values())


async def claim(cluster, name, volume=""):
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "local",
    }
    meta = {"name": name, "namespace": "default"}
    await cluster.client.create(
        PERSISTENT_VOLUME_CLAIMS,
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec},
    )
    if volume:
        await local_volume(cluster, volume, "node-1")


async def local_volume(cluster, name, node):
    match = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    await cluster.client.create(
        PERSISTENT_VOLUMES,
        {
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
            "spec": {
                "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "local",
                "hostPath": {"path": "/data"}, "persistentVolumeReclaimPolicy": "Retain",
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [match]}]}},
            },
        },
    )  # fmt: skip
    available = {"status": {"phase": "Available"}}
    await cluster.client.patch(PERSISTENT_VOLUMES, name, "", available, subresource="status")


async def test_a_pod_waits_for_its_volume_and_goes_where_it_is(cluster, batch):
    await set_up(batch)
    await cluster.client.create(
        STORAGE_CLASSES,
        {
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "local"},
            "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer",
        },
    )  # fmt: skip
    pod = make_pod("reader", scheduler="sky-scheduler", cpu="1")
    source = PersistentVolumeClaimVolumeSource(claim_name="data")
    volumes = (Volume(name="data", persistent_volume_claim=source),)
    await cluster.create(msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, volumes=volumes)))
    await batch.settle()
    pod = await cluster.get(Pod, "reader")
    assert [each.reason for each in pod.status.conditions if each.type == "PodScheduled"] == ["VolumesNotReady"]
    await claim(cluster, "data", volume="disk")
    await cluster.wait_until(lambda: is_promised(cluster), timeout=60)
    assert batch.engine.world.tasks[pod.uid].node == "node-1"


async def is_promised(cluster):
    volume = await cluster.get(PERSISTENT_VOLUMES, "disk", "")
    return volume.spec.claim_ref is not None and volume.spec.claim_ref.name == "data"


async def test_where_the_slots_of_a_quota_are_is_written_once_for_all_that_changed(cluster, batch, monkeypatch):
    await set_up(batch, nodes=4)
    await batch.settle()
    patches, patch = [], batch.engine.writing._client.patch

    async def noted(kind, name, namespace, body, **more):
        patches.append(len(msgspec.json.encode(body)))
        return await patch(kind, name, namespace, body, **more)

    monkeypatch.setattr(batch.engine.writing._client, "patch", noted)
    spec = {"queue": "default", "resources": {"cpu": "1"}, "count": 200, "releasePolicy": {"type": "Never"}}
    body = {"apiVersion": QUOTAS.api_version, "kind": "Quota", "metadata": {"name": "many", "namespace": "default"}}
    await cluster.client.create(QUOTAS, body | {"spec": spec})
    await batch.settle()
    quota = await cluster.get(QUOTAS, "many")
    assert (quota.status.phase, {slot.phase for slot in quota.status.slots}) == ("Bound", {"Bound"})
    assert len(quota.status.slots) == 200
    assert len(patches) <= 2
    assert sum(patches) < 2 * 200 * 100
