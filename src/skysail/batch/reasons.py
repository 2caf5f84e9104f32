"""The words and figures of outcomes: from what placing found out to the one record a job is left with."""

from collections.abc import Mapping

import numpy as np

from skysail.batch.ledger import Refusal
from skysail.batch.model.job import Job, Task
from skysail.batch.model.outcome import Event, Number, Outcome, OutcomeCode, told
from skysail.batch.model.queue import Queue
from skysail.batch.model.resources import ANY, amount_text
from skysail.batch.placing import Shortage
from skysail.batch.rows import fitting, signature, times
from skysail.batch.session import Session
from skysail.batch.slot_finding import usable_slots
from skysail.batch.slot_use import owns

ROOM = (
    told(Event.POD_GONE),
    told(Event.NODE_ADDED),
    told(Event.NODE_CHANGED),
    told(Event.CLAIM_ENDED),
    told(Event.VICTIMS_CHANGED),
)


def shortage_outcome(session: Session, job: Job, shortage: Shortage | None) -> Outcome:
    """Why a job found no place."""
    queue = session.queue_of(job)
    if shortage is None:
        return _not_enough(session, job, job.counts().total, job.min_member, {})
    fault = session.volume_fault(shortage.task)
    if fault:
        events = (told(Event.VOLUME_CHANGED), *ROOM)
        return Outcome(OutcomeCode.VOLUMES_NOT_READY, fault, {"task": shortage.task.key}, next_events=events)
    if shortage.refusal is not None:
        return quota_outcome(queue, shortage.refusal, shortage.need)
    if shortage.lacks_slot:
        return _no_slot(session, job, queue, shortage)
    if shortage.words:
        return Outcome(
            OutcomeCode.QUOTA_EXCEEDED, shortage.words, {"queue": queue.name}, next_events=_queue_events(queue)
        )
    histogram = session.histogram(shortage.task)
    room = room_events(shortage.task)
    single = job.min_member <= 1 and shortage.need <= 1
    if single or not could_ever(session, shortage.task, 1):
        return _no_node(session, shortage.task, histogram)
    ready = job.counts().total
    need = max(job.min_member, ready + shortage.need)
    return _not_enough(session, job, ready + shortage.have, need, histogram, room)


def _no_slot(session: Session, job: Job, queue: Queue, shortage: Shortage) -> Outcome:
    """Its Quotas are too small for it; or they would do, but some of their slots find no node yet."""
    task, slots = shortage.task, usable_slots(session, job)
    seats = {slot.key: slot.times(task.request) if owns(slot, task) else 0 for slot in slots}
    bound = sum(seats[slot.key] for slot in slots if slot.node)
    words = f"{shortage.have} of {shortage.need} members find a slot of a Quota of queue {queue.name}"
    numbers: dict[str, Number] = {"queue": queue.name, "have": shortage.have, "need": shortage.need}
    events = (told(Event.SLOT_CHANGED), *ROOM, *_queue_events(queue))
    if bound >= shortage.need or sum(seats.values()) < shortage.need:
        return Outcome(OutcomeCode.NO_QUOTA_SLOT, words, numbers, next_events=events)
    words += "; the others of its slots are not bound to a node"
    return Outcome(OutcomeCode.WAITING_QUOTA_BIND, words, numbers, next_events=events)


def quota_outcome(queue: Queue, refusal: Refusal, tasks: int = 1) -> Outcome:
    """The ledger said no: for now, or for ever."""
    flavor, resource = refusal.key
    ask = refusal.ask * max(1, tasks)
    numbers: dict[str, Number] = {
        "queue": refusal.queue, "resource": resource, "ask": ask, "limit": refusal.limit,
    }  # fmt: skip
    if flavor != ANY:
        numbers["flavor"] = flavor
    most = amount_text(resource, refusal.limit)
    if ask > refusal.limit:
        words = f"asks for {amount_text(resource, ask)} {resource}: queue {refusal.queue} never holds more than {most}"
        return Outcome(OutcomeCode.EXCEEDS_MAX, words, numbers, next_events=(told(Event.QUEUE_CHANGED),))
    numbers["used"] = refusal.used
    used = amount_text(resource, refusal.used)
    words = f"asks for {amount_text(resource, ask)} {resource}: queue {refusal.queue} uses {used} of {most}"
    return Outcome(OutcomeCode.QUOTA_EXCEEDED, words, numbers, next_events=_queue_events(queue))


def never(session: Session, job: Job) -> Outcome | None:
    """Whether the job's minimum exceeds what its queue or one above may ever hold."""
    queue, path = session.queue_of(job), session.world.path_of_job(job)
    if not any(each.spec.figures for each in path):
        return None
    need = minimum_request(job)
    for each in path:
        for (flavor, resource), figures in each.spec.figures.items():
            ask, limit = need.get(resource, 0), figures.capability
            if flavor == ANY and limit is not None and ask > limit:
                return quota_outcome(queue, Refusal(each.name, (flavor, resource), 0, ask, limit))
    return None


def minimum_request(job: Job) -> Mapping[str, int]:
    """What the smallest tasks that make its minimum ask for, together."""
    tasks = sorted(job.tasks.values(), key=lambda task: sum(task.request.values()))
    need: dict[str, int] = {}
    for task in tasks[: max(1, job.min_member)]:
        for resource, amount in task.request.items():
            need[resource] = need.get(resource, 0) + amount
    return need


def not_head(head: Job, queue: str) -> Outcome:
    """A job before it in the line needs what it would take."""
    return Outcome(
        OutcomeCode.NOT_HEAD,
        f"waits behind {head.name}, which needs the same and came first",
        {"head": head.name},
        next_events=(told(Event.LINE_MOVED, queue),),
    )


def could_ever(session: Session, task: Task, number: int) -> bool:
    """Whether an empty cluster would hold so many such tasks."""
    return number <= most_ever(session, task)


def most_ever(session: Session, task: Task) -> int:
    """How many such tasks an empty cluster would hold.

    Rows are judged by what does not change as pods come and go: a row that is refused only for lack of room counts.
    """
    key = ("most ever", signature(session, task))
    known = session.memo.get(key)
    if isinstance(known, int):
        return known
    empty = times(session, task, empty=True)
    allowed = session.could_ever
    mask = allowed(task) if allowed is not None else fitting(session, task) | (times(session, task) == 0)
    found = int(np.where(mask & session.nodes.table.live[: session.nodes.table.size], empty, 0).sum())
    session.memo[key] = found
    return found


def _no_node(session: Session, task: Task, histogram: Mapping[str, int]) -> Outcome:
    count = len(session.nodes.table)
    reasons = ", ".join(f"{number} {reason}" for reason, number in sorted(histogram.items()))
    words = f"0/{count} nodes hold {task.key}" + (f": {reasons}" if reasons else "")
    return Outcome(
        OutcomeCode.NO_NODE, words, {"task": task.key}, next_events=room_events(task), detail={"nodes": dict(histogram)}
    )


def room_events(task: Task) -> tuple[str, ...]:
    """What may give a task a node; volumes only where it has any."""
    return (*ROOM, told(Event.VOLUME_CHANGED)) if task.pod.spec.volumes else ROOM


def _not_enough(
    session: Session, job: Job, have: int, need: int, histogram: Mapping[str, int], room: tuple[str, ...] = ROOM
) -> Outcome:
    words = f"{have} of {need} members find a place"
    return Outcome(
        OutcomeCode.NOT_ENOUGH,
        words,
        {"have": have, "need": need},
        next_events=(*room, *_queue_events(session.queue_of(job))),
        detail={"nodes": dict(histogram)},
    )


def _queue_events(queue: Queue) -> tuple[str, ...]:
    names = [each.name for each in queue.path]
    said = [told(event, name) for name in names for event in (Event.QUEUE_USE_FELL, Event.QUEUE_CHANGED)]
    return (*said, told(Event.VICTIMS_CHANGED))
