"""Pods counted by topology domain, kept up to date as pods come and go.

The counting that upstream does anew for every pod by a walk over all nodes: here only rows that changed since the last
question are looked at, and everything is counted again only when a Node object changed.
"""

from collections.abc import Callable, Hashable
from typing import Literal

import numpy as np
import numpy.typing as npt

from skysail.scheduler.cache.columns import ABSENT, LabelColumn, PodColumn
from skysail.scheduler.cache.matrices import IntColumn, RowIndex
from skysail.scheduler.cache.table import NodeTable
from skysail.scheduler.framework.steps import Mask

Which = Literal["total", "live"]
NO_DOMAIN = np.iinfo(np.int64).max
"""Where `for_minimum` has no eligible node: larger than any count."""


class DomainCounts:
    """Counts of one column by the values of one label.

    Attributes:
        counts: (n_values + 1,) int64 by label code: pods on eligible rows of the domain; the last place is what ABSENT
            picks, and always 0.
        present: (n_values + 1,) bool: whether the domain has an eligible row; False in the last place.
        domains: How many domains are present.
        for_minimum: `counts`, NO_DOMAIN where the domain is not present.
        sum: Of all counts.
    """

    def __init__(self) -> None:
        self.counts: IntColumn = np.zeros(0, dtype=np.int64)
        self.present: npt.NDArray[np.bool_] = np.zeros(0, dtype=np.bool_)
        self.for_minimum: IntColumn = np.zeros(0, dtype=np.int64)
        self.domains = 0
        self.sum = 0
        self._column: PodColumn | None = None
        self._label: LabelColumn | None = None
        self._column_version = -1
        self._position = self._node_position = -1
        self._seen: npt.NDArray[np.int32] = np.zeros(0, dtype=np.int32)
        self._codes: npt.NDArray[np.int32] = np.zeros(0, dtype=np.int32)

    @property
    def minimum(self) -> int:
        """The smallest count of any present domain; NO_DOMAIN without one."""
        return int(self.for_minimum.min()) if self.domains else int(NO_DOMAIN)

    def refresh(
        self, table: NodeTable, label: str, column: PodColumn, which: Which, eligible: Callable[[], Mask] | None
    ) -> None:
        """Bring the counts up to date; the arguments but `table` are the same each time.

        Args:
            table: The nodes.
            label: The topology key.
            column: What is counted.
            which: Which of its arrays.
            eligible: (size,) bool, the rows that count, asked when Node objects changed; None is all.
        """
        values: npt.NDArray[np.int32] = getattr(column, which)
        changed = table.log.since(self._position)
        domains = table.label(label)
        same = column is self._column and domains is self._label
        if not same or self._node_position != table.node_log.end or changed is None:
            self._rebuild(table, domains, values, eligible)
            self._column, self._label = column, domains
            self._node_position = table.node_log.end
        elif column.version != self._column_version:
            self._follow(changed, values)
        self._column_version = column.version
        self._position = table.log.end

    def _rebuild(
        self,
        table: NodeTable,
        domains: LabelColumn,
        values: npt.NDArray[np.int32],
        eligible: Callable[[], Mask] | None,
    ) -> None:
        size = table.size
        codes = np.where(table.live[:size], domains.codes[:size], ABSENT)
        if eligible is not None:
            codes = np.where(eligible(), codes, ABSENT)
        counted = codes != ABSENT
        number = len(domains.values)
        self._codes, self._seen = codes, values[:size].copy()
        by_domain = np.bincount(codes[counted], weights=values[:size][counted], minlength=number + 1)
        self.counts = by_domain.astype(np.int64)
        self.present = np.bincount(codes[counted], minlength=number + 1) > 0
        self.for_minimum = np.where(self.present, self.counts, NO_DOMAIN)
        self.domains = int(np.count_nonzero(self.present))
        self.sum = int(self.counts.sum())

    def _follow(self, changed: RowIndex, values: npt.NDArray[np.int32]) -> None:
        for row in changed.tolist():
            difference = int(values[row]) - int(self._seen[row])
            if difference:
                self._seen[row] = values[row]
                code = self._codes[row]
                if code != ABSENT:
                    self.counts[code] += difference
                    self.for_minimum[code] += difference
                    self.sum += difference


def domain_counts(
    table: NodeTable,
    key: Hashable,
    label: str,
    column: PodColumn,
    which: Which = "total",
    eligible: Callable[[], Mask] | None = None,
) -> DomainCounts:
    """The counts kept under a key that names label, column and eligibility."""
    counts = table.remember(("domains", key, label, which), DomainCounts)
    counts.refresh(table, label, column, which, eligible)
    return counts
