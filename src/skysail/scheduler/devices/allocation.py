"""The search: which devices satisfy these claims on this node?

Depth first, and the first solution wins: claims in order, requests in order, alternatives in order, and for each device
still wanted the candidates in order, never an earlier one than the last taken for the same request (combinations, not
permutations). What does not work out is taken back.

    claim ─▶ request ─▶ alternative ─▶ device ─▶ next device ... ─▶ next request ... ─▶ next claim ... ─▶ done

Source: k8s.io/dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go, v1.36.
Differs: a device that turns out to be unusable half-way leaves no traces (the original forgets to undo some).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from skysail.api.node import Node
from skysail.api.quantity import Quantity
from skysail.api.resource import AllocationResult, DeviceClass, DeviceSelector, ResourceClaim
from skysail.scheduler.devices.capacity import consumptions, fits
from skysail.scheduler.devices.cel.environment import CelCompileError, CelRuntimeError
from skysail.scheduler.devices.constraints import Constraint, DistinctAttribute, MatchAttribute
from skysail.scheduler.devices.counters import Amounts, Counters
from skysail.scheduler.devices.features import Features
from skysail.scheduler.devices.pools import AllocationError, Candidate, DeviceId, Pool, PoolId
from skysail.scheduler.devices.requests import ALL, EXACT_COUNT, Wanted, wanted_of
from skysail.scheduler.devices.results import Chosen, allocation_result
from skysail.scheduler.devices.selectors import Selectors, matches
from skysail.scheduler.devices.taken import Capacities, Taken, add_capacity, remove_capacity

MAX_RESULTS = 32
"""Most devices that the status of a claim can hold."""
INVALID_POOLS = "invalid resource pools were encountered"


class NodeUnsuitable(Exception):
    """The claims cannot be allocated on this node; others may do. The message says why."""


class OutOfTime(Exception):
    """The search took longer than allowed."""


class Classes(Protocol):
    """Device classes by name."""

    def get(self, namespace: str, name: str) -> DeviceClass | None:
        """One class; the namespace is empty."""
        ...


@dataclass
class Situation:
    """What is the same for all nodes of one attempt.

    Attributes:
        features: What may be done.
        taken: Devices that are allocated already.
        classes: Device classes.
        selectors: Compiled selectors.
        share_id: Makes an id for a share of a device.
        expired: Whether the time for a node is over; asked now and then.
    """

    features: Features
    taken: Taken
    classes: Classes
    selectors: Selectors
    share_id: Callable[[], str]
    expired: Callable[[], bool] = lambda: False
    available: dict[PoolId, Amounts] = field(default_factory=dict)


def allocate(
    situation: Situation, node: Node, pools: Sequence[Pool], claims: Sequence[ResourceClaim]
) -> list[AllocationResult] | None:
    """Find devices for claims.

    Args:
        situation: The same for all nodes.
        node: Where the devices must be within reach.
        pools: What is (see `gather_pools`).
        claims: None of them is allocated yet.

    Returns:
        One result for each claim, or None when there is no solution.

    Raises:
        NodeUnsuitable: There is no solution, and some pool was invalid.
        AllocationError: Claims, classes or slices are wrong.
        OutOfTime: `expired` became true.
        CelMissing: A selector must be asked, and there is no CEL library.
    """
    search = _Search(situation, pools, claims)
    outcome = search.claim(0)
    if outcome is _Outcome.TOO_MANY:
        raise AllocationError("allocation max size exceeded")
    if outcome is not _Outcome.FOUND:
        if any(pool.invalid_reason for pool in pools):
            raise NodeUnsuitable(INVALID_POOLS)
        return None
    return [
        allocation_result(claim, chosen, search.selected(place), node, situation.features)
        for place, (claim, chosen) in enumerate(zip(claims, search.chosen, strict=True))
    ]


class _Outcome(Enum):
    FOUND = "found"
    NOTHING = "nothing"
    TOO_MANY = "too many"
    """All that could be tried would exceed what a claim can hold."""


@dataclass(slots=True)
class _Step:
    """Where the search stands: which device of which request."""

    claim: int
    request: int
    wanted: Wanted
    device: int


class _Search:
    """One search over one node.

    Attributes:
        chosen: For each claim, the devices so far.
    """

    def __init__(self, situation: Situation, pools: Sequence[Pool], claims: Sequence[ResourceClaim]) -> None:
        self._situation, self._pools, self._claims = situation, pools, claims
        usable = [pool for pool in pools if not pool.is_incomplete and not pool.invalid_reason]
        self._candidates = [candidate for pool in usable for candidate in pool.candidates]
        self._counters = Counters(situation.taken, situation.available)
        self._allocating: dict[DeviceId, set[int]] = {}
        self._consuming: dict[DeviceId, Capacities] = {}
        self._selected: dict[tuple[int, int], int] = {}
        self.chosen: list[list[Chosen]] = [[] for _ in claims]
        self._wanted: list[list[list[Wanted]]] = [self._requests(claim) for claim in claims]
        self._constraints = [_constraints(claim) for claim in claims]

    def selected(self, claim: int) -> list[Wanted]:
        """The alternative that was taken for each request of a claim."""
        wanted = self._wanted[claim]
        return [alternatives[self._selected.get((claim, at), 0)] for at, alternatives in enumerate(wanted)]

    # -- what is wanted ---------------------------------------------------------------------------------------------

    def _requests(self, claim: ResourceClaim) -> list[list[Wanted]]:
        features, least = self._situation.features, 0
        requests = []
        for request in claim.spec.devices.requests:
            where = f"claim {claim.key}, request {request.name}"
            if request.first_available and not features.prioritized_list:
                raise AllocationError(f"{where}: has subrequests, but the DRAPrioritizedList feature is disabled")
            alternatives = wanted_of(request)
            for wanted in alternatives:
                self._prepare(claim, wanted)
            requests.append(alternatives)
            least += min(wanted.count for wanted in alternatives)
        if least > MAX_RESULTS:
            problem = f"number of requested devices {least} exceeds the claim limit of {MAX_RESULTS}"
            raise AllocationError(f"claim {claim.key}: {problem}")
        return requests

    def _prepare(self, claim: ResourceClaim, wanted: Wanted) -> None:
        where = f"claim {claim.key}, request {wanted.name}"
        features = self._situation.features
        if wanted.capacity is not None and not features.consumable_capacity:
            part = "subrequest" if wanted.parent else "request"
            problem = "has capacity requests, but the DRAConsumableCapacity feature is disabled"
            raise AllocationError(f"claim {claim.key}, {part} {wanted.name}: {problem}")
        for place, selector in enumerate(wanted.selectors):
            if selector.cel is None:
                problem = "CEL expression empty (unsupported selector type?)"
                raise AllocationError(f"{where}, selector #{place}: {problem}")
        if wanted.has_admin_access and not features.admin_access:
            raise AllocationError(f"{where}: admin access is requested, but the feature is disabled")
        if not wanted.class_name:
            raise AllocationError(f"{where}: missing device class name (unsupported request type?)")
        found = self._situation.classes.get("", wanted.class_name)
        if found is None:
            name = wanted.class_name
            problem = f'could not retrieve device class {name}: deviceclass.resource.k8s.io "{name}" not found'
            raise AllocationError(f"{where}: {problem}")
        wanted.device_class = found
        if wanted.mode == ALL:
            wanted.every = self._every(claim, wanted, where)
            wanted.count = len(wanted.every)
        elif wanted.mode != EXACT_COUNT:
            raise AllocationError(f"{where}: unsupported count mode {wanted.mode}")

    def _every(self, claim: ResourceClaim, wanted: Wanted, where: str) -> list[Candidate]:
        every = []
        for pool in self._pools:
            state = "being updated" if pool.is_incomplete else "invalid" if pool.invalid_reason else ""
            if state:
                problem = f"asks for all devices, but resource pool {pool} is currently {state}"
                raise AllocationError(f"{where}: {problem}")
            every += [
                candidate
                for candidate in pool.candidates
                if self._qualifies(claim, wanted, candidate) and self._has_capacity(wanted, candidate)
            ]
        return every

    # -- the descent ------------------------------------------------------------------------------------------------

    def claim(self, place: int) -> _Outcome:
        """Satisfy this claim and all after it."""
        if place >= len(self._claims):
            return _Outcome.FOUND
        outcome = self._request(place, 0)
        # Too many devices for one claim is no reason to give up: an earlier claim may choose otherwise.
        return _Outcome.NOTHING if outcome is _Outcome.TOO_MANY and place else outcome

    def _request(self, claim: int, request: int) -> _Outcome:
        """Satisfy this request and all after it; of alternatives, the first that leads to a solution."""
        if request >= len(self._wanted[claim]):
            return self.claim(claim + 1)
        alternatives = self._wanted[claim][request]
        if not alternatives[0].parent:
            return self._devices(_Step(claim, request, alternatives[0], 0), 0)
        always_too_many = True
        for place, wanted in enumerate(alternatives):
            outcome = self._devices(_Step(claim, request, wanted, 0), 0)
            if outcome is _Outcome.FOUND:
                self._selected[claim, request] = place
                return outcome
            always_too_many &= outcome is _Outcome.TOO_MANY
        return _Outcome.TOO_MANY if always_too_many else _Outcome.NOTHING

    def _devices(self, step: _Step, start: int) -> _Outcome:
        """Choose the devices of a request from `step.device` on, among candidates from `start` on."""
        if self._situation.expired():
            raise OutOfTime
        wanted = step.wanted
        if wanted.every is not None and not wanted.every:
            return _Outcome.NOTHING
        if step.device >= wanted.count:
            return self._request(step.claim, step.request + 1)
        if len(self.chosen[step.claim]) + wanted.count - step.device > MAX_RESULTS:
            return _Outcome.TOO_MANY
        if wanted.every is not None:
            return self._try(step, wanted.every[step.device], 0, must=True)
        for place in range(start, len(self._candidates)):
            candidate = self._candidates[place]
            if not self._is_free(step, candidate):
                continue
            if not self._qualifies(self._claims[step.claim], wanted, candidate):
                continue
            if not self._has_capacity(wanted, candidate):
                continue
            outcome = self._try(step, candidate, place + 1, must=False)
            if outcome is not _Outcome.NOTHING:
                return outcome
        return _Outcome.NOTHING

    def _try(self, step: _Step, candidate: Candidate, start: int, *, must: bool) -> _Outcome:
        """Take a device, go on, and give it back if that leads nowhere."""
        if not self._take(step, candidate, must):
            return _Outcome.NOTHING
        outcome = self._devices(_Step(step.claim, step.request, step.wanted, step.device + 1), start)
        if outcome is not _Outcome.FOUND:
            self._give_back(step, candidate)
        return outcome

    # -- one device -------------------------------------------------------------------------------------------------

    def _is_free(self, step: _Step, candidate: Candidate) -> bool:
        using = self._allocating.get(candidate.id, _NOBODY)
        if step.wanted.admin_access:
            return step.claim not in using
        return not using and candidate.id not in self._situation.taken.devices

    def _qualifies(self, claim: ResourceClaim, wanted: Wanted, candidate: Candidate) -> bool:
        """Whether class, selectors and node selection admit a device."""
        if candidate.device.binding_conditions and not self._situation.features.binding_conditions:
            return False
        device_class = wanted.device_class
        if not self._selected_by(device_class.spec.selectors, candidate, f"class {device_class.name}"):
            return False
        return self._selected_by(wanted.selectors, candidate, f"claim {claim.key}") and candidate.reachable

    def _selected_by(self, selectors: Sequence[DeviceSelector], candidate: Candidate, whose: str) -> bool:
        for place, selector in enumerate(selectors):
            expression = selector.cel.expression if selector.cel is not None else ""
            answer = candidate.answers.get(expression)
            if answer is None:
                try:
                    answer = matches(self._situation.selectors.program(expression), candidate.variables)
                except CelCompileError as error:
                    raise AllocationError(f"{whose}: selector #{place}: CEL compile error: {error}") from error
                except CelRuntimeError as error:
                    raise AllocationError(f"{whose}: selector #{place}: CEL runtime error: {error}") from error
                candidate.answers[expression] = answer
            if not answer:
                return False
        return True

    def _has_capacity(self, wanted: Wanted, candidate: Candidate) -> bool:
        if not self._situation.features.consumable_capacity or (
            wanted.capacity is None and not candidate.device.capacity
        ):
            return True
        consumed = self._situation.taken.capacity.get(candidate.id)
        return fits(consumed, self._consuming.get(candidate.id), wanted.capacity, candidate.device.capacity)

    def _take(self, step: _Step, candidate: Candidate, must: bool) -> bool:
        wanted, device = step.wanted, candidate.device
        features, shared = self._situation.features, self._is_shared(candidate)
        if not self._is_free(step, candidate) and not (shared and wanted.admin_access):
            return False
        if device.consumes_counters and not features.partitionable_devices:
            return False
        counted = bool(device.consumes_counters) and not (shared and self._is_consumed(candidate))
        if counted and not self._counters.consume(candidate.pool, device):
            return False
        if self._is_tolerable(wanted, candidate) and self._add_to_constraints(step, candidate, must):
            if self._has_capacity(wanted, candidate):
                self._record(step, candidate, shared)
                return True
            self._remove_from_constraints(step, candidate)
        if counted:
            self._counters.give_back(candidate.pool, device)
        return False

    def _is_shared(self, candidate: Candidate) -> bool:
        return self._situation.features.consumable_capacity and bool(candidate.device.allow_multiple_allocations)

    def _is_consumed(self, candidate: Candidate) -> bool:
        return candidate.id in self._situation.taken.capacity or candidate.id in self._consuming

    def _is_tolerable(self, wanted: Wanted, candidate: Candidate) -> bool:
        if not self._situation.features.device_taints:
            return True
        return all(wanted.tolerates(taint) for taint in candidate.device.taints)

    def _add_to_constraints(self, step: _Step, candidate: Candidate, must: bool) -> bool:
        wanted, constraints = step.wanted, self._constraints[step.claim]
        for place, constraint in enumerate(constraints):
            if constraint.add(wanted.base_name, wanted.alternative, candidate):
                continue
            if must:
                where = f"claim {self._claims[step.claim].key}, request {wanted.name}"
                device = "/".join(candidate.id)
                problem = f"cannot add device {device} because a claim constraint would not be satisfied"
                raise AllocationError(f"{where}: {problem}")
            for other in constraints[:place]:
                other.remove(wanted.base_name, wanted.alternative, candidate)
            return False
        return True

    def _record(self, step: _Step, candidate: Candidate, shared: bool) -> None:
        wanted = step.wanted
        consumed: dict[str, Quantity] = {}
        share_id = ""
        if shared:
            consumed = consumptions(wanted.capacity, candidate.device.capacity)
            share_id = self._situation.share_id()
            add_capacity(self._consuming, candidate.id, consumed)
        else:
            self._allocating.setdefault(candidate.id, set()).add(step.claim)
        self.chosen[step.claim].append(Chosen(wanted, candidate, share_id, consumed))

    def _remove_from_constraints(self, step: _Step, candidate: Candidate) -> None:
        for constraint in self._constraints[step.claim]:
            constraint.remove(step.wanted.base_name, step.wanted.alternative, candidate)

    def _give_back(self, step: _Step, candidate: Candidate) -> None:
        chosen = self.chosen[step.claim].pop()
        self._remove_from_constraints(step, candidate)
        self._allocating.get(candidate.id, set()).discard(step.claim)
        if self._is_shared(candidate):
            # As in the original, counters of a device that may be shared stay consumed for the rest of the search.
            if chosen.consumed:
                remove_capacity(self._consuming, candidate.id, chosen.consumed)
        elif candidate.device.consumes_counters:
            self._counters.give_back(candidate.pool, candidate.device)


_NOBODY: frozenset[int] = frozenset()


def _constraints(claim: ResourceClaim) -> list[Constraint]:
    made: list[Constraint] = []
    for place, constraint in enumerate(claim.spec.devices.constraints):
        if constraint.match_attribute is not None:
            made.append(MatchAttribute(constraint.requests, constraint.match_attribute))
        elif constraint.distinct_attribute is not None:
            made.append(DistinctAttribute(constraint.requests, constraint.distinct_attribute))
        else:
            problem = "empty constraint (unsupported constraint type?)"
            raise AllocationError(f"claim {claim.key}, constraint #{place}: {problem}")
    return made
