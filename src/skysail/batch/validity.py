"""Why a job cannot be looked at: faults of the job itself, before any room is sought."""

from typing import Final

from skysail.batch.model.job import ENDED, Job, TaskState
from skysail.batch.model.outcome import Event, Outcome, OutcomeCode, told
from skysail.batch.model.queue import Queue
from skysail.batch.world import World

NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"
"""The label that every namespace bears."""


def structural_fault(world: World, job: Job) -> Outcome | None:
    """The first thing that is missing or closed, or None."""
    for check in (_group_fault, _queue_fault, _member_fault, _rest):
        fault = check(world, job)
        if fault is not None:
            return fault
    return None


def _group_fault(world: World, job: Job) -> Outcome | None:
    about = told(Event.GROUP_CHANGED, job.key)
    if job.spec is None:
        words = f"pod group {job.key} does not exist"
        return Outcome(OutcomeCode.POD_GROUP_MISSING, words, {"group": job.key}, next_events=(about,))
    missing = sorted(key for key in job.spec.bundle_members if key not in world.jobs)
    if missing:
        return Outcome(
            OutcomeCode.MEMBERS_MISSING,
            f"its bundle waits for {', '.join(missing)}",
            {"have": len(job.spec.bundle_members) - len(missing), "need": len(job.spec.bundle_members)},
            next_events=(about,),
        )
    return None


def _queue_fault(world: World, job: Job) -> Outcome | None:
    queue = world.tree.get(job.queue)
    if queue is None:
        named = job.queue.removeprefix("?")
        return Outcome(
            OutcomeCode.QUEUE_MISSING,
            f"queue {named} does not exist",
            {"queue": named},
            next_events=(told(Event.QUEUE_CHANGED), told(Event.QUEUE_CHANGED, named)),
        )
    closed = next((each for each in queue.path if each.spec.state != "Open"), None)
    if closed is not None:
        return _closed(closed.name, closed.spec.state)
    outside = next((each for each in queue.path if not _takes_namespace(world, each, job)), None)
    if outside is not None:
        return Outcome(
            OutcomeCode.QUEUE_CLOSED,
            f"queue {outside.name} takes no jobs of namespace {job.namespace}",
            {"queue": outside.name, "namespace": job.namespace},
            next_events=(told(Event.QUEUE_CHANGED), told(Event.QUEUE_CHANGED, outside.name)),
        )
    line = world.job_queues.get(job.line)
    if line is not None and line.stopped:
        return _closed(job.line, "Closed")
    return None


def _takes_namespace(world: World, queue: Queue, job: Job) -> bool:
    if queue.spec.namespaces is None:
        return True
    name = job.namespace
    return queue.spec.namespaces.matches({NAMESPACE_NAME: name, **world.namespaces.get(name, {})})


def _closed(name: str, state: str) -> Outcome:
    return Outcome(
        OutcomeCode.QUEUE_CLOSED,
        f"queue {name} is {state.lower()}",
        {"queue": name},
        next_events=(told(Event.QUEUE_CHANGED), told(Event.QUEUE_CHANGED, name)),
    )


def _member_fault(world: World, job: Job) -> Outcome | None:
    about = told(Event.GROUP_CHANGED, job.key)
    spec = job.spec
    assert spec is not None
    members = [task for task in job.tasks.values() if task.state is not TaskState.FAILED]
    need = 0 if job.was_ready and spec.match_policy == "once-satisfied" else spec.min_member
    if len(members) < need:
        if job.was_ready:
            code, words = OutcomeCode.GANG_BROKEN, "lost members"
        else:
            code, words = OutcomeCode.MEMBERS_MISSING, "is not complete"
        return Outcome(
            code, f"{len(members)} of {need} members are there: the gang {words}", {"have": len(members), "need": need},
            next_events=(about,),
        )  # fmt: skip
    gated = [task for task in job.tasks.values() if task.state is TaskState.GATED]
    open_tasks = len([task for task in members if task.state not in ENDED or task.state is TaskState.SUCCEEDED])
    if gated and open_tasks - len(gated) < need:
        gates = sorted({gate.name for task in gated for gate in task.pod.spec.scheduling_gates})
        return Outcome(
            OutcomeCode.WAITING_GATE,
            f"{len(gated)} pods wait for gates: {', '.join(gates)}",
            {"gated": len(gated), "gates": ", ".join(gates)},
            next_events=(about,),
        )
    return None


def _rest(world: World, job: Job) -> Outcome | None:
    """A job whose bindings keep failing rests, ever longer."""
    if job.retry_at <= world.now:
        return None
    return Outcome(
        OutcomeCode.BIND_FAILED,
        f"{job.bind_failures} bindings failed in a row",
        {"failures": job.bind_failures},
        next_events=(told(Event.TIME), told(Event.GROUP_CHANGED, job.key)),
    )
