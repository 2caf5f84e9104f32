"""The resource pools that a node can reach.

A driver publishes a pool as several slices. Only slices of the newest generation count; a pool of which slices are
missing is incomplete, one that contradicts itself is invalid, and nothing is allocated from either.

Source: k8s.io/dynamic-resource-allocation/structured/internal/incubating/pools_incubating.go, v1.36.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from skysail.api.affinity import NodeSelector
from skysail.api.node import Node
from skysail.api.nodeselector import compile_node_selector
from skysail.api.resource import CounterSet, Device, ResourceSlice
from skysail.scheduler.devices.features import Features
from skysail.scheduler.devices.selectors import Variables, device_variables

PoolId = tuple[str, str]
"""Driver and pool."""
DeviceId = tuple[str, str, str]
"""Driver, pool and device."""


class AllocationError(Exception):
    """Something is wrong with claims, classes or slices: the attempt is given up on all nodes."""


@dataclass(slots=True, eq=False)
class Candidate:
    """A device within reach of a node.

    Attributes:
        id: Driver, pool, device.
        device: The device.
        slice: Where it is published.
        pool: Likewise.
        answers: What selectors said of it, by expression.
        reachable: Whether it may be used from the node at all (selection per device).
    """

    id: DeviceId
    device: Device
    slice: ResourceSlice
    pool: "Pool"
    reachable: bool = True
    answers: dict[str, bool] = field(default_factory=dict)
    _variables: Variables | None = None

    @property
    def variables(self) -> Variables:
        """The device as selectors see it."""
        if self._variables is None:
            self._variables = device_variables(self.id[0], self.device)
        return self._variables


@dataclass(slots=True, eq=False)
class Pool:
    """One pool as seen from a node.

    Attributes:
        driver: Whose.
        name: Its name.
        is_incomplete: Whether slices are missing.
        invalid_reason: Why it contradicts itself; empty when it does not.
        slices: Slices with devices within reach, by name.
        other_slices: Slices of the pool that are not, but whose devices take of the same counters.
        counter_sets: Shared counters by set name.
        candidates: The devices within reach, in the order in which they are tried.
    """

    driver: str
    name: str
    is_incomplete: bool = False
    invalid_reason: str = ""
    slices: Sequence[ResourceSlice] = ()
    other_slices: Sequence[ResourceSlice] = ()
    counter_sets: Mapping[str, CounterSet] = field(default_factory=dict)
    candidates: Sequence[Candidate] = ()

    @property
    def id(self) -> PoolId:
        """Driver and name."""
        return self.driver, self.name

    def __str__(self) -> str:
        return f"{self.driver}/{self.name}"


class SliceIndex:
    """All slices, sorted by where they can be reached from.

    Args:
        slices: As last seen.
    """

    def __init__(self, slices: Iterable[ResourceSlice]) -> None:
        self.slices = tuple(slices)
        self._on_node: dict[str, list[ResourceSlice]] = {}
        self._shared: list[ResourceSlice] = []
        self._of_pool: dict[PoolId, list[ResourceSlice]] = {}
        for each in self.slices:
            if each.spec.node_name and not each.spec.shared_counters:
                self._on_node.setdefault(each.spec.node_name, []).append(each)
            else:
                self._shared.append(each)
            self._of_pool.setdefault(pool_id(each), []).append(each)

    def for_node(self, name: str) -> list[ResourceSlice]:
        """Slices that may concern a node."""
        return [*self._on_node.get(name, ()), *self._shared]

    def of_pool(self, pool: PoolId) -> Sequence[ResourceSlice]:
        """All slices of a pool, whatever their generation."""
        return self._of_pool.get(pool, ())


def pool_id(each: ResourceSlice) -> PoolId:
    """The pool of a slice."""
    return each.spec.driver, each.spec.pool.name


def gather_pools(index: SliceIndex, node: Node, features: Features) -> list[Pool]:
    """The pools within reach of a node, those with binding conditions last, else by name.

    Raises:
        AllocationError: A node selector cannot be read.
    """
    found: dict[PoolId, list[ResourceSlice]] = {}
    for each in index.for_node(node.metadata.name):
        if _concerns(each, node, features):
            _add(found, each)
    plain, conditional = [], []
    for identity in sorted(found):
        pool = _pool(identity, found[identity], index, node, features)
        if pool is None:
            continue
        if any(candidate.device.binding_conditions for candidate in pool.candidates):
            conditional.append(pool)
        else:
            plain.append(pool)
    return plain + conditional


def reachable_devices(index: SliceIndex, node: Node) -> list[Candidate]:
    """Devices of all slices that a node can reach, whatever the state of their pools: what scoring counts.

    Raises:
        AllocationError: A node selector cannot be read.
    """
    found = []
    for each in index.for_node(node.metadata.name):
        spec = each.spec
        anywhere = not spec.node_name and not spec.all_nodes and spec.node_selector is None
        what = f"slice {each.metadata.name}"
        by_device = spec.per_device_node_selection or anywhere
        if not by_device and not node_matches(node, spec.node_name, spec.all_nodes, spec.node_selector, what):
            continue
        pool = Pool(*pool_id(each))
        found += [
            Candidate((*pool.id, device.name), device, each, pool)
            for device in spec.devices
            if _is_reachable(each, device, node)
        ]
    return found


def _add(found: dict[PoolId, list[ResourceSlice]], each: ResourceSlice) -> None:
    """Keep slices of the newest generation only."""
    known = found.setdefault(pool_id(each), [each])
    generation = known[0].spec.pool.generation
    if each.spec.pool.generation > generation:
        found[pool_id(each)] = [each]
    elif each is not known[0] and each.spec.pool.generation == generation:
        known.append(each)


def _concerns(each: ResourceSlice, node: Node, features: Features) -> bool:
    spec = each.spec
    if not features.partitionable_devices and (spec.per_device_node_selection is not None or spec.shared_counters):
        return False
    if spec.shared_counters:
        return True
    if spec.node_name or spec.all_nodes or spec.node_selector is not None:
        what = f"slice {each.metadata.name}"
        return node_matches(node, spec.node_name, spec.all_nodes, spec.node_selector, what)
    if spec.per_device_node_selection:
        return any(_reaches(each, device, node) for device in spec.devices)
    return False


def _reaches(each: ResourceSlice, device: Device, node: Node) -> bool:
    what = f"device {device.name} in slice {each.metadata.name}"
    return node_matches(node, device.node_name, device.all_nodes, device.node_selector, what)


def node_matches(
    node: Node, name: str | None, all_nodes: bool | None, selector: NodeSelector | None, what: str
) -> bool:
    """Whether a node is meant.

    Raises:
        AllocationError: The selector cannot be read.
    """
    if name:
        return node.metadata.name == name
    if all_nodes:
        return True
    if selector is None:
        return False
    compiled = compile_node_selector(selector)
    if compiled.errors:
        problem = f"failed to parse node selector: {', '.join(compiled.errors)}"
        raise AllocationError(f"gather pool information: failed to perform node selection for {what}: {problem}")
    return compiled.matches(node.metadata.name, node.metadata.labels)


def _pool(
    identity: PoolId, slices: list[ResourceSlice], index: SliceIndex, node: Node, features: Features
) -> Pool | None:
    generation, count = slices[0].spec.pool.generation, slices[0].spec.pool.resource_slice_count
    everything: Sequence[ResourceSlice] = slices
    if len(slices) != count:
        everything = [each for each in index.of_pool(identity) if each.spec.pool.generation == generation]
        if any(each.spec.pool.generation > generation for each in index.of_pool(identity)):
            return None  # being replaced, by slices that this node cannot reach
        if len(everything) != count:
            return Pool(*identity, is_incomplete=True)
    return _build(identity, sorted(slices, key=_name), everything, node, features)


def _name(each: ResourceSlice) -> str:
    return each.metadata.name


def _build(
    identity: PoolId, slices: list[ResourceSlice], everything: Sequence[ResourceSlice], node: Node, features: Features
) -> Pool:
    with_counters = [each for each in slices if each.spec.shared_counters] if features.partitionable_devices else []
    with_devices = [each for each in slices if each not in with_counters] if with_counters else slices
    reason = _duplicate_device(with_devices)
    sets: dict[str, CounterSet] = {}
    others: list[ResourceSlice] = []
    if not reason and features.partitionable_devices:
        names = {each.metadata.name for each in slices}
        others = [each for each in everything if each.metadata.name not in names]
        reason = _collect(with_counters, sets) or _unknown_counter(sets, slices) or _unknown_counter(sets, others)
    if reason:
        return Pool(*identity, invalid_reason=reason)
    pool = Pool(*identity, slices=with_devices, other_slices=others, counter_sets=sets)
    pool.candidates = [
        Candidate((*identity, device.name), device, each, pool, _is_reachable(each, device, node))
        for each in with_devices
        for device in each.spec.devices
    ]
    return pool


def _is_reachable(each: ResourceSlice, device: Device, node: Node) -> bool:
    return not each.spec.per_device_node_selection or _reaches(each, device, node)


def _duplicate_device(slices: Sequence[ResourceSlice]) -> str:
    seen: set[str] = set()
    for each in slices:
        for device in each.spec.devices:
            if device.name in seen:
                return f"duplicate device name {device.name}"
            seen.add(device.name)
    return ""


def _collect(slices: Sequence[ResourceSlice], sets: dict[str, CounterSet]) -> str:
    for each in slices:
        for counters in each.spec.shared_counters:
            if counters.name in sets:
                return f"duplicate counter set name {counters.name}"
            sets[counters.name] = counters
    return ""


def _unknown_counter(sets: Mapping[str, CounterSet], slices: Iterable[ResourceSlice]) -> str:
    for each in slices:
        for device in each.spec.devices:
            for consumption in device.consumes_counters:
                known = sets.get(consumption.counter_set)
                if known is None:
                    return f"counter set {consumption.counter_set} not found"
                for name in consumption.counters:
                    if name not in known.counters:
                        return f"counter {name} not found in counter set {known.name}"
    return ""
