"""JobQueue: a namespace's line into a Queue (Kueue's LocalQueue)."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

import msgspec

from skysail.api.meta import ApiObject, Struct
from skysail.batch.kinds.parts import GROUP, VERSION, Conditions
from skysail.controller.customresources import Column, CustomResource


class JobQueueSpec(Struct, frozen=True, gc=False):
    """Where the line leads, and its order.

    Attributes:
        queue: The Queue.
        cluster_queue: The same in Kueue's words.
        order: FIFO, or by priority first.
        max_jobs: How many of its jobs may run at a time; absent is any number.
        stop_policy: Hold lets no job out.
    """

    queue: str = ""
    cluster_queue: str = ""
    order: Literal["FIFO", "Priority"] = "FIFO"
    max_jobs: Annotated[int, msgspec.Meta(ge=0)] | None = None
    stop_policy: Literal["None", "Hold", "HoldAndDrain"] = "None"


class QueuedJob(Struct, frozen=True, gc=False):
    """A job in the line.

    Attributes:
        name: The pod group, or the pod.
        position: From 1.
        code: Why it waits.
    """

    name: str = ""
    position: int = 0
    code: str = ""


class JobQueueStatus(Struct, frozen=True, gc=False):
    """Who waits.

    Attributes:
        pending_jobs: How many wait.
        admitted_jobs: How many run.
        pending: The first of those that wait, in order.
        allocated: What its jobs hold.
        conditions: Active.
    """

    pending_jobs: int = 0
    admitted_jobs: int = 0
    pending: tuple[QueuedJob, ...] = ()
    allocated: Mapping[str, str] = {}
    conditions: Conditions = ()


LEADS_SOMEWHERE = msgspec.Meta(extra_json_schema={"anyOf": [{"required": ["queue"]}, {"required": ["clusterQueue"]}]})


class JobQueue(ApiObject, frozen=True, gc=False, kw_only=True):
    """A line of jobs of one namespace into a Queue."""

    resource: ClassVar[CustomResource] = CustomResource(
        GROUP,
        VERSION,
        "jobqueues",
        short_names=("jq",),
        columns=(
            Column("Queue", ".spec.queue"),
            Column("Order", ".spec.order"),
            Column("Pending", ".status.pendingJobs", "integer"),
            Column("Admitted", ".status.admittedJobs", "integer"),
        ),
    )
    spec: Annotated[JobQueueSpec, LEADS_SOMEWHERE]
    status: JobQueueStatus = JobQueueStatus()
