"""Who may sit in a slot."""

from skysail.batch.model.job import Job, Task
from skysail.batch.model.slot import Slot


def is_for(slot: Slot, job: Job) -> bool:
    """Whether tasks of a job may be put into a slot, room and labels apart.

    A slot that is allocated once is, while in use, for the job that sits in it.
    """
    is_taken = slot.was_used or slot.holders
    return is_meant_for(slot, job) and slot.phase != "Releasing" and (not is_taken or _is_shared(slot, job))


def is_meant_for(slot: Slot, job: Job) -> bool:
    """Whether a slot's Quota and a job name each other, or leave it open."""
    refs = job.spec.quota_refs if job.spec is not None else ()
    return (
        slot.spec.queue == job.queue
        and (not refs or slot.spec.name in refs)
        and (not slot.spec.owners or job.key in slot.spec.owners)
    )


def _is_shared(slot: Slot, job: Job) -> bool:
    """Whether a job may sit beside those who do: of a slot that is allocated once only theirs."""
    return not slot.spec.allocate_once or any(uid in job.tasks for uid in slot.holders)


def owns(slot: Slot, task: Task) -> bool:
    """Whether the labels of a task's pod let it into a slot."""
    selector = slot.spec.owner_selector
    return selector is None or selector.matches(task.pod.metadata.labels)


def may_stay(slot: Slot, task: Task) -> bool:
    """Whether a task may go on to sit in a slot, whatever was said of either meanwhile."""
    return is_meant_for(slot, task.job) and owns(slot, task)


def sat_before(slot: Slot, task: Task) -> bool:
    """Whether a task that is found running may have been put into a slot, by a process that is no more.

    Tasks of a job that slots are for go nowhere else; so it was, if it started in the Quota's time, and not before the
    slot was bound to the node.
    """
    started, ends = task.pod.status.start_time, slot.spec.expires
    return (
        (not slot.holders or _is_shared(slot, task.job))
        and (started is None or max(slot.spec.created, slot.bound_at) <= started.timestamp())
        and (started is None or ends is None or started.timestamp() < ends)
    )
