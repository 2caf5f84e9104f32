"""Places pods in the zones and regions that the labels of their bound volumes name.

Source: pkg/scheduler/framework/plugins/volumezone, v1.36.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from skysail.api.core import Pod
from skysail.api.kinds import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES
from skysail.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from skysail.api.volumes import WAIT_FOR_FIRST_CONSUMER, claim_class, pod_claims
from skysail.scheduler.cache.columns import ABSENT
from skysail.scheduler.cache.matrices import Rows
from skysail.scheduler.cache.pod_info import PodInfo
from skysail.scheduler.cache.table import NodeTable
from skysail.scheduler.framework.codes import ALL_PASS, Codes, Reads
from skysail.scheduler.framework.cycle_state import CycleState, StateKey
from skysail.scheduler.framework.events import (
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    STORAGE_CLASS,
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    QueueingHint,
)
from skysail.scheduler.framework.handle import Handle
from skysail.scheduler.framework.plugin import ALL_NODES, PreFilterResult
from skysail.scheduler.framework.status import SKIP, SUCCESS, Status
from skysail.scheduler.framework.steps import Mask
from skysail.scheduler.plugins.args import PluginArgs
from skysail.scheduler.plugins.csi_translation import BETA_REGION, BETA_ZONE, REGION, ZONE, ZONES_DELIMITER
from skysail.scheduler.plugins.volume_events import after_named_claim_changed

CONFLICT = Status.unresolvable("node(s) had no available volume zone")
TOPOLOGY_LABELS: Final = (BETA_ZONE, BETA_REGION, ZONE, REGION)
_NEW_LABEL: Final = {BETA_ZONE: ZONE, BETA_REGION: REGION}

Topology = tuple[str, frozenset[str]]
TOPOLOGIES = StateKey[tuple[Topology, ...]]("PreFilterVolumeZone")


class VolumeZone:
    """The plugin."""

    name = "VolumeZone"
    reads = Reads.GLOBAL

    def __init__(self, args: PluginArgs, handle: Handle) -> None:
        self._claims = handle.lister(PERSISTENT_VOLUME_CLAIMS)
        self._volumes = handle.lister(PERSISTENT_VOLUMES)
        self._classes = handle.lister(STORAGE_CLASSES)

    def idle(self, pod: PodInfo) -> bool:
        """Whether the pod has no volumes."""
        return not pod.pod.spec.volumes

    def pre_filter(self, state: CycleState, pod: Pod, table: NodeTable) -> tuple[Status, PreFilterResult]:
        """Read the volumes' labels; skip pods whose volumes name no zone."""
        if not pod.spec.volumes:
            return SKIP, ALL_NODES
        topologies: list[Topology] = []
        for name, is_ephemeral in pod_claims(pod):
            if is_ephemeral:
                continue
            found = self._topologies(pod.metadata.namespace, name)
            if isinstance(found, Status):
                return found, ALL_NODES
            topologies += found
        if not topologies:
            return SKIP, ALL_NODES
        state.write(TOPOLOGIES, tuple(topologies))
        return SUCCESS, ALL_NODES

    def _topologies(self, namespace: str, name: str) -> Sequence[Topology] | Status:
        if not name:
            return Status.unresolvable("PersistentVolumeClaim had no name")
        claim = self._claims.get(namespace, name)
        if claim is None:
            return Status.unresolvable(f'persistentvolumeclaim "{name}" not found')
        if not claim.spec.volume_name:
            return self._unbound(claim)
        volume = self._volumes.get("", claim.spec.volume_name)
        if volume is None:
            return Status.unresolvable(f'persistentvolume "{claim.spec.volume_name}" not found')
        return topologies_of(volume)

    def _unbound(self, claim: PersistentVolumeClaim) -> Sequence[Topology] | Status:
        class_name = claim_class(claim)
        if not class_name:
            return Status.unresolvable("PersistentVolumeClaim had no pv name and storageClass name")
        storage_class = self._classes.get("", class_name)
        if storage_class is None:
            return Status.unresolvable(f'storageclass.storage.k8s.io "{class_name}" not found')
        if storage_class.volume_binding_mode is None:
            return Status.unresolvable(f'VolumeBindingMode not set for StorageClass "{class_name}"')
        if storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER:
            return ()
        return Status.unresolvable("PersistentVolume had no name")

    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Codes:
        """Refuse nodes elsewhere; nodes without any zone or region label may be anywhere."""
        refused: Mask | None = None
        for key, values in state.read(TOPOLOGIES):
            outside = ~_is_within(key, values, table, rows)
            refused = outside if refused is None else refused | outside
        assert refused is not None
        labelled = np.zeros_like(refused)
        for key in TOPOLOGY_LABELS:
            labelled |= table.label(key).codes[rows] != ABSENT
        refused &= labelled
        return Codes.refuse(refused, CONFLICT) if refused.any() else ALL_PASS

    def explain(self, state: CycleState, pod: Pod, table: NodeTable, row: int) -> Status:
        """The refusal, with what the volumes' labels ask for."""
        labels = table.info(row).node.metadata.labels
        if not any(key in labels for key in TOPOLOGY_LABELS):
            return SUCCESS
        for key, values in state.read(TOPOLOGIES):
            value = labels.get(key, labels.get(_NEW_LABEL.get(key, key)))
            if value not in values:
                return Status.unresolvable(f"{CONFLICT.message} ({key} must be {' or '.join(sorted(values))})")
        return SUCCESS

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Classes that wait for a consumer, nodes, the pod's claims, volumes."""
        changed = ActionType.ADD | ActionType.UPDATE
        return (
            ClusterEventWithHint(ClusterEvent(STORAGE_CLASS, ActionType.ADD), _after_class_added),
            ClusterEventWithHint(ClusterEvent(NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)),
            ClusterEventWithHint(ClusterEvent(PERSISTENT_VOLUME_CLAIM, changed), after_named_claim_changed),
            ClusterEventWithHint(ClusterEvent(PERSISTENT_VOLUME, changed), _after_volume_changed),
        )


def topologies_of(volume: PersistentVolume) -> tuple[Topology, ...]:
    """Zones and regions that a volume's labels name, in a fixed order; a label that names an empty one says nothing."""
    found = []
    for key in TOPOLOGY_LABELS:
        label = volume.metadata.labels.get(key)
        if label is not None:
            values = frozenset(value.strip() for value in label.split(ZONES_DELIMITER))
            if "" not in values:
                found.append((key, values))
    return tuple(found)


def _is_within(key: str, values: frozenset[str], table: NodeTable, rows: Rows) -> Mask:
    column = table.label(key)
    codes = column.codes[rows]
    within: Mask = np.isin(codes, [column.code_of(value) for value in values]) & (codes != ABSENT)
    newer = _NEW_LABEL.get(key)
    if newer is not None:
        within |= (codes == ABSENT) & _is_within(newer, values, table, rows)
    return within


def _after_class_added(pod: Pod, old: object | None, new: object | None) -> QueueingHint:
    waits = isinstance(new, StorageClass) and new.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
    return QueueingHint.QUEUE if waits else QueueingHint.SKIP


def _after_volume_changed(pod: Pod, old: object | None, new: object | None) -> QueueingHint:
    if isinstance(old, PersistentVolume) and isinstance(new, PersistentVolume):
        return QueueingHint.SKIP if topologies_of(old) == topologies_of(new) else QueueingHint.QUEUE
    return QueueingHint.QUEUE
