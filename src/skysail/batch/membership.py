"""What a pod says of its group, role and queue, in Skysail's own words and upstream's.

Labels and annotations of other systems are read in `skysail.batch.foreign`; whoever makes a world may hand in a reader
that knows them all.
"""

from collections.abc import Mapping
from typing import Final

from skysail.api.core import Pod
from skysail.batch.model.specs import ALONE, Membership
from skysail.scheduler.config.durations import parse_duration

POD_GROUP: Final = "scheduling.skysail.io/pod-group"
ROLE: Final = "scheduling.skysail.io/role"
SUB_GROUP: Final = "scheduling.skysail.io/sub-group"
QUEUE: Final = "scheduling.skysail.io/queue"
JOB_QUEUE: Final = "scheduling.skysail.io/job-queue"
PREEMPTIBLE: Final = "scheduling.skysail.io/preemptible"
USER: Final = "scheduling.skysail.io/user"
USER_GROUPS: Final = "scheduling.skysail.io/user-groups"
"""Comma-separated."""


SLA_WORDS: Final = ("scheduling.skysail.io/sla-waiting-time", "volcano.sh/sla-waiting-time", "sla-waiting-time")
"""How long a gang, or a pod, should wait at most."""


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


def seconds_of_text(text: str) -> float | None:
    """A duration, or a plain number of seconds; None for any other text."""
    if text.isdecimal():
        return float(text)
    try:
        return max(0.0, parse_duration(text)) if text else None
    except ValueError:
        return None


def sla_of(words: Mapping[str, str]) -> float | None:
    """How long a gang should wait at most, of its object's labels and annotations; None where they do not say."""
    return next((found for word in SLA_WORDS if (found := seconds_of_text(words.get(word, ""))) is not None), None)
