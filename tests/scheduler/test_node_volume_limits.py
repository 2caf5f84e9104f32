"""The quick look at volume limits says what counting one by one says."""

import os
import random

import msgspec
import numpy as np
import pytest

from skysail.api.core import (
    AWSElasticBlockStoreVolumeSource,
    AzureDiskVolumeSource,
    EphemeralVolumeSource,
    Pod,
    Volume,
)
from skysail.api.meta import ObjectMeta, OwnerReference
from skysail.api.storage import (
    CSIDriver,
    CSIDriverSpec,
    CSINode,
    CSINodeDriver,
    CSINodeSpec,
    PersistentVolumeClaim,
    VolumeAttachment,
    VolumeAttachmentSource,
    VolumeAttachmentSpec,
    VolumeNodeResources,
)
from skysail.scheduler.cache.pod_info import PodInfo
from skysail.scheduler.framework.cycle_state import CycleState
from skysail.scheduler.framework.feature_gates import feature_gates
from skysail.scheduler.framework.status import SUCCESS
from skysail.scheduler.plugins.args import NoArgs
from skysail.scheduler.plugins.node_volume_limits import NodeVolumeLimits
from skysail.scheduler.scenario import World
from skysail.testing.builders import make_node
from skysail.testing.volumes import make_claim, make_pod, make_storage_class, make_volume, mount

SEEDS = int(os.environ.get("SOAK_SEEDS", "10"))
EBS = "ebs.csi.aws.com"
NODES = [f"n{number}" for number in range(8)]


def with_volume(pod: Pod, volume: Volume) -> Pod:
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, volumes=(*pod.spec.volumes, volume)))


def csi_node(rng: random.Random, name: str) -> CSINode:
    drivers = tuple(
        CSINodeDriver(
            name=driver,
            allocatable=VolumeNodeResources(count=rng.choice([None, 0, 1, 2, 3, 5])) if rng.random() < 0.8 else None,
        )
        for driver in ("csi.example.com", EBS)
        if rng.random() < 0.8
    )
    return CSINode(metadata=ObjectMeta(name=name), spec=CSINodeSpec(drivers=drivers))


def random_pod(rng: random.Random, name: str, claims: list[PersistentVolumeClaim]) -> Pod:
    pod = make_pod(name, uid=name)
    pod = mount(pod, *(each.name for each in rng.sample(claims, rng.randint(0, 3))))
    if rng.random() < 0.2:
        disk = AWSElasticBlockStoreVolumeSource(volume_id=f"vol-{rng.randrange(4)}")
        pod = with_volume(pod, Volume(name="ebs", aws_elastic_block_store=disk))
    if rng.random() < 0.05:
        pod = with_volume(pod, Volume(name="azure", azure_disk=AzureDiskVolumeSource(disk_uri="/d", kind="Shared")))
    if rng.random() < 0.15:
        pod = with_volume(pod, Volume(name="eph", ephemeral=EphemeralVolumeSource()))
    return pod


def ephemeral_claim(rng: random.Random, pod: Pod) -> list[PersistentVolumeClaim]:
    if not any(volume.ephemeral is not None for volume in pod.spec.volumes) or rng.random() < 0.2:
        return []
    claim = make_claim(f"{pod.name}-eph", storage_class="wait")
    owner = OwnerReference(
        api_version="v1", kind="Pod", name=pod.name, uid=pod.uid if rng.random() < 0.8 else "x", controller=True
    )
    return [msgspec.structs.replace(claim, metadata=msgspec.structs.replace(claim.metadata, owner_references=(owner,)))]


def random_world(rng: random.Random) -> tuple[World, NodeVolumeLimits, Pod]:
    claims = [make_claim(f"c{number}", volume=f"v{number}", bound=True) for number in range(8)]
    claims += [make_claim(f"o{number}", storage_class=rng.choice(["wait", "ebs", "none"])) for number in range(3)]
    volumes = [
        make_volume(f"v{number}", claim=claims[number], driver=rng.choice(["csi.example.com", EBS]))
        for number in range(7)
    ]
    pods = [random_pod(rng, f"p{number}", claims) for number in range(14)]
    for pod in pods:
        claims += ephemeral_claim(rng, pod)
    attachments = [
        VolumeAttachment(
            metadata=ObjectMeta(name=f"a{number}"),
            spec=VolumeAttachmentSpec(
                attacher=rng.choice(["csi.example.com", EBS, ""]),
                node_name=rng.choice(NODES),
                source=VolumeAttachmentSource(persistent_volume_name=rng.choice([None, "v1", "v2", "v5", "gone"])),
            ),
        )
        for number in range(rng.randint(0, 8))
    ]
    driver = CSIDriver(metadata=ObjectMeta(name=EBS), spec=CSIDriverSpec(prevent_pod_scheduling_if_missing=True))
    objects = {
        "persistentvolumeclaims": claims,
        "persistentvolumes": volumes,
        "storageclasses.storage.k8s.io": [
            make_storage_class("wait", provisioner="csi.example.com"),
            make_storage_class("ebs", provisioner="kubernetes.io/aws-ebs"),
        ],
        "csinodes.storage.k8s.io": [csi_node(rng, name) for name in NODES if rng.random() < 0.85],
        "csidrivers.storage.k8s.io": [driver],
        "volumeattachments.storage.k8s.io": attachments,
    }
    world = World(objects, feature_gates({"VolumeLimitScaling": rng.random() < 0.3}))
    for name in NODES:
        world.cache.add_node(make_node(name))
    for pod in pods[1:]:
        spec = msgspec.structs.replace(pod.spec, node_name=rng.choice(NODES))
        world.cache.add_pod(msgspec.structs.replace(pod, spec=spec))
    world.cache.update_snapshot(world.current)
    return world, NodeVolumeLimits(NoArgs(), world), pods[0]


@pytest.mark.parametrize("seed", range(SEEDS))
def test_the_quick_look_says_what_counting_says_while_pods_come_and_go(seed):
    rng = random.Random(seed)
    told = set()
    for _ in range(30):
        world, plugin, pod = random_world(rng)
        table = world.current.table
        for _ in range(3):
            state = CycleState(PodInfo(pod))
            status, _ = plugin.pre_filter(state, pod, table)
            if status.is_skip:
                break
            codes = plugin.filter_rows(state, pod, table, table.all_rows)
            for row in table.rows.values():
                quick = codes.statuses[codes.codes[row] - 1] if codes.statuses and codes.codes[row] else SUCCESS
                counted = plugin.explain(state, pod, table, row)
                assert quick.code is counted.code, (seed, table.names[row])
                told.add(quick.code)
            with table.scratch([table.info(2).clone()]) as rows:
                tried = plugin.filter_rows(state, pod, table, rows)
                assert bool(tried.statuses) == bool(codes.statuses and codes.codes[2])
            moved = random_pod(rng, f"late-{rng.random()}", [make_claim("c0"), make_claim("c6"), make_claim("o1")])
            spec = msgspec.structs.replace(moved.spec, node_name=rng.choice(NODES))
            world.cache.add_pod(msgspec.structs.replace(moved, spec=spec))
            world.cache.update_snapshot(world.current)
    assert len(told) >= 2


def test_a_volume_that_is_there_already_counts_once():
    claim = make_claim("data", volume="disk", bound=True)
    limit = CSINodeDriver(name="csi.example.com", allocatable=VolumeNodeResources(count=1))
    objects = {
        "persistentvolumeclaims": [claim, make_claim("more", volume="second", bound=True)],
        "persistentvolumes": [make_volume("disk", claim=claim), make_volume("second")],
        "csinodes.storage.k8s.io": [
            CSINode(metadata=ObjectMeta(name="n0"), spec=CSINodeSpec(drivers=(limit,))),
        ],
    }
    world = World(objects, feature_gates({}))
    world.cache.add_node(make_node("n0"))
    there = mount(make_pod("there"), "data")
    world.cache.add_pod(msgspec.structs.replace(there, spec=msgspec.structs.replace(there.spec, node_name="n0")))
    world.cache.update_snapshot(world.current)
    plugin, table = NodeVolumeLimits(NoArgs(), world), world.current.table
    answers = {}
    for name in ("data", "more"):
        pod = mount(make_pod("new", uid="new"), name)
        state = CycleState(PodInfo(pod))
        plugin.pre_filter(state, pod, table)
        codes = plugin.filter_rows(state, pod, table, np.array([0]))
        answers[name] = [status.message for status in codes.statuses]
    assert answers == {"data": [], "more": ["node(s) exceed max volume count"]}
