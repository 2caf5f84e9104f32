"""Does this event help that pod? The plugins' registrations, looked up fast.

    Pending plugin says queue        ->  IMMEDIATELY    to the active queue, past the backoff
    other refuser says queue         ->  AFTER_BACKOFF  to the backoff queue, or the active one if its wait is over
    all say skip, or none asks       ->  SKIP           it sleeps on
    nobody refused it (an error)     ->  AFTER_BACKOFF
    wildcard event                   ->  AFTER_BACKOFF  for all, or only for the pod it carries

Source: pkg/scheduler/backend/queue/scheduling_queue.go (isPodWorthRequeuing), v1.36.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from skysail.api.core import Pod
from skysail.scheduler.framework.events import ClusterEvent, ClusterEventWithHint, HintFunction, QueueingHint
from skysail.scheduler.framework.queued_pod import QueuedPodInfo

HintFailed = Callable[[str, ClusterEvent, Pod, Exception], None]
"""Told when a plugin's hint function raises: plugin, event, pod, what it raised."""
HintAsked = Callable[[str, str, str, float], None]
"""Told of every hint that was asked: plugin, label of the event, `Queue`, `QueueSkip` or `Error`, seconds."""


class Strategy(Enum):
    """What to do with a sleeping pod after an event."""

    SKIP = "skip"
    AFTER_BACKOFF = "after backoff"
    IMMEDIATELY = "immediately"


@dataclass(frozen=True, slots=True)
class _Registration:
    plugin: str
    event: ClusterEvent
    hint: HintFunction | None


class HintMap:
    """What the plugins of one profile want to be woken by.

    Args:
        registrations: For each plugin, by name, its `events_to_register`; in the profile's order.
        on_failure: Told of hint functions that raise; such a pod is woken.
        on_asked: Told of every question, and how long it took on the clock `now`.
        now: Seconds.
    """

    def __init__(
        self,
        registrations: Mapping[str, Sequence[ClusterEventWithHint]],
        on_failure: HintFailed = lambda plugin, event, pod, error: None,
        on_asked: HintAsked = lambda plugin, label, hint, seconds: None,
        now: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._on_asked, self._now = on_asked, now
        self._registrations = tuple(
            _Registration(plugin, row.event, row.hint) for plugin, rows in registrations.items() for row in rows
        )
        self._on_failure = on_failure
        self._interested: dict[ClusterEvent, tuple[_Registration, ...]] = {}

    def events_of(self, plugin: str) -> tuple[ClusterEvent, ...]:
        """What one plugin registered for."""
        return tuple(row.event for row in self._registrations if row.plugin == plugin)

    def plugins_interested_in(self, event: ClusterEvent) -> frozenset[str]:
        """Whose refusals the event might change."""
        return frozenset(row.plugin for row in self._matching(event))

    def strategy(self, info: QueuedPodInfo, event: ClusterEvent, old: object | None, new: object | None) -> Strategy:
        """What the event means for a pod; asks only the hints of plugins that refused it."""
        if not info.unschedulable_plugins and not info.pending_plugins:
            return Strategy.AFTER_BACKOFF
        if event.is_wildcard:
            return Strategy.AFTER_BACKOFF if new is None or _is_same_pod(new, info.pod) else Strategy.SKIP
        best = Strategy.SKIP
        for row in self._matching(event):
            pending = row.plugin in info.pending_plugins
            if not pending and (best is not Strategy.SKIP or row.plugin not in info.unschedulable_plugins):
                continue
            if self._ask(row, info.pod, event, old, new) is QueueingHint.SKIP:
                continue
            if pending:
                return Strategy.IMMEDIATELY
            if not info.pending_plugins:
                return Strategy.AFTER_BACKOFF
            best = Strategy.AFTER_BACKOFF
        return best

    def _matching(self, event: ClusterEvent) -> tuple[_Registration, ...]:
        rows = self._interested.get(event)
        if rows is None:
            rows = tuple(row for row in self._registrations if row.event.matches(event))
            self._interested[event] = rows
        return rows

    def _ask(
        self, row: _Registration, pod: Pod, event: ClusterEvent, old: object | None, new: object | None
    ) -> QueueingHint:
        start, hint, label = self._now(), QueueingHint.QUEUE, "Queue"
        if row.hint is not None:
            try:
                hint = row.hint(pod, old, new)
                label = _LABELS.get(hint, "Queue")
            except Exception as error:  # noqa: BLE001 - a plugin's bug must neither end the queue nor leave a pod asleep
                self._on_failure(row.plugin, event, pod, error)
                label = "Error"
        self._on_asked(row.plugin, event.label, label, self._now() - start)
        return hint


_LABELS = {QueueingHint.QUEUE: "Queue", QueueingHint.SKIP: "QueueSkip"}


def _is_same_pod(candidate: object, pod: Pod) -> bool:
    return isinstance(candidate, Pod) and candidate.metadata.uid == pod.metadata.uid
