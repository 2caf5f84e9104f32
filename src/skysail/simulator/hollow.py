"""Hollow nodes: nodes without machines, for clusters in one process.

They register, lift the taint that creation puts on, renew their leases, and walk the pods that the scheduler binds to
them through their lives (`hollow_pods`). Everything above cannot tell them from nodes with kubelets.

One watch of pods serves all nodes, one task renews all leases; a thousand nodes cost no more than their objects.

>>> node_object(HollowNode("node-1", zone="a"), HollowSettings())["metadata"]["labels"]["topology.kubernetes.io/zone"]
'a'
"""

import asyncio
import logging
from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from skysail.api.core import Pod, PodStatus
from skysail.api.errors import AlreadyExists, ApiError, Conflict, NotFound, Unreachable
from skysail.api.kinds import LEASES, NODES, PODS
from skysail.api.meta import format_micro_time, format_time
from skysail.api.node import Node
from skysail.api.raw import Raw
from skysail.controller.controller import Controller, Result
from skysail.controller.watches import Added, For, Updated
from skysail.controllers.patches import merge_difference
from skysail.informer.handlers import Handlers
from skysail.informer.keys import Key
from skysail.simulator.hollow_pods import Addresses, PodLatencies, Reported, next_step, running_status

_log = logging.getLogger(__name__)

NOT_READY = "node.kubernetes.io/not-ready"
LEASE_NAMESPACE = "kube-node-lease"
_RETRY_SECONDS = 1.0
_CAPACITY = {"cpu": "32", "memory": "256Gi", "pods": "110", "ephemeral-storage": "500Gi"}
_PRESSURES = (
    ("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
)


@dataclass(frozen=True, slots=True)
class HollowNode:
    """One node to pretend.

    Attributes:
        name: Its name and hostname.
        zone: Its `topology.kubernetes.io/zone`; empty for none.
        capacity: Quantities by resource; allocatable is the same. Empty takes the settings' default.
        labels: Beside hostname, zone, os and architecture.
        taints: As in the API.
        annotations: As in the API.
    """

    name: str
    zone: str = ""
    capacity: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[Raw] = ()
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HollowSettings:
    """How hollow nodes behave.

    Attributes:
        capacity: Of nodes that name none.
        latencies: Of their pods.
        heartbeat_seconds: How often leases are renewed. With more than 2,500 nodes it is stretched, so that all of
            them together write 250 leases a second, and stays below the lease's own 40 s.
        lease_seconds: What the leases promise.
        registrations: How many nodes register side by side.
    """

    capacity: Mapping[str, str] = field(default_factory=lambda: dict(_CAPACITY))
    latencies: PodLatencies = field(default_factory=PodLatencies)
    heartbeat_seconds: float = 10.0
    lease_seconds: int = 40
    registrations: int = 50


def numbered_nodes(
    count: int, prefix: str = "node-", zones: Sequence[str] = ("zone-a", "zone-b", "zone-c")
) -> list[HollowNode]:
    """Nodes `node-0`, `node-1`, ..., dealt out to the zones in turn."""
    return [
        HollowNode(f"{prefix}{number}", zone=zones[number % len(zones)] if zones else "") for number in range(count)
    ]


def node_object(node: HollowNode, settings: HollowSettings, now: datetime | None = None) -> Raw:
    """The Node object as a kubelet would register it, already Ready."""
    labels = {
        "kubernetes.io/hostname": node.name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        **({"topology.kubernetes.io/zone": node.zone} if node.zone else {}),
        **node.labels,
    }
    capacity = dict(node.capacity or settings.capacity)
    metadata: Raw = {"name": node.name, "labels": labels}
    if node.annotations:
        metadata["annotations"] = dict(node.annotations)
    status: Raw = {
        "capacity": capacity,
        "allocatable": capacity,
        "conditions": _conditions(now),
        "addresses": [{"type": "Hostname", "address": node.name}],
        "nodeInfo": _NODE_INFO,
    }
    spec: Raw = {"taints": list(node.taints)} if node.taints else {}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec, "status": status}


_NODE_INFO: Raw = {
    "architecture": "amd64",
    "bootID": "",
    "containerRuntimeVersion": "hollow://1",
    "kernelVersion": "",
    "kubeProxyVersion": "",
    "kubeletVersion": "v1.36.0-hollow",
    "machineID": "",
    "operatingSystem": "linux",
    "osImage": "Skysail hollow node",
    "systemUUID": "",
}


def _conditions(now: datetime | None) -> list[Raw]:
    times = {"lastHeartbeatTime": format_time(now), "lastTransitionTime": format_time(now)} if now is not None else {}
    found: list[Raw] = [
        {"type": kind, "status": "False", "reason": reason, "message": message, **times}
        for kind, reason, message in _PRESSURES
    ]
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status"}
    return [*found, {**ready, **times}]


def without_not_ready(node: Node) -> Raw:
    """The merge patch that lifts the not-ready taint; empty when it is not there."""
    if all(taint.key != NOT_READY for taint in node.spec.taints):
        return {}
    kept = [
        {"key": taint.key, "effect": taint.effect} | ({"value": taint.value} if taint.value else {})
        for taint in node.spec.taints
        if taint.key != NOT_READY
    ]
    return {"metadata": {"resourceVersion": node.metadata.resource_version}, "spec": {"taints": kept}}


def _is_ready(node: Node) -> bool:
    return any(each.type == "Ready" and each.status == "True" for each in node.status.conditions)


@dataclass(slots=True)
class _Life:
    """What is remembered of one pod."""

    seen: datetime
    pod_ip: str
    reported: Reported = field(default_factory=Reported)
    stopping_since: datetime | None = None
    version: int = 0


def _is_overruled(pod: Pod, life: _Life) -> bool:
    """Whether others took a ready pod for lost, with its node: its containers are ready, it is said not to be."""
    if life.reported.stage != "Ready" or pod.metadata.deletion_timestamp is not None:
        return False
    if int(pod.metadata.resource_version) < life.version:
        return False  # the cache has not heard our last report yet
    said = {each.type: each.status for each in pod.status.conditions}
    return said.get("Ready") == "False" and said.get("ContainersReady") == "True"


class HollowNodes(Controller):
    """The kubelets of all hollow nodes, in one controller.

    Args:
        nodes: Which to pretend; nodes of other names are left alone.
        settings: How they behave.
        lift_taints: Whether to lift the not-ready taint themselves; False where a node life cycle controller runs.
    """

    name = "hollow-nodes"
    workers = 16
    watches = (For(Pod, on=(Added, Updated), predicates=(lambda event: bool(event.object.spec.node_name),)),)

    def __init__(
        self, nodes: Iterable[HollowNode], settings: HollowSettings | None = None, *, lift_taints: bool = True
    ) -> None:
        self.settings = settings or HollowSettings()
        self._nodes = {node.name: node for node in nodes}
        self._numbers = {name: number for number, name in enumerate(self._nodes)}
        self._lift_taints = lift_taints
        self._lives: dict[str, _Life] = {}
        self._addresses: dict[str, Iterator[int]] = {}
        self._registered = asyncio.Event()

    def setup(self) -> None:
        """Watch what others say of the nodes; forget pods that are gone."""
        self.informer(Node)
        self.informer(Pod).add_handler(Handlers(delete=self._forget), name=self.name)

    async def wait_registered(self) -> None:
        """Wait until every node is in the API, Ready and without the not-ready taint."""
        await self._registered.wait()

    # Nodes

    async def run_beside(self) -> None:
        """Register all nodes, then keep their leases fresh."""
        names = list(self._nodes)
        slots = asyncio.Semaphore(self.settings.registrations)

        async def register(name: str) -> None:
            async with slots:
                while True:
                    if await self._try(self._register(name), "node not registered", name):
                        return
                    await asyncio.sleep(_RETRY_SECONDS)

        async with asyncio.TaskGroup() as group:
            for name in names:
                group.create_task(register(name))
        self._registered.set()
        await self._heartbeat(names)

    async def _register(self, name: str) -> None:
        node = self._nodes[name]
        body = node_object(node, self.settings, self.clock.now())
        body["status"]["addresses"].append({"type": "InternalIP", "address": self._host_ip(name)})
        try:
            made = await self.client.create(NODES, body)
        except AlreadyExists:
            made = await self.client.get(NODES, name)
            ready = {"status": {"conditions": body["status"]["conditions"]}}
            made = await self.client.patch(NODES, name, "", ready, subresource="status")
        while self._lift_taints and (patch := without_not_ready(made)):
            try:
                made = await self.client.patch(NODES, name, "", patch)
            except Conflict:
                made = await self.client.get(NODES, name)
        await self._make_lease(made)

    async def _make_lease(self, node: Node) -> None:
        owner = {"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": node.uid}
        body = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": node.name, "namespace": LEASE_NAMESPACE, "ownerReferences": [owner]},
            "spec": {
                "holderIdentity": node.name,
                "leaseDurationSeconds": self.settings.lease_seconds,
                "renewTime": format_micro_time(self.clock.now()),
            },
        }
        try:
            await self.client.create(LEASES, body, LEASE_NAMESPACE)
        except AlreadyExists:
            await self._renew(node.name)

    async def _heartbeat(self, names: Sequence[str]) -> None:
        """Renew every lease once a period, evenly spread."""
        if not names:
            return
        period = max(self.settings.heartbeat_seconds, min(len(names) / 250.0, self.settings.lease_seconds * 0.75))
        slices = min(len(names), 100)
        while True:
            for number in range(slices):
                for name in names[number::slices]:
                    if await self._try(self._renew(name), "lease not renewed", name):
                        await self._try(self._recover(name), "node not reported", name)
                await asyncio.sleep(period / slices)

    async def _renew(self, name: str) -> None:
        patch = {"spec": {"renewTime": format_micro_time(self.clock.now())}}
        await self.client.patch(LEASES, name, LEASE_NAMESPACE, patch)

    async def _recover(self, name: str) -> None:
        """Say that a node is ready that was given up meanwhile, as a kubelet does."""
        node = self.lister(Node).named(name)
        if node is not None and not _is_ready(node):
            patch = {"status": {"conditions": _conditions(self.clock.now())}}
            await self.client.patch(NODES, name, "", patch, subresource="status")

    async def _try(self, doing: Coroutine[None, None, None], failure: str, node: str) -> bool:
        """Whether it was done; what the server refuses or does not hear is tried again another time."""
        try:
            await doing
        except (ApiError, Unreachable) as error:
            _log.info(failure, extra={"node": node, "error": str(error)})
            return False
        return True

    def _host_ip(self, name: str) -> str:
        number = self._numbers[name]
        return f"172.{16 + (number >> 16)}.{(number >> 8) & 255}.{number & 255}"

    def _pod_ip(self, name: str) -> str:
        number = self._numbers[name]
        serial = self._addresses.setdefault(name, iter(()))
        host = next(serial, 0)
        if host == 0:
            self._addresses[name] = iter(range(3, 255))
            host = 2
        return f"10.{64 + (number >> 8)}.{number & 255}.{host}"

    # Pods

    def _forget(self, pod: Pod) -> None:
        self._lives.pop(pod.uid, None)

    async def reconcile(self, key: Key) -> Result | None:
        """Take one pod one step further, when its time has come."""
        pod = self.informer(Pod).lister.get(key)
        if pod is None or pod.spec.node_name not in self._nodes:
            return None
        life = self._life(pod)
        addresses = Addresses(self._host_ip(pod.spec.node_name), life.pod_ip)
        seen = life.stopping_since or life.seen
        if _is_overruled(pod, life):
            await self._report(pod, running_status(pod, addresses, self.clock.now(), ready=True), life)
        step = next_step(pod, life.reported, addresses, self.settings.latencies, seen)
        if step is None:
            return None
        wait = (step.due - self.clock.now()).total_seconds()
        if wait > 0:
            return Result(wait)
        if step.status is None:
            await self._remove(pod)
        elif not await self._report(pod, step.status, life):
            return None
        life.reported = Reported(step.stage, self.clock.now())
        return Result(0.0)

    def _life(self, pod: Pod) -> _Life:
        now = self.clock.now()
        life = self._lives.get(pod.uid)
        if life is None:
            life = self._lives[pod.uid] = _Life(now, pod.status.pod_ip or self._pod_ip(pod.spec.node_name))
        if pod.metadata.deletion_timestamp is not None and life.stopping_since is None:
            life.stopping_since = now
        return life

    async def _report(self, pod: Pod, status: PodStatus, life: _Life) -> bool:
        """Write the difference; False when the pod is gone or another one."""
        difference = merge_difference(pod.status, status)
        if not difference:
            return True
        patch = {"metadata": {"uid": pod.uid}, "status": difference}
        try:
            written = await self.client.patch(PODS, pod.name, pod.namespace, patch, subresource="status")
        except (NotFound, Conflict):
            return False
        life.version = int(written.metadata.resource_version)
        return True

    async def _remove(self, pod: Pod) -> None:
        try:
            await self.client.delete(PODS, pod.name, pod.namespace, grace_period_seconds=0, uid=pod.uid)
        except (NotFound, Conflict):
            return
