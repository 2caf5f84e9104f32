"""PreEnqueue: which pods may not even be tried yet, and what would let them in.

Source: pkg/scheduler/backend/queue/scheduling_queue.go (runPreEnqueuePlugins), v1.36.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from skysail.api.core import Pod
from skysail.scheduler.framework.queued_pod import QueuedPodInfo
from skysail.scheduler.queue.hints import HintMap

GateCheck = Callable[[Pod], str | None]
"""A PreEnqueue plugin: None lets the pod in, anything else says why not."""


@dataclass(frozen=True)
class QueueProfile:
    """What the queue must know of one profile.

    Attributes:
        gates: The PreEnqueue plugins by name, in the profile's order.
        hints: What its plugins want to be woken by.
    """

    gates: Sequence[tuple[str, GateCheck]] = ()
    hints: HintMap = field(default_factory=lambda: HintMap({}))

    def passes_gates(self, info: QueuedPodInfo) -> bool:
        """Ask the gates, the one that holds the pod already first; the pod remembers who holds it and why."""
        gates = self.gates
        if info.gating_plugin:
            gates = sorted(gates, key=lambda gate: gate[0] != info.gating_plugin)
        for plugin, check in gates:
            message = check(info.pod)
            if message is not None:
                info.unschedulable_plugins.add(plugin)
                info.gating_plugin, info.gating_message = plugin, message
                info.gating_plugin_events = self.hints.events_of(plugin)
                return False
        info.gating_plugin = info.gating_message = ""
        return True


NO_PROFILE = QueueProfile()
"""Of a pod of no profile of ours; none such should ever be queued."""
