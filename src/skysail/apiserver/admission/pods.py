"""Pods: priority, tolerations of node trouble, topology labels, runtime class.

Source: plugin/pkg/admission/{priority,defaulttolerationseconds,podtopologylabels,runtimeclass}, v1.36.
"""

from skysail.api.raw import Raw
from skysail.apiserver.admission.attributes import Attributes
from skysail.apiserver.contract import GroupResource

PRIORITY_CLASSES = GroupResource("scheduling.k8s.io", "priorityclasses")
RUNTIME_CLASSES = GroupResource("node.k8s.io", "runtimeclasses")
NODES = GroupResource("", "nodes")
_NOT_READY = "node.kubernetes.io/not-ready"
_UNREACHABLE = "node.kubernetes.io/unreachable"
_SECONDS = 300
_TOPOLOGY = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")
_PREEMPT = "PreemptLowerPriority"


def priority(a: Attributes) -> None:
    """Turn a class name into a number, once, at creation."""
    spec = a.obj.get("spec") or {}
    if a.ctx.subresource:
        return
    if a.operation == "UPDATE":
        old = (a.old or {}).get("spec") or {}
        for key in ("priority", "preemptionPolicy"):
            if spec.get(key) is None and old.get(key) is not None:
                spec[key] = old[key]
        return
    name = spec.get("priorityClassName")
    if name:
        found = a.ctx.reader.get(PRIORITY_CLASSES, "", name)
        if found is None:
            raise a.refuse(f"no PriorityClass with name {name} was found")
    else:
        found = default_class(a)
        if found is not None:
            spec["priorityClassName"] = found["metadata"]["name"]
    value = (found or {}).get("value") or 0
    policy = (found or {}).get("preemptionPolicy") or _PREEMPT
    given = spec.get("priority")
    if given is not None and given != value:
        raise a.refuse(
            f"the integer value of priority ({given}) must not be provided in pod spec; priority admission controller "
            f"computed {value} from the given PriorityClass name"
        )
    wanted = spec.get("preemptionPolicy")
    if wanted is not None and wanted != policy:
        raise a.refuse(
            f"the string value of PreemptionPolicy ({wanted}) must not be provided in pod spec; priority admission "
            f"controller computed {policy} from the given PriorityClass name"
        )
    spec["priority"], spec["preemptionPolicy"] = value, policy


def default_class(a: Attributes) -> Raw | None:
    """The class of pods that name none; the lowest if there are several."""
    defaults = [item for item in a.ctx.reader.list(PRIORITY_CLASSES) if item.get("globalDefault")]
    return min(defaults, key=lambda item: item.get("value") or 0, default=None)


def one_default_class(a: Attributes) -> None:
    """Only one PriorityClass may be the default."""
    if not a.obj.get("globalDefault") or a.ctx.subresource:
        return
    found = default_class(a)
    if found is not None and (a.operation == "CREATE" or found["metadata"]["name"] != a.obj["metadata"]["name"]):
        name = found["metadata"]["name"]
        raise a.refuse(f"PriorityClass {name} is already marked as default. Only one default can exist")


def default_tolerations(a: Attributes) -> None:
    """Stay five minutes on a node that is not ready or unreachable, unless the pod says otherwise."""
    if a.ctx.subresource:
        return
    spec = a.obj.get("spec") or {}
    tolerations = spec.get("tolerations") or []
    ready = unreachable = False
    for item in tolerations:
        if (item.get("effect") or "NoExecute") != "NoExecute":
            continue
        key = item.get("key") or ""
        ready = ready or key in ("", _NOT_READY)
        unreachable = unreachable or key in ("", _UNREACHABLE)
    added = [key for key, there in ((_NOT_READY, ready), (_UNREACHABLE, unreachable)) if not there]
    if added:
        spec["tolerations"] = [
            *tolerations,
            *(
                {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _SECONDS}
                for key in added
            ),
        ]


def topology_labels(a: Attributes) -> None:
    """A pod that is bound gets its node's zone and region as labels."""
    if a.operation != "CREATE" or a.ctx.subresource not in ("", "binding"):
        return
    if a.ctx.subresource == "binding":
        target = a.obj.get("target") or {}
        node_name = target.get("name") if target.get("kind") == "Node" else ""
    else:
        node_name = (a.obj.get("spec") or {}).get("nodeName")
    node = a.ctx.reader.get(NODES, "", node_name) if node_name else None
    labels = (node or {}).get("metadata", {}).get("labels") or {}
    copied = {key: labels[key] for key in _TOPOLOGY if key in labels}
    if copied:
        metadata = a.obj.setdefault("metadata", {})
        metadata["labels"] = {**(metadata.get("labels") or {}), **copied}


def runtime_class(a: Attributes) -> None:
    """Take overhead and placement from the runtime class."""
    spec = a.obj.get("spec") or {}
    if a.operation != "CREATE" or a.ctx.subresource:
        return
    name = spec.get("runtimeClassName")
    if not name:
        if spec.get("overhead"):
            raise a.refuse("pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")
        return
    found = a.ctx.reader.get(RUNTIME_CLASSES, "", name)
    if found is None:
        raise a.refuse(f'pod rejected: RuntimeClass "{name}" not found')
    _overhead(a, spec, found)
    _placement(a, spec, found.get("scheduling") or {})


def _overhead(a: Attributes, spec: Raw, found: Raw) -> None:
    overhead = found.get("overhead")
    if overhead is None:
        if spec.get("overhead"):
            raise a.refuse("pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")
        return
    fixed = dict(overhead.get("podFixed") or {})
    if spec.get("overhead") and spec["overhead"] != fixed:
        raise a.refuse("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
    if fixed:
        spec["overhead"] = fixed


def _placement(a: Attributes, spec: Raw, scheduling: Raw) -> None:
    selector = spec.get("nodeSelector") or {}
    for key, value in (scheduling.get("nodeSelector") or {}).items():
        if key in selector and selector[key] != value:
            raise a.refuse(
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; pod.spec.nodeSelector[{key}] = "
                f"{selector[key]}"
            )
        spec["nodeSelector"] = selector = {**selector, key: value}
    wanted = [item for item in scheduling.get("tolerations") or () if item not in (spec.get("tolerations") or ())]
    if wanted:
        spec["tolerations"] = [*(spec.get("tolerations") or ()), *wanted]
