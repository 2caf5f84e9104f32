"""The batch engine's own kinds: `scheduling.skysail.io/v1alpha1` Queue, JobQueue, Quota, PodGroup.

Lives here: the Structs, from which the CustomResourceDefinitions in `deploy/crds/` are generated (`skysail crd gen`),
and `reading`, which turns objects into the records the engine works with. Never here: decisions, I/O.

Read in this order: `parts`, `queue`, `job_queue`, `quota`, `pod_group`, `reading`.

>>> from skysail.batch.kinds import QUEUES, batch_definitions
>>> QUEUES.path(name="team-a")
'/apis/scheduling.skysail.io/v1alpha1/queues/team-a'
>>> [each["metadata"]["name"] for each in batch_definitions()][0]
'queues.scheduling.skysail.io'
"""

from typing import Final

from skysail.api.raw import Raw
from skysail.batch.kinds.job_queue import JobQueue
from skysail.batch.kinds.parts import GROUP, VERSION
from skysail.batch.kinds.pod_group import PodGroup
from skysail.batch.kinds.queue import Queue
from skysail.batch.kinds.quota import Quota
from skysail.controller.customresources import custom_kind, definition_of

QUEUES: Final = custom_kind(Queue)
JOB_QUEUES: Final = custom_kind(JobQueue)
QUOTAS: Final = custom_kind(Quota)
POD_GROUPS: Final = custom_kind(PodGroup)

__all__ = [
    "GROUP",
    "JOB_QUEUES",
    "POD_GROUPS",
    "QUEUES",
    "QUOTAS",
    "VERSION",
    "JobQueue",
    "PodGroup",
    "Queue",
    "Quota",
    "batch_definitions",
]


def batch_definitions() -> tuple[Raw, ...]:
    """The CustomResourceDefinitions of all four kinds."""
    return tuple(definition_of(each) for each in (Queue, JobQueue, Quota, PodGroup))
