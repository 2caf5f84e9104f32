"""Waiting for a cluster to have said something about every pod."""

import asyncio

from skysail.api.core import Pod
from skysail.informer.handlers import Handlers
from skysail.simulator.cluster import LocalCluster


def pending_reason(pod: Pod) -> str:
    """Why the scheduler could not place a pod (its PodScheduled condition); empty when it has not said so."""
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.status == "False":
            return condition.message
    return ""


def is_decided(pod: Pod) -> bool:
    """Whether a pod is bound, or has been refused with a reason."""
    return bool(pod.spec.node_name or pending_reason(pod))


async def wait_pods_decided(cluster: LocalCluster, count: int) -> None:
    """Wait until `count` pods are known and each is bound or has been refused with a reason."""
    undecided: set[str] = set()
    known: set[str] = set()
    changed = asyncio.Event()

    def note(pod: Pod) -> None:
        known.add(pod.uid)
        (undecided.discard if is_decided(pod) else undecided.add)(pod.uid)
        changed.set()

    def forget(pod: Pod) -> None:
        undecided.discard(pod.uid)
        changed.set()

    handlers: Handlers[Pod] = Handlers(add=note, update=lambda _old, new: note(new), delete=forget)
    pods = cluster.informers.pods()
    registration = pods.add_handler(handlers, name="settling")
    try:
        while len(known) < count or undecided:
            await changed.wait()
            changed.clear()
    finally:
        pods.remove_handler(registration)
