"""What controllers ask of a pod: is it active, terminating, ready, available, and since when.

Pure: every answer is a function of the pod and, where time matters, of `now`.

Source: pkg/api/v1/pod/util.go and pkg/controller/controller_utils.go, v1.36.
"""

from collections.abc import Iterable
from datetime import datetime

from skysail.api.core import Pod, PodCondition
from skysail.api.meta import ApiObject, OwnerReference

TERMINAL_PHASES = frozenset({"Succeeded", "Failed"})


def controller_of(obj: ApiObject) -> OwnerReference | None:
    """The one owner reference that is marked as the controller, if any."""
    return next((ref for ref in obj.metadata.owner_references if ref.controller), None)


def is_controlled_by(obj: ApiObject, owner: ApiObject) -> bool:
    """Whether `owner` is the controller of `obj` (by uid)."""
    ref = controller_of(obj)
    return ref is not None and ref.uid == owner.metadata.uid


def is_terminal(pod: Pod) -> bool:
    """Whether the pod has run to its end, well or badly."""
    return pod.status.phase in TERMINAL_PHASES


def is_active(pod: Pod) -> bool:
    """Whether the pod counts as a replica: neither at its end nor being deleted."""
    return pod.metadata.deletion_timestamp is None and pod.status.phase not in TERMINAL_PHASES


def is_terminating(pod: Pod) -> bool:
    """Whether the pod is being deleted and has not yet come to its end."""
    return pod.metadata.deletion_timestamp is not None and pod.status.phase not in TERMINAL_PHASES


def pod_condition(pod: Pod, condition_type: str) -> PodCondition | None:
    """The pod's condition of that type, if it has one."""
    return next((condition for condition in pod.status.conditions if condition.type == condition_type), None)


def is_ready(pod: Pod) -> bool:
    """Whether the pod's Ready condition is True."""
    condition = pod_condition(pod, "Ready")
    return condition is not None and condition.status == "True"


def ready_since(pod: Pod) -> datetime | None:
    """When the pod became ready; None when it is not, or when nobody wrote the time down."""
    condition = pod_condition(pod, "Ready")
    return condition.last_transition_time if condition is not None and condition.status == "True" else None


def is_available(pod: Pod, min_ready_seconds: int, now: datetime) -> bool:
    """Whether the pod has been ready for at least `min_ready_seconds`."""
    if not is_ready(pod):
        return False
    if min_ready_seconds == 0:
        return True
    since = ready_since(pod)
    return since is not None and (now - since).total_seconds() >= min_ready_seconds


def seconds_until_next_available(pods: Iterable[Pod], min_ready_seconds: int, now: datetime) -> float | None:
    """How long until the next of the ready pods becomes available; None when none is on its way."""
    waits = (min_ready_seconds - (now - since).total_seconds() for since in map(ready_since, pods) if since is not None)
    return min((wait for wait in waits if wait > 0), default=None)


def max_container_restarts(pod: Pod) -> tuple[int, int]:
    """The most restarts of any regular container, and of any sidecar."""
    regular = max((status.restart_count for status in pod.status.container_statuses), default=0)
    sidecars = {container.name for container in pod.spec.init_containers if container.restart_policy == "Always"}
    return regular, max(
        (status.restart_count for status in pod.status.init_container_statuses if status.name in sidecars), default=0
    )
