"""Events of events.k8s.io: the same again is a series on the first one, not a new object.

| an Event like it (type, reason, action, objects, reporter) | what is written                              |
| ---------------------------------------------------------- | -------------------------------------------- |
| was not seen in the last six minutes                       | a new Event                                  |
| was seen once                                              | a patch that starts a series, count 2        |
| is a series                                                | nothing now; its count at the next refresh   |

Every half hour a live series is written again, so that it does not expire; a series that has been quiet for six
minutes is written a last time and forgotten.

Source: k8s.io/client-go/tools/events/event_broadcaster.go, v1.36.
"""

from collections.abc import Hashable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from skysail.api.meta import format_micro_time
from skysail.api.raw import Raw
from skysail.controller.events import Reference

FINISH_SECONDS = 360.0
REFRESH_SECONDS = 1800.0


@dataclass(frozen=True, slots=True)
class SeriesEvent:
    """An events.k8s.io/v1 Event on its way to the server.

    Attributes:
        count: 1 for a single event, else the length of the series.
        last_seen: When the series was last continued.
    """

    name: str
    namespace: str
    regarding: Reference
    related: Reference | None
    type: str
    reason: str
    action: str
    note: str
    controller: str
    instance: str
    seen: datetime
    count: int = 1
    last_seen: datetime | None = None

    @property
    def key(self) -> Hashable:
        """Events with the same key belong to one series."""
        return (
            self.type, self.action, self.reason, self.controller, self.instance, self.regarding, self.related
        )  # fmt: skip

    def as_raw(self) -> Raw:
        """Wire form, as client-go writes it."""
        raw: Raw = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": self.name, "namespace": self.namespace},
            "eventTime": format_micro_time(self.seen),
            "reportingController": self.controller,
            "reportingInstance": self.instance,
            "action": self.action,
            "reason": self.reason,
            "regarding": self.regarding.as_raw(),
            "note": self.note,
            "type": self.type,
        }
        if self.related is not None:
            raw["related"] = self.related.as_raw()
        return raw | self.as_patch()

    def as_patch(self) -> Raw:
        """The series, if it is one."""
        if self.last_seen is None:
            return {}
        return {"series": {"count": self.count, "lastObservedTime": format_micro_time(self.last_seen)}}


class SeriesCache:
    """Remembers which Events are series."""

    def __init__(self) -> None:
        self._events: dict[Hashable, SeriesEvent] = {}

    def observe(self, event: SeriesEvent, now: datetime) -> SeriesEvent | None:
        """What to write for an Event; None for nothing now."""
        known = self._events.get(event.key)
        if known is None:
            self._events[event.key] = event
            return event
        continued = replace(known, count=known.count + 1, last_seen=now)
        self._events[event.key] = continued
        return continued if known.last_seen is None else None

    def to_refresh(self) -> tuple[SeriesEvent, ...]:
        """All series, to be written again lest they expire."""
        return tuple(event for event in self._events.values() if event.last_seen is not None)

    def finish(self, now: datetime) -> tuple[SeriesEvent, ...]:
        """Forget what has been quiet for long; the series among it, to be written a last time."""
        limit = now - timedelta(seconds=FINISH_SECONDS)
        quiet = [event for event in self._events.values() if (event.last_seen or event.seen) < limit]
        for event in quiet:
            del self._events[event.key]
        return tuple(event for event in quiet if event.last_seen is not None)

    def __len__(self) -> int:
        return len(self._events)
