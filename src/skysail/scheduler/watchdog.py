"""Names the plugin that held the loop: a synchronous call that takes over a second keeps everything else waiting.

It cannot interrupt such a call, but tells of it the moment it ends: a warning, a metric, a line in `/livez?verbose`.
"""

import functools
import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from skysail.scheduler.metrics import SchedulerMetrics

_log = logging.getLogger(__name__)

SLOW_SECONDS: Final = 1.0
_REMEMBERED: Final = 16
_METHODS: Final[dict[str, str]] = {
    "pre_enqueue": "PreEnqueue", "sort_key": "QueueSort", "pre_filter": "PreFilter", "add_pod": "PreFilter",
    "remove_pod": "PreFilter", "filter": "Filter", "filter_rows": "Filter", "post_filter": "PostFilter",
    "pre_score": "PreScore", "score": "Score", "score_rows": "Score", "normalize": "Score", "reserve": "Reserve",
    "unreserve": "Unreserve", "permit": "Permit", "pre_bind_pre_flight": "PreBindPreFlight",
}  # fmt: skip


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


class Watchdog:
    """Watches plugins' synchronous methods.

    Args:
        now: Seconds that rise also within one turn of the loop.
        metrics: Counts slow calls.
        slow_seconds: From when on a call is slow.
    """

    def __init__(self, now: Callable[[], float], metrics: SchedulerMetrics, slow_seconds: float = SLOW_SECONDS) -> None:
        self._now, self._metrics, self._slow = now, metrics, slow_seconds
        self._calls: deque[SlowCall] = deque(maxlen=_REMEMBERED)

    @property
    def slow_calls(self) -> Sequence[SlowCall]:
        """The last slow calls, oldest first."""
        return tuple(self._calls)

    def observe(self, plugin: str, point: str, seconds: float) -> None:
        """Take in how long a call took."""
        if seconds <= self._slow:
            return
        self._calls.append(SlowCall(plugin, point, seconds, self._now()))
        self._metrics.count("slow_plugin_calls_total", plugin, point)
        _log.warning("plugin call held the loop", extra={"plugin": plugin, "point": point, "seconds": seconds})

    def watch(self, plugin: object) -> None:
        """Time every call of the plugin's synchronous methods from now on; what cannot be wrapped is left alone.

        Cost: half a microsecond a call.
        """
        name = str(getattr(plugin, "name", type(plugin).__name__))
        for method, point in _METHODS.items():
            call = getattr(plugin, method, None)
            if callable(call):
                try:
                    setattr(plugin, method, self._timed(call, name, point))
                except AttributeError:  # a class with slots
                    return

    def _timed(self, call: Callable[..., Any], plugin: str, point: str) -> Callable[..., Any]:
        @functools.wraps(call)
        def timed(*args: Any, **kwargs: Any) -> Any:
            start = self._now()
            try:
                return call(*args, **kwargs)
            finally:
                self.observe(plugin, point, self._now() - start)

        return timed
