"""Where claims find volumes: the table form says of every node what the plain form says of one."""

import os
import random

import msgspec
import numpy as np
import pytest

from skysail.api.affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from skysail.api.core import AWSElasticBlockStoreVolumeSource, GCEPersistentDiskVolumeSource
from skysail.api.meta import LabelSelector, LabelSelectorRequirement, ObjectMeta
from skysail.api.storage import (
    CSIDriver,
    CSIDriverSpec,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    StorageClass,
    VolumeNodeAffinity,
)
from skysail.api.volumes import SELECTED_NODE
from skysail.scheduler.cache.pod_info import PodInfo
from skysail.scheduler.framework.codes import ALL_PASS
from skysail.scheduler.framework.cycle_state import CycleState
from skysail.scheduler.framework.feature_gates import feature_gates
from skysail.scheduler.plugins.args import VolumeBindingArgs
from skysail.scheduler.plugins.csi_translation import MIGRATED_PLUGINS
from skysail.scheduler.plugins.volume_binding import VOLUMES, VolumeBinding
from skysail.scheduler.plugins.volume_claims import VolumeError
from skysail.scheduler.plugins.volume_rows import UNREADABLE
from skysail.scheduler.scenario import World
from skysail.testing.builders import make_node
from skysail.testing.volumes import make_claim, make_pod, make_storage_class, make_volume, mount

SEEDS = int(os.environ.get("SOAK_SEEDS", "10"))
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
NODES = [f"n{number}" for number in range(12)]
ZONES = ["a", "b", "c"]


def random_affinity(rng: random.Random) -> VolumeNodeAffinity | None:
    def expression() -> NodeSelectorRequirement:
        key, values = rng.choice([(ZONE, [*ZONES, "z"]), (HOST, [*NODES, "gone"]), ("disk", ["ssd", "hdd"])])
        operator = rng.choice(["In", "In", "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Odd"])
        chosen = tuple(rng.sample(values, rng.randint(1, 2)))
        return NodeSelectorRequirement(
            key=key, operator=operator, values=() if operator.startswith(("Exists", "Does")) else chosen
        )

    if rng.random() < 0.25:
        return None
    terms = tuple(
        NodeSelectorTerm(match_expressions=tuple(expression() for _ in range(rng.randint(0, 2))))
        for _ in range(rng.choice([1, 1, 1, 2]))
    )
    return VolumeNodeAffinity(required=NodeSelector(node_selector_terms=terms))


def random_volume(rng: random.Random, name: str, claim=None) -> PersistentVolume:
    volume = make_volume(
        name, storage_class=rng.choice(["local", "wait", "zoned"]), size=f"{rng.randint(1, 6)}Gi", claim=claim,
        modes=rng.choice([["ReadWriteOnce"], ["ReadWriteOnce", "ReadWriteMany"], ["ReadOnlyMany"]]),
        labels=rng.choice([{}, {"tier": "fast"}, {ZONE: "a"}, {ZONE: "a__b"}]),
    )  # fmt: skip
    spec = msgspec.structs.replace(volume.spec, node_affinity=random_affinity(rng))
    if rng.random() < 0.3:
        spec = msgspec.structs.replace(
            spec,
            csi=None,
            gce_persistent_disk=GCEPersistentDiskVolumeSource(pd_name=name) if rng.random() < 0.5 else None,
            aws_elastic_block_store=AWSElasticBlockStoreVolumeSource(volume_id=name),
        )
    status = volume.status if rng.random() < 0.9 else msgspec.structs.replace(volume.status, phase="Released")
    return msgspec.structs.replace(volume, spec=spec, status=status)


def random_classes() -> list[StorageClass]:
    return [
        make_storage_class("local", provisioner="kubernetes.io/no-provisioner"),
        make_storage_class("wait", provisioner="csi.example.com"),
        make_storage_class("zoned", provisioner="csi.example.com", zones=["a", "b"]),
        make_storage_class("tracked", provisioner="tracked.example.com"),
    ]


def random_capacity(rng: random.Random, number: int) -> CSIStorageCapacity:
    topology = rng.choice(
        [
            None,
            LabelSelector(),
            LabelSelector(match_labels={ZONE: rng.choice(ZONES)}),
            LabelSelector(match_expressions=(LabelSelectorRequirement(key=ZONE, operator="Wrong"),)),
        ]
    )
    return CSIStorageCapacity(
        metadata=ObjectMeta(name=f"room-{number}", namespace="default"),
        storage_class_name=rng.choice(["tracked", "tracked", "wait"]),
        capacity=rng.choice(["", "2Gi", "100Gi"]),
        maximum_volume_size=rng.choice(["", "", "3Gi"]),
        node_topology=topology,
    )


def random_world(rng: random.Random) -> tuple[World, VolumeBinding]:
    nodes = [
        make_node(
            name,
            zone=rng.choice(["", *ZONES]),
            labels={"disk": rng.choice(["ssd", "hdd"])} if rng.random() < 0.5 else {},
        )
        for name in NODES
    ]
    bound = [make_claim(f"bound-{number}", volume=f"b{number}", bound=True) for number in range(4)]
    unbound = [
        make_claim(
            f"open-{number}", storage_class=rng.choice(["local", "wait", "zoned", "tracked"]),
            size=f"{rng.randint(1, 5)}Gi",
            annotations={SELECTED_NODE: rng.choice(NODES)} if rng.random() < 0.15 else {},
        )
        for number in range(6)
    ]  # fmt: skip
    volumes = [random_volume(rng, f"b{number}", bound[number]) for number in range(3)]
    volumes += [random_volume(rng, f"v{number}") for number in range(rng.randint(0, 12))]
    volumes += [random_volume(rng, f"p{number}", rng.choice(unbound)) for number in range(rng.randint(0, 2))]
    annotation = {MIGRATED_PLUGINS: "kubernetes.io/gce-pd,kubernetes.io/aws-ebs"}
    csi_nodes = [
        CSINode(metadata=ObjectMeta(name=name, annotations=annotation if rng.random() < 0.5 else {}))
        for name in NODES
        if rng.random() < 0.7
    ]
    driver = CSIDriver(metadata=ObjectMeta(name="tracked.example.com"), spec=CSIDriverSpec(storage_capacity=True))
    objects = {
        "nodes": nodes,
        "persistentvolumeclaims": [*bound, *unbound],
        "persistentvolumes": volumes,
        "storageclasses.storage.k8s.io": random_classes(),
        "csinodes.storage.k8s.io": csi_nodes,
        "csidrivers.storage.k8s.io": [driver],
        "csistoragecapacities.storage.k8s.io": [random_capacity(rng, number) for number in range(rng.randint(0, 4))],
    }
    world = World(objects, feature_gates({}))
    for node in nodes:
        world.cache.add_node(node)
    world.cache.update_snapshot(world.current)
    return world, VolumeBinding(VolumeBindingArgs(), world)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_the_table_says_of_every_node_what_the_plain_form_says(seed):
    rng = random.Random(seed)
    told = set()
    for _ in range(30):
        world, plugin = random_world(rng)
        table = world.current.table
        names = [f"bound-{rng.randrange(4)}" for _ in range(rng.randint(0, 2))]
        names += [f"open-{number}" for number in rng.sample(range(6), rng.randint(0, 3))]
        pod = mount(make_pod("web"), *(names or ["open-0"]))
        state = CycleState(PodInfo(pod))
        status, _ = plugin.pre_filter(state, pod, table)
        assert status.is_success
        codes = plugin.filter_rows(state, pod, table, table.all_rows)
        for name, row in table.rows.items():
            plain = plainly(state.read(VOLUMES).claims, table.info(row).node)
            assert (int(codes.codes[row]) if codes is not ALL_PASS else 0) == plain, (seed, name, names)
            told.add(int(plain))
        some = np.array(rng.sample(range(table.size), 3))
        few = plugin.filter_rows(state, pod, table, some)
        assert (few.codes == codes.codes[some]).all() if codes.statuses and few.statuses else True
        with table.scratch([table.info(3).clone(), table.info(5).clone()]) as rows:
            tried = plugin.filter_rows(state, pod, table, rows)
            expected = codes.codes[[3, 5]] if codes.statuses else np.zeros(2, dtype=np.uint8)
            assert ((tried.codes if tried.statuses else np.zeros(2, dtype=np.uint8)) == expected).all()
    assert len(told) >= 4


def plainly(claims, node) -> int:
    try:
        return claims.find(node).conflicts
    except VolumeError:
        return UNREADABLE


def test_a_claim_gets_the_smallest_volume_that_suits_and_two_claims_get_two():
    world, plugin = fixed_world(
        [
            make_volume("large", storage_class="local", size="9Gi"),
            make_volume("small", storage_class="local", size="3Gi"),
        ],
        [make_claim("one", storage_class="local", size="2Gi"), make_claim("two", storage_class="local", size="1Gi")],
    )
    found = volumes_on(world, plugin, "n0", "one", "two")
    assert {each.claim.name: each.volume.name for each in found.static} == {"two": "small", "one": "large"}


def test_a_promised_volume_is_taken_whatever_its_access_modes_and_nowhere_else():
    claim = make_claim("one", storage_class="local", modes=["ReadWriteMany"])
    promised = make_volume("promised", storage_class="local", claim=claim, node="n1")
    world, plugin = fixed_world([promised, make_volume("free", storage_class="local")], [claim])
    assert [each.volume.name for each in volumes_on(world, plugin, "n1", "one").static] == ["promised"]
    assert volumes_on(world, plugin, "n0", "one").conflicts


def fixed_world(volumes, claims) -> tuple[World, VolumeBinding]:
    nodes = [make_node("n0"), make_node("n1")]
    objects = {
        "nodes": nodes,
        "persistentvolumes": volumes,
        "persistentvolumeclaims": claims,
        "storageclasses.storage.k8s.io": random_classes(),
    }
    world = World(objects, feature_gates({}))
    for node in nodes:
        world.cache.add_node(node)
    world.cache.update_snapshot(world.current)
    return world, VolumeBinding(VolumeBindingArgs(), world)


def volumes_on(world: World, plugin: VolumeBinding, node: str, *claims: str):
    pod = mount(make_pod("web"), *claims)
    state = CycleState(PodInfo(pod))
    status, _ = plugin.pre_filter(state, pod, world.current.table)
    assert status.is_success
    return plugin.found(state, world.current.get(node).node)
