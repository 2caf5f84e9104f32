"""The points that wait for the API server: PreBind, Bind, PostBind. Shell, not core.

    PreBind    every plugin that has something to do, in order; the first failure ends it
    Bind       exactly one plugin takes the pod: the first that does not answer Skip
    PostBind   all of them, whatever happens

Source: pkg/scheduler/framework/runtime/framework.go, v1.36.
Differs: PreBind plugins run one after the other, also those that would allow to run side by side.
"""

from collections.abc import Awaitable
from typing import TypeVar

from skysail.api.core import Pod
from skysail.scheduler.framework.containment import PluginFailed
from skysail.scheduler.framework.cycle_state import CycleState
from skysail.scheduler.framework.runner import Framework
from skysail.scheduler.framework.status import SKIP, SUCCESS, Status

T = TypeVar("T")


async def _contained(plugin: str, doing: str, answer: Awaitable[T]) -> T:
    try:
        return await answer
    except Exception as error:
        raise PluginFailed(plugin, f"{doing}: {type(error).__name__}: {error}") from error


async def run_pre_bind(framework: Framework, state: CycleState, pod: Pod, node_name: str) -> Status:
    """Run the phase."""
    for plugin in framework.pre_bind:
        doing = f'running PreBind plugin "{plugin.name}"'
        try:
            if plugin.pre_bind_pre_flight(state, pod, node_name).is_skip:
                continue
            status = await _contained(plugin.name, doing, plugin.pre_bind(state, pod, node_name))
        except PluginFailed as failure:
            return failure.status()
        if status.is_rejected:
            return status.with_plugin(plugin.name)
        if not status.is_success:
            return Status.error(f"{doing}: {status.message}", plugin=plugin.name)
    return SUCCESS


async def run_bind(framework: Framework, state: CycleState, pod: Pod, node_name: str) -> Status:
    """Let one plugin bind the pod; Skip when none wanted to."""
    for plugin in framework.bind:
        doing = f'running Bind plugin "{plugin.name}"'
        try:
            status = await _contained(plugin.name, doing, plugin.bind(state, pod, node_name))
        except PluginFailed as failure:
            return failure.status()
        if status.is_skip:
            continue
        if status.is_success:
            return status
        if status.is_rejected:
            return status.with_plugin(plugin.name)
        return Status.error(f"{doing}: {status.message}", plugin=plugin.name)
    return SKIP


async def run_post_bind(framework: Framework, state: CycleState, pod: Pod, node_name: str) -> tuple[PluginFailed, ...]:
    """Tell every plugin that the pod was bound.

    Returns:
        What went wrong, for the log: the pod is bound all the same.
    """
    failures: list[PluginFailed] = []
    for plugin in framework.post_bind:
        doing = f'running PostBind plugin "{plugin.name}"'
        try:
            await _contained(plugin.name, doing, plugin.post_bind(state, pod, node_name))
        except PluginFailed as failure:
            failures.append(failure)
    return tuple(failures)
