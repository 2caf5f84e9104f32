"""Keeps pods apart that may not share a disk: in-tree disks on one node, ReadWriteOncePod claims anywhere.

Source: pkg/scheduler/framework/plugins/volumerestrictions, v1.36.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from skysail.api.core import Pod, Volume
from skysail.api.kinds import PERSISTENT_VOLUME_CLAIMS
from skysail.api.volumes import READ_WRITE_ONCE_POD
from skysail.scheduler.cache.matrices import Rows
from skysail.scheduler.cache.node_info import NodeInfo
from skysail.scheduler.cache.pod_info import PodInfo
from skysail.scheduler.cache.table import NodeTable
from skysail.scheduler.framework.codes import ALL_PASS, Codes, Reads
from skysail.scheduler.framework.cycle_state import CycleState, StateKey
from skysail.scheduler.framework.events import (
    NODE,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    QueueingHint,
)
from skysail.scheduler.framework.handle import Handle
from skysail.scheduler.framework.plugin import ALL_NODES, PreFilterResult
from skysail.scheduler.framework.status import SKIP, SUCCESS, Status
from skysail.scheduler.framework.steps import index_of
from skysail.scheduler.plugins.args import PluginArgs
from skysail.scheduler.plugins.volume_events import after_named_claim_changed

DISK_CONFLICT = Status.unschedulable("node(s) had no available disk")
CLAIM_IN_USE = Status.unschedulable(
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)


@dataclass(slots=True)
class Restrictions:
    """What Filter checks.

    Attributes:
        disks: The pod's in-tree disks.
        once_pod: Names of its ReadWriteOncePod claims.
        in_use: How many references other pods hold to these.
    """

    disks: tuple[Volume, ...]
    once_pod: frozenset[str]
    in_use: int

    def clone(self) -> "Restrictions":
        """A state for a what-if."""
        return replace(self)

    def references(self, pod: Pod) -> int:
        """How many of the claims a pod mounts."""
        return sum(name in self.once_pod for name in _named_claims(pod)) if self.once_pod else 0


RESTRICTIONS = StateKey[Restrictions]("PreFilterVolumeRestrictions")


class VolumeRestrictions:
    """The plugin."""

    name = "VolumeRestrictions"
    reads = Reads.GLOBAL

    def __init__(self, args: PluginArgs, handle: Handle) -> None:
        self._claims = handle.lister(PERSISTENT_VOLUME_CLAIMS)

    def idle(self, pod: PodInfo) -> bool:
        """Whether the pod has no volumes."""
        return not pod.pod.spec.volumes

    def pre_filter(self, state: CycleState, pod: Pod, table: NodeTable) -> tuple[Status, PreFilterResult]:
        """Skip pods with neither an in-tree disk nor a claim that is taken."""
        if not pod.spec.volumes:
            return SKIP, ALL_NODES
        disks = tuple(volume for volume in pod.spec.volumes if _is_disk(volume))
        once_pod: set[str] = set()
        for name in _named_claims(pod):
            claim = self._claims.get(pod.metadata.namespace, name)
            if claim is None:
                return Status.unresolvable(f'persistentvolumeclaim "{name}" not found'), ALL_NODES
            if READ_WRITE_ONCE_POD in claim.spec.access_modes:
                once_pod.add(name)
        in_use = sum(_is_mounted(f"{pod.metadata.namespace}/{name}", table) for name in once_pod)
        if not disks and not in_use:
            return SKIP, ALL_NODES
        state.write(RESTRICTIONS, Restrictions(disks, frozenset(once_pod), in_use))
        return SUCCESS, ALL_NODES

    def add_pod(self, state: CycleState, pod: Pod, added: PodInfo, node: NodeInfo) -> Status:
        """Count its references to the claims."""
        restrictions = state.read(RESTRICTIONS)
        restrictions.in_use += restrictions.references(added.pod)
        return SUCCESS

    def remove_pod(self, state: CycleState, pod: Pod, removed: PodInfo, node: NodeInfo) -> Status:
        """Count its references no longer."""
        restrictions = state.read(RESTRICTIONS)
        restrictions.in_use -= restrictions.references(removed.pod)
        return SUCCESS

    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Codes:
        """Refuse nodes where a disk is taken, and every node while a claim is."""
        restrictions = state.read(RESTRICTIONS)
        index = index_of(rows)
        codes = np.full(len(index), 2 if restrictions.in_use > 0 else 0, dtype=np.uint8)
        if restrictions.disks:
            for place, row in enumerate(index):
                info = table.infos[int(row)]
                if info is not None and _has_conflict(restrictions.disks, info):
                    codes[place] = 1
        return Codes(codes, (DISK_CONFLICT, CLAIM_IN_USE)) if codes.any() else ALL_PASS

    def explain(self, state: CycleState, pod: Pod, table: NodeTable, row: int) -> Status:
        """The refusal."""
        restrictions = state.read(RESTRICTIONS)
        if _has_conflict(restrictions.disks, table.info(row)):
            return DISK_CONFLICT
        return CLAIM_IN_USE if restrictions.in_use > 0 else SUCCESS

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Pods that let a disk or claim go, new nodes, the pod's claims."""
        return (
            ClusterEventWithHint(ClusterEvent(POD, ActionType.DELETE), _after_pod_deleted),
            ClusterEventWithHint(ClusterEvent(NODE, ActionType.ADD)),
            ClusterEventWithHint(ClusterEvent(PERSISTENT_VOLUME_CLAIM, ActionType.ADD), after_named_claim_changed),
        )


def _after_pod_deleted(pod: Pod, old: object | None, new: object | None) -> QueueingHint:
    if not isinstance(old, Pod) or old.metadata.namespace != pod.metadata.namespace:
        return QueueingHint.SKIP
    if any(_conflicts(volume, old) for volume in pod.spec.volumes if _is_disk(volume)):
        return QueueingHint.QUEUE
    shared = set(_named_claims(pod)).intersection(_named_claims(old))
    return QueueingHint.QUEUE if shared else QueueingHint.SKIP


def _named_claims(pod: Pod) -> list[str]:
    return [
        volume.persistent_volume_claim.claim_name
        for volume in pod.spec.volumes
        if volume.persistent_volume_claim is not None
    ]


def _is_mounted(claim: str, table: NodeTable) -> bool:
    return any(info is not None and claim in info.pvc_ref_counts for info in table.infos[: table.size])


def _is_disk(volume: Volume) -> bool:
    return (
        volume.gce_persistent_disk is not None
        or volume.aws_elastic_block_store is not None
        or volume.rbd is not None
        or volume.iscsi is not None
    )


def _has_conflict(disks: Sequence[Volume], node: NodeInfo) -> bool:
    return any(info.pod.spec.volumes and _conflicts(disk, info.pod) for info in node.pods.values() for disk in disks)


def _conflicts(disk: Volume, pod: Pod) -> bool:
    return any(_same_disk(disk, other) for other in pod.spec.volumes)


def _same_disk(one: Volume, other: Volume) -> bool:
    """Whether both are one disk that may not be mounted twice; read-only mounts share all but EBS disks."""
    gce, other_gce = one.gce_persistent_disk, other.gce_persistent_disk
    if gce is not None and other_gce is not None and gce.pd_name == other_gce.pd_name:
        return not (gce.read_only and other_gce.read_only)
    ebs, other_ebs = one.aws_elastic_block_store, other.aws_elastic_block_store
    if ebs is not None and other_ebs is not None:
        return ebs.volume_id == other_ebs.volume_id
    iscsi, other_iscsi = one.iscsi, other.iscsi
    if iscsi is not None and other_iscsi is not None and iscsi.iqn == other_iscsi.iqn:
        return not (iscsi.read_only and other_iscsi.read_only)
    rbd, other_rbd = one.rbd, other.rbd
    if rbd is None or other_rbd is None or (rbd.pool, rbd.image) != (other_rbd.pool, other_rbd.image):
        return False
    return not set(rbd.monitors).isdisjoint(other_rbd.monitors) and not (rbd.read_only and other_rbd.read_only)
