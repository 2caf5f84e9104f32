"""Which Events are worth writing: the same again is counted, the similar is combined, the rest of a flood is dropped.

Three steps, in this order, as client-go takes them for core Events:

1. aggregate: from the tenth different message within ten minutes on, for one object, reason and source, one Event
   "(combined from similar events): ..." stands for all further ones;
2. count: an Event that was written before is patched (`count`, `lastTimestamp`, `message`) and not created;
3. filter: one source may write 25 Events about one object, then one every five minutes.

Source: k8s.io/client-go/tools/record/{event,events_cache}.go, v1.36. Differs: none of the keys is joined text, so none
can collide.
"""

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Generic, NamedTuple, TypeVar

from skysail.api.meta import format_time
from skysail.api.ports import Clock
from skysail.api.raw import Raw

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

NORMAL, WARNING = "Normal", "Warning"

_CACHE_ENTRIES = 4096
_MAX_SIMILAR = 10
_SIMILAR_SECONDS = 600.0
_SPAM_BURST = 25
_SPAM_PER_SECOND = 1.0 / 300.0


class Reference(NamedTuple):
    """The object an Event is about (core/v1 ObjectReference)."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    resource_version: str
    field_path: str = ""

    def as_raw(self) -> Raw:
        """Wire form, without empty fields."""
        fields = {
            "kind": self.kind,
            "namespace": self.namespace,
            "name": self.name,
            "uid": self.uid,
            "apiVersion": self.api_version,
            "resourceVersion": self.resource_version,
            "fieldPath": self.field_path,
        }
        return {name: value for name, value in fields.items() if value}


@dataclass(frozen=True, slots=True)
class CoreEvent:
    """A core/v1 Event on its way to the server."""

    name: str
    namespace: str
    regarding: Reference
    type: str
    reason: str
    message: str
    component: str
    host: str
    first_seen: datetime
    last_seen: datetime
    count: int = 1
    annotations: tuple[tuple[str, str], ...] = ()

    def as_raw(self) -> Raw:
        """Wire form, as client-go writes it."""
        metadata: Raw = {"name": self.name, "namespace": self.namespace}
        if self.annotations:
            metadata["annotations"] = dict(self.annotations)
        source = {"component": self.component} | ({"host": self.host} if self.host else {})
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": metadata,
            "involvedObject": self.regarding.as_raw(),
            "reason": self.reason,
            "message": self.message,
            "source": source,
            "firstTimestamp": format_time(self.first_seen),
            "lastTimestamp": format_time(self.last_seen),
            "count": self.count,
            "type": self.type,
            "reportingComponent": self.component,
            "reportingInstance": self.host,
        }

    def as_patch(self) -> Raw:
        """What changes when the Event has come again."""
        return {"count": self.count, "lastTimestamp": format_time(self.last_seen), "message": self.message}


class _Lru(Generic[K, V]):
    """A dictionary that forgets the least recently used entry beyond its capacity."""

    def __init__(self, capacity: int) -> None:
        self._entries: OrderedDict[K, V] = OrderedDict()
        self._capacity = capacity

    def get(self, key: K) -> V | None:
        value = self._entries.get(key)
        if value is not None:
            self._entries.move_to_end(key)
        return value

    def put(self, key: K, value: V) -> None:
        self._entries[key] = value
        self._entries.move_to_end(key)
        if len(self._entries) > self._capacity:
            self._entries.popitem(last=False)


@dataclass(slots=True)
class _Similar:
    messages: dict[str, None] = field(default_factory=dict)
    last: float = 0.0


@dataclass(slots=True)
class _Written:
    name: str
    first_seen: datetime
    count: int


@dataclass(slots=True)
class _Tokens:
    left: float
    filled_at: float


@dataclass(frozen=True, slots=True)
class Correlated:
    """What to do with an Event.

    Attributes:
        event: As it should be written.
        again: Whether it was written before, and should be patched.
    """

    event: CoreEvent
    again: bool


class EventCorrelator:
    """Takes the three steps for each Event of one component.

    Args:
        clock: Measures intervals.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._similar: _Lru[Hashable, _Similar] = _Lru(_CACHE_ENTRIES)
        self._written: _Lru[Hashable, _Written] = _Lru(_CACHE_ENTRIES)
        self._tokens: _Lru[Hashable, _Tokens] = _Lru(_CACHE_ENTRIES)

    def correlate(self, event: CoreEvent) -> Correlated | None:
        """What to write for an Event; None for nothing."""
        event, key = self._aggregate(event)
        known = self._written.get(key)
        if known is not None:
            event = replace(event, name=known.name, first_seen=known.first_seen, count=known.count + 1)
        self._written.put(key, _Written(event.name, event.first_seen, event.count))
        return Correlated(event, event.count > 1) if self._take_token(event) else None

    def _aggregate(self, event: CoreEvent) -> tuple[CoreEvent, Hashable]:
        group = (_source_key(event), event.type, event.reason)
        now = self._clock.monotonic()
        similar = self._similar.get(group)
        if similar is None or now - similar.last > _SIMILAR_SECONDS:
            similar = _Similar()
        similar.messages[event.message] = None
        similar.last = now
        self._similar.put(group, similar)
        if len(similar.messages) < _MAX_SIMILAR:
            return event, (group, event.regarding.field_path, event.message)
        del similar.messages[next(iter(similar.messages))]
        combined = replace(event, message=f"(combined from similar events): {event.message}", count=1, annotations=())
        return combined, group

    def _take_token(self, event: CoreEvent) -> bool:
        key = (_source_key(event), event.type)
        now = self._clock.monotonic()
        tokens = self._tokens.get(key) or _Tokens(float(_SPAM_BURST), now)
        tokens.left = min(float(_SPAM_BURST), tokens.left + (now - tokens.filled_at) * _SPAM_PER_SECOND)
        tokens.filled_at = now
        self._tokens.put(key, tokens)
        if tokens.left < 1.0:
            return False
        tokens.left -= 1.0
        return True


def _source_key(event: CoreEvent) -> Hashable:
    about = event.regarding
    return (event.component, event.host, about.kind, about.namespace, about.name, about.uid, about.api_version)
