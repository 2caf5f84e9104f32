"""One cycle, top to bottom.

open_session      bring the snapshot up to date; every plugin registers; only then are jobs validated
honour_claims     what was promised comes first
actions           execute in order
close_session     plugins' last word; what was not decided on gets its Outcome; rows back to the truth
"""

from skysail.batch.claims import honour_claims
from skysail.batch.model.job import Job
from skysail.batch.model.outcome import Event, Outcome, OutcomeCode, told
from skysail.batch.session import Configuration, Session
from skysail.batch.world import World


def open_session(world: World, configuration: Configuration) -> Session:
    """Open one: plugins register first, then jobs are asked whether they are valid."""
    world.sleepers.pass_time(world.now)
    session = Session(world, configuration)
    for plugin in configuration.plugins:
        plugin.on_session_open(session)
    _tell_larger_shares(session)
    for key in list(world.sleepers.awake):
        job = world.jobs.get(key)
        if job is None or not world.is_waiting(job):
            world.sleepers.drop(key)
            continue
        with session.turn_of(job):
            outcome = session.validate(job)
            if outcome is None:
                session.jobs[key] = job
            else:
                session.settle(job, outcome, job.retry_at if job.retry_at > world.now else None)
    return session


def _tell_larger_shares(session: Session) -> None:
    """Wake those who looked in vain for victims, in queues that may claim more than then."""
    world = session.world
    if not any(world.sleepers.is_awaited(told(Event.SHARES_MOVED, name)) for name in world.tree):
        world.shares = {}
        return
    before, now = world.shares, session.entitlements.shares
    for name, shares in now.items():
        if any(amount > before.get(name, {}).get(key, amount) for key, amount in shares.items()):
            world.sleepers.tell(told(Event.SHARES_MOVED, name))
    world.shares = now


def close_session(session: Session) -> None:
    """Close it: nobody stays without a word, and rows show the truth again."""
    world = session.world
    for plugin in session.configuration.plugins:
        plugin.on_session_close(session)
    for key in list(world.sleepers.awake):
        job = world.jobs.get(key)
        if job is not None and key in session.jobs and key not in session.tried and job.outcome is None:
            session.settle(job, unexplained(job))
    session.nodes.refresh()


def unexplained(job: Job) -> Outcome:
    """No configured action looked at the job."""
    return Outcome(
        OutcomeCode.BACKOFF,
        "no configured action looks at this job",
        next_events=(told(Event.GROUP_CHANGED, job.key),),
    )


def run_once(world: World, configuration: Configuration) -> Session:
    """One cycle: open, execute the actions in order, close."""
    session = open_session(world, configuration)
    try:
        honour_claims(session)
        for action in configuration.actions:
            action.execute(session)
    finally:
        close_session(session)
    return session
