"""How much of a device's capacity a request consumes, and whether that much is left.

Source: k8s.io/dynamic-resource-allocation/structured/internal/incubating/consumable_capacity.go, v1.36.
"""

from collections.abc import Mapping

from skysail.api.quantity import Format, Quantity, parse_quantity
from skysail.api.resource import CapacityRequestPolicyRange, CapacityRequirements, DeviceCapacity

_EMPTY: Mapping[str, Quantity] = {}


def fits(
    consumed: Mapping[str, Quantity] | None,
    allocating: Mapping[str, Quantity] | None,
    wanted: CapacityRequirements | None,
    offered: Mapping[str, DeviceCapacity],
) -> bool:
    """Whether a device has room for one more request.

    Args:
        consumed: What allocated claims consume of it.
        allocating: What this attempt consumes so far.
        wanted: What the request wants.
        offered: What the device has.
    """
    if wanted is not None and any(name not in offered for name in wanted.requests):
        return False
    for name, capacity in offered.items():
        if wanted is None and capacity.request_policy is None and not consumed and not allocating:
            continue  # all of it is wanted, and all of it is there
        amount = consumption(wanted, name, capacity)
        if _violates(amount, capacity):
            return False
        used = (consumed or _EMPTY).get(name, _NOTHING).nano + (allocating or _EMPTY).get(name, _NOTHING).nano
        if amount.nano + used > parse_quantity(capacity.value).nano:
            return False
    return True


_NOTHING = Quantity(0)


def consumptions(wanted: CapacityRequirements | None, offered: Mapping[str, DeviceCapacity]) -> dict[str, Quantity]:
    """What a request consumes of every capacity of a device."""
    return {name: consumption(wanted, name, capacity) for name, capacity in offered.items()}


def consumption(wanted: CapacityRequirements | None, name: str, capacity: DeviceCapacity) -> Quantity:
    """What a request consumes of one capacity: what it wants, rounded up as the device's policy says."""
    text = wanted.requests.get(name) if wanted is not None else None
    policy = capacity.request_policy
    if text is None:
        return parse_quantity(policy.default if policy is not None and policy.default is not None else capacity.value)
    amount = parse_quantity(text)
    if policy is None:
        return amount
    if policy.valid_range is not None and policy.valid_range.min is not None:
        return _rounded_up(amount, policy.valid_range)
    for valid in map(parse_quantity, policy.valid_values):
        if amount <= valid:
            return valid
    return amount


def _rounded_up(amount: Quantity, valid: CapacityRequestPolicyRange) -> Quantity:
    assert valid.min is not None
    least = parse_quantity(valid.min)
    if amount < least:
        return least
    if valid.step is None:
        return amount
    step = parse_quantity(valid.step).value()
    steps = -(-(amount.value() - least.value()) // step)
    return Quantity.of(least.value() + step * steps, Format.BINARY_SI)


def _violates(amount: Quantity, capacity: DeviceCapacity) -> bool:
    policy = capacity.request_policy
    if policy is None or (policy.default is not None and amount == parse_quantity(policy.default)):
        return False
    valid = policy.valid_range
    if valid is not None:
        if valid.max is not None and amount > parse_quantity(valid.max):
            return True
        if valid.step is None or valid.min is None:
            return False
        return (amount.value() - parse_quantity(valid.min).value()) % parse_quantity(valid.step).value() != 0
    return bool(policy.valid_values) and all(amount != parse_quantity(each) for each in policy.valid_values)
