"""The shell of pod garbage collection: looks every twenty seconds.

Source: pkg/controller/podgc/gc_controller.go, v1.36.
"""

import asyncio
from collections.abc import Iterable

import msgspec

from skysail.api.core import Pod, PodCondition, PodStatus
from skysail.api.errors import ApiError, NotFound, Unreachable
from skysail.api.kinds import NODES, PODS
from skysail.api.node import Node
from skysail.controller.controller import Result
from skysail.controllers.builtin import BuiltinController
from skysail.controllers.podgc.plan import (
    PERIOD_SECONDS,
    QUARANTINE_SECONDS,
    TERMINATED_THRESHOLD,
    Reason,
    missing_nodes,
    on_out_of_service_nodes,
    orphaned,
    surplus_terminated,
    unscheduled_terminating,
)
from skysail.controllers.pods import is_terminal
from skysail.informer.keys import Key


class PodGCController(BuiltinController):
    """Removes pods that nobody will ever finish.

    Args:
        terminated_threshold: How many ended pods may stay; 0 for any number.
    """

    name = "podgc"
    workers = 1

    def __init__(self, terminated_threshold: int = TERMINATED_THRESHOLD) -> None:
        self.terminated_threshold = terminated_threshold
        self._missing_since: dict[str, float] = {}

    def setup(self) -> None:
        """Ask for pods and nodes."""
        self.informer(Pod)
        self.informer(Node)

    async def reconcile(self, key: Key) -> Result | None:
        """Nothing wakes this controller but time."""
        return None

    async def run_beside(self) -> None:
        """Look, and look again."""
        while True:
            await self.collect()
            await asyncio.sleep(PERIOD_SECONDS)

    async def collect(self) -> None:
        """One look at all pods."""
        pods = self.lister(Pod).list()
        nodes = {node.name: node for node in self.lister(Node).list()}
        await self._remove(surplus_terminated(pods, self.terminated_threshold), Reason.TERMINATED)
        await self._remove(on_out_of_service_nodes(pods, nodes), Reason.OUT_OF_SERVICE)
        await self._remove(orphaned(pods, await self._gone_for_good(missing_nodes(pods, nodes))), Reason.ORPHANED)
        await self._remove(unscheduled_terminating(pods), Reason.UNSCHEDULED)

    async def _gone_for_good(self, names: list[str]) -> set[str]:
        """Of nodes that the cache misses, those missing for long that the server does not know either."""
        now = self.clock.monotonic()
        self._missing_since = {name: self._missing_since.get(name, now) for name in names}
        gone = set()
        for name, since in self._missing_since.items():
            if now - since >= QUARANTINE_SECONDS:
                try:
                    await self.api.get(NODES, name)
                except NotFound:
                    gone.add(name)
                except (ApiError, Unreachable):
                    continue
        return gone

    async def _remove(self, pods: Iterable[Pod], reason: Reason) -> None:
        for pod in pods:
            try:
                if reason.value and not is_terminal(pod):
                    await self._mark_failed(pod, reason)
                await self.api.delete(PODS, pod.name, pod.namespace, grace_period_seconds=0, uid=pod.uid)
            except (ApiError, Unreachable):
                continue

    async def _mark_failed(self, pod: Pod, reason: Reason) -> None:
        """Say why the pod ended, for whoever counts its failures."""
        mark = PodCondition(
            type="DisruptionTarget",
            status="True",
            reason="DeletionByPodGC",
            message=reason.value,
            last_transition_time=self.written_now(),
        )
        others = tuple(item for item in pod.status.conditions if item.type != mark.type)
        known = reason is not Reason.UNSCHEDULED
        conditions = (*others, mark) if known else pod.status.conditions
        old = PodStatus(phase=pod.status.phase, conditions=pod.status.conditions)
        new = msgspec.structs.replace(old, phase="Failed", conditions=conditions)
        await self.write_status(PODS, pod, old, new)
