"""The scheduler-plugins' PodGroup (`scheduling.x-k8s.io/v1alpha1`)."""

from collections.abc import Mapping
from typing import Final

from skysail.api.meta import ApiObject, Struct
from skysail.api.raw import Raw
from skysail.batch.foreign.decoding import Amount, GroupReading, read_one
from skysail.batch.kinds.pod_group import PodGroupStatus
from skysail.batch.kinds.reading import Notes, created, owner_of
from skysail.batch.model import specs

GROUP: Final = "scheduling.x-k8s.io"
LABEL: Final = "scheduling.x-k8s.io/pod-group"


class CoschedulingSpec(Struct, frozen=True, gc=False):
    """A PodGroup's spec."""

    min_member: int = 1
    min_resources: Mapping[str, Amount] = {}
    schedule_timeout_seconds: int | None = None


class CoschedulingPodGroup(ApiObject, frozen=True, gc=False, kw_only=True):
    """A PodGroup."""

    spec: CoschedulingSpec = CoschedulingSpec()


def read_group(raw: Raw) -> GroupReading:
    """One PodGroup; its queue is what its pods say."""
    return read_one(raw, CoschedulingPodGroup, _group)


def _group(group: CoschedulingPodGroup, notes: Notes) -> specs.PodGroupSpec:
    spec = group.spec
    resources = {name: str(amount) for name, amount in spec.min_resources.items()}
    return specs.PodGroupSpec(
        namespace=group.namespace,
        name=group.name,
        uid=group.uid,
        min_member=spec.min_member,
        min_resources=notes.amounts(resources, "minResources"),
        schedule_timeout_seconds=float(spec.schedule_timeout_seconds or 0),
        owner=owner_of(group),
        created=created(group),
    )


_PHASES: Final = {"Pending": "Pending", "Inqueue": "Scheduling", "Running": "Running", "Completed": "Finished"}


def group_status(status: PodGroupStatus) -> Raw:
    """A PodGroup's status in the plugin's words."""
    phase = _PHASES.get(status.phase, "Unknown")
    if phase == "Finished" and status.failed:
        phase = "Failed"
    counts = {"running": status.running, "succeeded": status.succeeded, "failed": status.failed}
    return {"phase": phase, "occupiedBy": status.occupied_by} | counts
