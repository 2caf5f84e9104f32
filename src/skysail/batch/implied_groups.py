"""The group of pods that need no object for it: a pod that stands alone, or a gang that exists by annotation."""

from skysail.batch.model.job import Task
from skysail.batch.model.specs import PodGroupSpec


def implied_spec(task: Task, now: float) -> PodGroupSpec | None:
    """What a pod says of such a group; None when it names one that needs an object.

    Args:
        task: The pod.
        now: Stands for when it was made where it does not say, in seconds since 1970.
    """
    pod, membership = task.pod, task.membership
    if membership.group and not membership.implicit:
        return None
    namespace, _, name = (membership.group or pod.key).rpartition("/")
    created = pod.metadata.creation_timestamp
    return PodGroupSpec(
        namespace=namespace,
        name=name,
        uid=pod.metadata.uid,
        queue=membership.queue,
        job_queue=membership.job_queue,
        min_member=membership.min_member if membership.group else 1,
        created=created.timestamp() if created is not None else now,
        preemptible=membership.preemptible is not False,
        bundle=min(membership.bundle, default=""),
        bundle_members=membership.bundle,
        match_policy=membership.match_policy,
        zone=membership.zone,
        schedule_timeout_seconds=membership.schedule_timeout_seconds,
        sla_waiting_seconds=membership.sla_waiting_seconds,
    )
