"""Who sees which change: selectors over records, and a watcher's bounded queue.

A watch with selectors sees a set of objects. A change may bring an object into the set (ADDED), alter it within
(MODIFIED), or take it out (DELETED, carrying the object as it was with the change's resourceVersion); what happens
outside is silent. A deletion is but one way of leaving.

    old matches   new matches   event
    no            yes           ADDED     the new state
    yes           yes           MODIFIED  the new state
    yes           no            DELETED   the old state, new resourceVersion

The queue is bounded: a watcher that does not keep up is marked `overflowed`, gets nothing more, and must be closed; its
client lists again.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Literal

from skysail.api.fields import FieldSelector
from skysail.api.labels import Selector
from skysail.apiserver.store import Change, Record

EventType = Literal["ADDED", "MODIFIED", "DELETED"]
QUEUE_LIMIT = 16_384


class Matcher:
    """The set of objects that a list or watch sees."""

    __slots__ = ("_fields", "_labels", "_namespace", "everything", "name", "selective")

    def __init__(self, namespace: str, labels: Selector, fields: FieldSelector) -> None:
        self._namespace = namespace
        self._labels = None if labels.empty else labels
        self._fields = tuple(
            (each.path, each.value, each.operator == "=") for each in fields.requirements if each.path or each.value
        )
        self.name = fields.exact_value("metadata.name")
        self.selective = self._labels is not None or bool(self._fields)
        self.everything = not (namespace or self.selective)

    def matches(self, record: Record) -> bool:
        """Whether an object in this state belongs to the set."""
        if self._namespace and record.namespace != self._namespace:
            return False
        for path, value, equal in self._fields:
            if path == "metadata.name":
                actual = record.name
            elif path == "metadata.namespace":
                actual = record.namespace
            else:
                actual = record.fields.get(path, "")
            if (actual == value) is not equal:
                return False
        return self._labels is None or self._labels.matches(record.labels)

    def classify(self, change: Change) -> EventType | None:
        """What a watcher of this set sees of a change; None for nothing."""
        before = change.old is not None and (self.everything or self.matches(change.old))
        after = change.new is not None and (self.everything or self.matches(change.new))
        if after:
            return "MODIFIED" if before else "ADDED"
        return "DELETED" if before else None


Seen = tuple[EventType, Change]


class Watcher:
    """The receiving end of one watch: what it has still to deliver.

    Args:
        matcher: Which objects it sees.
        after: Changes up to this revision are not for it.
        wake: Called when the queue was empty and is no longer, and on overflow.
        limit: Events that may wait.
    """

    __slots__ = ("_after", "_limit", "_matcher", "_queue", "_wake", "overflowed")

    def __init__(self, matcher: Matcher, after: int, wake: Callable[[], None], limit: int = QUEUE_LIMIT) -> None:
        self._matcher, self._after, self._wake, self._limit = matcher, after, wake, limit
        self._queue: deque[Seen] = deque()
        self.overflowed = False

    def offer(self, change: Change) -> None:
        """Queue what this watch sees of a change."""
        if self.overflowed or change.revision <= self._after:
            return
        kind = self._matcher.classify(change)
        if kind is None:
            return
        if len(self._queue) >= self._limit:
            self.overflowed = True
            self._queue.clear()
            self._wake()
            return
        self._queue.append((kind, change))
        if len(self._queue) == 1:
            self._wake()

    def take(self) -> Sequence[Seen]:
        """Everything that waits, oldest first; the queue is empty afterwards."""
        waiting = tuple(self._queue)
        self._queue.clear()
        return waiting
