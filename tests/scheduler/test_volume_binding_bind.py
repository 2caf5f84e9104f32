"""What VolumeBinding assumes, writes and waits for, step by step, with a server that does as it is told."""

import asyncio

import msgspec

from skysail.api.errors import Conflict
from skysail.api.meta import ApiObject
from skysail.api.storage import PersistentVolumeClaim
from skysail.api.volumes import BIND_COMPLETED, SELECTED_NODE, with_annotation, without_annotation
from skysail.scheduler.cache.pod_info import PodInfo
from skysail.scheduler.framework.cycle_state import CycleState
from skysail.scheduler.framework.feature_gates import feature_gates
from skysail.scheduler.plugins.args import VolumeBindingArgs
from skysail.scheduler.plugins.volume_binding import VolumeBinding
from skysail.scheduler.scenario import ObjectLister, World
from skysail.simulator.clock import LoopClock, run_virtual
from skysail.testing.builders import make_node
from skysail.testing.volumes import make_claim, make_pod, make_storage_class, make_volume, mount

POD = mount(make_pod("web", uid="web"), "data")
RESOURCES = {"PersistentVolume": "persistentvolumes", "PersistentVolumeClaim": "persistentvolumeclaims"}


class LiveLister(ObjectLister):
    """Reads what the world holds now."""

    def __init__(self, world: "LiveWorld", resource: str) -> None:
        self._world, self._resource = world, resource

    def list(self, namespace=None):
        return list(self._world.objects.get(self._resource, ()))

    def get(self, namespace, name):
        found = (each for each in self.list() if (each.metadata.namespace, each.name) == (namespace, name))
        return next(found, None)

    def indexed(self, name, values):
        return lambda value: [each for each in self.list() if value in values(each)]


class LiveWorld(World):
    """A world whose objects change: `put` is what the watch shows; patches are what was written."""

    patches: list
    refuse: Exception | None = None
    pod_is_gone = False
    lags = False

    def lister(self, kind):
        return LiveLister(self, kind.resource)

    @property
    def writer(self):
        return self

    @property
    def clock(self):
        return LoopClock(asyncio.get_running_loop())

    def last_seen(self, pod):
        return None if self.pod_is_gone else pod

    def put(self, obj: ApiObject) -> None:
        resource = RESOURCES[obj.kind]
        others = [each for each in self.objects[resource] if each.name != obj.name]
        self.objects[resource] = [*others, obj]

    def bump(self, obj: ApiObject) -> ApiObject:
        metadata = msgspec.structs.replace(
            obj.metadata, resource_version=str(int(obj.metadata.resource_version or 0) + 1)
        )
        return msgspec.structs.replace(obj, metadata=metadata)

    async def patch(self, kind, name, namespace, patch, *, subresource=""):
        self.patches.append((kind.name, name, patch))
        if self.refuse is not None:
            raise self.refuse
        old = self.lister(kind).get(namespace, name)
        merged = msgspec.to_builtins(old)
        merge(merged, patch)
        new = self.bump(msgspec.convert(merged, kind.struct))
        if not self.lags:
            self.put(new)
        return new


def merge(into: dict, patch: dict) -> None:
    for key, value in patch.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            merge(into[key], value)
        else:
            into[key] = value


def world_with(*, volumes=(), provisioner="csi.example.com") -> tuple[LiveWorld, VolumeBinding]:
    objects = {
        "nodes": [make_node("n0", zone="a"), make_node("n1", zone="b")],
        "persistentvolumes": list(volumes),
        "persistentvolumeclaims": [make_claim("data"), make_claim("more")],
        "storageclasses.storage.k8s.io": [make_storage_class("standard", provisioner=provisioner)],
    }
    world = LiveWorld(objects, feature_gates({}))
    world.patches = []
    for node in objects["nodes"]:
        world.cache.add_node(node)
    world.cache.update_snapshot(world.current)
    return world, VolumeBinding(VolumeBindingArgs(bind_timeout_seconds=60), world)


def reserved(world: LiveWorld, plugin: VolumeBinding, pod=POD, node="n0") -> CycleState:
    state = CycleState(PodInfo(pod))
    assert plugin.pre_filter(state, pod, world.current.table)[0].is_success
    assert plugin.reserve(state, pod, node).is_success
    return state


def claim(world: LiveWorld, name="data") -> PersistentVolumeClaim:
    return next(each for each in world.objects["persistentvolumeclaims"] if each.name == name)


def bound(claim: PersistentVolumeClaim, volume: str) -> PersistentVolumeClaim:
    spec = msgspec.structs.replace(claim.spec, volume_name=volume)
    return with_annotation(msgspec.structs.replace(claim, spec=spec), BIND_COMPLETED, "yes")


def pre_bind(world: LiveWorld, plugin: VolumeBinding, state: CycleState, *later, node="n0"):
    """Run PreBind; each of `later` happens ten seconds after the one before. The answer, and how long it took."""

    async def main():
        async with asyncio.TaskGroup() as group:
            start = asyncio.get_running_loop().time()
            task = group.create_task(plugin.pre_bind(state, POD, node))
            for step in later:
                await asyncio.sleep(10)
                step()
            status = await task
            return status, asyncio.get_running_loop().time() - start

    return run_virtual(main())


def test_what_one_pod_reserved_the_next_does_not_see():
    world, plugin = world_with(volumes=[make_volume("disk")], provisioner="kubernetes.io/no-provisioner")
    reserved(world, plugin)
    other = mount(make_pod("other"), "more")
    state = CycleState(PodInfo(other))
    plugin.pre_filter(state, other, world.current.table)
    assert plugin.filter_rows(state, other, world.current.table, slice(0, 2)).statuses


def test_unreserve_gives_everything_back_and_may_be_called_twice():
    world, plugin = world_with(volumes=[make_volume("disk")], provisioner="kubernetes.io/no-provisioner")
    state = reserved(world, plugin)
    assert len(plugin.volumes) == 1
    plugin.unreserve(state, POD, "n0")
    plugin.unreserve(state, POD, "n0")
    assert len(plugin.volumes) == 0
    plugin.unreserve(CycleState(PodInfo(POD)), POD, "n0")


def test_a_claim_that_takes_a_free_volume_is_bound_by_writing_the_volume():
    world, plugin = world_with(volumes=[make_volume("disk")])
    state = reserved(world, plugin)
    assert plugin.pre_bind_pre_flight(state, POD, "n0").is_success
    status, seconds = pre_bind(world, plugin, state, lambda: world.put(bound(claim(world), "disk")))
    assert status.is_success
    assert 10 <= seconds <= 11
    [(kind, name, patch)] = world.patches
    assert (kind, name) == ("PersistentVolume", "disk")
    assert patch["spec"]["claimRef"]["uid"] == "data-uid"
    assert patch["metadata"]["annotations"] == {"pv.kubernetes.io/bound-by-controller": "yes"}


def test_a_claim_whose_volume_is_to_be_made_is_told_the_node():
    world, plugin = world_with()
    state = reserved(world, plugin)

    def made() -> None:
        world.put(make_volume("made", zone="a", claim=claim(world)))
        world.put(bound(claim(world), "made"))

    status, _ = pre_bind(world, plugin, state, made)
    assert status.is_success
    assert [(kind, patch["metadata"]["annotations"]) for kind, _, patch in world.patches] == [
        ("PersistentVolumeClaim", {SELECTED_NODE: "n0"})
    ]


def test_a_pod_whose_claims_are_bound_meanwhile_has_nothing_to_write():
    world, plugin = world_with()
    state = CycleState(PodInfo(POD))
    plugin.pre_filter(state, POD, world.current.table)
    world.put(make_volume("made", claim=claim(world)))
    world.put(bound(claim(world), "made"))
    assert plugin.reserve(state, POD, "n0").is_success
    assert plugin.pre_bind_pre_flight(state, POD, "n0").is_skip
    assert pre_bind(world, plugin, state)[0].is_success
    assert world.patches == []


def test_a_provisioner_that_takes_the_node_back_ends_the_waiting():
    world, plugin = world_with()
    state = reserved(world, plugin)
    refused = pre_bind(
        world,
        plugin,
        state,
        lambda: world.put(without_annotation(with_annotation(claim(world), "a", "b"), SELECTED_NODE)),
    )
    assert refused[0].message == 'binding volumes: provisioning failed for PVC "data"'


def test_a_volume_made_elsewhere_ends_the_waiting():
    world, plugin = world_with()
    state = reserved(world, plugin)

    def made_elsewhere() -> None:
        world.put(make_volume("made", zone="b", claim=claim(world)))
        world.put(bound(claim(world), "made"))

    status, _ = pre_bind(world, plugin, state, made_elsewhere)
    assert status.message == (
        'binding volumes: pv "made" node affinity doesn\'t match node "n0": no matching NodeSelectorTerms'
    )


def test_a_volume_that_lost_its_claim_ends_the_waiting():
    world, plugin = world_with(volumes=[make_volume("disk")])
    state = reserved(world, plugin)
    status, _ = pre_bind(world, plugin, state, lambda: world.put(world.bump(world.bump(make_volume("disk")))))
    assert status.message == 'binding volumes: ClaimRef got reset for pv "disk"'


def test_a_pod_that_is_deleted_ends_the_waiting():
    world, plugin = world_with()
    state = reserved(world, plugin)
    status, seconds = pre_bind(world, plugin, state, lambda: setattr(world, "pod_is_gone", True))
    assert status.message.startswith("binding volumes: pod does not exist any more")
    assert seconds <= 11


def test_waiting_ends_after_the_configured_time():
    world, plugin = world_with()
    state = reserved(world, plugin)
    status, seconds = pre_bind(world, plugin, state)
    assert status.message == "binding volumes: context deadline exceeded"
    assert 60 <= seconds <= 61


def test_a_refused_write_fails_the_pod_and_unreserve_gives_back_what_was_not_written():
    world, plugin = world_with(volumes=[make_volume("disk")])
    state = reserved(world, plugin)
    world.refuse = Conflict("the object has been modified")
    status, seconds = pre_bind(world, plugin, state)
    assert status.is_error
    assert seconds == 0
    plugin.unreserve(state, POD, "n0")
    assert len(plugin.volumes) == 0


def test_what_was_written_stays_assumed_until_the_watch_shows_it():
    world, plugin = world_with(volumes=[make_volume("disk")])
    world.lags = True
    state = reserved(world, plugin)
    status, _ = pre_bind(world, plugin, state)
    assert status.message == "binding volumes: context deadline exceeded"
    plugin.unreserve(state, POD, "n0")
    assert plugin.volumes.get("", "disk").spec.claim_ref.uid == "data-uid"
    world.put(world.bump(make_volume("disk")))
    assert plugin.volumes.get("", "disk").spec.claim_ref is None


def test_a_claim_that_changed_since_the_decision_fails_the_reservation():
    world, plugin = world_with()
    state = CycleState(PodInfo(POD))
    plugin.pre_filter(state, POD, world.current.table)
    world.put(world.bump(claim(world)))
    assert plugin.reserve(state, POD, "n0").message == '"default/data" is out of sync'
    plugin.unreserve(state, POD, "n0")
    assert len(plugin.claims) == 0


def test_nothing_is_written_where_nothing_may_be():
    world, plugin = world_with()
    state = reserved(world, plugin)
    LiveWorld.writer, kept = property(lambda self: None), LiveWorld.writer
    try:
        assert pre_bind(world, plugin, state)[0].is_success
    finally:
        LiveWorld.writer = kept
    assert world.patches == []
