"""The plugins' part of what comes after the decision: Reserve, Permit, PreBind, Bind, PostBind.

    point      order    stops                          combined
    Reserve    profile  at the first failure           all or none: a failure unreserves everything
    Unreserve  reverse  never                          each is idempotent; one that raises is logged, the rest still run
    Permit     profile  at the first refusal or error  any Wait holds the pod, for the time each plugin gave
    PreBind    profile  at the first failure           those whose pre-flight skipped are left out
    Bind       profile  at the first that takes it     exactly one; a Skip passes it on
    PostBind   profile  never                          informational

A plugin that raises, answers no Status, or takes longer than its deadline at an asynchronous point has failed with
`Error`, and is named. How long it holds the loop from one await to the next is told to the watchdog.

Source: pkg/scheduler/framework/runtime/framework.go, v1.36.
"""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, ParamSpec

from skysail.api.core import Pod
from skysail.scheduler.config.durations import format_duration
from skysail.scheduler.framework.containment import PluginFailed, contained
from skysail.scheduler.framework.cycle_state import CycleState
from skysail.scheduler.framework.plugin import Bind, Permit, PostBind, PreBind, Reserve
from skysail.scheduler.framework.status import SKIP, SUCCESS, Code, Status
from skysail.scheduler.metrics import SchedulerMetrics
from skysail.scheduler.stepping import stepped
from skysail.scheduler.waiting_pods import WaitingPods

_log = logging.getLogger(__name__)
P = ParamSpec("P")
_SAMPLED: Final = 11
"""Every so many calls a plugin is measured; a prime, so that each gets its turn."""
HELD: Final = "one or more plugins asked to wait and no plugin rejected pod"
MAX_PERMIT_SECONDS: Final = 15 * 60.0
DEFAULT_DEADLINE_SECONDS: Final = 15 * 60.0
"""No asynchronous point may take longer; plugins have shorter limits of their own (volumes: ten minutes)."""


@dataclass(frozen=True)
class BindingPlugins:
    """The plugins of one profile from Reserve on, in the profile's order."""

    reserve: Sequence[Reserve] = ()
    permit: Sequence[Permit] = ()
    pre_bind: Sequence[PreBind] = ()
    bind: Sequence[Bind] = ()
    post_bind: Sequence[PostBind] = ()


class BindingRunner:
    """Runs them.

    Args:
        profile: The profile's name, for metrics.
        plugins: Whom to run.
        waiting: Where held pods go.
        now: Seconds, for metrics.
        metrics: Where durations go.
        deadline_seconds: For PreBind, Bind and PostBind, each plugin.
        bind_outside: An extender's way to bind; it answers None when it does not bind this pod.
        on_step: Told how long each step of a plugin at an asynchronous point held the loop: plugin, point, seconds.
    """

    def __init__(
        self,
        profile: str,
        plugins: BindingPlugins,
        waiting: WaitingPods,
        *,
        now: Callable[[], float],
        metrics: SchedulerMetrics,
        deadline_seconds: float = DEFAULT_DEADLINE_SECONDS,
        bind_outside: Callable[[Pod, str], Awaitable[Status | None]] | None = None,
        on_step: Callable[[str, str, float], None] = lambda plugin, point, seconds: None,
    ) -> None:
        self._bind_outside, self._on_step = bind_outside, on_step
        self._profile, self._plugins, self._waiting = profile, plugins, waiting
        self._now, self._metrics, self._deadline = now, metrics, deadline_seconds
        self._calls = 0

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Reserve with every plugin; the caller unreserves when this is no success."""
        start, status = self._now(), SUCCESS
        for plugin in self._plugins.reserve:
            status = self._sync("Reserve", plugin.name, lambda p=plugin: p.reserve(state, pod, node_name))  # type: ignore[misc]
            if not status.is_success:
                break
        self._took("Reserve", status, start)
        return status

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Undo what was reserved, last first."""
        start = self._now()
        for plugin in reversed(self._plugins.reserve):
            try:
                contained(plugin.name, "unreserving", plugin.unreserve, state, pod, node_name)
            except PluginFailed:  # it must not keep the others from undoing
                _log.exception("plugin failed to unreserve", extra={"plugin": plugin.name, "pod": pod.key})
        self._took("Unreserve", SUCCESS, start)

    def permit(self, state: CycleState, pod: Pod, node_name: str, *, hold: bool = True) -> Status:
        """Ask for the last word. On Wait the pod is held from now on: `wait_on_permit` says how it ended.

        Args:
            state: The attempt's memory.
            pod: The assumed pod.
            node_name: Where.
            hold: False only asks.
        """
        if not self._plugins.permit:
            return SUCCESS
        start = self._now()
        waits: dict[str, float] = {}
        reasons: tuple[str, ...] = ()
        for plugin in self._plugins.permit:
            status, seconds = self._permit_one(plugin, state, pod, node_name)
            if status.is_wait:
                waits[plugin.name], reasons = min(seconds, MAX_PERMIT_SECONDS), status.reasons
            elif not status.is_success:
                self._took("Permit", status, start)
                return status
        if waits and hold:
            self._waiting.add(pod, waits)
        status = Status(Code.WAIT, (*reasons, HELD))
        self._took("Permit", status if waits else SUCCESS, start)
        return status if waits else SUCCESS

    def release(self, uid: str) -> None:
        """Hold the pod no longer: its attempt failed. Idempotent."""
        self._waiting.drop(uid)

    def will_wait(self, pod: Pod) -> bool:
        """Whether the pod is held at the moment."""
        return self._waiting.get(pod.metadata.uid) is not None

    async def wait_on_permit(self, pod: Pod) -> Status:
        """Wait until the pod is let go or rejected; at once when nobody holds it."""
        waiting = self._waiting.get(pod.metadata.uid)
        if waiting is None:
            return SUCCESS
        start = self._now()
        try:
            status = await waiting.wait_decided()
        finally:
            self._waiting.remove(pod.metadata.uid)
        self._metrics.observe("permit_wait_duration_seconds", self._now() - start, status.code.text)
        if status.is_error:
            return Status(Code.ERROR, (f"waiting on permit for pod: {status.message}",), status.plugin)
        return status

    def pre_bind_pre_flight(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status, frozenset[str]]:
        """Who has something to do in PreBind.

        Returns:
            Success if anybody has, Skip if nobody, or an error; and the names of those who skip.
        """
        if not self._plugins.pre_bind:
            return SKIP, frozenset()
        answer, skipped = SKIP, set[str]()
        for plugin in self._plugins.pre_bind:
            status = self._sync(
                "PreBindPreFlight",
                plugin.name,
                lambda p=plugin: p.pre_bind_pre_flight(state, pod, node_name),  # type: ignore[misc]
            )
            if status.is_success:
                answer = SUCCESS
            elif status.is_skip:
                skipped.add(plugin.name)
            elif status.is_error:
                return status, frozenset(skipped)
            else:
                text = f'PreBindPreFlight {plugin.name} returned "{status.code.text}", which is unsupported. '
                return Status.error(text + "It is supposed to return Success, Skip, or Error status"), frozenset(
                    skipped
                )
        return answer, frozenset(skipped)

    async def pre_bind(self, state: CycleState, pod: Pod, node_name: str, skipped: frozenset[str]) -> Status:
        """Do what must be done before binding."""
        if len(skipped) == len(self._plugins.pre_bind):
            return SUCCESS
        start, status = self._now(), SUCCESS
        for plugin in self._plugins.pre_bind:
            if plugin.name not in skipped:
                status = await self._async("PreBind", plugin.name, partial(plugin.pre_bind, state, pod, node_name))
                if not status.is_success:
                    break
        self._took("PreBind", status, start)
        return status

    async def bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Bind the pod with the extender that binds it, or with the first plugin that takes it."""
        start, status = self._now(), SKIP
        if self._bind_outside is not None:
            bound = await self._bind_outside(pod, node_name)
            if bound is not None:
                self._took("Bind", bound, start)
                return bound
        for plugin in self._plugins.bind:
            in_time = getattr(plugin, "in_time", False) is True
            call = partial(plugin.bind, state, pod, node_name)
            status = await self._async("Bind", plugin.name, call, in_time=in_time)
            if not status.is_skip:
                break
        self._took("Bind", status, start)
        return status

    async def post_bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Tell everybody that the pod was bound."""
        if not self._plugins.post_bind:
            return
        start = self._now()
        for plugin in self._plugins.post_bind:
            await self._async("PostBind", plugin.name, partial(_nothing, plugin.post_bind, state, pod, node_name))
        self._took("PostBind", SUCCESS, start)

    def _permit_one(self, plugin: Permit, state: CycleState, pod: Pod, node_name: str) -> tuple[Status, float]:
        seconds = 0.0

        def ask() -> Status:
            nonlocal seconds
            status, wait = plugin.permit(state, pod, node_name)
            seconds = max(float(wait), 0.0)
            if math.isnan(seconds):
                raise ValueError(f"answered {wait!r} as the time to wait")
            return status

        status = self._sync("Permit", plugin.name, ask)
        return (status.with_plugin(plugin.name) if not status.is_success else status), seconds

    def _sync(self, point: str, plugin: str, call: Callable[[], Status]) -> Status:
        start = self._now()
        try:
            status = contained(plugin, point, lambda: _checked(call()))
        except PluginFailed as failure:
            _log.exception("plugin raised", extra={"plugin": plugin, "point": point})
            status = Status.error(_said(failure.__cause__ or failure))
        return self._named(point, plugin, status, start)

    async def _async(
        self, point: str, plugin: str, call: Callable[[], Awaitable[Status]], *, in_time: bool = False
    ) -> Status:
        """Await a plugin; `in_time` says that it has a time-out of its own."""
        start = self._now()

        def on_step(seconds: float) -> None:
            self._on_step(plugin, point, seconds)

        try:
            async with asyncio.timeout(None if in_time else self._deadline):
                status = _checked(await stepped(call(), self._now, on_step))
        except TimeoutError as error:
            late = not in_time and self._now() - start >= self._deadline
            status = Status.error(f"no answer within {format_duration(self._deadline)}" if late else _said(error))
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            status = Status.error("something that it awaited was cancelled")
        except Exception as error:  # noqa: BLE001 - whatever a plugin raises is its answer
            _log.exception("plugin raised", extra={"plugin": plugin, "point": point})
            status = Status.error(_said(error))
        return self._named(point, plugin, status, start)

    def _named(self, point: str, plugin: str, status: Status, start: float) -> Status:
        self._calls += 1
        if self._calls % _SAMPLED == 0:
            seconds = self._now() - start
            self._metrics.observe("plugin_execution_duration_seconds", seconds, plugin, point, status.code.text)
        if status.is_error:
            self._metrics.plugin_failed(plugin, point)
            return Status(Code.ERROR, (f'running {point} plugin "{plugin}": {status.message}',), plugin)
        return status.with_plugin(plugin) if status.is_rejected else status

    def _took(self, point: str, status: Status, start: float) -> None:
        self._metrics.observe(
            "framework_extension_point_duration_seconds", self._now() - start, point, status.code.text, self._profile
        )


def _checked(status: object) -> Status:
    if not isinstance(status, Status):
        return Status.error(f"answered {status!r}, which is no Status")
    return status


def _said(error: BaseException) -> str:
    return str(error) or type(error).__name__


async def _nothing(call: Callable[P, Awaitable[None]], *args: P.args, **kwargs: P.kwargs) -> Status:
    await call(*args, **kwargs)
    return SUCCESS
