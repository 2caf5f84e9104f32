"""Why a unit waits: the one record every waiting unit has after every cycle.

The enum is closed. What is written to pods and pod groups, what `skysail why` prints and what wakes a sleeping job all
come from this record, so that "asleep with no reason" cannot be said.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

Number = int | str
NAMES_SAID: Final = 3
"""How many names a sentence holds before it counts the others."""


class OutcomeCode(StrEnum):
    """What stands in the way. The value is the reason as written into conditions."""

    POD_GROUP_MISSING = "PodGroupMissing"
    MEMBERS_MISSING = "MembersMissing"
    NOT_OURS = "NotOurs"
    QUEUE_MISSING = "QueueMissing"
    QUEUE_CLOSED = "QueueClosed"
    NOT_HEAD = "NotHead"
    QUOTA_EXCEEDED = "QuotaExceeded"
    EXCEEDS_MAX = "ExceedsMax"
    NOT_ENOUGH = "NotEnough"
    NO_NODE = "NoNode"
    NO_TOPOLOGY = "NoTopology"
    NO_QUOTA_SLOT = "NoQuotaSlot"
    VOLUMES_NOT_READY = "VolumesNotReady"
    WAITING_VICTIMS = "WaitingVictims"
    WAITING_QUOTA_BIND = "WaitingQuotaBind"
    WAITING_GATE = "WaitingGate"
    BACKOFF = "Backoff"
    ENTITLEMENT_SCALED = "EntitlementScaled"
    GANG_BROKEN = "GangBroken"
    SCHEDULE_TIMEOUT = "ScheduleTimeout"
    BIND_FAILED = "BindFailed"
    INTERNAL_ERROR = "InternalError"


class Event(StrEnum):
    """What may wake a sleeping unit. Some are said of something: `told(Event.QUEUE_CHANGED, "team-a")`."""

    POD_GONE = "PodGone"
    NODE_ADDED = "NodeAdded"
    NODE_CHANGED = "NodeChanged"
    QUEUE_CHANGED = "QueueChanged"
    QUEUE_USE_FELL = "QueueUseFell"
    GROUP_CHANGED = "GroupChanged"
    MEMBER_CHANGED = "MemberChanged"
    LINE_MOVED = "LineMoved"
    SLOT_CHANGED = "SlotChanged"
    CLAIM_ENDED = "ClaimEnded"
    VICTIMS_CHANGED = "VictimsChanged"
    BINDING_ENDED = "BindingEnded"
    SHARES_MOVED = "SharesMoved"
    VOLUME_CHANGED = "VolumeChanged"
    TIME = "Time"


def few(names: Sequence[str]) -> str:
    """The first of some names, and how many more there are.

    >>> few(["a", "b"]), few(["a", "b", "c", "d", "e"])
    ('a, b', 'a, b, c and 2 more')
    """
    more = f" and {len(names) - NAMES_SAID} more" if len(names) > NAMES_SAID else ""
    return f"{', '.join(names[:NAMES_SAID])}{more}"


def told(event: Event, about: str = "") -> str:
    """The event's name as records and the index of sleepers hold it."""
    return f"{event.value}/{about}" if about else event.value


@dataclass(frozen=True, slots=True)
class Outcome:
    """Why a unit waits.

    Attributes:
        code: What stands in the way.
        message: For people; begins with the essential figures.
        numbers: Key figures: with the code they decide whether a status is written again.
        since: Seconds on the world's clock; carried over while code and numbers stay.
        next_events: What may change it; the unit sleeps until one of them (`told`).
        detail: What else is known (a histogram of nodes, each plugin's answer); never decides about a write.
    """

    code: OutcomeCode
    message: str
    numbers: Mapping[str, Number] = field(default_factory=dict)
    since: float = 0.0
    next_events: tuple[str, ...] = ()
    detail: Mapping[str, object] = field(default_factory=dict, compare=False)

    def says_the_same(self, other: "Outcome | None") -> bool:
        """Whether code and key numbers are equal: then nothing needs to be written."""
        return other is not None and self.code is other.code and self.numbers == other.numbers
