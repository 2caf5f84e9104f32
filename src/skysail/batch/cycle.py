"""One cycle, top to bottom.

open_session      bring the snapshot up to date; every plugin registers; only then are jobs validated
settle_slots      slots whose time is over before they had a node are none any more
drain             queues that are closing are emptied
hold_for_repair   gangs of which bindings were refused keep their claim on room for the rest
honour_claims     what was promised comes first
actions           execute in order
close_session     plugins' last word; what was not decided on gets its Outcome; rows back to the truth

A cycle is a generator: it pauses between jobs, and the world may change there (`skysail.batch.pausing`).
"""

from skysail.batch.claims import honour_claims
from skysail.batch.draining import drain
from skysail.batch.model.job import Job
from skysail.batch.model.outcome import Event, Outcome, OutcomeCode, told
from skysail.batch.pausing import Steps, StepsTo, finish
from skysail.batch.repair import hold_for_repair
from skysail.batch.session import Configuration, Session
from skysail.batch.slot_ending import settle_slots
from skysail.batch.world import World

VALIDATED_AT_ONCE = 64
"""How many jobs are validated between two pauses."""


def open_session(world: World, configuration: Configuration) -> Session:
    """Open one at once: plugins register first, then jobs are asked whether they are valid."""
    session = _registered(world, configuration)
    for _ in _validate_jobs(session):
        pass
    return session


def _registered(world: World, configuration: Configuration) -> Session:
    world.sleepers.pass_time(world.now)
    session = Session(world, configuration)
    for plugin in configuration.plugins:
        plugin.on_session_open(session)
    _tell_larger_shares(session)
    return session


def _validate_jobs(session: Session) -> Steps:
    world = session.world
    for number, key in enumerate(list(world.sleepers.awake), 1):
        job = world.jobs.get(key)
        if job is None or not world.is_waiting(job):
            world.sleepers.drop(key)
            if job is not None:
                world.leave_line(job)
            continue
        with session.turn_of(job):
            outcome = session.validate(job)
            if outcome is None:
                session.jobs[key] = job
            else:
                session.settle(job, outcome, job.retry_at if job.retry_at > world.now else None)
                if job.retry_at <= world.now:
                    world.leave_line(job)
        if number % VALIDATED_AT_ONCE == 0:
            yield from session.pause()


def _tell_larger_shares(session: Session) -> None:
    """Wake those who looked in vain for victims: in queues that may claim more than then, or when one borrows anew."""
    world = session.world
    if not any(world.sleepers.is_awaited(told(Event.SHARES_MOVED, name)) for name in world.tree):
        world.shares, world.borrowers = {}, frozenset()
        return
    before, now = world.shares, session.entitlements.shares
    borrowers = frozenset(
        (name, key)
        for name, shares in now.items()
        for key, share in shares.items()
        if world.ledger.used(name, key) > share
    )
    anew = bool(before) and not borrowers <= world.borrowers
    for name, shares in now.items():
        if anew or any(amount > before.get(name, {}).get(key, amount) for key, amount in shares.items()):
            world.sleepers.tell(told(Event.SHARES_MOVED, name))
    world.shares, world.borrowers = now, borrowers


def close_session(session: Session) -> None:
    """Close it: nobody stays without a word, and rows show the truth again.

    In a cycle in which the world moved a job may have lost its turn by that; it stays awake for the next one.
    """
    world = session.world
    for plugin in session.configuration.plugins:
        plugin.on_session_close(session)
    for key in list(world.sleepers.awake) if not session.moves else ():
        job = world.jobs.get(key)
        if job is not None and key in session.jobs and key not in session.tried and job.outcome is None:
            session.settle(job, unexplained(job))
    session.nodes.refresh()
    session.effects.ended += world.take_ended_claims()


def unexplained(job: Job) -> Outcome:
    """No configured action looked at the job."""
    return Outcome(
        OutcomeCode.BACKOFF,
        "no configured action looks at this job",
        next_events=(told(Event.GROUP_CHANGED, job.key),),
    )


def cycle_steps(world: World, configuration: Configuration) -> StepsTo[Session]:
    """One cycle, step by step: open, execute the actions in order, close."""
    session = _registered(world, configuration)
    try:
        settle_slots(session)
        yield from _validate_jobs(session)
        drain(session)
        held = hold_for_repair(session)
        yield from honour_claims(session)
        session.effects.claims += [claim for claim in held if world.claims.get(claim.job) is claim]
        for action in configuration.actions:
            steps = action.execute(session)
            if steps is not None:
                yield from steps
    finally:
        close_session(session)
    return session


def run_once(world: World, configuration: Configuration) -> Session:
    """One cycle, at once."""
    return finish(cycle_steps(world, configuration))
