"""Are shares that were scaled down to the cluster the reason why a job waits? Pure."""

from skysail.batch.model.job import Job
from skysail.batch.model.outcome import Outcome, OutcomeCode
from skysail.batch.model.resources import ANY, FlavorResource
from skysail.batch.moves import minimum_lack
from skysail.batch.placing import needs_of
from skysail.batch.reasons import minimum_request, most_ever
from skysail.batch.rows import signature
from skysail.batch.session import Session


def scaled_away(session: Session, job: Job, outcome: Outcome) -> list[FlavorResource]:
    """Dimensions in which a job would be within what its queue states, and is above what that was scaled down to.

    Args:
        session: Whose shares and rows.
        job: One that found no room.
        outcome: Why not, as far as rows go.

    Returns:
        Empty when the job would not fit into an empty cluster: then nodes are the reason, not shares.
    """
    queue = session.queue_of(job)
    scaled = session.entitlements.scaled.get(queue.name, set())
    if not scaled or outcome.code not in (OutcomeCode.NOT_ENOUGH, OutcomeCode.NO_NODE):
        return []
    if not _fits_empty(session, job):
        return []
    lack = minimum_lack(job)
    return [key for key in sorted(scaled) if _is_lost(session, job, key, lack.get(key[1], 0))]


def _is_lost(session: Session, job: Job, key: FlavorResource, lack: int) -> bool:
    queue = session.queue_of(job)
    figures, share = queue.figures(key), session.entitlements.of(queue.name, key)
    stated = max(figures.deserved or 0, figures.guarantee or 0)
    after = session.world.ledger.used(queue.name, key) + lack
    return lack > 0 and share is not None and share < after <= stated


def _fits_empty(session: Session, job: Job) -> bool:
    """Whether the nodes would hold the whole minimum if nobody else were there: each kind of task, and all in sum."""
    for part in needs_of(session, job):
        kind = signature(session, part.tasks[0])
        placed = sum(signature(session, task) == kind for task in job.tasks.values() if task.node)
        if most_ever(session, part.tasks[0]) < part.need + placed:
            return False
    total = session.world.flavors.total
    return all(amount <= total((ANY, name)) for name, amount in minimum_request(job).items())
