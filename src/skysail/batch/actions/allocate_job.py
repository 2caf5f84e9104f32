"""Jobs get their places: queues in order, jobs in order inside, all of a job's minimum or nothing.

    while any queue has a job:          the queue whose turn it is, asked anew after each job
        its next job                    minima before extras, then by job order
        may it pass the heads?          `lines`
        with a statement:               slots (where Quotas are defined), zone, nodes: the stages
            enough?  commit             else everything is as before, and the job is told why

All three stages run for one job before the next is looked at: only so is the order of queues true after each job, and
only so does a job that does not fit leave nothing behind for the next.
"""

import heapq
from collections.abc import Iterable
from typing import Any

from skysail.batch.actions.allocate_zone import AllocateZone, no_topology, place_in_zone
from skysail.batch.lines import Lines
from skysail.batch.model.job import Job, TaskState
from skysail.batch.model.outcome import Outcome
from skysail.batch.model.queue import Queue
from skysail.batch.placing import Placer, Shortage
from skysail.batch.reasons import never, shortage_outcome
from skysail.batch.session import Arguments, Session
from skysail.batch.slot_finding import Seats, usable_slots
from skysail.batch.statement import Statement

MINIMUM, EXTRAS = 0, 1


class AllocateJob:
    """The action."""

    name = "allocateJob"

    def __init__(self, arguments: Arguments) -> None:
        self._arguments = arguments

    def initialize(self) -> None:
        """Nothing to do."""

    def execute(self, session: Session) -> None:
        """Give all valid jobs of queues with an entitlement their turn."""
        jobs = [job for job in session.waiting_jobs() if not session.queue_of(job).is_spot and job.claim is None]
        AllocationPass(session).run(jobs)

    def uninitialize(self) -> None:
        """Nothing to do."""


class AllocationPass:
    """One pass over some jobs."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._lines = Lines(session)
        self._jobs: dict[str, list[tuple[int, tuple[Any, ...], str, Job]]] = {}
        self._zones = any(isinstance(action, AllocateZone) for action in session.configuration.actions)

    def run(self, jobs: Iterable[Job]) -> None:
        """Give each its turn."""
        for job in jobs:
            self._push(job)
        tree = self._session.world.tree
        queues = [(self._session.queue_key(tree[name]), name) for name in self._jobs]
        heapq.heapify(queues)
        while queues:
            key, name = heapq.heappop(queues)
            queue = tree[name]
            if not self._jobs[name]:
                continue
            if queues and (now := self._session.queue_key(queue)) != key:
                heapq.heappush(queues, (now, name))  # others were served meanwhile: keys only grow
                if queues[0][1] != name:
                    continue
                heapq.heappop(queues)
            if self._session.overused(queue):
                self._pass_over(queue)
                continue
            self._turn(queue)
            heapq.heappush(queues, (self._session.queue_key(queue), name))

    def _push(self, job: Job) -> None:
        session = self._session
        phase = EXTRAS if session.is_enough(job) else MINIMUM
        entry = (phase, session.job_key(job), job.key, job)
        heapq.heappush(self._jobs.setdefault(job.queue, []), entry)

    def _pass_over(self, queue: Queue) -> None:
        for _, _, _, job in self._jobs.pop(queue.name):
            words = self._session.explain("overused", queue)
            task = next(iter(job.tasks.values()))
            self._refuse(job, shortage_outcome(self._session, job, Shortage(task, 1, 0, words=f"overused: {words}")))
        self._jobs[queue.name] = []

    def _turn(self, queue: Queue) -> None:
        phase, _, _, job = heapq.heappop(self._jobs[queue.name])
        with self._session.turn_of(job):
            if phase == EXTRAS:
                self._extras(queue, job)
            elif job.key not in self._session.tried:
                self._minimum(job)

    def _minimum(self, job: Job) -> None:
        session = self._session
        bundle = [each for each in session.world.bundle_of(job) if not session.is_enough(each)]
        for each in bundle:
            session.tried[each.key] = None
            each.attempts += 1
        outcome = self._try(bundle)
        for each in bundle:
            if outcome is not None:
                self._refuse(each, outcome)
            elif any(task.state is TaskState.PENDING for task in each.tasks.values()):
                self._push(each)
            else:
                session.settle(each, None)

    def _try(self, bundle: list[Job]) -> Outcome | None:
        session = self._session
        for job in bundle:
            outcome = session.validate(job) if len(bundle) > 1 else None
            if outcome is None:
                outcome = never(session, job)
            if outcome is not None:
                return outcome
        with session.statement() as statement:
            for job in bundle:
                outcome = self._place(statement, job)
                if outcome is not None:
                    return outcome
            placed = [(job, [task for task in job.tasks.values() if task.state is TaskState.BINDING]) for job in bundle]
            if not statement.commit():
                job = bundle[0]
                return shortage_outcome(session, job, None)
            for job, tasks in placed:
                admitted(session, job)
                self._lines.passed(job)
                session.note("bind", *(f"{task.uid}@{task.node}" for task in tasks))
        return None

    def _place(self, statement: Statement, job: Job) -> Outcome | None:
        """Place one job's minimum; an outcome when it finds none, and then nothing was changed."""
        session = self._session
        admission = self._lines.admit(job)
        if isinstance(admission, Outcome):
            return admission
        slots = usable_slots(session, job)
        placer = Placer(session, job, statement, statement.allocate, limit=admission)
        placer.slots = Seats(session, slots) if slots else None

        def attempt(rows: object) -> bool:
            placer.rows = rows  # type: ignore[assignment]
            return placer.place_minimum()

        if not self._zones:
            return None if attempt(None) else shortage_outcome(session, job, placer.shortage)
        if place_in_zone(session, job, attempt):
            return None
        if job.spec is not None and job.spec.zone.required:
            return no_topology(session, job)
        return shortage_outcome(session, job, placer.shortage)

    def _extras(self, queue: Queue, job: Job) -> None:
        """Tasks beyond the minimum: all at once while nobody else waits, else one at a time."""
        session = self._session
        session.tried[job.key] = None
        alone = sum(bool(jobs) for jobs in self._jobs.values()) == 0
        admission = self._lines.admit(job)
        if isinstance(admission, Outcome):
            self._refuse(job, admission)
            return
        with session.statement() as statement:
            slots = usable_slots(session, job)
            placer = Placer(session, job, statement, statement.allocate, limit=admission)
            placer.slots = Seats(session, slots) if slots else None
            done = placer.place_extras(None if alone else 1)
            statement.commit()
            session.note("bind", *(f"{task.uid}@{node}" for task, node in placer.placed))
        if done:
            self._lines.passed(job)
        if not any(task.state is TaskState.PENDING for task in job.tasks.values()):
            session.settle(job, None)
        elif done:
            self._push(job)
        else:
            self._refuse(job, shortage_outcome(session, job, placer.shortage))

    def _refuse(self, job: Job, outcome: Outcome) -> None:
        self._session.tried[job.key] = None
        if self._session.is_enough(job):
            self._session.settle(job, outcome)
            return
        self._lines.blocked(job, outcome)
        timed = timed_out(self._session, job, outcome)
        self._session.settle(job, timed, _timeout_at(job, self._session.now))


def admitted(session: Session, job: Job) -> None:
    """A job's minimum is met."""
    if not job.was_ready or not job.admitted:
        job.admitted = session.now
    job.was_ready = True


def timed_out(session: Session, job: Job, outcome: Outcome) -> Outcome:
    """The outcome, or `ScheduleTimeout` when the job has waited longer than it wants to."""
    limit = job.spec.schedule_timeout_seconds if job.spec is not None else 0.0
    if not limit or session.now - job.first_seen < limit:
        return outcome
    from_code = outcome.code.value
    return Outcome(
        outcome.code.SCHEDULE_TIMEOUT,
        f"waits longer than {limit:g} s: {outcome.message}",
        {**outcome.numbers, "code": from_code, "seconds": int(limit)},
        next_events=outcome.next_events,
        detail=outcome.detail,
    )


def _timeout_at(job: Job, now: float) -> float | None:
    limit = job.spec.schedule_timeout_seconds if job.spec is not None else 0.0
    return job.first_seen + limit if limit and job.first_seen + limit > now else None
