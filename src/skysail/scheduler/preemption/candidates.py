"""The search over nodes: where would evicting help?

Source: pkg/scheduler/framework/preemption/preemption.go `findCandidates`, `DryRunPreemption`, v1.36.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from skysail.scheduler.framework.codes import Reads
from skysail.scheduler.framework.containment import PluginFailed
from skysail.scheduler.framework.diagnosis import Diagnosis
from skysail.scheduler.framework.evaluation import run_filters
from skysail.scheduler.framework.status import Code, Status
from skysail.scheduler.preemption.resource_victims import only_resources_matter, select_resource_victims
from skysail.scheduler.preemption.victims import Search, Victims, select_victims


@dataclass(slots=True)
class Candidates:
    """What the search found.

    Attributes:
        victims: By node name: those that break no budget first, each group in the order of the search.
        failures: By node name, why evicting does not help there.
        errors: What went wrong on the way.
    """

    victims: dict[str, Victims] = field(default_factory=dict)
    failures: dict[str, Status] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)


def potential_rows(search: Search, diagnosis: Diagnosis) -> list[int]:
    """Rows whose refusal evictions may lift, in row order."""
    rows = search.table.rows
    return [rows[name] for name in diagnosis.nodes_with_code(Code.UNSCHEDULABLE, rows)]


def find_candidates(search: Search, rows: Sequence[int], offset: int, wanted: int, *, quick: bool = True) -> Candidates:
    """Search for victims, node by node.

    Args:
        search: Who wants room, and where.
        rows: Where to look.
        offset: Where in `rows` to begin.
        wanted: Candidates that are enough, as long as one of them breaks no budget.
        quick: False runs the Filter plugins also where arithmetic would do; the answer is the same.
    """
    arithmetic = quick and only_resources_matter(search)
    refused = _refused_by_node_object(search, rows) if arithmetic else {}
    clean: dict[str, Victims] = {}
    violating: dict[str, Victims] = {}
    found = Candidates()
    for index in range(len(rows)):
        row = rows[(offset + index) % len(rows)]
        name = search.table.names[row]
        victims, status = _select(search, row, refused, arithmetic, found)
        if victims is None:
            found.failures[name] = status
            continue
        (violating if victims.violations else clean)[name] = victims
        if clean and len(clean) + len(violating) >= wanted:
            break
    found.victims = {**clean, **violating}
    return found


def _select(
    search: Search, row: int, refused: dict[int, Status], arithmetic: bool, found: Candidates
) -> tuple[Victims | None, Status]:
    try:
        if arithmetic and row not in refused:
            victims, status = select_resource_victims(search, row)
        else:
            victims, status = select_victims(search, row)
    except PluginFailed as failure:
        victims, status = None, failure.status()
    if status.is_error:
        found.errors.append(status.message)
    return victims, status


def _refused_by_node_object(search: Search, rows: Sequence[int]) -> dict[int, Status]:
    """Rows refused by a plugin that reads only the Node object: evicting pods would not change that."""
    steps = [step for step in search.framework.filters if step.reads is Reads.STATIC]
    index = np.array(rows, dtype=np.intp)
    filtered = run_filters(steps, search.state, search.pod, search.table, index)
    return {
        row: filtered.statuses[int(number)] for row, number in zip(rows, filtered.first, strict=True) if int(number)
    }
