"""What one kind of task finds on the rows: where it fits, how often, how well.

Tasks of one signature share an answer. As long as no room came free in the session, what did not fit does not fit, so
an answer stays an upper bound while others allocate.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from skysail.batch.expressions import RowMask, RowScores
from skysail.batch.model.job import Task
from skysail.batch.model.resources import PODS
from skysail.batch.session import Session

Times = npt.NDArray[np.int64]


def takes_turns(session: Session, task: Task) -> bool:
    """Whether placing one such task changes where the next may go, beyond the room it takes."""
    spec, info = task.pod.spec, task.info
    if info.has_affinity or spec.topology_spread_constraints or spec.volumes or spec.resource_claims:
        return True
    return any(says(task) for says in session.turns)


def fitting(session: Session, task: Task) -> RowMask:
    """(size,) bool: rows where one such task may run now."""
    table = session.nodes.table
    mask = session.predicate(task)
    live = table.live[: table.size]
    return live.copy() if mask is None else mask & live


def fitting_ever(session: Session, task: Task) -> RowMask:
    """(size,) bool: rows outside which such a task will not run whoever leaves."""
    known = session.memo.get(("ever", signature(session, task)))
    if isinstance(known, np.ndarray):
        return known
    table, expression = session.nodes.table, session.expression("predicate")
    mask: RowMask = table.live[: table.size].copy()
    vetoes = (expression, *expression.arguments) if expression is not None and expression.word == "and" else ()
    has_say = any(each is not None and each.word == "predicates" for each in (*vetoes, expression))
    if has_say and session.could_ever is not None and not takes_turns(session, task):
        mask &= session.could_ever(task)
    session.memo["ever", signature(session, task)] = mask
    return mask


def times(session: Session, task: Task, *, empty: bool = False) -> Times:
    """(size,) int64: how many such tasks a row's free resources hold, whatever else forbids it.

    Args:
        session: Whose rows.
        task: One of them.
        empty: As if nothing ran there.
    """
    amounts, size = session.nodes.table.amounts, session.nodes.table.size
    found: Times | None = None
    matrix = amounts.allocatable if empty else amounts.free
    for resource, need in task.request.items():
        fits = matrix[amounts.line(resource)][:size] // need
        matrix = amounts.allocatable if empty else amounts.free
        found = fits if found is None else np.minimum(found, fits)
    assert found is not None, f"a task asks for {PODS} at least"
    return np.maximum(found, 0)


def capacity(session: Session, task: Task, mask: RowMask) -> Times:
    """(size,) int64: how many such tasks each row holds; rows outside the mask hold none."""
    found = np.where(mask, times(session, task), 0)
    if task.info.host_ports:
        found = np.minimum(found, 1)
    return found


def ranked(session: Session, task: Task, counts: Times) -> npt.NDArray[np.intp]:
    """Rows that hold at least one, best first: by score, then by node name."""
    rows = np.flatnonzero(counts)
    if len(rows) <= 1:
        return rows
    scores: RowScores | None = session.node_order(task)
    rank = session.nodes.name_rank()[rows]
    if scores is None:
        return rows[np.argsort(rank, kind="stable")]
    return rows[np.lexsort((rank, -scores[rows]))]


@dataclass(slots=True)
class Bound:
    """How many tasks of a signature the whole cluster holds at most.

    Attributes:
        count: Tasks.
        released: The session's count of releases when it was taken; a later one makes it worthless.
    """

    count: int
    released: int


def at_most(session: Session, task: Task) -> int | None:
    """A known upper bound on how many such tasks fit anywhere, or None when nothing is known."""
    bound = session.memo.get(("bound", signature(session, task)))
    if isinstance(bound, Bound) and bound.released == session.nodes.released:
        return bound.count
    return None


def remember_bound(session: Session, task: Task, count: int) -> None:
    """Note such a bound."""
    session.memo["bound", signature(session, task)] = Bound(count, session.nodes.released)


def signature(session: Session, task: Task) -> object:
    """Equal for tasks that ask for the same and fit the same rows; remembered for the session."""
    known = session.memo.get(task.uid)
    if known is None:
        known = session.memo[task.uid] = (id(task.request), session.signer(task))
    return known


def flavor_rows(session: Session, flavor: str) -> RowMask:
    """(size,) bool: rows of nodes of a flavor."""
    table, flavors = session.nodes.table, session.world.flavors
    key = ("flavor", flavor)
    version = (flavors.version, table.node_log.end, table.size)
    known = table.memo.get(key)
    if isinstance(known, tuple) and known[0] == version:
        return known[1]  # type: ignore[no-any-return]
    mask = np.array([flavors.of(name) == flavor for name in table.names], dtype=np.bool_)
    table.memo[key] = (version, mask)
    return mask


def rows_of(session: Session, nodes: Iterable[str]) -> RowMask:
    """(size,) bool: the rows of these nodes."""
    mask: RowMask = np.zeros(session.nodes.table.size, dtype=np.bool_)
    mask[session.nodes.rows_of(nodes)] = True
    return mask


def zones(session: Session, level: str = "") -> dict[str, RowMask]:
    """Rows by zone: the values of a node label."""
    table, label = session.nodes.table, level or session.configuration.zone_label
    key, version = ("zones", label), (table.node_log.end, table.size)
    known = table.memo.get(key)
    if isinstance(known, tuple) and known[0] == version:
        return known[1]  # type: ignore[no-any-return]
    found: dict[str, list[int]] = {}
    for row, info in enumerate(table.infos[: table.size]):
        value = info.node.metadata.labels.get(label) if info is not None else None
        if value:
            found.setdefault(value, []).append(row)
    masks = {}
    for value in sorted(found):
        masks[value] = np.zeros(table.size, dtype=np.bool_)
        masks[value][found[value]] = True
    table.memo[key] = (version, masks)
    return masks
