"""Which pods are removed because nobody else will.

Source: pkg/controller/podgc/gc_controller.go, v1.36.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import Enum

from skysail.api.core import Pod
from skysail.api.node import Node
from skysail.controllers.pods import is_terminal

TERMINATED_THRESHOLD = 12_500
QUARANTINE_SECONDS = 40.0
PERIOD_SECONDS = 20.0
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"


class Reason(Enum):
    """Why a pod is removed; the text is what its status then says."""

    TERMINATED = ""
    ORPHANED = "PodGC: node no longer exists"
    UNSCHEDULED = "PodGC: unscheduled pod that is terminating"
    OUT_OF_SERVICE = "PodGC: node is out of service"


def surplus_terminated(pods: Iterable[Pod], threshold: int) -> list[Pod]:
    """The oldest ended pods beyond the threshold; evicted ones before others."""
    ended = [pod for pod in pods if is_terminal(pod)]
    if threshold <= 0 or len(ended) <= threshold:
        return []
    return sorted(ended, key=_age)[: len(ended) - threshold]


def _age(pod: Pod) -> tuple[bool, float, str]:
    created = pod.metadata.creation_timestamp
    evicted = pod.status.phase == "Failed" and pod.status.reason == "Evicted"
    return not evicted, created.timestamp() if created is not None else 0.0, pod.name


def unscheduled_terminating(pods: Iterable[Pod]) -> list[Pod]:
    """Pods being deleted that no node has: no kubelet will ever let them go."""
    return [pod for pod in pods if pod.metadata.deletion_timestamp is not None and not pod.spec.node_name]


def on_out_of_service_nodes(pods: Iterable[Pod], nodes: Mapping[str, Node]) -> list[Pod]:
    """Pods being deleted on nodes that are down and that somebody declared out of service."""
    return [
        pod
        for pod in pods
        if pod.metadata.deletion_timestamp is not None
        and (node := nodes.get(pod.spec.node_name)) is not None
        and not _is_ready(node)
        and any(taint.key == OUT_OF_SERVICE for taint in node.spec.taints)
    ]


def _is_ready(node: Node) -> bool:
    return any(item.type == "Ready" and item.status == "True" for item in node.status.conditions)


def missing_nodes(pods: Iterable[Pod], nodes: Collection[str]) -> list[str]:
    """Names of nodes that pods are on and that do not exist, sorted."""
    return sorted({pod.spec.node_name for pod in pods if pod.spec.node_name and pod.spec.node_name not in nodes})


def orphaned(pods: Sequence[Pod], gone: Collection[str]) -> list[Pod]:
    """Pods on nodes that are gone for good."""
    return [pod for pod in pods if pod.spec.node_name in gone]
