"""How a plugin answers for many nodes at once, and what its answer depends on."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from skysail.scheduler.cache.matrices import Rows
from skysail.scheduler.cache.table import NO_ROWS
from skysail.scheduler.framework.status import Status

CodeArray: TypeAlias = npt.NDArray[np.uint8]
ScoreArray: TypeAlias = npt.NDArray[np.int64]

MIN_NODE_SCORE = 0
MAX_NODE_SCORE = 100


class Reads(IntEnum):
    """What a plugin's Filter and Score look at, besides the pod: it decides how long an answer stays true.

    A plugin must not read more than it declares; the incremental path relies on it.
    """

    STATIC = 0
    """The row's Node object (labels, taints, allocatable). Asked again for a row when its Node changes."""
    ROW = 1
    """Also the row's use (its pods). Asked again for a row when anything on that node changes."""
    NODES = 2
    """The Node objects of all rows (how many nodes hold an image). Asked again for all rows when any Node changes."""
    GLOBAL = 3
    """Anything. Asked at every attempt, for all rows."""


@dataclass(frozen=True, slots=True)
class Codes:
    """The answer of a Filter for many rows.

    Attributes:
        codes: (n_rows,) uint8; 0 passes, k means `statuses[k - 1]`.
        statuses: The distinct refusals, without plugin name. When there are none every row passes, and `codes` is not
            looked at.
    """

    codes: CodeArray
    statuses: Sequence[Status] = ()

    @classmethod
    def refuse(cls, refused: npt.NDArray[np.bool_], status: Status) -> "Codes":
        """One reason for all refused rows."""
        return cls(refused.view(np.uint8), (status,))


ALL_PASS = Codes(NO_ROWS.astype(np.uint8))
"""Nothing to refuse, however many rows."""


def zero_scores(rows: Rows) -> ScoreArray:
    """(n_rows,) int64 zeros; `rows` as plugins get it (a slice starts at 0)."""
    return np.zeros(rows.stop if isinstance(rows, slice) else len(rows), dtype=np.int64)
