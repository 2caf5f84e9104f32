"""Important pods first; among equals, those that wait longer.

Source: pkg/scheduler/framework/plugins/queuesort, v1.36.
"""

from skysail.api.core import Pod
from skysail.scheduler.framework.handle import Handle
from skysail.scheduler.framework.queued_pod import QueuedPodInfo
from skysail.scheduler.plugins.args import PluginArgs


class PrioritySort:
    """The plugin."""

    name = "PrioritySort"

    def __init__(self, args: PluginArgs, handle: Handle) -> None:
        pass

    def sort_key(self, pod: QueuedPodInfo) -> tuple[int, float]:
        """Smallest first."""
        return -pod_priority(pod.pod), pod.timestamp


def pod_priority(pod: Pod) -> int:
    """A pod's priority; 0 when none was set."""
    return pod.spec.priority or 0
