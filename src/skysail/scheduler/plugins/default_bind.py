"""Binds a pod by writing its binding.

Source: pkg/scheduler/framework/plugins/defaultbinder, v1.36.
"""

from skysail.api.core import Pod
from skysail.api.errors import ApiError, Unreachable
from skysail.scheduler.framework.cycle_state import CycleState
from skysail.scheduler.framework.handle import Handle
from skysail.scheduler.framework.status import SUCCESS, Status
from skysail.scheduler.plugins.args import PluginArgs


class DefaultBinder:
    """The plugin.

    Attributes:
        in_time: Its calls have time-outs of their own; no deadline is needed around it.
    """

    name = "DefaultBinder"
    in_time = True

    def __init__(self, args: PluginArgs, handle: Handle) -> None:
        self._handle = handle

    async def bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Write the binding."""
        try:
            await self._handle.binder.bind(pod.namespace, pod.name, pod.uid, node_name)
        except (ApiError, Unreachable) as error:
            return Status.error(str(error))
        return SUCCESS
