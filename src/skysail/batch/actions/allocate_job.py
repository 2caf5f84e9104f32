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
from skysail.batch.model.job import Job, Task, TaskState
from skysail.batch.model.outcome import Event, Outcome, OutcomeCode, told
from skysail.batch.model.queue import Queue
from skysail.batch.pausing import Pause, Steps, StepsTo
from skysail.batch.placing import Placer, Shortage
from skysail.batch.reasons import never, shortage_outcome
from skysail.batch.session import Arguments, Session
from skysail.batch.slot_finding import Seats, usable_slots
from skysail.batch.statement import Statement

MINIMUM, EXTRAS = 0, 1
JOBS_AT_ONCE = 128
"""How many jobs are put in order between two pauses."""
PLACED_AT_ONCE = 256
"""A job of more tasks pauses between its placement and its commit."""


class AllocateJob:
    """The action."""

    name = "allocateJob"

    def __init__(self, arguments: Arguments) -> None:
        self._arguments = arguments

    def initialize(self) -> None:
        """Nothing to do."""

    def execute(self, session: Session) -> Steps:
        """Give all valid jobs of queues with an entitlement their turn."""
        jobs = [job for job in session.waiting_jobs() if not session.queue_of(job).is_spot and job.claim is None]
        return AllocationPass(session).run(jobs)

    def uninitialize(self) -> None:
        """Nothing to do."""


class AllocationPass:
    """One pass over some jobs, in steps: after each job others have their turn, and the world may be another one."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._lines = Lines(session)
        self._jobs: dict[str, list[tuple[int, tuple[Any, ...], str, Job]]] = {}
        self._zones = any(action.name == AllocateZone.name for action in session.configuration.actions)

    def run(self, jobs: Iterable[Job]) -> Steps:
        """Give each its turn."""
        for number, job in enumerate(jobs, 1):
            self._push(job)
            if number % JOBS_AT_ONCE == 0:
                yield from self._session.pause()
        queues, tree = self._queues(), self._session.world.tree
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
            yield from self._turn(queue)
            heapq.heappush(queues, (self._session.queue_key(queue), name))
            yield from self._session.pause()
            if tree is not self._session.world.tree:
                queues, tree = self._queues(), self._session.world.tree

    def _queues(self) -> list[tuple[tuple[Any, ...], str]]:
        """The queues that have jobs, as a heap."""
        tree = self._session.world.tree
        named = [name for name, jobs in self._jobs.items() if jobs and name in tree]
        found = [(self._session.queue_key(tree[name]), name) for name in named]
        heapq.heapify(found)
        return found

    def _is_current(self, job: Job) -> bool:
        """Whether a job, whatever moved meanwhile, may have its turn; if not it waits for the next cycle."""
        session = self._session
        if not session.moves:
            return True
        return session.is_current(job) and job.claim is None and session.validate(job) is None

    def _push(self, job: Job) -> None:
        session = self._session
        phase = EXTRAS if session.is_enough(job) else MINIMUM
        entry = (phase, session.job_key(job), job.key, job)
        heapq.heappush(self._jobs.setdefault(job.queue, []), entry)

    def _pass_over(self, queue: Queue) -> None:
        for _, _, _, job in self._jobs.pop(queue.name):
            if job.queue != queue.name or not self._is_current(job):
                continue
            words = self._session.explain("overused", queue)
            task = next(iter(job.tasks.values()))
            self._refuse(job, shortage_outcome(self._session, job, Shortage(task, 1, 0, words=f"overused: {words}")))
        self._jobs[queue.name] = []

    def _turn(self, queue: Queue) -> Steps:
        phase, _, _, job = heapq.heappop(self._jobs[queue.name])
        if job.queue != queue.name or not self._is_current(job):
            return
        with self._session.turn_of(job):
            if phase == EXTRAS:
                self._extras(queue, job)
            elif job.key not in self._session.tried:
                yield from self._minimum(job)

    def _minimum(self, job: Job) -> Steps:
        session = self._session
        bundle = [each for each in session.world.bundle_of(job) if not session.is_enough(each)]
        for each in bundle:
            session.tried[each.key] = None
            each.attempts += 1
        outcome = yield from self._try(bundle)
        for each in bundle:
            if outcome is not None:
                self._refuse(each, outcome)
            elif any(task.state is TaskState.PENDING for task in each.tasks.values()):
                self._push(each)
            else:
                session.settle(each, None)

    def _try(self, bundle: list[Job]) -> StepsTo[Outcome | None]:
        """Place a bundle and commit; a commit whose room was taken meanwhile is tried once more on what there is."""
        session = self._session
        for job in bundle:
            outcome = session.validate(job) if len(bundle) > 1 else session.refused_by_plugins(job)
            if outcome is None:
                outcome = never(session, job)
            if outcome is not None:
                return outcome
        for attempt in range(2):
            with session.statement() as statement:
                for job in bundle:
                    outcome = self._place(statement, job)
                    if outcome is not None:
                        return outcome
                placed = [(job, job.in_state(TaskState.BINDING)) for job in bundle]
                if attempt == 0 and sum(len(tasks) for _, tasks in placed) > PLACED_AT_ONCE:
                    yield Pause.WITHIN
                if statement.commit():
                    self._note(placed)
                    return None
            session.catch_up()
        return conflict(statement)

    def _note(self, placed: list[tuple[Job, list[Task]]]) -> None:
        for job, tasks in placed:
            admitted(self._session, job)
            self._lines.passed(job)
            self._session.note("bind", *(f"{task.uid}@{task.node}" for task in tasks))

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
            if not statement.commit():
                session.catch_up()
                self._refuse(job, conflict(statement))
                return
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
        if self._session.is_enough(job) and outcome.code is not OutcomeCode.BACKOFF:
            self._session.settle(job, outcome)
            return
        self._lines.blocked(job, outcome)
        timed = timed_out(self._session, job, outcome)
        until = _timeout_at(job, self._session.now)
        if outcome.code is OutcomeCode.BACKOFF:
            soon = self._session.now + self._session.configuration.backoff_seconds
            until = soon if until is None else min(until, soon)
        self._session.settle(job, timed, until)


def conflict(statement: Statement) -> Outcome:
    """Somebody else took the room twice in a row, between the decision and its commit."""
    words = "; ".join(dict.fromkeys(why for _, why in statement.failures))
    return Outcome(OutcomeCode.BACKOFF, f"is tried again: {words}", next_events=(told(Event.TIME),))


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
