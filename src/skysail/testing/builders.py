"""Pods and nodes in one line: objects for tests, with what a test does not mention left at plain defaults.

>>> pod = make_pod("web", cpu="500m", memory="1Gi", labels={"app": "web"}, tolerations=[tolerate("gpu:NoSchedule")])
>>> pod.spec.containers[0].resources.requests["cpu"], pod.key
('500m', 'default/web')
>>> make_node("n1", zone="a", taints=[taint("gpu=yes:NoSchedule")]).spec.taints[0].value
'yes'
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from skysail.api.affinity import Affinity, TopologySpreadConstraint
from skysail.api.core import (
    Container,
    ContainerPort,
    Pod,
    PodCondition,
    PodSchedulingGate,
    PodSpec,
    PodStatus,
    ResourceRequirements,
    Toleration,
)
from skysail.api.kinds import kind_of
from skysail.api.meta import ApiObject, ObjectMeta, OwnerReference
from skysail.api.node import ContainerImage, Node, NodeCondition, NodeSpec, NodeStatus, Taint

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
IMAGE = "registry.test/app:1"


def make_container(
    name: str = "main",
    *,
    image: str = IMAGE,
    cpu: str = "",
    memory: str = "",
    requests: Mapping[str, str] | None = None,
    limits: Mapping[str, str] | None = None,
    host_ports: Iterable[int] = (),
    sidecar: bool = False,
) -> Container:
    """A container.

    Args:
        name: Its name.
        image: Its image.
        cpu: Requested CPU; short for an entry of `requests`.
        memory: Requested memory, likewise.
        requests: Further requests.
        limits: Limits.
        host_ports: Ports it takes of the node.
        sidecar: For an init container: whether it always restarts.
    """
    asked = {name: amount for name, amount in (("cpu", cpu), ("memory", memory)) if amount} | dict(requests or {})
    return Container(
        name=name,
        image=image,
        resources=ResourceRequirements(requests=asked, limits=dict(limits or {})),
        ports=tuple(ContainerPort(container_port=port, host_port=port, protocol="TCP") for port in host_ports),
        restart_policy="Always" if sidecar else None,
    )


def make_pod(
    name: str = "pod",
    namespace: str = "default",
    *,
    uid: str = "",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    owner: OwnerReference | None = None,
    created: datetime | None = None,
    cpu: str = "",
    memory: str = "",
    requests: Mapping[str, str] | None = None,
    host_ports: Iterable[int] = (),
    containers: Iterable[Container] = (),
    init_containers: Iterable[Container] = (),
    node: str = "",
    node_selector: Mapping[str, str] | None = None,
    affinity: Affinity | None = None,
    tolerations: Iterable[Toleration] = (),
    spread: Iterable[TopologySpreadConstraint] = (),
    gates: Iterable[str] = (),
    priority: int | None = None,
    priority_class: str = "",
    preemption_policy: str | None = None,
    scheduler: str = "",
    overhead: Mapping[str, str] | None = None,
    phase: str = "",
    ready: bool = False,
    nominated_node: str = "",
) -> Pod:
    """A pod of one container, unless `containers` are given.

    Args:
        name: Its name.
        namespace: Where it lives.
        uid: Give one to pods that never pass an API server.
        labels: Its labels.
        annotations: Its annotations.
        owner: Who controls it.
        created: When it was created.
        cpu: Requested by its one container.
        memory: Likewise.
        requests: Further requests of its one container.
        host_ports: Of its one container.
        containers: Instead of the one.
        init_containers: Before them.
        node: The node it is bound to.
        node_selector: Labels its node must have.
        affinity: See `skysail.testing.placement`.
        tolerations: Likewise.
        spread: Likewise.
        gates: Names of scheduling gates.
        priority: As admission would resolve it.
        priority_class: By name.
        preemption_policy: `Never`, or None.
        scheduler: Who schedules it.
        overhead: Of its runtime class.
        phase: `Pending`, `Running`, `Succeeded`, `Failed`.
        ready: Whether it has a true Ready condition.
        nominated_node: Where preemption makes room for it.
    """
    one = make_container(cpu=cpu, memory=memory, requests=requests, host_ports=host_ports)
    return Pod(
        metadata=ObjectMeta(
            name=name,
            namespace=namespace,
            uid=uid,
            labels=dict(labels or {}),
            annotations=dict(annotations or {}),
            owner_references=(owner,) if owner else (),
            creation_timestamp=created,
        ),
        spec=PodSpec(
            containers=tuple(containers) or (one,),
            init_containers=tuple(init_containers),
            node_name=node,
            node_selector=dict(node_selector or {}),
            affinity=affinity,
            tolerations=tuple(tolerations),
            topology_spread_constraints=tuple(spread),
            scheduling_gates=tuple(PodSchedulingGate(name=each) for each in gates),
            priority=priority,
            priority_class_name=priority_class,
            preemption_policy=preemption_policy,
            scheduler_name=scheduler,
            overhead=dict(overhead or {}),
        ),
        status=PodStatus(
            phase=phase,
            nominated_node_name=nominated_node,
            conditions=(PodCondition(type="Ready", status="True"),) if ready else (),
        ),
    )


def make_node(
    name: str = "node",
    *,
    zone: str = "",
    labels: Mapping[str, str] | None = None,
    cpu: str = "4",
    memory: str = "16Gi",
    pods: str = "110",
    capacity: Mapping[str, str] | None = None,
    taints: Iterable[Taint] = (),
    unschedulable: bool = False,
    ready: bool = True,
    images: Mapping[str, int] | None = None,
) -> Node:
    """A node.

    Args:
        name: Its name, and its hostname label.
        zone: Its zone label; none when empty.
        labels: Further labels.
        cpu: Capacity, all of it allocatable.
        memory: Likewise.
        pods: Likewise.
        capacity: Further resources, likewise.
        taints: See `taint`.
        unschedulable: Whether it is cordoned.
        ready: The status of its Ready condition.
        images: Images it has, with their sizes in bytes.
    """
    resources = {"cpu": cpu, "memory": memory, "pods": pods} | dict(capacity or {})
    known = {HOSTNAME: name} | ({ZONE: zone} if zone else {})
    return Node(
        metadata=ObjectMeta(name=name, labels=known | dict(labels or {})),
        spec=NodeSpec(taints=tuple(taints), unschedulable=unschedulable),
        status=NodeStatus(
            capacity=resources,
            allocatable=resources,
            conditions=(NodeCondition(type="Ready", status="True" if ready else "False"),),
            images=tuple(ContainerImage(names=(each,), size_bytes=size) for each, size in (images or {}).items()),
        ),
    )


def make_nodes(count: int, prefix: str = "node-", *, zones: Sequence[str] = (), cpu: str = "4") -> list[Node]:
    """Nodes `node-0`, `node-1`, ..., dealt out to the zones in turn."""
    return [
        make_node(f"{prefix}{number}", zone=zones[number % len(zones)] if zones else "", cpu=cpu)
        for number in range(count)
    ]


def owner_of(obj: ApiObject) -> OwnerReference:
    """The reference by which `obj` controls something."""
    kind = kind_of(type(obj))
    return OwnerReference(
        api_version=kind.api_version,
        kind=kind.name,
        name=obj.name,
        uid=obj.uid,
        controller=True,
        block_owner_deletion=True,
    )


def taint(text: str) -> Taint:
    """A taint as kubectl writes it: `key=value:Effect` or `key:Effect`."""
    key, value, effect = _split_taint(text)
    return Taint(key=key, value=value, effect=effect)


def tolerate(text: str, *, seconds: int | None = None) -> Toleration:
    """The toleration of a taint: `key=value:Effect`, `key:Effect` (any value), `key` (any effect), `` (everything)."""
    key, value, effect = _split_taint(text)
    operator = "Equal" if "=" in text else "Exists"
    return Toleration(key=key, value=value, effect=effect, operator=operator, toleration_seconds=seconds)


def _split_taint(text: str) -> tuple[str, str, str]:
    rest, _, effect = text.partition(":")
    key, _, value = rest.partition("=")
    return key, value, effect
