"""Places pods where their claims can get volumes, and sees that they do before the pod is bound.

    PreFilter   refuses a pod whose claims are missing, or should have been bound already; sorts the rest
    Filter      nodes whose volumes, classes and capacities suit (`volume_rows`)
    Score       only with the gate StorageCapacityScoring: by how much of the storage would be used
    Reserve     assumes what the claims get on the chosen node, so that the next pod gets something else
    PreBind     writes it, and waits for the volume binder and the provisioners (`volume_binding_bind`)
    Unreserve   takes the assumptions back; what was written stays

Source: pkg/scheduler/framework/plugins/volumebinding, v1.36.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from skysail.api.core import Pod
from skysail.api.kinds import NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from skysail.api.node import Node
from skysail.api.storage import CSIDriver, CSINode, CSIStorageCapacity, PersistentVolume, StorageClass
from skysail.api.volumes import (
    BOUND_BY_CONTROLLER,
    SELECTED_NODE,
    claim_reference,
    is_bound_to,
    pod_claims,
    with_annotation,
)
from skysail.scheduler.cache.assume_cache import AssumeCache
from skysail.scheduler.cache.matrices import RowIndex, Rows
from skysail.scheduler.cache.pod_info import PodInfo
from skysail.scheduler.cache.table import NodeTable
from skysail.scheduler.framework.codes import ALL_PASS, Codes, Reads, ScoreArray, zero_scores
from skysail.scheduler.framework.cycle_state import CycleState, StateKey
from skysail.scheduler.framework.events import (
    CSI_DRIVER,
    CSI_NODE,
    CSI_STORAGE_CAPACITY,
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
from skysail.scheduler.framework.steps import index_of
from skysail.scheduler.plugins.args import VolumeBindingArgs
from skysail.scheduler.plugins.csi_translation import MIGRATED_PLUGINS
from skysail.scheduler.plugins.volume_binding_bind import Promise, Reserved, VolumeWriter
from skysail.scheduler.plugins.volume_claims import (
    STATUSES,
    Binding,
    ClaimReader,
    PodClaims,
    PodVolumes,
    VolumeError,
    volume_limit,
)
from skysail.scheduler.plugins.volume_events import after_claim_changed
from skysail.scheduler.plugins.volume_rows import RowConflicts, conflicts
from skysail.scheduler.plugins.volume_scoring import ClassScorer


@dataclass(slots=True)
class VolumeState:
    """What an attempt knows of the pod's volumes.

    Attributes:
        claims: As PreFilter sorted them.
        conflicts: Of each row of the table, once Filter was asked. Taking pods off nodes changes nothing about
            volumes, so what-ifs share them.
        reserved: What Reserve assumed.
    """

    claims: PodClaims
    conflicts: RowConflicts | None = None
    reserved: Reserved | None = None


VOLUMES = StateKey[VolumeState]("VolumeBinding")


class VolumeBinding:
    """The plugin."""

    name = "VolumeBinding"
    reads = Reads.GLOBAL

    def __init__(self, args: VolumeBindingArgs, handle: Handle) -> None:
        self.volumes = AssumeCache(handle.lister(PERSISTENT_VOLUMES))
        self.claims = AssumeCache(handle.lister(PERSISTENT_VOLUME_CLAIMS))
        self._nodes = handle.lister(NODES)
        self._reader = ClaimReader(handle, self.claims, self.volumes)
        self._writer = VolumeWriter(
            handle, self.claims, self.volumes, self._reader, timeout_seconds=args.bind_timeout_seconds
        )
        self._scorer = ClassScorer(args.shape) if handle.feature_gates["StorageCapacityScoring"] else None

    # -- finding a node --------------------------------------------------------------------------------------------

    def idle(self, pod: PodInfo) -> bool:
        """A pod without volumes has no claims."""
        return not pod.pod.spec.volumes

    def pre_filter(self, state: CycleState, pod: Pod, table: NodeTable) -> tuple[Status, PreFilterResult]:
        """Skip pods without claims; refuse those whose claims are not ready."""
        if not pod.spec.volumes or not any(True for _ in pod_claims(pod)):
            return SKIP, ALL_NODES
        refusal = self._reader.refusal(pod)
        if refusal is not None:
            return refusal, ALL_NODES
        try:
            claims = self._reader.sort(pod)
        except VolumeError as error:
            return Status.error(str(error)), ALL_NODES
        if isinstance(claims, Status):
            return claims, ALL_NODES
        state.write(VOLUMES, VolumeState(claims))
        return SUCCESS, ALL_NODES

    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Codes:
        """Refuse nodes where a claim can neither use its volume nor get one."""
        volumes = state.read(VOLUMES)
        if volumes.conflicts is None:
            volumes.conflicts = conflicts(volumes.claims, table)
        found = volumes.conflicts
        bits = found.bits[rows] if isinstance(rows, slice) else found.bits[_own_rows(table, rows)]
        if not bits.any():
            return ALL_PASS
        return Codes(bits, (*STATUSES[1:], Status.error(found.error)) if found.error else STATUSES[1:])

    def explain(self, state: CycleState, pod: Pod, table: NodeTable, row: int) -> Status:
        """The refusal, with the claims."""
        try:
            found = state.read(VOLUMES).claims.find(table.info(row).node)
        except VolumeError as error:
            return Status.error(str(error))
        if not found.conflicts:
            return SUCCESS
        names = ", ".join(sorted({name for name, _ in pod_claims(pod)}))
        return Status.unresolvable(*(f"{each} (claims: {names})" for each in STATUSES[found.conflicts].reasons))

    def found(self, state: CycleState, node: Node) -> PodVolumes:
        """What the pod's unbound claims would get on a node.

        Raises:
            VolumeError: A volume cannot be read.
        """
        volumes = state.get(VOLUMES)
        return volumes.claims.find(node) if volumes is not None else PodVolumes()

    def pre_score(self, state: CycleState, pod: Pod, table: NodeTable, rows: RowIndex) -> Status:
        """Skip while the gate is off."""
        return SKIP if self._scorer is None else SUCCESS

    def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> ScoreArray:
        """By how much of each class's storage would be used."""
        scores = zero_scores(rows)
        if self._scorer is None or state.get(VOLUMES) is None:
            return scores
        for place, row in enumerate(index_of(rows)):
            info = table.infos[int(row)]
            if info is not None:
                scores[place] = self._scorer.score(self.found(state, info.node))
        return scores

    # -- taking it -------------------------------------------------------------------------------------------------

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Assume what the claims get."""
        volumes = state.get(VOLUMES)
        if volumes is None:
            return SUCCESS
        reserved = volumes.reserved = Reserved()
        if self._reader.all_bound(pod):
            reserved.all_bound = True
            return SUCCESS
        node = self._nodes.get("", node_name)
        if node is None:
            return Status.error(f'node "{node_name}" not found')
        try:
            found = volumes.claims.find(node)
        except VolumeError as error:
            return Status.error(str(error))
        if found.conflicts:
            return STATUSES[found.conflicts]
        return self._assume(found, node_name, reserved)

    def _assume(self, found: PodVolumes, node_name: str, reserved: Reserved) -> Status:
        for binding in found.static:
            volume = _promised(binding)
            is_new = volume is not binding.volume
            if is_new and not self.volumes.assume(volume):
                return Status.error(f'"{volume.key}" is out of sync')
            reserved.promises.append(Promise(volume, binding.claim, is_new))
        for provision in found.provision:
            claim = with_annotation(provision.claim, SELECTED_NODE, node_name)
            if not self.claims.assume(claim):
                return Status.error(f'"{claim.key}" is out of sync')
            reserved.claims.append(claim)
        return SUCCESS

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Take the assumptions back; those that were written stay until the watch has shown them."""
        volumes = state.get(VOLUMES)
        if volumes is None or volumes.reserved is None:
            return
        for promise in volumes.reserved.promises:
            self.volumes.restore(promise.volume)
        for claim in volumes.reserved.claims:
            self.claims.restore(claim)

    def pre_bind_pre_flight(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Skip when there is nothing to write."""
        volumes = state.get(VOLUMES)
        nothing = volumes is None or volumes.reserved is None or volumes.reserved.all_bound
        return SKIP if nothing else SUCCESS

    async def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Write, and wait until every claim is bound."""
        reserved = state.read(VOLUMES).reserved
        if reserved is None or reserved.all_bound:
            return SUCCESS
        return await self._writer.bind(pod, node_name, reserved)

    # -- after a refusal -------------------------------------------------------------------------------------------

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Everything that gives volumes: classes, claims, volumes, nodes, drivers and their capacities."""
        changed = ActionType.ADD | ActionType.UPDATE
        return (
            ClusterEventWithHint(ClusterEvent(STORAGE_CLASS, changed), _after_class_changed),
            ClusterEventWithHint(ClusterEvent(PERSISTENT_VOLUME_CLAIM, changed), after_claim_changed),
            ClusterEventWithHint(ClusterEvent(PERSISTENT_VOLUME, changed)),
            ClusterEventWithHint(ClusterEvent(NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)),
            ClusterEventWithHint(ClusterEvent(CSI_NODE, changed), _after_csi_node_changed),
            ClusterEventWithHint(ClusterEvent(CSI_DRIVER, ActionType.UPDATE), _after_driver_changed),
            ClusterEventWithHint(ClusterEvent(CSI_STORAGE_CAPACITY, changed), _after_capacity_changed),
        )


def _own_rows(table: NodeTable, rows: RowIndex) -> RowIndex:
    """The live rows that scratch rows were copied from; live rows as they are."""
    if not len(rows) or int(rows.max()) < table.size:
        return rows
    return np.array([table.rows[table.names[int(row)]] for row in rows], dtype=np.intp)


def _promised(binding: Binding) -> PersistentVolume:
    """The volume once it is promised to the claim; the same object when it says so already."""
    volume, claim = binding.volume, binding.claim
    if not is_bound_to(volume, claim):
        volume = with_annotation(volume, BOUND_BY_CONTROLLER, "yes")
    ref = volume.spec.claim_ref
    metadata = claim.metadata
    if ref is not None and (ref.namespace, ref.name, ref.uid) == (metadata.namespace, metadata.name, metadata.uid):
        return volume
    spec = msgspec.structs.replace(volume.spec, claim_ref=claim_reference(claim))
    return msgspec.structs.replace(volume, spec=spec)


def _after_class_changed(pod: Pod, old: object | None, new: object | None) -> QueueingHint:
    if isinstance(old, StorageClass) and isinstance(new, StorageClass):
        same = old.allowed_topologies == new.allowed_topologies
        return QueueingHint.SKIP if same else QueueingHint.QUEUE
    return QueueingHint.QUEUE


def _after_csi_node_changed(pod: Pod, old: object | None, new: object | None) -> QueueingHint:
    if isinstance(old, CSINode) and isinstance(new, CSINode):
        before, after = old.metadata.annotations, new.metadata.annotations
        same = before.get(MIGRATED_PLUGINS, "") == after.get(MIGRATED_PLUGINS, "")
        return QueueingHint.SKIP if same else QueueingHint.QUEUE
    return QueueingHint.QUEUE


def _after_driver_changed(pod: Pod, old: object | None, new: object | None) -> QueueingHint:
    """A driver stopped keeping account of its storage. As upstream, only inline volumes of the driver count."""
    if not isinstance(old, CSIDriver) or not isinstance(new, CSIDriver):
        return QueueingHint.QUEUE
    uses = any(volume.csi is not None and volume.csi.driver == new.name for volume in pod.spec.volumes)
    stopped = bool(old.spec.storage_capacity) and not new.spec.storage_capacity
    return QueueingHint.QUEUE if uses and stopped else QueueingHint.SKIP


def _after_capacity_changed(pod: Pod, old: object | None, new: object | None) -> QueueingHint:
    if not isinstance(old, CSIStorageCapacity) or not isinstance(new, CSIStorageCapacity):
        return QueueingHint.QUEUE
    before, after = volume_limit(old), volume_limit(new)
    more = after is not None and (before is None or after > before)
    return QueueingHint.QUEUE if more else QueueingHint.SKIP
