"""What a pod says of its group, role and queue, in Skysail's own words and upstream's.

Labels and annotations of other systems are read in `skysail.batch.foreign`; whoever makes a world may hand in a reader
that knows them all.
"""

from typing import Final

from skysail.api.core import Pod
from skysail.batch.model.specs import ALONE, Membership

POD_GROUP: Final = "scheduling.skysail.io/pod-group"
ROLE: Final = "scheduling.skysail.io/role"
SUB_GROUP: Final = "scheduling.skysail.io/sub-group"
QUEUE: Final = "scheduling.skysail.io/queue"
JOB_QUEUE: Final = "scheduling.skysail.io/job-queue"
PREEMPTIBLE: Final = "scheduling.skysail.io/preemptible"
USER: Final = "scheduling.skysail.io/user"
USER_GROUPS: Final = "scheduling.skysail.io/user-groups"
"""Comma-separated."""


def read_membership(pod: Pod) -> Membership:
    """What a pod's labels, annotations and `spec.schedulingGroup` say."""
    group = pod.spec.scheduling_group
    name = (group.pod_group_name or "") if group is not None else ""
    name = name or _said(pod, POD_GROUP)
    preemptible = _said(pod, PREEMPTIBLE)
    found = Membership(
        group=f"{pod.metadata.namespace}/{name}" if name else "",
        role=_said(pod, ROLE),
        sub_group=_said(pod, SUB_GROUP),
        queue=_said(pod, QUEUE),
        job_queue=_said(pod, JOB_QUEUE),
        preemptible=preemptible == "true" if preemptible else None,
        user=_said(pod, USER),
        user_groups=tuple(name.strip() for name in _said(pod, USER_GROUPS).split(",") if name.strip()),
    )
    return ALONE if found == ALONE else found


def _said(pod: Pod, key: str) -> str:
    return pod.metadata.labels.get(key) or pod.metadata.annotations.get(key, "")
