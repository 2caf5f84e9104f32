"""Quantities as they are stored: one canonical text for one amount.

Source: pkg/apis/core/v1/defaults.go SetDefaults_ResourceList, v1.36.
"""

from functools import lru_cache

from skysail.api.quantity import Quantity, parse_quantity
from skysail.api.raw import Raw

_MILLI = 1_000_000


@lru_cache(maxsize=8192)
def canonical(value: str | int | float) -> str | int | float:
    """The canonical text of a quantity; what is none is handed back for validation to refuse."""
    try:
        return str(parse_quantity(str(value)))
    except ValueError:
        return value


@lru_cache(maxsize=8192)
def canonical_milli(value: str | int | float) -> str | int | float:
    """As `canonical`, rounded up to thousandths, as amounts in resource lists are."""
    try:
        quantity = parse_quantity(str(value))
    except ValueError:
        return value
    if quantity.nano % _MILLI:
        quantity = Quantity(-(-quantity.nano // _MILLI) * _MILLI, quantity.format)
    return str(quantity)


def resource_list(resources: Raw | None) -> None:
    """Bring every amount of a resource list into its stored form."""
    if resources:
        for name, amount in resources.items():
            if amount is not None:
                resources[name] = canonical_milli(amount)


def amounts(resources: Raw | None) -> None:
    """As `resource_list` without rounding, for lists that are not defaulted."""
    if resources:
        for name, amount in resources.items():
            if amount is not None:
                resources[name] = canonical(amount)


def requirements(holder: Raw) -> None:
    """Bring limits and requests of a `resources` block into their stored form."""
    resource_list(holder.get("limits"))
    resource_list(holder.get("requests"))
