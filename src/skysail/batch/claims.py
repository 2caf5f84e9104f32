"""Live claims come first: what was promised is kept, waits, or ends, before anybody else is looked at.

victims left        WaitingVictims; evictions not yet under way are asked for again (a crash may have come between)
all gone            the tasks are bound, if the promised nodes really have the room
past its deadline   the promise ends, the job waits like all others
"""

from skysail.batch.effects import BindBatch, Eviction
from skysail.batch.model.claim import Claim
from skysail.batch.model.job import Job, TaskState
from skysail.batch.model.outcome import Event, Outcome, OutcomeCode, told
from skysail.batch.pausing import Steps
from skysail.batch.session import Session


def honour_claims(session: Session) -> Steps:
    """Look at every live claim, oldest first."""
    world = session.world
    for key in sorted(world.claims, key=lambda key: world.claims[key].id):
        claim = world.claims.get(key)
        if claim is None:  # it ended during a pause
            continue
        job = world.jobs[key]
        with session.turn_of(job):
            if not world.victims_left(claim):
                _keep(session, job, claim)
            elif claim.deadline <= session.now:
                _end(session, job)
            else:
                _wait(session, job, claim)
        yield from session.pause()


def _keep(session: Session, job: Job, claim: Claim) -> None:
    world = session.world
    tasks = job.in_state(TaskState.CLAIMED)
    if not all(_has_room(session, node) for node in claim.placement.values()):
        _end(session, job)
        return
    world.end_claim(job, kept=True)
    for task in tasks:
        world.move(task, TaskState.BINDING, task.node)
    session.effects.binds.append(BindBatch(job, tasks, claim))
    session.note("keep", job.key, *(f"{task.uid}@{task.node}" for task in tasks))
    for task in tasks:
        session.fire("bind", job, (task,), task.node)
    if session.is_enough(job):
        job.was_ready, job.admitted = True, session.now
    if not job.pending():
        session.settle(job, None)


def _has_room(session: Session, node: str) -> bool:
    """Whether a node holds what is accounted to it, the promised tasks included."""
    account = session.world.cache.node_info(node)
    if account is None or not account.exists:
        return False
    offered = account.allocatable
    return len(account.pods) <= offered.get("pods", 0) and all(
        amount <= offered.get(name, 0) for name, amount in account.requested.items()
    )


def _end(session: Session, job: Job) -> None:
    session.world.end_claim(job)
    session.note("end", job.key)


def _wait(session: Session, job: Job, claim: Claim) -> None:
    world = session.world
    session.jobs.pop(job.key, None)
    for uid in claim.victims:
        task = world.tasks.get(uid)
        if task is not None and uid not in world.evicting and task.state is TaskState.BOUND:
            world.evicting.add(uid)
            world.move(task, TaskState.RELEASING, task.node)
            session.effects.evictions.append(Eviction(task, claim))
    session.settle(job, waiting_for_victims(claim), claim.deadline)


def waiting_for_victims(claim: Claim) -> Outcome:
    """The outcome while victims leave."""
    names = ", ".join(sorted(claim.victims.values()))
    return Outcome(
        OutcomeCode.WAITING_VICTIMS,
        f"waits for {len(claim.victims)} pods to leave: {names}",
        {"victims": len(claim.victims)},
        next_events=(told(Event.POD_GONE), told(Event.CLAIM_ENDED)),
    )
