"""Finds places for a job's tasks, all of its minimum or nothing, inside a Statement.

Equal tasks are placed together: one question to predicates and scorers for all of them, then nodes are filled in the
order of their scores, each with as many as it holds. Tasks whose places depend on each other (pod affinity, spread,
volumes) go one by one.
Differs: nodes are scored once for a batch of equal tasks, not again after each; with `binpack` the order is the same.

The order in which parts of a gang are placed matters when they compete: the parts with the fewest places go first, and
when a part finds none it is moved to the front and all is tried again, at most once for each part.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from skysail.batch.expressions import RowMask, passes
from skysail.batch.ledger import Refusal
from skysail.batch.model.job import Counts, Job, Task, TaskState
from skysail.batch.model.quorum import leaves
from skysail.batch.model.resources import DEFAULT_FLAVOR
from skysail.batch.model.specs import PodGroupSpec
from skysail.batch.rows import (
    Times,
    at_most,
    capacity,
    fitting,
    flavor_rows,
    ranked,
    remember_bound,
    signature,
    takes_turns,
)
from skysail.batch.session import Session
from skysail.batch.statement import Statement

Put = Callable[[Job, Sequence[Task], str], Refusal | None]
"""`statement.allocate` or `statement.pipeline`."""


@dataclass(slots=True)
class Shortage:
    """Why not all tasks of a batch found a place.

    Attributes:
        task: One of those left over.
        need: How many were wanted.
        have: How many found one.
        refusal: The ledger's, when it was not for lack of nodes.
        words: What a plugin said, when it was neither.
        lacks_slot: Whether it was for lack of a slot.
    """

    task: Task
    need: int
    have: int
    refusal: Refusal | None = None
    words: str = ""
    lacks_slot: bool = False


class SlotFinder(Protocol):
    """Seats tasks in slots."""

    def seat(self, placer: "Placer", task: Task) -> bool:
        """Put one task into a slot, bound or to be bound; whether that could be done."""
        ...


@dataclass(slots=True)
class Part:
    """Equal tasks of a job, and how many of them are wanted at least."""

    tasks: list[Task]
    need: int = 0

    def cut(self, number: int) -> "Part":
        """The first so many tasks, all of them wanted."""
        return Part(self.tasks[:number], number)


@dataclass(slots=True)
class Placer:
    """Places tasks of one job.

    Attributes:
        session: Whose rows.
        job: Whose tasks.
        statement: What changes go through.
        put: How: allocate, or pipeline.
        rows: Only these; None is all.
        limit: (size,) int64: at most so many tasks of any kind a row; None is as many as fit.
        claiming: Whether room is only promised, so that what is leaving does not count against limits.
        slots: Where the queue's users define Quotas: finds a slot for a task; None places on bare room.
        placed: Tasks placed so far, with their nodes, in order.
        shortage: The last one.
    """

    session: Session
    job: Job
    statement: Statement
    put: Put
    rows: RowMask | None = None
    limit: Callable[[Task], Times] | None = None
    slots: SlotFinder | None = None
    claiming: bool = False
    placed: list[tuple[Task, str]] = field(default_factory=list)
    shortage: Shortage | None = None

    def place(self, tasks: Sequence[Task], want: int) -> int:
        """Place up to `want` of these equal tasks; returns how many."""
        if self.slots is not None:
            done = next((i for i, task in enumerate(tasks[:want]) if not self.slots.seat(self, task)), want)
            if done < want:
                self.shortage = Shortage(tasks[done], want, done, lacks_slot=True)
        elif takes_turns(self.session, tasks[0]):
            done = next((i for i, task in enumerate(tasks[:want]) if not self._place_some([task], 1)), want)
        else:
            done = self._place_some(tasks, want)
        if done < want and self.shortage is not None:
            self.shortage.need, self.shortage.have = want, done
        return done

    def _place_some(self, tasks: Sequence[Task], want: int) -> int:
        task, done = tasks[0], 0
        if at_most(self.session, task) == 0:
            self.shortage = Shortage(task, want, 0, self._ledger_refusal(task))
            return 0
        mask = fitting(self.session, task)
        if not len(self.statement) and not takes_turns(self.session, task):
            remember_bound(self.session, task, int(capacity(self.session, task, mask).sum()))
        mask = self._without_distrusted(mask)
        if self.rows is not None:
            mask = mask & self.rows
        for flavor in self._flavors():
            rows = mask if flavor == "" else mask & flavor_rows(self.session, flavor)
            done += self._place_in_flavor(tasks[done:], want - done, rows, flavor or DEFAULT_FLAVOR)
            if done == want:
                break
        return done

    def _ledger_refusal(self, task: Task) -> Refusal | None:
        """What the ledger says to one such task, where there is only one flavor to say it of."""
        flavors = self._flavors()
        if len(flavors) > 1:
            return None
        session = self.session
        vector = session.world.vector_of(task.request, flavors[0] or DEFAULT_FLAVOR)
        path = session.world.path_of_job(self.job)
        room, refusal = session.world.ledger.room(path, vector, releasing_counts=not self.claiming)
        return refusal if room == 0 else None

    def _flavors(self) -> tuple[str, ...]:
        """Flavors to try in order; one empty name when there is only one in the cluster."""
        queue, flavors = self.session.queue_of(self.job), self.session.world.flavors
        if queue.spec.flavors:
            return queue.spec.flavors
        names = flavors.names
        return names if len(names) > 1 else ("",)

    def _place_in_flavor(self, tasks: Sequence[Task], want: int, mask: RowMask, flavor: str) -> int:
        session, task = self.session, tasks[0]
        queue = session.queue_of(self.job)
        vector = session.world.vector_of(task.request, flavor)
        path = session.world.path_of_job(self.job)
        room, refusal = session.world.ledger.room(path, vector, releasing_counts=not self.claiming)
        allowed = want if room is None else min(want, room)
        if not allowed:
            self.shortage = Shortage(task, want, 0, refusal)
            return 0
        verdict = session.allocatable(queue, self.job, vector * allowed)
        if not passes(verdict):
            self.shortage = Shortage(task, want, 0, words=getattr(verdict, "message", "") or "not allocatable")
            return 0
        counts = capacity(session, task, mask)
        if self.limit is not None:
            counts = np.minimum(counts, self.limit(task))
        done = self._fill(tasks, allowed, counts)
        if done < allowed:
            self.shortage = Shortage(task, want, done)
        elif done < want:
            self.shortage = Shortage(task, want, done, refusal)
        return done

    def _fill(self, tasks: Sequence[Task], want: int, counts: Times) -> int:
        done = 0
        names = self.session.nodes.table.names
        for row in ranked(self.session, tasks[0], counts):
            number = min(int(counts[row]), want - done)
            batch, node = tasks[done : done + number], names[int(row)]
            refusal = self.put(self.job, batch, node)
            if refusal is not None and refusal.words:
                continue
            if refusal is not None:
                break
            self.placed += [(task, node) for task in batch]
            done += number
            if done == want:
                break
        return done

    def _without_distrusted(self, mask: RowMask) -> RowMask:
        world, table = self.session.world, self.session.nodes.table
        pairs = [node for key, node in world.distrust if key == self.job.key]
        bad = [table.rows[node] for node in pairs if node in table.rows and world.is_distrusted(self.job, node)]
        if bad:
            mask = mask.copy()
            mask[bad] = False
        return mask

    # -- minima ----------------------------------------------------------------------------------------------------

    def place_minimum(self) -> bool:
        """Place what the job lacks for its minimum; on False everything is as before."""
        mark, kept = self.statement.checkpoint(), len(self.placed)
        first: list[int] = []
        parts = self._needed_parts()
        for _ in range(len(parts) + 1):
            failed = self._try(parts, first)
            if failed is None:
                return True
            self.statement.rollback(mark)
            del self.placed[kept:]
            if failed in first or failed < 0:
                return False
            first.insert(0, failed)
        return False

    def _try(self, parts: Sequence[Part], first: Sequence[int]) -> int | None:
        """Place all parts; None when that is enough, else the part that found too little (-1: it is the sum)."""
        counts = self.job.counts()
        order = [*first, *(index for index in range(len(parts)) if index not in first)]
        failed: int | None = None
        for index in order:
            part = parts[index]
            bound = at_most(self.session, part.tasks[0]) if part.need else None
            if bound is not None and bound < part.need and self._must_all():
                self.shortage = Shortage(part.tasks[0], part.need, bound, self._ledger_refusal(part.tasks[0]))
                return index
            mark, kept = self.statement.checkpoint(), len(self.placed)
            done = self.place(part.tasks, part.need) if part.need else 0
            if done < part.need and not self._must_all():
                self.statement.rollback(mark)  # half of a sub-group helps nobody, the others may be enough
                del self.placed[kept:]
                failed, done = (index if failed is None else failed), 0
            for task in part.tasks[:done]:
                counts.add(task)
            if done < part.need and failed is None:
                failed = index
                if self._must_all():  # nothing can make up for it
                    return failed
        missing = self.job.min_member - counts.total
        if missing > 0:
            missing = self._fill_up(missing, counts)
        if self.session.job_ready(self.job, counts):
            return None
        return -1 if failed is None else failed

    def _must_all(self) -> bool:
        return _needs_every_part(self.job)

    def _fill_up(self, missing: int, counts: Counts) -> int:
        """Any tasks, to reach the total."""
        taken = {task.uid for task, _ in self.placed}
        for part in self.parts():
            tasks = [task for task in part.tasks if task.uid not in taken]
            if tasks and missing > 0:
                done = self.place(tasks, min(missing, len(tasks)))
                for task in tasks[:done]:
                    counts.add(task)
                missing -= done
        return missing

    def parts(self) -> list[Part]:
        """The job's pending tasks, equal ones together, in task order."""
        return parts_of(self.session, self.job)

    def _needed_parts(self) -> list[Part]:
        """What roles and sub-groups lack, or the total where there are none; scarce parts first."""
        found = _lacking_parts(self.session, self.job)
        if len(found) <= 1 or self.job.spec is None:
            return found
        places = {id(part): self._places_for(part.tasks[0]) - part.need for part in found}
        return sorted(found, key=lambda part: places[id(part)])

    def _places_for(self, task: Task) -> int:
        mask = fitting(self.session, task)
        if self.rows is not None:
            mask = mask & self.rows
        return int(capacity(self.session, task, mask).sum())

    def place_extras(self, most: int | None = None) -> int:
        """Place pending tasks beyond the minimum, as many as may be."""
        done = 0
        for part in self.parts():
            want = len(part.tasks) if most is None else min(most - done, len(part.tasks))
            if want > 0:
                done += self.place(part.tasks, want)
        return done


def parts_of(session: Session, job: Job) -> list[Part]:
    """A job's pending tasks, equal ones together, in task order."""
    groups: dict[object, list[Task]] = {}
    pending = [task for task in job.tasks.values() if task.state is TaskState.PENDING]
    if len(pending) > 1:
        pending.sort(key=session.task_key)
    for task in pending:
        key = (task.membership.role, task.sub_group, signature(session, task))
        groups.setdefault(key, []).append(task)
    return [Part(tasks) for tasks in groups.values()]


def needs_of(session: Session, job: Job) -> list[Part]:
    """Parts all of which must find places for the job to have its minimum; none when one may stand for another."""
    return [part for part in _lacking_parts(session, job) if part.need] if _needs_every_part(job) else []


def _needs_every_part(job: Job) -> bool:
    return job.spec is None or all(group.min_sub_groups is None for group in job.spec.sub_groups)


def _lacking_parts(session: Session, job: Job) -> list[Part]:
    spec, parts = job.spec, parts_of(session, job)
    if spec is None:
        return parts
    counts = job.counts()
    if not (spec.min_task_member or spec.sub_groups):
        return _cut(parts, max(0, spec.min_member - counts.total))
    found: list[Part] = []
    for is_meant, lack in _lacks_of(spec, counts):
        found += _cut([part for part in parts if is_meant(part.tasks[0])], lack)
    return found


def _lacks_of(spec: PodGroupSpec, counts: Counts) -> list[tuple[Callable[[Task], bool], int]]:
    found: list[tuple[Callable[[Task], bool], int]] = []
    for role, need in sorted(spec.min_task_member.items()):
        found.append((lambda task, role=role: task.membership.role == role, need - counts.roles[role]))  # type: ignore[misc]
    for group in leaves(spec):
        lack = group.min_member - counts.sub_groups[group.name]
        found.append((lambda task, name=group.name: task.sub_group == name, lack))  # type: ignore[misc]
    return [(is_meant, lack) for is_meant, lack in found if lack > 0]


def _cut(parts: Sequence[Part], number: int) -> list[Part]:
    """So many tasks of these parts, taken in their order; what is missing shows in the last one's need."""
    found: list[Part] = []
    for part in parts:
        if number <= 0:
            break
        cut = part.cut(min(number, len(part.tasks)))
        found.append(cut)
        number -= len(cut.tasks)
    return found
