"""Does a node still hold what a decision puts there? Asked at commit of rows that changed since the snapshot.

Between a snapshot and a commit the other engine may have put pods on a node, or the node itself may have changed. A row
that is not newer than the snapshot is as it was when the decision was made; of a newer one it is asked again what room
can change: resources, ports, and whether the node is there and still the same object.
"""

from collections.abc import Mapping
from typing import TypeAlias

from skysail.batch.model.job import TaskState
from skysail.batch.model.resources import PODS
from skysail.batch.world import World
from skysail.scheduler.cache.node_info import NodeInfo

HostPort: TypeAlias = tuple[str, str, int]
"""`(host_ip, protocol, port)`."""


def lost_room(
    world: World,
    node: str,
    request: Mapping[str, int],
    number: int = 1,
    ports: frozenset[HostPort] = frozenset(),
    *,
    promised: bool = False,
) -> str:
    """Why a node no longer takes what a decision puts there, or empty.

    Args:
        world: Whose cache and snapshot.
        node: The node.
        request: What one of the pods asks for, `pods` included.
        number: How many pods.
        ports: Host ports they need.
        promised: Whether the room is only promised: what is leaving then takes none.
    """
    account = world.cache.node_info(node)
    if account is None or not account.exists:
        return f"node {node} is gone"
    if account.generation <= world.snapshot.generation:
        return ""
    if account.node_generation > world.snapshot.generation:
        return f"node {node} changed meanwhile"
    leaving = _leaving(world, account) if promised else {}
    for name, each in request.items():
        used = len(account.pods) if name == PODS else account.requested.get(name, 0)
        if used - leaving.get(name, 0) + each * number > account.allocatable.get(name, 0):
            return f"room on node {node} was taken meanwhile"
    if ports and not promised and ports & account.used_ports.keys():
        return f"a port of node {node} was taken meanwhile"
    return ""


def _leaving(world: World, account: NodeInfo) -> dict[str, int]:
    found: dict[str, int] = {}
    for uid in account.pods:
        task = world.tasks.get(uid)
        if task is not None and (task.state is TaskState.RELEASING or uid in world.evicting):
            for name, amount in task.request.items():
                found[name] = found.get(name, 0) + amount
    return found
