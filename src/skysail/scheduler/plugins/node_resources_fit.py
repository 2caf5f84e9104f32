"""Refuses nodes without room for the pod, and scores them by how full they would be.

Source: pkg/scheduler/framework/plugins/noderesources/fit.go, v1.36.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import numpy.typing as npt

from skysail.api.core import Pod
from skysail.api.node import Node
from skysail.api.resource import DEVICE_CLASS_RESOURCE_PREFIX, DeviceClass
from skysail.api.resources import PodResources, is_accounted, is_extended_resource, pod_requests, resource_amounts
from skysail.scheduler.cache.matrices import FIRST_RESOURCES, IntColumn, IntMatrix, Matrix, RowIndex, Rows
from skysail.scheduler.cache.pod_info import PodInfo
from skysail.scheduler.cache.table import NodeTable
from skysail.scheduler.framework.codes import ALL_PASS, Codes, Reads, ScoreArray, zero_scores
from skysail.scheduler.framework.cycle_state import CycleState, StateKey
from skysail.scheduler.framework.events import (
    DEVICE_CLASS,
    NODE,
    POD,
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    HintFunction,
    QueueingHint,
)
from skysail.scheduler.framework.handle import Handle
from skysail.scheduler.framework.plugin import ALL_NODES, PreFilterResult
from skysail.scheduler.framework.status import SUCCESS, Code, Status
from skysail.scheduler.plugins.args import NodeResourcesFitArgs
from skysail.scheduler.plugins.device_account import device_account
from skysail.scheduler.plugins.device_amounts import DeviceAmounts, amounts_of, backed_resources, device_signature
from skysail.scheduler.plugins.resource_scoring import Scorer, counted_resources, make_scorer

TOO_MANY_PODS = "Too many pods"
CORE = ("cpu", "memory", "ephemeral-storage")

Need = tuple[str, int]


@dataclass(frozen=True, slots=True)
class FitRequest:
    """What Filter checks.

    Attributes:
        needs: Resource and amount above 0, in the order in which reasons are given: cpu, memory, ephemeral storage,
            then scalar resources by name; `pods` comes first and is always 1.
        amounts: (n_needs, 1) int64, the amounts alone.
        lines: Where each resource stands in the table's matrices; lines never move.
        backed: Places of resources that devices stand for: not looked at on nodes that do not offer them.
    """

    needs: tuple[Need, ...]
    amounts: IntMatrix
    lines: tuple[int, ...]
    backed: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class FitScoring:
    """What Score counts.

    Attributes:
        lines: Of the counted resources, in the table's matrices; lines never move.
        needs: (n_resources, 1) int64, what the pod adds to each.
        scorer: The function for exactly these.
        devices: What devices add; None when they stand for none of the resources.
    """

    lines: tuple[int, ...]
    needs: IntMatrix
    scorer: Scorer
    devices: DeviceAmounts | None = None


FIT = StateKey[FitRequest]("PreFilterNodeResourcesFit")
SCORING = StateKey[FitScoring]("PreScoreNodeResourcesFit")


class NodeResourcesFit:
    """The plugin.

    Differs: reasons about scalar resources come in the order of their names, not at random.
    """

    name = "NodeResourcesFit"
    reads = Reads.ROW
    bounded = True

    def __init__(self, args: NodeResourcesFitArgs, handle: Handle) -> None:
        self._ignored = frozenset(args.ignored_resources)
        self._ignored_groups = frozenset(args.ignored_resource_groups)
        self._strategy = args.scoring_strategy
        self._scorers: dict[tuple[int, ...], Scorer] = {}
        self._statuses: dict[tuple[tuple[str, ...], int], Status] = {}
        self._devices = device_account(handle)
        self._scored = frozenset(spec.name for spec in self._strategy.resources)

    def sign(self, pod: PodInfo) -> Hashable:
        """What the pod requests, and its non-zero form."""
        if len(pod.requests) <= len(CORE) and all(name in CORE for name in pod.requests):
            return pod.request_key
        return pod.request_key, device_signature(self._devices, pod.requests, self._scored)

    def pre_filter(self, state: CycleState, pod: Pod, table: NodeTable) -> tuple[Status, PreFilterResult]:
        """Note what is needed."""
        requests = state.pod_info.requests
        needs: list[Need] = [("pods", 1)]
        needs += [(name, requests[name]) for name in CORE if requests.get(name)]
        needs += sorted(
            (name, amount)
            for name, amount in requests.items()
            if amount and name not in CORE and not self._is_ignored(name)
        )
        amounts = np.array([amount for _, amount in needs], dtype=np.int64)[:, None]
        lines = tuple(table.amounts.line(name) for name, _ in needs)
        backed = frozenset[int]()
        if len(needs) > len(CORE) + 1 or needs[-1][0] not in FIRST_RESOURCES:
            names = backed_resources(self._devices, [name for name, _ in needs])
            backed = frozenset(place for place, (name, _) in enumerate(needs) if name in names)
        state.write(FIT, FitRequest(tuple(needs), amounts, lines, backed))
        return SUCCESS, ALL_NODES

    def _is_ignored(self, name: str) -> bool:
        if not is_extended_resource(name):
            return False
        return name in self._ignored or name.partition("/")[0] in self._ignored_groups

    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Codes:
        """Refuse where a resource is short; each distinct set of short resources is one status."""
        request = state.read(FIT)
        needs = request.needs
        if not isinstance(rows, slice) and not request.backed:
            free = table.amounts.gather(Matrix.FREE, request.lines, rows)
            if not np.count_nonzero(free < request.amounts):
                return ALL_PASS
        pattern: npt.NDArray[np.int64] | None = None
        for place, (line, (_, need)) in enumerate(zip(request.lines, needs, strict=True)):
            free = table.amounts.free[line][rows]
            if len(free) and free.min() < need:
                found = self._shortage(table, line, rows, free, need, place)
                if place in request.backed:
                    found *= table.amounts.allocatable[line][rows] > 0
                pattern = found if pattern is None else pattern | found
        return ALL_PASS if pattern is None else self._codes(needs, pattern)

    @staticmethod
    def _shortage(
        table: NodeTable, line: int, rows: Rows, free: IntColumn, need: int, place: int
    ) -> npt.NDArray[np.int64]:
        """Bit `place + 1` where the resource is short, bit 0 where the node could never hold the pod."""
        short = free < need
        found = short.astype(np.int64) << (place + 1)
        if place:
            found |= short & (table.amounts.allocatable[line][rows] < need)
        return found

    def _codes(self, needs: tuple[Need, ...], pattern: npt.NDArray[np.int64]) -> Codes:
        distinct, codes = np.unique(pattern, return_inverse=True)
        if distinct[0] != 0:
            codes = codes + 1
            statuses = [self._status(needs, int(bits)) for bits in distinct]
        else:
            statuses = [self._status(needs, int(bits)) for bits in distinct[1:]]
        return Codes(codes.astype(np.uint8), statuses)

    def _status(self, needs: tuple[Need, ...], bits: int) -> Status:
        key = (tuple(name for name, _ in needs), bits)
        status = self._statuses.get(key)
        if status is None:
            reasons = [
                TOO_MANY_PODS if place == 0 else f"Insufficient {name}"
                for place, name in enumerate(key[0])
                if bits >> (place + 1) & 1
            ]
            code = Code.UNSCHEDULABLE_AND_UNRESOLVABLE if bits & 1 else Code.UNSCHEDULABLE
            status = self._statuses[key] = Status(code, tuple(reasons))
        return status

    def explain(self, state: CycleState, pod: Pod, table: NodeTable, row: int) -> Status:
        """The refusal, each reason with what is needed and what is free."""
        node = table.info(row)
        reasons, code = [], Code.UNSCHEDULABLE
        request = state.read(FIT)
        for place, (name, need) in enumerate(request.needs):
            offered = node.allocatable.get(name, 0)
            if place in request.backed and not offered:
                continue
            free = offered - (len(node.pods) if name == "pods" else node.requested.get(name, 0))
            if need > free:
                word = TOO_MANY_PODS if name == "pods" else f"Insufficient {name}"
                reasons.append(f"{word} (needs {need}, {free} of {offered} free)")
                if name != "pods" and need > offered:
                    code = Code.UNSCHEDULABLE_AND_UNRESOLVABLE
        return Status(code, tuple(reasons)) if reasons else SUCCESS

    def pre_score(self, state: CycleState, pod: Pod, table: NodeTable, rows: RowIndex) -> Status:
        """Note which resources count, and how much the pod adds to each."""
        resources = state.pod_info.scoring
        specs = self._strategy.resources
        needs = [_nonzero_need(resources, spec.name) for spec in specs]
        counted = counted_resources(specs, needs)
        scorer = self._scorers.get(tuple(counted))
        if scorer is None:
            part = tuple(specs[index] for index in counted)
            scorer = self._scorers[tuple(counted)] = make_scorer(
                msgspec.structs.replace(self._strategy, resources=part)
            )
        lines = tuple(table.amounts.line(specs[index].name) for index in counted)
        counted_needs = np.array([needs[index] for index in counted], dtype=np.int64)[:, None]
        devices = amounts_of(self._devices, [specs[index].name for index in counted])
        state.write(SCORING, FitScoring(lines, counted_needs, scorer, devices))
        return SUCCESS

    def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> ScoreArray:
        """0..100 by the strategy, with the pod counted in."""
        scoring = state.read(SCORING)
        amounts, lines = table.amounts, scoring.lines
        if not lines:
            return zero_scores(rows)
        requested = amounts.gather(Matrix.NONZERO, lines, rows) + scoring.needs
        offered = amounts.gather(Matrix.ALLOCATABLE, lines, rows)
        if scoring.devices is not None:
            requested, offered = scoring.devices.added(table, rows, requested, offered, scoring.needs)
        return scoring.scorer(requested, offered, amounts.has_zero(lines, table.size))

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Pods that free room, nodes that come or grow."""
        return (
            ClusterEventWithHint(
                ClusterEvent(POD, ActionType.DELETE | ActionType.UPDATE_POD_SCALE_DOWN), self._after_pod_event
            ),
            ClusterEventWithHint(
                ClusterEvent(NODE, ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE), self._after_node_change
            ),
            *([_classes(self._after_class_change)] if self._devices.features.extended_resources else ()),
        )

    def _after_pod_event(self, pod: Pod, old: object | None, new: object | None) -> QueueingHint:
        if not isinstance(old, Pod):
            return QueueingHint.QUEUE
        if not isinstance(new, Pod):
            placed = old.spec.node_name or old.status.nominated_node_name
            return QueueingHint.QUEUE if placed else QueueingHint.SKIP
        if new.uid == pod.uid:
            return QueueingHint.QUEUE
        if not new.spec.node_name:
            return QueueingHint.SKIP
        before, after = pod_requests(old), pod_requests(new)
        wanted = [name for name, amount in pod_requests(pod).items() if amount and is_accounted(name)]
        freed = any(before.get(name, 0) > after.get(name, 0) for name in wanted)
        return QueueingHint.QUEUE if freed else QueueingHint.SKIP

    def _after_node_change(self, pod: Pod, old: object | None, new: object | None) -> QueueingHint:
        if not isinstance(new, Node):
            return QueueingHint.SKIP
        requests = {name: amount for name, amount in pod_requests(pod).items() if is_accounted(name)}
        offered = resource_amounts(new.status.allocatable)
        backed = {
            name for name in backed_resources(self._devices, requests) if requests[name] and not offered.get(name)
        }
        own = {name: amount for name, amount in requests.items() if name not in backed}
        if offered.get("pods", 0) < 1 or any(amount > offered.get(name, 0) for name, amount in own.items()):
            return QueueingHint.SKIP
        if not isinstance(old, Node) or backed:
            return QueueingHint.QUEUE
        grew = _grew(requests, resource_amounts(old.status.allocatable), offered)
        return QueueingHint.QUEUE if grew else QueueingHint.SKIP

    def _after_class_change(self, pod: Pod, old: object | None, new: object | None) -> QueueingHint:
        if not isinstance(new, DeviceClass):
            return QueueingHint.QUEUE
        names = {new.spec.extended_resource_name}
        if isinstance(old, DeviceClass):
            if (old.spec.extended_resource_name or "") == (new.spec.extended_resource_name or ""):
                return QueueingHint.SKIP
        else:
            names.add(f"{DEVICE_CLASS_RESOURCE_PREFIX}{new.name}")
        return QueueingHint.SKIP if names.isdisjoint(pod_requests(pod)) else QueueingHint.QUEUE


def _classes(hint: HintFunction) -> ClusterEventWithHint:
    return ClusterEventWithHint(ClusterEvent(DEVICE_CLASS, ActionType.ADD | ActionType.UPDATE), hint)


def _grew(requests: Mapping[str, int], before: Mapping[str, int], after: Mapping[str, int]) -> bool:
    names = ["pods", *(name for name, amount in requests.items() if amount)]
    return any(after.get(name, 0) > before.get(name, 0) for name in names)


def _nonzero_need(resources: PodResources, name: str) -> int:
    if name == "cpu":
        return resources.nonzero_milli_cpu
    if name == "memory":
        return resources.nonzero_memory
    return resources.requests.get(name, 0)
