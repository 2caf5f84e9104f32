"""A gang of which some bindings were refused is made whole before others begin, or lets go of what it has.

    refused, in part bound, below the minimum   missing members claim the nodes they were to go to; the claim has no
                                                victims (`hold_for_repair`)
    while that stands                           the gang is tried wherever it may go; others are not given the room
    whole                                       the claim is kept, as any other
    not whole by the deadline                   the claim ends, and bound members are evicted (`let_go`)

The deadline is the gang's schedule time-out, or how long a claim stands where it has none.
Differs: kube-scheduler leaves members that were bound where they are, for ever.
"""

from typing import Final

from skysail.batch.model.claim import Claim
from skysail.batch.model.distrust import Refused
from skysail.batch.model.job import Job, TaskState
from skysail.batch.model.outcome import Event, Outcome, OutcomeCode, told
from skysail.batch.model.quorum import is_met
from skysail.batch.plugins.conformance import is_critical
from skysail.batch.session import Session

REPAIR: Final = "repair"
"""The reason of a claim that is laid on room for a gang's missing members."""


def hold_for_repair(session: Session) -> list[Claim]:
    """Lay claims for gangs that hold less than their minimum since bindings of theirs were refused.

    Returns:
        The new claims, to be written if they last.

    Cost: Nothing where no binding was refused.
    """
    world, laid = session.world, []
    for key, refused in list(world.refused.items()):
        job = world.jobs.get(key)
        if job is None or not _is_in_part(job):
            del world.refused[key]
        elif job.claim is None and job.in_state(TaskState.BOUND) and not _is_moving(session, job):
            laid.append(_hold(session, job, refused))
    return laid


def _is_in_part(job: Job) -> bool:
    """Whether it holds something, and does not run whole."""
    held = (TaskState.BINDING, TaskState.BOUND, TaskState.RELEASING)
    if job.spec is None or not any(task.state in held for task in job.tasks.values()):
        return False
    return not is_met(job.spec, job.counts((TaskState.BOUND, TaskState.SUCCEEDED)))


def _is_moving(session: Session, job: Job) -> bool:
    """Whether bindings are on their way still, or its queue is closing and lets it go anyway."""
    queue = session.world.queue_of(job)
    closing = queue is None or any(each.spec.state == "Closing" for each in queue.path)
    return closing or bool(job.in_state(TaskState.BINDING))


def _hold(session: Session, job: Job, refused: Refused) -> Claim:
    """Claim for each missing member the node it was to go to, where that has its room still."""
    world = session.world
    placement: dict[str, str] = {}
    for task in job.pending():
        node = refused.nodes.get(task.uid, "")
        if node in session.nodes.table.rows:
            with session.statement() as statement:
                if statement.pipeline(job, (task,), node) is None and statement.commit():
                    placement[task.uid] = node
    assert job.spec is not None
    seconds = job.spec.schedule_timeout_seconds or session.configuration.claim_seconds
    claim = Claim(world.new_claim_id(), job.key, placement, {}, refused.since + seconds, REPAIR)
    world.set_claim(job, claim)
    session.nodes.refresh(list(placement.values()))
    session.note("hold", job.key, *sorted(map("@".join, placement.items())))
    return claim


def waiting_for_repair(job: Job, claim: Claim) -> Outcome:
    """The outcome while room is held for the rest of a gang."""
    have, need = job.counts((TaskState.BOUND, TaskState.SUCCEEDED)).total, job.min_member
    held = len(claim.placement)
    words = f"{have} of {need} members are bound, bindings of others were refused; room is held for {held}"
    return Outcome(
        OutcomeCode.BIND_FAILED,
        words,
        {"have": have, "need": need, "held": held},
        next_events=(
            told(Event.TIME),
            told(Event.POD_GONE),
            told(Event.NODE_ADDED),
            told(Event.NODE_CHANGED),
            told(Event.GROUP_CHANGED, job.key),
        ),
    )


def let_go(session: Session, job: Job) -> None:
    """Evict what a gang has bound that could not be made whole in time; critical pods and protected ones stay."""
    world = session.world
    if job.key in world.refused:
        world.refused[job.key].since = session.now  # those that an eviction is refused for have their time anew
    for task in job.in_state(TaskState.BOUND):
        if task.uid in world.evicting or world.is_protected(task) or is_critical(task):
            continue
        world.evicting.add(task.uid)
        world.move(task, TaskState.RELEASING, task.node)
        session.effects.let_go.append(task)
        session.note("let go", task.uid)
