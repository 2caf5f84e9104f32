"""The pod-at-a-time engine's plugins, lent to the batch engine: a profile over the batch engine's own table.

Sockets, volumes and whatever else a plugin may ask for come from the handle; without one, listers are empty.
"""

import random
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

from skysail.api.core import Pod
from skysail.api.errors import ConfigError
from skysail.api.kinds import Kind
from skysail.api.ports import Clock
from skysail.batch.devices import share_of
from skysail.batch.world import World
from skysail.scheduler.cache.pod_info import PodInfo
from skysail.scheduler.cache.snapshot import Snapshot
from skysail.scheduler.cache.table import NodeTable
from skysail.scheduler.framework.feature_gates import feature_gates
from skysail.scheduler.framework.handle import Handle, Lister, ObjectWriter, WaitingPod
from skysail.scheduler.framework.incremental import IncrementalEvaluator
from skysail.scheduler.framework.plugin import Plugin
from skysail.scheduler.framework.runner import Framework
from skysail.scheduler.plugins.args import (
    InterPodAffinityArgs,
    NoArgs,
    NodeAffinityArgs,
    NodeResourcesFitArgs,
    PodTopologySpreadArgs,
)
from skysail.scheduler.plugins.image_locality import ImageLocality
from skysail.scheduler.plugins.inter_pod_affinity import InterPodAffinity
from skysail.scheduler.plugins.node_affinity import NodeAffinity
from skysail.scheduler.plugins.node_name import NodeName
from skysail.scheduler.plugins.node_ports import NodePorts
from skysail.scheduler.plugins.node_resources_fit import NodeResourcesFit
from skysail.scheduler.plugins.node_unschedulable import NodeUnschedulable
from skysail.scheduler.plugins.pod_topology_spread import PodTopologySpread
from skysail.scheduler.plugins.taint_toleration import TaintToleration

T = TypeVar("T")

FITTING: Final = (
    "NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit",
    "PodTopologySpread", "InterPodAffinity",
)  # fmt: skip
WEIGHTS: Final[Mapping[str, int]] = {
    "TaintToleration": 3, "NodeAffinity": 2, "PodTopologySpread": 2, "InterPodAffinity": 2, "ImageLocality": 1,
}  # fmt: skip


class NoObjects(Lister[T]):
    """A lister of nothing."""

    def get(self, namespace: str, name: str) -> T | None:
        """Nothing."""
        return None

    def list(self, namespace: str | None = None) -> Sequence[T]:
        """Nothing."""
        return ()


class NoNominations:
    """Nobody was promised anything: the batch engine's promises stand in the cluster cache."""

    version = 0

    def pods_for_node(self, node_name: str) -> Sequence[Pod]:
        """Nobody."""
        return ()

    def node_of(self, pod: Pod) -> str:
        """Nowhere."""
        return ""

    @property
    def by_node(self) -> Mapping[str, Mapping[str, PodInfo]]:
        """None."""
        return {}


class _Still:
    """Time that stands still: plugins here take none."""

    def monotonic(self) -> float:
        return 0.0

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)


class _Nobody:
    async def bind(self, namespace: str, name: str, uid: str, node_name: str) -> None:
        raise ConfigError("the batch engine binds by itself")


ListerOf = Callable[[Kind[Any]], Lister[Any]]
"""Objects of a kind, as last seen."""


def no_objects(kind: Kind[Any]) -> Lister[Any]:
    """A cluster of which only pods and nodes are known."""
    return NoObjects()


class PureHandle:
    """What plugins are lent by the batch engine (see `skysail.scheduler.framework.handle.Handle`).

    Args:
        snapshot: The batch engine's.
        seed: For dice.
        listers: Objects of other kinds.
        clock: For what waits before a pod is bound; stands still where nothing is written.
        writer: Writes other objects; None where nothing may be written.
        last_seen: A pod as the informer has it.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        seed: int,
        listers: ListerOf = no_objects,
        *,
        clock: Clock | None = None,
        writer: ObjectWriter | None = None,
        last_seen: Callable[[Pod], Pod | None] = lambda pod: pod,
    ) -> None:
        self._snapshot, self._listers, self._last_seen = snapshot, listers, last_seen
        self.feature_gates: Mapping[str, bool] = feature_gates({})
        self.clock: Clock = clock or _Still()
        self.binder, self.nominations = _Nobody(), NoNominations()
        self.writer: ObjectWriter | None = writer
        self.rng = random.Random(seed)

    def last_seen(self, pod: Pod) -> Pod | None:
        """A pod as last seen."""
        return self._last_seen(pod)

    def snapshot(self) -> Snapshot:
        """The nodes."""
        return self._snapshot

    def lister(self, kind: Kind[T]) -> Lister[T]:
        """Objects of a kind."""
        return self._listers(kind)

    def waiting_pods(self) -> Iterable[WaitingPod]:
        """Nobody waits in Permit here."""
        return ()

    def waiting_pod(self, uid: str) -> WaitingPod | None:
        """Nobody."""
        return None

    def reject_waiting_pod(self, uid: str) -> bool:
        """Nobody waits."""
        return False

    @property
    def extenders(self) -> tuple[()]:
        """None."""
        return ()

    def activate(self, pods: Iterable[Pod]) -> None:
        """There is no queue."""

    def event(self, pod: Pod, event_type: str, reason: str, message: str, *, action: str = "Scheduling") -> None:
        """The batch engine tells people by itself."""


class PodPlugins:
    """A profile, and its answers."""

    def __init__(self, handle: Handle) -> None:
        made: dict[str, Plugin] = {
            "NodeUnschedulable": NodeUnschedulable(NoArgs(), handle),
            "NodeName": NodeName(NoArgs(), handle),
            "TaintToleration": TaintToleration(NoArgs(), handle),
            "NodeAffinity": NodeAffinity(NodeAffinityArgs(), handle),
            "NodePorts": NodePorts(NoArgs(), handle),
            "NodeResourcesFit": NodeResourcesFit(NodeResourcesFitArgs(), handle),
            "PodTopologySpread": PodTopologySpread(PodTopologySpreadArgs(defaulting_type="List"), handle),
            "InterPodAffinity": InterPodAffinity(InterPodAffinityArgs(), handle),
            "ImageLocality": ImageLocality(NoArgs(), handle),
        }
        fitting, scoring = [made[name] for name in FITTING], [made[name] for name in WEIGHTS]
        points = {
            "pre_filter": [plugin for plugin in fitting if hasattr(plugin, "pre_filter")],
            "filter": fitting,
            "pre_score": [plugin for plugin in scoring if hasattr(plugin, "pre_score")],
            "score": scoring,
        }
        self.framework = Framework("batch", points, WEIGHTS)

    @classmethod
    def of(cls, world: World) -> "PodPlugins":
        """The world's, made once."""
        table = world.snapshot.table
        found = table.memo.get("batch pod plugins")
        if not isinstance(found, PodPlugins):
            found = cls(world.handle or PureHandle(world.snapshot, world.seed))
            table.memo["batch pod plugins"] = found
        return found

    def evaluator(self, table: NodeTable, info: PodInfo) -> IncrementalEvaluator:
        """Answers for one pod."""
        return IncrementalEvaluator(self.framework, table, info)

    def signature(self, info: PodInfo, table: NodeTable) -> Hashable:
        """Equal for pods that fit the same rows.

        Labels count only where some pod has affinity, or this one has any or asks to be spread.
        """
        pod = info.pod
        shared = self.framework.sign(info)
        if pod.spec.volumes:
            return info.key
        social = info.has_affinity or pod.spec.topology_spread_constraints
        if social or table.rows_with_affinity or table.rows_with_anti_affinity:
            spec = pod.spec
            labels = tuple(sorted(pod.metadata.labels.items()))
            apart = info.key if social else ""
            return shared, pod.metadata.namespace, labels, info.host_ports, apart, spec.node_name, share_of(pod)
        return shared, info.host_ports, share_of(pod)
