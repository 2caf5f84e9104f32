"""Pods with claims on the embedded cluster: scheduler, binder, hollow provisioner and hollow nodes together."""

import os

import msgspec
import pytest

from skysail.api.apps import StatefulSet
from skysail.api.core import EphemeralVolumeSource, Pod, Volume
from skysail.api.kinds import PERSISTENT_VOLUME_CLAIMS, PODS, STATEFULSETS
from skysail.api.storage import PersistentVolume, PersistentVolumeClaim
from skysail.api.volumes import SELECTED_NODE
from skysail.simulator.clock import run_virtual
from skysail.simulator.hollow import numbered_nodes
from skysail.testing import make_pod
from skysail.testing.cluster import Cluster
from skysail.testing.faults import Chaos
from skysail.testing.volumes import make_claim, make_storage_class, make_volume, mount

ZONES = ("a", "b", "c")
SEEDS = range(int(os.environ.get("SOAK_SEEDS", "10")))
STORM = Chaos(refuse=0.1, lose_request=0.05, lose_answer=0.05, drop_watch=0.02, delay=0.1, delay_seconds=2.0)
VOLUME_CONTROLLERS = (
    "persistentvolume-binder-controller", "hollow-volume-provisioner", "persistentvolumeclaim-protection-controller",
    "persistentvolume-protection-controller", "garbage-collector-controller",
)  # fmt: skip


async def start(cluster, nodes: int = 3) -> None:
    await cluster.add_nodes(numbered_nodes(nodes, zones=ZONES))
    await cluster.start_controllers()
    await cluster.start_scheduler()


def zone_of(volume: PersistentVolume) -> str:
    return volume.spec.node_affinity.required.node_selector_terms[0].match_expressions[0].values[0]


async def phases(cluster, kind) -> dict[str, str]:
    return {each.name: each.status.phase for each in await cluster.list(kind)}


async def test_a_stateful_set_gets_a_volume_for_each_pod_where_the_pod_is(cluster):
    await start(cluster)
    await cluster.create(make_storage_class("standard"))
    template = {
        "metadata": {"labels": {"app": "db"}},
        "spec": {
            "containers": [{"name": "db", "image": "db:1", "resources": {"requests": {"cpu": "1"}}}],
            "affinity": {
                "podAntiAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [
                        {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "topology.kubernetes.io/zone"}
                    ]
                }
            },
        },
    }
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "standard",
            "resources": {"requests": {"storage": "5Gi"}},
        },
    }
    spec = {
        "replicas": 3, "serviceName": "db", "selector": {"matchLabels": {"app": "db"}}, "template": template,
        "volumeClaimTemplates": [claim],
    }  # fmt: skip
    body = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"}, "spec": spec}
    await cluster.client.create(STATEFULSETS, body, "default")
    await cluster.settle()
    assert await phases(cluster, Pod) == {"db-0": "Running", "db-1": "Running", "db-2": "Running"}
    volumes = {volume.name: volume for volume in await cluster.list(PersistentVolume)}
    pods = {pod.name: pod for pod in await cluster.list(Pod)}
    for claim in await cluster.list(PersistentVolumeClaim):
        assert claim.status.phase == "Bound"
        assert claim.status.capacity == {"storage": "5Gi"}
        node = pods[claim.name.removeprefix("data-")].spec.node_name
        assert claim.metadata.annotations[SELECTED_NODE] == node
        assert zone_of(volumes[claim.spec.volume_name]) == ZONES[int(node.rpartition("-")[2]) % 3]
    assert sorted(map(zone_of, volumes.values())) == ["a", "b", "c"]
    assert (await cluster.get(StatefulSet, "db")).status.ready_replicas == 3


async def test_a_pod_that_comes_back_goes_where_its_volume_is(cluster):
    await start(cluster)
    await cluster.create(make_storage_class("standard"))
    await cluster.create(make_claim("data"))
    await cluster.create(mount(make_pod("web", cpu="1"), "data"))
    await cluster.settle()
    node = (await cluster.get(Pod, "web")).spec.node_name
    for round in range(3):
        await cluster.client.delete(PODS, "web", "default")
        await cluster.settle()
        await cluster.create(mount(make_pod("web", cpu="1", uid=f"web-{round}"), "data"))
        await cluster.settle()
        assert (await cluster.get(Pod, "web")).spec.node_name == node


async def test_two_pods_never_get_the_same_free_volume(cluster):
    await start(cluster)
    await cluster.create(make_storage_class("local", provisioner="kubernetes.io/no-provisioner"))
    await cluster.create(*(make_volume(f"disk-{number}", storage_class="local") for number in range(4)))
    await cluster.create(*(make_claim(f"data-{number}", storage_class="local") for number in range(5)))
    await cluster.settle()
    await cluster.create(*(mount(make_pod(f"web-{number}", cpu="100m"), f"data-{number}") for number in range(5)))
    await cluster.settle()
    pods = await phases(cluster, Pod)
    assert sorted(pods.values()) == ["Pending", "Running", "Running", "Running", "Running"]
    taken = [claim.spec.volume_name for claim in await cluster.list(PersistentVolumeClaim) if claim.spec.volume_name]
    assert sorted(taken) == ["disk-0", "disk-1", "disk-2", "disk-3"]
    assert set((await phases(cluster, PersistentVolume)).values()) == {"Bound"}


async def test_a_pod_waits_for_a_volume_and_is_placed_as_soon_as_one_comes(cluster):
    await start(cluster)
    await cluster.create(make_storage_class("local", provisioner="kubernetes.io/no-provisioner"))
    await cluster.create(make_claim("data", storage_class="local"))
    await cluster.create(mount(make_pod("web", cpu="1"), "data"))
    await cluster.settle()
    pod = await cluster.get(Pod, "web")
    [message] = [each.message for each in pod.status.conditions if each.type == "PodScheduled"]
    assert message.startswith("0/3 nodes are available: 3 node(s) didn't find available persistent volumes to bind.")
    await cluster.create(make_volume("disk", storage_class="local", zone="b"))
    await cluster.settle()
    pod = await cluster.get(Pod, "web")
    assert (pod.spec.node_name, pod.status.phase) == ("node-1", "Running")


async def test_an_immediate_claim_is_bound_before_its_pod_is_placed(cluster):
    await start(cluster)
    await cluster.create(make_storage_class("standard", waits=False, zones=["c"]))
    await cluster.create(mount(make_pod("web", cpu="1"), "data"))
    await cluster.settle()
    assert (await cluster.get(Pod, "web")).spec.node_name == ""
    await cluster.create(make_claim("data"))
    await cluster.settle()
    assert (await cluster.get(PersistentVolumeClaim, "data")).status.phase == "Bound"
    assert (await cluster.get(Pod, "web")).spec.node_name == "node-2"


async def test_a_class_is_taken_over_by_an_annotation(cluster):
    await start(cluster)
    taken_over = make_storage_class("fast", provisioner="ebs.csi.aws.com", annotations={"skysail.io/hollow": "true"})
    await cluster.create(taken_over, make_storage_class("slow", provisioner="ebs.csi.aws.com"))
    await cluster.create(make_claim("one", storage_class="fast"), make_claim("two", storage_class="slow"))
    await cluster.create(mount(make_pod("web-1", cpu="1"), "one"), mount(make_pod("web-2", cpu="1"), "two"))
    await cluster.settle(timeout=900)
    assert await phases(cluster, PersistentVolumeClaim) == {"one": "Bound", "two": "Pending"}
    assert (await cluster.get(Pod, "web-1")).status.phase == "Running"
    [volume] = await cluster.list(PersistentVolume)
    assert volume.spec.csi.driver == "ebs.csi.aws.com"


async def test_an_ephemeral_volume_gets_a_claim_that_goes_with_its_pod(cluster):
    await start(cluster)
    await cluster.create(make_storage_class("standard"))
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "standard",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    scratch = EphemeralVolumeSource(volume_claim_template=msgspec.Raw(msgspec.json.encode(template)))
    pod = make_pod("web", cpu="1")
    spec = msgspec.structs.replace(pod.spec, volumes=(Volume(name="scratch", ephemeral=scratch),))
    await cluster.create(msgspec.structs.replace(pod, spec=spec))
    await cluster.settle()
    assert (await cluster.get(Pod, "web")).status.phase == "Running"
    claim = await cluster.get(PersistentVolumeClaim, "web-scratch")
    assert (claim.status.phase, claim.metadata.labels) == ("Bound", {"app": "web"})
    await cluster.client.delete(PODS, "web", "default")
    await cluster.settle()
    assert await cluster.list(PersistentVolumeClaim) == []
    assert await cluster.list(PersistentVolume) == []


async def test_a_claim_in_use_is_kept_until_its_pod_is_gone_and_its_volume_goes_with_it(cluster):
    await start(cluster)
    await cluster.create(make_storage_class("standard"))
    await cluster.create(make_claim("data"))
    await cluster.create(mount(make_pod("web", cpu="1"), "data"))
    await cluster.settle()
    await cluster.client.delete(PERSISTENT_VOLUME_CLAIMS, "data", "default")
    await cluster.settle()
    assert (await cluster.get(PersistentVolumeClaim, "data")).metadata.deletion_timestamp is not None
    await cluster.client.delete(PODS, "web", "default")
    await cluster.settle()
    assert await cluster.list(PersistentVolumeClaim) == []
    assert await cluster.list(PersistentVolume) == []


async def test_a_retained_volume_is_released_and_not_given_to_a_namesake(cluster):
    await start(cluster)
    await cluster.create(make_storage_class("standard", policy="Retain"))
    await cluster.create(make_claim("data"))
    await cluster.create(mount(make_pod("web", cpu="1"), "data"))
    await cluster.settle()
    [first] = await cluster.list(PersistentVolume)
    await cluster.client.delete(PODS, "web", "default")
    await cluster.client.delete(PERSISTENT_VOLUME_CLAIMS, "data", "default")
    await cluster.settle()
    assert await phases(cluster, PersistentVolume) == {first.name: "Released"}
    await cluster.create(make_claim("data"))
    await cluster.create(mount(make_pod("web", cpu="1", uid="other"), "data"))
    await cluster.settle()
    assert (await cluster.get(Pod, "web")).status.phase == "Running"
    assert (await cluster.get(PersistentVolumeClaim, "data")).spec.volume_name != first.name
    assert sorted((await phases(cluster, PersistentVolume)).values()) == ["Bound", "Released"]


async def test_a_provisioner_that_cannot_serve_the_node_has_the_pod_tried_again(cluster):
    """The chosen node goes while the volume is made: the claim forgets it, and the pod is placed elsewhere."""
    await start(cluster)
    await cluster.create(make_storage_class("standard"))
    await cluster.create(make_claim("data", annotations={SELECTED_NODE: "node-gone"}))
    await cluster.create(mount(make_pod("web", cpu="1"), "data"))
    await cluster.settle(timeout=900)
    pod = await cluster.get(Pod, "web")
    assert pod.status.phase == "Running"
    assert (await cluster.get(PersistentVolumeClaim, "data")).metadata.annotations[SELECTED_NODE] == pod.spec.node_name


async def test_after_a_crash_of_the_scheduler_in_the_middle_everything_is_bound_once(cluster):
    await start(cluster)
    await cluster.create(make_storage_class("standard"))
    await cluster.create(*(make_claim(f"data-{number}") for number in range(6)))
    await cluster.create(*(mount(make_pod(f"web-{number}", cpu="100m"), f"data-{number}") for number in range(6)))
    await cluster.crash_after("scheduler", 60)
    await cluster.restart("scheduler")
    await cluster.settle()
    assert set((await phases(cluster, Pod)).values()) == {"Running"}
    assert set((await phases(cluster, PersistentVolumeClaim)).values()) == {"Bound"}
    assert len(await cluster.list(PersistentVolume)) == 6


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_gets_lost_every_claim_has_one_volume_and_no_volume_two_claims(seed):
    async def main(clock):
        async with Cluster(seed=seed) as cluster:
            await storm(cluster)

    run_virtual(main)


async def storm(cluster) -> None:
    await cluster.add_nodes(numbered_nodes(4, zones=ZONES))
    await cluster.start_controllers(*VOLUME_CONTROLLERS)
    await cluster.start_scheduler()
    await cluster.create(make_storage_class("made"), make_storage_class("local", provisioner="example.com/none"))
    await cluster.create(*(make_volume(f"disk-{number}", storage_class="local") for number in range(3)))
    cluster.faults.chaos = STORM
    for number in range(6):
        storage = cluster.rng.choice(["made", "local"]) if number > 2 else "local"
        await cluster.create(make_claim(f"data-{number}", storage_class=storage))
        await cluster.create(mount(make_pod(f"web-{number}", cpu="100m"), f"data-{number}"))
        await cluster.advance(cluster.rng.random() * 8)
        if cluster.rng.random() < 0.3:
            victim = cluster.rng.choice(["scheduler", "controllers"])
            cluster.kill(victim)
            await cluster.restart(victim)
    cluster.faults.clear()
    await cluster.settle(timeout=7_200)
    claims = await cluster.list(PersistentVolumeClaim)
    bound = {claim.uid: claim.spec.volume_name for claim in claims if claim.status.phase == "Bound"}
    assert len(set(bound.values())) == len(bound)
    assert sum(name.startswith("disk-") for name in bound.values()) == 3
    for claim in claims:
        if claim.spec.storage_class_name == "made":
            assert bound[claim.uid] == f"pvc-{claim.uid}"
    owners = {
        each.spec.claim_ref.uid: each.name for each in await cluster.list(PersistentVolume) if each.spec.claim_ref
    }
    assert owners == bound
    for pod in await cluster.list(Pod):
        number = pod.name.removeprefix("web-")
        uid = next(claim.uid for claim in claims if claim.name == f"data-{number}")
        assert (pod.status.phase == "Running") == (uid in bound), pod.name
