"""Counters that the devices of a pool share: partitions of one card, say.

Source: k8s.io/dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go
    (`checkAvailableCounters`), v1.36.
Differs: the original tells pools apart by name alone, so that two drivers with a pool of the same name mix up their
    counters; here the driver counts too.
"""

from collections.abc import Iterable, Mapping

from skysail.api.quantity import Quantity, parse_quantity
from skysail.api.resource import Device, DeviceCounterConsumption, ResourceSlice
from skysail.scheduler.devices.pools import Pool, PoolId
from skysail.scheduler.devices.taken import Taken

CounterName = tuple[str, str]
"""Counter set and counter."""
Amounts = dict[CounterName, Quantity]


def available_counters(pool: Pool, taken: Taken) -> Amounts:
    """What allocated devices leave of a pool's counters; may be below zero."""
    left = {
        (sets.name, name): parse_quantity(counter.value)
        for sets in pool.counter_sets.values()
        for name, counter in sets.counters.items()
    }
    for device, each in _devices((*pool.slices, *pool.other_slices)):
        if device.consumes_counters and taken.is_allocated((each.spec.driver, each.spec.pool.name, device.name)):
            for key, amount in _consumed(device.consumes_counters):
                if key in left:
                    left[key] = left[key] - amount
    return left


def _devices(slices: Iterable[ResourceSlice]) -> Iterable[tuple[Device, ResourceSlice]]:
    for each in slices:
        for device in each.spec.devices:
            yield device, each


def _consumed(consumptions: Iterable[DeviceCounterConsumption]) -> Iterable[tuple[CounterName, Quantity]]:
    for consumption in consumptions:
        for name, counter in consumption.counters.items():
            yield (consumption.counter_set, name), parse_quantity(counter.value)


class Counters:
    """What an attempt consumes of shared counters.

    Args:
        taken: What is allocated already.
        available: What that leaves, by pool; filled as pools are looked at, to be shared by all nodes.
    """

    def __init__(self, taken: Taken, available: dict[PoolId, Amounts]) -> None:
        self._taken, self._available = taken, available
        self._consuming: dict[PoolId, Amounts] = {}

    def consume(self, pool: Pool, device: Device) -> bool:
        """Take what a device needs; False, and nothing taken, when some counter of the pool would not last."""
        available = self._available.get(pool.id)
        if available is None:
            available = self._available[pool.id] = available_counters(pool, self._taken)
        consuming = self._consuming.setdefault(pool.id, {})
        for key, amount in _consumed(device.consumes_counters):
            consuming[key] = consuming[key] + amount if key in consuming else amount
        if _lasts(available, consuming):
            return True
        self.give_back(pool, device)
        return False

    def give_back(self, pool: Pool, device: Device) -> None:
        """Undo `consume`."""
        consuming = self._consuming[pool.id]
        for key, amount in _consumed(device.consumes_counters):
            consuming[key] = consuming[key] - amount


def _lasts(available: Mapping[CounterName, Quantity], consuming: Mapping[CounterName, Quantity]) -> bool:
    return all(left >= consuming.get(key, _NOTHING) for key, left in available.items())


_NOTHING = Quantity(0)
