"""What is sent to extenders. Keys are spelled as Go writes the untagged fields of the extender types.

Pods and nodes stand in a body as the Structs we know; `with_whole_objects` replaces them on the way out.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from skysail.api.core import Pod
from skysail.api.node import Node
from skysail.scheduler.preemption.victims import Victims

Body = Mapping[str, object]


def selection(pod: Pod, *, nodes: Sequence[object] | None = None, names: Sequence[str] | None = None) -> Body:
    """For filter and prioritize: the pod, and either the nodes or their names.

    Args:
        pod: Under test.
        nodes: Nodes, or what an extender answered for them.
        names: Their names, for extenders that keep a cache of nodes.
    """
    return {
        "Pod": pod,
        "Nodes": None if nodes is None else {"metadata": {}, "items": list(nodes)},
        "NodeNames": None if names is None else list(names),
    }


def preemption(pod: Pod, victims: Mapping[str, Victims], *, only_uids: bool) -> Body:
    """For preempt: who would be evicted, by node; `only_uids` for extenders that keep a cache."""
    whole: Body = {
        name: {"Pods": list(each.pods), "NumPDBViolations": each.violations} for name, each in victims.items()
    }
    meta: Body = {
        name: {"Pods": [{"UID": pod.uid} for pod in each.pods], "NumPDBViolations": each.violations}
        for name, each in victims.items()
    }
    return {
        "Pod": pod,
        "NodeNameToVictims": None if only_uids else whole,
        "NodeNameToMetaVictims": meta if only_uids else None,
    }


def binding(pod: Pod, node_name: str) -> Body:
    """For bind."""
    return {"PodName": pod.name, "PodNamespace": pod.namespace, "PodUID": pod.uid, "Node": node_name}


def objects_in(value: object) -> Iterator[Pod | Node]:
    """The Structs that stand in a body."""
    if isinstance(value, Pod | Node):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from objects_in(each)
    elif isinstance(value, list):
        for each in value:
            yield from objects_in(each)


def with_whole_objects(value: object, whole: Callable[[Pod | Node], object]) -> object:
    """A body as it is sent: every Struct replaced by the object with all its fields."""
    if isinstance(value, Pod | Node):
        return whole(value)
    if isinstance(value, Mapping):
        return {key: with_whole_objects(each, whole) for key, each in value.items()}
    return [with_whole_objects(each, whole) for each in value] if isinstance(value, list) else value
