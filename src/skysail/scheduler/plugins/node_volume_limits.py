"""Keeps a node from more CSI volumes than its drivers can attach.

What is attached already: the volumes of the node's pods, and what VolumeAttachments say. Few nodes are near a limit:
for each row the number of volumes its pods could have at most is kept, and only where that may be too many are volumes
looked at one by one.

Source: pkg/scheduler/framework/plugins/nodevolumelimits, v1.36.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from skysail.api.core import Pod, Volume
from skysail.api.kinds import CSI_DRIVERS, CSI_NODES, PERSISTENT_VOLUMES, VOLUME_ATTACHMENTS
from skysail.api.storage import CSINode, VolumeAttachment
from skysail.api.volumes import pod_claims
from skysail.scheduler.cache.matrices import IntColumn, RowIndex, Rows
from skysail.scheduler.cache.node_info import NodeInfo
from skysail.scheduler.cache.pod_info import PodInfo
from skysail.scheduler.cache.table import NodeTable
from skysail.scheduler.framework.codes import ALL_PASS, Codes, Reads
from skysail.scheduler.framework.cycle_state import CycleState
from skysail.scheduler.framework.events import (
    CSI_NODE,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    VOLUME_ATTACHMENT,
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
from skysail.scheduler.plugins.attached_volumes import Attached, ClaimMissing, CountingError, VolumeCounter
from skysail.scheduler.plugins.csi_translation import Migration, TranslationError, inline_handle, migration_of
from skysail.scheduler.plugins.volume_events import after_claim_changed

TOO_MANY = Status.unschedulable("node(s) exceed max volume count")
_MANY = 1 << 40

_ANY_CSI_NODE = CSINode()

Brought = tuple[Status | Attached, Status | Attached]
"""A pod's own volumes on nodes without a CSINode object and on nodes with one, or why they cannot be counted."""


class NodeVolumeLimits:
    """The plugin."""

    name = "NodeVolumeLimits"
    reads = Reads.GLOBAL

    def __init__(self, args: PluginArgs, handle: Handle) -> None:
        self._counter = VolumeCounter(handle)
        self._csi_nodes = handle.lister(CSI_NODES)
        self._drivers = handle.lister(CSI_DRIVERS)
        self._volumes = handle.lister(PERSISTENT_VOLUMES)
        self._attachments = handle.lister(VOLUME_ATTACHMENTS)
        self._attached_to = self._attachments.indexed("node-name", _node_of)
        self._limits: tuple[object, IntColumn] = (None, np.zeros(0, dtype=np.int64))
        self._scaling = handle.feature_gates["VolumeLimitScaling"]

    def idle(self, pod: PodInfo) -> bool:
        """Whether the pod has no volumes."""
        return not pod.pod.spec.volumes

    def pre_filter(self, state: CycleState, pod: Pod, table: NodeTable) -> tuple[Status, PreFilterResult]:
        """Skip pods without a claim or a disk that a CSI driver took over."""
        return (SUCCESS if pod.spec.volumes and _may_attach(pod) else SKIP), ALL_NODES

    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Codes:
        """Refuse nodes where a driver's volumes would be too many."""
        index = index_of(rows)
        brought = (self._brought(pod, None), self._brought(pod, _ANY_CSI_NODE))
        codes = np.zeros(len(index), dtype=np.uint8)
        statuses: dict[Status, int] = {}
        for place in self._suspects(brought, table, index):
            info = table.infos[int(index[place])]
            if info is not None:
                status = self._status(brought, info)
                if not status.is_success:
                    codes[place] = statuses.setdefault(status, len(statuses) + 1)
        return Codes(codes, tuple(statuses)) if statuses else ALL_PASS

    def _suspects(self, brought: Brought, table: NodeTable, index: RowIndex) -> Iterable[int]:
        """The places in `index` that must be looked at one by one."""
        without, to_csi_node = brought
        scratch = bool(len(index)) and int(index.max()) >= table.size
        if self._scaling or scratch or isinstance(without, Status) or isinstance(to_csi_node, Status):
            return range(len(index))
        if not to_csi_node:
            return ()
        most = _bounds(table)[index] + len(to_csi_node)
        if self._attachments.list():
            most += np.fromiter((len(self._attached_to(table.names[row])) for row in index), np.int64, len(index))
        return [int(place) for place in np.flatnonzero(most > self._least_limits(table)[index])]

    def _least_limits(self, table: NodeTable) -> IntColumn:
        """(size,) int64: the lowest limit of any driver of each row; very high where none is told."""
        csi_nodes = tuple(self._csi_nodes.list())
        key, limits = self._limits
        if key != (id(table), table.node_log.end, csi_nodes):
            limits = np.full(table.size, 2 * _MANY, dtype=np.int64)
            for csi_node in csi_nodes:
                row, told = table.rows.get(csi_node.name), _limits(csi_node)
                if row is not None and told:
                    limits[row] = min(told.values())
            self._limits = ((id(table), table.node_log.end, csi_nodes), limits)
        return limits

    def _status(self, brought: Brought, info: NodeInfo) -> Status:
        csi_node = self._csi_nodes.get("", info.name)
        own = brought[0] if csi_node is None else brought[1]
        if isinstance(own, Status):
            return own
        return self._check(own, info, csi_node) if own else SUCCESS

    def explain(self, state: CycleState, pod: Pod, table: NodeTable, row: int) -> Status:
        """The refusal, with each driver's limit."""
        info = table.info(row)
        csi_node = self._csi_nodes.get("", info.name)
        brought = (self._brought(pod, None), self._brought(pod, _ANY_CSI_NODE))
        status = self._status(brought, info)
        if status != TOO_MANY or isinstance(brought[1], Status):
            return status
        drivers = set(brought[1].values())
        limits = ", ".join(
            f"{name} takes {limit}" for name, limit in sorted(_limits(csi_node).items()) if name in drivers
        )
        return Status.unschedulable(f"{TOO_MANY.message} ({limits})")

    def _brought(self, pod: Pod, csi_node: CSINode | None) -> Status | Attached:
        """The pod's own volumes. They depend on the node only by whether it has a CSINode object."""
        found: Attached = {}
        try:
            self._counter.add(pod, csi_node, found, must_exist=True)
        except ClaimMissing as error:
            return Status.unresolvable(str(error))
        except CountingError as error:
            return Status.error(str(error))
        return found

    def _check(self, brought: Attached, node: NodeInfo, csi_node: CSINode | None) -> Status:
        if self._scaling:
            for driver in brought.values():
                if not self._is_installed(driver, csi_node):
                    return Status.unschedulable(f"{driver} CSI driver is not installed on the node")
        limits = _limits(csi_node)
        if not limits:
            return SUCCESS
        there: Attached = {}
        try:
            for info in node.pods.values():
                if info.pod.spec.volumes:
                    self._counter.add(info.pod, csi_node, there, must_exist=False)
        except CountingError as error:
            return Status.error(str(error))
        added = Counter(driver for name, driver in brought.items() if name not in there)
        for attachment in self._attached_to(node.name):
            self._add_attachment(attachment, there)
        count = Counter(there.values())
        over = any(count[driver] + number > limits[driver] for driver, number in added.items() if driver in limits)
        return TOO_MANY if over else SUCCESS

    def _add_attachment(self, attachment: VolumeAttachment, there: Attached) -> None:
        driver, name = attachment.spec.attacher, attachment.spec.source.persistent_volume_name
        volume = self._volumes.get("", name) if driver and name is not None else None
        if volume is not None and volume.spec.csi is not None:
            there.setdefault(f"{driver}/{volume.spec.csi.volume_handle}", driver)

    def _is_installed(self, driver: str, csi_node: CSINode | None) -> bool:
        """Whether pods may go to a node for all this driver cares: some want to be installed there first."""
        found = self._drivers.get("", driver)
        if found is None or not found.spec.prevent_pod_scheduling_if_missing:
            return True
        return csi_node is not None and any(each.name == driver for each in csi_node.spec.drivers)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Nodes' drivers, pods that leave, the pod's claims, volumes that are detached."""
        return (
            ClusterEventWithHint(ClusterEvent(CSI_NODE, ActionType.ADD)),
            ClusterEventWithHint(ClusterEvent(CSI_NODE, ActionType.UPDATE), _after_csi_node_changed),
            ClusterEventWithHint(ClusterEvent(POD, ActionType.DELETE), _after_pod_deleted),
            ClusterEventWithHint(ClusterEvent(PERSISTENT_VOLUME_CLAIM, ActionType.ADD), after_claim_changed),
            ClusterEventWithHint(ClusterEvent(VOLUME_ATTACHMENT, ActionType.DELETE), _after_detached),
        )


def _node_of(attachment: VolumeAttachment) -> Iterable[str]:
    return (attachment.spec.node_name,)


def _may_attach(pod: Pod) -> bool:
    """Whether a pod has volumes that count: claims, and in-tree disks that CSI drivers took over."""
    return any(True for _ in pod_claims(pod)) or any(migration_of(volume) is not None for volume in pod.spec.volumes)


def _limits(csi_node: CSINode | None) -> Mapping[str, int]:
    if csi_node is None:
        return {}
    return {
        driver.name: driver.allocatable.count
        for driver in csi_node.spec.drivers
        if driver.allocatable is not None and driver.allocatable.count is not None
    }


class _Bounds:
    """For each row, at most how many volumes its pods have attached; kept up to date by the row's generation.

    Pods with anything but plain claims make a row's bound very large: it is then always looked at.
    """

    def __init__(self) -> None:
        self.most: IntColumn = np.zeros(0, dtype=np.int64)
        self._seen: IntColumn = np.zeros(0, dtype=np.int64)

    def refresh(self, table: NodeTable) -> IntColumn:
        """Read again what changed."""
        if len(self.most) < table.size:
            self.most = np.pad(self.most, (0, table.capacity - len(self.most)))
            self._seen = np.pad(self._seen, (0, table.capacity - len(self._seen)), constant_values=-1)
        stale: npt.NDArray[np.intp] = np.flatnonzero(self._seen[: table.size] != table.generation[: table.size])
        for row in stale:
            info = table.infos[int(row)]
            self.most[row] = _most(info) if info is not None else 0
        self._seen[stale] = table.generation[stale]
        return self.most


def _bounds(table: NodeTable) -> IntColumn:
    kept = table.memo.get(_Bounds)
    if not isinstance(kept, _Bounds):
        kept = table.memo[_Bounds] = _Bounds()
    return kept.refresh(table)


def _most(info: NodeInfo) -> int:
    most = 0
    for each in info.pods.values():
        for volume in each.pod.spec.volumes:
            if volume.ephemeral is not None or migration_of(volume) is not None:
                return _MANY
            most += volume.persistent_volume_claim is not None
    return most


def _after_csi_node_changed(pod: Pod, old: object | None, new: object | None) -> QueueingHint:
    if not isinstance(old, CSINode) or not isinstance(new, CSINode):
        return QueueingHint.QUEUE
    before, after = _limits(old), _limits(new)
    raised = any(limit > before.get(driver, 0) for driver, limit in after.items())
    return QueueingHint.QUEUE if raised else QueueingHint.SKIP


def _after_pod_deleted(pod: Pod, old: object | None, new: object | None) -> QueueingHint:
    if not isinstance(old, Pod) or not (old.spec.node_name or old.status.nominated_node_name):
        return QueueingHint.SKIP
    return QueueingHint.QUEUE if _may_attach(old) else QueueingHint.SKIP


def _after_detached(pod: Pod, old: object | None, new: object | None) -> QueueingHint:
    attacher = old.spec.attacher if isinstance(old, VolumeAttachment) else ""
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            return QueueingHint.QUEUE
        migration = migration_of(volume)
        if migration is not None and (migration.driver == attacher or not _is_translatable(migration, volume)):
            return QueueingHint.QUEUE
    return QueueingHint.SKIP


def _is_translatable(migration: Migration, volume: Volume) -> bool:
    try:
        inline_handle(migration, volume)
    except TranslationError:
        return False
    return True
