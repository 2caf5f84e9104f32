"""What a pod asks for altogether: containers, init containers, sidecars, its own level.

Source: plugin/pkg/admission/limitranger/admission.go podRequests, podLimits, v1.36.
"""

from skysail.api.quantity import Quantity
from skysail.api.raw import Raw
from skysail.apiserver.strategies.defaults.pods import aggregate, amounts_of


def pod_amounts(spec: Raw, side: str) -> dict[str, Quantity]:
    """The pod's requests or limits (`side`), by resource; its own level wins over its containers."""
    total = aggregate(spec, side)
    for name, amount in amounts_of({"resources": spec.get("resources")}, side).items():
        if name in ("cpu", "memory") or name.startswith("hugepages-"):
            total[name] = amount
    return total
