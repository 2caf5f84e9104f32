"""Zones: for jobs that must, or would rather, be together.

Zones are tried in the order of plugins' scores, then the tightest that may hold the job first. A job that runs already
stays in the zone it has. This is a stage of `allocateJob`; by itself the action has nothing to do.
"""

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

from skysail.batch.expressions import RowMask
from skysail.batch.model.job import HELD, Job, TaskState
from skysail.batch.model.outcome import Outcome, OutcomeCode
from skysail.batch.reasons import ROOM
from skysail.batch.rows import capacity, fitting, signature, times, zones
from skysail.batch.session import Arguments, Session

DOMAINS_TRIED: Final = 64
"""In how many domains a job is tried whose members must be near each other."""


class AllocateZone:
    """The action."""

    name = "allocateZone"

    def __init__(self, arguments: Arguments) -> None:
        self._arguments = arguments

    def initialize(self) -> None:
        """Nothing to do."""

    def execute(self, session: Session) -> None:
        """Nothing is left to do: jobs go through this stage one by one."""

    def uninitialize(self) -> None:
        """Nothing to do."""


def place_in_zone(session: Session, job: Job, attempt: Callable[[RowMask | None], bool]) -> bool:
    """Try a job in one zone after another; one that only prefers a zone is at last tried without.

    Args:
        session: Whose rows.
        job: The job.
        attempt: Places it on some rows (None is all); leaves nothing behind when it says False.
    """
    wish = job.spec.zone if job.spec is not None else None
    if wish is None or not (wish.required or wish.preferred):
        return attempt(None) or any(attempt(mask) for mask in affinity_domains(session, job))
    if any(attempt(mask) for _, mask in candidate_zones(session, job)):
        return True
    return not wish.required and attempt(None)


def affinity_domains(session: Session, job: Job) -> Iterator[RowMask]:
    """Domains in which a job whose members must be near each other may hold together, the tightest first.

    Members are placed one by one, and where the first goes the others must follow: so it is tried domain by domain.
    """
    tasks = job.in_state(TaskState.PENDING)
    labels = session.world.namespaces.get(job.namespace, {})
    terms = [term for task in tasks[:1] for term in task.info.required_affinity if term.matches(task.pod, labels)]
    table, lacking = session.nodes.table, max(0, job.min_member - job.counts().total)
    for key in dict.fromkeys(term.topology_key for term in terms):
        domains: dict[str, list[int]] = {}
        for row, info in enumerate(table.infos[: table.size]):
            value = info.node.metadata.labels.get(key) if info is not None and info.exists else None
            if value is not None:
                domains.setdefault(value, []).append(row)
        kinds = {signature(session, task): task for task in tasks}
        places = sum(times(session, task) for task in kinds.values())
        sizes = {value: int(np.take(places, rows).sum()) for value, rows in domains.items()}
        fitting_domains = [value for value in domains if sizes[value] >= lacking]
        for value in sorted(fitting_domains, key=lambda value: (sizes[value], value))[:DOMAINS_TRIED]:
            mask: RowMask = np.zeros(table.size, dtype=np.bool_)
            mask[domains[value]] = True
            yield mask


def candidate_zones(session: Session, job: Job) -> Iterator[tuple[str, RowMask]]:
    """Zones worth trying, best first."""
    level = job.spec.zone.level if job.spec is not None else ""
    known = zones(session, level)
    rows = session.nodes.table.rows
    used = [rows[task.node] for task in job.in_state(*HELD) if task.node in rows]
    pinned = [name for name, mask in known.items() if any(mask[row] for row in used)]
    places = _places(session, job, known)
    names = pinned or list(known)
    names.sort(key=lambda name: (-session.zone_order(job, name), places[name], name))
    lacking = max(0, job.min_member - job.counts().total)
    return ((name, known[name]) for name in names if places[name] >= lacking)


def _places(session: Session, job: Job, known: dict[str, RowMask]) -> dict[str, int]:
    """How many of the job's tasks each zone may hold, counting each kind of task for itself."""
    kinds = {signature(session, task): task for task in job.in_state(TaskState.PENDING)}
    found = dict.fromkeys(known, 0)
    for task in kinds.values():
        counts = capacity(session, task, fitting(session, task))
        for name, mask in known.items():
            found[name] += int(counts[mask].sum())
    return found


def no_topology(session: Session, job: Job) -> Outcome:
    """No zone holds the job."""
    level = (job.spec.zone.level if job.spec is not None else "") or session.configuration.zone_label
    known = zones(session, level if level != session.configuration.zone_label else "")
    places = _places(session, job, known)
    best = max(places.values(), default=0)
    need = max(0, job.min_member - job.counts().total)
    return Outcome(
        OutcomeCode.NO_TOPOLOGY,
        f"the best {level} holds {best} of {need} members" if known else f"no node has the label {level}",
        {"level": level, "best_fit": best, "need": need},
        next_events=ROOM,
    )
