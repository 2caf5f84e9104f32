"""Which parts of device allocation are switched on."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Features:
    """What the allocator may do; the defaults are those of 1.36."""

    admin_access: bool = True
    consumable_capacity: bool = True
    binding_conditions: bool = True
    device_taints: bool = True
    partitionable_devices: bool = True
    prioritized_list: bool = True
    extended_resources: bool = True
    filter_timeout: bool = True

    @classmethod
    def of(cls, gates: Mapping[str, bool]) -> "Features":
        """By feature gates."""
        return cls(
            admin_access=gates["DRAAdminAccess"],
            consumable_capacity=gates["DRAConsumableCapacity"],
            binding_conditions=gates["DRADeviceBindingConditions"] and gates["DRAResourceClaimDeviceStatus"],
            device_taints=gates["DRADeviceTaints"],
            partitionable_devices=gates["DRAPartitionableDevices"],
            prioritized_list=gates["DRAPrioritizedList"],
            extended_resources=gates["DRAExtendedResource"],
            filter_timeout=gates["DRASchedulerFilterTimeout"],
        )
