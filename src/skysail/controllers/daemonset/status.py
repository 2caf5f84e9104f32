"""What a daemon set reports.

Source: pkg/controller/daemon/daemon_controller.go `updateDaemonSetStatus`, v1.36.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from skysail.api.apps import DaemonSet, DaemonSetStatus
from skysail.api.core import Pod
from skysail.api.node import Node
from skysail.controllers.daemonset.placement import is_updated, should_run
from skysail.controllers.pods import is_available, is_ready


def daemon_set_status(
    daemon_set: DaemonSet,
    nodes: Iterable[Node],
    pods: Mapping[str, Sequence[Pod]],
    revision: str,
    collisions: int,
    now: datetime,
    *,
    observed: bool,
) -> DaemonSetStatus:
    """The status to report.

    Args:
        daemon_set: As read.
        nodes: All nodes.
        pods: The set's pods by node, the senior one first.
        revision: The hash of the present template.
        collisions: The collision count.
        now: For availability.
        observed: Whether this pass acted on the present spec.
    """
    runs = {node.name: should_run(daemon_set, node)[0] for node in nodes}
    senior = [found[0] for node, found in pods.items() if runs.get(node) and found]
    ready = [pod for pod in senior if is_ready(pod)]
    available = sum(is_available(pod, daemon_set.spec.min_ready_seconds, now) for pod in ready)
    desired = sum(runs.values())
    return DaemonSetStatus(
        desired_number_scheduled=desired,
        current_number_scheduled=len(senior),
        number_misscheduled=sum(bool(found) and runs.get(node) is False for node, found in pods.items()),
        number_ready=len(ready),
        number_available=available,
        number_unavailable=desired - available,
        updated_number_scheduled=sum(is_updated(pod, daemon_set, revision) for pod in senior),
        observed_generation=daemon_set.metadata.generation if observed else daemon_set.status.observed_generation,
        collision_count=collisions or daemon_set.status.collision_count,
        conditions=daemon_set.status.conditions,
    )
