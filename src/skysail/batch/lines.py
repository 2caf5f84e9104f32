"""Heads of lines: a job that is blocked for lack of room, though the cluster could hold it, must not starve.

A blocked job becomes a head of its queue, with what it lacks. Jobs that come after it in order and compete for that

    in a queue that is strictly `fifo`          wait: NotHead
    with `backfill: EASY` and known run times   may go if they end before the head could start, or use what it leaves
    otherwise                                   may pass, `passOverLimit` of them in all; then they wait: NotHead

Jobs that do not compete, and jobs that come before it in order, never wait for it.
"""

from collections.abc import Callable, Iterator

import numpy as np

from skysail.batch.easy import Reservation, reservation_for
from skysail.batch.model.job import Job, Task
from skysail.batch.model.outcome import Outcome, OutcomeCode
from skysail.batch.model.resources import DEFAULT_FLAVOR, PODS
from skysail.batch.reasons import minimum_request, most_ever, not_head
from skysail.batch.rows import Times, flavor_rows, signature
from skysail.batch.session import Session

BLOCKING = frozenset({OutcomeCode.NOT_ENOUGH, OutcomeCode.NO_NODE, OutcomeCode.QUOTA_EXCEEDED})
Lacks = frozenset[str]


class Lines:
    """The heads of all queues, in one session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._heads = session.world.heads

    def heads_before(self, job: Job, passed_over: int = 0) -> Iterator[Job]:
        """Blocked heads of its queue that come before it and lack something it would take.

        Args:
            job: Who would pass them.
            passed_over: Only those that were passed so often.

        Cost: Grows with heads; their order is asked for only of those that are left.
        """
        key, wants = None, None
        for head_key, lacks in list(self._heads.get(job.queue, {}).items()):
            head = self._session.world.jobs.get(head_key)
            if head is None or head is job or head.claim is not None or head.passed_over < passed_over:
                continue
            if key is None or wants is None:
                key, wants = self._session.job_key(job), self.wants(job)
            if lacks & wants and self._session.job_key(head) < key:
                yield head

    def admit(self, job: Job) -> Outcome | Callable[[Task], Times] | None:
        """Whether a job may be tried.

        Returns:
            None: yes. An Outcome: no. A function: only so many tasks a row, so that the head keeps what it needs.
        """
        spec = self._session.queue_of(job).spec
        strict = spec.backfill == "EASY" or spec.dequeue == "fifo"
        for head in self.heads_before(job, 0 if strict else spec.pass_over_limit):
            if spec.dequeue == "fifo" and spec.backfill == "None":
                return not_head(head, job.queue)
            if spec.backfill == "EASY":
                reservation = self._reservation(head)
                if reservation is not None:
                    if reservation.ends_in_time(job, self._session.now):
                        continue
                    return reservation.limit_for(self._session)
                if spec.dequeue == "fifo" and spec.pass_over_limit == 0:
                    return not_head(head, job.queue)
            if head.passed_over >= spec.pass_over_limit:
                return not_head(head, job.queue)
        return None

    def passed(self, job: Job) -> None:
        """A job was placed: heads it passed count it; if it was a head itself, its line moves."""
        for head in self.heads_before(job):
            head.passed_over += 1
        job.passed_over = 0
        self._session.world.leave_line(job)

    def blocked(self, job: Job, outcome: Outcome) -> None:
        """A job was tried in vain."""
        if outcome.code not in BLOCKING or not self._may_run_one_day(job):
            self._session.world.leave_line(job)
            return
        heads = self._heads.setdefault(job.queue, {})
        if job.key not in heads:
            heads[job.key] = self._lacks(job, outcome)

    def wants(self, job: Job) -> Lacks:
        """What it would take: resources of the flavors it may run on."""
        tasks = self._kinds(job)
        return frozenset(
            f"{flavor}/{resource}"
            for task in tasks
            for flavor in self._flavors_of(task)
            for resource in task.request
            if resource != PODS
        )

    def _kinds(self, job: Job) -> list[Task]:
        """One task of each kind."""
        kinds = {signature(self._session, task): task for task in job.tasks.values()}
        return list(kinds.values())

    def _flavors_of(self, task: Task) -> tuple[str, ...]:
        session = self._session
        names = session.world.flavors.names
        if len(names) == 1:
            return (DEFAULT_FLAVOR,)
        key = ("flavors of", signature(session, task))
        known = session.memo.get(key)
        if known is None:
            allowed = session.could_ever
            mask = allowed(task) if allowed is not None else np.ones(session.nodes.table.size, dtype=np.bool_)
            known = session.memo[key] = tuple(name for name in names if (mask & flavor_rows(session, name)).any())
        return known  # type: ignore[return-value]

    def _lacks(self, job: Job, outcome: Outcome) -> Lacks:
        wants = self.wants(job)
        if outcome.code is OutcomeCode.QUOTA_EXCEEDED:
            short = {str(outcome.numbers.get("resource", ""))}
        else:
            short = self._short_resources(job)
        found = frozenset(want for want in wants if want.partition("/")[2] in short)
        return found or wants

    def _short_resources(self, job: Job) -> set[str]:
        """Of what the cluster has too little for its minimum; empty when there is enough, but scattered."""
        amounts, size = self._session.nodes.table.amounts, self._session.nodes.table.size
        live = self._session.nodes.table.live[:size]
        return {
            resource
            for resource, need in minimum_request(job).items()
            if int(np.maximum(amounts.free[amounts.line(resource)][:size][live], 0).sum()) < need
        }

    def _may_run_one_day(self, job: Job) -> bool:
        needed = max(1, job.min_member)
        kinds: dict[object, int] = {}
        for task in job.tasks.values():
            key = signature(self._session, task)
            kinds[key] = kinds.get(key, 0) + 1
        places = [most_ever(self._session, task) for task in self._kinds(job)]
        return bool(places) and all(places) and max(places) >= min(needed, max(kinds.values()))

    def _reservation(self, head: Job) -> Reservation | None:
        key = ("reservation", head.key)
        if key not in self._session.memo:
            self._session.memo[key] = reservation_for(self._session, head)
        found = self._session.memo[key]
        return found if isinstance(found, Reservation) else None
