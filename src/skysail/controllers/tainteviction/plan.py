"""When a pod has to leave a tainted node.

Source: pkg/controller/tainteviction/taint_eviction.go, v1.36.
"""

from collections.abc import Iterable, Sequence

from skysail.api.core import Toleration
from skysail.api.node import Taint
from skysail.api.tolerations import tolerates

NO_EXECUTE = "NoExecute"


def no_execute_taints(taints: Iterable[Taint]) -> tuple[Taint, ...]:
    """The taints that drive pods away."""
    return tuple(taint for taint in taints if taint.effect == NO_EXECUTE)


def eviction_delay(taints: Iterable[Taint], tolerations: Sequence[Toleration]) -> float | None:
    """How long a pod may stay on a node with these taints, in seconds; None for ever.

    Of several tolerations that match one taint the first in the list counts. Of all that count, the shortest decides.
    """
    used: list[Toleration] = []
    for taint in taints:
        matching = next((item for item in tolerations if tolerates(item, taint)), None)
        if matching is None:
            return 0.0
        used.append(matching)
    limits = [item.toleration_seconds for item in used if item.toleration_seconds is not None]
    return float(max(0, min(limits))) if limits else None
