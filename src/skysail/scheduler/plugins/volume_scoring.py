"""Scores a node by how full the storage is that a pod's claims would use there.

Source: pkg/scheduler/framework/plugins/volumebinding/scorer.go, v1.36.
"""

from collections.abc import Sequence
from typing import Final

from skysail.api.quantity import parse_quantity
from skysail.api.storage import CSIStorageCapacity
from skysail.api.volumes import claim_class, storage_capacity, storage_size
from skysail.scheduler.plugins.args import UtilizationShapePoint
from skysail.scheduler.plugins.resource_scoring import shape_table
from skysail.scheduler.plugins.volume_claims import PodVolumes

FULL: Final = 100
"""Utilisation in percent."""


class ClassScorer:
    """The scoring function of one shape.

    Args:
        shape: Utilisation in percent to points, in increasing order of utilisation.
    """

    def __init__(self, shape: Sequence[UtilizationShapePoint]) -> None:
        self._table = shape_table(shape) if shape else None

    def score(self, found: PodVolumes) -> int:
        """0..100, the mean over storage classes: free volumes count where there are any, else storage to make some."""
        use: dict[str, tuple[int, int]] = {}
        for binding in found.static:
            requested, capacity = use.get(binding.volume.spec.storage_class_name, (0, 0))
            use[binding.volume.spec.storage_class_name] = (
                requested + storage_size(binding.claim).value(),
                capacity + storage_capacity(binding.volume).value(),
            )
        if not found.static:
            for provision in found.provision:
                if provision.capacity is not None:
                    name = claim_class(provision.claim)
                    requested, _ = use.get(name, (0, 0))
                    use[name] = requested + storage_size(provision.claim).value(), _room(provision.capacity)
        if not use:
            return 0
        points = sum(self._points(requested, capacity) for requested, capacity in use.values())
        return int(points / len(use) + 0.5)

    def _points(self, requested: int, capacity: int) -> int:
        if self._table is None:
            return 0
        full = capacity == 0 or requested > capacity
        return int(self._table[FULL if full else requested * FULL // capacity])


def _room(capacity: CSIStorageCapacity) -> int:
    return parse_quantity(capacity.capacity).value() if capacity.capacity else 0
