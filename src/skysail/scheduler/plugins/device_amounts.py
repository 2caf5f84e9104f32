"""Extended resources that devices stand for, where resources are compared and scored.

A node that offers such a resource itself is treated as ever. On all others the resource is none of NodeResourcesFit's
business, and for scoring a node offers as many as it can reach devices of the class.

Source: pkg/scheduler/framework/plugins/noderesources/{fit,resource_allocation}.go, v1.36.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from skysail.api.resource import DeviceClass
from skysail.scheduler.cache.matrices import IntMatrix, Rows
from skysail.scheduler.cache.table import NodeTable
from skysail.scheduler.devices.taken import Taken
from skysail.scheduler.framework.steps import index_of
from skysail.scheduler.plugins.device_account import DeviceAccount, is_class_resource


@dataclass(frozen=True, slots=True)
class DeviceAmounts:
    """What devices add to the amounts of some resources.

    Attributes:
        account: Of devices.
        taken: Those allocated.
        classes: The class behind a resource, by the resource's place among those compared.
    """

    account: DeviceAccount
    taken: Taken
    classes: Sequence[tuple[int, DeviceClass]]

    def added(
        self, table: NodeTable, rows: Rows, requested: IntMatrix, offered: IntMatrix, needs: IntMatrix | None
    ) -> tuple[IntMatrix, IntMatrix]:
        """Copies of `requested` and `offered` with devices counted in where a node offers nothing itself.

        Args:
            table: The nodes.
            rows: Which.
            requested: (n_resources, n_rows) int64, `needs` included.
            offered: Likewise.
            needs: (n_resources, 1) int64, what the pod adds; None is nothing.
        """
        requested, offered = requested.copy(), offered.copy()
        index = index_of(rows)
        for place, device_class in self.classes:
            need = int(needs[place, 0]) if needs is not None else 0
            for at in np.flatnonzero(offered[place] == 0):
                info = table.infos[int(index[at])]
                if info is None:
                    continue
                total, allocated = self.account.totals(info.node, device_class, self.taken)
                if total:
                    offered[place, at], requested[place, at] = total, allocated + need
        return requested, offered


def backed_resources(account: DeviceAccount, names: Iterable[str]) -> dict[str, DeviceClass]:
    """Which of these resources a class stands for."""
    found = {}
    for name in names:
        device_class = account.class_of(name) if is_class_resource(name) else None
        if device_class is not None:
            found[name] = device_class
    return found


def amounts_of(account: DeviceAccount, names: Sequence[str]) -> DeviceAmounts | None:
    """What devices add to these resources; None when none of them is backed by a class."""
    backed = backed_resources(account, names)
    if not backed:
        return None
    account.refresh_slices()
    classes = tuple((place, backed[name]) for place, name in enumerate(names) if name in backed)
    return DeviceAmounts(account, account.taken(), classes)


def device_signature(account: DeviceAccount, requested: Iterable[str], scored: Iterable[str]) -> Hashable:
    """What of the devices a pod's answers depend on; None for pods without such resources.

    Args:
        account: Of devices.
        requested: The resources the pod asks for.
        scored: Those that scoring looks at.
    """
    backed = backed_resources(account, requested)
    if not backed:
        return None
    version = account.version() if not backed.keys().isdisjoint(scored) else 0
    return tuple(sorted(backed)), version
