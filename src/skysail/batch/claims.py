"""Live claims come first: what was promised is kept, waits, or ends, before anybody else is looked at.

all victims gone    the tasks are placed where they were promised room, or wherever else they fit, and bound
something came free the same is tried: room elsewhere is as good
victims left        WaitingVictims; evictions not yet under way are asked for again (a crash may have come between)
past its deadline   the promise ends, the job waits like all others; a gang that was to be repaired lets go (`repair`)

Keeping a promise is an ordinary placement with every plugin: a node that was cordoned, tainted or relabelled meanwhile
is no place any more, whatever room it has.
"""

from skysail.batch.actions.allocate_zone import place_in_zone
from skysail.batch.effects import Eviction
from skysail.batch.expressions import RowMask
from skysail.batch.model.claim import Claim
from skysail.batch.model.job import Job, TaskState
from skysail.batch.model.outcome import Event, Outcome, OutcomeCode, told
from skysail.batch.pausing import Steps
from skysail.batch.placing import Placer
from skysail.batch.repair import REPAIR, let_go, waiting_for_repair
from skysail.batch.rows import rows_of
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
            repairs = claim.reason == REPAIR
            is_free = not repairs and not world.victims_left(claim)
            tries = is_free or (key in world.sleepers.awake and not (repairs and claim.deadline <= session.now))
            if tries and _place_now(session, job, claim):
                pass
            elif is_free or claim.deadline <= session.now:
                _end(session, job, claim)
                if repairs:
                    let_go(session, job)
            else:
                _wait(session, job, claim)
        yield from session.pause()


def _place_now(session: Session, job: Job, claim: Claim) -> bool:
    """Bind the job's minimum, on the promised nodes or elsewhere; whether that could be done."""
    nodes = list(dict.fromkeys(claim.placement.values()))
    session.world.lift_claim(job)
    session.nodes.refresh(nodes)
    if session.validate(job) is None:
        for rows in (rows_of(session, nodes), None):
            if _try(session, job, claim, rows):
                return True
    session.world.lay_claim(job, claim)
    session.nodes.refresh(nodes)
    return False


def _try(session: Session, job: Job, claim: Claim, rows: RowMask | None) -> bool:
    with session.statement() as statement:
        placer = Placer(session, job, statement, statement.allocate)

        def attempt(mask: RowMask | None) -> bool:
            placer.rows = mask if rows is None else rows if mask is None else mask & rows
            return placer.place_minimum()

        if not place_in_zone(session, job, attempt) or not placer.placed or not statement.commit():
            return False
    tasks = [task for task, _ in placer.placed]
    session.world.end_claim(job, kept=True)
    session.effects.binds[-1].kept = claim
    session.note("keep", job.key, *(f"{task.uid}@{task.node}" for task in tasks))
    if session.is_enough(job):
        job.was_ready, job.admitted = True, session.now
    if not job.pending():
        session.settle(job, None)
    return True


def _end(session: Session, job: Job, claim: Claim) -> None:
    session.world.end_claim(job)
    session.nodes.refresh(list(claim.placement.values()))
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
    if claim.reason == REPAIR:
        again = job.retry_at if job.retry_at > session.now else claim.deadline
        session.settle(job, waiting_for_repair(job, claim), min(again, claim.deadline))
    else:
        session.settle(job, waiting_for_victims(claim), claim.deadline)


def waiting_for_victims(claim: Claim) -> Outcome:
    """The outcome while victims leave."""
    names = ", ".join(sorted(claim.victims.values()))
    return Outcome(
        OutcomeCode.WAITING_VICTIMS,
        f"waits for {len(claim.victims)} pods to leave: {names}",
        {"victims": len(claim.victims)},
        next_events=(told(Event.POD_GONE), told(Event.NODE_ADDED), told(Event.NODE_CHANGED), told(Event.CLAIM_ENDED)),
    )
