"""The node life cycle controller's shell.

Three things run: a look at every node's health each period, the marking of silent nodes at their zone's rate, and
workers that keep the NoSchedule taints of nodes, and the readiness of pods on silent nodes, as they should be.

Source: pkg/controller/nodelifecycle/node_lifecycle_controller.go, v1.36.
"""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import msgspec

from skysail.api.coordination import Lease
from skysail.api.core import Pod, PodCondition, PodStatus
from skysail.api.errors import ApiError, Conflict, NotFound, Unreachable
from skysail.api.kinds import NODES, PODS
from skysail.api.node import Node, NodeCondition, NodeStatus
from skysail.controller.controller import Result
from skysail.controller.recorder import CoreEventRecorder
from skysail.controllers.builtin import PODS_BY_NODE, BuiltinController, index_by_node
from skysail.controllers.nodelifecycle.health import (
    HealthRecord,
    HealthSettings,
    Verdict,
    is_counted,
    judge_health,
    ready_condition,
    zone_of,
)
from skysail.controllers.nodelifecycle.marking import NoExecuteMarker
from skysail.controllers.nodelifecycle.tainting import RatedQueue
from skysail.controllers.nodelifecycle.taints import (
    NO_EXECUTE,
    has_taint,
    marks_of,
    missing_labels,
    no_schedule_taints,
    taints_patch,
)
from skysail.controllers.nodelifecycle.zones import (
    EvictionSettings,
    Response,
    ZoneState,
    decide_disruption,
)
from skysail.controllers.pods import pod_condition
from skysail.informer.handlers import Handlers
from skysail.informer.keys import Key

LEASE_NAMESPACE = "kube-node-lease"
TAINTING_PERIOD_SECONDS = 0.1
_RETRIES = 5
_BREATH = 128
"""After so many nodes others may run: a look takes no longer than a millisecond or two."""


@dataclass(frozen=True, slots=True)
class NodeLifecycleSettings:
    """How nodes are watched over.

    Attributes:
        health: When a node counts as silent.
        eviction: How fast silent nodes are emptied.
        period_seconds: How often every node is looked at.
    """

    health: HealthSettings = field(default_factory=HealthSettings)
    eviction: EvictionSettings = field(default_factory=EvictionSettings)
    period_seconds: float = 5.0


class NodeLifecycleController(BuiltinController):
    """Watches over nodes.

    Args:
        settings: See there.
    """

    name = "node-lifecycle"
    workers = 8

    def __init__(self, settings: NodeLifecycleSettings | None = None) -> None:
        self.settings = settings or NodeLifecycleSettings()
        self._known: dict[str, Node] = {}
        self._records: dict[str, HealthRecord] = {}
        self._zones: dict[str, ZoneState] = {}
        self._queues: dict[str, RatedQueue] = {}
        self._retry_pods: set[str] = set()
        self._queued = asyncio.Event()

    def setup(self) -> None:
        """Hook up nodes, pods and leases; Events go out in the name people know."""
        self._events = CoreEventRecorder(self.api, "node-controller", clock=self.clock, rng=self.rng)
        self._marker = NoExecuteMarker(self.api, self.written_now)
        self.informer(Lease)
        self.informer(Pod).add_indexes({PODS_BY_NODE: index_by_node})
        self.informer(Node).add_handler(Handlers(add=self._node_seen, update=self._node_changed), name=self.name)
        self.informer(Pod).add_handler(Handlers(add=self._pod_seen, update=self._pod_changed), name=self.name)

    def _node_seen(self, node: Node) -> None:
        self.enqueue(Key("", node.name))

    def _node_changed(self, _: Node, node: Node) -> None:
        self.enqueue(Key("", node.name))

    def _pod_seen(self, pod: Pod) -> None:
        if pod.spec.node_name:
            self.enqueue(Key(pod.namespace, pod.name))

    def _pod_changed(self, old: Pod, new: Pod) -> None:
        if new.spec.node_name and new.spec.node_name != old.spec.node_name:
            self.enqueue(Key(new.namespace, new.name))

    async def run_beside(self) -> None:
        """Write Events, look at all nodes each period, and mark silent ones."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._events.run())
            group.create_task(self._mark_silent_nodes())
            while True:
                with suppress(ApiError, Unreachable):  # what was not reached is looked at again in the next period
                    await self.look_at_all()
                await asyncio.sleep(self.settings.period_seconds)

    # Keys: nodes without a namespace, pods with one

    async def reconcile(self, key: Key) -> Result | None:
        """Put one node's NoSchedule taints and labels right, or mark one pod that came to a silent node."""
        if key.namespace:
            await self._check_new_pod(key)
            return None
        node = self.lister(Node).get(key)
        if node is None:
            return None
        taints = no_schedule_taints(node, self.written_now())
        try:
            if taints is not None:
                await self.api.patch(NODES, node.name, "", taints_patch(node, taints))
            if labels := missing_labels(node):
                await self.api.patch(NODES, node.name, "", {"metadata": {"labels": labels}})
        except NotFound:
            return None
        return None

    async def _check_new_pod(self, key: Key) -> None:
        pod = self.lister(Pod).get(key)
        record = self._records.get(pod.spec.node_name) if pod is not None else None
        if pod is not None and record is not None and record.ready is not None and record.ready.status != "True":
            await self._mark_pods_unready([pod])

    # Health

    async def look_at_all(self) -> None:
        """One look at every node: who is new, who is gone, who is silent, and how the zones are."""
        nodes = sorted(self.lister(Node).list(), key=lambda node: node.name)
        await self._meet(nodes)
        zones: dict[str, list[NodeCondition | None]] = {}
        for number, node in enumerate(nodes):
            if number % _BREATH == 0:
                await asyncio.sleep(0)
            try:
                found = await self._look_at(node)
            except (ApiError, Unreachable):
                continue
            if found is not None and is_counted(node):
                zones.setdefault(zone_of(node), []).append(found.current)
        await self._respond(zones, nodes)

    async def _meet(self, nodes: Sequence[Node]) -> None:
        names = {node.name for node in nodes}
        for node in nodes:
            self._queue_of(node)
            if node.name not in self._known:
                self._tell(node, "RegisteredNode", f"Registered Node {node.name} in Controller")
                self._known[node.name] = node
                await self._mark_reachable(node)
        for name in [name for name in self._known if name not in names]:
            self._tell(self._known.pop(name), "RemovingNode", f"Removing Node {name} from Controller")

    def _tell(self, node: Node, reason: str, words: str) -> None:
        self._events.event(node, "Normal", reason, f"Node {node.name} event: {words}")

    def _queue_of(self, node: Node) -> RatedQueue:
        zone = zone_of(node)
        if zone not in self._queues:
            self._zones[zone] = ZoneState.INITIAL
            self._queues[zone] = RatedQueue(self.settings.eviction.rate, self.clock.monotonic())
        return self._queues[zone]

    async def _look_at(self, node: Node) -> Verdict | None:
        found = await self._judge(node)
        if found is None:
            return None
        verdict, node = found
        if verdict.current is None:
            return verdict
        await self._mark_by_readiness(node, verdict.current)
        fell_silent = verdict.current.status != "True" and verdict.observed.status == "True"
        if fell_silent:
            self._events.event(node, "Normal", "NodeNotReady", f"Node {node.name} status is now: NodeNotReady")
        if fell_silent or (node.name in self._retry_pods and verdict.observed.status != "True"):
            self._retry_pods.add(node.name)
            await self._mark_pods_unready(self.lister(Pod).by_index(PODS_BY_NODE, node.name))
        self._retry_pods.discard(node.name)
        return verdict

    async def _judge(self, node: Node) -> tuple[Verdict, Node] | None:
        """Judge a node, and write what that calls for; on a stale view read it again."""
        for _ in range(_RETRIES):
            lease = self.lister(Lease).named(node.name, LEASE_NAMESPACE)
            verdict = judge_health(node, self._records.get(node.name), lease, self.now(), self.settings.health)
            if verdict.conditions is None:
                self._records[node.name] = verdict.record
                return verdict, node
            status = msgspec.structs.replace(node.status, conditions=verdict.conditions)
            try:
                await self._write_conditions(node, status)
            except Conflict:
                node = await self.api.get(NODES, node.name)
                continue
            self._records[node.name] = verdict.record
            return verdict, msgspec.structs.replace(node, status=status)
        return None

    async def _write_conditions(self, node: Node, status: NodeStatus) -> None:
        old, new = NodeStatus(conditions=node.status.conditions), NodeStatus(conditions=status.conditions)
        await self.write_status(NODES, node, old, new, optimistic=True)

    async def _mark_pods_unready(self, pods: Iterable[Pod]) -> None:
        """Nobody knows how the pods of a silent node are: they no longer count as ready.

        Raises:
            ApiError: What one of them failed with; all were tried.
        """
        now, failed = self.written_now(), None
        for pod in pods:
            ready = pod_condition(pod, "Ready")
            if ready is None or ready.status == "False":
                continue
            unready = msgspec.structs.replace(ready, status="False", last_transition_time=now)
            changed: tuple[PodCondition, ...] = tuple(
                unready if item.type == "Ready" else item for item in pod.status.conditions
            )
            old, new = PodStatus(conditions=pod.status.conditions), PodStatus(conditions=changed)
            try:
                if await self.write_status(PODS, pod, old, new, optimistic=True):
                    self._events.event(pod, "Warning", "NodeNotReady", "Node is not ready")
            except (ApiError, Unreachable) as error:
                failed = error
        if failed is not None:
            raise failed

    # Marks

    async def _mark_by_readiness(self, node: Node, ready: NodeCondition) -> None:
        if ready.status == "True":
            await self._mark_reachable(node)
            return
        right, wrong = marks_of(ready)
        if has_taint(node, wrong, NO_EXECUTE):
            await self._marker.mark(node, ready)
            return
        queue = self._queue_of(node)
        if not has_taint(node, right, NO_EXECUTE):
            queue.forget(node.name)
        if queue.add(node.name):
            self._queued.set()

    async def _mark_reachable(self, node: Node) -> None:
        await self._marker.clear(node)
        self._queue_of(node).forget(node.name)

    async def _mark_silent_nodes(self) -> None:
        """Mark queued nodes NoExecute, each zone at its rate; sleeps while nothing is queued.

        Never at once: the look at all nodes that queued one may find that everybody is silent, and take them back.
        """
        while True:
            if not any(len(queue) and queue.rate > 0 for queue in self._queues.values()):
                self._queued.clear()
                await self._queued.wait()
            await asyncio.sleep(TAINTING_PERIOD_SECONDS)
            for queue in list(self._queues.values()):
                while (name := queue.take(self.clock.monotonic())) is not None:
                    if not await self._mark_silent(name):
                        queue.put_back(name)

    async def _mark_silent(self, name: str) -> bool:
        """Mark one node; False when it is to be tried again."""
        node = self.lister(Node).named(name)
        if node is None:
            return True
        ready = ready_condition(node)
        if ready is None:
            return False
        if ready.status == "True":
            return True
        try:
            await self._marker.mark(node, ready)
        except NotFound:
            return True
        except (ApiError, Unreachable):
            return False
        return True

    # Zones

    async def _respond(self, zones: dict[str, list[NodeCondition | None]], nodes: Sequence[Node]) -> None:
        disruption = decide_disruption(self._zones, zones, self.settings.eviction)
        if disruption.response is Response.STOP_ALL:
            for node in nodes:
                await self._mark_reachable(self.lister(Node).named(node.name) or node)
        elif disruption.response is Response.START_ANEW:
            now = self.now()
            for node in nodes:
                if (record := self._records.get(node.name)) is not None:
                    self._records[node.name] = replace(record, probe_time=now, transition_time=now)
        for zone, rate in disruption.rates.items():
            self._queues[zone].set_rate(rate, self.clock.monotonic())
        self._zones = dict(disruption.states)
        self._queued.set()
