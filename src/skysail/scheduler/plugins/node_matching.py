"""Node selectors over the whole table: one look-up per label key and array operations, instead of a walk over nodes.

Equal, row by row, to `skysail.api.nodeselector`, which stays the oracle of the tests.
"""

import numpy as np
import numpy.typing as npt

from skysail.api.core import Pod
from skysail.api.labels import Requirement, Selector
from skysail.api.nodeselector import CompiledNodeSelector, CompiledTerm, compile_node_selector
from skysail.scheduler.cache.columns import ABSENT
from skysail.scheduler.cache.matrices import Rows
from skysail.scheduler.cache.table import NodeTable

Mask = npt.NDArray[np.bool_]


def match_requirement(requirement: Requirement, table: NodeTable, rows: Rows) -> Mask:
    """(n_rows,) bool: whether each node's label passes the test."""
    column = table.label(requirement.key)
    codes: npt.NDArray[np.int32] = column.codes[rows]
    operator, values = requirement.operator, requirement.values
    if operator in ("exists", "!"):
        absent: Mask = codes == ABSENT
        return absent if operator == "!" else ~absent
    if operator in ("=", "==", "in") and len(values) == 1:
        code = column.code_of(values[0])
        equal: Mask = codes == code
        return equal if code != ABSENT else np.zeros_like(equal)
    known = column.values
    passes = np.fromiter(
        (requirement.matches({requirement.key: value}) for value in known), dtype=np.bool_, count=len(known)
    )
    # The last place is what ABSENT (-1) picks.
    answers: Mask = np.append(passes, requirement.matches({}))[codes]
    return answers


def match_selector(selector: Selector, table: NodeTable, rows: Rows) -> Mask:
    """(n_rows,) bool: whether each node's labels satisfy every requirement."""
    result = all_rows(table, rows, selector.selectable)
    for requirement in selector.requirements:
        result &= match_requirement(requirement, table, rows)
    return result


def match_term(term: CompiledTerm, table: NodeTable, rows: Rows) -> Mask:
    """(n_rows,) bool: whether one term of a node selector admits each node; a faulty term admits none."""
    if term.errors:
        return all_rows(table, rows, False)
    result = match_selector(term.labels, table, rows) if term.labels is not None else all_rows(table, rows, True)
    if term.fields is not None:
        for row in np.flatnonzero(result):
            index = row if isinstance(rows, slice) else rows[row]
            result[row] = term.fields.matches({"metadata.name": table.names[index]}.get)
    return result


def match_node_selector(selector: CompiledNodeSelector, table: NodeTable, rows: Rows) -> Mask:
    """(n_rows,) bool: whether some term admits each node; faults in terms are passed over, as the scheduler does."""
    result = all_rows(table, rows, False)
    for term in selector.terms:
        result |= match_term(term, table, rows)
    return result


def match_required_affinity(pod: Pod, table: NodeTable, rows: Rows) -> Mask:
    """(n_rows,) bool: whether each node has what `nodeSelector` and required node affinity ask for."""
    spec = pod.spec
    if spec.node_selector:
        result = match_selector(Selector.from_set(spec.node_selector), table, rows)
    else:
        result = all_rows(table, rows, True)
    if spec.affinity is not None and spec.affinity.node_affinity is not None:
        required = spec.affinity.node_affinity.required_during_scheduling_ignored_during_execution
        if required is not None:
            result &= match_node_selector(compile_node_selector(required), table, rows)
    return result


def all_rows(table: NodeTable, rows: Rows, answer: bool) -> Mask:
    """(n_rows,) bool, all the same; `rows` as plugins get it (a slice starts at 0)."""
    count = rows.stop if isinstance(rows, slice) else len(rows)
    return np.full(count, answer, dtype=np.bool_)
