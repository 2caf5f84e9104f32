"""What DynamicResources remembers of one attempt, from PreFilter to the binding."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from skysail.api.core import ContainerExtendedResourceRequest
from skysail.api.nodeselector import CompiledNodeSelector
from skysail.api.resource import AllocationResult, ResourceClaim
from skysail.scheduler.devices.allocation import Situation
from skysail.scheduler.framework.cycle_state import StateKey

MOST_ALTERNATIVES: Final = 8


@dataclass(frozen=True, slots=True)
class NodeAllocation:
    """What Filter found for a node.

    Attributes:
        claims: The claims to allocate, as they are for this node, by their place.
        results: Their allocations, by place.
        mappings: Which request answers which extended resource.
    """

    claims: Mapping[int, ResourceClaim]
    results: Mapping[int, AllocationResult]
    mappings: Sequence[ContainerExtendedResourceRequest] = ()


@dataclass(slots=True)
class DeviceState:
    """The attempt.

    Attributes:
        claims: The pod's own, in order, then the one for extended resources, if any. Replaced as they are written.
        own: How many are the pod's own.
        special_uid: The uid under which the claim for extended resources is promised.
        extended: What the pod asks for of resources that classes may back.
        selectors: Where an allocated claim can be used, by place.
        situation: For the search; None when nothing is to be allocated.
        nodes: What Filter found, by node.
        unavailable: Allocated claims that cannot be used as they are, by place.
        reserved: What Reserve promised, by place.
        deallocated: Claims that PostFilter lets go.
        deleted: Claims that PostFilter deletes.

    A what-if shares it: whatever pods are added or removed, devices stay taken.
    """

    claims: list[ResourceClaim] = field(default_factory=list)
    own: int = 0
    special_uid: str = ""
    extended: Mapping[str, int] = field(default_factory=dict)
    selectors: dict[int, CompiledNodeSelector] = field(default_factory=dict)
    situation: Situation | None = None
    nodes: dict[str, NodeAllocation] = field(default_factory=dict)
    unavailable: set[int] = field(default_factory=set)
    reserved: dict[int, AllocationResult] = field(default_factory=dict)
    deallocated: list[ResourceClaim] = field(default_factory=list)
    deleted: list[ResourceClaim] = field(default_factory=list)

    @property
    def special(self) -> ResourceClaim | None:
        """The claim for extended resources."""
        return self.claims[self.own] if len(self.claims) > self.own else None

    def to_allocate(self) -> Iterator[tuple[int, ResourceClaim]]:
        """Claims without an allocation, with their place."""
        return ((place, claim) for place, claim in enumerate(self.claims) if claim.status.allocation is None)

    def rank_of_alternatives(self, found: NodeAllocation) -> int:
        """The sum over requests with alternatives: 8 for the first, 7 for the second, and so on."""
        total = 0
        for place, claim in enumerate(self.claims):
            allocation = claim.status.allocation or found.results.get(place)
            chosen = {result.request for result in allocation.devices.results} if allocation is not None else set()
            for request in claim.spec.devices.requests:
                for rank, each in enumerate(request.first_available):
                    if f"{request.name}/{each.name}" in chosen:
                        total += MOST_ALTERNATIVES - rank
        return total


NO_CLAIMS = DeviceState()
"""Of pods without claims; never changed."""
STATE = StateKey[DeviceState]("PreFilterDynamicResources")
