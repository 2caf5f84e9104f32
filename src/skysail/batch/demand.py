"""What a larger cluster would be used for: the demand an autoscaler may act on, from outcomes.

Only units that wait for room alone count (never those a limit refuses), only as far as their queues would admit them
together, and each once: what the next node brings is taken into account by the next cycle's outcomes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from skysail.batch.ledger import Column, Ledger
from skysail.batch.model.job import Job
from skysail.batch.model.outcome import OutcomeCode
from skysail.batch.model.resources import DEFAULT_FLAVOR, ResourceVector
from skysail.batch.reasons import minimum_request
from skysail.batch.world import World

MORE_ROOM_HELPS: Final = frozenset({OutcomeCode.NO_NODE, OutcomeCode.NOT_ENOUGH, OutcomeCode.NO_TOPOLOGY})


@dataclass(frozen=True, slots=True)
class Demand:
    """One unit that more nodes would help.

    Attributes:
        job: Its name.
        queue: Its queue.
        pods: How many pods of it need a place at least.
        request: What these ask for together.
    """

    job: str
    queue: str
    pods: int
    request: Mapping[str, int]


def scale_up_demand(world: World) -> list[Demand]:
    """Units that a larger cluster would admit, in order of waiting."""
    ledger = Ledger()
    for queue in world.tree.values():
        for column in Column:
            ledger.force((queue,), world.ledger.vector(queue.name, column), column)
    found = []
    waiting = [job for job in world.jobs.values() if _helped(job)]
    for job in sorted(waiting, key=lambda job: (job.first_seen, job.created, job.uid)):
        request = minimum_request(job)
        vector = ResourceVector.of(request, DEFAULT_FLAVOR).over_all_flavors()
        if ledger.charge(world.path_of_job(job), vector) is None:
            found.append(Demand(job.name, job.queue, max(1, job.min_member), request))
    return found


def _helped(job: Job) -> bool:
    return job.outcome is not None and job.outcome.code in MORE_ROOM_HELPS and not job.is_running()
