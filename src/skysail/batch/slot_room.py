"""The unused room of slots, as pods that are none: they stand in the cluster cache so that no engine gives it away.

A slot in which nobody sits keeps its size and a place for a pod. Pods that sit in slots have their own place; what they
leave of all slots of a node is kept together, with one place more, so a node has never more than one place too few.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from skysail.api.core import Container, Pod, PodSpec, ResourceRequirements
from skysail.api.meta import ObjectMeta
from skysail.batch.model.resources import PODS
from skysail.batch.model.slot import Slot
from skysail.scheduler.cache.node_info import NodeInfo
from skysail.scheduler.cache.pod_info import PodInfo

_MARK: Final = "slot:"


def slot_uid(slot: Slot) -> str:
    """What stands for an empty slot."""
    return f"{_MARK}{slot.key}"


def rest_uid(node: str) -> str:
    """What stands for the rest of a node's slots; no slot's key is without a slash."""
    return f"{_MARK}{node}"


def is_room(uid: str) -> bool:
    """Whether this is no pod, but room."""
    return uid.startswith(_MARK)


def room_of(slot: Slot) -> PodInfo:
    """A pod that asks for all of a slot."""
    return _pod(slot_uid(slot), slot.size)


def rest_of(node: str, slots: Iterable[Slot]) -> PodInfo | None:
    """A pod that asks for what holders leave of a node's slots; None where that is nothing."""
    left: dict[str, int] = {}
    for slot in slots:
        for name, amount in slot.size.items() if slot.holders else ():
            left[name] = left.get(name, 0) + max(0, amount - slot.used.get(name, 0))
    left.pop(PODS, None)
    return _pod(rest_uid(node), left) if any(left.values()) else None


def places_taken(account: NodeInfo) -> int:
    """How many pods are on a node, or have their place kept by an empty slot."""
    return len(account.pods) - (rest_uid(account.name) in account.pods)


def _pod(uid: str, amounts: Mapping[str, int]) -> PodInfo:
    requests = {
        name: f"{amount}m" if name == "cpu" else str(amount)
        for name, amount in amounts.items()
        if amount and name != PODS
    }
    container = Container(name="room", resources=ResourceRequirements(requests=requests))
    return PodInfo(Pod(metadata=ObjectMeta(name=uid, uid=uid), spec=PodSpec(containers=(container,))))
