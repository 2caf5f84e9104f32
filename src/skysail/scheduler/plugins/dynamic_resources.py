"""Places pods where their device claims can be satisfied, and allocates the devices.

    PreEnqueue   waits for claims to exist
    PreFilter    reads the claims; refuses what fits nowhere; notes which devices are taken
    Filter       searches devices for every claim that has none yet, node by node (`skysail.scheduler.devices`)
    PostFilter   lets allocations go that keep the pod from being placed
    Score        prefers nodes where earlier alternatives of a request were found
    Reserve      promises the devices of the chosen node; Unreserve takes that back
    PreBind      writes it (`dynamic_resources_bind`)

Extended resources of a node without a device plugin for them are turned into one more claim. A pod without claims
passes all of this at once.

Source: pkg/scheduler/framework/plugins/dynamicresources, v1.36 with default feature gates.
"""

import uuid
from collections.abc import Sequence
from typing import Final

import msgspec

from skysail.api.core import Pod
from skysail.api.nodeselector import compile_node_selector
from skysail.api.resource import AllocationResult, ResourceClaim
from skysail.scheduler.cache.matrices import Rows
from skysail.scheduler.cache.node_info import NodeInfo
from skysail.scheduler.cache.pod_info import PodInfo
from skysail.scheduler.cache.table import NodeTable
from skysail.scheduler.devices.allocation import NodeUnsuitable, OutOfTime, Situation, allocate
from skysail.scheduler.devices.cel.environment import CEL_MISSING, CelMissing, is_available
from skysail.scheduler.devices.pools import AllocationError
from skysail.scheduler.framework.codes import Reads, ScoreArray, zero_scores
from skysail.scheduler.framework.cycle_state import CycleState
from skysail.scheduler.framework.diagnosis import Diagnosis
from skysail.scheduler.framework.events import (
    ClusterEventWithHint,
)
from skysail.scheduler.framework.handle import Handle
from skysail.scheduler.framework.plugin import ALL_NODES, PostFilterResult, PreFilterResult
from skysail.scheduler.framework.runner import Framework
from skysail.scheduler.framework.status import SKIP, SUCCESS, Status
from skysail.scheduler.framework.steps import index_of
from skysail.scheduler.plugins.args import DynamicResourcesArgs
from skysail.scheduler.plugins.device_account import DeviceAccount, device_account, is_class_resource
from skysail.scheduler.plugins.dynamic_resources_bind import ClaimWriter
from skysail.scheduler.plugins.dynamic_resources_hints import ClaimHints, problem_with_claims
from skysail.scheduler.plugins.dynamic_resources_state import NO_CLAIMS, STATE, DeviceState, NodeAllocation
from skysail.scheduler.plugins.extended_resources import SPECIAL_NAME, requests_and_mappings, special_claim
from skysail.scheduler.plugins.normalizing import default_normalize
from skysail.scheduler.plugins.pod_claims import (
    BindingFailed,
    ClaimError,
    is_for_extended_resources,
    is_overdue,
    is_ready,
    is_reserved_for,
    pod_claims,
)
from skysail.scheduler.plugins.request_checks import check_requests

NOT_AVAILABLE: Final = Status.unresolvable("resourceclaim not available on the node")
NO_DEVICES: Final = Status.unresolvable("cannot allocate all claims")
LEFT_OVER: Final = Status.unresolvable("cannot schedule extended resource claim")
NOT_OFFERED: Final = Status.unresolvable("cannot fit resource")
NOTHING_TO_DEALLOCATE: Final = Status.unschedulable("no new claims to deallocate")


class DynamicResources:
    """The plugin."""

    name = "DynamicResources"
    reads = Reads.GLOBAL

    def __init__(self, args: DynamicResourcesArgs, handle: Handle) -> None:
        self._handle = handle
        self._account: DeviceAccount = device_account(handle)
        self._filter_timeout = args.filter_timeout_seconds if self._account.features.filter_timeout else 0.0
        self._binding_timeout = args.binding_timeout_seconds
        self._writer = ClaimWriter(handle, self._account, timeout_seconds=self._binding_timeout)
        self._before: frozenset[str] = frozenset()

    def use_framework(self, framework: Framework) -> None:
        """See which PreFilter plugins come before this one."""
        names = [step.name for step in framework.pre_filter]
        self._before = frozenset(names[: names.index(self.name)] if self.name in names else names)

    def idle(self, pod: PodInfo) -> bool:
        """Whether the pod has neither claims nor extended resources."""
        return not pod.pod.spec.resource_claims and not _extended(pod)

    # -- before an attempt ------------------------------------------------------------------------------------------

    def pre_enqueue(self, pod: Pod) -> Status:
        """Hold a pod back until its claims are there."""
        if not pod.spec.resource_claims:
            return SUCCESS
        problem = problem_with_claims(pod, self._account)
        return Status.unresolvable(problem) if problem else SUCCESS

    def pre_filter(self, state: CycleState, pod: Pod, table: NodeTable) -> tuple[Status, PreFilterResult]:
        """Skip pods without claims; refuse those whose claims fit nowhere."""
        state.write(STATE, NO_CLAIMS)
        extended = _extended(state.pod_info)
        if not pod.spec.resource_claims and not extended:
            return SKIP, ALL_NODES
        try:
            claims = list(pod_claims(pod, self._account.claim))
        except ClaimError as error:
            return Status.unresolvable(str(error)), ALL_NODES
        devices = DeviceState(claims, len(claims))
        self._add_special(devices, pod, extended)
        if not devices.claims:
            return SKIP, ALL_NODES
        status = self._check(devices, pod)
        if status.is_success:
            state.write(STATE, devices)
        return status, ALL_NODES

    def _add_special(self, devices: DeviceState, pod: Pod, extended: dict[str, int]) -> None:
        """Add the claim for extended resources: one left over from an earlier attempt, or a new one."""
        if not any(amount and self._account.class_of(name) for name, amount in extended.items()):
            return
        devices.extended = extended
        left_over = (claim for claim in self._account.claims() if is_for_extended_resources(claim, pod))
        claim = next(left_over, None) or special_claim(pod, self._new_id())
        devices.claims.append(claim)
        devices.special_uid = claim.uid

    def _new_id(self) -> str:
        return str(uuid.UUID(int=self._handle.rng.getrandbits(128), version=4))

    def _check(self, devices: DeviceState, pod: Pod) -> Status:
        pending = False
        for place, claim in enumerate(devices.claims):
            allocation = claim.status.allocation
            if allocation is not None:
                if allocation.node_selector is not None:
                    selector = compile_node_selector(allocation.node_selector)
                    if selector.errors:
                        return Status.error(", ".join(selector.errors))
                    devices.selectors[place] = selector
                continue
            pending = True
            if self._account.is_promised(claim.uid):
                return Status.unresolvable(f"resource claim {claim.key} is in the process of being allocated")
            if place == devices.own:
                continue
            status = check_requests(claim, self._account)
            if not status.is_success:
                return status
        return self._prepare(devices) if pending else SUCCESS

    def _prepare(self, devices: DeviceState) -> Status:
        """Note what is taken and what there is: neither changes during the attempt."""
        if not is_available():
            return Status.unresolvable(CEL_MISSING)
        account = self._account
        account.refresh_slices()
        devices.situation = Situation(
            account.features, account.taken(), account.classes, account.selectors, self._new_id
        )
        return SUCCESS

    # -- node by node -----------------------------------------------------------------------------------------------

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        """May the pod's claims be used, or allocated, on this node?"""
        devices = state.read(STATE)
        if not devices.claims:
            return SUCCESS
        special = devices.special
        wanted: dict[int, ResourceClaim] = dict(devices.to_allocate())
        found = NodeAllocation({}, {})
        if special is not None:
            status, found = self._for_node(devices, special, pod, node)
            if not status.is_success:
                return status
            if not found.claims and not devices.own:
                return SUCCESS
            wanted |= found.claims
        unavailable = {place for place in range(len(devices.claims)) if not self._is_usable(devices, place, node)}
        results: dict[int, AllocationResult] = {}
        if devices.situation is not None:
            status = self._allocate(devices.situation, node, wanted, results)
            if not status.is_success:
                return status
        if unavailable:
            devices.unavailable |= unavailable
            return NOT_AVAILABLE
        if devices.situation is not None:
            devices.nodes[node.name] = NodeAllocation(wanted, results, found.mappings)
        return SUCCESS

    def _for_node(
        self, devices: DeviceState, special: ResourceClaim, pod: Pod, node: NodeInfo
    ) -> tuple[Status, NodeAllocation]:
        """The claim for extended resources as this node needs it; no claim when the node offers them all itself."""
        nothing = NodeAllocation({}, {})
        if special.spec.devices.requests:
            return LEFT_OVER, nothing
        missing = []
        for name, amount in devices.extended.items():
            if not amount:
                continue
            offered = node.allocatable.get(name)
            if not offered and self._account.class_of(name) is not None:
                missing.append(name)
            elif offered is None:
                return NOT_OFFERED, nothing
        if (not devices.own and not missing) or special.status.allocation is not None:
            return SUCCESS, nothing
        requests, mappings = requests_and_mappings(pod, missing, self._account.class_of)
        spec = msgspec.structs.replace(
            special.spec, devices=msgspec.structs.replace(special.spec.devices, requests=requests)
        )
        return SUCCESS, NodeAllocation({devices.own: msgspec.structs.replace(special, spec=spec)}, {}, mappings)

    def _is_usable(self, devices: DeviceState, place: int, node: NodeInfo) -> bool:
        """Whether an allocated claim can be used on the node, as far as is known; True when it is not allocated."""
        selector = devices.selectors.get(place)
        if selector is not None and not selector.matches(node.name, node.node.metadata.labels):
            return False
        claim = devices.claims[place]
        if claim.status.allocation is None or not self._account.features.binding_conditions:
            return True
        try:
            ready = is_ready(claim)
        except BindingFailed:
            return False
        return ready or not is_overdue(claim, self._handle.clock.now().timestamp(), self._binding_timeout)

    def _allocate(
        self,
        situation: Situation,
        node: NodeInfo,
        wanted: dict[int, ResourceClaim],
        results: dict[int, AllocationResult],
    ) -> Status:
        if self._filter_timeout:
            deadline = self._handle.clock.monotonic() + self._filter_timeout
            situation.expired = lambda: self._handle.clock.monotonic() > deadline
        try:
            pools = self._account.pools(node.node)
            found = allocate(situation, node.node, pools, list(wanted.values()))
        except NodeUnsuitable as error:
            return Status.unresolvable(str(error))
        except AllocationError as error:
            return Status.error(str(error))
        except OutOfTime:
            return Status.error(f"node {node.name}: timed out trying to allocate devices")
        except CelMissing as error:
            return Status.unresolvable(str(error))
        if found is None:
            return NO_DEVICES
        results |= zip(wanted, found, strict=True)
        return SUCCESS

    def found(self, state: CycleState, node_name: str) -> NodeAllocation | None:
        """What Filter found for a node."""
        devices = state.get(STATE)
        return devices.nodes.get(node_name) if devices is not None else None

    # -- when no node fits ------------------------------------------------------------------------------------------

    def post_filter(self, state: CycleState, pod: Pod, diagnosis: Diagnosis) -> tuple[Status, PostFilterResult]:
        """Let go of an allocation that nobody else uses, or delete a claim that is left over."""
        devices = state.get(STATE)
        if devices is None and self._was_never_asked(diagnosis):
            return Status.error("not found"), PostFilterResult()
        if devices is None or not devices.claims:
            return NOTHING_TO_DEALLOCATE, PostFilterResult()
        special = devices.special
        for place in sorted(devices.unavailable):
            claim = devices.claims[place]
            if place == devices.own:
                if claim.name != SPECIAL_NAME:
                    break
                continue
            if all(each.uid == pod.uid for each in claim.status.reserved_for) and len(claim.status.reserved_for) < 2:
                devices.deallocated.append(claim)
                self._writer.deallocate(claim)
                return Status.unschedulable("deallocation of ResourceClaim completed"), PostFilterResult()
        if special is not None and special.name != SPECIAL_NAME:
            devices.deleted.append(special)
            self._writer.delete(special)
            return Status.unschedulable("deletion of ResourceClaim completed"), PostFilterResult()
        return Status.unschedulable("still not schedulable"), PostFilterResult()

    def _was_never_asked(self, diagnosis: Diagnosis) -> bool:
        """Whether a PreFilter plugin before this one refused the pod: then nothing is known of its claims."""
        refuser = diagnosis.absent_status.plugin if diagnosis.pre_filter_message else ""
        return bool(refuser) and refuser in self._before

    # -- which node is better ---------------------------------------------------------------------------------------

    def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> ScoreArray:
        """The sum over requests with alternatives: 8 for the first, 7 for the second, and so on."""
        devices = state.get(STATE) or NO_CLAIMS
        scores = zero_scores(rows)
        if not devices.nodes or not self._account.features.prioritized_list:
            return scores
        for place, row in enumerate(index_of(rows)):
            info = table.infos[int(row)]
            found = devices.nodes.get(info.name) if info is not None else None
            if found is not None:
                scores[place] = devices.rank_of_alternatives(found)
        return scores

    def normalize(self, state: CycleState, raw: ScoreArray, low: int, high: int) -> ScoreArray:
        """The best becomes 100."""
        return default_normalize(raw, high)

    # -- once a node is chosen --------------------------------------------------------------------------------------

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Promise the node's devices to the pod's claims."""
        devices = state.get(STATE)
        if devices is None or devices.situation is None:
            return SUCCESS
        found = devices.nodes.get(node_name)
        wanted = [place for place, _ in devices.to_allocate()]
        if found is None or not found.results:
            if wanted == [devices.own]:
                return SUCCESS
            return Status.error("claim allocation not found for node")
        for place in wanted:
            devices.reserved[place] = found.results[place]
            uid = devices.special_uid if place == devices.own else devices.claims[place].uid
            self._account.promise(uid, found.results[place])
        return SUCCESS

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Take promises and reservations back."""
        devices = state.get(STATE)
        if devices is None or not devices.claims:
            return
        for place in list(devices.reserved):
            self._account.end_promise(devices.special_uid if place == devices.own else devices.claims[place].uid)
        devices.reserved.clear()
        for claim in devices.claims[: devices.own]:
            if claim.status.allocation is not None and is_reserved_for(claim, pod):
                self._writer.unreserve(pod, claim)
        special = devices.special
        if special is not None and special.name != SPECIAL_NAME:
            self._writer.delete(special)

    def pre_bind_pre_flight(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Skip when the pod has no claims."""
        devices = state.get(STATE)
        return SUCCESS if devices is not None and devices.claims else SKIP

    async def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Write allocations and reservations, and wait until the devices are prepared."""
        return await self._writer.bind(pod, node_name, state.get(STATE) or NO_CLAIMS)

    async def run_beside(self) -> None:
        """Write what is to be undone, beside the cycle."""
        await self._writer.run()

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """See `dynamic_resources_hints`."""
        return ClaimHints(self._account).events()


def _extended(info: PodInfo) -> dict[str, int]:
    """What the pod asks for of resources that classes may back."""
    requests = info.requests
    if len(requests) <= 2 and all(name in ("cpu", "memory") for name in requests):
        return _NONE
    return {name: amount for name, amount in requests.items() if is_class_resource(name)}


_NONE: Final[dict[str, int]] = {}
