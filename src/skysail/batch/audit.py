"""Is the picture true? The world held against a fresh list of objects, and set right where it is not.

A lost delete, a doubled add, a missed update: each is a difference of uid or version. Whoever finds one reports it and
calls `repair`; no restart is needed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b

from skysail.api.core import Pod
from skysail.api.node import Node
from skysail.batch.slot_room import is_room
from skysail.batch.world import ENDED_PHASES, World


@dataclass(frozen=True, slots=True)
class Difference:
    """One object that is not as it should be.

    Attributes:
        kind: `Pod` or `Node`.
        name: `namespace/name` or name.
        known: The version the world holds; empty when it holds none.
        listed: The version listed; empty when there is none.
    """

    kind: str
    name: str
    known: str
    listed: str


def differences(world: World, nodes: Iterable[Node], pods: Iterable[Pod]) -> list[Difference]:
    """Where the world and the lists disagree; pods that ended hold nothing and are left out."""
    found = _compare("Node", {node.name: (node.name, _version(node)) for node in world.nodes()}, {
        node.name: (node.name, _version(node)) for node in nodes
    })  # fmt: skip
    known = {pod.uid: (pod.key, _version(pod)) for pod in _known_pods(world)}
    return found + _compare("Pod", known, {pod.uid: (pod.key, _version(pod)) for pod in pods if _counts(world, pod)})


def digest(objects: Iterable[Pod | Node]) -> str:
    """A hash of names and versions, whatever their order."""
    lines = sorted(f"{each.uid or each.name}@{_version(each)}" for each in objects)
    return blake2b("\n".join(lines).encode(), digest_size=8).hexdigest()


def repair(world: World, nodes: Iterable[Node], pods: Iterable[Pod]) -> None:
    """Bring the world to what is listed."""
    listed_nodes, listed_pods = list(nodes), list(pods)
    for name in {node.name for node in world.nodes()} - {node.name for node in listed_nodes}:
        world.remove_node(name)
    for node in listed_nodes:
        world.set_node(node)
    for uid in sorted({pod.uid for pod in _known_pods(world)} - {pod.uid for pod in listed_pods}):
        world.remove_pod(uid)
    for pod in listed_pods:
        world.set_pod(pod)


def repair_some(world: World, found: Iterable[Difference], nodes: Iterable[Node], pods: Iterable[Pod]) -> None:
    """Set right only these differences, and of them only those that are still there.

    What the watches brought since the lists were made stays as it is.
    """
    listed_nodes, listed_pods = list(nodes), list(pods)
    still = set(found) & set(differences(world, listed_nodes, listed_pods))
    wrong = {(each.kind, each.name) for each in still}
    uids, names = {pod.uid for pod in listed_pods}, {node.name for node in listed_nodes}
    for name in sorted(name for kind, name in wrong if kind == "Node" and name not in names):
        world.remove_node(name)
    for node in listed_nodes:
        if ("Node", node.name) in wrong:
            world.set_node(node)
    for pod in _known_pods(world):
        if ("Pod", pod.key) in wrong and pod.uid not in uids:
            world.remove_pod(pod.uid)
    for pod in listed_pods:
        if ("Pod", pod.key) in wrong:
            world.set_pod(pod)


def _known_pods(world: World) -> list[Pod]:
    known = {task.uid: task.pod for task in world.tasks.values() if task.pod.status.phase not in ENDED_PHASES}
    for state in world.cache.pods():
        if not state.assumed and not is_room(state.info.key):
            known.setdefault(state.info.key, state.info.pod)
    return list(known.values())


def _counts(world: World, pod: Pod) -> bool:
    if pod.status.phase in ENDED_PHASES:
        return False
    leaving = pod.metadata.deletion_timestamp is not None and not pod.spec.node_name
    return bool(pod.spec.node_name) or (pod.spec.scheduler_name == world.scheduler_name and not leaving)


def _version(each: Pod | Node) -> str:
    return each.metadata.resource_version or "?"


def _compare(
    kind: str, known: Mapping[str, tuple[str, str]], listed: Mapping[str, tuple[str, str]]
) -> list[Difference]:
    nothing = ("", "")
    found = []
    for key in sorted({*known, *listed}):
        ours, theirs = known.get(key, nothing), listed.get(key, nothing)
        if ours[1] != theirs[1]:
            found.append(Difference(kind, ours[0] or theirs[0], ours[1], theirs[1]))
    return found
