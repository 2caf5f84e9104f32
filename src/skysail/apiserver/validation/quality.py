"""A pod's quality of service, from its limits and requests of CPU and memory.

Source: pkg/apis/core/helper/qos/qos.go ComputePodQOS, v1.36.
"""

from collections.abc import Iterable

from skysail.api.quantity import Quantity, parse_quantity
from skysail.api.raw import Raw

_COMPUTE = ("cpu", "memory")


def qos_class(spec: Raw) -> str:
    """`Guaranteed`, `Burstable` or `BestEffort`."""
    if spec.get("resources"):
        return _of((spec["resources"],))
    holders = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    return _of([holder.get("resources") or {} for holder in holders])


def _of(blocks: Iterable[Raw]) -> str:
    requests: dict[str, Quantity] = {}
    limits: dict[str, Quantity] = {}
    guaranteed = True
    for block in blocks:
        _sum(requests, block.get("requests"))
        if _sum(limits, block.get("limits")) < len(_COMPUTE):
            guaranteed = False
    if not requests and not limits:
        return "BestEffort"
    if guaranteed and requests == limits:
        return "Guaranteed"
    return "Burstable"


def _sum(total: dict[str, Quantity], amounts: Raw | None) -> int:
    """Add the positive amounts of CPU and memory; how many of the two there were."""
    found = 0
    for name in _COMPUTE if amounts else ():
        text = (amounts or {}).get(name)
        if text is None:
            continue
        try:
            amount = parse_quantity(str(text))
        except ValueError:
            continue
        if amount.nano > 0:
            found += 1
            total[name] = total[name] + amount if name in total else amount
    return found
