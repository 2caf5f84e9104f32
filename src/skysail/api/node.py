"""Nodes."""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from skysail.api.meta import ApiObject, Struct


class Taint(Struct, frozen=True, gc=False):
    """A mark that keeps pods away unless they tolerate it."""

    effect: str = ""
    key: str = ""
    time_added: datetime | None = None
    value: str = ""


class NodeSpec(Struct, frozen=True, gc=False):
    """What an administrator wants of the node."""

    pod_cidr: str = msgspec.field(default="", name="podCIDR")
    provider_id: str = msgspec.field(default="", name="providerID")
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False


class NodeCondition(Struct, frozen=True, gc=False):
    """One condition of a node."""

    last_heartbeat_time: datetime | None = None
    last_transition_time: datetime | None = None
    message: str = ""
    reason: str = ""
    status: str = ""
    type: str = ""


class ContainerImage(Struct, frozen=True, gc=False):
    """An image the node already has."""

    names: tuple[str, ...] = ()
    size_bytes: int = 0


class NodeAddress(Struct, frozen=True, gc=False):
    """One address of the node."""

    address: str = ""
    type: str = ""


class AttachedVolume(Struct, frozen=True, gc=False):
    """A volume attached to the node."""

    device_path: str = ""
    name: str = ""


class NodeStatus(Struct, frozen=True, gc=False):
    """What the node reports: capacity, conditions, images."""

    capacity: Mapping[str, str] = {}
    allocatable: Mapping[str, str] = {}
    conditions: tuple[NodeCondition, ...] = ()
    addresses: tuple[NodeAddress, ...] = ()
    images: tuple[ContainerImage, ...] = ()
    phase: str = ""
    declared_features: tuple[str, ...] = ()
    volumes_attached: tuple[AttachedVolume, ...] = ()
    volumes_in_use: tuple[str, ...] = ()


class Node(ApiObject, frozen=True, gc=False):
    """A machine that runs pods."""

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()
