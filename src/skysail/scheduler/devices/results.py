"""What a successful search writes into the status of a claim.

Source: k8s.io/dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go, v1.36.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from skysail.api.affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from skysail.api.node import Node
from skysail.api.quantity import Quantity
from skysail.api.resource import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
)
from skysail.scheduler.devices.features import Features
from skysail.scheduler.devices.pools import AllocationError, Candidate
from skysail.scheduler.devices.requests import Wanted


@dataclass(frozen=True, slots=True)
class Chosen:
    """A device that was chosen.

    Attributes:
        wanted: For what.
        candidate: Which.
        share_id: Names the share; empty when the device is not shared.
        consumed: How much of each capacity is consumed of a shared device.
    """

    wanted: Wanted
    candidate: Candidate
    share_id: str
    consumed: Mapping[str, Quantity]


def allocation_result(
    claim: ResourceClaim, chosen: Sequence[Chosen], selected: Sequence[Wanted], node: Node, features: Features
) -> AllocationResult:
    """The allocation of one claim.

    Args:
        claim: Which.
        chosen: Its devices, in order.
        selected: For each request, the alternative taken.
        node: Where the pod would run.
        features: What may be written.

    Raises:
        AllocationError: A slice's node selector has several terms.
    """
    results = tuple(_result(each, features) for each in chosen)
    config = (*_class_configuration(selected), *_claim_configuration(claim, selected))
    selector = _node_selector(chosen, node.metadata.name, claim.name)
    return AllocationResult(devices=DeviceAllocationResult(results=results, config=config), node_selector=selector)


def _result(chosen: Chosen, features: Features) -> DeviceRequestAllocationResult:
    wanted, device = chosen.wanted, chosen.candidate.device
    driver, pool, name = chosen.candidate.id
    return DeviceRequestAllocationResult(
        request=wanted.full_name,
        driver=driver,
        pool=pool,
        device=name,
        admin_access=True if wanted.admin_access else None,
        tolerations=tuple(wanted.tolerations),
        binding_conditions=device.binding_conditions if features.binding_conditions else (),
        binding_failure_conditions=device.binding_failure_conditions if features.binding_conditions else (),
        share_id=chosen.share_id or None,
        consumed_capacity={key: str(amount) for key, amount in chosen.consumed.items()},
    )


def _class_configuration(selected: Iterable[Wanted]) -> list[DeviceAllocationConfiguration]:
    """Every class's configuration once, for all requests of that class."""
    requests: dict[str, list[str]] = {}
    classes = {}
    for wanted in selected:
        requests.setdefault(wanted.device_class.name, []).append(wanted.full_name)
        classes[wanted.device_class.name] = wanted.device_class
    return [
        DeviceAllocationConfiguration(source="FromClass", requests=tuple(names), opaque=config.opaque)
        for name, names in requests.items()
        for config in classes[name].spec.config
    ]


def _claim_configuration(claim: ResourceClaim, selected: Sequence[Wanted]) -> list[DeviceAllocationConfiguration]:
    made = []
    for config in claim.spec.devices.config:
        entry = DeviceAllocationConfiguration(source="FromClaim", requests=config.requests, opaque=config.opaque)
        if not config.requests:
            made.append(entry)
            continue
        made += [
            entry for wanted in selected if wanted.base_name in config.requests or wanted.full_name in config.requests
        ]
    return made


def _node_selector(chosen: Iterable[Chosen], node_name: str, claim: str) -> NodeSelector | None:
    """Where the devices can be used; None when everywhere."""
    fields: list[NodeSelectorRequirement] = []
    expressions: list[NodeSelectorRequirement] = []
    for each in chosen:
        device, spec = each.candidate.device, each.candidate.slice.spec
        place = device if spec.per_device_node_selection else spec
        if place.node_name is not None or device.binds_to_node:
            only = NodeSelectorRequirement(key="metadata.name", operator="In", values=(node_name,))
            return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(only,)),))
        terms = place.node_selector.node_selector_terms if place.node_selector is not None else ()
        if len(terms) > 1:
            problem = f"unsupported ResourceSlice.NodeSelector with {len(terms)} terms"
            raise AllocationError(f"create NodeSelector for claim {claim}: {problem}")
        for term in terms:
            _add_new(fields, term.match_fields)
            _add_new(expressions, term.match_expressions)
    if not fields and not expressions:
        return None
    term = NodeSelectorTerm(match_fields=tuple(fields), match_expressions=tuple(expressions))
    return NodeSelector(node_selector_terms=(term,))


def _add_new(kept: list[NodeSelectorRequirement], more: Iterable[NodeSelectorRequirement]) -> None:
    for one in more:
        if not any(
            other.key == one.key and other.operator == one.operator and set(other.values) == set(one.values)
            for other in kept
        ):
            kept.append(one)
