"""Candidate units in another order: those whose leaving makes whole places first, node by node.

The order of `victims` is the fairest, but room freed in that order may lie scattered: a cluster full of borrowers'
single pods would be cut by what may be taken, one pod here, one there, and no large pod would ever fit. Here, node by
node, cheapest first, come the units without which the node holds one more of the job's tasks, as often as can be;
nodes that are not for the job are left out.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from skysail.batch.model.job import Job, Task, TaskState
from skysail.batch.pausing import StepsTo
from skysail.batch.rows import signature
from skysail.batch.session import Session
from skysail.batch.victim_pool import Pool
from skysail.batch.victims import Unit

NODES_AT_ONCE: Final = 64
"""How many nodes are looked at between two pauses."""


def gathered(session: Session, job: Job, pool: Pool) -> StepsTo[list[Unit]]:
    """All units, those that make places together first; worked out once for jobs whose tasks are alike."""
    kinds = tuple(signature(session, task) for task in _kinds(session, job))
    known = pool.memo.get(("gathered", kinds))
    if not isinstance(known, tuple) or known[0] != session.moves:
        order = yield from _ordered(session, job, pool.units)
        known = pool.memo["gathered", kinds] = (session.moves, order)
    return known[1]  # type: ignore[no-any-return]


def _ordered(session: Session, job: Job, units: Sequence[Unit]) -> StepsTo[list[Unit]]:
    ranks = {id(unit): rank for rank, unit in enumerate(units)}
    by_node = _by_node(units)
    sets: list[tuple[int, int, str, list[Unit]]] = []
    for task in _kinds(session, job):
        allowed = session.could_ever(task) if session.could_ever is not None else None
        for number, (node, there) in enumerate(by_node.items(), 1):
            row = session.nodes.table.rows.get(node)
            if row is None or (allowed is not None and row < len(allowed) and not allowed[row]):
                continue
            sets += ((*key, node, found) for key, found in _places(session, node, row, there, task, ranks))
            if number % NODES_AT_ONCE == 0:
                yield from session.pause_within()
    sets.sort(key=lambda each: each[:3])
    order = dict.fromkeys(id(unit) for *_, found in sets for unit in found)
    chosen = {id(unit): unit for unit in units}
    return [chosen[key] for key in order] + [unit for unit in units if id(unit) not in order]


def _kinds(session: Session, job: Job) -> list[Task]:
    """One waiting task of each kind, those that ask for most first."""
    kinds = {signature(session, task): task for task in job.in_state(TaskState.PENDING)}
    return sorted(kinds.values(), key=lambda task: -sum(task.request.values()))


def _by_node(units: Sequence[Unit]) -> Mapping[str, list[Unit]]:
    found: dict[str, list[Unit]] = {}
    for unit in units:
        for node in dict.fromkeys(task.node for task in unit.tasks):
            found.setdefault(node, []).append(unit)
    return found


def _places(
    session: Session, node: str, row: int, units: Sequence[Unit], task: Task, ranks: Mapping[int, int]
) -> Iterator[tuple[tuple[int, int], list[Unit]]]:
    """Sets of a node's units, each of which makes one more place for the task, with what they cost.

    A set costs as many pods as leave, then what its costliest unit ranks; and no less than those of the node before it,
    without which it makes no place.
    """
    cost = (0, 0)
    amounts = session.nodes.table.amounts
    free = {name: int(amounts.free[amounts.line(name)][row]) for name in task.request}
    found: list[Unit] = []
    for unit in units:
        lacking = [name for name, need in task.request.items() if free[name] < need]
        freed = {name: sum(each.request.get(name, 0) for each in unit.tasks if each.node == node) for name in free}
        if lacking and not any(freed[name] for name in lacking):
            continue
        found.append(unit)
        free = {name: amount + freed[name] for name, amount in free.items()}
        if all(free[name] >= need for name, need in task.request.items()):
            cost = max(cost, (sum(len(each.tasks) for each in found), max(ranks[id(each)] for each in found)))
            yield cost, found
            found = []
            free = {name: amount - task.request[name] for name, amount in free.items()}
