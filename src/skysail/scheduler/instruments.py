"""How long plugins take: the metrics by extension point and plugin, and the watchdog that names who held the loop.

Plugins and the algorithm know no clock; their methods are wrapped when a profile is made. Each call costs a quarter of
a microsecond more. Durations are added up by extension point over one attempt; single plugins are measured in one
attempt out of ten, as upstream does.

A synchronous call that takes over a second keeps everything else waiting, and so does a step of an asynchronous one
from one await to the next. It cannot be interrupted, but is named the moment it ends: a warning, a metric, a line in
`/livez?verbose`.

Source: pkg/scheduler/framework/runtime/{framework,instrumented_plugins}.go, pkg/scheduler/schedule_one.go, v1.36.
"""

import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from skysail.scheduler.framework.events import ClusterEventWithHint
from skysail.scheduler.framework.status import Code, Status
from skysail.scheduler.metrics import SchedulerMetrics

_log = logging.getLogger(__name__)

SLOW_SECONDS: Final = 1.0
SAMPLED: Final = 10
"""Every so many attempts single plugins are measured: upstream throws dice, which would be missing elsewhere."""
_REMEMBERED: Final = 16
_MEASURED: Final[Mapping[str, str]] = {
    "pre_filter": "PreFilter", "filter_rows": "Filter", "post_filter": "PostFilter", "pre_score": "PreScore",
    "score_rows": "Score", "normalize": "ScoreExtensionNormalize",
}  # fmt: skip
_PER_NODE: Final[Mapping[str, str]] = {"filter": "Filter", "score": "Score"}
_WATCHED: Final[Mapping[str, str]] = {
    "pre_enqueue": "PreEnqueue", "sort_key": "QueueSort", "add_pod": "PreFilter", "remove_pod": "PreFilter",
    "reserve": "Reserve", "unreserve": "Unreserve", "permit": "Permit", "pre_bind_pre_flight": "PreBindPreFlight",
}  # fmt: skip
_REGISTERS: Final[Mapping[str, str]] = {"events_to_register": "QueueingHint"}
_COUNTED: Final = ("PreFilter", "Filter", "PreScore", "Score")


@dataclass(frozen=True, slots=True)
class SlowCall:
    """One call that took too long.

    Attributes:
        plugin: Whose.
        point: At which extension point.
        seconds: How long it took.
        at: When it ended, on the loop's clock.
    """

    plugin: str
    point: str
    seconds: float
    at: float


class Instruments:
    """Measures plugins.

    Args:
        now: Seconds that rise also within one turn of the loop.
        metrics: Takes the measurements.
        slow_seconds: From when on a call is slow.
    """

    def __init__(self, now: Callable[[], float], metrics: SchedulerMetrics, slow_seconds: float = SLOW_SECONDS) -> None:
        self._now, self._metrics, self._slow = now, metrics, slow_seconds
        self._attempts = 0
        self._calls: deque[SlowCall] = deque(maxlen=_REMEMBERED)
        self._seconds: dict[str, float] = {}
        self._codes: dict[str, str] = {}
        self._sampling = False

    @property
    def slow_calls(self) -> Sequence[SlowCall]:
        """The last slow calls, oldest first."""
        return tuple(self._calls)

    def begin(self) -> None:
        """An attempt begins."""
        self._seconds.clear()
        self._codes.clear()
        self._sampling = self._attempts % SAMPLED == 0
        self._attempts += 1

    def end(self, profile: str) -> None:
        """The attempt has decided: give what was measured to the metrics."""
        for point, seconds in self._seconds.items():
            code = self._codes.get(point, "Success")
            self._metrics.observe("framework_extension_point_duration_seconds", seconds, point, code, profile)

    def watch(self, plugin: object, profile: str, *, built_in: bool) -> None:
        """Measure the plugin's methods from now on; what cannot be wrapped is left alone.

        Args:
            plugin: The plugin.
            profile: Whose plugin it is.
            built_in: Whether it is ours: then the methods that hardly work are not watched.
        """
        name = str(getattr(plugin, "name", type(plugin).__name__))
        wrappers: list[tuple[Mapping[str, str], Callable[..., Any]]] = [(_MEASURED, self._measured)]
        if not built_in:
            wrappers += [(_PER_NODE, self._per_node), (_WATCHED, self._watched), (_REGISTERS, self._registering)]
        for methods, wrap in wrappers:
            for method, point in methods.items():
                call = getattr(plugin, method, None)
                if callable(call):
                    try:
                        setattr(plugin, method, wrap(call, name, point, profile))
                    except AttributeError:  # a class with slots
                        return

    def _measured(self, call: Callable[..., Any], plugin: str, point: str, profile: str) -> Callable[..., Any]:
        now, seconds_of = self._now, self._seconds
        counted = point in _COUNTED

        def measured(*args: Any) -> Any:
            start = now()
            code = "Error"
            try:
                answer = call(*args)
                code = _code_of(answer)
                return answer
            finally:
                seconds = now() - start
                seconds_of[point] = seconds_of.get(point, 0.0) + seconds
                if code != "Success":
                    self._codes[point] = code
                if counted:
                    self._metrics.count("plugin_evaluation_total", plugin, point, profile)
                if self._sampling:
                    self._metrics.observe("plugin_execution_duration_seconds", seconds, plugin, point, code)
                if seconds > self._slow:
                    self.step(plugin, point, seconds)

        return measured

    def _per_node(self, call: Callable[..., Any], plugin: str, point: str, profile: str) -> Callable[..., Any]:
        now, seconds_of, step = self._now, self._seconds, self.step

        def per_node(*args: Any) -> Any:
            start = now()
            answer = call(*args)
            seconds = now() - start
            seconds_of[point] = seconds_of.get(point, 0.0) + seconds
            step(plugin, point, seconds)
            return answer

        return per_node

    def _watched(self, call: Callable[..., Any], plugin: str, point: str, profile: str) -> Callable[..., Any]:
        def watched(*args: Any) -> Any:
            start = self._now()
            try:
                return call(*args)
            finally:
                self.step(plugin, point, self._now() - start)

        return watched

    def _registering(self, call: Callable[..., Any], plugin: str, point: str, profile: str) -> Callable[..., Any]:
        """Watch the hints that a plugin registers, too: they run in event handlers."""

        def registering() -> Any:
            return [self._hint_watched(row, plugin, point, profile) for row in call()]

        return registering

    def _hint_watched(self, row: Any, plugin: str, point: str, profile: str) -> Any:
        if not isinstance(row, ClusterEventWithHint) or row.hint is None:
            return row
        return replace(row, hint=self._watched(row.hint, plugin, point, profile))

    def step(self, plugin: str, point: str, seconds: float) -> None:
        """A plugin held the loop for so long, in a call or between two awaits: name it if that was too long."""
        if seconds <= self._slow:
            return
        self._calls.append(SlowCall(plugin, point, seconds, self._now()))
        self._metrics.count("slow_plugin_calls_total", plugin, point)
        _log.warning("plugin call held the loop", extra={"plugin": plugin, "point": point, "seconds": seconds})


def _code_of(answer: object) -> str:
    """The status label of an answer; a Filter or Score over many nodes has succeeded when it answered."""
    if isinstance(answer, tuple) and answer:
        answer = answer[0]
    if isinstance(answer, Status):
        return "Success" if answer.code is Code.SUCCESS else answer.code.text
    return "Success"
