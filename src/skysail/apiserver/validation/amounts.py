"""What a pod asks for altogether: containers, init containers, sidecars, its own level.

Source: k8s.io/component-helpers/resource/helpers.go AggregateContainerRequests, v1.36.
"""

from skysail.api.quantity import Quantity, parse_quantity
from skysail.api.raw import Raw


def pod_amounts(spec: Raw, side: str) -> dict[str, Quantity]:
    """The pod's requests or limits (`side`), by resource; its own level wins over its containers."""
    total = aggregate(spec, side)
    for name, amount in amounts_of({"resources": spec.get("resources")}, side).items():
        if name in ("cpu", "memory") or name.startswith("hugepages-"):
            total[name] = amount
    return total


def aggregate(spec: Raw, side: str) -> dict[str, Quantity]:
    """Requests or limits of all containers: the sum with sidecars, at least what the init phase needs."""
    total: dict[str, Quantity] = {}
    for item in spec.get("containers") or ():
        _add(total, amounts_of(item, side))
    sidecars: dict[str, Quantity] = {}
    peak: dict[str, Quantity] = {}
    for item in spec.get("initContainers") or ():
        needed = amounts_of(item, side)
        if item.get("restartPolicy") == "Always":
            _add(total, needed)
            _add(sidecars, needed)
            needed = dict(sidecars)
        else:
            _add(needed, sidecars)
        for name, amount in needed.items():
            if name not in peak or amount > peak[name]:
                peak[name] = amount
    for name, amount in peak.items():
        if name not in total or amount > total[name]:
            total[name] = amount
    return total


def amounts_of(item: Raw, side: str) -> dict[str, Quantity]:
    """The readable amounts of `item["resources"][side]`."""
    amounts: dict[str, Quantity] = {}
    for name, text in ((item.get("resources") or {}).get(side) or {}).items():
        try:
            amounts[name] = parse_quantity(str(text))
        except ValueError:
            continue
    return amounts


def _add(total: dict[str, Quantity], amounts: dict[str, Quantity]) -> None:
    for name, amount in amounts.items():
        total[name] = total[name] + amount if name in total else amount
