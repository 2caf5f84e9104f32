"""Which taints a pod's tolerations put up with.

Source: k8s.io/api/core/v1 `Toleration.ToleratesTaint` and k8s.io/component-helpers/scheduling/corev1, v1.36.
"""

import re
from collections.abc import Callable, Iterable
from typing import Final

from skysail.api.core import Toleration
from skysail.api.intstr import parse_int64
from skysail.api.node import Taint

_PLAIN_INTEGER: Final = re.compile("0|-?[1-9][0-9]*")

SCHEDULING_EFFECTS: Final = frozenset({"NoSchedule", "NoExecute"})
"""The effects that keep a pod from being placed; `PreferNoSchedule` only costs points."""


def tolerates(toleration: Toleration, taint: Taint, comparison_operators: bool = False) -> bool:
    """Whether one toleration puts up with one taint.

    Args:
        toleration: An empty effect or key stands for all of them; an empty operator means Equal.
        taint: The taint.
        comparison_operators: Whether `Lt` and `Gt` count (gate TaintTolerationComparisonOperators); else they never
            tolerate anything.
    """
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    operator = toleration.operator
    if operator in ("", "Equal"):
        return toleration.value == taint.value
    if operator in ("Lt", "Gt") and comparison_operators:
        limit, number = _integer(toleration.value), _integer(taint.value)
        if limit is None or number is None:
            return False
        return number < limit if operator == "Lt" else number > limit
    return operator == "Exists"


def find_untolerated_taint(
    taints: Iterable[Taint],
    tolerations: Iterable[Toleration],
    applies: Callable[[Taint], bool] = lambda taint: taint.effect in SCHEDULING_EFFECTS,
    comparison_operators: bool = False,
) -> Taint | None:
    """The first taint that applies and that nothing tolerates; None when all are tolerated.

    Args:
        taints: In the node's order.
        tolerations: The pod's.
        applies: Which taints count; by default those that keep pods from being placed.
        comparison_operators: As in `tolerates`.
    """
    tolerations = tuple(tolerations)
    for taint in taints:
        if applies(taint) and not any(tolerates(each, taint, comparison_operators) for each in tolerations):
            return taint
    return None


def _integer(text: str) -> int | None:
    """A 64-bit integer in plain decimal: no plus sign, no leading zero."""
    return parse_int64(text) if _PLAIN_INTEGER.fullmatch(text) else None
