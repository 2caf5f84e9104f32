"""What is looked at: all objects the batch engine goes by, at one moment; and the engine's world made of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from skysail.api.batch import Job as BatchJob
from skysail.api.core import Pod
from skysail.api.node import Node
from skysail.api.raw import Raw
from skysail.api.scheduling import PriorityClass
from skysail.batch.controllers.owners import OwnerMembershipReader
from skysail.batch.foreign.koordinator import read_reservation
from skysail.batch.foreign.registry import RawKind, read_group, read_queues
from skysail.batch.kinds import JobQueue, PodGroup, Queue, Quota
from skysail.batch.kinds import reading as own
from skysail.batch.kinds.parts import SCHEDULER_NAME
from skysail.batch.kinds.reading import Problem
from skysail.batch.pod_plugins import PureHandle
from skysail.batch.world import World
from skysail.scheduler.framework.handle import Lister


@dataclass(frozen=True)
class Snapshot:
    """Objects of one moment.

    Attributes:
        now: Seconds since 1970.
        pods: All, of every scheduler.
        nodes: All.
        queues: Ours.
        job_queues: Ours.
        groups: Ours.
        quotas: Ours.
        priority_classes: For gangs that name one.
        foreign_queues: Other systems' queues and their like, by resource.
        foreign_groups: Other systems' gangs, with their kind.
        scheduler_name: Whose pods are ours.
        jobs: batch/v1 Jobs, to say why one has no pods.
        namespaces: Labels of namespaces, by name.
        reservations: Koordinator's.
        workload_priorities: Kueue's priority classes.
        others: What pod plugins look at (volumes, claims of devices), by resource.
    """

    now: float
    pods: Sequence[Pod] = ()
    nodes: Sequence[Node] = ()
    queues: Sequence[Queue] = ()
    job_queues: Sequence[JobQueue] = ()
    groups: Sequence[PodGroup] = ()
    quotas: Sequence[Quota] = ()
    priority_classes: Sequence[PriorityClass] = ()
    foreign_queues: Mapping[str, Sequence[Raw]] = field(default_factory=dict)
    foreign_groups: Sequence[tuple[RawKind, Raw]] = ()
    scheduler_name: str = SCHEDULER_NAME
    jobs: Sequence[BatchJob] = ()
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    reservations: Sequence[Raw] = ()
    workload_priorities: Sequence[Raw] = ()
    others: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    def priority_of(self, name: str) -> int | None:
        """The value of a priority class, Kubernetes' or Kueue's, or None."""
        for each in self.priority_classes:
            if each.name == name:
                return each.value
        values = (each.get("value") for each in self.workload_priorities if each["metadata"]["name"] == name)
        return next((value for value in values if isinstance(value, int)), None)


class SnapshotLister(Lister[Any]):
    """Objects of one kind, as pod plugins look at them.

    Args:
        objects: All there are.
    """

    def __init__(self, objects: Sequence[Any]) -> None:
        self._objects = {(each.namespace, each.name): each for each in objects}

    def get(self, namespace: str, name: str) -> Any | None:
        """One object; `namespace` is empty for cluster-scoped kinds."""
        return self._objects.get((namespace, name))

    def list(self, namespace: str | None = None) -> Sequence[Any]:
        """All objects, or those of one namespace."""
        return [each for (where, _), each in sorted(self._objects.items()) if namespace in (None, "", where)]


@dataclass(frozen=True)
class Picture:
    """A snapshot as the engine sees it.

    Attributes:
        world: Its world; nobody else's, so it may be changed.
        problems: What is wrong with objects.
    """

    world: World
    problems: tuple[Problem, ...]


def picture(snapshot: Snapshot) -> Picture:
    """Make the engine's world of a snapshot, as a process that was started at that moment would."""
    reader = OwnerMembershipReader()
    world = World(scheduler_name=snapshot.scheduler_name, membership=reader)
    world.now = snapshot.now
    world.handle = PureHandle(world.snapshot, 0, lambda kind: SnapshotLister(snapshot.others.get(kind.resource, ())))
    for name, labels in snapshot.namespaces.items():
        world.set_namespace(name, labels)
    foreign = read_queues(snapshot.foreign_queues)
    records = foreign.records
    records.add(own.read_queues(snapshot.queues, snapshot.job_queues))
    reader.namespaces = foreign.namespaces
    problems = list(records.problems)
    world.replace_queues(records.queues, records.job_queues, records.flavors.values())
    for node in snapshot.nodes:
        world.set_node(node)
    problems += _add_groups(world, snapshot)
    for quota in snapshot.quotas:
        spec, found = own.read_quota(quota)
        world.set_quota(spec)
        problems += found
    for raw in snapshot.reservations:
        reserved, found = read_reservation(raw)
        problems += found
        if reserved is not None:
            world.set_quota(reserved)
    for pod in snapshot.pods:
        world.set_pod(pod)
    for group in snapshot.groups:
        claim = own.read_claim(group)
        if claim is not None:
            world.restore_claim(claim)
    return Picture(world, tuple(problems))


def _add_groups(world: World, snapshot: Snapshot) -> list[Problem]:
    problems: list[Problem] = []
    names = {group.key for group in snapshot.groups}
    for kind, raw in snapshot.foreign_groups:
        spec, found = read_group(kind, raw, snapshot.priority_of)
        problems += found
        if spec is not None and spec.key not in names:
            names.add(spec.key)
            world.set_group(spec)
    for group in snapshot.groups:
        ours, found = own.read_group(group, snapshot.priority_of)
        world.set_group(ours)
        problems += found
    return problems
