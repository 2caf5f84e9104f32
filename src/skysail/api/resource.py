"""Devices: what drivers offer (ResourceSlice), how they are grouped (DeviceClass), who asks for them (ResourceClaim).

Quantities are text, as everywhere; parse them with `skysail.api.quantity`.
"""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from skysail.api.affinity import NodeSelector
from skysail.api.meta import ApiObject, Condition, ObjectMeta, Struct, own_raw

CLAIM_FINALIZER = "resource.kubernetes.io/delete-protection"
EXTENDED_RESOURCE_CLAIM_ANNOTATION = "resource.kubernetes.io/extended-resource-claim"
DEVICE_CLASS_RESOURCE_PREFIX = "deviceclass.resource.kubernetes.io/"


class CELDeviceSelector(Struct, frozen=True, gc=False):
    """A test on a device, in CEL."""

    expression: str = ""


class DeviceSelector(Struct, frozen=True, gc=False):
    """A test on a device; exactly one form is set."""

    cel: CELDeviceSelector | None = None


class OpaqueDeviceConfiguration(Struct, frozen=True, gc=False):
    """Parameters for one driver, which only that driver understands."""

    driver: str = ""
    parameters: msgspec.Raw = msgspec.Raw()

    def __post_init__(self) -> None:
        """Own the parameters' bytes: a decoded `msgspec.Raw` is a view of the whole message."""
        own_raw(self, "parameters")


class DeviceClassConfiguration(Struct, frozen=True, gc=False):
    """Configuration that comes with a class."""

    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClassSpec(Struct, frozen=True, gc=False):
    """Which devices belong to a class."""

    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[DeviceClassConfiguration, ...] = ()
    extended_resource_name: str | None = None


class DeviceClass(ApiObject, frozen=True, gc=False):
    """A kind of device that can be asked for by name."""

    spec: DeviceClassSpec = DeviceClassSpec()


class ResourcePool(Struct, frozen=True, gc=False):
    """The pool a slice belongs to."""

    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


class Counter(Struct, frozen=True, gc=False):
    """An amount of something that devices of a pool share."""

    value: str = ""


class CounterSet(Struct, frozen=True, gc=False):
    """A named set of shared counters."""

    name: str = ""
    counters: Mapping[str, Counter] = {}


class DeviceCounterConsumption(Struct, frozen=True, gc=False):
    """What a device takes of a counter set while it is allocated."""

    counter_set: str = ""
    counters: Mapping[str, Counter] = {}


class CapacityRequestPolicyRange(Struct, frozen=True, gc=False):
    """Amounts from `min` to `max` in steps."""

    min: str | None = None
    max: str | None = None
    step: str | None = None


class CapacityRequestPolicy(Struct, frozen=True, gc=False):
    """Which amounts of a capacity may be consumed."""

    default: str | None = None
    valid_values: tuple[str, ...] = ()
    valid_range: CapacityRequestPolicyRange | None = None


class DeviceCapacity(Struct, frozen=True, gc=False):
    """How much a device has of something."""

    value: str = ""
    request_policy: CapacityRequestPolicy | None = None


class DeviceAttribute(Struct, frozen=True, gc=False):
    """A property of a device; exactly one value is set. Lists of values are an alpha feature and not read."""

    int_value: int | None = msgspec.field(default=None, name="int")
    bool_value: bool | None = msgspec.field(default=None, name="bool")
    string_value: str | None = msgspec.field(default=None, name="string")
    version_value: str | None = msgspec.field(default=None, name="version")


class DeviceTaint(Struct, frozen=True, gc=False):
    """Keeps claims without a matching toleration away from a device."""

    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: datetime | None = None


class Device(Struct, frozen=True, gc=False):
    """One device that a driver offers."""

    name: str = ""
    attributes: Mapping[str, DeviceAttribute] = {}
    capacity: Mapping[str, DeviceCapacity] = {}
    consumes_counters: tuple[DeviceCounterConsumption, ...] = ()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: tuple[DeviceTaint, ...] = ()
    binds_to_node: bool | None = None
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    allow_multiple_allocations: bool | None = None


class ResourceSliceSpec(Struct, frozen=True, gc=False):
    """Devices or counters of a pool, and where they can be reached from."""

    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    devices: tuple[Device, ...] = ()
    per_device_node_selection: bool | None = None
    shared_counters: tuple[CounterSet, ...] = ()


class ResourceSlice(ApiObject, frozen=True, gc=False):
    """A part of what a driver offers."""

    spec: ResourceSliceSpec = ResourceSliceSpec()


class DeviceToleration(Struct, frozen=True, gc=False):
    """Lets a request use devices with a matching taint."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class CapacityRequirements(Struct, frozen=True, gc=False):
    """How much of each capacity is wanted."""

    requests: Mapping[str, str] = {}


class ExactDeviceRequest(Struct, frozen=True, gc=False):
    """Devices of one class."""

    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: int = 0
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None


class DeviceSubRequest(Struct, frozen=True, gc=False):
    """One alternative of a request."""

    name: str = ""
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: int = 0
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None


class DeviceRequest(Struct, frozen=True, gc=False):
    """Devices wanted under one name: exactly these, or the first of several alternatives."""

    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


class DeviceConstraint(Struct, frozen=True, gc=False):
    """What the devices of some requests must have in common, or must not."""

    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaimConfiguration(Struct, frozen=True, gc=False):
    """Configuration that comes with a claim."""

    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClaim(Struct, frozen=True, gc=False):
    """Everything a claim wants of devices."""

    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceClaimConfiguration, ...] = ()


class ResourceClaimSpec(Struct, frozen=True, gc=False):
    """What a claim wants."""

    devices: DeviceClaim = DeviceClaim()


class DeviceRequestAllocationResult(Struct, frozen=True, gc=False):
    """One device that answers a request."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    share_id: str | None = msgspec.field(default=None, name="shareID")
    consumed_capacity: Mapping[str, str] = {}


class DeviceAllocationConfiguration(Struct, frozen=True, gc=False):
    """Configuration for the drivers of allocated devices."""

    source: str = ""
    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceAllocationResult(Struct, frozen=True, gc=False):
    """The devices of a claim."""

    results: tuple[DeviceRequestAllocationResult, ...] = ()
    config: tuple[DeviceAllocationConfiguration, ...] = ()


class AllocationResult(Struct, frozen=True, gc=False):
    """What was allocated for a claim, and where it can be used; everywhere without a node selector."""

    devices: DeviceAllocationResult = DeviceAllocationResult()
    node_selector: NodeSelector | None = None
    allocation_timestamp: datetime | None = None


class ResourceClaimConsumerReference(Struct, frozen=True, gc=False):
    """Somebody who may use the claim."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class AllocatedDeviceStatus(Struct, frozen=True, gc=False):
    """What a driver says of an allocated device."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str | None = msgspec.field(default=None, name="shareID")
    conditions: tuple[Condition, ...] = ()


class ResourceClaimStatus(Struct, frozen=True, gc=False):
    """What became of a claim."""

    allocation: AllocationResult | None = None
    reserved_for: tuple[ResourceClaimConsumerReference, ...] = ()
    devices: tuple[AllocatedDeviceStatus, ...] = ()


class ResourceClaim(ApiObject, frozen=True, gc=False):
    """A wish for devices, and what was allocated for it."""

    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()


class ResourceClaimTemplateSpec(Struct, frozen=True, gc=False):
    """What claims made from a template look like."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(ApiObject, frozen=True, gc=False):
    """Makes a claim for every pod that refers to it."""

    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()
