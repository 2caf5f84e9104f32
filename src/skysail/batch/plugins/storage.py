"""Volumes: the pod-at-a-time engine's volume plugins and its assume cache, inside the batch engine's transactions.

Predicates refuse nodes where a pod's claims can neither use their volume nor get one; a Statement assumes what a task's
claims get on its node and reverts it with the task; the shell writes it before the pod is bound (`pre_bind`).
"""

from collections.abc import Mapping

import numpy as np

from skysail.batch.expressions import RowMask
from skysail.batch.model.job import Task
from skysail.batch.plugins.predicates import reasons_of
from skysail.batch.pod_plugins import PureHandle
from skysail.batch.session import Arguments, Session
from skysail.batch.world import World
from skysail.scheduler.framework.cycle_state import CycleState
from skysail.scheduler.framework.evaluation import Filtered, PlainEvaluator
from skysail.scheduler.framework.plugin import Plugin
from skysail.scheduler.framework.runner import Framework
from skysail.scheduler.plugins.args import NoArgs, VolumeBindingArgs
from skysail.scheduler.plugins.node_volume_limits import NodeVolumeLimits
from skysail.scheduler.plugins.volume_binding import VolumeBinding
from skysail.scheduler.plugins.volume_restrictions import VolumeRestrictions
from skysail.scheduler.plugins.volume_zone import VolumeZone


class StorageRoom:
    """What outlives a session: the plugins with their assume cache, and what was assumed for which task."""

    def __init__(self, world: World) -> None:
        handle = world.handle or PureHandle(world.snapshot, world.seed)
        self._binding = VolumeBinding(VolumeBindingArgs(), handle)
        plugins: list[Plugin] = [
            VolumeRestrictions(NoArgs(), handle), NodeVolumeLimits(NoArgs(), handle), self._binding,
            VolumeZone(NoArgs(), handle),
        ]  # fmt: skip
        self.framework = Framework("batch storage", {"pre_filter": plugins, "filter": plugins})
        self._world = world
        self._reserved: dict[str, CycleState] = {}

    def passing(self, task: Task) -> tuple[Filtered | None, str]:
        """What Filter says of all rows, or what keeps the volumes from being ready anywhere."""
        filtered, words, _ = self._look(task)
        return filtered, words

    def _look(self, task: Task) -> tuple[Filtered | None, str, CycleState]:
        evaluator = PlainEvaluator(self.framework, self._world.snapshot.table, task.info)
        outcome = evaluator.pre_filter()
        if not outcome.status.is_success:
            return None, outcome.status.message, evaluator.state
        return evaluator.filter(), "", evaluator.state

    def reserve(self, task: Task, node: str) -> str:
        """Assume what the task's claims get on a node; why not, or empty."""
        if not task.pod.spec.volumes:
            return ""
        _, _, state = self._look(task)
        self._reserved[task.uid] = state
        status = self._binding.reserve(state, task.pod, node)
        return "" if status.is_success else status.message

    def unreserve(self, task: Task, node: str) -> None:
        """Give it back."""
        state = self._reserved.pop(task.uid, None)
        if state is not None:
            self._binding.unreserve(state, task.pod, node)

    async def pre_bind(self, task: Task) -> str:
        """Write what was assumed and wait for the volumes; why that failed, or empty."""
        state = self._reserved.get(task.uid)
        if state is None:
            return ""
        if self._binding.pre_bind_pre_flight(state, task.pod, task.node).is_skip:
            del self._reserved[task.uid]
            return ""
        status = await self._binding.pre_bind(state, task.pod, task.node)
        if status.is_success:
            self._reserved.pop(task.uid, None)
            return ""
        return status.message


class Storage:
    """The plugin."""

    name = "storage"

    def __init__(self, arguments: Arguments) -> None:
        self._arguments = arguments

    def on_session_open(self, session: Session) -> None:
        """Register."""
        world = session.world
        if not isinstance(world.storage, StorageRoom):
            world.storage = StorageRoom(world)
        self._room = world.storage
        session.scope.reservers.append(self._room)
        session.add_predicate(self.name, self.predicate)
        session.volume_fault = self.fault
        session.explainers.append(self.histogram)
        self._session = session

    def on_session_close(self, session: Session) -> None:
        """Nothing to do."""

    def predicate(self, task: Task) -> RowMask | None:
        """(size,) bool; abstains for pods without volumes."""
        if not task.pod.spec.volumes:
            return None
        filtered, _ = self._room.passing(task)
        size = self._session.nodes.table.size
        return np.zeros(size, dtype=np.bool_) if filtered is None else filtered.passing[:size]

    def histogram(self, task: Task) -> Mapping[str, int]:
        """How many nodes gave which reason."""
        filtered = self._room.passing(task)[0] if task.pod.spec.volumes else None
        return {} if filtered is None else reasons_of(filtered, self._session.nodes.table)

    def fault(self, task: Task) -> str:
        """What keeps the task's volumes from being ready anywhere."""
        return self._room.passing(task)[1] if task.pod.spec.volumes else ""
