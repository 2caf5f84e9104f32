"""Replacing a daemon set's pods of an old template, so many nodes at a time.

Without surge an old pod goes first and its successor comes after; pods that are not available anyway go at once, of
the others as many as may be unavailable. With surge the successor comes first, and the old pod goes when it is
available.

Source: pkg/controller/daemon/update.go, v1.36. Differs: nodes are gone through in the order of their names; upstream's
order is a hash map's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from skysail.api.apps import DaemonSet
from skysail.api.core import Pod
from skysail.api.intstr import scaled_value
from skysail.controllers.daemonset.placement import is_updated
from skysail.controllers.pods import is_available


@dataclass(frozen=True, slots=True)
class Limits:
    """How far a roll-out may go.

    Attributes:
        surge: Nodes that may have two pods.
        unavailable: Nodes that may have none that is available.
    """

    surge: int
    unavailable: int


def rollout_limits(daemon_set: DaemonSet, desired: int) -> Limits:
    """The strategy's limits as numbers of nodes; both are rounded up, and one of them is at least one."""
    rolling = daemon_set.spec.update_strategy.rolling_update
    if daemon_set.spec.update_strategy.type != "RollingUpdate" or rolling is None:
        surge = unavailable = 0
    else:
        surge = scaled_value(rolling.max_surge or 0, desired, round_up=True)
        unavailable = scaled_value(rolling.max_unavailable or 0, desired, round_up=True)
    return Limits(surge, 1 if desired > 0 and surge == unavailable == 0 else unavailable)


def allows_surge(daemon_set: DaemonSet) -> bool:
    """Whether a node may have an old and a new pod at once."""
    return rollout_limits(daemon_set, 1).surge > 0


@dataclass(frozen=True, slots=True)
class NodePods:
    """The living pods of one node; `clear` is False when there are several of one template."""

    new: Pod | None
    old: Pod | None
    clear: bool = True


def sort_out(daemon_set: DaemonSet, pods: Sequence[Pod], revision: str) -> NodePods:
    """Which of a node's pods is of the present template, and which is not."""
    living = [pod for pod in pods if pod.metadata.deletion_timestamp is None]
    new = [pod for pod in living if is_updated(pod, daemon_set, revision)]
    old = [pod for pod in living if pod not in new]
    if len(new) > 1 or len(old) > 1:
        return NodePods(None, None, clear=False)
    return NodePods(new[0] if new else None, old[0] if old else None)


@dataclass(frozen=True, slots=True)
class Rollout:
    """What to do: pods to delete, and nodes to make a pod on."""

    delete: tuple[Pod, ...] = ()
    create: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Scene:
    """What a roll-out looks at.

    Attributes:
        daemon_set: The set.
        pods: Its pods by node, in the order of names; nodes that should have one and do not are there, empty.
        wanted: The nodes that should have a pod.
        revision: The hash of the present template.
        now: For availability.
    """

    daemon_set: DaemonSet
    pods: Mapping[str, Sequence[Pod]]
    wanted: frozenset[str]
    revision: str
    now: datetime

    def is_available(self, pod: Pod | None) -> bool:
        """Whether the pod is there and available."""
        return pod is not None and is_available(pod, self.daemon_set.spec.min_ready_seconds, self.now)


def plan_rollout(scene: Scene) -> Rollout:
    """The next step of a rolling update."""
    limits = rollout_limits(scene.daemon_set, len(scene.wanted))
    found = {node: sort_out(scene.daemon_set, pods, scene.revision) for node, pods in scene.pods.items()}
    if limits.surge == 0:
        return _replace_in_place(scene, found, limits.unavailable)
    return _surge(scene, found, limits.surge)


def _replace_in_place(scene: Scene, found: Mapping[str, NodePods], limit: int) -> Rollout:
    unavailable = 0
    at_once: list[Pod] = []
    candidates: list[Pod] = []
    for pods in found.values():
        if pods.old is None or pods.new is not None or not pods.clear:
            settled = pods.clear and pods.old is None and scene.is_available(pods.new)
            unavailable += not settled
        elif not scene.is_available(pods.old):
            at_once.append(pods.old)
            unavailable += 1
        elif unavailable < limit:
            candidates.append(pods.old)
    return Rollout((*at_once, *candidates[: max(0, limit - unavailable)]))


def _surge(scene: Scene, found: Mapping[str, NodePods], limit: int) -> Rollout:
    delete: list[Pod] = []
    leaving: list[Pod] = []
    at_once: list[str] = []
    candidates: list[str] = []
    surging = available = 0
    for node, pods in found.items():
        if not pods.clear:
            surging += 1
            continue
        available += scene.is_available(pods.old if pods.old is not None else pods.new)
        if pods.old is None:
            continue
        if pods.new is not None:
            if scene.is_available(pods.new):
                delete.append(pods.old)
            else:
                surging += 1
        elif node not in scene.wanted:
            (leaving if scene.is_available(pods.old) else delete).append(pods.old)
        elif not scene.is_available(pods.old):
            at_once.append(node)
        elif surging < limit:
            candidates.append(node)
    spare = max(0, available - len(scene.wanted))
    return Rollout((*delete, *leaving[:spare]), (*at_once, *candidates[: max(0, limit - surging)]))
