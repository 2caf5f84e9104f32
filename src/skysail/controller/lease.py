"""Who leads: the decisions of leader election, without clock or wire.

A candidate trusts only its own clock. It notes when it last *saw* the lease change, and takes the lease over once it
has seen no change for the lease's whole duration; what times the holder wrote, by whatever clock, does not matter.

| the lease                                | a candidate                         |
| ---------------------------------------- | ----------------------------------- |
| does not exist                           | creates it                          |
| is held by itself                        | renews it                           |
| has no holder (released)                 | takes it                            |
| was seen to change within its duration   | waits                               |
| was not                                  | takes it, transitions + 1           |

Source: k8s.io/client-go/tools/leaderelection/leaderelection.go, v1.36.
"""

from dataclasses import dataclass
from datetime import datetime

from skysail.api.coordination import LeaseSpec
from skysail.api.errors import ConfigError
from skysail.api.meta import format_micro_time
from skysail.api.raw import Raw

JITTER_FACTOR = 1.2


@dataclass(frozen=True, slots=True)
class LeaderElection:
    """How a leader is elected.

    Attributes:
        name: The Lease's name.
        namespace: The Lease's namespace.
        lease_seconds: How long the others wait for a sign of life.
        renew_deadline_seconds: How long the leader tries to renew before it gives up.
        retry_seconds: Time between tries.
        release_on_stop: Whether the leader gives the lease back when it stops.
    """

    name: str
    namespace: str = "kube-system"
    lease_seconds: float = 15.0
    renew_deadline_seconds: float = 10.0
    retry_seconds: float = 2.0
    release_on_stop: bool = True

    def __post_init__(self) -> None:
        """Refuse what cannot work."""
        if self.retry_seconds <= 0:
            raise ConfigError("must be greater than zero", path="retry_seconds")
        if self.lease_seconds <= self.renew_deadline_seconds:
            raise ConfigError("must be greater than renew_deadline_seconds", path="lease_seconds")
        if self.renew_deadline_seconds <= self.retry_seconds * JITTER_FACTOR:
            raise ConfigError(
                f"must be greater than {JITTER_FACTOR} times retry_seconds", path="renew_deadline_seconds"
            )


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """What a Lease says.

    Attributes:
        holder: Who leads; empty when released.
        duration_seconds: How long without a change until it may be taken.
        transitions: How often it changed hands.
        acquired: When the holder took it, in wire form.
        renewed: When the holder renewed it, in wire form.
    """

    holder: str = ""
    duration_seconds: int = 0
    transitions: int = 0
    acquired: str = ""
    renewed: str = ""

    @classmethod
    def of(cls, spec: LeaseSpec) -> "LeaseRecord":
        """Read a Lease's spec."""
        return cls(
            holder=spec.holder_identity or "",
            duration_seconds=spec.lease_duration_seconds or 0,
            transitions=spec.lease_transitions or 0,
            acquired=spec.acquire_time or "",
            renewed=spec.renew_time or "",
        )

    def as_raw(self) -> Raw:
        """A Lease's spec in wire form."""
        return {
            "holderIdentity": self.holder,
            "leaseDurationSeconds": self.duration_seconds,
            "leaseTransitions": self.transitions,
            "acquireTime": self.acquired,
            "renewTime": self.renewed,
        }


class LeaseView:
    """What one candidate has seen of the lease, and what it concludes.

    Args:
        identity: The candidate.
        duration_seconds: The duration it would write.
    """

    def __init__(self, identity: str, duration_seconds: int) -> None:
        self.identity = identity
        self._duration = duration_seconds
        self.record = LeaseRecord()
        self.observed_at = 0.0

    @property
    def is_leader(self) -> bool:
        """Whether the lease, as last seen, is this candidate's."""
        return self.record.holder == self.identity

    def observe(self, record: LeaseRecord, now: float) -> None:
        """The lease was read; a change restarts the wait.

        Args:
            record: What it says.
            now: Monotonic seconds of this candidate.
        """
        if record != self.record:
            self.wrote(record, now)

    def wrote(self, record: LeaseRecord, now: float) -> None:
        """This candidate has written the lease."""
        self.record, self.observed_at = record, now

    def is_valid(self, now: float) -> bool:
        """Whether the holder has shown a sign of life within the lease's duration."""
        return self.observed_at + self.record.duration_seconds > now

    def may_take(self, now: float) -> bool:
        """Whether the lease may be taken or renewed by this candidate."""
        return self.is_leader or not self.record.holder or not self.is_valid(now)

    def claim(self, moment: datetime) -> LeaseRecord:
        """The record that takes or renews the lease."""
        stamp = format_micro_time(moment)
        if self.is_leader:
            return LeaseRecord(self.identity, self._duration, self.record.transitions, self.record.acquired, stamp)
        return LeaseRecord(self.identity, self._duration, self.record.transitions + 1, stamp, stamp)

    def first_claim(self, moment: datetime) -> LeaseRecord:
        """The record of a lease that did not exist."""
        stamp = format_micro_time(moment)
        return LeaseRecord(self.identity, self._duration, 0, stamp, stamp)

    def release(self, moment: datetime) -> LeaseRecord:
        """The record that gives the lease back: no holder, one second."""
        stamp = format_micro_time(moment)
        return LeaseRecord("", 1, self.record.transitions, stamp, stamp)
