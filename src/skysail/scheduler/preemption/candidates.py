"""The search over nodes: where would evicting help?

Source: pkg/scheduler/framework/preemption/preemption.go `findCandidates`, `DryRunPreemption`, v1.36.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from skysail.scheduler.framework.codes import Reads
from skysail.scheduler.framework.containment import PluginFailed
from skysail.scheduler.framework.diagnosis import Diagnosis, NodeStatuses
from skysail.scheduler.framework.evaluation import run_filters
from skysail.scheduler.framework.status import SUCCESS, Code, Status
from skysail.scheduler.preemption.resource_victims import Selected, only_resources_matter, select_resource_victims
from skysail.scheduler.preemption.victims import Search, Victims, select_victims


@dataclass(slots=True)
class Candidates:
    """What the search found. Attempts are kept, and this with them: nodes that fail alike share one status.

    Attributes:
        victims: By node name: those that break no budget first, each group in the order of the search.
        failures: By node name, why evicting does not help there.
        errors: What went wrong on the way.
    """

    victims: dict[str, Victims] = field(default_factory=dict)
    failures: NodeStatuses = field(default_factory=lambda: gather([], []))
    errors: list[str] = field(default_factory=list)


def gather(names: Sequence[str], statuses: Sequence[Status]) -> NodeStatuses:
    """Refusals side by side with the names of their nodes, each distinct one kept once."""
    numbers = {SUCCESS: 0}
    objects = {id(status): status for status in statuses}  # few: mostly they are shared, and hashing one takes a while
    by_id = {key: numbers.setdefault(status, len(numbers)) for key, status in objects.items()}
    places = list(map(by_id.__getitem__, map(id, statuses)))
    return NodeStatuses(names, np.array(places, dtype=np.min_scalar_type(len(numbers))), list(numbers))


def potential_rows(search: Search, diagnosis: Diagnosis) -> list[int]:
    """Rows whose refusal evictions may lift, in row order."""
    statuses, table = diagnosis.node_statuses, search.table
    if statuses.names is table.all_names() and not diagnosis.has_other_refusals(Code.UNSCHEDULABLE):
        return statuses.places_with_code(Code.UNSCHEDULABLE)  # of all rows, so that places are rows
    rows = table.rows
    names = diagnosis.nodes_with_code(Code.UNSCHEDULABLE, rows)
    return list(map(rows.__getitem__, names))


def find_candidates(search: Search, rows: Sequence[int], offset: int, wanted: int, *, quick: bool = True) -> Candidates:
    """Search for victims, node by node.

    Args:
        search: Who wants room, and where.
        rows: Where to look.
        offset: Where in `rows` to begin.
        wanted: Candidates that are enough, as long as one of them breaks no budget; of those that break one no more
            are kept. With 0 none is.
        quick: False runs the Filter plugins also where arithmetic would do; the answer is the same.
    """
    order = [*rows[offset:], *rows[:offset]]
    selected = _quickly(search, order, wanted) if quick and only_resources_matter(search) else _plainly(search, order)
    clean: dict[str, Victims] = {}
    violating: dict[str, Victims] = {}
    names, failures, errors = list[str](), list[Status](), list[str]()
    for row, (victims, status) in zip(order, selected, strict=False):
        name = search.table.names[row]
        if status.is_error:
            errors.append(status.message)
        if victims is None:
            names.append(name)
            failures.append(status)
            continue
        kept = violating if victims.violations else clean
        if len(kept) < wanted:
            kept[name] = victims
        if clean and len(clean) + len(violating) >= wanted:
            break
    return Candidates({**clean, **violating}, gather(names, failures), errors)


def _plainly(search: Search, rows: Sequence[int]) -> Iterator[Selected]:
    """Node by node, by running the Filter plugins."""
    for row in rows:
        try:
            yield select_victims(search, row)
        except PluginFailed as failure:
            yield None, failure.status()


def _quickly(search: Search, rows: Sequence[int], at_once: int) -> Iterator[Selected]:
    """By arithmetic, so many nodes at once; node by node where evictions cannot change the answer."""
    size = max(at_once, 1)
    for begin in range(0, len(rows), size):
        part = rows[begin : begin + size]
        refused = _refused_by_node_object(search, part)
        open_rows = [row for row in part if row not in refused]
        by_row = dict(zip(open_rows, select_resource_victims(search, open_rows), strict=True)) if open_rows else {}
        for row in part:
            if row in by_row:
                yield by_row[row]
            else:
                yield from _plainly(search, [row])


def _refused_by_node_object(search: Search, rows: Sequence[int]) -> frozenset[int]:
    """Rows refused by a plugin that reads only the Node object: evicting pods would not change that."""
    steps = [step for step in search.framework.filters if step.reads is Reads.STATIC]
    filtered = run_filters(steps, search.state, search.pod, search.table, np.array(rows, dtype=np.intp))
    return frozenset(row for row, passes in zip(rows, filtered.passing.tolist(), strict=True) if not passes)
