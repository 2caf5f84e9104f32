"""Which devices are taken, and how much of shared ones.

Source: pkg/scheduler/framework/plugins/dynamicresources/allocateddevices.go, v1.36.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from skysail.api.quantity import Quantity, parse_quantity
from skysail.api.resource import AllocationResult, DeviceRequestAllocationResult
from skysail.scheduler.devices.pools import DeviceId

Capacities = dict[str, Quantity]


@dataclass(slots=True)
class Taken:
    """The account.

    Attributes:
        devices: Allocated for one claim alone; the number of such claims, one if all is well.
        shared: Allocated to be shared; the number of shares.
        capacity: What is consumed of shared devices, by capacity name.
    """

    devices: dict[DeviceId, int] = field(default_factory=dict)
    shared: dict[DeviceId, int] = field(default_factory=dict)
    capacity: dict[DeviceId, Capacities] = field(default_factory=dict)

    def add(self, allocation: AllocationResult, consumable: bool) -> None:
        """Count an allocation in. A device with admin access is not taken.

        Args:
            allocation: Of one claim.
            consumable: Whether devices can be shared; if not, whoever has a share has the device.
        """
        for result in allocation.devices.results:
            if not result.admin_access:
                device = _device(result)
                if consumable and result.share_id is not None:
                    self.shared[device] = self.shared.get(device, 0) + 1
                    if result.consumed_capacity:
                        add_capacity(self.capacity, device, _consumed(result))
                else:
                    self.devices[device] = self.devices.get(device, 0) + 1

    def remove(self, allocation: AllocationResult, consumable: bool) -> None:
        """Undo `add`."""
        for result in allocation.devices.results:
            if not result.admin_access:
                device = _device(result)
                if consumable and result.share_id is not None:
                    _count_down(self.shared, device)
                    if result.consumed_capacity:
                        remove_capacity(self.capacity, device, _consumed(result))
                else:
                    _count_down(self.devices, device)

    def is_allocated(self, device: DeviceId) -> bool:
        """Whether anybody has it, alone or shared."""
        return device in self.devices or device in self.shared or device in self.capacity


def _device(result: DeviceRequestAllocationResult) -> DeviceId:
    return result.driver, result.pool, result.device


def _consumed(result: DeviceRequestAllocationResult) -> Capacities:
    return {name: parse_quantity(amount) for name, amount in result.consumed_capacity.items()}


def _count_down(counts: dict[DeviceId, int], device: DeviceId) -> None:
    left = counts.get(device, 0) - 1
    if left > 0:
        counts[device] = left
    else:
        counts.pop(device, None)


def add_capacity(capacity: dict[DeviceId, Capacities], device: DeviceId, added: Mapping[str, Quantity]) -> None:
    """Consume more of a device."""
    consumed = capacity.setdefault(device, {})
    for name, amount in added.items():
        consumed[name] = consumed[name] + amount if name in consumed else amount


def remove_capacity(capacity: dict[DeviceId, Capacities], device: DeviceId, removed: Mapping[str, Quantity]) -> None:
    """Give some of it back; a device of which nothing is consumed is forgotten."""
    consumed = capacity.get(device)
    if consumed is None:
        return
    for name, amount in removed.items():
        if name in consumed:
            consumed[name] = consumed[name] - amount
    if not any(consumed.values()):
        del capacity[device]
