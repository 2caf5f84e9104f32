"""Where a daemon set's pods belong, and what such a pod looks like.

The controller decides which nodes get a pod; the scheduler only carries it out. So every pod names its node in a
required node affinity, and tolerates the taints that come and go with a node's health.

Source: pkg/controller/daemon/daemon_controller.go `NodeShouldRunDaemonPod`, util/daemonset_util.go, v1.36.
"""

from functools import lru_cache

import msgspec

from skysail.api.apps import DaemonSet
from skysail.api.core import Pod, PodSpec, Toleration
from skysail.api.kinds import DAEMONSETS
from skysail.api.meta import ObjectMeta, Struct
from skysail.api.node import Node
from skysail.api.nodeselector import matches_required_node_affinity
from skysail.api.raw import Raw
from skysail.api.tolerations import find_untolerated_taint
from skysail.controllers.history.revisions import REVISION_LABEL
from skysail.controllers.templates import controller_reference, parse_template, pod_from_template

TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
GENERATION_LABEL = "pod-template-generation"

_NODE_NAME_FIELD = "metadata.name"
_ALWAYS_TOLERATED = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
_HOST_NETWORK_TOLERATED = ("node.kubernetes.io/network-unavailable", "NoSchedule")


class _Template(Struct, frozen=True, gc=False):
    """A pod template, as far as placement reads it."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()


@lru_cache(maxsize=512)
def _template_pod(template: bytes) -> Pod:
    read = msgspec.json.decode(template, type=_Template)
    wanted = [*_ALWAYS_TOLERATED, *([_HOST_NETWORK_TOLERATED] if read.spec.host_network else [])]
    extra = tuple(Toleration(key=key, operator="Exists", effect=effect) for key, effect in wanted)
    spec = msgspec.structs.replace(read.spec, tolerations=(*read.spec.tolerations, *extra))
    return Pod(metadata=read.metadata, spec=spec)


def should_run(daemon_set: DaemonSet, node: Node) -> tuple[bool, bool]:
    """Whether a node is to have a pod, and whether a pod that is there may stay."""
    pod = _template_pod(bytes(daemon_set.spec.template))
    if pod.spec.node_name not in ("", node.name):
        return False, False
    try:
        fits = matches_required_node_affinity(pod, node.name, node.metadata.labels)
    except ValueError:
        return False, False
    if not fits:
        return False, False
    taints, tolerations = node.spec.taints, pod.spec.tolerations
    if find_untolerated_taint(taints, tolerations) is None:
        return True, True
    evicting = find_untolerated_taint(taints, tolerations, lambda taint: taint.effect == "NoExecute")
    return False, evicting is None


def target_node(pod: Pod) -> str:
    """The node a pod is on or meant for; empty when it does not say."""
    if pod.spec.node_name:
        return pod.spec.node_name
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    for term in required.node_selector_terms if required is not None else ():
        for field in term.match_fields:
            if field.key == _NODE_NAME_FIELD and field.operator == "In" and len(field.values) == 1:
                return field.values[0]
    return ""


def is_updated(pod: Pod, daemon_set: DaemonSet, revision: str) -> bool:
    """Whether the pod is of the present template: by the revision's hash, or the deprecated generation."""
    labels = pod.metadata.labels
    generation = daemon_set.metadata.annotations.get(TEMPLATE_GENERATION, "")
    by_generation = generation.isdigit() and labels.get(GENERATION_LABEL) == generation
    return by_generation or (bool(revision) and labels.get(REVISION_LABEL) == revision)


def daemon_pod(daemon_set: DaemonSet, node: str, revision: str) -> Raw:
    """The pod to create for a node."""
    owner = controller_reference(daemon_set, DAEMONSETS.api_version, DAEMONSETS.name)
    body = pod_from_template(daemon_set.spec.template, daemon_set.name, owner)
    generation = daemon_set.metadata.annotations.get(TEMPLATE_GENERATION, "")
    labels = dict(body["metadata"].get("labels", {}))
    if generation.isdigit():
        labels[GENERATION_LABEL] = generation
    body["metadata"]["labels"] = labels | {REVISION_LABEL: revision}
    spec = parse_template(daemon_set.spec.template).get("spec", {})
    body["spec"] = {
        **spec,
        "affinity": _pinned(spec.get("affinity") or {}, node),
        "tolerations": _tolerating(spec.get("tolerations") or [], bool(spec.get("hostNetwork"))),
    }
    return body


def _pinned(affinity: Raw, node: str) -> Raw:
    """The affinity with its required node terms replaced by the one node."""
    field = {"key": _NODE_NAME_FIELD, "operator": "In", "values": [node]}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    node_affinity = affinity.get("nodeAffinity") or {}
    return {
        **affinity,
        "nodeAffinity": {**node_affinity, "requiredDuringSchedulingIgnoredDuringExecution": required},
    }


def _tolerating(tolerations: list[Raw], host_network: bool) -> list[Raw]:
    wanted = [*_ALWAYS_TOLERATED, *([_HOST_NETWORK_TOLERATED] if host_network else [])]
    extra = [{"key": key, "operator": "Exists", "effect": effect} for key, effect in wanted]
    return [*tolerations, *(item for item in extra if item not in tolerations)]
