"""A daemon set's mind: which nodes need a pod, and which pods have to go.

Source: pkg/controller/daemon/daemon_controller.go, update.go, v1.36.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from skysail.api.apps import DaemonSet
from skysail.api.core import Pod
from skysail.api.node import Node
from skysail.controllers.daemonset.placement import is_updated, should_run, target_node
from skysail.controllers.daemonset.rollout import Scene, allows_surge, plan_rollout
from skysail.controllers.pods import is_available, is_ready, is_terminal

BURST_REPLICAS = 250
FIRST_BACKOFF_SECONDS = 1.0
LONGEST_BACKOFF_SECONDS = 900.0


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do about the pods.

    Attributes:
        create: Names of nodes to make a pod on.
        delete: Pods to delete.
        failed: Failed pods among those, with their node: each lengthens the back-off of its node.
        succeeded: Pods among those that ran to their end, which no daemon should.
        retry_seconds: When a failed pod's back-off ends; None when none waits.
    """

    create: tuple[str, ...] = ()
    delete: tuple[Pod, ...] = ()
    failed: tuple[tuple[Pod, str], ...] = ()
    succeeded: tuple[tuple[Pod, str], ...] = ()
    retry_seconds: float | None = None


def by_node(pods: Iterable[Pod], *, with_ended: bool = False) -> dict[str, list[Pod]]:
    """Pods by the node they are on or meant for, in the order of names.

    Args:
        pods: A daemon set's.
        with_ended: Keep pods that have ended and are being deleted.
    """
    found: dict[str, list[Pod]] = {}
    for pod in pods:
        gone = is_terminal(pod) and pod.metadata.deletion_timestamp is not None
        if (with_ended or not gone) and (node := target_node(pod)):
            found.setdefault(node, []).append(pod)
    return {node: sorted(found[node], key=seniority) for node in sorted(found)}


def seniority(pod: Pod) -> tuple[bool, float, str]:
    """Bound pods before others, then the oldest, then by name."""
    created = pod.metadata.creation_timestamp
    return not pod.spec.node_name, created.timestamp() if created is not None else 0.0, pod.name


def plan_daemon_set(
    daemon_set: DaemonSet,
    nodes: Sequence[Node],
    pods: Mapping[str, Sequence[Pod]],
    revision: str,
    backoffs: Mapping[str, float],
    now: datetime,
) -> Plan:
    """What to make and delete; a roll-out goes on only when nothing else is to be done.

    Args:
        daemon_set: As read.
        nodes: All nodes.
        pods: The set's pods by node, as `by_node` gives them.
        revision: The hash of the present template.
        backoffs: By node, how many seconds a failed pod there still has to wait.
        now: For availability.
    """
    wanted = {node.name: should_run(daemon_set, node) for node in sorted(nodes, key=lambda item: item.name)}
    plan = _manage(daemon_set, wanted, pods, revision, backoffs, now)
    if plan.create or plan.delete or daemon_set.spec.update_strategy.type != "RollingUpdate":
        return plan
    running = frozenset(name for name, (runs, _) in wanted.items() if runs)
    everywhere = {name: pods.get(name, ()) for name in sorted({*pods, *running})}
    step = plan_rollout(Scene(daemon_set, everywhere, running, revision, now))
    return Plan(step.create[:BURST_REPLICAS], step.delete[:BURST_REPLICAS], retry_seconds=plan.retry_seconds)


def _manage(
    daemon_set: DaemonSet,
    wanted: Mapping[str, tuple[bool, bool]],
    pods: Mapping[str, Sequence[Pod]],
    revision: str,
    backoffs: Mapping[str, float],
    now: datetime,
) -> Plan:
    create: list[str] = []
    delete: list[Pod] = []
    failed: list[tuple[Pod, str]] = []
    succeeded: list[tuple[Pod, str]] = []
    waits: list[float] = []
    for node, (runs, stays) in wanted.items():
        here = [pod for pod in pods.get(node, ()) if pod.metadata.deletion_timestamp is None]
        if runs and node not in pods:
            create.append(node)
        elif not stays:
            delete += here
        else:
            living = []
            for pod in here:
                if pod.status.phase == "Failed" and backoffs.get(node, 0.0) > 0:
                    waits.append(backoffs[node])
                elif pod.status.phase == "Failed":
                    failed.append((pod, node))
                elif pod.status.phase == "Succeeded":
                    succeeded.append((pod, node))
                else:
                    living.append(pod)
            delete += [pod for pod, where in (*failed, *succeeded) if where == node]
            delete += _surplus(daemon_set, living, revision, now)
            if not living and runs and allows_surge(daemon_set):
                create.append(node)
    delete += [pod for node, found in pods.items() if node not in wanted for pod in found if not pod.spec.node_name]
    return Plan(
        tuple(create[:BURST_REPLICAS]),
        tuple(delete[:BURST_REPLICAS]),
        tuple(failed),
        tuple(succeeded),
        min(waits, default=None),
    )


def _surplus(daemon_set: DaemonSet, living: Sequence[Pod], revision: str, now: datetime) -> list[Pod]:
    """Pods beyond the one a node should have, or beyond an old and a new one while surging."""
    if len(living) <= 1:
        return []
    if not allows_surge(daemon_set):
        return list(living[1:])
    new = [pod for pod in living if is_updated(pod, daemon_set, revision)]
    old = [pod for pod in living if not is_updated(pod, daemon_set, revision)]
    surplus = [*new[1:], *old[1:]]
    if new and old and (not is_ready(old[0]) or is_available(new[0], daemon_set.spec.min_ready_seconds, now)):
        surplus.append(old[0])
    return surplus


def next_backoff(current: float) -> float:
    """How long the next failed pod on a node has to wait."""
    return min(current * 2, LONGEST_BACKOFF_SECONDS) if current else FIRST_BACKOFF_SECONDS
