"""Who may sit in a slot."""

from skysail.batch.model.job import Job, Task
from skysail.batch.model.slot import Slot


def is_for(slot: Slot, job: Job) -> bool:
    """Whether tasks of a job may be put into a slot, room and labels apart.

    A slot that is allocated once is, while in use, for the job that sits in it.
    """
    refs = job.spec.quota_refs if job.spec is not None else ()
    return (
        slot.spec.queue == job.queue
        and slot.phase != "Releasing"
        and (not refs or slot.spec.name in refs)
        and (not slot.spec.owners or job.key in slot.spec.owners)
        and (not slot.spec.allocate_once or not slot.was_used or any(uid in job.tasks for uid in slot.holders))
    )


def owns(slot: Slot, task: Task) -> bool:
    """Whether the labels of a task's pod let it into a slot."""
    selector = slot.spec.owner_selector
    return selector is None or selector.matches(task.pod.metadata.labels)


def sat_before(slot: Slot, task: Task) -> bool:
    """Whether a task that is found running may have been put into a slot, by a process that is no more.

    Tasks of a job that slots are for go nowhere else; so it was, if it started after the Quota was made.
    """
    started = task.pod.status.start_time
    return started is None or started.timestamp() >= slot.spec.created
