"""What all profiles of a scheduler share about devices: claims as they will be, what is taken, what nodes can reach.

    stored claims ── what PreBind wrote, until the watch shows it ── what Reserve promised and nobody wrote yet

A pod that was given a device holds it from Reserve on: `promise` counts the device as taken before the API server
knows.
Nothing here is computed before the first pod with claims, or with an extended resource, comes.

Source: pkg/scheduler/framework/plugins/dynamicresources/dra_manager.go,
    k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache, v1.36.
Differs: of classes that name the same extended resource none loses its implicit name.
"""

from collections.abc import Mapping, Sequence

from skysail.api.kinds import DEVICE_CLASSES, RESOURCE_CLAIMS, RESOURCE_SLICES
from skysail.api.node import Node
from skysail.api.resource import DEVICE_CLASS_RESOURCE_PREFIX, AllocationResult, DeviceClass, ResourceClaim
from skysail.api.resources import is_extended_resource
from skysail.scheduler.devices.cel.environment import CelMissing
from skysail.scheduler.devices.cel.values import CelError
from skysail.scheduler.devices.features import Features
from skysail.scheduler.devices.pools import (
    AllocationError,
    Candidate,
    Pool,
    SliceIndex,
    gather_pools,
    reachable_devices,
)
from skysail.scheduler.devices.selectors import Selectors, matches
from skysail.scheduler.devices.taken import Taken
from skysail.scheduler.framework.handle import Handle

_MEMO = "DeviceAccount"


def is_class_resource(name: str) -> bool:
    """Whether a resource may be backed by a device class."""
    return is_extended_resource(name) or name.startswith(DEVICE_CLASS_RESOURCE_PREFIX)


def device_account(handle: Handle) -> "DeviceAccount":
    """The account of a scheduler, the same for all its profiles and plugins."""
    memo = handle.snapshot().table.memo
    found = memo.get(_MEMO)
    if not isinstance(found, DeviceAccount) or found.handle is not handle:
        found = memo[_MEMO] = DeviceAccount(handle)
    return found


class DeviceAccount:
    """The account.

    Attributes:
        handle: Whose account it is.
        features: What is switched on.
        selectors: Compiled selectors.
        classes: Device classes, as last seen.
    """

    def __init__(self, handle: Handle) -> None:
        self.handle = handle
        self.features = Features.of(handle.feature_gates)
        self.selectors = Selectors()
        self.classes = handle.lister(DEVICE_CLASSES)
        self._stored = handle.lister(RESOURCE_CLAIMS)
        self._slices = handle.lister(RESOURCE_SLICES)
        self._written: dict[tuple[str, str], ResourceClaim] = {}
        self._promised: dict[str, AllocationResult] = {}
        self._counted: dict[str, AllocationResult] = {}
        self._taken = Taken()
        self._index = SliceIndex(())
        self._pools: dict[str, tuple[Node, list[Pool]]] = {}
        self._listed_classes: Sequence[DeviceClass] = ()
        self._by_resource: Mapping[str, DeviceClass] = {}
        self._changes = 0

    # -- claims -----------------------------------------------------------------------------------------------------

    def claim(self, namespace: str, name: str) -> ResourceClaim | None:
        """A claim: as written by us, if the watch has not shown that yet, else as stored."""
        stored = self._stored.get(namespace, name)
        return stored if stored is None or not self._written else self._newest(stored)

    def claims(self) -> Sequence[ResourceClaim]:
        """All claims."""
        stored = self._stored.list()
        return stored if not self._written else [self._newest(each) for each in stored]

    def _newest(self, stored: ResourceClaim) -> ResourceClaim:
        key = (stored.namespace, stored.name)
        written = self._written.get(key)
        if written is None:
            return stored
        if written.uid == stored.uid and _version(written) > _version(stored):
            return written
        del self._written[key]
        return stored

    def wrote(self, claim: ResourceClaim) -> bool:
        """Take note of what the API server answered; False when the watch has not shown the claim at all yet."""
        if self._stored.get(claim.namespace, claim.name) is None:
            return False
        self._written[claim.namespace, claim.name] = claim
        return True

    def is_promised(self, uid: str) -> bool:
        """Whether somebody was promised an allocation of the claim that is not written yet."""
        return uid in self._promised

    def promise(self, uid: str, allocation: AllocationResult) -> None:
        """Hold devices for a claim from now on."""
        self._promised[uid] = allocation

    def end_promise(self, uid: str) -> None:
        """Hold them no longer: the allocation is written, or given up."""
        self._promised.pop(uid, None)

    # -- devices ----------------------------------------------------------------------------------------------------

    def taken(self) -> Taken:
        """Which devices are taken; not to be changed.

        Cost: A walk over all claims; only those that changed since the last time are counted anew.
        """
        now = {claim.uid: claim.status.allocation for claim in self.claims() if claim.status.allocation is not None}
        for uid, allocation in self._promised.items():
            now.setdefault(uid, allocation)
        counted, consumable = self._counted, self.features.consumable_capacity
        for uid in [uid for uid, allocation in counted.items() if now.get(uid) is not allocation]:
            self._taken.remove(counted.pop(uid), consumable)
            self._changes += 1
        for uid, allocation in now.items():
            if uid not in counted:
                self._taken.add(allocation, consumable)
                counted[uid] = allocation
                self._changes += 1
        return self._taken

    def version(self) -> int:
        """Moves whenever a device is allocated or given back, or a slice changes."""
        self.refresh_slices()
        self.taken()
        return self._changes

    def pools(self, node: Node) -> list[Pool]:
        """What a node can reach; remembered until the node or a slice changes.

        Raises:
            AllocationError: A node selector cannot be read.
        """
        known = self._pools.get(node.metadata.name)
        if known is not None and known[0] is node:
            return known[1]
        pools = gather_pools(self._index, node, self.features)
        self._pools[node.metadata.name] = (node, pools)
        return pools

    def refresh_slices(self) -> None:
        """See whether slices changed; to be called once an attempt, before `pools`."""
        slices = tuple(self._slices.list())
        if slices != self._index.slices:
            self._index = SliceIndex(slices)
            self._pools.clear()
            self._changes += 1

    # -- extended resources -----------------------------------------------------------------------------------------

    def class_of(self, resource: str) -> DeviceClass | None:
        """The class behind an extended resource, if there is one."""
        if not self.features.extended_resources or not is_class_resource(resource):
            return None
        listed = self.classes.list()
        if listed != self._listed_classes:
            self._listed_classes, self._by_resource = listed, _by_resource(listed)
        return self._by_resource.get(resource)

    def totals(self, node: Node, device_class: DeviceClass, taken: Taken) -> tuple[int, int]:
        """How many devices of a class a node can reach, and how many of them are allocated; for scoring.

        Slices of any generation count, and pools need not be complete: as upstream.
        """
        try:
            found = [each for each in reachable_devices(self._index, node) if self._belongs(each, device_class)]
        except (AllocationError, CelError, CelMissing):
            return 0, 0
        return len(found), sum(taken.is_allocated(each.id) for each in found)

    def _belongs(self, candidate: Candidate, device_class: DeviceClass) -> bool:
        expressions = [each.cel.expression for each in device_class.spec.selectors if each.cel is not None]
        return all(matches(self.selectors.program(each), candidate.variables) for each in expressions)


def _version(claim: ResourceClaim) -> int:
    version = claim.metadata.resource_version
    return int(version) if version.isdigit() else 0


def _by_resource(classes: Sequence[DeviceClass]) -> dict[str, DeviceClass]:
    """Of several classes the newest counts, then the first by name."""
    found: dict[str, DeviceClass] = {}
    for each in sorted(classes, key=lambda each: each.name):
        found[f"{DEVICE_CLASS_RESOURCE_PREFIX}{each.name}"] = each
        name = each.spec.extended_resource_name
        if name is not None and (name not in found or _created(each) > _created(found[name])):
            found[name] = each
    return found


def _created(device_class: DeviceClass) -> float:
    created = device_class.metadata.creation_timestamp
    return created.timestamp() if created is not None else float("-inf")
